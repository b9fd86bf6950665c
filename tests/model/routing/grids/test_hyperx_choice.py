"""DimWAR, OmniWAR, DAL: the port of a packet against docs/definitions/any-routing.md, with drawn queues and biases.

The weights and which ports may be taken are computed anew from the definition; of equal ports any may be drawn.
"""

from typing import Any

import numpy as np
import pytest
from numba import int64, njit, types

from hopforge.model.config import parse_config
from hopforge.model.kernel.compile import entry
from hopforge.model.network.core.candidates import MASK_AT, PORT_VALUES
from hopforge.model.network.core.net_record import NET_RECORD
from hopforge.model.network.core.records import packet_at
from hopforge.model.routing.grids.hyperx_adaptive import _weighted
from hopforge.sim.run.simulation import Simulation

HOSTS, DRAWS = 2, 12
weighted = njit(_weighted)


@entry(types.void(NET_RECORD, types.int32[::1], types.float64[::1], int64[:, ::1], int64[:, ::1]))
def choose_all(net: Any, table: Any, memory: Any, asked: Any, found: Any) -> None:
    """Choose for each row of `asked` (router, input port, input VC, destination, phase), again and again."""
    out = np.zeros(64, np.int64)
    packet = packet_at(net, 0)
    for k in range(asked.shape[0]):
        for draw in range(found.shape[1]):
            packet.dst, packet.phase = asked[k, 3], asked[k, 4]
            weighted(asked[k, 0], asked[k, 1], asked[k, 2], packet, net, table, memory, out)
            found[k, draw] = out[0]


def coordinates(router: int, sizes: list[int]) -> list[int]:
    place = []
    for size in sizes:
        place.append(router % size)
        router //= size
    return place


class Rules:
    """The definition, for a network of drawn queues."""

    def __init__(self, run: Simulation, algorithm: str, sizes: list[int], bias: float) -> None:
        self.algorithm, self.sizes, self.bias, self.peer = algorithm, sizes, bias, run.topology.peer_router.tolist()
        output = run.state["output_vc"]
        shape = run.topology.routers, run.topology.max_ports, -1
        self.used = (output["depth"] - output["credits"]).reshape(shape).sum(axis=2).tolist()
        self.classes = 2 if algorithm == "dimwar" else 2 * len(sizes)

    def moves(self, router: int, other: int) -> tuple[int, int]:
        """Dimension in which a neighbour lies, and its coordinate there."""
        one, two = coordinates(router, self.sizes), coordinates(other, self.sizes)
        return next((i, y) for i, (x, y) in enumerate(zip(one, two, strict=True)) if x != y)

    def ports(self, router: int, came: int, links: int, goal: int, phase: int) -> dict[int, tuple[float, bool, int]]:
        """Weight, whether it is a deroute, and class of each port that the packet may take."""
        here, there = coordinates(router, self.sizes), coordinates(goal, self.sizes)
        open_in = [i for i, (x, y) in enumerate(zip(here, there, strict=True)) if x != y]
        left = len(open_in)
        travelled = self.moves(self.peer[router][came], router)[0] if came >= HOSTS else -1
        found = {}
        for port, other in enumerate(self.peer[router]):
            if other < 0:
                continue
            i, coordinate = self.moves(router, other)
            if i not in (open_in[:1] if self.algorithm == "dimwar" else open_in):
                continue
            number = int(travelled == i) if self.algorithm == "dimwar" else links
            queue, minimal = self.used[router][port], coordinate == there[i]
            may = {
                "dimwar": travelled != i,
                "omniwar": travelled != i and left < self.classes - number,
                "dal": not phase >> i & 1 and left < self.classes - number,
            }[self.algorithm]
            if minimal:
                found[port] = (left * queue, False, number)
            elif may:
                found[port] = ((left + 1) * (queue + self.bias), True, number)
        return found


@pytest.mark.parametrize("bias", [0, 1.5, -1, -3.25])
@pytest.mark.parametrize("algorithm", ["dimwar", "omniwar", "dal"])
def test_the_port_is_that_of_the_definition(algorithm: str, bias: float) -> None:
    sizes, vcs = [4, 3], 5
    run = Simulation(parse_config(
        f"name: x\ntopology: {{kind: hyperx, sizes: {sizes}, hosts_per_router: {HOSTS}}}\n"
        f"routing: {{algorithm: {algorithm}, bias: {bias}}}\nrouter: {{vcs: {vcs}, buffer_flits: 2}}\n"
    ), 0.1, 1)  # fmt: skip
    state, random = run.state, np.random.default_rng(7)
    depth = state["output_vc"]["depth"]
    share = np.repeat(random.choice([0, 0.3, 1], len(depth) // vcs), vcs)  # of some ports all credits are there
    state["output_vc"]["credits"] = depth - (random.random(len(depth)) * share * (depth + 1)).astype(np.int64)
    rules = Rules(run, algorithm, sizes, bias)
    of_vc = [next(k for k in range(rules.classes) if v < (k + 1) * vcs // rules.classes) for v in range(vcs)]
    asked, links = [], []
    for router in range(run.topology.routers):
        for goal in set(range(run.topology.routers)) - {router}:
            for came in [0, *range(HOSTS, run.topology.max_ports)]:
                before = int(random.integers(0, max(rules.classes - 2, 1))) if came >= HOSTS else 0
                number = 0 if came < HOSTS else 1 + before
                vc = of_vc.index(before)
                asked.append((router, came, vc, goal * HOSTS, int(random.integers(0, 4)) if came >= HOSTS else 0))
                links.append(number)
    found = np.zeros((len(asked), DRAWS), np.int64)
    choose_all(state.record[0], run.plan.table, run.plan.memory, np.array(asked), found)
    kinds = {"minimal": 0, "deroute": 0, "drawn": 0}
    for (router, came, _, goal, phase), number, packed in zip(asked, links, found.tolist(), strict=True):
        ports = rules.ports(router, came, number, goal // HOSTS, phase)
        least = min(weight for weight, _, _ in ports.values())
        best = {port for port, (weight, deroute, _) in ports.items() if weight == least and not deroute}
        best = best or {port for port, (weight, _, _) in ports.items() if weight == least}
        taken = {one % PORT_VALUES for one in packed}
        assert taken <= best, (router, came, number, goal, phase, ports)
        for one in packed:
            low, high = (k * vcs // rules.classes for k in (ports[one % PORT_VALUES][2] + j for j in (0, 1)))
            assert one >> MASK_AT == (1 << high) - (1 << low)  # no free slots are asked for
        kinds["deroute" if ports[min(taken)][1] else "minimal"] += 1
        kinds["drawn"] += len(taken) > 1
    assert min(kinds.values()) > 10, kinds
