"""Failures in networks with agents: masked actions, an escape that is proved, lost acknowledges, emptied tables."""

import sys
from collections import deque
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hopforge.model.config import Config, parse_config
from hopforge.model.dqn.agents import STORED, TRAININGS
from hopforge.model.network.core.event_log import put_log
from hopforge.model.network.core.kinds import GRANTED, HEAD
from hopforge.model.network.parts.trail_tables import trail_counts
from hopforge.model.routing.agents.around import escape_ports, ways_around
from hopforge.model.routing.contract.fields_read import fields_read
from hopforge.model.routing.proof.deadlock import DeadlockError, check_routing
from hopforge.model.routing.proof.reachable import Exploration
from hopforge.model.topology import Topology
from hopforge.model.topology.failed import FailureError
from hopforge.sim.run.simulation import Simulation

sys.path.insert(0, str(Path(__file__).parent))
from accounts import check_state

LINKS = "{cycle: 700, links: [[0, 1], [5, 6]], detection_cycles: 100, reprogram_cycles: 100, repair_cycles: 900}"
SWITCH = "{cycle: 700, switches: [5], detection_cycles: 100, reprogram_cycles: 100, repair_cycles: 900}"
TORUS, MESH, DRAGONFLY = "torus, radices: [4, 4]", "mesh, radices: [4, 3]", "dragonfly, p: 1, a: 3, h: 1"
SMALL = "first: 6, second: 5, head: 4, learning_starts: 20, replay: 64, batch: 4"


def configured(
    kind: str = TORUS, failures: str = LINKS, dqn: str = "", acknowledge: str = "flits: 1", more: str = "",
    routing: str = "",
) -> Config:  # fmt: skip
    routing = routing or f"algorithm: dqn, ties: random, dqn: {{{SMALL}{dqn}}}"
    return parse_config(
        f"name: test\ntopology: {{kind: {kind}}}\nrouting: {{{routing}}}\n"
        f"router: {{vcs: 3, buffer_flits: 20, switching: vct, link_latency_cycles: 3}}\n"
        f"traffic: {{include_self: false, packet_range: [2, 9], acknowledge: {{{acknowledge}}}}}\n"
        f"simulation: {{warmup_cycles: 500, max_cycles: 3000, failures: [{failures}]}}\n{more}"
    )


@pytest.mark.parametrize(
    ("kind", "failures", "dqn", "acknowledge"),
    [
        (TORUS, LINKS, "", "flits: 1"), (TORUS, SWITCH, ", escape: hop, ways: minimal", "flits: 3, vcs: shared"),
        (MESH, SWITCH, ", decision_cycles: 25, decision_interval: 3, decision_queue: 3", "flits: 1, queue: 2"),
        (DRAGONFLY, LINKS.replace("[5, 6]", "[3, 4]"), ", bootstrap: next_router", "flits: 2, own_queue: 1"),
        (TORUS, SWITCH, "none", "flits: 3"),
    ],
)  # fmt: skip
def test_everything_is_accounted_for(kind: str, failures: str, dqn: str, acknowledge: str) -> None:
    """Packets, acknowledges, entries and episodes add up in every cycle that is looked at, and in the end."""
    routing = "algorithm: shortest_escape" if dqn == "none" else ""
    run = Simulation(configured(kind, failures, dqn, acknowledge, routing=routing), 0.4 if routing else 0.25, 1)
    state = run.state
    for _ in range(90):
        run.advance(30)
        check_state(run)
    state.senders["next_time"][:] = 1 << 62
    for _ in range(40):
        run.advance(100)
        state.senders["next_time"][state.senders["packet"] < 0] = 1 << 62
    check_state(run)
    assert run.reconfiguration is not None
    failed, repaired = run.reconfiguration.records
    assert failed.packets_lost > 0 and failed.packets_set_aside > 0 and failed.acknowledges_lost > 0
    assert failed.stopped_cycle == 800 < failed.empty_cycle <= failed.reprogrammed_cycle < 1600
    assert repaired.reprogrammed_cycle > 0 == repaired.packets_lost == repaired.acknowledges_lost
    counts, fill = trail_counts(state), int(state["trail_fill"].sum())
    assert state.flits_in_flight == state["acks_alive"] == state["undecided"] == 0
    assert int(state["packets_created"]) == counts["delivered"] + int(state["packets_dropped"]) + failed.packets_unsent
    assert counts["acks_lost"] == failed.acknowledges_lost
    lost = counts["acks_lost"] + counts["acks_no_entry"] + counts["acks_queue_full"]
    assert counts["acks_made"] == counts["acks_home"] + lost
    popped = counts["acks_sent"] - counts["acks_made"] + counts["acks_home"]
    assert counts["entries"] == popped + counts["flushed_entries"] + fill
    assert counts["flushed_entries"] > 0
    if dqn == "none":
        return
    agents = run.state.agents.agents
    told = int(agents.counts[:, STORED].sum()) if "bootstrap" in dqn else counts["rewards"]
    assert counts["episodes"] == told + counts["flushed_episodes"] + int(state["trail_active"].sum())
    assert counts["flushed_episodes"] > 0
    assert agents.counts[:, TRAININGS].min() > 20


