"""Valiant, UGAL-L, UGAL-G, compact: the choice at the source against docs/definitions/any-routing.md, drawn queues.

Distances, ways, candidates and costs are computed anew from the definition. What is drawn may be any of them, so the
intermediate routers that turn up are compared with all that can.
"""

import itertools
from typing import Any

import numpy as np
import pytest
from numba import int64, njit, types

from hopforge.model.config import parse_config
from hopforge.model.kernel.compile import entry
from hopforge.model.network.core.net_record import NET_RECORD
from hopforge.model.network.core.records import packet_at
from hopforge.model.routing.ways.detours import _detour
from hopforge.sim.run.simulation import Simulation

DRAWS, BUFFER = 400, 6
MINIMAL = -1
detour = njit(_detour)


@entry(types.void(NET_RECORD, types.int32[::1], types.float64[::1], int64[:, ::1], int64[:, ::1]))
def choose_all(net: Any, table: Any, memory: Any, asked: Any, found: Any) -> None:
    """Let a packet from a host decide for each row of `asked` (router, destination), again and again."""
    out = np.zeros(64, np.int64)
    packet = packet_at(net, 0)
    for k in range(asked.shape[0]):
        for draw in range(found.shape[1]):
            packet.dst, packet.phase, packet.via, packet.hops = asked[k, 1], 0, -1, 0
            detour(asked[k, 0], 0, 0, packet, net, table, memory, out)
            found[k, draw] = packet.via


