"""Tiers around each other: links, rates and latencies by hand, in every engine, and what takes all links as alike."""

from pathlib import Path

import numpy as np
import pytest

from hopforge.model.config import Config, ConfigError, parse_config
from hopforge.model.errors import UserError
from hopforge.model.network.settings import router_parameters
from hopforge.model.topology import build
from hopforge.model.topology.tiers import cycles_per_flit, link_gbps, link_ns, link_tiers
from hopforge.sim.bounds.prepared import prepare_bounds
from hopforge.sim.programs.application import run_app
from hopforge.sim.programs.simgrid import simgrid_text
from hopforge.sim.run.router_models import router_model

EXANEST = (
    "{kind: tiers, tiers: [{shape: all_to_all, sizes: [4], gbps: 16, latency_ns: 400},"
    " {shape: ring, sizes: [4], through: first, gbps: 20, latency_ns: 300},"
    " {shape: torus, sizes: [3, 3], gbps: 40, latency_ns: 200}]}"
)
PAIRS = (
    "{kind: tiers, tiers: [{shape: ring, sizes: [2], gbps: 4, latency_ns: 500},"
    " {shape: ring, sizes: [2], gbps: 2}]}"
)
"""Routers 0–1 and 2–3 linked at 4 Gbit/s with 500 ns, 0–2 and 1–3 at 2 Gbit/s."""
TIMING = "timing: {link_gbps: 8, switch_base_ns: 51, cable_ns: 50}"


def network(topology: str):
    config = parse_config(f"name: x\ntopology: {topology}\n")
    return build(config.topology, config.address)


def neighbours(topology, router: int) -> list[int]:
    return sorted(int(peer) for peer in topology.peer_router[router] if peer >= 0)


def program(tmp_path: Path, size: int, target: int, engine: str = "flow") -> Config:
    (tmp_path / "trace").mkdir(exist_ok=True)
    for rank in range(4):
        lines = {0: [f"send {target} 0 {size} 6"], target: [f"recv 0 0 {size} 6"]}.get(rank, [])
        text = "".join(f"{rank} {line}\n" for line in ["init", *lines])
        (tmp_path / "trace" / f"rank-{rank + 1}.txt").write_text(text)
    return parse_config(
        f"name: x\ntopology: {PAIRS}\nworkload: {{kind: trace, file: {tmp_path / 'trace'}}}\n{TIMING}\n"
        f"routing: {{algorithm: up_down}}\nrouter: {{vcs: 2}}\n"
        f"app: {{engine: {engine}, backend: embedded, buffered_bytes: 65536, envelope_bytes: 16}}\n"
    )


def test_links_of_exanest() -> None:
    # a node is four routers, a mezzanine 16; the first router of a node has the links between nodes and mezzanines
    found = network(EXANEST)
    assert (found.routers, found.hosts) == (144, 144)
    assert neighbours(found, 1) == [0, 2, 3]
    # in the ring 4 and 12; mezzanines 1, 2 (the ring of three) and 3, 6
    assert neighbours(found, 0) == [1, 2, 3, 4, 12, 16, 32, 48, 96]
    assert neighbours(found, 20) == [4, 16, 21, 22, 23, 24, 36, 68, 116]
    degree = (found.peer_router >= 0).sum(axis=1)
    assert degree.tolist() == [9, 3, 3, 3] * 36


def test_rates_and_latencies_of_exanest() -> None:
    found = network(EXANEST)
    tier, peer = link_tiers(found), found.peer_router
    assert {int(p): int(t) for p, t in zip(peer[0], tier[0], strict=True) if p >= 0} == {
        1: 0, 2: 0, 3: 0, 4: 1, 12: 1, 16: 2, 32: 2, 48: 2, 96: 2,
    }
    assert (tier == -1).sum() == (peer < 0).sum()
    assert sorted(set(link_gbps(found, 80)[peer >= 0])) == [16, 20, 40]
    assert set(link_gbps(found, 80)[found.host_at >= 0]) == {80}
    assert sorted(set(link_ns(found, 50)[peer >= 0])) == [200, 300, 400]
    assert cycles_per_flit(found, 80)[0, found.host_port[0]] == 1
    assert sorted(set(cycles_per_flit(found, 80)[peer >= 0])) == [2, 4, 5]


@pytest.mark.parametrize(("tiers", "edges"), [
    ("{shape: ring, sizes: [5]}", {(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)}),
    ("{shape: mesh, sizes: [2, 3]}", {(0, 1), (2, 3), (4, 5), (0, 2), (1, 3), (2, 4), (3, 5)}),
    ("{shape: torus, sizes: [2, 3]}", {(0, 1), (2, 3), (4, 5), (0, 2), (1, 3), (2, 4), (3, 5), (0, 4), (1, 5)}),
    ("{shape: torus, sizes: [1, 2]}", {(0, 1)}),
    ("{shape: ring, sizes: [2]}, {shape: ring, sizes: [2], through: first}", {(0, 1), (2, 3), (0, 2)}),
    ("{shape: ring, sizes: [2]}, {shape: ring, sizes: [2]}", {(0, 1), (2, 3), (0, 2), (1, 3)}),
    # only routers with links of the second tier have those of the third
    ("{shape: ring, sizes: [2]}, {shape: ring, sizes: [2], through: first}, {shape: all_to_all, sizes: [2]}",
     {(0, 1), (2, 3), (4, 5), (6, 7), (0, 2), (4, 6), (0, 4), (2, 6)}),
])  # fmt: skip
def test_shapes(tiers: str, edges: set[tuple[int, int]]) -> None:
    found = network(f"{{kind: tiers, tiers: [{tiers}]}}")
    links = {(router, peer) for router in range(found.routers) for peer in neighbours(found, router) if router < peer}
    assert links == edges
    assert sum(len(neighbours(found, router)) for router in range(found.routers)) == 2 * len(edges)  # none twice


