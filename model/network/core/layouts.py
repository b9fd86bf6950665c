"""Layout of the simulator's state: one record per input VC, output VC, port, router, host and packet.

Records (not one array per field) keep all that one event touches in one or two cache lines, which is what the speed on
thousands of routers depends on. Global numbers: port = router·P + p, VC = port·V + v. `net_record` lists the arrays
of these records, `records` reads them in kernels.
"""

from typing import Any

import numba
import numpy as np

from hopforge.model.kernel.arena import LINE_BYTES

INPUT_VC = np.dtype(
    [
        ("credit_to", "i4"),  # number of the upstream output VC (or output_vcs + host VC)
        ("router", "i4"),
        ("port", "i4"),  # global input port
        ("out_vc", "i4"),  # global output VC while ACTIVE
        ("vc_mask", "u2"),  # of the only candidate, without vc_lists: allowed VCs of `out_port` ...
        ("need", "u2"),  # ... and free flit slots that it asks for
        ("flits", "u2"),  # in the FIFO
        ("head", "u2"),  # FIFO read position
        ("pointer", "u2"),  # a[n]: next output VC (port·V + vc) to prefer
        ("number", "u2"),  # n = port·V + vc in the router
        ("out_port", "u2"),
        ("state", "u1"),
        ("candidates", "u1"),
    ],
    align=True,
)


def input_vc_type(buffer: int) -> np.dtype[Any]:
    """Return INPUT_VC, with a small FIFO behind it in the same cache line: ``fifo`` int32[buffer]."""
    if INPUT_VC.itemsize + 4 * buffer > LINE_BYTES:
        return INPUT_VC
    fields: dict[str, Any] = dict(INPUT_VC.fields or {})
    names = [*fields, "fifo"]
    formats = [*(field[0] for field in fields.values()), np.dtype(("i4", (buffer,)))]
    offsets = [*(field[1] for field in fields.values()), INPUT_VC.itemsize]
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": LINE_BYTES})


OUTPUT_VC = np.dtype(
    [
        ("owner", "i4"),  # global input VC; -1 free
        ("target", "i4"),  # global input VC at the other end (or input_vcs + host VC)
        ("credits", "i4"),
        ("depth", "i4"),  # B(o): credits at reset
        ("pointer", "u2"),  # g[m]: next input VC (port·V + vc) to prefer
        ("tail_sent", "u1"),
        ("vc", "u1"),
    ],
    align=True,
)

INPUT_PORT = np.dtype(
    [
        ("router", "i4"),
        ("drain_mask", "u4"),  # VCs in DRAIN
        ("credit_time", "i4"),  # cycles from a switch grant to the credit that counts upstream: 1 + L + c
        ("port", "u2"),
        ("a", "u2"),  # A[i]
        ("spec_a", "u2"),
        ("q", "u1"),  # representing VC pointer
        ("carried", "u1"),  # heads that come here bring their route along (lookahead)
        ("drops", "i8"),
    ],
    align=True,
)

OUTPUT_PORT = np.dtype(
    [
        ("flits", "i8"),  # sent since the last reset of the counters
        ("busy_until", "i8"),  # first cycle in which the channel takes the next flit
        ("flit_time", "i4"),  # cycles from a switch grant to the first RC/VA cycle downstream: 2 + L
        ("cycles_per_flit", "i4"),
        ("first", "i4"),  # global number of port 0 of its router
        ("free_mask", "u2"),
        ("g", "u2"),  # G[o]
        ("spec_g", "u2"),
        ("connected", "u1"),
        ("next_vc", "u1"),  # f[o]: next output VC to give to a head (va: free_queue)
    ],
    align=True,
)

ROUTER = np.dtype(
    [
        ("drain_ports", "i4"),  # how many have VCs in DRAIN
        ("va_diagonal", "i4"),
        ("sa_diagonal", "i4"),
        ("spec_diagonal", "i4"),
        ("turn_ports", "i4"),  # counted by pointers of wavefront, max_size, loa, draws of pim; others: further blocks
        ("spec_cycle", "i8"),  # in which spec_diagonal moved last
    ],
    align=True,
)

HOST = np.dtype(
    [
        ("next_time", "i8"),  # creation of the next packet
        ("packet", "i4"),  # being sent; -1 none
        ("sent", "i4"),  # flits of it
        ("input_vc", "i4"),  # VC 0 of the router's host port, input side
        ("output_vc", "i4"),  # VC 0 of the router's host port, output side
        ("return_time", "i4"),  # cycles from a flit's arrival to the credit that counts in the router: 1 + L + c
        ("depth", "i4"),  # credits per VC at reset
        ("flit_time", "i4"),  # cycles from sending to the first RC/VA cycle in the router: 1 + L
        ("free_mask", "u4"),
        ("inject_mask", "u4"),
        ("vc", "u1"),
        ("pointer", "u1"),
        ("on", "u1"),  # bursty source
        ("stopped", "u1"),
        ("created", "i8"),  # packets
        ("flits_sent", "i8"),
        ("flits_received", "i8"),
        ("queue_first", "i4"),  # messages of a program that wait to be sent; -1 none
        ("queue_last", "i4"),
        ("message", "i4"),  # the packets of which are being created, where a message has several
        ("message_left", "i4"),  # packets of it
        ("message_target", "i4"),
        ("reply_mask", "u4"),  # VCs for replies (inject_mask: for all else)
    ],
    align=True,
)

