"""Input-output-queued routers against a plain golden written from docs/definitions/router-models.md, in every cycle."""

from typing import Any

import numpy as np
import pytest

from hopforge.model.config import parse_config
from hopforge.model.config.lookup import AddressConfig
from hopforge.model.config.router import RouterConfig
from hopforge.model.config.topology import DragonflyConfig
from hopforge.model.network.core.kinds import DONE, GROW
from hopforge.model.network.settings import SourceParameters, Tables
from hopforge.model.routing import ROUTING, RoutingPlan
from hopforge.model.topology import Topology, build
from hopforge.model.topology.link_times import port_values
from hopforge.sim.queued.build import IntervalSource, QueuedState, QueueParameters, build_queues
from hopforge.sim.queued.golden_dragonfly import GoldenQAdaptive, GoldenUgalNode
from hopforge.sim.queued.kernel import run_cycles
from hopforge.sim.queued.parts import find_parts
from hopforge.sim.run.simulation import Simulation
from hopforge.sim.traffic import prepare_traffic

GOLDEN = {"ugal_node": (GoldenUgalNode, 4), "q_adaptive": (GoldenQAdaptive, 5)}


def dragonfly(p: int, a: int, h: int, **others: Any) -> Topology:
    address = AddressConfig(chunk_bits=4 if max(p, a) <= 16 else 8)
    return build(DragonflyConfig(kind="dragonfly", p=p, a=a, h=h, **others), address)


def kernel(
    topology: Topology, plan: RoutingPlan, given: QueueParameters, source: SourceParameters, seed: int
) -> tuple[QueuedState, Any]:
    traffic = prepare_traffic(topology, "uniform", {"include_self": False}, np.random.default_rng(1))
    tables = Tables(
        plan.table, plan.memory, traffic.table, plan.max_candidates, plan.inject_mask, feedback=plan.feedback
    )
    state = build_queues(topology, given, source, tables, seed)

    def run(cycles: int) -> int:
        code, end = GROW, int(state["cycle"]) + cycles
        while code == GROW:
            code = run_cycles(
                plan.route, traffic.pattern, state.record[0], state.queue_record[0], end - int(state["cycle"])
            )
            if code == GROW:
                state.grow_packets()
        return int(code)

    return state, run


def contents(state: QueuedState, name: str) -> list[list[tuple[int, int]]]:
    """Source and number of the packets in every queue, first one first."""
    packets, following, found = state["packet"], state.queues["following"], []
    for queue in state.queues[name]:
        which, p = [], int(queue["first"])
        for _ in range(int(queue["length"])):
            which.append((int(packets["src"][p]), int(packets["number"][p])))
            p = int(following[p])
        found.append(which)
    return found


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize(
    ("algorithm", "shape", "depths", "interval", "rounds", "seed"),
    [
        ("ugal_node", (2, 4, 2), (3, 2, 3), 1.0, (1, 1), 1),
        ("ugal_node", (1, 2, 1), (1, 1, 1), 1.3, (1, 1), 2),
        ("q_adaptive", (2, 2, 2), (2, 3, 2), 1.0, (1, 1), 3),
        ("q_adaptive", (2, 4, 2), (20, 20, 20), 1.25, (1, 1), 4),
        ("q_adaptive", (2, 2, 2), (20, 20, 4), 4.5, (2, 7), 5),
        ("ugal_node", (70, 2, 1), (3, 2, 3), 1.0, (1, 1), 6),  # 72 ports: two words
        ("q_adaptive", (62, 2, 1), (2, 3, 2), 1.0, (1, 1), 7),  # 64 ports: the largest of one
    ],
)
@pytest.mark.thinned(2)
def test_every_cycle_as_the_golden(
    algorithm: str,
    shape: tuple[int, int, int],
    depths: tuple[int, int, int],
    interval: float,
    rounds: tuple[int, int],
    seed: int,
    late: bool,
) -> None:
    topology = dragonfly(*shape)
    golden_class, vcs = GOLDEN[algorithm]
    flight = port_values(topology, 25, 60, 9)
    given = QueueParameters(
        vcs=vcs, input_packets=depths[0], output_packets=depths[1], nic_packets=depths[2], packet_cycles=16,
        match_cycles=4, flight_cycles=flight, wake_late=late,
    )  # fmt: skip
    golden = golden_class(topology, given, interval, seed, rounds)
    options = {"router": RouterConfig(model="input_output_queued"), "epsilon": 0.05}
    plan = ROUTING[algorithm](topology, vcs, options)
    source = IntervalSource(interval_packets=interval, round_packets=rounds)
    state, run = kernel(topology, plan, given, source, seed)
    ejected = 0
    for cycle in range(450):
        golden.step()
        assert run(1) == DONE
        length = {
            "input_queue": [len(queue) for queue in golden.inputs.values()],
            "output_queue": [len(queue) for queue in golden.outputs.values()],
        }
        for name, wanted in length.items():
            assert state.queues[name]["length"].tolist() == wanted, (cycle, name)
        assert state["host"]["flits_received"].tolist() == golden.received, cycle
        if len(golden.latencies) > ejected:
            ejected = len(golden.latencies)
            assert (state["latency_sum"], state["hops_sum"]) == (sum(golden.latencies), sum(golden.hops)), cycle
        if cycle % 50 == 49:
            for name, wanted in (("input_queue", golden.inputs), ("output_queue", golden.outputs)):
                assert contents(state, name) == [[(k.src, k.number) for k in q] for q in wanted.values()], cycle
            assert state["packets_created"] == sum(golden.made) - sum(len(queue) for queue in golden.nic)
    assert ejected > 20
    assert state.flits_present == state.flits_in_flight
    if isinstance(golden, GoldenQAdaptive):
        learned = plan.memory.size - np.count_nonzero(state["memory"] == plan.memory)
        assert learned > 20
        assert learned == sum(value != golden_first(golden, key) for key, value in golden.q.items())
        estimates = state["memory"][-topology.routers * golden.g * golden.p * (topology.max_ports - golden.p) :]
        estimates = estimates.reshape(topology.routers, golden.g, golden.p, -1)
        for (r, goal, number, o), value in golden.q.items():
            assert estimates[r, goal, number, o - golden.p] == value


