"""Layout of what the input-output-queued routers add to the state of `model.network.core.layouts`.

Numbers of ports and VCs are those of `model.network`: port = router·P + p, VC = port·V + v. Of the records there are
used: hosts (sources), packets, the counters, `OUTPUT_PORT` (`flits`, `busy_until`; `free_mask`: VCs that have a packet
and a credit; `g`: the VC that is preferred next) and `OUTPUT_VC`, of which `depth` − `credits` is what routing
algorithms call the queue: packets in the output queue and used credits.
"""

from typing import Any

import numba
import numpy as np

from hopforge.model.kernel.compile import inlined
from hopforge.model.kernel.constant_record import constant_record
from hopforge.model.kernel.memory import record_reader
from hopforge.model.network.core.layouts import NOTE

#: a stamp is cycle << STAMP_BITS | place among the grants of a match: as many as ports
STAMP_BITS = 10
#: source of packets in fixed intervals, beside those of `model.network.core.kinds`
INTERVAL = 4
#: events of the log beside those of `model.network.core.kinds`: a packet's route is computed (input VC, output VC);
#: an output port begins to send it (output VC); a host sends again what it has set aside
ROUTED, LINKED, SENT_AGAIN = 4, 5, 6
#: times of an interval source are counted in 2^−20 cycles
INTERVAL_BITS = 20
#: low bits of ``packet.part``: cycles between the arrivals at the router before and at this one; above: the latter
ELAPSED_BITS = 24

#: 32 bytes: two in a cache line
INPUT_QUEUE = np.dtype(
    [
        ("stamp", "i8"),  # when the crossbar served this VC last: least recently used first
        ("credit_to", "i4"),  # upstream output VC, or output_vcs + host
        ("first", "i4"),  # packet at the head, if there is one; the others follow by `following`
        ("last", "i4"),
        ("router", "i4"),
        ("length", "u2"),
        ("output", "i2"),  # output port · V + VC of the first packet; -1: empty
        ("credit_line", "u2"),  # delay line of credits
        ("number", "u2"),  # port · V + VC in the router
    ],
    align=True,
)

#: 32 bytes
OUTPUT_QUEUE = np.dtype(
    [
        ("target", "i4"),  # input VC at the other end, or input_vcs + (host << HOST_VC_BITS | VC); -1: nothing there
        ("credits", "i4"),
        ("port", "i4"),  # global output port
        ("router", "i4"),
        ("first", "i4"),  # packet, as above
        ("last", "i4"),
        ("length", "u2"),
        ("packet_line", "u2"),  # delay line of packets
        ("number", "u2"),  # of the port in its router
        ("vc", "u1"),
    ],
    align=True,
)

NIC = np.dtype(
    [
        ("busy_until", "i8"),  # first cycle in which the link takes the next packet
        ("due", "i8"),  # of the next packet of an interval source, in 2^−INTERVAL_BITS cycles
        ("credits", "i4"),
        ("packet_line", "i4"),
        ("target", "i4"),  # input VC of the router
        ("output_vc", "i4"),  # VC 0 of the router's port to the host
        ("credit_line", "i4"),  # of credits from this host
        ("next", "i4"),  # host in the same slot of the calendar; -1: none
        ("place", "u2"),  # in the ring of departures
        ("round_left", "u2"),  # packets of the round of an interval source that are still to come
        ("waiting", "u1"),  # for a credit
    ],
    align=True,
)

#: entries for other parts wait in the line's inbox until all parts have come to the end of the window; two cache lines,
#: of which putting something in takes the first
LINE = np.dtype(
    {
        "names": [
            "far",  # whether entries are put into the inbox first
            "waiting",  # entries in the inbox
            "put_entries",  # address of entries or of the inbox's int64[capacity]
            "sent",  # address of the inbox's int32[capacity]: when they were put in, modulo 2^32
            "last",  # entries put in
            "mask",  # capacity − 1
            "counts",  # address of int32[…]: entries that come out in a cycle, modulo …
            "delay",  # cycles
            "count_mask",  # … a power of two, − 1
            "first",  # entries taken out
            "entries",  # address of int64[capacity]: what
            "notes",  # address of NOTE[capacity] beside credits
            "put_notes",  # ... or of the inbox's
        ],
        "formats": ["i8"] * 7 + ["i4"] * 2 + ["i8"] * 4,
        "itemsize": 128,
    },
    align=True,
)
_LINE_CONSTANT = [name for name in LINE.names or () if name not in ("first", "last", "waiting")]

