"""Networks at the edge of what hardware takes, drawn once at random: every flit in its cycle."""

from itertools import product

import pytest

from hopforge.model.config import parse_config
from hopforge.sim.benches.network import NetworkTraffic, record_network
from hopforge.sim.drive.replay import replay_amaranth

ENGINES = "tcam: {kind: flops, rows: 16, latency_cycles: 3}, mshrs: 2"
ONE = {
    "table": "router: {vcs: 2, buffer_flits: 4, lookahead: true, rc_cycles: 1, flit_bits: 128}",
    "lookup": "router: {vcs: 2, buffer_flits: 4, lookahead: true, route_computation: lookup, flit_bits: 128}",
}


def equal(text: str) -> None:
    """Play the network on Amaranth's simulator."""
    recorded = record_network(parse_config(text), NetworkTraffic(load=0.6, cycles=40, seed=2))
    assert recorded.flits > 40
    assert replay_amaranth(recorded.component, recorded.replay).first is None


@pytest.mark.parametrize("kind", ONE)
@pytest.mark.parametrize("spread", [False, True])
def test_one_router_without_links_whose_heads_bring_their_route_along(kind: str, spread: bool) -> None:
    """No output leads to a router, so that no engine is at an output and nobody is behind one."""
    more = ", spread: entropy}\ntraffic: {packet_range: [1, 4], entropy: {}}" if spread else "}"
    equal(
        f"name: one\ntopology: {{kind: fat_tree, k: 3, n: 0}}\n{ONE[kind]}\nrouting: {{algorithm: minimal{more}\n"
        f"lookup: {{reduction: false, cache: {{entries: 4, ways: 2}}, {ENGINES}}}\n"
    )


@pytest.mark.parametrize(("network", "sets", "epoch_bits"), [
    ("{kind: mesh, radices: [2]}", 64, 2),
    *(pytest.param("{kind: torus, radices: [3]}", *each, marks=pytest.mark.study) for each in product((4, 64), (1, 2))),
])  # fmt: skip
def test_caches_are_in_use_when_packets_come_although_flushes_had_to_wait(
    network: str, sets: int, epoch_bits: int
) -> None:
    """The writes that make the engine a switch of the network request more flushes than can be open at a time."""
    equal(
        f"name: few_epochs\ntopology: {network}\n"
        "router: {vcs: 2, buffer_flits: 4, route_computation: lookup}\n"
        f"lookup: {{cache: {{entries: {2 * sets}, ways: 2, epoch_bits: {epoch_bits}}}, {ENGINES}}}\n"
    )
