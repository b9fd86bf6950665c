"""Patterns on coordinates, against their definitions written out digit by digit."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from hopforge.model.config import ConfigError, parse_config
from hopforge.model.topology import Topology, build
from hopforge.sim.traffic.demand import mean_demand
from hopforge.sim.traffic.patterns import PATTERNS, TrafficError

SHAPES = {
    "hyperx": ("{kind: hyperx, sizes: [4, 3, 4], hosts_per_router: 2}", (4, 3, 4), 2),
    "mesh": ("{kind: mesh, radices: [6, 6], hosts_per_router: 4}", (6, 6), 4),
    "torus": ("{kind: torus, radices: [5, 5], hosts_per_router: 2}", (5, 5), 2),
    "complete": ("{kind: fully_connected, routers: 6, hosts_per_router: 3}", (6,), 3),
}


def network(section: str) -> Topology:
    config = parse_config(f"name: x\ntopology: {section}\n")
    return build(config.topology, config.address)


def goals(topology: Topology, pattern: str) -> list[int]:
    plan = PATTERNS[pattern](topology, {}, np.random.default_rng(0))
    found: list[int] = plan.table.tolist()
    return found


def hosts(sizes: tuple[int, ...], terminals: int) -> dict[tuple[tuple[int, ...], int], int]:
    """(coordinates, terminal) → number of the host, counted one by one: the terminal fastest, then dimension 0."""
    places = product(*(range(k) for k in reversed(sizes)))
    return {(place[::-1], t): number for number, (place, t) in enumerate(product(places, range(terminals)))}


@pytest.mark.parametrize("shape", SHAPES)
def test_complement_reverse_and_tornado(shape: str) -> None:
    section, sizes, terminals = SHAPES[shape]
    topology, number = network(section), hosts(sizes, terminals)
    reverse, tornado = (goals(topology, f"dimension_{name}") for name in ("complement_reverse", "tornado"))
    assert len(number) == topology.hosts == len(reverse)
    further = {3: 1, 4: 1, 5: 2, 6: 2}
    for (place, t), host in number.items():
        away = tuple(k - 1 - x for k, x in zip(sizes, place, strict=True))
        assert reverse[host] == number[away[::-1], t]
        assert tornado[host] == number[tuple((x + further[k]) % k for k, x in zip(sizes, place, strict=True)), t]


def test_swap2() -> None:
    """Half a line is 2 of 4 and 3 of 6; of 5 the middle stays and 0, 1 exchange with 3, 4; of 3: 0 with 2."""
    partner = {4: [2, 3, 0, 1], 6: [3, 4, 5, 0, 1, 2], 5: [3, 4, 2, 0, 1], 3: [2, 1, 0]}
    for shape in ("hyperx", "mesh", "torus"):
        section, sizes, terminals = SHAPES[shape]
        found, number = goals(network(section), "swap2"), hosts(sizes, terminals)
        for (place, t), host in number.items():
            d, there = host % 2, list(place)
            there[d] = partner[sizes[d]][place[d]]
            assert found[host] == number[tuple(there), t]


@pytest.mark.parametrize(("shape", "dimension"), [("hyperx", 0), ("hyperx", 2), ("mesh", 1), ("complete", 0)])
def test_bisection(shape: str, dimension: int) -> None:
    section, sizes, terminals = SHAPES[shape]
    topology, number = network(section), hosts(sizes, terminals)
    rate = mean_demand(topology, "uniform_random_bisection", {"dimension": dimension}, np.random.default_rng(0),
                       to_hosts=True).rate  # fmt: skip
    wanted = np.zeros((topology.routers, topology.hosts))
    for (a, t), source in number.items():
        ends = [host for (b, u), host in number.items() if b[dimension] == sizes[dimension] - 1 - a[dimension]
                and u == terminals - 1 - t]  # fmt: skip
        wanted[source // terminals, ends] += 1 / len(ends)
    assert rate == pytest.approx(wanted)


@pytest.mark.parametrize(("section", "options", "pattern", "said"), [
    ("{kind: slim_fly, q: 4}", {}, "swap2",
     "traffic.pattern swap2 needs a topology of kind hyperx, fully_connected, mesh or torus, not slim_fly"),
    ("{kind: mesh, radices: [4, 6]}", {}, "dimension_complement_reverse",
     "traffic.pattern dimension_complement_reverse needs sizes that read the same backwards, not [4, 6]"),
    ("{kind: mesh, radices: [4]}", {}, "swap2", "traffic.pattern swap2 needs two dimensions or more, not [4]"),
    ("{kind: mesh, radices: [2, 2]}", {}, "swap2",
     "hosts_per_router must be even on sizes [2, 2], not 1"),
    ("{kind: torus, radices: [4, 5]}", {"dimension": 1}, "uniform_random_bisection",
     "traffic.pattern uniform_random_bisection needs an even size of dimension 1, which it halves, not 5"),
    ("{kind: torus, radices: [4, 5]}", {"dimension": 2}, "uniform_random_bisection",
     "traffic.dimension must be from 0 to 1, not 2"),
])  # fmt: skip
def test_networks_that_do_not_fit(section: str, options: dict[str, Any], pattern: str, said: str) -> None:
    with pytest.raises(TrafficError) as error:
        PATTERNS[pattern](network(section), options, np.random.default_rng(0))
    assert said in str(error.value)


def test_the_dimension_is_of_one_pattern() -> None:
    text = "name: x\ntopology: {kind: torus, radices: [4, 4]}\ntraffic: {pattern: tornado, dimension: 1}\n"
    with pytest.raises(ConfigError, match="is for pattern=uniform_random_bisection only, not pattern=tornado"):
        parse_config(text)
