"""Layout of the packet network's state: settings, counters, and one record per packet, link, source and event.

The kernels get one record, `NET`: settings, counters and the addresses of arrays (as `model.network.core.net_record`).
A link is node · 2^port_bits + port, with port 2i = (dimension i, +) and 2i + 1 = (dimension i, −); a queue is link ·
VC_STRIDE + VC.
"""

from typing import Any

import numba
import numpy as np

from hopforge.model.kernel.compile import inlined
from hopforge.model.kernel.constant_record import constant_record
from hopforge.model.kernel.memory import int32s, record_reader
from hopforge.model.network.core.layouts import HOST, MESSAGE, RANK

#: virtual channels of a link: shared adaptive one, escape to the intermediate destination, escape to the destination
ADAPTIVE, ESCAPE_VIA, ESCAPE = range(3)
VCS = 3
#: most VCs of a link: a power of two, for short arithmetic
VC_BITS = 2
VC_STRIDE = 1 << VC_BITS
#: with failures a fourth one: the escape channel of a network that is not whole (`failures`)
SPARE = 3

ABR, POR, OFR = range(3)

#: how a packet goes
MINIMAL, OUTFLANK, WRAPAROUND = range(3)

#: kinds of events
ARRIVALS, ANSWERS, FREES, OFFERS, SINKS, HOST_CREDITS, HOST_FREES, LATE_ARRIVALS = range(8)
EVENT_KINDS = 8

#: why the kernel came back; WAITING: ranks of a program wait and nothing is under way
DONE, EMPTY, STUCK, WAITING = range(4)

#: cycles of a bin of lifetimes (`model.kernel.histogram`)
BIN_CYCLES = 16

PACKET = np.dtype(
    [
        ("destination", "i4"),
        ("goal", "i4"),  # intermediate destination, or the destination
        ("number", "i4"),  # message · packets of a message + number in the message
        ("source", "i4"),
        ("kind", "i4"),  # MINIMAL, OUTFLANK, WRAPAROUND
        ("hops", "i4"),
        ("queue", "i4"),  # in which it stands; −1 after delivery
        ("directions", "i4"),  # of its orthant, if it keeps them
    ]
)

LINK = np.dtype(
    [
        ("free", "i8"),  # cycle from which on it can send
        ("sent", "i8"),  # packets
    ]
)

SOURCE = np.dtype(
    [
        ("message", "i4"),  # present one
        ("offered", "i4"),  # packets of it
        ("accepted", "i4"),  # ... that the router has taken; with credits, that the source has sent
        ("listed", "i4"),  # with credits: message whose intermediate destinations are listed
        ("may_offer", "i8"),  # cycle from which on it may offer
    ]
)

#: ways of the present message of a node
ROUTES = np.dtype(
    [
        ("hops", "i4"),  # of the minimal route
        ("minimal", "i4"),  # its links, as a mask
        ("links", "i4"),  # all links of the node
        ("count", "i4"),  # intermediate destinations
    ]
)

#: an intermediate destination
VIA = np.dtype(
    [
        ("place", "i4"),
        ("hops", "i4"),  # through it
        ("links", "i4"),  # towards it, as a mask
        ("kind", "i4"),
    ]
)

EVENT = np.dtype([("time", "i8"), ("what", "i8")])

#: events of one kind in order of time: a ring buffer
RING = np.dtype(
    [
        ("first", "i8"),
        ("count", "i8"),
        ("mask", "i8"),  # places − 1, which are a power of two
        ("events", "i8"),  # address of EVENT[places]
    ]
)

#: life of a packet
LOG = np.dtype(
    [
        ("accepted", "i8"),  # cycle
        ("delivered", "i8"),  # cycle
        ("hops", "i8"),
        ("kind", "i8"),
        ("via", "i8"),  # intermediate destination, −1: none
    ]
)

#: packets of the messages with one number
MESSAGE_SUM = np.dtype([("lifetime", "i8"), ("packets", "i8")])