def levels(topology: Topology, root: int) -> list[int]:
    """Hops from a router; -1: there is no way."""
    found, queue = [-1] * topology.routers, deque([root])
    found[root] = 0
    while queue:
        here = queue.popleft()
        for there in topology.peer_router[here].tolist():
            if there >= 0 and found[there] < 0:
                found[there] = found[here] + 1
                queue.append(there)
    return found


FAILED = [
    (TORUS, "links: [[0, 1], [5, 6], [2, 14]], switches: [11]"), (MESH, "switches: [0, 4]"),
    (DRAGONFLY, "links: [[0, 1], [3, 4]], ports: [[2, 3]]"),
    ("torus, radices: [3, 2, 2], hosts_per_router: 2", "links: [[0, 1]]"),
]  # fmt: skip


def damaged(kind: str, failed: str, dqn: str = "") -> Simulation:
    config = configured(kind, "", dqn, more=f"failed: {{{failed}}}\n")
    return Simulation(config, 0.3, 1)


@pytest.mark.parametrize(("kind", "failed"), FAILED)
def test_escape_goes_up_then_down(kind: str, failed: str) -> None:
    """From every router to every other one: up, then down as soon as there is a way down; hops and masks of ways."""
    topology = damaged(kind, failed).topology
    ports, hosts = escape_ports(topology), int(topology.host_port.max()) + 1
    actions = topology.max_ports - 1 - hosts  # the last port is that of service
    ways = ways_around(topology, hosts, actions, swapped=kind != DRAGONFLY)
    every = [levels(topology, router) for router in range(topology.routers)]
    left = [r for r in range(topology.routers) if (topology.peer_router[r] >= 0).any()]
    root = min(left, key=lambda r: (max(every[r]), sum(h for h in every[r] if h >= 0), r))
    rank = [(every[root][r], r) for r in range(topology.routers)]
    below = {r: {r} for r in left}
    for r in sorted(left, key=lambda r: rank[r], reverse=True):
        for peer in topology.peer_router[r].tolist():
            if peer >= 0 and rank[peer] > rank[r]:
                below[r] |= below[peer]
    went_up = 0
    for here in left:
        for goal in left:
            at, steps = here, []
            while at != goal:
                there = int(topology.peer_router[at, ports[at, goal]])
                assert there >= 0 and len(steps) < topology.routers
                steps.append(rank[there] > rank[at])
                assert steps[-1] == (goal in below[at])
                at = there
            assert steps == sorted(steps), "up, then down"
            went_up += not all(steps)
            assert ways.hops[here, goal] == every[here][goal]
            for action in range(actions):
                peer = int(topology.peer_router[here, hosts + (action if kind == DRAGONFLY else action ^ 1)])
                nearer = peer >= 0 and every[peer][goal] < every[here][goal]
                assert int(ways.nearer[here, goal]) >> action & 1 == nearer
    gone = [r for r in range(topology.routers) if r not in left]
    assert (ports[gone] == -1).all() and (ports[:, gone] == -1).all() and (ways.hops[left][:, gone] == -1).all()
    assert went_up > len(left)