class Rules:
    """The definition, for a network of drawn queues."""

    def __init__(self, run: Simulation, options: dict[str, Any], groups: list[int] | None) -> None:
        topology, output = run.topology, run.state["output_vc"]
        self.peer, self.options = topology.peer_router.tolist(), options
        used = (output["depth"] - output["credits"]).reshape(topology.routers, topology.max_ports, -1)
        self.used = used.sum(axis=2).tolist()
        self.homes = sorted(set(topology.host_router.tolist()))
        self.far = [self._search(router) for router in range(topology.routers)]
        self.groups = groups

    def _search(self, source: int) -> list[int]:
        far, front = {source: 0}, [source]
        while front:
            front = [there for here in front for there in self.peer[here] if there >= 0 and there not in far
                     and far.setdefault(there, far[here] + 1)]  # fmt: skip
        return [far[router] for router in range(len(self.peer))]

    def links(self, router: int, goal: int) -> int:
        """Links to a router, or (numbers behind the routers) to the nearest router with hosts of a group."""
        return min(self.far[router][one] for one in self._ends(goal))

    def _ends(self, goal: int) -> list[int]:
        group = goal - len(self.peer)
        if group < 0:
            return [goal]
        assert self.groups is not None
        return [one for one in self.homes if self.groups[one] == group]

    def is_at(self, router: int, goal: int) -> bool:
        if goal < len(self.peer):
            return router == goal
        return self.groups is not None and self.groups[router] == goal - len(self.peer)

    def port(self, router: int, goal: int) -> int:
        """The least used port of shortest ways, of equals the first."""
        near = [one for one in self._ends(goal) if self.far[router][one] == self.links(router, goal)]
        ports = [port for port, there in enumerate(self.peer[router])
                 if there >= 0 and any(self.far[there][one] == self.far[router][one] - 1 for one in near)]  # fmt: skip
        return min(ports, key=lambda port: (self.used[router][port], port))

    def queue(self, router: int, goal: int) -> int:
        return int(self.used[router][self.port(router, goal)])

    def along(self, router: int, via: int, home: int) -> int:
        """Queues along the way to an intermediate goal and on; a packet that comes by its destination ends there."""
        total, goal = 0, via
        while True:
            goal = home if self.is_at(router, goal) else goal
            if router == home:
                return total
            total += self.queue(router, goal)
            router = self.peer[router][self.port(router, goal)]

    def drawn(self, router: int, home: int) -> list[int]:
        over = self.options.get("over")
        if over == "neighbours":
            return [one for one in self.peer[router] if one not in (-1, home)]
        if over == "groups":
            assert self.groups is not None
            ends = {self.groups[router], self.groups[home]}
            return [len(self.peer) + group for group in sorted(set(self.groups) - ends)]
        return [one for one in self.homes if one not in (router, home)]

    def outcomes(self, router: int, home: int) -> set[int]:
        """All that can be chosen."""
        algorithm = self.options["algorithm"]
        if algorithm == "valiant":
            return set(self.drawn(router, home)) or {MINIMAL}
        if algorithm == "valiant_compact":
            around = [one for one in self.peer[router] if one not in (-1, home)]
            return set().union(*(self._compact(router, home, one) for one in around))
        if algorithm == "ugal_compact":
            return self._compact_by_queues(router, home)
        many = itertools.product(self.drawn(router, home), repeat=self.options["candidates"])
        return {self._decide(router, home, list(vias)) for vias in many} or {MINIMAL}

    def _compact(self, router: int, home: int, neighbour: int) -> set[int]:
        if self.far[router][home] > 1:
            return {neighbour}
        return {one for one in self.peer[neighbour] if one not in (-1, router, home)} or {MINIMAL}

    def _compact_by_queues(self, router: int, home: int) -> set[int]:
        direct = self.port(router, home)
        ports = [port for port, there in enumerate(self.peer[router]) if there >= 0]
        least = min(ports, key=lambda port: (self.used[router][port], port))
        if 3 * self.used[router][direct] < 2 * BUFFER or least == direct:
            return {MINIMAL}
        return self._compact(router, home, self.peer[router][least])

    def _decide(self, router: int, home: int, vias: list[int]) -> int:
        bias, rule = self.options["bias"], self.options.get("rule", "product")
        if self.options["algorithm"] == "ugal_global":
            sums = [self.along(router, via, home) for via in vias]
            return vias[sums.index(min(sums))] if self.along(router, home, home) > min(sums) + bias else MINIMAL
        queues = [self.queue(router, via) for via in vias]
        links = [self.links(router, via) + self.links(home, via) for via in vias]
        costs = [h * q for h, q in zip(links, queues, strict=True)] if rule == "product" else queues
        best, q_min = costs.index(min(costs)), self.queue(router, home)
        taken = {
            "product": self.far[router][home] * q_min > costs[best] + bias,
            "double": q_min >= 2 * queues[best] + bias,
            "three_halves": q_min >= 3 * queues[best] // 2 + bias,
        }[rule]
        return vias[best] if taken else MINIMAL


SLIM_FLY = "{kind: slim_fly, q: 3, hosts_per_router: 1}"
POLARFLY = "{kind: polarfly, q: 3, hosts_per_router: 2}"
PLUS = "{kind: dragonfly_plus, hosts_per_router: 2, leaves: 2, spines: 3, h: 1}"
DRAGONFLY = "{kind: dragonfly, p: 1, a: 3, h: 1}"
HYPERX = "{kind: hyperx, sizes: [2, 3, 2]}"
CLOS = "{kind: clos, hosts_per_router: 1, pods: 3, leaves: 2, middles: 2, roots: 2}"
RANDOM = "{kind: random_regular, routers: 12, degree: 3, seed: 2}"
TORUS = "{kind: torus, radices: [2, 5]}"
#: group of a router, of the networks that have groups
GROUPS = {
    SLIM_FLY: lambda router: router // 3 % 3, PLUS: lambda router: router // 5, DRAGONFLY: lambda router: router // 3,
}  # fmt: skip