_SETTINGS = [
    ("nodes", "i8"),
    ("dimensions", "i8"),
    ("longest", "i8"),  # nodes of the longest dimension
    ("port_bits", "i8"),  # of a node's links: 3 up to three dimensions, 4 up to seven
    ("host_port", "i8"),  # port of the source's link, where queues stand at the receiving end: the last but one
    ("most_via", "i8"),  # most intermediate destinations of a packet: in three dimensions 6 outflank, 7 wraparound
    ("turn_rows", "i8"),  # of `turn`
    ("vcs", "i8"),  # virtual channels of a link: VCS, with failures one more
    ("queue_packets", "i8"),  # places of a queue
    ("send_cycles", "i8"),  # of a packet on an external link
    ("link_cycles", "i8"),  # latency of an external link
    ("host_send_cycles", "i8"),  # the same two of an internal link
    ("host_cycles", "i8"),
    ("hop_cycles", "i8"),  # from the begin of a packet on an external link until the router behind takes it
    ("offer_cycles", "i8"),  # the same of an internal link
    ("answer_cycles", "i8"),  # from then until the sender has the answer, and the end of the packet has left it
    ("host_answer_cycles", "i8"),  # the same of an internal link
    ("sink_wait_cycles", "i8"),  # what a sink begins a packet later than its head is there
    ("feed_cycles", "i8"),  # between two packets that a source offers
    ("feed_waits", "i8"),  # a source waits for the answer to its last packet
    ("enter_slots", "i8"),  # free slots to enter a ring of the escape network
    ("inject_slots", "i8"),  # free slots in any queue for a packet from the source
    ("torus", "i8"),
    ("adaptive_only", "i8"),  # congestion counts adaptive queues only
    ("idle_counts_one", "i8"),  # u*/u is 1 where u* = 0
    ("full_is_worthless", "i8"),  # no profit where all queues counted towards q are full
    ("keeps_directions", "i8"),  # wraparound detours keep the directions of their orthant, instead of its middle
    ("algorithm", "i8"),  # ABR, POR, OFR
    ("distance", "i8"),  # Δ
    ("share", "i8"),  # ... instead, as a share of the distance: numerator; 0: no share
    ("share_parts", "i8"),  # denominator
    ("eta", "i8"),  # numerator
    ("eta_parts", "i8"),  # denominator
    ("message_packets", "i8"),
    ("messages", "i8"),
    ("standstill_cycles", "i8"),  # without a packet taken, with packets inside
    ("logs", "i8"),  # the life of every packet is noted
    ("programs", "i8"),  # the sources are hosts with ranks of a program
    ("interleaved", "i8"),  # ... a host sends packets of its messages in turn
    ("message_bits", "i8"),  # ... of an entry of `coming_message` that are taken by the message
]

COUNTERS = [
    ("now", "i8"),
    ("next_feed", "i8"),
    ("last_move", "i8"),
    ("free_packets", "i8"),  # packet records on the stack of free ones
    ("injected", "i8"),
    ("delivered", "i8"),
    ("lifetime_sum", "i8"),
    ("lifetime_max", "i8"),
    ("hops_sum", "i8"),
    ("chosen", "i8"),  # packets that have chosen their way
    ("detours_outflank", "i8"),
    ("detours_wraparound", "i8"),
    ("refused", "i8"),  # packets that a router sent back
    ("sent", "i8"),  # transmissions on external links
    ("finish", "i8"),  # cycle of the last delivery
    # of a run with failures
    ("vanished", "i8"),  # packets that were injected and will never arrive
    ("unroutable", "i8"),  # ... of them those that no router can send on: their destination has failed
    ("abandoned", "i8"),  # packets that will never be injected
    ("around", "i8"),  # the network is not whole: ways are those of `around_way`
    ("escape_vc", "i8"),  # ... and this channel is the escape, by `around_next`
    ("look", "i8"),  # with credits: all routers look in this cycle what they can send
    # of a program, by the names of model.network.core.layouts
    ("timers", "i8"),
    ("ranks_running", "i8"),
    ("calls_ready", "i8"),  # as of the networks of flits: here nobody asks for collective units
    ("messages_queued", "i8"),
    ("messages_arrived", "i8"),
    ("watched", "i8"),  # come back when a message has arrived
    ("coming", "i8"),  # messages whose last packet is on its way from its router to the sink
]

