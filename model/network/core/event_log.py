"""The log of a run: what happened to every flit in every cycle (tests, `hopforge trace`, co-simulation)."""


import numpy as np
from numba import int64

from hopforge.model.kernel.compile import c_kernel, inner
from hopforge.model.kernel.memory import function_at, int64s
from hopforge.model.network.core.kinds import GRANTED, HEAD, TAIL
from hopforge.model.network.core.net_record import NET_RECORD, Net
from hopforge.model.network.core.records import output_vc, packet_at
from hopforge.model.network.core.state import NetState

LOG_SIGNATURE = int64(NET_RECORD, int64, int64, int64, int64, int64)
#: ``(address, net, kind, cycle, source, target, flit)``: append an event to the log
call_log = function_at(LOG_SIGNATURE)


def put_log(state: NetState, capacity: int) -> None:
    """Let a network note its next `capacity` events in the array ``log``: int64[capacity, 6], flat.

    Columns: cycle, kind (`kinds.GRANTED` ...), input VC or host, output VC or VC, source and number of the packet,
    flit kind.
    """
    state.put_function("log_event", log_event)
    state.record["log_capacity"] = capacity
    state.put("log", np.zeros(6 * capacity, np.int64))


def note_event(state: NetState, kind: int, source: int, target: int, packet: int) -> None:
    """Append an event of a packet of one flit between two cycles, if there is a log."""
    row = int(state["log_length"])
    if not state["log_event"] or row >= int(state["log_capacity"]):
        return
    sent = state["packet"][packet]
    code = (int(sent["src"]) << 40) | int(sent["number"])
    state["log"].reshape(-1, 6)[row] = int(state["cycle"]), kind, source, target, code, HEAD | TAIL
    state.record["log_length"] = row + 1


@inner
def note_head(net: Net, kind: int, target: int, flit: int) -> None:
    """List a head that the switch sends to another router, which it is to be routed in (`arrivals.decide_ahead`)."""
    if kind == GRANTED and flit & HEAD != 0 and output_vc(net, target).target < net.input_vcs:
        int64s(net.heads_sent)[net.heads_sent_count] = (int64(output_vc(net, target).target) << 32) | (flit >> 2)
        net.heads_sent_count += 1


@c_kernel(LOG_SIGNATURE)
def note_next_router(net: Net, kind: int, now: int, source: int, target: int, flit: int) -> int:
    """In place of a log where packets decide a router ahead."""
    note_head(net, kind, target, flit)
    return 0


@c_kernel(LOG_SIGNATURE)
def log_event(net: Net, kind: int, now: int, source: int, target: int, flit: int) -> int:
    """Append an event; nothing if the log is full."""
    if net.decides_ahead != 0:
        note_head(net, kind, target, flit)
    row = net.log_length
    if row >= net.log_capacity:
        return 0
    packet = packet_at(net, flit >> 2)
    log = int64s(net.log)
    log[6 * row + 0] = now
    log[6 * row + 1] = kind
    log[6 * row + 2] = source
    log[6 * row + 3] = target
    log[6 * row + 4] = (int64(packet.src) << 40) | packet.number
    log[6 * row + 5] = flit & 3
    net.log_length = row + 1
    return 0
