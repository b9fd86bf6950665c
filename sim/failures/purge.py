"""Take packets out of a running network: their flits vanish, the buffers they stood in are credited.

All functions work between two cycles of the kernel, on the arrays of a `NetState` (`model.network.core.layouts`), and
leave them as the kernel would: masks, lists of the next cycle and wheels of events agree with the buffers.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.network.core.kinds import ACTIVE, DRAIN, HOST_VC_BITS, HOST_VC_MASK, IDLE, PROGRAM, RC, VA
from hopforge.model.network.core.loads_ahead import CHUNK
from hopforge.model.network.core.state import NetState
from hopforge.model.network.parts.spraying import tell_lost
from hopforge.sim.failures.acknowledges import lose_acknowledges, sent_by_service_hosts

Bools = NDArray[np.bool_]
Numbers = NDArray[np.int64]


def buffered_flits(state: NetState) -> tuple[Numbers, Numbers]:
    """Flits in buffers: input VC and flit (packet << 2 | kind) of each, the first of a buffer first."""
    vcs, depth = state["input_vc"], int(state["buffer"])
    count = vcs["flits"].astype(np.int64)
    number = np.repeat(np.arange(len(vcs)), count)
    place = np.arange(len(number)) - np.repeat(np.cumsum(count) - count, count)
    slot = (vcs["head"].astype(np.int64)[number] + place) % depth
    return number, state["fifo"][number, slot].astype(np.int64)


def flying_flits(state: NetState) -> tuple[Numbers, Numbers, Numbers]:
    """Flits on links: input VC (or input_vcs + host VC) at the other end, flit, cycles until it is there."""
    mask, capacity, now = int(state["wheel_mask"]), int(state["event_capacity"]), int(state["cycle"])
    count = state["flit_events"].astype(np.int64)
    slot = np.repeat(np.arange(len(count)), count)
    place = np.arange(len(slot)) - np.repeat(np.cumsum(count) - count, count)
    event = state["flit_event"][slot * capacity + place]
    return event >> 32, event & 0xFFFFFFFF, (slot - now) & mask


def current_packets(state: NetState) -> NDArray[np.int64]:
    """Packet that each input VC is serving: int64[input VC]; −1 where the VC is IDLE.

    A VC whose buffer has run empty in the middle of a packet serves the one whose next flit comes over its link, or
    stands further upstream, or is still in its host.
    """
    vcs, outs, host = state["input_vc"], state["output_vc"], state["host"]
    outputs, of_service = len(outs), sent_by_service_hosts(state)
    serving = np.full(len(vcs), -1, np.int64)
    number, flit = buffered_flits(state)
    first = np.concatenate([[True], number[1:] != number[:-1]]) if len(number) else np.zeros(0, bool)
    front = np.full(len(vcs), -1, np.int64)
    front[number[first]] = flit[first] >> 2
    target, on_link, due = flying_flits(state)
    order = np.argsort(due, kind="stable")[::-1]  # the nearest last, so that it stays
    inside = target[order] < len(vcs)
    coming = np.full(len(vcs), -1, np.int64)
    coming[target[order][inside]] = on_link[order][inside] >> 2
    for n in np.flatnonzero(vcs["state"] != IDLE).tolist():
        at = n
        while True:
            if front[at] >= 0:
                serving[n] = front[at]
                break
            if coming[at] >= 0:
                serving[n] = coming[at]
                break
            upstream = int(vcs["credit_to"][at])
            if upstream >= outputs:
                h = upstream - outputs >> HOST_VC_BITS
                serving[n] = max(int(host["packet"][h]), int(of_service[h]))
                break
            at = int(outs["owner"][upstream])
            assert at >= 0, "a packet that is under way has no end"
    return serving


def _credit(state: NetState, target: Numbers) -> None:
    """Credit removed flits at the output VCs (or output_vcs + host VC) that had sent them.

    With ``vc_release: credits`` the last credit of a packet whose tail was sent frees its VC.
    """
    outs, host = state["output_vc"], state["host"]
    inside = target < len(outs)
    np.add.at(outs["credits"], target[inside], 1)
    np.add.at(state["host_credits"], target[~inside] - len(outs), 1)
    for m in np.unique(target[inside]).tolist():
        if outs["tail_sent"][m] and outs["credits"][m] == outs["depth"][m]:
            free_output(state, m)
    for slot in np.unique(target[~inside] - len(outs)).tolist():
        h = slot >> HOST_VC_BITS
        if state["host_tail_sent"][slot] and state["host_credits"][slot] == host["depth"][h]:
            state["host_tail_sent"][slot] = 0
            free_host_vc(state, h, slot & HOST_VC_MASK)


def credit_targets(state: NetState, target: Numbers) -> Numbers:
    """Where the credit of a flit belongs that stands in (or comes to) an input VC, or comes to input_vcs + host VC."""
    vcs = state["input_vc"]
    inside = target < len(vcs)
    back = np.empty(len(target), np.int64)
    back[inside] = vcs["credit_to"][target[inside]]
    code = target[~inside] - len(vcs)
    back[~inside] = state["host"]["output_vc"][code >> HOST_VC_BITS] + (code & HOST_VC_MASK)
    return back


def _filter_wheel(state: NetState, list_name: str, count_name: str, keep: Any) -> None:
    """Keep the events of a wheel for which `keep(entries)` is true, in their order."""
    capacity, events, counts = int(state["event_capacity"]), state[list_name], state[count_name]
    for slot in np.flatnonzero(counts).tolist():
        entries = events[slot * capacity : slot * capacity + int(counts[slot])]
        left = entries[keep(entries)]
        events[slot * capacity : slot * capacity + len(left)] = left
        counts[slot] = len(left)


def free_output(state: NetState, m: int) -> None:
    """Free output VC `m` of a packet that is no more: at once, or (vc_release: credits) when all credits are back."""
    out, port = state["output_vc"], state["output_port"]
    if state["release_credits"] and out["credits"][m] < out["depth"][m]:
        out["tail_sent"][m] = 1
        return
    out["owner"][m], out["tail_sent"][m] = -1, 0
    port["free_mask"][m // int(state["vcs"])] |= np.uint32(1 << int(out["vc"][m]))


def forget_released(state: NetState, ports: Bools) -> None:
    """Keep output VCs of `ports` taken that would be free in the next cycle (va: free_queue)."""
    released = state["released"][: int(state["released_count"])]
    left = released[~ports[released >> HOST_VC_BITS]]
    state["released"][: len(left)] = left
    state.record["released_count"] = len(left)


def free_host_vc(state: NetState, h: int, vc: int) -> None:
    """As `free_output` for a VC of the channel from host `h` to its router."""
    host, slot = state["host"], (h << HOST_VC_BITS) + vc
    if state["release_credits"] and state["host_credits"][slot] < host["depth"][h]:
        state["host_tail_sent"][slot] = 1
        return
    host["free_mask"][h] |= np.uint32(1 << vc)


def remove_packets(state: NetState, gone: Bools) -> int:
    """Take packets out of buffers, links and sending hosts; returns the number of flits that were there.

    Parameters
    ----------
    state : NetState
        Between two cycles.
    gone : ndarray, bool[pool]
        Packets to remove. Their records become free.
    """
    vcs, host = state["input_vc"], state["host"]
    V, P = int(state["vcs"]), int(state["ports"])
    serving = current_packets(state)
    stopped = np.flatnonzero((serving >= 0) & gone[np.maximum(serving, 0)])
    number, flit = buffered_flits(state)
    out_of_buffer = gone[flit >> 2]
    target, on_link, _ = flying_flits(state)
    off_link = gone[on_link >> 2]
    routing = np.unique(stopped[_looked_up(state)[stopped]] // V)
    # credits first: whether an output VC is free depends on them
    _credit(state, credit_targets(state, number[out_of_buffer]))
    _credit(state, credit_targets(state, target[off_link]))
    _filter_wheel(state, "flit_event", "flit_events", lambda events: ~gone[(events & 0xFFFFFFFF) >> 2])
    for n in np.unique(number[out_of_buffer]).tolist():
        left = flit[(number == n) & ~out_of_buffer]
        state["fifo"][n, : len(left)] = left
        vcs["head"][n], vcs["flits"][n] = 0, len(left)
    for n in stopped.tolist():
        if vcs["state"][n] == ACTIVE:
            free_output(state, int(vcs["out_vc"][n]))
        elif vcs["state"][n] == DRAIN:
            port = int(vcs["port"][n])
            state["input_port"]["drain_mask"][port] &= ~np.uint32(1 << n % V)
            if state["input_port"]["drain_mask"][port] == 0:
                state["router"]["drain_ports"][port // P] -= 1
        vcs["state"][n] = IDLE
    for h in np.flatnonzero(host["packet"] >= 0).tolist():
        if not gone[host["packet"][h]]:
            continue
        if host["sent"][h] > 0:
            free_host_vc(state, h, int(host["vc"][h]))
        host["packet"][h] = -1
        state["host_wake"][h] = state["cycle"]
    for h, vc in lose_acknowledges(state, gone):
        free_host_vc(state, h, vc)
    if state.agents is not None:
        state.record["undecided"] -= state.agents.forget(gone)
    waits = np.zeros(len(vcs), bool)
    waits[stopped] = True
    _filter_wheel(state, "ready_event", "ready_events", lambda events: ~waits[events])
    if state.lookup is not None:
        for engine in np.unique(state.lookup.arrays["engine_of"][routing]).tolist():
            restart_engine(state, engine)
    free_records(state, np.flatnonzero(gone))
    refresh(state)
    return int(out_of_buffer.sum() + off_link.sum())


def free_records(state: NetState, packets: Numbers) -> None:
    """Return the records of packets that are no more to the pool; their messages are lost."""
    count_lost_hops(state, packets[state["packet"]["dst"][packets] < int(state["hosts"])])
    if "spray" in state.arrays:
        for p in packets.tolist():
            tell_lost(state.record[0], p, int(state["cycle"]))
    elif state["messages"] and state["source_kind"] != PROGRAM:  # of those: `program_messages.LostMessages`
        for p in packets.tolist():
            _lose_message(state, p)
    free = int(state["free_packets"])
    state["free_packet"][free : free + len(packets)] = packets
    state.record["free_packets"] = free + len(packets)


def count_lost_hops(state: NetState, packets: Numbers) -> None:
    """Count the routers that packets have visited, which are lost or begin their way anew."""
    state.record["lost_hops"] += int(state["packet"]["hops"][packets].sum())


def _lose_message(state: NetState, packet: int) -> None:
    """Note that a packet of a message is lost, as the hook of `model.network.parts.messages` does."""
    m = int(state["packet_message"][packet])
    message = state["message"]
    message["lost"][m] = 1
    message["left"][m] -= 1
    if message["left"][m] == 0:
        free = int(state["free_messages"])
        state["free_message"][free] = m
        state.record["free_messages"] = free + 1


def _looked_up(state: NetState) -> Bools:
    """Return the input VCs in RC in this cycle: those whose answer has come are in VA, or drain, from it on."""
    found = np.asarray(state["input_vc"]["state"] == RC)
    slot = int(state["cycle"]) & int(state["wheel_mask"])
    first = slot * int(state["event_capacity"])
    found[state["ready_event"][first : first + int(state["ready_events"][slot])]] = False
    return found


def restart_engine(state: NetState, number: int) -> None:
    """Let the VCs in RC of the input ports of an engine ask it anew; what was under way in it is dropped."""
    assert state.lookup is not None
    arrays = state.lookup.arrays
    V, engine = int(state["vcs"]), arrays["engine"]
    first = int(engine["first_vc"][number])
    ports = np.count_nonzero(arrays["engine_of"] == number)
    routing = np.flatnonzero(_looked_up(state)[first : first + ports * V])
    state.lookup.give_up(number)
    engine["asking"][number] = sum(1 << int(v) for v in routing)
    ends = routing + first
    _filter_wheel(state, "ready_event", "ready_events", lambda events: ~np.isin(events, ends))
    if len(routing):
        arrays["active"][number >> 6] |= np.uint64(1) << np.uint64(number & 63)


def refresh(state: NetState) -> None:
    """Make the masks and lists that the kernel keeps of its VCs anew from their states."""
    vcs, outs = state["input_vc"], state["output_vc"]
    V, P, R = int(state["vcs"]), int(state["ports"]), int(state["routers"])
    served = np.where(vcs["state"] == ACTIVE, vcs["out_vc"], 0)
    switching = (vcs["state"] == ACTIVE) & (vcs["flits"] > 0) & (outs["credits"][served] > 0)
    asks = np.zeros((R, P, P * V), bool)
    vc = np.flatnonzero(switching)
    asks[vc // (P * V), served[vc] // V % P, vc % (P * V)] = True
    words = int(state["vc_words"])
    state["switching"][:] = _words(asks.reshape(R * P, P * V), words).reshape(-1)
    draining = state["router"]["drain_ports"] != 0
    for name, mask in (("draining", draining), ("asking", asks.any(axis=2))):
        state[name][:] = _words(mask.reshape(1, -1), len(state[name])).reshape(-1)
    refresh_heads(state)
    heads = np.flatnonzero((vcs["state"] == IDLE) & (vcs["flits"] > 0)).astype(np.int32)
    most = len(heads) + CHUNK + 1  # with those that come in the next cycle
    if most > len(state["heads_next"]):
        state.put("heads_next", np.zeros(most, np.int32))
    state["heads_next"][: len(heads)] = heads
    state.record["heads_count"] = len(heads)


def refresh_heads(state: NetState) -> None:
    """Make the masks of VCs in VA anew from their states and candidates."""
    vcs, R, P = state["input_vc"], int(state["routers"]), int(state["ports"])
    V, words = int(state["vcs"]), int(state["vc_words"])
    waiting = vcs["state"] == VA
    if state["vc_lists"]:
        state["waiting"][:] = _words(waiting.reshape(R, P * V), words).reshape(-1)
        busy = waiting.reshape(R, -1).any(axis=1)
        state["active"][:] = _words(busy.reshape(1, -1), len(state["active"])).reshape(-1)
        return
    n = np.flatnonzero(waiting)
    asks = np.zeros((R * P, P * V), bool)
    asks[n // (P * V) * P + vcs["out_port"][n], n % (P * V)] = True
    state["heads_at"][:] = _words(asks, 1).reshape(-1)
    state["wanted"][:] = _words(asks.any(axis=1).reshape(1, -1), len(state["wanted"])).reshape(-1)


def _words(bits: NDArray[np.bool_], count: int) -> NDArray[np.uint64]:
    """Pack rows of bits, the lowest first, into `count` words of 64 each."""
    padded = np.zeros((len(bits), 64 * count), np.bool_)
    padded[:, : bits.shape[1]] = bits
    return np.packbits(padded, axis=1, bitorder="little").view(np.uint64)
