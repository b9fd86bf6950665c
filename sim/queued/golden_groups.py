"""Q-adaptive on groups of any shape once more, plainly, as in docs/definitions/learning-on-groups.md.

Ways are found by searching the graph; nothing is shared with `model.routing.dragonflies.group_ways`.
"""

from typing import Any

from hopforge.sim.queued.golden import Golden, Packet

Key = tuple[int, int, int, int]


class GoldenGroups(Golden):
    """Q-adaptive with ε = 0.05 on leaves and spines.

    Attributes
    ----------
    size : int
        Routers of a group.
    local, far : float
        Time of a link in a group, and between groups, with which estimates begin.
    q : dict
        (router, goal, number of the source, port) → what was learned.
    """

    local, far = 30.0, 300.0
    last_class, classes = 1, 2

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.size = self.routers_of_a_group()
        self.links: list[list[tuple[int, int]]] = [
            [(o, int(y)) for o, y in enumerate(row) if y >= 0] for row in self.topology.peer_router.tolist()
        ]
        self.hosts = [sorted(h for h in row if h >= 0) for row in self.topology.host_at.tolist()]
        self.q: dict[Key, float] = {}
        self.apart = [self.search(r) for r in range(self.topology.routers)]

    def routers_of_a_group(self) -> int:
        """Routers of a group."""
        return int(self.topology.params["leaves"]) + int(self.topology.params["spines"])

    def group(self, r: int) -> int:
        """Group of a router."""
        return r // self.size

    def search(self, start: int) -> dict[int, int]:
        """Links from a router to every one of its group."""
        found, edge = {start: 0}, [start]
        while edge:
            r = edge.pop(0)
            for _, y in self.links[r]:
                if self.group(y) == self.group(start) and y not in found:
                    found[y] = found[r] + 1
                    edge.append(y)
        return found

    def local_ports(self, r: int) -> list[int]:
        """Ports to routers of the group."""
        return [o for o, y in self.links[r] if self.group(y) == self.group(r)]

    def global_ports(self, r: int) -> list[int]:
        """Ports to other groups."""
        return [o for o, y in self.links[r] if self.group(y) != self.group(r)]

    def next_routers(self, r: int, goal: int) -> list[int]:
        """Routers that may be next on the way to another one of the group, in their order."""
        local = {y for _, y in self.links[r] if self.group(y) == self.group(r)}
        return sorted(y for y in local if self.apart[y][goal] < self.apart[r][goal])

    def inside(self, r: int, goal: int, number: int) -> int:
        """Port to another router of the group, by what is left of the number of a packet."""
        routers = self.next_routers(r, goal)
        number, place = divmod(number, len(routers))
        ports = [o for o, y in self.links[r] if y == routers[place]]
        return ports[number % len(ports)]

    def gates(self, r: int, goal: int) -> list[tuple[int, int]]:
        """Nearest routers and ports of this group with a link to another one, each link once."""
        found = [
            (x, o)
            for x in sorted(self.apart[r])
            for o in self.global_ports(x)
            if self.group(dict(self.links[x])[o]) == goal
        ]
        least = min(self.apart[r][x] for x, _ in found)
        return [(x, o) for x, o in found if self.apart[r][x] == least]

    def minimal(self, r: int, goal: int, number: int) -> int:
        """Minimal port to another group."""
        gates = self.gates(r, goal)
        number, place = divmod(number, len(gates))
        gate, port = gates[place]
        return port if gate == r else self.inside(r, gate, number)

    def source_number(self, r: int, src: int) -> int:
        """Row of a source at a router: number at its router, or in its group at a spine."""
        home = int(self.topology.host_router[src])
        if self.hosts[r]:
            return self.hosts[home].index(src)
        return [h for x in sorted(self.apart[home]) for h in self.hosts[x]].index(src)

    def minimal_time(self, r: int, goal: int) -> float:
        """Time of the minimal way to a group in the empty network."""
        return 0.0 if self.group(r) == goal else self.apart[r][self.gates(r, goal)[0][0]] * self.local + self.far

    def first(self, r: int, goal: int, o: int) -> float:
        """Estimate of the empty network."""
        y = dict(self.links[r])[o]
        if self.group(y) != self.group(r):
            return self.far + self.minimal_time(y, goal)
        if self.hosts[y]:
            return self.local + self.minimal_time(y, goal)
        return self.local + min(self.first(y, goal, far) for far in self.global_ports(y))

    def estimate(self, r: int, goal: int, src: int, o: int) -> float:
        """Learned time."""
        return self.q.get((r, goal, self.source_number(r, src), o), self.first(r, goal, o))

    def best(self, r: int, goal: int, src: int, ports: list[int]) -> int:
        """Port of the smallest estimate."""
        return min(ports, key=lambda o: self.estimate(r, goal, src, o))

    def channel(self, r: int, o: int, number: int) -> int:
        """Emptiest channel of a class; −1: of all."""
        low, high = 0, self.given.vcs
        if number >= 0:
            low, high = (k * self.given.vcs // self.classes for k in (number, number + 1))
        return min(range(low, high), key=lambda v: self.queue_length(r, o, v))

    def class_of(self, v: int) -> int:
        """Class of a channel."""
        return next(k for k in range(self.classes) if v < (k + 1) * self.given.vcs // self.classes)

    def route(self, r: int, i: int, v: int, packet: Packet) -> tuple[int, int]:
        """Output port and virtual channel of a packet."""
        home = int(self.topology.host_router[packet.dst])
        here, goal = self.group(r), self.group(home)
        if home == r:
            port = int(self.topology.host_port[packet.dst])
            return port, self.channel(r, port, -1)
        if here == goal:
            port = self.inside(r, home, packet.dst)
            return port, self.channel(r, port, self.last_class)
        minimal = self.minimal(r, goal, packet.dst)
        from_host, from_far = self.topology.host_at[r, i] >= 0, i in self.global_ports(r)
        threshold, stream = 0.2, self.router_stream[r]
        if from_host:
            choices = self.local_ports(r) + self.global_ports(r)
            other = self.best(r, goal, packet.src, choices)
        elif not self.hosts[r] and not from_far and self.class_of(v) == 0:
            choices = self.global_ports(r)
            other = self.best(r, goal, packet.src, choices)
        elif from_far and minimal not in self.global_ports(r):
            choices, threshold = self.local_ports(r), 0.35
            other = choices[stream.below(len(choices))]
        else:
            return minimal, self.channel(r, minimal, 1)
        port = other
        if minimal in choices:
            q_min = self.estimate(r, goal, packet.src, minimal)
            if (q_min - self.estimate(r, goal, packet.src, other)) / q_min < threshold:
                port = minimal
        if stream.share() < 0.05:
            port = choices[stream.below(len(choices))]
        return port, self.channel(r, port, 0)

    def note(self, r: int, i: int, packet: Packet) -> Any:
        """Time from the router before to this one, and the least estimate from here on."""
        goal, from_far = self.group(int(self.topology.host_router[packet.dst])), i in self.global_ports(r)
        rest = 0.0
        if self.group(r) == goal:
            if not from_far:
                return None
        else:
            ports = [self.minimal(r, goal, packet.dst)]
            if not self.hosts[r] and self.group(r) == self.group(int(self.topology.host_router[packet.src])):
                ports = self.global_ports(r)
            elif from_far and ports[0] not in self.global_ports(r):
                ports = self.local_ports(r)
            rest = min(self.estimate(r, goal, packet.src, o) for o in ports)
        return goal, packet.src, (packet.arrivals[-1] - packet.arrivals[-2]) * 0.4 + rest

    def learn(self, r: int, o: int, note: Any) -> None:
        """Move an estimate towards the time that has come back."""
        goal, src, value = note
        old = self.estimate(r, goal, src, o)
        self.q[r, goal, self.source_number(r, src), o] = old + (0.2 if value < old else 0.04) * (value - old)


class GoldenCascade(GoldenGroups):
    """The same on grids of fully connected lines: along the row first."""

    last_class, classes = 2, 3

    def routers_of_a_group(self) -> int:
        """Routers of a group."""
        width, height = self.topology.params["sizes"]
        return int(width) * int(height)

    def next_routers(self, r: int, goal: int) -> list[int]:
        """Return the router in the column of another one of the group, or it itself if it is in this column."""
        width = int(self.topology.params["sizes"][0])
        x, wanted = (router % self.size % width for router in (r, goal))
        return [goal if x == wanted else r - x + wanted]
