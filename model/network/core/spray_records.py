"""Records of spraying and reordering (docs/definitions/spraying.md): flows, gaps, packets, buffers, counters."""

from typing import Any

import numba
import numpy as np

from hopforge.model.kernel.compile import inlined
from hopforge.model.kernel.memory import record_reader

#: what the entropy of a packet is (0: nothing, the hash does not read it)
NO_ENTROPY, PER_FLOW, PER_MESSAGE, PER_PACKET, PER_FLOWLET = range(5)
#: what a receiver does (0: nothing is measured)
NOT_WATCHED, AT_ONCE, IN_ORDER = range(3)
#: rows of ``reorder_histogram``
EXTENTS, FLOW_BUFFERS, HOST_BUFFERS, DELAYS, HISTOGRAMS = range(5)

#: packets from one host to another
FLOW = np.dtype(
    [
        ("made", "i8"),  # sequence number of the next packet
        ("end", "i8"),  # 1 + the largest number that has arrived or was lost
        ("front", "i8"),  # first packet that is neither delivered nor lost
        ("arrivals", "i8"),
        ("last", "i8"),  # number of the packet that arrived last, −1 none ...
        ("second", "i8"),  # ... of the one before it ...
        ("third", "i8"),
        ("departed", "i8"),  # cycle in which the last tail left its host, −1 none
        ("flowlet", "i8"),  # number
        ("first_gap", "i4"),  # −1 none
        ("last_gap", "i4"),
        ("first_held", "i4"),  # packets that wait, in order, linked by ``sprayed.next``; −1 none
        ("last_held", "i4"),
        ("held", "i4"),
        ("open_gaps", "i4"),  # there may be gaps that no arrival has overtaken, only losses
    ],
    align=True,
)

#: packets of a flow that are missing before one that has arrived, or was lost
GAP = np.dtype(
    [
        ("first", "i8"),  # sequence numbers
        ("last", "i8"),
        ("opener", "i8"),  # arrival that overtook them first, −1: none has
        ("next", "i4"),  # of the flow, or free; −1 none
    ],
    align=True,
)

#: beside the record of a packet
SPRAYED = np.dtype([("sequence", "i8"), ("arrived", "i8"), ("next", "i4")], align=True)

#: what waits at a host
REORDER_BUFFER = np.dtype([("packets", "i4"), ("flits", "i4"), ("most_flits", "i4")], align=True)

#: settings, then counters
SPRAY = np.dtype(
    [
        ("inner", "i8"),  # address of the hook that follows messages, 0 none
        ("entropy", "i8"),
        ("values", "i8"),
        ("gap_cycles", "i8"),
        ("deliver", "i8"),
        ("places", "i8"),  # of a flow, −1 no limit
        ("free_gap", "i8"),
        ("packets", "i8"),  # that arrived
        ("reordered", "i8"),
        ("extent_sum", "i8"),
        ("extent_max", "i8"),
        ("after_one", "i8"),  # n-reordered packets
        ("after_two", "i8"),
        ("after_three", "i8"),
        ("flow_buffer_sum", "i8"),
        ("flow_buffer_max", "i8"),
        ("host_buffer_sum", "i8"),
        ("host_buffer_max", "i8"),
        ("delay_sum", "i8"),
        ("delay_max", "i8"),
        ("delivered", "i8"),
        ("held_back", "i8"),  # cycles in which a host waited for a place
    ],
    align=True,
)
#: fields of SPRAY that count
COUNTERS = tuple((SPRAY.names or ())[7:])

_read_flow = record_reader(numba.from_dtype(FLOW))
_read_gap = record_reader(numba.from_dtype(GAP))
_read_sprayed = record_reader(numba.from_dtype(SPRAYED))
_read_buffer = record_reader(numba.from_dtype(REORDER_BUFFER))
_read_spray = record_reader(numba.from_dtype(SPRAY))


@inlined
def flow_at(net: Any, source: int, destination: int) -> Any:
    """Flow from one host to another."""
    return _read_flow(net.flow, source * net.hosts + destination)


@inlined
def gap_at(net: Any, k: int) -> Any:
    """Gap number `k`."""
    return _read_gap(net.gap, k)


@inlined
def sprayed_at(net: Any, p: int) -> Any:
    """Record beside packet `p`."""
    return _read_sprayed(net.sprayed, p)


@inlined
def reorder_buffer_at(net: Any, h: int) -> Any:
    """Reorder buffer of host `h`."""
    return _read_buffer(net.reorder_buffer, h)


@inlined
def spray_of(net: Any) -> Any:
    """Record of the settings and counters."""
    return _read_spray(net.spray, 0)