#: a part of the network (`parts`): where it begins in the arrays, and the addresses of its own
PART = np.dtype(
    [
        ("first_router", "i8"),
        ("first_port", "i8"),
        ("first_host", "i8"),
        ("hosts", "i8"),
        ("first_line", "i8"),  # of packets, and of credits
        ("asking", "i8"),  # bit per router with requests
        ("asking_words", "i8"),
        ("pending", "i8"),  # bit per port that may send in this cycle
        ("pending_words", "i8"),
        ("due_hosts", "i8"),  # bit per host that may send in this cycle
        ("due_words", "i8"),
        ("calendar", "i8"),  # int32[slots]: first host that wakes then
        ("free_line", "i8"),  # number of the line of ports whose link becomes free
    ],
    align=True,
)

_SETTINGS = [
    ("packet_cycles", "i8"),
    ("wake_late", "i8"),  # an idle output port sends a packet time after a packet or credit has come
    ("match_cycles", "i8"),
    ("input_depth", "i8"),
    ("output_depth", "i8"),
    ("words", "i8"),  # of 64 VCs, in a router
    ("nic_depth", "i8"),
    ("interval", "i8"),  # between rounds of a host, in 2^−INTERVAL_BITS cycles
    ("round_low", "i8"),  # fewest packets of a round
    ("round_span", "i8"),  # that many sizes of a round, from `round_low` on
    ("calendar_mask", "i8"),
    ("bin_cycles", "i8"),  # of the histogram of latencies
    ("lines", "i8"),  # delay lines of packets, and of credits, of a part: by falling delay
    ("parts", "i8"),
    ("window", "i8"),  # cycles that a part may run ahead
    ("slices", "i8"),  # of arrays that hold what a part touches
    ("reserve", "i8"),  # records of packets that a window may need
]
_COUNTERS = [("derouted", "i8"), ("matches", "i8"), ("blocked_requests", "i8")]

#: arrays: name, element type
ARRAYS: dict[str, np.dtype[Any]] = {
    "input_queue": INPUT_QUEUE,
    "output_queue": OUTPUT_QUEUE,
    "nic": NIC,
    "part": PART,
    "slice": np.dtype("int64"),  # int64[parts, slices, 2]: address of a part's slice, cache lines of it for each match
    "packet_line": LINE,  # LINE[parts, lines]
    "credit_line": LINE,
    "free_line": LINE,  # LINE[parts]: ports whose link becomes free
    "following": np.dtype("int32"),  # int32[pool]: packet behind this one in the same queue
    "requests": np.dtype("uint64"),  # uint64[routers, words]: input VCs that ask for the crossbar
    "blocked": np.dtype("uint64"),  # uint64[output VCs, words]: input VCs that wait for a place in this queue
    "asking": np.dtype("uint64"),  # of all parts
    "pending": np.dtype("uint64"),
    "due_hosts": np.dtype("uint64"),
    "calendar": np.dtype("int32"),
    "departures": np.dtype("int64"),  # int64[hosts, nic_depth]: when the last packets left the queue of the NIC
    "order": np.dtype("int32"),  # scratch: requests of a router by age ...
    "age": np.dtype("int64"),
    "granted": np.dtype("int32"),  # ... and those that were granted
    "matched": np.dtype("uint64"),  # ... with several words of ports: uint64[2, words]: inputs and outputs of a match
    "places": np.dtype("int64"),  # scratch, int64[window]: where entries of a cycle come in their line
}

#: settings, counters and the addresses of `ARRAYS`
QUEUES = np.dtype([*_SETTINGS, *_COUNTERS, *((name, "i8") for name in ARRAYS)], align=True)
QUEUES_RECORD = constant_record(QUEUES, [name for name, _ in _SETTINGS] + list(ARRAYS))

# what kernels call these records
Queues = Any
Queue = Any
Line = Any
Part = Any

_read_input_queue = record_reader(numba.from_dtype(INPUT_QUEUE))
_read_output_queue = record_reader(numba.from_dtype(OUTPUT_QUEUE))
_read_nic = record_reader(numba.from_dtype(NIC))
_read_line = record_reader(constant_record(LINE, _LINE_CONSTANT))
_read_part = record_reader(constant_record(PART, list(PART.names or ())))
_read_note = record_reader(numba.from_dtype(NOTE))


@inlined
def input_queue(queues: Any, n: int) -> Any:
    """Input VC number `n`."""
    return _read_input_queue(queues.input_queue, n)


@inlined
def output_queue(queues: Any, m: int) -> Any:
    """Output VC number `m`."""
    return _read_output_queue(queues.output_queue, m)


@inlined
def nic_at(queues: Any, h: int) -> Any:
    """Host number `h`."""
    return _read_nic(queues.nic, h)


@inlined
def line_at(address: int, k: int) -> Any:
    """Delay line number `k` of those at an address."""
    return _read_line(address, k)


@inlined
def part_at(queues: Any, k: int) -> Any:
    """Part number `k`."""
    return _read_part(queues.part, k)


@inlined
def note_at(address: int, place: int) -> Any:
    """Feedback number `place` of those at an address."""
    return _read_note(address, place)