@pytest.mark.parametrize(("target", "ns", "gbps"), [
    (1, 51 * 2 + 50 * 2 + 500, 4), (2, 51 * 2 + 50 * 3, 2),
])  # fmt: skip
@pytest.mark.parametrize("size", [1000, 100_000])
def test_flow_by_hand(tmp_path: Path, target: int, ns: float, gbps: float, size: int) -> None:
    found = run_app(program(tmp_path, size, target)).found.makespan_s
    assert found == pytest.approx(ns * 1e-9 + (size + 16) * 8 / (gbps * 1e9), rel=1e-9)


def test_a_window_between_the_rates_of_two_tiers(tmp_path: Path) -> None:
    # 526 bytes in two latencies of 702 ns: less than 4 Gbit/s, more than the 2 Gbit/s of the other tier
    config = program(tmp_path, 100_000, 1)
    config = config.model_copy(update={"app": config.app.model_copy(update={"tcp_window_bytes": 526})})
    assert run_app(config).found.makespan_s == pytest.approx(702e-9 + 100_016 / (526 / 1404e-9), rel=1e-9)


def test_messages_one_after_the_other_take_all_links_as_alike(tmp_path: Path) -> None:
    config = program(tmp_path, 1000, 1)
    config = config.model_copy(update={"app": config.app.model_copy(update={"injection": "queued"})})
    with pytest.raises(UserError, match=r"topology.tiers: app.injection: queued in engine flow takes all links"):
        run_app(config)


@pytest.mark.parametrize("target", [1, 2])
def test_the_router_simulator_beside_flow(tmp_path: Path, target: int) -> None:
    packet, flow = (
        run_app(program(tmp_path, 200_000, target, engine)).found.makespan_s for engine in ("packet", "flow")
    )
    assert packet == pytest.approx(flow, rel=0.02)


def test_cycles_of_links() -> None:
    # a flit of 8 bytes takes 8 ns at 8 Gbit/s: 450 ns more than the cable are 56 cycles
    config = parse_config(f"name: x\ntopology: {PAIRS}\n{TIMING}\ntraffic: {{flit_bytes: 8}}\n")
    topology = build(config.topology, config.address)
    found = router_parameters(config, topology)
    assert {int(c) for c in found.link_latency_cycles[link_tiers(topology) == 0]} == {1 + 56}
    assert {int(c) for c in found.link_latency_cycles[link_tiers(topology) == 1]} == {1}
    assert np.array_equal(found.cycles_per_flit, np.array([1, 2, 4])[link_tiers(topology) + 1])


def test_simgrid_gets_both() -> None:
    config = parse_config(f"name: x\ntopology: {PAIRS}\n{TIMING}\n")
    text = simgrid_text(build(config.topology, config.address), config, full=False)
    links = [line for line in text.splitlines() if line.startswith('<link id="r') and "-h" not in line]
    assert sum('bandwidth="4Gbps" latency="551ns"' in line for line in links) == 4
    assert sum('bandwidth="2Gbps" latency="101ns"' in line for line in links) == 4
    assert len(links) == 8
    assert text.count('bandwidth="8Gbps"') == 8


@pytest.mark.parametrize(("old", "new", "message"), [
    ("gbps: 4", "gbps: 3", r"topology.tiers\[0\].gbps: must be timing.link_gbps=8 or that divided by a whole number"),
    ("gbps: 2", "gbps: 16", r"topology.tiers\[1\].gbps: must be timing.link_gbps=8 or .*, not 16"),
])  # fmt: skip
def test_the_simulator_counts_whole_cycles_of_a_flit(old: str, new: str, message: str) -> None:
    config = parse_config(f"name: x\ntopology: {PAIRS.replace(old, new)}\n{TIMING}\n")
    with pytest.raises(UserError, match=message):
        router_parameters(config, build(config.topology, config.address))


def test_what_takes_all_links_as_alike_refuses_them() -> None:
    with pytest.raises(UserError, match=r"topology.tiers: hopforge bounds takes all links as alike"):
        prepare_bounds(parse_config(f"name: x\ntopology: {PAIRS}\n"))
    queued = parse_config(f"name: x\ntopology: {PAIRS}\nrouter: {{model: input_output_queued}}\n")
    with pytest.raises(UserError, match=r"topology.tiers: router.model input_output_queued takes all links as alike"):
        router_model(queued, "net")
    alike = PAIRS.replace(", gbps: 4, latency_ns: 500", "").replace(", gbps: 2", "")
    prepare_bounds(parse_config(f"name: x\ntopology: {alike}\n"))
    router_model(parse_config(f"name: x\ntopology: {alike}\nrouter: {{model: input_output_queued}}\n"), "net")


@pytest.mark.parametrize(("tiers", "message"), [
    ("[]", "tiers: must not be empty"),
    ("[{shape: ring, sizes: [2, 2]}]", "sizes: must be one number for shape=ring, not 2"),
    ("[{shape: star, sizes: [2]}]", "shape: must be 'all_to_all', 'ring', 'mesh' or 'torus', not 'star'"),
    ("[{shape: ring, sizes: [2], gbps: 0}]", "gbps: must be more than 0.0, not 0"),
])  # fmt: skip
def test_bad_keys(tiers: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        network(f"{{kind: tiers, tiers: {tiers}}}")