@pytest.mark.parametrize(("kind", "failed"), FAILED)
@pytest.mark.parametrize("dqn", ["", ", escape: hop"])
def test_escape_is_proved_and_runs_follow_it(kind: str, failed: str, dqn: str) -> None:
    run = damaged(kind, failed, dqn)
    plan, topology = run.plan, run.topology
    alive = (topology.peer_router >= 0).any(axis=1)[topology.host_router]
    assert check_routing(topology, plan, run.state, "dqn", alive) > 100
    declared = Exploration(
        plan, plan.every, run.state, fields_read(plan.every), np.flatnonzero(alive).tolist(), np.ones(1, np.int64)
    )
    assert declared.walk() is None
    allowed = set(zip(*(part.tolist() for part in declared.edges()), strict=True))
    put_log(run.state, 1 << 19)
    run.advance(1500)
    run.check_conservation()
    found, last = set(), dict[int, int]()
    log = run.state["log"].reshape(-1, 6)[: int(run.state["log_length"])]
    for _, event, _, target, packet, flit in log.tolist():
        if event == GRANTED and flit & HEAD and packet >> 40 < topology.hosts:
            router, port = divmod(target // 3, int(run.state["ports"]))
            if topology.host_at[router, port] < 0:
                assert topology.peer_router[router, port] >= 0, "no action leads over a failed link"
                if packet in last:
                    found.add((last[packet], target))
            last[packet] = target
    assert len(found) > 50
    assert found <= allowed


def test_an_escape_of_shortest_ways_is_refused() -> None:
    """Shortest ways on the escape channels close a cycle: the proof sees the escape's table."""
    run = damaged(TORUS, "links: [[0, 1]]")
    table, R = run.plan.table.copy(), run.topology.routers
    ways = ways_around(run.topology, 1, 4, swapped=True)
    start = int(table[9])
    assert (table[start : start + R * R].reshape(R, R) == escape_ports(run.topology)).all()
    lowest = np.log2(np.maximum(ways.nearer & -ways.nearer, 1)).astype(np.int64)
    table[start : start + R * R] = np.where(ways.nearer > 0, 1 + (lowest ^ 1), -1).reshape(-1)
    run.state.put("table", table)
    with pytest.raises(DeadlockError, match=r"dqn can deadlock on the .* cycle of channels .* cannot rule out: .* → "):
        check_routing(run.topology, replace(run.plan, table=table), run.state, "dqn")


def test_packets_for_a_failed_switch() -> None:
    """They are dropped at their first router: no entry, no decision, and nobody learns from them."""
    config = configured(TORUS, "", more="failed: {switches: [5]}\n")
    rows = [np.array(row) for row in ([0, 1, 2], [10, 20, 30], [5, 5, 7], [4, 4, 4])]
    run = Simulation(config, 0.1, 1, script=tuple(rows))
    run.advance(3000)
    counts = trail_counts(run.state)
    assert int(run.state["packets_dropped"]) == 2
    assert counts["delivered"] == counts["acks_home"] == 1
    assert counts["entries"] == counts["acks_sent"] > 0


def nearer_hops(run: Simulation, left: Topology) -> int:
    """Run for a while; every adaptive hop must be on a shortest way in `left`. Returns how many there were."""
    every, ports = [levels(left, router) for router in range(left.routers)], int(run.state["ports"])
    put_log(run.state, 1 << 19)
    goal = dict[int, int]()
    for _ in range(50):
        run.advance(30)
        goal |= {int(p["number"]) | int(p["src"]) << 40: int(p["dst"]) for p in run.state["packet"]}
    log, checked = run.state["log"].reshape(-1, 6)[: int(run.state["log_length"])], 0
    for _, event, _, target, packet, flit in log.tolist():
        (router, port), vc = divmod(target // 3, ports), target % 3
        if event == GRANTED and flit & HEAD and packet in goal and vc == 2 and 0 < port < ports - 1:
            there = int(left.peer_router[router, port])
            assert every[there][goal[packet]] == every[router][goal[packet]] - 1
            checked += 1
    return checked


@pytest.mark.parametrize(
    ("kind", "failed"), [(TORUS, "{links: [[0, 1], [5, 6]]}"), (MESH, "{links: [[0, 4], [5, 6]], switches: [11]}"),
                         (DRAGONFLY, "{links: [[0, 1]]}")],
)  # fmt: skip
def test_agents_know_the_ways_of_what_has_failed_from_the_start(kind: str, failed: str) -> None:
    """As in the next test, but without tables that come into force during the run."""
    run = Simulation(configured(kind, "", ", ways: minimal", more=f"failed: {failed}\n"), 0.15, 1)
    run.advance(1500)  # so that all records are those of packets
    assert nearer_hops(run, run.topology) > 100


def test_agents_know_the_new_ways() -> None:
    """After the new tables every hop of `ways: minimal` is on a shortest way over the links that are there."""
    run = Simulation(configured(TORUS, LINKS.replace(", repair_cycles: 900", ""), ", ways: minimal"), 0.15, 1)
    assert run.reconfiguration is not None
    weights = run.state.agents.agents.weights.copy()
    run.advance(1500)
    assert (run.state.agents.agents.weights != weights).any(axis=1).all()
    assert run.reconfiguration.records[0].reprogrammed_cycle > 0
    left = run.reconfiguration.epochs[0].topology
    assert levels(left, 0)[1] == levels(left, 5)[6] == 3
    assert nearer_hops(run, left) > 200


def test_a_network_that_falls_apart() -> None:
    failures = "{cycle: 700, links: [[0, 1], [0, 4]]}"
    with pytest.raises(FailureError, match=r"simulation.failures\[0\]: the network falls apart: no path from router 0"):
        Simulation(configured(MESH, failures), 0.1, 1)
