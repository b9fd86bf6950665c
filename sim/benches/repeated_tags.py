"""Tags that come again while routers still know the last packet that had them (docs/definitions/service-host.md).

Hardware would then acknowledge the wrong packet, and the simulator, which tells all packets apart, would not.
"""

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config import Config
from hopforge.model.errors import UserError

__all__ = ["refuse_early_tags", "refuse_repeated_tags"]


def refuse_repeated_tags(config: Config, source: NDArray[np.int64], tag_bits: int) -> None:
    """Refuse tags that come again although entries may stay for ever.

    Parameters
    ----------
    config : Config
        Section traffic.
    source : ndarray, int64[packet]
        Who sends each packet of the run; a host numbers its packets with tags.
    tag_bits : int
        Width of a tag.

    Raises
    ------
    UserError
        A host with more packets than tags.
    """
    found = config.traffic.acknowledge
    if found is None or found.age_limit_cycles is not None:
        return
    packets = np.bincount(source)
    host, ratio = int(packets.argmax()), max(found.ratio, 1)
    asking = int(packets[host]) // ratio * ratio  # those behind the last that asks are never remembered
    if asking > 1 << tag_bits:
        raise UserError(
            f"router.tag_bits must be at least {(asking - 1).bit_length()} for the {packets[host]} packets of host "
            f"{host}, as entries stay without traffic.acknowledge.age_limit_cycles, not {tag_bits}"
        )


def refuse_early_tags(
    config: Config, source: NDArray[np.int64], tag_bits: int, sent: NDArray[np.int64], taken: NDArray[np.int64],
    latest: int = 0,
) -> None:  # fmt: skip
    """Refuse a tag that comes again while entries or acknowledges of the last packet with it may be there.

    Parameters
    ----------
    config : Config
        Section traffic.
    source : ndarray, int64[packet]
        Who sends each packet of the run, host by host.
    tag_bits : int
        Width of a tag.
    sent, taken : ndarray, int64[packet]
        Cycles of its first flit at its source and of its last one at its destination.
    latest : int
        Cycles from a packet's arrival to the latest acknowledge, of all packets, that found no entry any more.

    Raises
    ------
    UserError
        It names the tag that comes earliest.
    """
    found = config.traffic.acknowledge
    if found is None or found.age_limit_cycles is None:
        return
    number = np.arange(len(source)) - np.searchsorted(source, source)
    again = np.flatnonzero((number >> tag_bits != 0) & ((number + 1) % max(found.ratio, 1) == 0))
    if not len(again):
        return
    gaps = sent[again] - taken[again - (1 << tag_bits)]
    host, gap, limit = source[again[np.argmin(gaps)]], gaps.min(), found.age_limit_cycles
    where = f"a tag of host {host} comes again {gap} cycles after the last packet with it has arrived"
    if gap <= limit:
        other = f", or traffic.acknowledge.age_limit_cycles below {gap}" if gap > 1 else ""
        raise UserError(f"router.tag_bits must be above {tag_bits}{other}: {where}, whose entries live for {limit}")
    if gap <= latest:
        raise UserError(
            f"router.tag_bits must be above {tag_bits}: {where}, and acknowledges come up to {latest} cycles after "
            f"their packet, when its entries are gone (traffic.acknowledge.age_limit_cycles: {limit})"
        )
