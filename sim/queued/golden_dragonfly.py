"""Ways on a dragonfly of input-output-queued routers once more, plainly: UGALn and Q-adaptive.

From docs/definitions/dragonfly-routing.md; slow, to be compared with the compiled kernel in every cycle.
"""

from typing import Any

import numpy as np

from hopforge.sim.queued.golden import Golden, Packet, Port


class GoldenDragonfly(Golden):
    """Ways on a dragonfly with one link for each pair of groups, from the arrays of the topology."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.p, self.a, self.g = (int(self.topology.params[name]) for name in ("p", "a", "g"))
        self.link: dict[tuple[int, int], Port] = {}
        self.find_links()

    def find_links(self) -> None:
        """Find the port of the link from each group to each other, where there is one."""
        self.link = {}
        for r in range(self.topology.routers):
            for o in range(self.topology.max_ports):
                peer = int(self.topology.peer_router[r, o])
                if peer >= 0 and peer // self.a != r // self.a and (r, o) not in self.known:
                    self.link[r // self.a, peer // self.a] = (r, o)

    def reprogram(self) -> None:
        """Let the routing know what is down, and the hosts send."""
        super().reprogram()
        self.find_links()

    def to(self, r: int, goal: int) -> int:
        """Port towards another router; −1: its group has no link there."""
        if goal // self.a != r // self.a and (r // self.a, goal // self.a) not in self.link:
            return -1
        peers = self.topology.peer_router[r].tolist()
        if goal // self.a == r // self.a:
            return peers.index(goal)
        gate, port = self.link[r // self.a, goal // self.a]
        return port if gate == r else peers.index(gate)

    def minimal(self, r: int, dst: int) -> int:
        """Port of the minimal way to a host."""
        goal = dst // self.p
        return dst % self.p if goal == r else self.to(r, goal)

    def draw_outside(self, r: int, a: int, b: int) -> int:
        """Random router in neither of two groups; if its group has no link to one of them, in the next that has."""
        others = [x for x in range(self.g) if x not in (a, b)]
        chosen = self.router_stream[r].below(len(others) * self.a)
        group = others[chosen // self.a]
        while (a, group) not in self.link or (group, b) not in self.link:
            group = (group + 1) % self.g
        return group * self.a + chosen % self.a


class GoldenUgalNode(GoldenDragonfly):
    """UGALn."""

    def route(self, r: int, i: int, v: int, packet: Packet) -> tuple[int, int]:
        """Output port and virtual channel of a packet."""
        here, goal = r // self.a, packet.dst // self.p // self.a
        direct = self.minimal(r, packet.dst)
        if here == goal:
            return direct, 3
        if i < self.p:
            via = self.draw_outside(r, here, goal)
            around = self.to(r, self.link[here, via // self.a][0]) if self.link[here, via // self.a][0] != r else -1
            around = self.link[here, via // self.a][1] if around < 0 else around
            if around == direct:
                q_min, q_non = self.queue_length(r, direct, 2), self.queue_length(r, around, 0)
            else:
                q_min, q_non = (
                    sum(self.queue_length(r, o, w) for w in range(self.given.vcs)) for o in (max(direct, 0), around)
                )
            if direct < 0 or q_min > 2 * q_non:
                packet.via = via
        if packet.via == r:
            packet.via = None
        if packet.via is None:
            return direct, 2
        return self.to(r, packet.via), 1 if packet.via // self.a == here else 0


class GoldenQAdaptive(GoldenDragonfly):
    """Q-adaptive with ε = 0.05.

    Attributes
    ----------
    local, far : float
        Time of a link in a group, and between groups, with which estimates begin.
    """

    local, far = 30.0, 300.0

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.q: dict[tuple[int, int, int, int], float] = {}
        self.ports = [o for o in range(self.p, self.topology.max_ports) if self.topology.peer_router[0, o] >= 0]

    def first(self, r: int, goal: int, o: int) -> float:
        """Estimate of the empty network; infinite where after this port no group is joined to the goal."""
        peer = int(self.topology.peer_router[r, o])
        here, there = r // self.a, peer // self.a
        if (r, o) in self.known:
            return np.inf
        if here == there:
            if goal == here or (here, goal) in self.link:
                return self.local + self.far
            beyond = {y for (x, y), port in self.link.items() if port[0] == peer}
            return 2 * (self.local + self.far) if any((y, goal) in self.link for y in beyond) else np.inf
        if goal == there:
            return self.far
        if (there, goal) not in self.link:
            return np.inf
        return self.local + (self.far if goal == here or (here, goal) in self.link else 2 * self.far)

    def reprogram(self) -> None:
        """Keep the estimates of ports that led on before and still do."""
        routers, numbers = range(self.topology.routers), range(self.p)
        keys = [(r, goal, n, o) for r in routers for goal in range(self.g) for n in numbers for o in self.ports]
        before = {key: self.estimate(*key) for key in keys}
        super().reprogram()
        self.q = {
            key: value
            for key, value in before.items()
            if np.isfinite(value) and np.isfinite(self.first(key[0], key[1], key[3]))
        }

    def estimate(self, r: int, goal: int, number: int, o: int) -> float:
        """Learned time."""
        return self.q.get((r, goal, number, o), self.first(r, goal, o))

    def best(self, r: int, goal: int, number: int, ports: list[int]) -> int:
        """Port of the smallest estimate."""
        return min(ports, key=lambda o: self.estimate(r, goal, number, o))

    def route(self, r: int, i: int, v: int, packet: Packet) -> tuple[int, int]:
        """Output port and virtual channel of a packet."""
        hops = len(packet.arrivals) - 1
        here, goal, number = r // self.a, packet.dst // self.p // self.a, packet.src % self.p
        port = direct = self.minimal(r, packet.dst)
        first_of_group = hops == 1 and i >= self.p + self.a - 1
        if here != goal and hops > 0 and direct < 0:
            port = self.best(r, goal, number, self.ports[self.a - 1 :])
        elif here != goal and (hops == 0 or (first_of_group and direct < self.p + self.a - 1)):
            if hops == 0:
                other, threshold = self.best(r, goal, number, self.ports), 0.2
            else:
                other, threshold = self.p + self.router_stream[r].below(self.a - 1), 0.35
            q_min = self.estimate(r, goal, number, direct) if direct >= 0 else np.inf
            if direct < 0 or (q_min - self.estimate(r, goal, number, other)) / q_min >= threshold:
                port = other
            if self.router_stream[r].share() < 0.05:
                chosen = self.ports[self.router_stream[r].below(len(self.ports))]
                port = chosen if np.isfinite(self.estimate(r, goal, number, chosen)) else port
        return port, min(hops, 4)

    def note(self, r: int, i: int, packet: Packet) -> Any:
        """Time from the router before to this one, and the least estimate from here on."""
        goal, number = packet.dst // self.p // self.a, packet.src % self.p
        rest = 0.0
        if r // self.a != goal:
            rest = self.estimate(r, goal, number, self.best(r, goal, number, self.ports))
        elif i < self.p + self.a - 1:
            return None
        return goal, number, (packet.arrivals[-1] - packet.arrivals[-2]) * 0.4 + rest

    def learn(self, r: int, o: int, note: Any) -> None:
        """Move an estimate towards the time that has come back."""
        goal, number, value = note
        old = self.estimate(r, goal, number, o)
        if old == np.inf:
            return
        self.q[r, goal, number, o] = old + (0.2 if value < old else 0.04) * (value - old)
