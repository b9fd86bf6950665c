"""Networks of RTL routers some of whose links are slow (section `degraded`), against the network simulator."""

from dataclasses import replace
from pathlib import Path

import pytest

from hopforge.gen.design.configured import network_design, whole_network_design
from hopforge.gen.packages.network import network_component
from hopforge.gen.packages.parts import part_files
from hopforge.hw.network.network import Network
from hopforge.model.config import Config, parse_config
from hopforge.model.errors import UserError
from hopforge.sim.benches.network import NetworkTraffic, record_network
from hopforge.sim.cosim.network import cosim_network
from hopforge.sim.drive.replay import replay_amaranth

MESH = "topology: {kind: mesh, radices: [3]}\nrouting: {algorithm: dor}\n"
RING = "topology: {kind: torus, radices: [4]}\nrouting: {algorithm: up_down}\n"
SLOW = "degraded: {links: [[0, 1]], factor: 0.25}\n"
CLASSES = "traffic: {classes: [{name: a, share: 0.5, vcs: 2, priority: 1}, {name: b, share: 0.5, vcs: 2}]}\n"
LENGTHS = "traffic: {packet_range: [1, 4]}\n"
LOOKUP = "lookup: {mshrs: 2, cache: {entries: 8, ways: 2}, tcam: {kind: flops, rows: 16}}\n"
TRAFFIC = NetworkTraffic(load=0.5, cycles=80, seed=3)


def config(text: str, router: str = "", traffic: str = LENGTHS) -> Config:
    return parse_config(f"name: slow\nrouter: {{vcs: 4, buffer_flits: 3{router}}}\n{traffic}{text}")


@pytest.mark.parametrize(
    ("text", "router", "traffic"),
    [
        (MESH + SLOW, ", speculation: true, link_latency_cycles: 2", LENGTHS),
        (MESH + SLOW, ", va: wavefront, sa: input_first, arbiter: matrix, credit_delay_cycles: 2", LENGTHS),
        (MESH + SLOW, ", qos: strict, va: free_queue", CLASSES),
        (RING + "degraded: {random_links: 2, factor: 0.5}\nfailed: {links: [[0, 1]]}\n", "", LENGTHS),
        # what others have, too: in the study
        pytest.param(
            MESH + SLOW + LOOKUP, ", route_computation: lookup, lookahead: true", LENGTHS, marks=pytest.mark.study
        ),
        pytest.param(MESH + SLOW, "", LENGTHS, marks=pytest.mark.study),
        pytest.param(MESH + SLOW, ", va: free_queue, vc_release: credits", LENGTHS, marks=pytest.mark.study),
        pytest.param(MESH + SLOW, ", qos: weighted", CLASSES, marks=pytest.mark.study),
        pytest.param(MESH + SLOW, ", route_computation: lookup", LENGTHS, marks=pytest.mark.study),
    ],
)
@pytest.mark.thinned(2)
def test_every_flit_in_its_cycle(text: str, router: str, traffic: str, tmp_path: Path) -> None:
    report = cosim_network(
        config(text, router, traffic), simulator="icarus", load=TRAFFIC.load, cycles=TRAFFIC.cycles, seed=TRAFFIC.seed,
        output=tmp_path,
    )  # fmt: skip
    assert report.passed and report.flits > 80


def changed(cycles: dict[tuple[int, int], int]) -> Network:
    """The slow network with other cycles of a flit at (router, port)."""
    design = whole_network_design(config(MESH + SLOW))
    routers = list(design.params)
    for (router, port), value in cycles.items():
        now = list(routers[router].cycles_per_flit or [1] * routers[router].ports)
        now[port] = value
        routers[router] = replace(routers[router], cycles_per_flit=tuple(now))
    whole = network_component(design)
    return Network(routers=routers, links=whole.links, hosts=whole.hosts)


@pytest.mark.parametrize(
    "cycles",
    [
        pytest.param({(1, 2): 1}, id="fast the other way", marks=pytest.mark.study),
        pytest.param({(0, 1): 5}, id="too slow", marks=pytest.mark.study),
        pytest.param({(0, 0): 2}, id="a host's link, too"),
        pytest.param({(0, 1): 1}, id="fast one way", marks=pytest.mark.study),
        pytest.param({(0, 1): 3}, id="too fast", marks=pytest.mark.study),
        pytest.param({(1, 1): 4}, id="another link, too", marks=pytest.mark.study),
    ],
)
def test_planted_faults_are_found(cycles: dict[tuple[int, int], int]) -> None:
    recorded = record_network(config(MESH + SLOW), TRAFFIC)
    assert replay_amaranth(changed(cycles), recorded.replay, to_first=True).first is not None


def test_the_bench_of_the_planted_faults_finds_none_without() -> None:
    recorded = record_network(config(MESH + SLOW), TRAFFIC)
    assert replay_amaranth(changed({}), recorded.replay).mismatches == 0


def test_only_ends_of_the_slow_link_wait() -> None:
    """The link is slow both ways; a router by itself does not read the section."""
    found = [params.cycles_per_flit for params in whole_network_design(config(MESH + SLOW)).params]
    assert found == [(1, 4, 1), (1, 1, 4), ()]
    assert all(params.cycles_per_flit == () for params in network_design(config(MESH + SLOW)).params)


def test_manifest_and_verilog_know_of_it() -> None:
    slow, fast = (part_files(config(MESH + more), "network") for more in (SLOW, ""))
    assert '"cycles_per_flit": [1, 4, 1]' in slow["slow_network_routers.json"]
    assert "cycles_per_flit" not in fast["slow_network_routers.json"]
    assert "accepts1" in slow["slow_network.sv"] and "accepts1" not in fast["slow_network.sv"]


@pytest.mark.parametrize(
    ("text", "router", "message"),
    [
        ("degraded: {links: [[0, 1]], factor: 0.0009765}", "", r"^degraded\.factor must be at least 1/1024 .*, not 0"),
        ("degraded: {links: [[0, 1]], factor: 0.3}", "", r"^degraded\.factor: must be 1 divided by a whole number"),
        ("degraded: {links: [[0, 1]], until_cycle: 50}", "", r"^degraded\.until_cycle: is not read here"),
        ("degraded: {links: [[0, 2]]}", "", r"^degraded: there is no link between routers 0 and 2 "),
        (SLOW, ", va: free_queue, sa: input_ahead", r"^router\.sa must be another than input_ahead .* with degraded"),
    ],
)
def test_what_hardware_cannot_do_is_refused(text: str, router: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        whole_network_design(config(MESH + text, router))
