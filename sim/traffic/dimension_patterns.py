"""Traffic patterns on the coordinates of a HyperX or a grid: those that HyperX routing is compared with.

Definitions: docs/definitions/traffic-patterns.md. Host ``port`` of router (x_0, x_1, …) is number
``port + hosts_per_router · (x_0 + k_0 · (x_1 + k_1 · …))``.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.topology import Topology
from hopforge.sim.traffic.patterns import (
    TrafficError,
    TrafficPlan,
    destination_rule,
    draw_host,
    permutation_plan,
    register,
)

#: name of the pattern whose destinations are drawn
BISECTION = "uniform_random_bisection"
#: kinds with coordinates
KINDS = ("hyperx", "fully_connected", "mesh", "torus")


class _Coordinates:
    """Sizes of the dimensions, hosts of a router, and coordinates of every host."""

    def __init__(self, topology: Topology, name: str) -> None:
        if topology.kind not in KINDS:
            kinds = f"{', '.join(KINDS[:-1])} or {KINDS[-1]}"
            raise TrafficError(f"traffic.pattern {name} needs a topology of kind {kinds}, not {topology.kind}")
        params = topology.params
        sizes: Any = params.get("sizes") or params.get("radices") or (topology.routers,)
        self.sizes = [int(size) for size in sizes]
        self.terminals = topology.hosts // topology.routers
        host = np.arange(topology.hosts)
        self.terminal, router = host % self.terminals, host // self.terminals
        self.of_host: list[NDArray[np.int64]] = []
        for size in self.sizes:
            self.of_host.append(router % size)
            router = router // size

    def host(self, place: list[NDArray[np.int64]]) -> NDArray[np.int64]:
        """Return the numbers of the hosts with the same terminals at these coordinates."""
        router = np.zeros_like(self.terminal)
        for size, x in zip(reversed(self.sizes), reversed(place), strict=True):
            router = router * size + x
        return router * self.terminals + self.terminal


@register("dimension_complement_reverse")
def prepare_dimension_complement_reverse(
    topology: Topology, options: dict[str, Any], generator: np.random.Generator
) -> TrafficPlan:
    """Host of router (x_0, …, x_n) sends to the same one of (k − 1 − x_n, …, k − 1 − x_0)."""
    name = "dimension_complement_reverse"
    grid = _Coordinates(topology, name)
    if grid.sizes != grid.sizes[::-1]:
        raise TrafficError(f"traffic.pattern {name} needs sizes that read the same backwards, not {grid.sizes}")
    return permutation_plan(
        grid.host([size - 1 - x for size, x in zip(grid.sizes, reversed(grid.of_host), strict=True)])
    )


@register("dimension_tornado")
def prepare_dimension_tornado(
    topology: Topology, options: dict[str, Any], generator: np.random.Generator
) -> TrafficPlan:
    """⌈k/2⌉ − 1 further in every dimension, around the end."""
    grid = _Coordinates(topology, "dimension_tornado")
    return permutation_plan(
        grid.host([(x + (size + 1) // 2 - 1) % size for size, x in zip(grid.sizes, grid.of_host, strict=True)])
    )


@register("swap2")
def prepare_swap2(topology: Topology, options: dict[str, Any], generator: np.random.Generator) -> TrafficPlan:
    """Hosts of even number exchange with half a line away in dimension 0, those of odd number in dimension 1."""
    grid = _Coordinates(topology, "swap2")
    if len(grid.sizes) < 2:
        raise TrafficError(f"traffic.pattern swap2 needs two dimensions or more, not {grid.sizes}")
    odd = np.arange(topology.hosts) % 2 == 1
    place = list(grid.of_host)
    for dimension, moves in ((0, ~odd), (1, odd)):
        size, x = grid.sizes[dimension], grid.of_host[dimension]
        step = np.where(x < size // 2, 1, np.where(x > (size - 1) // 2, -1, 0)) * ((size + 1) // 2)
        place[dimension] = np.where(moves, x + step, x)
    goal = grid.host(place)
    if (goal[goal] != np.arange(topology.hosts)).any():
        raise TrafficError(
            f"traffic.pattern swap2 exchanges pairs of hosts of equal parity: hosts_per_router must be even on sizes "
            f"{grid.sizes}, not {grid.terminals}"
        )
    return permutation_plan(goal)


def _bisection(host: int, number: int, net: Any, table: Any) -> int:
    # table: routers below this dimension, its size, hosts of a router, places to draw from
    below, size, terminals = table[0], table[1], table[2]
    router = host // terminals
    drawn = draw_host(net, host, table[3])
    high, low = drawn // below, drawn % below
    goal = (high * size + size - 1 - router // below % size) * below + low
    return goal * terminals + terminals - 1 - host % terminals


@register(BISECTION)
def prepare_uniform_random_bisection(
    topology: Topology, options: dict[str, Any], generator: np.random.Generator
) -> TrafficPlan:
    """Complement of coordinate ``dimension`` and of the terminal's number; any coordinates in the others."""
    grid = _Coordinates(topology, BISECTION)
    dimension = int(options.get("dimension", 0))
    if dimension >= len(grid.sizes):
        raise TrafficError(f"traffic.dimension must be from 0 to {len(grid.sizes) - 1}, not {dimension}")
    size = grid.sizes[dimension]
    if size % 2:
        raise TrafficError(
            f"traffic.pattern {BISECTION} needs an even size of dimension {dimension}, which it halves, not {size}"
        )
    below = int(np.prod(grid.sizes[:dimension], dtype=np.int64))
    table = np.array([below, size, grid.terminals, topology.routers // size], np.int32)
    return TrafficPlan(destination_rule(_bisection), table)