def golden_first(golden: GoldenQAdaptive, key: tuple[int, int, int, int]) -> float:
    kept, golden.q = golden.q, {}
    first = golden.estimate(*key)
    golden.q = kept
    return first


def test_parts_of_a_dragonfly_are_groups_or_several() -> None:
    topology = dragonfly(2, 4, 2)
    flight = np.asarray(port_values(topology, 25, 60, 9), np.int64)
    parts = find_parts(topology, flight, 35, 1)
    assert (len(parts), parts.far_cycles) == (9, 60)
    assert parts.first_router.tolist() == list(range(0, 37, 4))
    assert parts.first_host.tolist() == list(range(0, 73, 8))
    assert find_parts(topology, flight, 35, 281).first_router.tolist() == [0, 12, 24, 36]


@pytest.mark.parametrize(("local", "far", "host"), [(25, 60, 60), (60, 25, 9)])
def test_one_part_where_order_or_links_forbid_more(local: int, far: int, host: int) -> None:
    topology = dragonfly(2, 4, 2)
    flight = np.asarray(port_values(topology, local, far, host), np.int64)
    assert len(find_parts(topology, flight, 35, 1)) == 1


@pytest.mark.parametrize(
    ("algorithm", "vcs", "options"),
    [
        ("q_adaptive", 5, {"epsilon": 0.05}),
        ("q_adaptive", 5, {"epsilon": 0.05, "estimate_bits": 12, "estimate_rounding": "random"}),
        ("par", 5, {}),
    ],
)
@pytest.mark.parametrize("source", [IntervalSource(interval_packets=1.1), SourceParameters(packet_rate=0.7 / 16)])
def test_parts_one_after_the_other_give_the_same(
    algorithm: str, vcs: int, options: dict[str, Any], source: SourceParameters
) -> None:
    topology = dragonfly(2, 4, 2)
    plan = ROUTING[algorithm](topology, vcs, {"router": RouterConfig(model="input_output_queued"), **options})
    found = []
    for least, chunks in ((1, [701, 1, 1299, 59, 61]), (10_000, [2121]), (400, [60, 2061])):
        given = QueueParameters(
            vcs=vcs, input_packets=3, output_packets=2, nic_packets=3, packet_cycles=16, match_cycles=4,
            flight_cycles=port_values(topology, 25, 60, 9), part_queues=least,
        )  # fmt: skip
        state, run = kernel(topology, plan, given, source, 3)
        assert (int(state.queue_record["parts"][0]) > 1) == (least < 10_000)
        for cycles in chunks:
            assert run(cycles) == DONE
            assert state.flits_present == state.flits_in_flight
        counters = [
            int(state[name])
            for name in ("cycle", "last_move", "packets_created", "latency_sum", "hops_sum", "measured", "notes")
        ]
        queues = [state.queues[name]["length"].tolist() for name in ("input_queue", "output_queue")]
        which = [contents(state, name) for name in ("input_queue", "output_queue")]
        streams = [state[name].tobytes() for name in ("memory", "histogram", "router_rng", "host_rng")]
        found.append((counters, queues, which, streams))
    assert found[0][0][5] > 1000
    assert found[0] == found[1] == found[2]


def test_without_load_an_idle_port_that_wakes_late_costs_a_flit_time_in_every_router() -> None:
    found = {}
    for way in ("at_once", "flit_later"):
        text = (
            f"name: wait\ntopology: {{kind: dragonfly, p: 2, a: 4, h: 2}}\n"
            f"router: {{model: input_output_queued, vcs: 2, idle_ports: {way}}}\n"
            "routing: {algorithm: dragonfly_min}\ntraffic: {source: interval, include_self: false}\n"
            "simulation: {warmup_us: 5, measure_us: 112}\n"
        )
        found[way] = Simulation(parse_config(text), 0.004, 1).run()
    assert found["at_once"].hops == found["flit_later"].hops
    wait_ns = (found["flit_later"].latency - found["at_once"].latency) * found["at_once"].cycle_ns
    # a credit that came less than a flit time before has set the timer already
    assert wait_ns == pytest.approx(32 * found["at_once"].hops, rel=0.02)
