"""The network kernel against definitions: zero-load formula, conservation, reproducibility, deadlock, allocators."""

import numpy as np
import pandas as pd
import pytest

from hopforge.model.config import Config, parse_config
from hopforge.model.deadlock import DeadlockError, find_cycle
from hopforge.model.network.build import NetworkError
from hopforge.model.routing import RoutingError
from hopforge.model.simulation import Simulation, batch_interval, mser5
from hopforge.model.traffic import TrafficError

MESH = "topology: {kind: mesh, radices: [4, 3]}"
TORUS = "topology: {kind: torus, radices: [5, 4]}"


def config(*lines: str) -> Config:
    return parse_config("\n".join(("name: test", *lines)))


def script(*packets: tuple[int, int, int, int]) -> tuple[np.ndarray, ...]:
    return tuple(np.array(column) for column in zip(*packets, strict=True))


def deliver(checked: Config, packets: tuple[np.ndarray, ...], cycles: int = 5000) -> pd.DataFrame:
    run = Simulation(checked, 0.1, 1, script=packets, log_events=200000)
    run.advance(cycles)
    run.check_conservation()
    assert run.state.flits_in_flight == 0
    log = run.state["log"].reshape(-1, 6)[: int(run.state["log_length"])]
    return pd.DataFrame(log, columns=["cycle", "kind", "source", "target", "packet", "flit"])


@pytest.mark.parametrize("topology, latency", [(MESH, 1), (TORUS, 2), (TORUS, 3)])
@pytest.mark.parametrize("flits", [1, 4])
@pytest.mark.parametrize("rc, speculation", [(0, False), (1, False), (3, False), (0, True)])
def test_zero_load_latency_is_the_formula(topology: str, latency: int, flits: int, rc: int, speculation: bool) -> None:
    checked = config(
        topology,
        f"router: {{link_latency_cycles: {latency}, rc_cycles: {rc}, speculation: {str(speculation).lower()}}}",
    )
    run = Simulation(checked, 0.1, 1)
    hosts = run.topology.hosts
    distance = _router_distance(run)
    for source, target in [(0, 0), (0, hosts - 1), (3, 7), (hosts - 1, 1)]:
        log = deliver(checked, script((source, 10, target, flits)))
        routers = int(distance[source, target]) + 1
        stages = 3 + rc - (1 if speculation else 0)
        expected = stages * routers + latency * (routers - 1) + 3 + (flits - 1)
        assert log[log.kind == 3].cycle.max() - 10 == expected


def _router_distance(run: Simulation) -> np.ndarray:
    from hopforge.model.routing.graph import distances

    return distances(run.topology)


