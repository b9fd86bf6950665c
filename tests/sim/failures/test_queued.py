"""Failures in the middle of a run of input-output-queued routers: as the golden, and everything accounted for."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hopforge.model.config import Config, parse_config
from hopforge.model.network.core.kinds import HOST_VC_BITS
from hopforge.model.routing import RoutingError, RoutingPlan
from hopforge.model.routing.combined.configured import routing_plan
from hopforge.model.routing.proof.deadlock import check_routing
from hopforge.model.routing.proof.short_proof import prove_routing
from hopforge.model.topology.configured import network_topology
from hopforge.model.topology.link_times import queued_times
from hopforge.sim.failures.input_output_queued import DOWN, InputOutputQueuedFailures
from hopforge.sim.queued.build import QueuedState, QueueParameters
from hopforge.sim.queued.golden import Golden
from hopforge.sim.queued.golden_dragonfly import GoldenDragonfly, GoldenQAdaptive, GoldenUgalNode
from hopforge.sim.queued.line_contents import line_contents
from hopforge.sim.run.packet_phases import bars
from hopforge.sim.run.packet_report import life_text
from hopforge.sim.run.packet_trace import follow, list_packets, slowest
from hopforge.sim.run.simulation import Simulation

#: 16 cycles for a packet, 4 between matches, links of 25, 60 and 9 cycles
TIMES = "flit_ns: 6.4, crossbar_ns: 1.6, link_ns: 8, global_ns: 22, host_ns: 1.6, end_ns: 1"
DRAGONFLY = "topology: {kind: dragonfly, p: 2, a: %d, h: %d}\naddress: {chunk_bits: 4}"
IRREGULAR = "topology: {kind: random_regular, routers: 16, degree: 4, hosts_per_router: 2, seed: 1}"


def configure(network: str, algorithm: str, vcs: int, failure: str, depths: tuple[int, int, int] = (3, 2, 3)) -> Config:
    return parse_config(
        f"name: test\n{network}\n"
        f"router: {{model: input_output_queued, vcs: {vcs}, buffer_flits: {depths[0]}, "
        f"output_buffer_flits: {depths[1]}, {TIMES}}}\n"
        f"routing: {{algorithm: {algorithm}, epsilon: 0.05}}\n"
        f"traffic: {{source: interval, include_self: false, nic_packets: {depths[2]}}}\n"
        f"simulation: {{failures: [{failure}]}}\n"
    )


def queued(run: Simulation) -> tuple[QueuedState, InputOutputQueuedFailures]:
    assert isinstance(run.state, QueuedState) and run.reconfiguration is not None
    assert isinstance(run.reconfiguration.network, InputOutputQueuedFailures)
    return run.state, run.reconfiguration.network


def packets_of(state: QueuedState, name: str) -> list[list[int]]:
    found = []
    for queue in state.queues[name]:
        which, p = [], int(queue["first"])
        for _ in range(int(queue["length"])):
            which.append(p)
            p = int(state.queues["following"][p])
        found.append(which)
    return found


class GoldenQ(GoldenQAdaptive):
    local, far = 8.0, 22.0


@pytest.mark.parametrize(
    ("golden_class", "vcs", "interval", "seed"),
    [(GoldenUgalNode, 4, 4.0, 1), (GoldenQ, 5, 2.5, 2), (GoldenQ, 5, 4.0, 3)],
)
def test_every_cycle_as_the_golden(golden_class: type[GoldenDragonfly], vcs: int, interval: float, seed: int) -> None:
    """Two links fail, and one more while the network becomes empty; they work again."""
    algorithm, shape = "ugal_node" if vcs == 4 else "q_adaptive", (2, 2)
    first = "{cycle: 9, links: [%s], detection_cycles: 3, reprogram_cycles: 6, repair_cycles: 36}"
    topology = network_topology(configure(DRAGONFLY % shape, algorithm, vcs, ""))
    far = [
        (r, o) for r in range(topology.routers) for o in range(topology.max_ports)
        if topology.peer_router[r, o] // shape[0] > r // shape[0]
    ]  # fmt: skip
    chosen = [far[0], far[-1], far[len(far) // 2]]
    links = [f"[{r}, {topology.peer_router[r, o]}]" for r, o in chosen]
    config = configure(
        DRAGONFLY % shape, algorithm, vcs,
        first % ", ".join(links[:2]) + ", " + first.replace("9", "14", 1).replace("36", "30") % links[2],
    )  # fmt: skip
    run = Simulation(config, 1 / interval, seed)
    state, network = queued(run)
    assert run.reconfiguration is not None
    times = queued_times(config.router, topology)
    given = QueueParameters(vcs, 3, 2, times.flit_cycles, times.crossbar_cycles, times.flight_cycles, 3)
    assert (given.packet_cycles, given.match_cycles) == (16, 4)
    golden = golden_class(topology, given, interval, seed)
    ports = [{(r, o), (int(topology.peer_router[r, o]), int(topology.peer_port[r, o]))} for r, o in chosen]
    begin = {9: ports[0] | ports[1], 14: ports[2]}
    end = {9 + 36: ports[0] | ports[1], 14 + 30: ports[2]}
    stop_at, ready_at = -1, -1
    set_aside = []
    for cycle in range(1500):
        if cycle % 16 == 0 and (cycle // 16 in begin or cycle // 16 in end):
            golden.fail(begin.get(cycle // 16, set()))
            golden.repair(end.get(cycle // 16, set()))
            detected = cycle + 3 * 16
            if golden.stopped:
                ready_at = max(ready_at, detected + 6 * 16)
            elif stop_at < cycle:
                stop_at = detected
        if cycle == stop_at:
            golden.stop()
            ready_at = cycle + 6 * 16
        if golden.stopped and cycle >= ready_at and cycle % 4 == 0 and golden.empty:
            golden.reprogram()
        golden.step()
        run.advance(1)
        compare(golden, state, network, cycle)
        set_aside.append(sum(map(len, golden.aside.values())))
        if cycle % 50 == 49:
            for name, queues in (("input_queue", golden.inputs), ("output_queue", golden.outputs)):
                wanted = [[(k.src, k.number) for k in q] for q in queues.values()]
                packets = state["packet"]
                found = [[(int(packets["src"][p]), int(packets["number"][p])) for p in q]
                         for q in packets_of(state, name)]  # fmt: skip
                assert found == wanted, (cycle, name)
    records = run.reconfiguration.records
    assert len(records) == 4 and records[-1].reprogrammed_cycle > records[-1].cycle > records[0].reprogrammed_cycle > 0
    assert golden.lost == sum(record.flits_on_links for record in records) == state["flits_dropped"] > 0
    assert max(set_aside) > 0 and set_aside[-1] == 0
    assert golden.known == set() == golden.down and sum(golden.received) > 200
    if isinstance(golden, GoldenQAdaptive):
        estimates = state["memory"][-topology.routers * golden.g * golden.p * (topology.max_ports - golden.p) :]
        estimates = estimates.reshape(topology.routers, golden.g, golden.p, -1)
        assert len(golden.q) > 20
        for (r, goal, number, o), value in golden.q.items():
            assert estimates[r, goal, number, o - golden.p] == value


def compare(golden: Golden, state: QueuedState, network: InputOutputQueuedFailures, cycle: int) -> None:
    for name, queues in (("input_queue", golden.inputs), ("output_queue", golden.outputs)):
        assert state.queues[name]["length"].tolist() == [len(q) for q in queues.values()], (cycle, name)
    credits = state.queues["output_queue"]["credits"].astype(np.int64)
    credits += DOWN * (credits < 0)
    assert credits.tolist() == list(golden.credits.values()), cycle
    assert state["host"]["flits_received"].tolist() == golden.received, cycle
    assert {h: len(q) for h, q in golden.aside.items() if q} == {h: len(q) for h, q in network.resend.items()}, cycle
    assert (state["latency_sum"], state["hops_sum"]) == (sum(golden.latencies), sum(golden.hops)), cycle
    assert state["packets_created"] == sum(golden.made) - sum(len(queue) for queue in golden.nic), cycle


def entries(state: QueuedState, name: str) -> Iterator[int]:
    for k in range(len(state.queues[name])):
        yield from line_contents(state, name, k).tolist()


def check_state(run: Simulation) -> None:
    """Packets, records, credits and free places are all accounted for, from their definitions."""
    run.check_conservation()
    state, network = queued(run)
    inputs, outs, nic = (state.queues[name] for name in ("input_queue", "output_queue", "nic"))
    queues = {name: packets_of(state, name) for name in ("input_queue", "output_queue")}
    on_links = list(entries(state, "packet_line"))
    held = [p for kept in network.resend.values() for p in kept]
    inside = [p for which in queues.values() for queue in which for p in queue] + [e & 0xFFFFFFFF for e in on_links]
    free = state["free_packet"][: int(state["free_packets"])].tolist()
    assert sorted([*free, *inside, *held]) == list(range(len(state["packet"])))
    total = outs["credits"].astype(np.int64)
    total += DOWN * (total < 0)
    assert (state["output_vc"]["depth"] - state["output_vc"]["credits"] == outs["length"] + 3 - total).all()
    hosts = nic["credits"].astype(np.int64)
    back = [e >> 1 for e in entries(state, "credit_line")]
    for e in on_links:
        target = e >> 32
        code = target - len(inputs)
        back.append(int(inputs["credit_to"][target]) if code < 0 else
                    int(nic["output_vc"][code >> HOST_VC_BITS]) + (code & ((1 << HOST_VC_BITS) - 1)))  # fmt: skip
    back += np.repeat(inputs["credit_to"], inputs["length"]).tolist()
    for m in back:
        if m < len(outs):
            total[m] += 1
        else:
            hosts[m - len(outs)] += 1
    assert (total[outs["target"] >= 0] == 3).all() and (hosts[: run.topology.hosts] == 3).all()


LINKS = "{cycle: 21, links: [%s], detection_cycles: 4, reprogram_cycles: 9, repair_cycles: 70}"
SWITCH = "{cycle: 21, switches: [5], detection_cycles: 4, reprogram_cycles: 9, repair_cycles: 70}"


@pytest.mark.parametrize(
    ("network", "algorithm", "vcs", "failure", "source"),
    [
        (DRAGONFLY % (4, 2), "valiant_group", 3, LINKS % "[0, 4]", "interval"),
        (DRAGONFLY % (4, 2), "par", 5, LINKS % "[0, 4]", "bernoulli"),
        (DRAGONFLY % (4, 2), "q_adaptive", 5, LINKS % "[0, 4]", "interval"),
        (IRREGULAR, "shortest", 5, LINKS % "[0, 2], [3, 13]", "bernoulli"),
        (IRREGULAR, "shortest", 5, SWITCH, "interval"),
        (IRREGULAR + "\ntables: {scheme: shortest, layers: acro}", "tables", 4, SWITCH, "bernoulli"),
    ],
)
def test_everything_is_accounted_for(network: str, algorithm: str, vcs: int, failure: str, source: str) -> None:
    config = configure(network, algorithm, vcs, failure)
    traffic = config.traffic.model_copy(update={"source": source})
    run = Simulation(config.model_copy(update={"traffic": traffic}), 0.5, 3)
    assert run.reconfiguration is not None
    for _ in range(40):
        run.advance(79)
        check_state(run)
        assert not np.isnan(run.state["memory"]).any()
    failed, repaired = run.reconfiguration.records
    assert failed.flits_on_links > 0 and failed.packets_lost == failed.flits_lost
    assert (failed.flits_in_switches > 0) == (failure == SWITCH)
    assert failed.packets_set_aside > 0 and failed.packets_without_host == 0
    assert failed.stopped_cycle == failed.cycle + 4 * 16 < failed.empty_cycle <= failed.reprogrammed_cycle
    assert failed.reprogrammed_cycle >= failed.stopped_cycle + 9 * 16
    assert repaired.flits_lost == repaired.packets_set_aside == 0 < repaired.reprogrammed_cycle
    assert run.reconfiguration.network.set_aside == 0


def test_failures_that_join_another_are_empty_in_the_same_cycle() -> None:
    failures = (
        "{cycle: 21, links: [[0, 4]], detection_cycles: 4, reprogram_cycles: 50}, "
        "{cycle: 30, links: [[9, 17]], detection_cycles: 4, reprogram_cycles: 9}"
    )
    run = Simulation(configure(DRAGONFLY % (4, 2), "ugal_node", 4, failures), 0.5, 3)
    run.advance(25 * 16)
    while run.state.flits_in_flight:
        run.advance(4)
    empty = int(run.state["cycle"])
    run.advance(75 * 16 - empty + 1)
    assert run.reconfiguration is not None
    for record in run.reconfiguration.records:
        assert (record.empty_cycle, record.reprogrammed_cycle) == (empty, 75 * 16)


def test_a_failure_that_joins_before_the_hosts_stop_does_not_hasten_the_tables() -> None:
    failures = (
        "{cycle: 20, links: [[0, 4]], detection_cycles: 40, reprogram_cycles: 100}, "
        "{cycle: 50, links: [[9, 17]], detection_cycles: 9, reprogram_cycles: 0}"
    )
    run = Simulation(configure(DRAGONFLY % (4, 2), "ugal_node", 4, failures), 0.05, 3)
    run.advance(170 * 16)
    assert run.reconfiguration is not None
    for record in run.reconfiguration.records:
        assert (record.stopped_cycle, record.reprogrammed_cycle) == (59 * 16, 160 * 16)


def test_a_network_without_packets_is_empty_when_its_hosts_stop() -> None:
    run = Simulation(configure(DRAGONFLY % (4, 2), "ugal_node", 4, LINKS % "[0, 4]"), 1e-4, 3)
    run.advance(20 * 16)
    assert not run.state.flits_in_flight
    run.advance(50 * 16)
    assert run.reconfiguration is not None
    record = run.reconfiguration.records[0]
    assert (record.stopped_cycle, record.empty_cycle) == (25 * 16, 25 * 16)


def test_switches_without_hosts_drop_what_they_cannot_send_on() -> None:
    failure = "{cycle: 30, ports: [[8, 0]], detection_cycles: 20}"
    run = Simulation(configure("topology: {kind: fat_tree, k: 2, n: 2}", "up_down", 2, failure), 0.9, 1)
    assert run.topology.peer_router[8, 0] in range(4, 8) and (run.topology.host_at[4:] < 0).all()
    for _ in range(100):
        run.advance(17)
        check_state(run)
    assert run.reconfiguration is not None
    record = run.reconfiguration.records[0]
    assert record.packets_without_host > 0
    assert int(run.state["packets_dropped"]) == record.packets_lost + record.packets_without_host


def test_the_result_does_not_depend_on_how_the_run_is_cut() -> None:
    found = []
    for cuts in ([2400], [1] * 1500 + [900], [337] * 7 + [41]):
        run = Simulation(configure(DRAGONFLY % (4, 2), "q_adaptive", 5, LINKS % "[0, 4], [9, 17]"), 0.9, 5)
        for cycles in cuts:
            run.advance(cycles)
        state, _ = queued(run)
        assert run.reconfiguration is not None
        found.append((
            run.reconfiguration.table().to_dict(), int(state["latency_sum"]), int(state["packets_ejected"]),
            state.queues["input_queue"]["length"].tolist(), state["memory"].tobytes(), state["host_rng"].tobytes(),
        ))  # fmt: skip
    assert found[0] == found[1] == found[2]
    assert found[0][2] > 1000


def test_a_run_without_failures_is_untouched_until_the_first() -> None:
    failing = Simulation(configure(DRAGONFLY % (4, 2), "q_adaptive", 5, LINKS % "[0, 4]"), 0.9, 5)
    config = failing.config
    runs = config.simulation.model_copy(update={"failures": ()})
    plain = Simulation(config.model_copy(update={"simulation": runs}), 0.9, 5)
    assert plain.reconfiguration is None
    for run in (plain, failing):
        run.advance(21 * 16)
    for name in ("packet", "memory", "host", "output_vc"):
        assert np.array_equal(plain.state[name], failing.state[name]), name
    plain.advance(16)
    failing.advance(16)
    assert int(failing.state["flits_dropped"]) > 0 == int(plain.state["flits_dropped"])


def test_links_inside_a_group_and_q_routing_are_refused() -> None:
    with pytest.raises(RoutingError, match=r"only links between groups may fail, not that of routers 0 and 1"):
        Simulation(configure(DRAGONFLY % (4, 2), "q_adaptive", 5, LINKS % "[0, 1]"), 0.4, 3)
    with pytest.raises(RoutingError, match=r"routing.algorithm: must be one of tables, .* in the run, not q_routing"):
        Simulation(configure(DRAGONFLY % (4, 2), "q_routing", 5, LINKS % "[0, 4]"), 0.4, 3)


def test_a_trace_tells_where_a_packet_was_set_aside() -> None:
    config = configure(DRAGONFLY % (2, 2), "ugal_node", 4, (LINKS % "[0, 2]").replace("21", "12", 1))
    packets = list_packets(config, 0.3, 1, 1000)
    run, lives = follow(config, 0.3, 1, 1000, packets, slowest(packets, 8))
    kept = [life for life in lives if any(visit.again is not None for visit in life.visits)]
    assert kept
    for life in kept:
        assert len(life.sent) == len(life.received) == 1
        at = next(k for k, visit in enumerate(life.visits) if visit.again is not None)
        before, after = life.visits[at], life.visits[at + 1]
        host, (cycle,) = before.again or (-1, [-1])
        router, port = int(run.topology.host_router[host]), int(run.topology.host_port[host])
        assert before.input_vc // 4 // run.topology.max_ports == router  # the host is one of the same router
        assert after.input_vc // 4 == router * run.topology.max_ports + port
        assert not before.links and after.grants[0] >= cycle + 9
        waits = [bar for bar in bars(run, life) if (bar.stop, bar.phase) == (at + 1, "output queue")]
        assert [bar.end for bar in waits] == [cycle]
        assert f"{router:8}  {port:4}   0  {cycle + 9:7}" in life_text(run, life)


def test_every_state_of_the_network_is_proved_before_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    links = []

    def counted(prove: Callable[..., Any]) -> Callable[..., Any]:
        def proved(topology: Any, *arguments: Any, **more: Any) -> Any:
            links.append(int((topology.peer_router >= 0).sum()))
            return prove(topology, *arguments, **more)

        return proved

    monkeypatch.setattr("hopforge.sim.run.routing_proof.prove_routing", counted(prove_routing))
    monkeypatch.setattr("hopforge.sim.run.epoch_routing.check_routing", counted(check_routing))
    run = Simulation(configure(DRAGONFLY % (4, 2), "q_adaptive", 5, LINKS % "[0, 4], [9, 17]"), 0.4, 3)
    whole = int((run.topology.peer_router >= 0).sum())
    assert links == [whole, whole - 4, whole]


def test_a_plan_with_more_candidates_after_a_failure_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def more(config: Config, topology: Any) -> RoutingPlan:
        plan = routing_plan(config, topology)
        return replace(plan, max_candidates=plan.max_candidates + int((topology.peer_router >= 0).sum() < 64))

    monkeypatch.setattr("hopforge.sim.run.epoch_routing.routing_plan", more)
    with pytest.raises(RoutingError, match=r"at most 1 outputs \(max_candidates\) after a failure too, not 2"):
        Simulation(configure(IRREGULAR, "shortest", 5, LINKS % "[0, 2]"), 0.4, 3)
