"""`routing.decision: host`: the queues of the source's router count when the head leaves the host, seen from outside.

Every decision is checked against the credits that stand in the state at that moment.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from hopforge.model.config import ConfigError, parse_config
from hopforge.model.network.core.candidates import MASK_AT, PORT_VALUES
from hopforge.model.network.core.kinds import VA
from hopforge.model.routing import RoutingError
from hopforge.sim.run.simulation import Simulation

GRID = "topology: {kind: hyperx, sizes: [4, 3], hosts_per_router: 3}"
RUN = "simulation: {warmup_cycles: 100, min_cycles: 1000, max_cycles: 1000}"
#: parts of a packet's way in ``phase`` (model.routing.grids.line_order)
TO_VIA, FINAL = 1, 2


def run_of(algorithm: str, decision: str, vcs: int = 4, more: str = "", network: str = GRID) -> Simulation:
    text = f"name: x\n{network}\nrouting: {{algorithm: {algorithm}, decision: {decision}}}\n"
    return Simulation(parse_config(f"{text}router: {{vcs: {vcs}, buffer_flits: 4{more}}}\n{RUN}\n"), 0.8, 5)


def sent(run: Simulation, cycles: int) -> Iterator[Any]:
    """Packets at the end of the cycle in which their heads have left their hosts."""
    for _ in range(cycles):
        now = int(run.state["cycle"])
        run.advance(1)
        packets = run.state["packet"]
        yield from packets[(packets["sent"] == now) & (packets["created"] <= now) & (packets["length"] > 0)]


def used(run: Simulation, router: int, goal: int) -> int:
    """Credits in use behind the port from one router to a neighbour."""
    vcs = int(run.state["vcs"])
    port = run.topology.peer_router[router].tolist().index(goal)
    first = (router * run.topology.max_ports + port) * vcs
    outputs = run.state["output_vc"][first : first + vcs]
    return int((outputs["depth"].astype(int) - outputs["credits"].astype(int)).sum())


def first_router(a: int, b: int, descending: bool = False) -> int:
    """Next router of dimension order on the grid of 4 by 3."""
    x, y = a % 4, a // 4
    u, v = b % 4, b // 4
    along_x = (x != u) if not descending else (y == v)
    return u + 4 * y if along_x else x + 4 * v


def hops(a: int, b: int) -> int:
    return int(a % 4 != b % 4) + int(a // 4 != b // 4)


def test_the_order_is_that_of_the_shorter_queue_when_the_head_leaves() -> None:
    run = run_of("booksim_adaptive_xy_yx", "host")
    decided = {0: 0, 1: 0}
    for packet in sent(run, 400):
        a, b = (int(run.topology.host_router[packet[end]]) for end in ("src", "dst"))
        if a == b:
            assert packet["phase"] == 0
            continue
        queues = [used(run, a, first_router(a, b, way)) for way in (False, True)]
        assert packet["phase"] >> 1 == FINAL
        if queues[0] != queues[1]:
            assert packet["phase"] & 1 == int(queues[1] < queues[0])
            decided[int(packet["phase"]) & 1] += 1
    assert min(decided.values()) > 100


@pytest.mark.parametrize("more", ["", ", va: wavefront"])
def test_a_detour_is_shorter_by_the_queues_of_that_moment(more: str) -> None:
    run = run_of("booksim_ugal", "host", more=more)
    detours, direct = 0, 0
    for packet in sent(run, 500):
        a, b = (int(run.topology.host_router[packet[end]]) for end in ("src", "dst"))
        if a == b:
            continue
        via = int(packet["via"])
        straight = hops(a, b) * used(run, a, first_router(a, b))
        if packet["phase"] >> 1 == TO_VIA:
            detours += 1
            assert straight > (hops(a, via) + hops(via, b)) * used(run, a, first_router(a, via)) + 2
        else:
            direct += 1
    assert min(detours, direct) > 50


def test_the_polarfly_rule_by_two_thirds_of_a_buffer() -> None:
    """From ``ugall4_pf`` of PolarFly's BookSim: neighbours in increasing order, the first of the least used."""
    run = run_of("booksim_ugal_pf_by_hop", "host", network="topology: {kind: polarfly, q: 3, hosts_per_router: 3}")
    peers = [sorted({int(p) for p in row if p >= 0}) for row in run.topology.peer_router]
    seen = {"minimal": 0, "least used is minimal": 0, "over a neighbour": 0, "behind a neighbour": 0}
    for packet in sent(run, 800):
        a, b = (int(run.topology.host_router[packet[end]]) for end in ("src", "dst"))
        if a == b:
            assert packet["phase"] == 0
            continue
        straight = b if b in peers[a] else next(n for n in peers[a] if b in peers[n])
        best = min(peers[a], key=lambda n: used(run, a, n))
        if 3 * used(run, a, straight) < 2 * 4:
            case = "minimal"
        elif best == straight:
            case = "least used is minimal"
        elif b in peers[a]:
            case = "behind a neighbour"
            assert int(packet["via"]) in set(peers[best]) - {a, b}
        else:
            case = "over a neighbour"
            assert packet["via"] == best
        assert packet["phase"] == (FINAL if "minimal" in case else TO_VIA)
        seen[case] += 1
    assert min(seen.values()) > 10, seen


