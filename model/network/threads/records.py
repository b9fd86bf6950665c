"""What the threads of one run share (docs/definitions/threads.md): the parts of a network, and their mailboxes.

A part is a range of routers with their hosts. It has a record `NET` of its own, whose wheels, counters, free packets
and masks are its own, and whose routers, links and packets are those of the network.
"""

from typing import Any

import numpy as np

from hopforge.model.kernel.compile import inlined
from hopforge.model.kernel.constant_record import constant_record
from hopforge.model.kernel.memory import record_reader
from hopforge.model.network.core.net_record import NET_RECORD, PLAIN_RECORD

PART = np.dtype(
    [
        ("first", "i8"),  # router
        ("end", "i8"),
        ("first_host", "i8"),
        ("end_host", "i8"),
        ("first_vc", "i8"),  # of its input VCs, and of its output VCs
        ("own_vcs", "i8"),
        ("base", "i8"),  # address of int32[wheel]: flit events that were there when the threads began ...
        ("marks", "i8"),  # ... int32[wheel, lanes]: events of the slot up to the end of each lane
        ("filled", "i8"),  # int64[parts]: events for each other part while they are posted
    ],
    align=True,
)

#: a lane is the way of flits with one delay from routers, or from hosts: what comes by it in a cycle was sent in one
CREW = np.dtype(
    [
        ("parts", "i8"),
        ("threads", "i8"),
        ("window", "i8"),  # cycles between two barriers
        ("begin", "i8"),
        ("end", "i8"),
        ("span", "i8"),  # VCs of a router
        ("lanes", "i8"),  # in the order in which what comes in one cycle was sent
        ("lane_time", "i8"),  # address of int64[lanes]: delay ...
        ("lane_host", "i8"),  # ... int64[lanes]: 1: from hosts
        ("part", "i8"),  # PART[parts]
        ("net", "i8"),  # NET[parts]
        ("part_of", "i8"),  # int32[routers]
        ("part_of_host", "i8"),  # int32[hosts]
        ("control", "i8"),  # int64[...]: see `barrier`
        ("times", "i8"),  # int64[windows, parts]: ns that each part takes for each window; 0: they are not measured
        ("flit_half", "i8"),  # flits in one half of the mailboxes: one is read while the other is filled
        ("flit_mail", "i8"),  # int64[2, flit_half]: events between parts ...
        ("flit_place", "i8"),  # ... int64[from, to]: where those of two parts begin ...
        ("flit_mailed", "i8"),  # ... int32[2, from, to, window, lanes]: events up to the end of a lane of a cycle
        ("credit_half", "i8"),
        ("credit_mail", "i8"),  # int32[2, credit_half] ...
        ("credit_place", "i8"),
        ("credit_mailed", "i8"),  # ... int32[2, from, to, window]
        ("plain", "i8"),  # only for the compiler, which knows it: the parts are those of a plain network
    ],
    align=True,
)

Crew = Any
Part = Any
CREW_RECORD = constant_record(CREW, CREW.names or (), known={"plain": 0})
PLAIN_CREW_RECORD = constant_record(CREW, CREW.names or (), known={"plain": 1})
_read_part = record_reader(constant_record(PART, PART.names or ()))
_read_net, _read_plain_net = record_reader(NET_RECORD), record_reader(PLAIN_RECORD)


@inlined
def part_at(crew: Crew, number: int) -> Any:
    """Part `number` of the network."""
    return _read_part(crew.part, number)


@inlined
def net_of(crew: Crew, number: int) -> Any:
    """Record of the state as part `number` sees it."""
    if crew.plain != 0:
        return _read_plain_net(crew.net, number)
    return _read_net(crew.net, number)