#: lengths of lists that hold what happens in one cycle
_PRESENT = [
    ("active_nodes", "i8"),
    ("ready_links", "i8"),
    ("due_hosts", "i8"),
    ("departures", "i8"),
]

#: arrays: name, element type (dtypes above, or a scalar), meaning
ARRAYS: dict[str, np.dtype[Any]] = {
    "radix": np.dtype("int64"),  # int64[dimensions]
    "step": np.dtype("int32"),  # int32[dimensions, longest, longest]: 4 · distance + 1 if + is minimal + 2 if − is
    "coordinate": np.dtype("int32"),  # int32[nodes, dimensions]
    "peer": np.dtype("int32"),  # int32[links]: node at the other end
    "into": np.dtype("int32"),  # int32[links]: link by which packets come that were sent to a port; −1: none
    "around_way": np.dtype("int32"),  # int32[nodes, nodes]: distance << 16 | links of shortest ways; 0 links: no way
    "around_next": np.dtype("uint8"),  # uint8[nodes, nodes]: port of the escape, up/down
    "turn": np.dtype("int64"),  # int64[dimensions, turn_rows, dimensions]: λ by equal coordinates; 2 ends a list
    "destination": np.dtype("int64"),  # int64[nodes, messages]
    "birth": np.dtype("int64"),  # int64[nodes, messages]: cycle of creation
    "queue_packet": np.dtype("int32"),  # int32[queues, queue_packets]: in order of entry
    "queue_count": np.dtype("uint8"),  # uint8[queues]: packets
    "queue_sent": np.dtype("uint64"),  # uint64[queues]: mask of the packets that are on their way
    "held": np.dtype("uint8"),  # uint8[queues]: with credits, slots that are taken as far as the sender knows
    "link": LINK,  # LINK[links]
    "sink_free": np.dtype("int64"),  # int64[nodes]: cycle from which on the link to the sink can send
    "packet": PACKET,  # PACKET[pool]
    "free_packet": np.dtype("int32"),  # int32[pool]: stack; the record last used is still in the processor's cache
    "source": SOURCE,  # SOURCE[nodes]
    "routes": ROUTES,  # ROUTES[nodes]
    "via": VIA,  # VIA[nodes, most_via]
    "ring": RING,  # RING[EVENT_KINDS]
    "log": LOG,  # LOG[packets of all messages, or 0]
    "histogram": np.dtype("int64"),  # int64[bins]: lifetimes
    "message_sum": MESSAGE_SUM,  # MESSAGE_SUM[messages]
    "arrived": np.dtype("int64"),  # int64[nodes, ports + 1]: events of this cycle, the source's first; −1: none
    "active_node": np.dtype("int64"),  # int64[nodes]: nodes where something happens in this cycle
    "active": np.dtype("uint8"),  # uint8[nodes]: whether it is in that list
    "ready_link": np.dtype("int64"),  # int64[8 · links]: links that may be able to send in this cycle
    "used": np.dtype("int64"),  # int64[ports]: used slots of the links of one node
    "place": np.dtype("int64"),  # int64[dimensions]: coordinates of one intermediate destination
    # of a program, by the names of model.network.core.layouts
    "rank": RANK,  # RANK[ranks]
    "message": MESSAGE,  # MESSAGE[messages]
    "program_kind": np.dtype("uint8"),  # uint8[operations]
    "program_operand": np.dtype("int64"),  # int64[operations]
    "timer": np.dtype("int64"),  # int64[ranks]: heap
    "host": HOST,  # HOST[nodes]: of it the queue of messages
    "host_wake": np.dtype("int64"),  # int64[nodes]: cycle in which a message last came into the empty queue of a host
    "coming_message": np.dtype("int64"),  # int64[...]: heap of time << 31 | message
    "untaken": np.dtype("int32"),  # int32[messages]: packets that have not left the host for good
    "due_host": np.dtype("int64"),  # int64[nodes]: hosts that may be able to send in this cycle
    "due": np.dtype("uint8"),  # uint8[nodes]: whether it is in that list
    "departure": np.dtype("int64"),  # int64[2 · nodes]: messages that left their hosts in this cycle
}

