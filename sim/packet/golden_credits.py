"""The packet network with its queues at the receiving end of the links, in plain Python (``packet.queues: receiving``).

Written from the definition (docs/definitions/torus-router.md), to be compared with the kernel packet by packet.
"""

from collections import defaultdict

from hopforge.model.routing.grids.intermediate import Detour, Grid, Place
from hopforge.sim.packet.golden import GoldenNetwork, Packet, Queue
from hopforge.sim.packet.settings import Settings

#: (node that sends into the queue, its port, VC); the source's queue: (node, _SOURCE, 0)
Key = tuple[Place, int, int]
_SOURCE = -1


class GoldenCreditNetwork(GoldenNetwork):
    """All routers, links and sources; parameters as of `GoldenNetwork`."""

    def __init__(
        self,
        grid: Grid,
        settings: Settings,
        destinations: dict[tuple[Place, int], Place],
        births: dict[tuple[Place, int], int],
    ) -> None:
        super().__init__(grid, settings, destinations, births)
        self.queues |= {(node, _SOURCE, 0): Queue() for node in self.nodes}
        self.held = dict.fromkeys(self.queues, 0)
        self.sink_free = dict.fromkeys(self.nodes, 0)
        # cycle → what happens in it
        self.credits: dict[int, list[Key]] = defaultdict(list)
        self.departures: dict[int, list[tuple[Key, Packet]]] = defaultdict(list)
        self.landings: dict[int, list[tuple[Key, Packet]]] = defaultdict(list)

    def _cycle(self) -> None:
        changed = set()
        for key in self.credits.pop(self.now, ()):
            self.held[key] -= 1
            if key[1] != _SOURCE:  # that one is for the source, not for its router
                changed.add(key[0])
        for key, packet in self.departures.pop(self.now, ()):
            self.queues[key].packets.remove(packet)
            self.queues[key].sent.remove(packet)
            latency = self.set.host_cycles if key[1] == _SOURCE else self.set.link_cycles
            self.credits[self.now + latency].append(key)
            changed.add(self._end(key))
        for key, packet in self.landings.pop(self.now, ()):
            self.queues[key].packets.append(packet)
            changed.add(self._end(key))
        for node in changed:
            self._serve(node)
        if self.now % self.set.feed_cycles == 0:
            self._feed()

    def _end(self, key: Key) -> Place:
        """Node in which a queue stands."""
        node, port, _ = key
        far = node if port == _SOURCE else self.grid.neighbour(node, port)
        assert far is not None
        return far

    def _slots(self, node: Place, port: int, vc: int) -> int:
        return self.held[node, port, vc]

    def _serve(self, node: Place) -> None:
        ports = 2 * len(self.grid.radices) + 1
        for j in range(ports):
            port = (self.now + j) % ports - 1
            sender = node if port == _SOURCE else self.grid.neighbour(node, port ^ 1)
            if sender is None:
                continue
            for vc in (0,) if port == _SOURCE else reversed(range(self.vcs)):
                queue = self.queues[sender, port, vc]
                while waiting := [packet for packet in queue.packets if packet not in queue.sent]:
                    if not self._send_on(node, (sender, port, vc), waiting[0]):
                        break
                    queue.sent.add(waiting[0])

    def _send_on(self, node: Place, key: Key, packet: Packet) -> bool:
        """Send the first packet of a queue, if that is possible now."""
        via = packet.via if packet.keeps else None
        if key[1] == _SOURCE:
            via = self._choose(node, packet.destination)
            goal = via.place if via else packet.destination
        else:
            goal = packet.destination if node == packet.goal else packet.goal
        if node == goal:
            if not self._to_sink(node, packet, key):
                return False
        else:
            out = self._way_on(node, goal, via, 1 if goal != packet.destination else 2, key)
            if out is None:
                return False
            self._to_link(node, out, packet, key, goal)
        self._note_sent(key, packet, via, goal)
        return True

    def _to_sink(self, node: Place, packet: Packet, key: Key) -> bool:
        """Send a packet to the sink of a node, if that is possible now."""
        if self.sink_free[node] > self.now:
            return False
        self.sink_free[node] = left = self.now + self.set.host_send_cycles
        by_the_way = key[1] != _SOURCE and packet.goal != node
        packet.delivered = left + self.set.host_cycles + (self.set.sink_wait_cycles if by_the_way else 0)
        self.departures[left].append((key, packet))
        return True

    def _to_link(self, node: Place, out: tuple[int, int], packet: Packet, key: Key, goal: Place) -> None:
        """Send a packet over a link."""
        self.held[node, *out] += 1
        self.link_free[node, out[0]] = left = self.now + self.set.send_cycles
        to_sink = goal == packet.destination == self.grid.neighbour(node, out[0])
        landing = self.now + self.set.hop_cycles + (self.set.sink_wait_cycles if to_sink else 0)
        self.landings[landing].append(((node, *out), packet))
        packet.hops += 1
        self.departures[left].append((key, packet))

    def _note_sent(self, key: Key, packet: Packet, via: Detour | None, goal: Place) -> None:
        packet.goal = goal
        if key[1] == _SOURCE:
            packet.via, packet.accepted = via, self.now
            self.packets.append(packet)

    def _way_on(self, node: Place, goal: Place, via: Detour | None, vc: int, key: Key) -> tuple[int, int] | None:
        size, ports = self.set.queue_packets, self._ports(node, goal, via)
        least = self.set.inject_slots if key[1] == _SOURCE else 1
        space = {p: size - self.held[node, p, 0] for p in ports}
        space = {p: free for p, free in space.items() if free >= least}
        if space:
            idle = [p for p in space if self.link_free[node, p] <= self.now]
            return (max(idle, key=lambda p: (space[p], -p)), 0) if idle else None
        need = 1 if key[1:] == (ports[0], vc) else max(self.set.enter_slots, least)
        can = self.link_free[node, ports[0]] <= self.now and size - self.held[node, ports[0], vc] >= need
        return (ports[0], vc) if can else None

    def _feed(self) -> None:
        arrival = self.now + self.set.offer_cycles
        for node in self.nodes:
            key, message = (node, _SOURCE, 0), self.message[node]
            if self.births.get((node, message), self.now + 1) > self.now or self.may_offer[node] > self.now:
                continue
            if self.held[key] >= self.set.queue_packets:
                continue
            self.held[key] += 1
            packet = Packet(node, self.destinations[node, message], None, message, self.accepted[node], -1)
            self.landings[arrival].append((key, packet))
            self.accepted[node] += 1
            if self.accepted[node] == self.set.message_packets:
                self.message[node] += 1
                self.accepted[node] = 0
