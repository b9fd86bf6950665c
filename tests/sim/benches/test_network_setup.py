"""What the simulator can do and hardware cannot is refused before a network is co-simulated."""

import pytest

from hopforge.model.config import Config, parse_config
from hopforge.model.config.uses import USES
from hopforge.model.errors import UserError
from hopforge.sim.benches.network_setup import network_setup

RING = """
name: ring
topology: {kind: torus, radices: [4]}
routing: {algorithm: up_down}
router: {vcs: 2, buffer_flits: 3}
"""


def ring(more: str) -> Config:
    return parse_config(RING + more)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("simulation: {failures: [{cycle: 9, links: [[0, 1]]}]}", r"simulation\.failures must be empty for --part net"),
        ("degraded: {random_links: 1, until_cycle: 50}", r"^degraded\.until_cycle: is not read here"),
        ("degraded: {links: [[0, 1]], from_us: 0.1}", r"^degraded\.from_us: is not read here"),
    ],
)
def test_links_that_change_during_the_run_are_refused(more: str, message: str) -> None:
    """The hardware keeps its links and their rates, so the simulator would run another network."""
    with pytest.raises(UserError, match=message):
        network_setup(ring(more), load=0.5, seed=1, cycles=50)


@pytest.mark.parametrize("more", ["", "degraded: {links: [[0, 1]], factor: 1}", "failed: {links: []}"])
def test_sections_that_change_nothing_are_taken(more: str) -> None:
    assert network_setup(ring(more), load=0.5, seed=1, cycles=50).design.topology.routers == 4


@pytest.mark.parametrize("kind", ["table", "lookup"])
def test_every_section_that_the_simulator_reads_is_read_by_the_co_simulation_too(kind: str) -> None:
    """A section that only the simulator knew would give a difference for which no hardware is to blame."""
    config = parse_config(RING.replace("vcs: 2", f"vcs: 2, route_computation: {kind}"))
    assert USES["net"](config) - USES["cosim --part network"](config) == set()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("switching: vct}\ntraffic: {packet_flits: 12}", "^router.buffer_flits must hold the longest packet .* not 3$"),
        ("route_computation: lookup}\nlookup: {pipeline_depth: 6}", "^lookup.pipeline_depth must be at most 4 "),
    ],
)
def test_reasons_begin_with_the_key(more: str, message: str) -> None:
    """Only then does the command line know file and line."""
    with pytest.raises(UserError, match=message):
        network_setup(parse_config(RING.replace("buffer_flits: 3}", f"buffer_flits: 3, {more}")), 0.5, 1, 50)