@pytest.mark.parametrize(("network", "options"), [
    (SLIM_FLY, {"algorithm": "ugal", "candidates": 1, "bias": 0}),
    (SLIM_FLY, {"algorithm": "ugal", "candidates": 2, "bias": 0, "over": "groups"}),
    (SLIM_FLY, {"algorithm": "ugal", "candidates": 2, "bias": 2, "over": "neighbours"}),
    (SLIM_FLY, {"algorithm": "ugal_global", "candidates": 1, "bias": 0, "over": "groups"}),
    (POLARFLY, {"algorithm": "ugal", "candidates": 2, "bias": 1, "rule": "double"}),
    (POLARFLY, {"algorithm": "ugal", "candidates": 1, "bias": -3, "rule": "three_halves"}),
    (POLARFLY, {"algorithm": "ugal_global", "candidates": 2, "bias": 3}),
    (POLARFLY, {"algorithm": "valiant_compact"}), (POLARFLY, {"algorithm": "ugal_compact"}),
    (POLARFLY, {"algorithm": "valiant"}), (POLARFLY, {"algorithm": "valiant", "over": "neighbours"}),
    (PLUS, {"algorithm": "ugal", "candidates": 1, "bias": -2}),
    (PLUS, {"algorithm": "ugal", "candidates": 2, "bias": 0, "over": "groups", "rule": "double"}),
    (PLUS, {"algorithm": "ugal_global", "candidates": 1, "bias": 0, "over": "groups"}),
    (PLUS, {"algorithm": "valiant", "over": "groups"}),
    (DRAGONFLY, {"algorithm": "ugal", "candidates": 1, "bias": 0, "over": "groups"}),
    (DRAGONFLY, {"algorithm": "ugal_global", "candidates": 2, "bias": 0, "over": "groups"}),
    (HYPERX, {"algorithm": "ugal", "candidates": 2, "bias": 0}),
    (HYPERX, {"algorithm": "ugal_global", "candidates": 1, "bias": 0, "over": "neighbours"}),
    (CLOS, {"algorithm": "ugal_global", "candidates": 2, "bias": 0}),
    (RANDOM, {"algorithm": "ugal", "candidates": 2, "bias": 0.5}),
    (TORUS, {"algorithm": "ugal", "candidates": 1, "bias": 0}),
    (TORUS, {"algorithm": "ugal_global", "candidates": 1, "bias": -1}),
])  # fmt: skip
def test_the_choice_is_that_of_the_definition(network: str, options: dict[str, Any]) -> None:
    keys = ", ".join(f"{key}: {value}" for key, value in options.items())
    run = Simulation(parse_config(
        f"name: x\ntopology: {network}\nrouting: {{{keys}, ways: all}}\n"
        f"router: {{vcs: 8, buffer_flits: {BUFFER}}}\n"
    ), 0.1, 1)  # fmt: skip
    state, random = run.state, np.random.default_rng(5)
    depth = state["output_vc"]["depth"]
    full = np.repeat(random.choice([0, 0.1, 0.4], len(depth) // 8), 8)  # of some ports all credits are there
    state["output_vc"]["credits"] = depth - (random.random(len(depth)) * full * (depth + 1)).astype(np.int64)
    group = GROUPS.get(network)
    groups = None if group is None else [group(router) for router in range(run.topology.routers)]
    rules = Rules(run, options, groups)
    pairs = [(a, b) for a, b in itertools.product(rules.homes, repeat=2) if a != b]
    host = {router: run.topology.host_router.tolist().index(router) for router in rules.homes}
    found = np.zeros((len(pairs), DRAWS), np.int64)
    asked = np.array([(a, host[b]) for a, b in pairs])
    choose_all(state.record[0], run.plan.table, run.plan.memory, asked, found)
    missing = total = minimal = detours = 0
    for (a, b), row in zip(pairs, found.tolist(), strict=True):
        possible = rules.outcomes(a, b)
        assert set(row) <= possible, (a, b, set(row) - possible)
        missing += len(possible - set(row))  # a pair of drawn routers may be rare
        total += len(possible)
        minimal += MINIMAL in possible
        detours += possible != {MINIMAL}
    assert missing <= total * 0.05
    assert detours > 5
    assert minimal > 5 or options["algorithm"] in ("valiant", "valiant_compact")
