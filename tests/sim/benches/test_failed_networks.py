"""Networks of RTL routers some of whose links have failed from the start, against the network simulator."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from amaranth.hdl import Const

from hopforge.gen.design.configured import NetworkDesign, network_design, whole_network_design
from hopforge.gen.packages.network import network_component
from hopforge.hw.network.network import Network
from hopforge.model.config import Config, parse_config
from hopforge.model.errors import UserError
from hopforge.model.router.links import Link
from hopforge.model.shared import sharing
from hopforge.sim.benches.network import NetworkTraffic, record_network
from hopforge.sim.cosim.network import cosim_network
from hopforge.sim.drive.replay import replay_amaranth

RING = "topology: {kind: torus, radices: [4]}\nrouting: {algorithm: up_down}\n"
TORUS = "topology: {kind: torus, radices: [3, 3]}\nrouting: {algorithm: up_down}\n"
MESH = "topology: {kind: mesh, radices: [3, 2]}\nrouting: {algorithm: up_down}\n"
GRAPH = "topology: {kind: random_regular, routers: 6, degree: 3, seed: 2}\nrouting: {algorithm: tables}\n"
DRAGONFLY = "topology: {kind: dragonfly, p: 1, a: 2, h: 2, g: 3}\nrouting: {algorithm: dragonfly_min}\n"
TRAFFIC = NetworkTraffic(load=0.4, cycles=60, seed=3)
BROKEN = RING + "failed: {links: [[0, 1]]}\n"


def config(text: str) -> Config:
    return parse_config(f"name: broken\nrouter: {{vcs: 3, buffer_flits: 4}}\ntraffic: {{packet_range: [1, 4]}}\n{text}")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(MESH + "failed: {switches: [5], links: [[0, 1]]}\n", id="mesh, switch", marks=pytest.mark.study),
        pytest.param(GRAPH + "failed: {ports: [[0, 1], [5, 2]]}\n", id="graph"),
        pytest.param(DRAGONFLY + "failed: {ports: [[0, 2]]}\n", id="dragonfly", marks=pytest.mark.study),
        pytest.param(TORUS + "failed: {switches: [4], links: [[0, 1]]}\n", id="torus, switch", marks=pytest.mark.study),
        pytest.param(TORUS + "failed: {links: [[0, 1]]}\n", id="torus, link", marks=pytest.mark.study),
        pytest.param(
            TORUS + "failed: {links: [[0, 1], [4, 5]], ports: [[8, 1]]}\n", id="torus, links", marks=pytest.mark.study
        ),
    ],
)
def test_every_flit_takes_the_way_around_in_its_cycle(text: str, tmp_path: Path) -> None:
    report = cosim_network(
        config(text), simulator="icarus", load=TRAFFIC.load, cycles=TRAFFIC.cycles, seed=TRAFFIC.seed, output=tmp_path
    )
    assert report.passed and report.flits > 40


def test_acknowledges_take_the_way_around(tmp_path: Path) -> None:
    """No acknowledge goes over the failed link; the rest of the ring has one of every packet."""
    text = f"""name: broken
router: {{vcs: 2, buffer_flits: 3, flit_bits: 56, tag_bits: 6}}
traffic: {{packet_flits: 2, acknowledge: {{queue: 1, own_queue: 4, table: 3, age_limit_cycles: 60}}}}
{BROKEN}"""
    report = cosim_network(parse_config(text), simulator="icarus", load=0.2, cycles=60, seed=2, output=tmp_path)
    assert report.passed and report.flits > 40


def ends(links: tuple[Link, ...]) -> set[tuple[int, int]]:
    return {(link.source.router, link.target.router) for link in links}


def test_the_generated_network_has_no_wire_of_a_failed_link() -> None:
    """Nothing is sent there, so that no difference of outputs would show such a wire."""
    ring = {(0, 1), (1, 2), (2, 3), (3, 0)}
    whole, broken = (network_component(whole_network_design(config(text))) for text in (RING, BROKEN))
    assert ends(whole.links) == ring | {(b, a) for a, b in ring}
    assert ends(broken.links) == ends(whole.links) - {(0, 1), (1, 0)}


def test_designs_with_and_without_the_section_are_kept_apart() -> None:
    """Commands that are prepared together share designs; a router by itself does not read the section."""
    with sharing():
        found = [network_design(config(BROKEN), service_ports=True, failed=failed) for failed in (True, False, True)]
    assert [design.topology.damaged for design in found] == [True, False, True]


@pytest.mark.parametrize("algorithm", ["dor", "valiant"])
def test_an_algorithm_that_cannot_go_around_is_refused(algorithm: str) -> None:
    with pytest.raises(UserError, match=rf"^routing\.algorithm: must be one of .* with failures, not {algorithm}$"):
        whole_network_design(config(BROKEN.replace("up_down", algorithm)))


@pytest.mark.parametrize(
    ("traffic", "failed", "message"),
    [
        ("reply: {flits: 2, queue: 4}", "switches: [2]", r"^failed\.switches must be empty .* with traffic\.reply: "),
        ("acknowledge: {queue: 4}", "switches: [2]", r"^failed\.switches must be empty .* with traffic\.acknowledge: "),
    ],
)
def test_answers_that_would_not_come_are_refused(traffic: str, failed: str, message: str) -> None:
    text = f"name: broken\nrouter: {{vcs: 4}}\ntraffic: {{{traffic}}}\n{RING}failed: {{{failed}}}\n"
    with pytest.raises(UserError, match=message):
        whole_network_design(parse_config(text))


def network(design: NetworkDesign, links: tuple[Link, ...], kind: type[Network] = Network) -> Network:
    return kind(routers=design.params, links=links, hosts=network_component(design).hosts)


class Leak(Network):
    """No credit comes back over one link that works."""

    def _delayed(self, m: Any, value: Any, cycles: int, name: str) -> Any:
        return Const(0, len(value)) if name == "link2_credit_valid" else super()._delayed(m, value, cycles, name)


def designs() -> tuple[NetworkDesign, NetworkDesign]:
    """Before and after the failure."""
    return whole_network_design(config(RING)), whole_network_design(config(BROKEN))


def whole() -> Network:
    return network_component(designs()[0])


def old_tables() -> Network:
    before, after = designs()
    return network(before, network_component(after).links)


def leak() -> Network:
    after = designs()[1]
    return network(after, network_component(after).links, Leak)


def wrong_link() -> Network:
    after = designs()[1]
    links = network_component(after).links
    return network(after, tuple(link for link in links if {link.source.router, link.target.router} != {1, 2}))


@pytest.mark.parametrize(
    "fault", [*(pytest.param(one, marks=pytest.mark.study) for one in (whole, old_tables, leak)), wrong_link]
)
def test_planted_faults_are_found(fault: Callable[[], Network]) -> None:
    """The section is not read, tables are those before the failure, a credit is lost, another link is cut."""
    recorded = record_network(config(BROKEN), replace(TRAFFIC, cycles=120))
    assert replay_amaranth(fault(), recorded.replay, to_first=True).first is not None


def test_the_bench_of_the_planted_faults_finds_none_without() -> None:
    recorded = record_network(config(BROKEN), replace(TRAFFIC, cycles=120))
    after = designs()[1]
    assert replay_amaranth(network(after, network_component(after).links), recorded.replay).mismatches == 0