@pytest.mark.parametrize("va", ["input_first", "output_first", "wavefront"])
@pytest.mark.parametrize("sa", ["input_first", "output_first", "wavefront"])
@pytest.mark.parametrize("arbiter", ["round_robin", "matrix"])
@pytest.mark.parametrize(
    "more", ["speculation: true", "vc_release: credits", "switching: vct", "switching: saf", "cycles_per_flit: 3"]
)
def test_every_flit_arrives_once_and_in_order(va: str, sa: str, arbiter: str, more: str) -> None:
    checked = config(TORUS, f"router: {{va: {va}, sa: {sa}, arbiter: {arbiter}, {more}}}")
    generator = np.random.default_rng(7)
    count = 300
    packets = (
        generator.integers(0, 20, count),
        np.sort(generator.integers(0, 200, count)),
        generator.integers(0, 20, count),
        generator.integers(1, 6, count),
    )
    log = deliver(checked, packets)
    sent, received, grants = (log[log.kind == kind] for kind in (2, 3, 0))
    total = int(packets[3].sum())
    assert len(sent) == len(received) == total
    # every packet arrives at its destination, head first and tail last, one flit per host and cycle
    wanted = {}
    for host in range(20):
        chosen = np.flatnonzero(packets[0] == host)
        chosen = chosen[np.argsort(packets[1][chosen], kind="stable")]
        for number, k in enumerate(chosen):
            wanted[(host << 40) | number] = (int(packets[2][k]), int(packets[3][k]))
    for name, flits in received.groupby("packet"):
        target, length = wanted[int(name)]
        assert set(flits.source) == {target}
        assert len(flits) == length
        kinds = flits.sort_values("cycle").flit.tolist()
        assert kinds == ([3] if length == 1 else [1, *([0] * (length - 2)), 2])
    assert not received.duplicated(["cycle", "source"]).any()
    # one grant per input port, per output port and cycle
    assert not (grants.assign(port=grants.source // 4)).duplicated(["cycle", "port"]).any()
    assert not (grants.assign(port=grants.target // 4)).duplicated(["cycle", "port"]).any()


def test_credits_and_buffers_never_overflow() -> None:
    run = Simulation(config(MESH, "router: {vcs: 2, buffer_flits: 3}"), 0.9, 1)
    for _ in range(200):
        run.advance(7)
        assert run.state["input_vc"]["flits"].max() <= 3
        assert run.state["output_vc"]["credits"].min() >= 0
        assert run.state["output_vc"]["credits"].max() <= 3
        run.check_conservation()


def test_same_seed_same_bits_and_another_seed_differs() -> None:
    checked = config(MESH, "simulation: {min_cycles: 1000, max_cycles: 1000}")
    rows = [Simulation(checked, 0.3, seed).run().row() for seed in (5, 5, 6)]
    for row in rows:
        del row["cpu_seconds"]
    assert rows[0] == rows[1]
    assert rows[0] != rows[2]


def test_pieces_of_a_run_are_the_run() -> None:
    whole, pieces = (Simulation(config(MESH), 0.4, 1) for _ in range(2))
    whole.advance(3000)
    for step in (1, 999, 1500, 500):
        pieces.advance(step)
    assert np.array_equal(whole.state["histogram"], pieces.state["histogram"])


CYCLIC = """
from hopforge.model.network.candidates import candidate
from hopforge.model.routing import RoutingPlan, relation
import numpy as np

def clockwise(router, in_port, in_vc, packet, net, table, memory, out):
    out[0] = candidate(0, 1) if packet.dst == router else candidate(1, 1)
    return 1

def prepare(topology, vcs, options):
    return RoutingPlan(relation(clockwise), np.zeros(1, np.int32))
"""


def test_a_ring_without_dateline_is_refused_with_its_cycle_and_caught_when_it_runs(tmp_path) -> None:
    (tmp_path / "ring_routing.py").write_text(CYCLIC)
    lines = "\n".join(
        [
            "name: ring",
            "topology: {kind: torus, radices: [6]}",
            "router: {vcs: 1, buffer_flits: 2}",
            "traffic: {packet_flits: 8}",
            "simulation: {deadlock_cycles: 500}",
        ]
    )
    unsafe = parse_config(lines + "\nrouting: {algorithm: file, file: ring_routing.py}", folder=tmp_path)
    with pytest.raises(
        DeadlockError, match=r"can deadlock on the .* with 1 VCs; cycle of channels: 0\.1→1 VC0 → 1\.1→2"
    ):
        Simulation(unsafe, 0.9, 1)
    unchecked = parse_config(
        lines + "\nrouting: {algorithm: file, file: ring_routing.py, check: false}", folder=tmp_path
    )
    run = Simulation(unchecked, 0.9, 1)
    with pytest.raises(DeadlockError, match=r"none has moved since cycle \d+; waiting channels: .*→1 VC0"):
        run.advance(100000)


@pytest.mark.parametrize("lines", [
    [MESH, "routing: {algorithm: dor}", "router: {vcs: 1}"],
    [TORUS, "routing: {algorithm: dor, vc_rule: fixed, ties: random}", "router: {vcs: 2}"],
    [TORUS, "routing: {algorithm: dor}", "router: {vcs: 2}"],
    [MESH, "routing: {algorithm: star_channel}", "router: {vcs: 2}"],
    [TORUS, "routing: {algorithm: star_channel}", "router: {vcs: 3}"],
    [MESH, "routing: {algorithm: valiant}", "router: {vcs: 2}"],
    [TORUS, "routing: {algorithm: valiant}", "router: {vcs: 4}"],
    ["topology: {kind: fat_tree, k: 3, n: 2}", "routing: {algorithm: d_mod_k}", "router: {vcs: 1}"],
    ["topology: {kind: fat_tree, k: 2, n: 3}", "routing: {algorithm: nca}", "router: {vcs: 1}"],
    ["topology: {kind: dragonfly, p: 2, a: 4, h: 2}", "routing: {algorithm: dragonfly_min}", "router: {vcs: 2}"],
    ["topology: {kind: dragonfly, p: 2, a: 4, h: 2}", "routing: {algorithm: shortest}", "router: {vcs: 3}"],
    [TORUS, "routing: {algorithm: up_down}", "router: {vcs: 1}"],
    [TORUS, "routing: {algorithm: shortest_escape}", "router: {vcs: 2}"],
])  # fmt: skip
def test_shipped_routing_is_proved_safe_and_delivers_under_overload(lines: list[str]) -> None:
    run = Simulation(config(*lines, "traffic: {packet_flits: 5}"), 1.0, 3)
    run.advance(4000)
    run.check_conservation()
    assert (run.state["host"]["flits_received"] > 0).all()
    assert int(run.state["packets_dropped"]) == 0


def test_minimal_routing_takes_shortest_paths() -> None:
    for lines in ([TORUS], [TORUS, "routing: {algorithm: star_channel}"], [TORUS, "routing: {algorithm: shortest}"]):
        run = Simulation(config(*lines), 0.05, 1)
        run.advance(20000)
        distance = _router_distance(run)
        # uniform traffic: mean routers visited = mean distance + 1
        assert int(run.state["hops_sum"]) / int(run.state["measured"]) == pytest.approx(distance.mean() + 1, rel=0.02)


def test_bad_combinations_are_one_clear_line() -> None:
    with pytest.raises(
        RoutingError, match=r"router.vcs must be at least 2 for routing.algorithm dor on a torus, not 1"
    ):
        Simulation(config(TORUS, "router: {vcs: 1}"), 0.1, 1)
    with pytest.raises(RoutingError, match=r"routing.algorithm d_mod_k needs a topology of kind fat_tree, not mesh"):
        Simulation(config(MESH, "routing: {algorithm: d_mod_k}"), 0.1, 1)
    with pytest.raises(RoutingError, match=r"routing.algorithm must be one of d_mod_k, dor, .* not nonsense"):
        Simulation(config(MESH, "routing: {algorithm: nonsense}"), 0.1, 1)
    with pytest.raises(TrafficError, match=r"traffic.pattern transpose needs a square number of hosts, not 12"):
        Simulation(config(MESH, "traffic: {pattern: transpose}"), 0.1, 1)
    with pytest.raises(NetworkError, match=r"buffer_flits must hold the longest packet \(9 flits\) under vct, not 8"):
        Simulation(config(MESH, "router: {switching: vct}", "traffic: {packet_flits: 9}"), 0.1, 1)


@pytest.mark.parametrize("source", ["bernoulli", "on_off"])
@pytest.mark.parametrize("lengths, mean", [
    ("packet_flits: 3", 3.0), ("packet_range: [1, 5]", 3.0), ("packet_lengths: [1, 5], packet_weights: [3, 1]", 2.0),
])  # fmt: skip
def test_sources_offer_the_load(source: str, lengths: str, mean: float) -> None:
    checked = config(MESH, f"traffic: {{source: {source}, {lengths}, burst_cycles: 20, burst_load: 0.5}}")
    assert checked.traffic.mean_flits() == mean
    run = Simulation(checked, 0.1, 2)
    run.advance(100000)
    offered = int(run.state["flits_created"]) / 100000 / run.topology.hosts
    # 12 hosts · 100 000 cycles: the standard error of the load is below 1 % (Bernoulli) and 2 % (bursts)
    assert offered == pytest.approx(0.1, rel=0.02 if source == "bernoulli" else 0.05)


def test_mser_and_intervals() -> None:
    assert mser5([50.0, 20.0, 5.0, *([1.0, 1.2] * 10)]) == 3
    mean, half = batch_interval([(10, 100), (10, 120)] * 20)
    assert mean == 11.0
    assert half == pytest.approx(0.0, abs=1e-12)
    assert find_cycle(np.array([0, 1, 2, 3]), np.array([1, 2, 1, 0]), 4) in ([1, 2], [2, 1])
    assert find_cycle(np.array([0, 1]), np.array([1, 2]), 3) == []
