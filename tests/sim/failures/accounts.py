"""A network through failures: flits, records of packets and credits, counted one by one."""

from collections import Counter

import numpy as np

from hopforge.model.network.core.kinds import HEAD, HOST_VC_BITS, TAIL
from hopforge.sim.failures.purge import buffered_flits, credit_targets, flying_flits
from hopforge.sim.run.simulation import Simulation


def waiting(run: Simulation) -> list[int]:
    """Acknowledges that wait or are being sent; the places that they take are those that the tables count."""
    state = run.state
    if not state["acks"]:
        return []
    found, kept, own = [], Counter[int](), Counter[int]()
    for router in range(run.topology.routers):
        replier = state["replier"][run.topology.hosts + router]
        queue, p = [], int(replier["first"])
        while p >= 0:
            queue.append(p)
            p = int(state["packet"]["via"][p])
        assert (queue[-1] if queue else -1) == replier["last"]
        for q in [*queue, int(replier["packet"])]:
            if q >= 0:
                (kept if state["trail"]["kept"][q] else own)[router] += 1
                found.append(q)
        assert (kept[router], own[router]) == (state["trail_waiting"][router], state["trail_own"][router])
    flits = [*(buffered_flits(state)[1] >> 2).tolist(), *(flying_flits(state)[1] >> 2).tolist()]
    alive = {*found, *(p for p in flits if state["packet"]["dst"][p] >= run.topology.hosts)}
    assert int(state["acks_alive"]) == len(alive)
    return found


def check_state(run: Simulation) -> None:
    """Flits, packet records and credits are all accounted for, from their definitions."""
    run.check_conservation()
    state, failures = run.state, run.reconfiguration
    assert failures is not None
    number, flit = buffered_flits(state)
    target, flying, _ = flying_flits(state)
    packets = [*(flit >> 2).tolist(), *(flying >> 2).tolist()]
    host = state["host"]["packet"]
    acknowledges = waiting(run)
    held = [p for kept in failures.network.resend.values() for p in kept]
    inside = {*packets, *host[host >= 0].tolist(), *failures.network.aside, *acknowledges}
    assert not inside & set(held)
    free = state["free_packet"][: int(state["free_packets"])].tolist()
    assert sorted([*free, *inside, *held]) == list(range(len(state["packet"])))
    # every credit is at its output VC, on its way back, or stands for a flit
    outs, vcs = state["output_vc"], state["input_vc"]
    total = outs["credits"].astype(np.int64)
    capacity = int(state["event_capacity"])
    for slot, count in enumerate(state["credit_events"].tolist()):
        event = state["credit_event"][slot * capacity : slot * capacity + count]
        np.add.at(total, event[event < len(outs)], 1)
    back = credit_targets(state, target)
    np.add.at(total, back[back < len(outs)], 1)
    between = (vcs["credit_to"] >= 0) & (vcs["credit_to"] < len(outs))
    np.add.at(total, vcs["credit_to"][between], vcs["flits"][between].astype(np.int64))
    # a VC whose tail is sent and whose credits are all back is free (vc_release: credits)
    assert not ((outs["tail_sent"] != 0) & (outs["credits"] == outs["depth"])).any()
    depth = np.repeat(state["host"]["depth"], 1 << HOST_VC_BITS)
    assert not ((state["host_tail_sent"] != 0) & (state["host_credits"] == depth)).any()
    assert (total == outs["depth"])[np.repeat(state["output_port"]["connected"], int(state["vcs"])) == 1].all()
    # a packet stands in a buffer in one piece: heads begin, tails end
    same = number[1:] == number[:-1]
    after = same & ((flit[:-1] & TAIL) == 0)
    assert (flit[1:][after] >> 2 == flit[:-1][after] >> 2).all()
    assert ((flit[1:][same & ((flit[:-1] & TAIL) != 0)] & HEAD) != 0).all()
    # no output VC of a failed port is free, nor will be
    begun = [epoch for epoch in failures.epochs if epoch.cycle < int(state["cycle"])]
    if begun:
        failed = begun[-1].ports.reshape(-1)
        assert not state["output_port"]["free_mask"][failed].any()
        released = state["released"][: int(state["released_count"])]
        assert not failed[released >> HOST_VC_BITS].any()