def test_the_polarfly_rule_begins_on_the_least_used_channel() -> None:
    """With any VC: that of the first link, as it stood one cycle before the packet waits for it."""
    run = run_of("booksim_ugal_pf, check: false", "router", network="topology: {kind: polarfly, q: 3}")
    vcs, ports = int(run.state["vcs"]), run.topology.max_ports
    most, taken = run.plan.max_candidates, []
    for _ in range(300):
        before, idle = run.state["output_vc"]["credits"].copy(), run.state["input_vc"]["state"] != VA
        sent_before = run.state["output_port"]["flits"].copy()
        run.advance(1)
        credits, states = run.state["output_vc"]["credits"], run.state["input_vc"]["state"]
        still = run.state["output_port"]["flits"] == sent_before
        for place in np.flatnonzero((states == VA) & idle).tolist():
            router, port = divmod(place // vcs, ports)
            answer = int(run.state["candidate"].reshape(-1)[place * most])
            out = router * ports + answer % PORT_VALUES
            of_port = slice(out * vcs, (out + 1) * vcs)
            unchanged = still[out] and (before[of_port] == credits[of_port]).all()
            if run.topology.peer_router[router, port] < 0 and unchanged:
                assert (answer >> MASK_AT & 65535) == 1 << int(np.argmax(before[of_port]))
                taken.append(answer >> MASK_AT & 65535)
    assert set(taken) == {1, 2, 4, 8}


def test_by_default_nothing_is_decided_at_the_host() -> None:
    run = run_of("booksim_ugal", "router")
    packets = list(sent(run, 50))
    assert len(packets) > 50
    assert {int(one["phase"]) for one in packets} == {0}


@pytest.mark.parametrize("algorithm", ["ugal", "ugal_global", "booksim_ugal_four_by_hop"])
def test_others_decide_and_deliver(algorithm: str) -> None:
    run = run_of(algorithm, "host", vcs=6)
    phases = {int(one["phase"]) for one in sent(run, 300)}
    assert len(phases) >= 2
    run.check_conservation()
    assert (run.state["host"]["flits_received"] > 0).all()


@pytest.mark.parametrize(("routing", "more", "said"), [
    ("dor, decision: host", "", r"routing\.decision: host is for ugal, .* only, not algorithm=dor"),
    ("valiant, decision: host", "", r"routing\.decision: host is for ugal, .* only, not algorithm=valiant"),
    ("ugal, decision: host", "router: {vcs: 4, model: input_output_queued}",
     r"routing\.decision: host is for router\.model: input_queued without replies, not router\.model: input_output_q"),
    ("ugal, decision: host", "router: {vcs: 8}\ntraffic: {reply: {}}", "without replies, not traffic.reply"),
])  # fmt: skip
def test_where_it_makes_no_sense_it_is_refused(routing: str, more: str, said: str) -> None:
    with pytest.raises((ConfigError, RoutingError), match=said):
        Simulation(parse_config(f"name: x\n{GRID}\nrouting: {{algorithm: {routing}}}\n{more}\n{RUN}\n"), 0.1, 1)


@pytest.mark.parametrize("traffic, limit", [
    ("reply: {vcs: own}", "traffic.reply.vcs must be shared"),
    ("acknowledge: {vcs: own}", "traffic.acknowledge.vcs must be shared"),
    ("classes: [{name: a, share: 0.5, vcs: 2}, {name: b, share: 0.5, vcs: 2}]",
     "traffic.classes.vcs must not be given"),
])  # fmt: skip
def test_the_least_used_of_all_channels_takes_no_classes_of_channels(traffic: str, limit: str) -> None:
    """It could name one of another class: the packet would wait for ever, or go there."""
    polarfly = f"topology: {{kind: polarfly, q: 3}}\ntraffic: {{{traffic}}}"
    with pytest.raises(RoutingError, match=f"{limit} with routing.algorithm booksim_ugal_pf, which compares"):
        run_of("booksim_ugal_pf, check: false", "router", network=polarfly)
    if "vcs: 2" in traffic:  # the diameter needs four channels a class
        return
    assert run_of("booksim_ugal_pf_by_hop", "router", vcs=8, network=polarfly).proof
