"""Virtual layers of several tables at once, whose packets share the network (docs/definitions/several-paths.md)."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hopforge.model.errors import UserError
from hopforge.model.irregular.channels import ChannelList, WorkingSwitches
from hopforge.model.irregular.dependencies import MAX_LAYERS
from hopforge.model.irregular.lash import lash_several, path_starts
from hopforge.model.irregular.layers import LayerError, Layers, check_together

__all__ = ["SHARED_LAYERS", "shared_layers"]

_Tables = Sequence[NDArray[np.int32]]


def _single(tables: _Tables, channels: ChannelList) -> list[Layers]:
    starts = [path_starts(table, channels) for table in tables]
    return [Layers("single", 1, np.zeros(first[-1], np.int16), first) for first in starts]


def _hop_indexed(tables: _Tables, channels: ChannelList) -> list[Layers]:
    found = []
    for table in tables:
        starts = path_starts(table, channels)
        hop = np.arange(starts[-1], dtype=np.int64) - np.repeat(starts[:-1], np.diff(starts))
        found.append(Layers("hop_indexed", int(hop.max(initial=0)) + 1, hop.astype(np.int16), starts))
    most = max(layers.count for layers in found)
    if most > MAX_LAYERS:
        raise UserError(f"tables.layers: hop_indexed needs more than {MAX_LAYERS} layers for these tables")
    return [replace(layers, count=most) for layers in found]


def _lash(tables: _Tables, channels: ChannelList, *, longest_first: bool = False) -> list[Layers]:
    stacked = np.stack(tables)
    starts = [path_starts(table, channels) for table in tables]
    order = None
    if longest_first:
        hops = np.concatenate([np.diff(first) for first in starts])
        order = np.argsort(-hops, kind="stable")[: int(np.count_nonzero(hops))]
    layer_of, count = lash_several(stacked, channels, order)
    return [
        Layers("lash", count, np.repeat(of_pair.reshape(-1), np.diff(first)), first)
        for of_pair, first in zip(layer_of, starts, strict=True)
    ]


def _fewest(tables: _Tables, channels: ChannelList) -> list[Layers]:
    """Return the fewest layers that one of the others needs; of equal ones those of the first."""
    best = _single(tables, channels)
    try:
        check_together(best, tables, channels)
        return best
    except LayerError:
        pass
    best = []
    for method in (_lash, lambda *given: _lash(*given, longest_first=True), _hop_indexed):
        try:
            found = method(tables, channels)
        except UserError:  # more than 64
            continue
        if not best or found[0].count < best[0].count:
            best = found
    if not best:
        raise UserError(f"tables.layers: fewest needs more than {MAX_LAYERS} layers for these tables")
    return best


#: method → layers of each table, all with the same count
SHARED_LAYERS: dict[str, Callable[[_Tables, ChannelList], list[Layers]]] = {
    "fewest": _fewest, "lash": _lash, "hop_indexed": _hop_indexed, "single": _single,
}  # fmt: skip


def shared_layers(
    method: str, tables: _Tables, channels: ChannelList, working: WorkingSwitches | None = None
) -> list[Layers]:
    """Put the paths of all tables into layers, and check that packets of all together cannot wait in a circle.

    Parameters
    ----------
    method : str
        Key of `SHARED_LAYERS`.
    tables : sequence of ndarray, int32[node, destination]
        Checked tables (`channels.check_next_hops`).
    channels : ChannelList
        Channels of the network.
    working : WorkingSwitches, optional
        What nodes are called in errors.

    Raises
    ------
    UserError
        Too many layers, or a cycle (``single``).
    """
    layers = SHARED_LAYERS[method](tables, channels)
    try:
        check_together(layers, tables, channels, working)
    except LayerError as error:
        raise UserError(f"tables.layers: {method}: {error}") from error
    return layers
