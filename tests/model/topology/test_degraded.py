"""Links that are slower than they should be: which they are, what is left, and what cannot be."""

import itertools

import numpy as np
import pytest

from hopforge.model.config import ConfigError, parse_config
from hopforge.model.errors import UserError
from hopforge.model.network.service_ports import with_service_ports
from hopforge.model.topology import Topology, build
from hopforge.model.topology.degraded import with_degraded
from hopforge.model.topology.tiers import cycles_per_flit, has_speeds, link_gbps, link_ns


def network(section: str, topology: str = "{kind: mesh, radices: [3, 3]}", seed: int = 1) -> Topology:
    config = parse_config(f"name: x\nseed: {seed}\ntopology: {topology}\ndegraded: {section}\n")
    return with_degraded(build(config.topology, config.address), config.degraded, seed)


def slow(topology: Topology) -> set[tuple[int, int]]:
    """Pairs of routers whose link is slow; both ways are."""
    assert topology.rate_share is not None
    ways = {(a, int(topology.peer_router[a, p])) for a, p in np.argwhere(topology.rate_share < 1).tolist()}
    assert {(b, a) for a, b in ways} == ways
    return {(a, b) for a, b in ways if a < b}


def test_named_links_have_what_is_left_of_their_rate() -> None:
    found = network("{links: [[1, 0], [4, 7]], factor: 0.25}")
    assert slow(found) == {(0, 1), (4, 7)}
    rates = link_gbps(found, 80.0)
    assert sorted(np.unique(rates)) == [20.0, 80.0]
    assert (rates == 20).sum() == 4
    assert (link_ns(found, 7.0) == 7).all()
    assert np.unique(cycles_per_flit(found, 80.0)).tolist() == [1, 4]
    assert not has_speeds(network("{links: [[0, 1]], factor: 1}"))
    assert not has_speeds(network("{factor: 0.5}"))


def test_one_of_parallel_links() -> None:
    ring = "{kind: torus, radices: [2]}"  # + and - lead to the same router
    both, one = network("{links: [[0, 1]]}", ring), network("{ports: [[0, 1]]}", ring)
    assert both.rate_share is not None
    assert one.rate_share is not None
    assert ((both.rate_share < 1).sum(), (one.rate_share < 1).sum()) == (4, 2)
    assert one.rate_share[0, 1] == one.rate_share[1, one.peer_port[0, 1]] == 0.5


def test_drawn_links_are_those_of_the_seed_and_more_are_others_besides() -> None:
    sets = [slow(network(f"{{random_links: {count}}}")) for count in range(1, 13)]
    assert [len(each) for each in sets] == list(range(1, 13))
    assert all(few < many for few, many in itertools.pairwise(sets))
    assert slow(network("{random_links: 3}")) == sets[2]
    assert any(slow(network("{random_links: 3}", seed=seed)) != sets[2] for seed in range(2, 6))
    with pytest.raises(UserError, match=r"^degraded.random_links: must be at most the 12 links of the .*, not 13$"):
        network("{random_links: 13}")


def test_rates_of_tiers_are_divided_and_their_latencies_stay() -> None:
    tiers = "{kind: tiers, tiers: [{shape: ring, sizes: [2], gbps: 8, latency_ns: 30}, {shape: ring, sizes: [2]}]}"
    found = network("{links: [[0, 1]]}", tiers)
    assert sorted(np.unique(link_gbps(found, 40.0))) == [4.0, 8.0, 40.0]
    assert np.unique(cycles_per_flit(found, 40.0)).tolist() == [1, 5, 10]
    assert sorted(np.unique(link_ns(found, 50.0))) == [30.0, 50.0]


def test_a_service_port_is_not_slow() -> None:
    wider = with_service_ports(network("{links: [[0, 1]]}"))
    assert wider.rate_share is not None
    assert wider.rate_share.shape == wider.peer_router.shape
    assert slow(wider) == {(0, 1)}


def test_mistakes() -> None:
    with pytest.raises(UserError, match=r"^degraded: there is no link between routers 0 and 4 of the 3x3 mesh$"):
        network("{links: [[0, 4]]}")
    with pytest.raises(UserError, match=r"^degraded: router 9 does not exist"):
        network("{links: [[0, 9]]}")
    with pytest.raises(ConfigError, match=r"degraded.factor: must be more than 0"):
        network("{factor: 0}")
    with pytest.raises(UserError, match=r"^degraded.factor: must be 1 divided by a whole number, .*, not 0.3 \(app"):
        cycles_per_flit(network("{links: [[0, 1]], factor: 0.3}"), 80.0)
