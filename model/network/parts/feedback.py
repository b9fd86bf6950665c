"""Feedback of a learning routing algorithm: a note from a router to the one upstream, with the credit.

When the head of a packet leaves the input buffer of a router, the algorithm may write a note (a key and a value). It
arrives at the output port upstream in the cycle in which the credit of the head counts there, and takes no bandwidth
(as Q-adaptive asks: "sent back from y to x when the packet leaves y's input buffer, arriving one reverse flight later
with the credit").
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from numba import float64, int32, int64, types

from hopforge.model.kernel.compile import c_function, c_kernel, inner
from hopforge.model.kernel.memory import floats, function_at, int32s, int64s
from hopforge.model.network.core.hooks import HEAD_IN, HEAD_OUT, HOOK_SIGNATURE, WRITE
from hopforge.model.network.core.layouts import NOTE, NOTE_RECORD, PACKET_RECORD
from hopforge.model.network.core.net_record import NET_RECORD, Net
from hopforge.model.network.core.records import input_port, input_vc, note_at, packet_at
from hopforge.model.network.core.state import NetState
from hopforge.model.network.core.user_code import is_ours

#: ``report(router, in_port, packet, elapsed, net, table, memory, note) -> 1 to send the note, 0 not to``
REPORT_SIGNATURE = int64(
    int64,
    int64,
    PACKET_RECORD,
    int64,
    NET_RECORD,
    types.CPointer(int32),
    types.CPointer(float64),
    NOTE_RECORD,
)
#: ``learn(router, out_port, out_vc, note, net, table, memory) -> 0``
LEARN_SIGNATURE = int64(int64, int64, int64, NOTE_RECORD, NET_RECORD, types.CPointer(int32), types.CPointer(float64))


@dataclass(frozen=True)
class Feedback:
    """The two functions of a learning algorithm, made by `reporter` and `learner`.

    Attributes
    ----------
    report : C function
        ``report(router, in_port, packet, elapsed, net, table, memory, note) -> 1 or 0``, called at a router when the
        head of `packet` leaves its input buffer (not for packets that come from a host). `elapsed` is the number of
        cycles from the head's arrival at the router upstream to its arrival here. It fills in ``note.key`` (int64) and
        ``note.value`` (float64) and returns 1, or 0: no note.
    learn : C function
        ``learn(router, out_port, out_vc, note, net, table, memory) -> 0``, called at the router upstream when the note
        arrives; `out_port` and `out_vc` are those that the packet took.
    """

    report: Any
    learn: Any


class UserFeedback:
    """`report` or `learn` of a user's file.

    `model.routing.contract.guard` compiles it, or a test that uses it as it is.
    """

    def __init__(self, signature: Any, function: Callable[..., int]) -> None:
        self.py_func, self._signature = function, signature

    @cached_property
    def compiled(self) -> Any:
        """The C function, without checks."""
        return c_function(self._signature, self.py_func)

    @property
    def address(self) -> int:
        """Where its machine code begins."""
        return int(self.compiled.address)


def reporter(function: Callable[..., int]) -> Any:
    """Compile the `report` of a `Feedback` (its machine code is kept on disk)."""
    return (_of_ours if is_ours(function) else UserFeedback)(REPORT_SIGNATURE, function)


def learner(function: Callable[..., int]) -> Any:
    """Compile the `learn` of a `Feedback` (its machine code is kept on disk)."""
    return (_of_ours if is_ours(function) else UserFeedback)(LEARN_SIGNATURE, function)


#: each compiled once in a process
_of_ours = cache(c_function)


def put_feedback(state: NetState, feedback: Feedback) -> None:
    """Give a network the arrays and functions of feedback."""
    ports, wheel = int(state["routers"]) * int(state["ports"]), int(state["wheel_mask"]) + 1
    state.put("packet_times", np.zeros(2 * len(state["packet"]), np.int64))
    state.put("leaving", np.zeros(max(ports, 1), np.int64))
    state.put("note_event", np.zeros(max(wheel * ports, 1), NOTE))
    state.put("note_events", np.zeros(wheel, np.int32))
    state.put_function("report", feedback.report)
    state.put_function("learn", feedback.learn)
    state.put_function("feedback", relay)
    state.follow_pool(_grow_times)


def _grow_times(state: NetState, pool: int) -> None:
    """Follow the pool of packets, which has grown to `pool` records."""
    old = state["packet_times"]
    times = np.zeros(2 * pool, np.int64)
    times[: len(old)] = old
    state.put("packet_times", times)


_call_report, _call_learn = function_at(REPORT_SIGNATURE), function_at(LEARN_SIGNATURE)


@inner
def note_arrival(net: Net, p: int, now: int) -> None:
    """Keep the cycles in which the head of packet `p` came to this router and to the one before."""
    times = int64s(net.packet_times)
    times[2 * p + 1] = times[2 * p]
    times[2 * p] = now


@inner
def note_leaving(net: Net, n: int, p: int) -> None:
    """Keep in mind that the head of packet `p` leaves input VC `n` in this cycle."""
    if input_vc(net, n).credit_to < net.output_vcs:  # not from a host
        int64s(net.leaving)[net.leaving_count] = (int64(n) << 32) | int64(p)
        net.leaving_count += 1


@inner
def write_notes(net: Net, now: int) -> None:
    """Let the algorithm write notes about the heads that leave in this cycle, and send them upstream."""
    capacity = net.routers * net.ports
    for k in range(net.leaving_count):
        n = int64s(net.leaving)[k] >> 32
        p = int64s(net.leaving)[k] & 0xFFFFFFFF
        vc = input_vc(net, n)
        port = input_port(net, vc.port)
        slot = (now + port.credit_time) & net.wheel_mask
        place = int32s(net.note_events)[slot]
        note = note_at(net, slot * capacity + place)
        note.target = vc.credit_to
        times = int64s(net.packet_times)
        wanted = _call_report(
            net.report,
            int64(port.router),
            int64(port.port),
            packet_at(net, p),
            times[2 * p] - times[2 * p + 1],
            net,
            int32s(net.table),
            floats(net.memory),
            note,
        )
        if wanted != 0:
            int32s(net.note_events)[slot] = place + 1
    net.leaving_count = 0


@inner
def read_notes(net: Net, now: int) -> None:
    """Let the algorithm learn from the notes that arrive in cycle `now`."""
    slot = now & net.wheel_mask
    capacity = net.routers * net.ports
    for k in range(int32s(net.note_events)[slot]):
        note = note_at(net, slot * capacity + k)
        port = note.target // net.vcs
        _call_learn(
            net.learn,
            port // net.ports,
            port % net.ports,
            note.target % net.vcs,
            note,
            net,
            int32s(net.table),
            floats(net.memory),
        )
        net.notes += 1
    int32s(net.note_events)[slot] = 0


@c_kernel(HOOK_SIGNATURE)
def relay(net: Net, event: int, a: int, b: int) -> int:
    """Carry notes: the hook `feedback`."""
    if event == HEAD_IN:
        note_arrival(net, a, b)
    elif event == HEAD_OUT:
        note_leaving(net, a, b)
    elif event == WRITE:
        write_notes(net, a)
    else:
        read_notes(net, a)
    return 0
