"""The packet network of docs/definitions/torus-router.md in plain Python: one event after the other, nothing clever.

Written from the definition, to be compared with the kernel packet by packet (`tests/sim/packet/test_packet.py`).
"""

from collections import defaultdict
from dataclasses import dataclass, field
from fractions import Fraction

from hopforge.model.routing.grids.intermediate import Detour, Grid, Place, detours, outflank_delta, profit
from hopforge.sim.packet.settings import Settings


@dataclass(eq=False)
class Packet:
    """A packet and its life; `keeps`: to the directions of its detour, if that has some."""

    source: Place
    destination: Place
    via: Detour | None
    message: int
    number: int
    accepted: int
    goal: Place = ()
    hops: int = 0
    keeps: bool = True
    delivered: int = -1


@dataclass(eq=False)
class Queue:
    """A queue of an output: packets in order of entry, and those that are on their way."""

    packets: list[Packet] = field(default_factory=list)
    sent: set[Packet] = field(default_factory=set)


class GoldenNetwork:
    """All routers, links and sources.

    Attributes
    ----------
    vcs : int
        Virtual channels of a link.

    Parameters
    ----------
    grid : Grid
        Nodes and minimal directions.
    settings : Settings
        Times in cycles, sizes and rules.
    destinations, births : dict
        (node, message) → destination, and cycle of creation.
    """

    vcs = 3
    #: escape channels in use
    escape: tuple[int, ...] = (1, 2)

    def __init__(
        self,
        grid: Grid,
        settings: Settings,
        destinations: dict[tuple[Place, int], Place],
        births: dict[tuple[Place, int], int],
    ) -> None:
        self.grid, self.set, self.destinations, self.births = grid, settings, destinations, births
        self.nodes = sorted({node for node, _ in destinations}, key=lambda node: node[::-1])
        self.queues = {(n, p, v): Queue() for n in self.nodes for p in grid.ports(n) for v in range(self.vcs)}
        self.link_free = dict.fromkeys([(n, p) for n in self.nodes for p in grid.ports(n)], 0)
        self.sink: dict[Place, list[int]] = {n: [] for n in self.nodes}
        self.message = dict.fromkeys(self.nodes, 0)
        self.offered = dict.fromkeys(self.nodes, 0)
        self.accepted = dict.fromkeys(self.nodes, 0)
        self.may_offer: dict[Place, float] = dict.fromkeys(self.nodes, 0)
        # cycle → what happens in it
        self.answers: dict[int, list[tuple[Queue, Packet, bool, tuple[Place, int]]]] = defaultdict(list)
        self.arrivals: dict[int, list[tuple[Place, int, tuple[Place, int, int] | None, Packet | None]]] = defaultdict(
            list
        )
        self.wakes: dict[int, list[tuple[Place, int]]] = defaultdict(list)
        self.packets: list[Packet] = []
        self.refused = 0
        self.now = -1

    def run(self, last: int) -> None:
        """Simulate the cycles up to and including `last`."""
        while self.now < last:
            self.now += 1
            self._cycle()

    def _cycle(self) -> None:
        now = self.now
        links: list[tuple[Place, int]] = []
        for queue, answered, accepted, link in self.answers.pop(now, ()):
            queue.sent.remove(answered)
            if accepted:
                queue.packets.remove(answered)
            links.append(link)
        ports = 2 * len(self.grid.radices) + 1
        for node, _, origin, packet in sorted(
            self.arrivals.pop(now, ()), key=lambda one: (one[0], (one[1] - now) % ports)
        ):
            if packet is None:
                self._take_offer(node, links)
            else:
                assert origin is not None
                self._take(node, origin, packet, links)
        links += self.wakes.pop(now, ())
        for node, port in links:
            self._send(node, port)
        if now % self.set.feed_cycles == 0:
            self._feed()

    def _feed(self) -> None:
        arrival = self.now + self.set.offer_cycles
        for node in self.nodes:
            key = (node, self.message[node])
            if key not in self.births or self.births[key] > self.now or self.may_offer[node] > self.now:
                continue
            if self.offered[node] < self.set.message_packets:
                self.offered[node] += 1
                if self.set.feed_waits:
                    self.may_offer[node] = float("inf")
                self.arrivals[arrival].append((node, 0, None, None))

    def _slots(self, node: Place, port: int, vc: int) -> int:
        return len(self.queues[node, port, vc].packets)

    def _used(self, node: Place, port: int) -> int:
        vcs = (0,) if self.set.congestion == "adaptive" else range(self.vcs)
        return sum(self._slots(node, port, vc) for vc in vcs)

    def _full(self, node: Place, port: int) -> bool:
        """Whether the queues are full that count and that packets may enter."""
        vcs = (0,) if self.set.congestion == "adaptive" else (0, *self.escape)
        return all(self._slots(node, port, vc) == self.set.queue_packets for vc in vcs)

    def _ports(self, node: Place, goal: Place, via: Detour | None) -> list[int]:
        """Ports by which a packet may go on, in their order."""
        ports = self.grid.minimal_ports(node, goal)
        if via is None or via.directions is None:
            return ports
        return [2 * i + (via.directions[i] < 0) for i in sorted({port // 2 for port in ports})]

    def _profit(self, node: Place, t: Place, goal: Place, through: int, via: Detour | None = None) -> Fraction:
        used = [self._used(node, port) for port in self._ports(node, goal, via)]
        least = min(self._used(node, port) for port in self.grid.ports(node))
        if self.set.full_profit == "zero" and all(self._full(node, port) for port in self._ports(node, goal, via)):
            return Fraction(0)
        hops, eta = self.grid.distance(node, t), Fraction(*self.set.eta)
        if self.set.idle_ratio == "one" and least == 0:
            return 1 + eta * Fraction(hops, through)
        return profit(least, used, eta, hops, through)

    def _choose(self, node: Place, t: Place) -> Detour | None:
        if self.set.algorithm == "abr" or node == t:
            return None
        best, highest = None, self._profit(node, t, t, self.grid.distance(node, t))
        outflank, wraparound = self.set.algorithm == "ofr", self.set.wraparound
        share = Fraction(*self.set.outflank_share)
        delta = outflank_delta(self.grid.distance(node, t), self.set.outflank_distance, share)
        for one in detours(self.grid, node, t, outflank=outflank, delta=delta, wraparound=wraparound):
            worth = self._profit(node, t, one.place, one.hops, one)
            if worth > highest:
                best, highest = one, worth
        return best

    def _queue_for(
        self, node: Place, goal: Place, via: Detour | None, vc: int, came: tuple[int, int] | None
    ) -> tuple[int, int] | None:
        """Port and VC of the queue that the packet may enter; `came` = port and VC of its last queue."""
        size, ports = self.set.queue_packets, self._ports(node, goal, via)
        free = {p: size - len(self.queues[node, p, 0].packets) for p in ports}
        port = max(free, key=lambda p: (free[p], -p))
        if free[port] >= (1 if came is not None else self.set.inject_slots):
            return port, 0
        port = ports[0]
        need = 1 if came == (port, vc) else self.set.enter_slots
        if came is None:
            need = max(need, self.set.inject_slots)
        return (port, vc) if size - len(self.queues[node, port, vc].packets) >= need else None

    def _sink_has_room(self, node: Place) -> bool:
        self.sink[node] = [end for end in self.sink[node] if end > self.now]
        return len(self.sink[node]) < self.set.queue_packets

    def _deliver(self, packet: Packet) -> None:
        begin = max([self.now, *self.sink[packet.destination]])
        end = begin + self.set.host_send_cycles
        self.sink[packet.destination].append(end)
        packet.delivered = end + self.set.sink_wait_cycles + self.set.host_cycles

    def _take_offer(self, node: Place, links: list[tuple[Place, int]]) -> None:
        message = self.message[node]
        t = self.destinations[node, message]
        via = self._choose(node, t)
        goal = via.place if via else t
        vc = 1 if goal != t else 2
        self.may_offer[node] = self.now + (self.set.host_answer_cycles if self.set.feed_waits else 0)
        room = self._sink_has_room(node) if node == t else self._queue_for(node, goal, via, vc, None)
        if not room:
            self.offered[node] -= 1
            self.refused += 1
            return
        packet = Packet(node, t, via, message, self.accepted[node], self.now, goal)
        self.packets.append(packet)
        self.accepted[node] += 1
        if self.accepted[node] == self.set.message_packets:
            self.message[node] += 1
            self.offered[node] = self.accepted[node] = 0
        self._place(node, packet, room, links)

    def _take(
        self, node: Place, origin: tuple[Place, int, int], packet: Packet, links: list[tuple[Place, int]]
    ) -> None:
        _, port, vc = origin
        goal = packet.goal
        if node == goal:
            goal = packet.destination
        to = 2 if goal == packet.destination else 1
        via = packet.via if packet.keeps else None
        room = self._sink_has_room(node) if node == goal else self._queue_for(node, goal, via, to, (port, vc))
        self.answers[self.now + self.set.answer_cycles].append(
            (self.queues[origin], packet, bool(room), (origin[0], port))
        )
        if not room:
            self.refused += 1
            return
        packet.goal = goal
        packet.hops += 1
        self._place(node, packet, room, links)

    def _place(self, node: Place, packet: Packet, room: bool | tuple[int, int], links: list[tuple[Place, int]]) -> None:
        if not isinstance(room, tuple):
            self._deliver(packet)
            return
        self.queues[node, *room].packets.append(packet)
        links.append((node, room[0]))

    def _send(self, node: Place, port: int) -> None:
        if self.link_free[node, port] > self.now:
            return
        for vc in reversed(range(self.vcs)):
            queue = self.queues[node, port, vc]
            for packet in queue.packets:
                if packet not in queue.sent:
                    queue.sent.add(packet)
                    done = self.now + self.set.send_cycles
                    self.link_free[node, port] = done
                    far = self.grid.neighbour(node, port)
                    assert far is not None
                    self.arrivals[self.now + self.set.hop_cycles].append((far, port + 1, (node, port, vc), packet))
                    self.wakes[done].append((node, port))
                    return
