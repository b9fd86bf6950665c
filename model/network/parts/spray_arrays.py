"""Spraying and reordering as arrays for the kernel (docs/definitions/spraying.md)."""

from dataclasses import dataclass

import numpy as np

from hopforge.model.free_memory import refuse_beyond_memory
from hopforge.model.kernel.histogram import HISTOGRAM_BINS
from hopforge.model.network.core.spray_records import (
    AT_ONCE,
    FLOW,
    GAP,
    HISTOGRAMS,
    IN_ORDER,
    NO_ENTROPY,
    NOT_WATCHED,
    PER_FLOW,
    PER_FLOWLET,
    PER_MESSAGE,
    PER_PACKET,
    REORDER_BUFFER,
    SPRAY,
    SPRAYED,
)
from hopforge.model.network.core.state import NetState
from hopforge.model.network.parts.spraying import has_place, spray_packets

#: by the words of section `traffic`
ENTROPIES = {None: NO_ENTROPY, "flow": PER_FLOW, "message": PER_MESSAGE, "packet": PER_PACKET, "flowlet": PER_FLOWLET}
DELIVERIES = {None: NOT_WATCHED, "at_once": AT_ONCE, "in_order": IN_ORDER}


@dataclass(frozen=True)
class Spraying:
    """What hosts write into packets, and what receivers do with those that come before their turn.

    Attributes
    ----------
    entropy : str, optional
        ``flow``, ``message``, ``packet`` or ``flowlet``; None: nothing.
    values : int
        Of the entropy.
    gap_cycles : int
        Of ``flowlet``.
    deliver : str, optional
        ``in_order`` or ``at_once``; None: nothing is measured.
    places : int, optional
        Packets of a flow that can wait; None: no limit.
    """

    entropy: str | None = None
    values: int = 1
    gap_cycles: int = 0
    deliver: str | None = None
    places: int | None = None


def put_spraying(state: NetState, spraying: Spraying) -> None:
    """Give a network flows and reorder buffers; its messages or program must be there already.

    Raises
    ------
    UserError
        A record for each pair of hosts needs more memory than is free.
    """
    hosts, pool = int(state["hosts"]), len(state["packet"])
    refuse_beyond_memory(hosts * hosts * FLOW.itemsize, f"the flows between {hosts} hosts (traffic.reorder, .entropy)")
    flow = np.zeros(max(hosts * hosts, 1), FLOW)
    for name in ("last", "second", "third", "departed", "first_gap", "last_gap", "first_held", "last_held"):
        flow[name] = -1
    spray = np.zeros(1, SPRAY)
    spray["inner"], spray["entropy"] = state["messages"], ENTROPIES[spraying.entropy]
    spray["values"], spray["gap_cycles"] = spraying.values, spraying.gap_cycles
    spray["deliver"] = DELIVERIES[spraying.deliver]
    spray["places"] = -1 if spraying.places is None else spraying.places
    state.put("flow", flow)
    state.put("spray", spray)
    state.put("gap", _free_gaps(pool, -1, 0))
    state.put("sprayed", np.zeros(pool, SPRAYED))
    state.put("reorder_buffer", np.zeros(max(hosts, 1), REORDER_BUFFER))
    state.put("reorder_histogram", np.zeros(HISTOGRAMS * HISTOGRAM_BINS, np.int64))
    if "arrived" in state.arrays:  # one packet may let many messages be complete
        state.put("arrived", np.zeros(max(hosts, len(state["message"])), np.int32))
    state.put_function("messages", spray_packets)
    if spraying.places is not None:
        state.put_function("may_send", has_place)
    state.follow_pool(_grow)


def _free_gaps(count: int, behind: int, first: int) -> np.ndarray:
    """Return `count` free gaps from number `first` on; the last one is followed by free gap `behind`."""
    gap = np.zeros(count, GAP)
    gap["next"] = np.arange(first + 1, first + count + 1)
    gap["next"][-1] = behind
    return gap


def _grow(state: NetState, pool: int) -> None:
    """Follow the pool of packets; a missing packet is in the pool, so there are never more gaps."""
    old = len(state["sprayed"])
    sprayed = np.zeros(pool, SPRAYED)
    sprayed[:old] = state["sprayed"]
    state.put("sprayed", sprayed)
    spray = state["spray"]
    state.put("gap", np.concatenate([state["gap"], _free_gaps(pool - old, int(spray["free_gap"][0]), old)]))
    spray["free_gap"] = old