MESSAGE = np.dtype(
    [
        ("started", "i8"),  # handed over by its sender
        ("queued", "i8"),  # last time that it came into a source queue
        ("arrived", "i8"),  # -1: not yet
        ("source", "i4"),  # host
        ("target", "i4"),
        ("sender", "i4"),  # rank
        ("receiver", "i4"),
        ("next", "i4"),  # in the same source queue; -1 none
        ("to_send", "i4"),  # packets that are not created yet
        ("left", "i4"),  # packets that have not arrived
        ("last_flits", "i4"),  # length of the last packet
        ("stage", "u1"),
        ("start", "u1"),  # AT_ONCE, RENDEZVOUS or MATCHED
        ("posted", "u1"),  # its receive
        ("departed", "u1"),  # its last tail has left the host
        ("lost", "u1"),  # packets of it were dropped
    ],
    align=True,
)

RANK = np.dtype(
    [
        ("at", "i8"),  # operation
        ("last", "i8"),  # one beyond its operations
        ("waits", "i8"),  # for this message; -1 none
        ("since", "i8"),
        ("waited", "i8"),  # cycles in all
        ("computed", "i8"),
        ("finished", "i8"),  # cycle; -1 running
    ],
    align=True,
)

REPLIER = np.dtype(
    [
        ("first", "i4"),  # reply that waits, packets linked by ``via``; -1 none
        ("last", "i4"),
        ("packet", "i4"),  # being sent; -1 none
        ("sent", "i4"),  # flits of it
        ("made", "i4"),  # replies
        ("places", "i4"),  # taken
        ("outside", "i4"),  # flits that wait for a place
        ("vc", "u1"),
        ("pointer", "u1"),  # VC to prefer for the next reply
        ("turn", "u1"),  # VC of which a flit is taken first
    ],
    align=True,
)

#: rows of `class_count` and `class_histogram`
REQUESTS, REPLIES, ROUND_TRIPS, ACKNOWLEDGES, CLASSES = range(5)
CLASS_COUNT = np.dtype(
    [("packets", "i8"), ("sum", "i8"), ("squares", "f8"), ("largest", "i8"), ("network_sum", "i8")], align=True
)

#: a class of traffic (docs/definitions/traffic-classes.md)
TRAFFIC_CLASS = np.dtype(
    [
        ("log_failure", "f8"),  # log(1 − packets per cycle) of a Bernoulli source
        ("flits", "i8"),  # length of its packets
        ("pattern", "i8"),  # address of its pattern ...
        ("table", "i8"),  # ... and of the table of that
        ("streams", "i8"),  # address of the random streams of its sources: uint64[hosts]
        ("priority", "i8"),  # qos: STRICT
        ("weight", "i8"),  # qos: WEIGHTED
        ("flits_created", "i8"),
        ("flits_arrived", "i8"),
    ],
    align=True,
)
#: the source of a class at a host
CLASS_SOURCE = np.dtype(
    [
        ("next_time", "i8"),  # creation of the next packet that has not begun to leave
        ("created", "i8"),  # packets
        ("packet", "i4"),  # being sent; -1 none
        ("sent", "i4"),  # flits of it
        ("mask", "u4"),  # VCs
        ("vc", "u1"),
        ("pointer", "u1"),  # VC to prefer for the next packet
    ],
    align=True,
)

#: of a packet, beside its record, in a network with acknowledges (model.network.parts.acknowledges)
TRAIL = np.dtype(
    [
        ("of", "i8"),  # an acknowledge: code of the packet that it is for
        ("stamp", "i8"),  # arrival of that packet's head at its last router, on the clock of this
        ("made", "i8"),  # cycle in which the acknowledge was made
        ("in_network", "i8"),  # cycles of its hops
        ("port", "i4"),  # input port by which the packet came to its last router, -1: its host's
        ("passed", "i4"),  # the packet's head has come to the router of its destination
        ("kept", "i4"),  # the acknowledge takes a place in the queue of the router where it waits
    ],
    align=True,
)

#: what a routing algorithm sends back to the router upstream (model.network.parts.feedback)
NOTE = np.dtype([("key", "i8"), ("value", "f8"), ("target", "i8")], align=True)

PACKET = np.dtype(
    [
        ("created", "i8"),
        ("sent", "i8"),
        ("src", "i4"),
        ("dst", "i4"),
        ("length", "i4"),
        ("hops", "i4"),
        ("via", "i4"),  # intermediate target of a routing algorithm, -1 none
        ("phase", "i4"),  # free for the routing algorithm, 0 at creation
        ("user0", "i4"),
        ("user1", "i4"),
        ("number", "i8"),  # of this source, from 0
        ("part", "i8"),  # of one part of the simulation: parts.replies, parts.spraying (entropy), `sim.queued`
    ],
    align=True,
)

PACKET_RECORD = numba.from_dtype(PACKET)
NOTE_RECORD = numba.from_dtype(NOTE)
