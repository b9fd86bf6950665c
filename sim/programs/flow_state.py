"""Records and arrays of the flow engine."""

import numpy as np
from numpy.typing import NDArray

from hopforge.model.kernel.array_record import ArrayRecord

#: phases of a message: alone on its way, it is not looked at again before it arrives
IDLE, SENT, POSTED, LATENCY, MOVING, ARRIVED, ALONE = range(7)
#: events closer than this happen at once (a byte at 1.6 Tbit/s takes 5 ps)
SAME_TIME = 1e-12
#: least part of a message that keeps its host: none, but not 0, which says that it has left
LEAST_BYTES = 1e-6
# places in `numbers`
EVENTS, FREE, READY, DIRTY, FRESH, EPOCH, DONE, NEWS, LINKS, BASE, CALLED = range(11)
NUMBERS = 11

MESSAGE = np.dtype([
    ("began", "f8"), ("arrived", "f8"), ("route", "i4"), ("phase", "i1"), ("early", "?"), ("eager", "?"),
], align=True)
"""A message: when it was sent and arrived; its route (−1: both ranks on one host); phase; whether it starts when it is
sent (early), and whether nobody waits for it to leave (eager). Behind the messages stand the parts of collectives of
units (when the rank called it, and goes on, −1: not known; the record of the call; whether the result waits for it),
then the calls themselves (parts that it still waits for, then the record before in the list CALLED)."""
FLOW = np.dtype([
    ("finish", "f8"), ("weight", "f8"), ("limit", "f8"), ("goal", "f8"), ("held", "f8"), ("mark", "i8"),
    ("message", "i4"), ("link", "i4"), ("to", "i4"), ("count", "i4"), ("hard", "i4"),
], align=True)
"""A message under way (a slot): when it ends on the clock of its bottleneck (before it has one: bytes / weight);
1/penalty; level up to which it has reserved bandwidth on all its links; level in the solution under way; when so many
bytes are left it has left its host (0: it has, or nobody asks); mark of the solution; message; bottleneck (−1: none
yet), that of the solution under way; number of its links, and of those that are hard."""
RANK = np.dtype([
    ("at", "i8"), ("last", "i8"), ("waits", "i8"), ("since", "f8"), ("waited", "f8"), ("computed", "f8"),
    ("finished", "f8"),
], align=True)
"""A rank: next operation, and where they end; message that it waits for (−1: none), and since when; seconds waited and
computed; end (−1: not yet)."""
ROUTE = np.dtype([
    ("first", "i8"), ("last", "i8"), ("latency", "f8"), ("weight", "f8"), ("bound", "f8"), ("inside", "f8"),
    ("rate", "f8"), ("until", "f8"), ("host", "i4"), ("narrow", "i4"), ("alone", "i4"), ("busy", "i4"),
    ("private", "?"),
], align=True)
"""A route: its entries in `route_link`; seconds before the first byte; 1/penalty; highest rate (inf: only links set
one); seconds that a byte is on its way behind the first switch if all buffers are full; rate of a message that is
alone; end of the last one that is alone; host where it begins; link of least capacity; slot of the last message that is
alone (−1: none); others under way; whether no other route has one of its links."""
HOST = np.dtype([("began", "f8"), ("buffer", "f8"), ("first", "i4"), ("last", "i4"), ("sends", "i4")], align=True)
"""A host that sends messages one after the other: when the one that leaves began; bytes of it that its buffer at the
switch holds; first and last that wait, and the one that leaves (−1: none)."""
LINK = np.dtype([
    ("capacity", "f8"), ("level", "f8"), ("clock", "f8"), ("since", "f8"), ("reserved", "f8"), ("first", "f8"),
    ("rest", "f8"), ("load", "f8"), ("mark", "i8"), ("solved", "i8"), ("head", "i4"), ("users", "i4"),
    ("group", "i4"), ("held", "i4"), ("hard", "?"), ("dirty", "?"),
], align=True)
"""A link: bytes per second. Of the flows that have their bottleneck here (the group): level, that is rate per weight;
clock, which advances by the level; when it was last looked at; first end on it; how many they are, and how many of them
keep their hosts. Of all its flows: reserved bytes per second; first entry of the list (slot · hops + place; −1: none).
Of a solution under way: rate of settled flows, weight and number of open ones, marks. Hard: it may become full; dirty:
a flow of it ended, so that the level of its group changes."""
EVENT = np.dtype([("key", "f8"), ("item", "i8")], align=True)
"""An entry of the heap: time, and whose event it is (ranks, hosts, links, slots)."""


class FlowState(ArrayRecord):
    """Arrays of a run.

    Attributes
    ----------
    kind, operand : ndarray
        Operations of all ranks, as in `Program`.
    source, destination, size : ndarray
        Ranks and bytes of the messages, as in `Program`.
    duration : ndarray, float64[...]
        Seconds of each amount.
    message, flow, rank, route, link, host : ndarray
        Records `MESSAGE`, `FLOW`, `RANK`, `ROUTE`, `LINK`, `HOST` (empty unless messages of a host leave one after the
        other). Behind the links of the network: one of each slot, which is its flow's bound, if any flow has one.
    next : ndarray, int32[message]
        The next in the queue of its host; empty as `host`.
    route_link : ndarray, int32[...]
        Links of the routes.
    way : ndarray, int32[slot · hops]
        Links of the flow in a slot.
    near : ndarray, int32[slot · hops, 2]
        Following and preceding entry in the lists of flows of each link.
    heap : ndarray
        Records `EVENT`: a heap, four below each.
    place : ndarray, int32[item]
        Where the event of an item is in the heap (−1: it has none).
    free, fresh, news, flows : ndarray, int32[slot]
        Free slots; flows without a rate yet; messages that have just arrived; scratch of a solution.
    dirty, links, touched, opened : ndarray, int32[link]
        Links whose group changed; scratch of a solution.
    ready : ndarray, int32[rank]
        Ranks to be run.
    numbers : ndarray, int64[11]
        Numbers of events, free slots, ready ranks, dirty links, fresh flows; last mark; messages that arrived, and just
        arrived; links of the network; item of the first slot; record of the last call of units that is complete.
    clock : ndarray, float64[3]
        Now; bytes of an envelope; when links change their rates (inf: never).
    """

    kind: NDArray[np.int8]
    operand: NDArray[np.int64]
    source: NDArray[np.int32]
    destination: NDArray[np.int32]
    size: NDArray[np.int64]
    duration: NDArray[np.float64]
    message: NDArray[np.void]
    flow: NDArray[np.void]
    rank: NDArray[np.void]
    route: NDArray[np.void]
    link: NDArray[np.void]
    host: NDArray[np.void]
    next: NDArray[np.int32]
    route_link: NDArray[np.int32]
    way: NDArray[np.int32]
    near: NDArray[np.int32]
    heap: NDArray[np.void]
    place: NDArray[np.int32]
    free: NDArray[np.int32]
    fresh: NDArray[np.int32]
    news: NDArray[np.int32]
    flows: NDArray[np.int32]
    dirty: NDArray[np.int32]
    links: NDArray[np.int32]
    touched: NDArray[np.int32]
    opened: NDArray[np.int32]
    ready: NDArray[np.int32]
    numbers: NDArray[np.int64]
    clock: NDArray[np.float64]