Net = Any  # what kernels call the record below
#: the record that the kernels get
NET = np.dtype([*_SETTINGS, *COUNTERS, *_PRESENT, *((name, "i8") for name in ARRAYS)])

NET_RECORD = constant_record(NET, [name for name, _ in _SETTINGS] + list(ARRAYS))
_read_event = record_reader(numba.from_dtype(EVENT))
_read_link = record_reader(numba.from_dtype(LINK))
_read_log = record_reader(numba.from_dtype(LOG))
_read_message_sum = record_reader(numba.from_dtype(MESSAGE_SUM))
_read_packet = record_reader(numba.from_dtype(PACKET))
_read_ring = record_reader(constant_record(RING, ["mask", "events"]))
_read_routes = record_reader(numba.from_dtype(ROUTES))
_read_source = record_reader(numba.from_dtype(SOURCE))
_read_via = record_reader(numba.from_dtype(VIA))


@inlined
def event_at(ring: Any, number: int) -> Any:
    """Event that comes `number` places after the first place of a ring's memory."""
    return _read_event(ring.events, number & ring.mask)


@inlined
def link_at(net: Net, link: int) -> Any:
    """Link number `link`."""
    return _read_link(net.link, link)


@inlined
def log_at(net: Net, source: int, number: int) -> Any:
    """Log of a packet, by its source and its number there."""
    return _read_log(net.log, source * net.messages * net.message_packets + number)


@inlined
def message_sum_at(net: Net, message: int) -> Any:
    """Return the sums over the messages with number `message`."""
    return _read_message_sum(net.message_sum, message)


@inlined
def packet_at(net: Net, packet: int) -> Any:
    """Packet record number `packet`."""
    return _read_packet(net.packet, packet)


@inlined
def ring_at(net: Net, kind: int) -> Any:
    """Ring of the events of a kind."""
    return _read_ring(net.ring, kind)


@inlined
def routes_at(net: Net, node: int) -> Any:
    """Ways of the present message of a node."""
    return _read_routes(net.routes, node)


@inlined
def source_at(net: Net, node: int) -> Any:
    """Source of a node."""
    return _read_source(net.source, node)


@inlined
def via_at(net: Net, node: int, number: int) -> Any:
    """Intermediate destination `number` of the present message of a node."""
    return _read_via(net.via, node * net.most_via + number)


@inlined
def link_of(net: Net, node: int, port: int) -> int:
    """Return the number of the link of a node at a port."""
    return (node << net.port_bits) + port


@inlined
def node_of(net: Net, q: int) -> int:
    """Node to whose link a queue belongs."""
    return q >> (net.port_bits + VC_BITS)


@inlined
def port_of(net: Net, q: int) -> int:
    """Port of the link to which a queue belongs."""
    return (q >> VC_BITS) & ((1 << net.port_bits) - 1)


@inlined
def coordinate(net: Net, node: int, dimension: int) -> int:
    """Coordinate of a node."""
    return int32s(net.coordinate)[node * net.dimensions + dimension]


@inlined
def step_between(net: Net, dimension: int, a: int, b: int) -> int:
    """4 · distance of two coordinates, + 1 if + is minimal, + 2 if − is."""
    return int32s(net.step)[(dimension * net.longest + a) * net.longest + b]
