"""Links and switches that fail in a packet network, in plain Python.

Written from the definition (docs/definitions/torus-router.md), to be compared with the kernel packet by packet.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from hopforge.model.routing.grids.intermediate import Detour, Grid, Place, detours, outflank_delta
from hopforge.sim.packet.golden import GoldenNetwork, Packet, Queue
from hopforge.sim.packet.settings import DRAIN_PACKETS, Settings

#: a link, by the node that sends and its port
Link = tuple[Place, int]
_NEVER = float("inf")
RINGS, _SPARE = (1, 2), (3,)


@dataclass(frozen=True)
class Change:
    """What is down from a cycle on (both directions of every link), and when that is known."""

    cycle: int
    links: frozenset[Link]
    nodes: frozenset[Place]
    known: int


@dataclass
class Losses:
    """What a change did."""

    on_links: int = 0
    in_switches: int = 0
    unsent: int = 0
    unroutable: int = 0
    undrained: int = 0
    in_force: int = -1


class Broken:
    """Shortest ways, and up/down as escape, by the links that are there; for the rest the grid (as `Grid`)."""

    def __init__(self, grid: Grid, nodes: list[Place], change: Change) -> None:
        self.grid, self.radices, self.torus = grid, grid.radices, grid.torus
        self._out = {
            n: {p: grid.neighbour(n, p) for p in grid.ports(n) if n not in change.nodes and (n, p) not in change.links}
            for n in nodes
        }
        self._hops = {t: self._towards(t) for t in nodes}
        root = next(n for n in nodes if self._out[n])
        number = {n: k for k, n in enumerate(nodes)}
        self._order = {n: (hops, number[n]) for n, hops in self._hops[root].items()}
        self._down: dict[tuple[Place, Place], int | None] = {}

    def _towards(self, t: Place) -> dict[Place, int]:
        hops, queue = {t: 0}, deque([t])
        while queue:
            here = queue.popleft()
            for port, there in self._out[here].items():
                # links fail in both directions
                assert there is not None and self._out[there][port ^ 1] == here
                if there not in hops:
                    hops[there] = hops[here] + 1
                    queue.append(there)
        return hops

    def ways(self, i: int, a: int, b: int) -> tuple[int, tuple[int, ...]]:
        """Of the whole grid."""
        return self.grid.ways(i, a, b)

    def neighbour(self, s: Place, port: int) -> Place | None:
        """Of the whole grid."""
        return self.grid.neighbour(s, port)

    def distance(self, s: Place, t: Place) -> int:
        """Hops between two nodes; 0 if there is no way."""
        return self._hops[t].get(s, 0)

    def minimal_ports(self, s: Place, t: Place) -> list[int]:
        """Ports that begin a shortest way."""
        hops = self._hops[t]
        return [p for p, n in sorted(self._out[s].items()) if s in hops and hops.get(n, _NEVER) + 1 == hops[s]]  # type: ignore[arg-type]

    def ports(self, s: Place) -> list[int]:
        """Ports whose link is there."""
        return sorted(self._out[s])

    def _hops_down(self, s: Place, t: Place) -> int | None:
        """Hops of the shortest way on which every node is later in the order than the one before."""
        if s == t:
            return 0
        if (s, t) not in self._down:
            later = [self._hops_down(n, t) for n in self._out[s].values() if self._order[n] > self._order[s]]  # type: ignore[index,arg-type]
            self._down[s, t] = min((hops + 1 for hops in later if hops is not None), default=None)
        return self._down[s, t]

    def _hops_by_rule(self, s: Place, t: Place) -> int:
        down = self._hops_down(s, t)
        if down is not None:
            return down
        return 1 + min(self._hops_by_rule(n, t) for n in self._out[s].values() if self._order[n] < self._order[s])  # type: ignore[index,arg-type]

    def escape_port(self, s: Place, t: Place) -> int:
        """First port of the shortest way down, if there is one, else of the shortest by this rule that begins up."""
        down = self._hops_down(s, t)
        for port, n in sorted(self._out[s].items()):
            if down is not None and self._order[n] > self._order[s] and self._hops_down(n, t) == down - 1:  # type: ignore[index,arg-type]
                return port
        ways = [
            (self._hops_by_rule(n, t), port)  # type: ignore[arg-type]
            for port, n in self._out[s].items() if self._order[n] < self._order[s]  # type: ignore[index]
        ]  # fmt: skip
        return min(ways)[1]


class GoldenFailures(GoldenNetwork):
    """All routers, links and sources, and what fails.

    Parameters
    ----------
    grid, settings, destinations, births
        As of `GoldenNetwork`.
    changes : list of Change
        Every failure and repair, in order.

    Attributes
    ----------
    losses : list of Losses
        Of every change that took place.
    escape : tuple of int
        Escape channels that packets may enter; with one of them the network is not whole.
    """

    vcs = 4

    def __init__(
        self,
        grid: Grid,
        settings: Settings,
        destinations: dict[tuple[Place, int], Place],
        births: dict[tuple[Place, int], int],
        changes: Sequence[Change] = (),
    ) -> None:
        super().__init__(grid, settings, destinations, births)
        self.whole = grid
        self.losses: list[Losses] = []
        self.down: frozenset[Link] = frozenset()
        self.gone: frozenset[Place] = frozenset()
        self.gives_back: frozenset[Link] = frozenset()
        self.stopped: set[Place] = set()
        self.escape = RINGS
        self.wanted: Change | None = None
        self.ready_at = self.empty_by = 0
        #: packets that were lost, in any way
        self.lost: list[Packet] = []
        self.plan(changes)

    def plan(self, changes: Sequence[Change]) -> None:
        """Let all these changes be to come."""
        self._coming = list(changes)

    def _cycle(self) -> None:
        self._changes_now()
        self.arrivals[self.now] = [self._end_of(one) for one in self.arrivals.pop(self.now, ())]
        super()._cycle()

    def _changes_now(self) -> bool:
        """Do what is due in this cycle before anything else; returns whether something is."""
        changes = bool(self._coming) and self._coming[0].cycle == self.now
        if changes:
            self._change(self._coming.pop(0))
        due = self.wanted is not None and self.ready_at == self.now
        if due:
            assert self.wanted is not None
            self._put_in_force(self.wanted)
        return changes or due

    def _end_of(
        self, arrival: tuple[Place, int, tuple[Place, int, int] | None, Packet | None]
    ) -> tuple[Place, int, tuple[Place, int, int] | None, Packet | None]:
        """Where a packet comes out: what a failed link gives back comes as if from its other end."""
        _, _, origin, packet = arrival
        if origin is None:
            return arrival
        node, port, _ = origin
        if (node, port) in self.gives_back:
            return node, (port ^ 1) + 1, origin, packet
        far = self.whole.neighbour(node, port)
        assert far is not None
        return far, port + 1, origin, packet

    # ---- failures and repairs ---------------------------------------------------------------------------------------

    def _change(self, change: Change) -> None:
        loss = Losses()
        self.losses.append(loss)
        gone = change.nodes - self.gone
        self._fail(change.links - self.down - self.gives_back, gone, loss)
        for node in gone:
            self._stop_source(node, loss)
        for link in self.down - change.links:
            self._free(link)
        self.down, self.gone, self.wanted = change.links, change.nodes, change
        self.ready_at = max(self.ready_at, change.known)
        self.empty_by = self.ready_at + DRAIN_PACKETS * self.set.send_cycles

    def _fail(self, failing: frozenset[Link], gone: frozenset[Place], loss: Losses) -> None:
        """Let links and switches fail, with what is on them and in them."""
        for link in failing:
            self.link_free[link] = _NEVER  # type: ignore[assignment]
        loss.on_links = self._cut(lambda queue: queue[:2] in failing)
        for (n, p, _), queue in self.queues.items():
            if (n, p) in failing:
                queue.packets = [packet for packet in queue.packets if packet not in queue.sent]
                queue.sent.clear()
        for node in gone:
            loss.in_switches += self._cut(lambda queue, at=node: queue[0] == at)  # type: ignore[misc]
            for (n, _, _), queue in self.queues.items():
                if n == node:
                    loss.in_switches += self._clear(queue)

    def _cut(self, failing: Callable[[tuple[Place, int, int]], bool]) -> int:
        """Forget what is under way of the queues that fail; returns how many packets that are nowhere else."""
        lost: list[Packet] = []
        for cycle, arrivals in self.arrivals.items():
            lost += [one[3] for one in arrivals if one[3] is not None and one[2] is not None and failing(one[2])]
            self.arrivals[cycle] = [one for one in arrivals if one[2] is None or not failing(one[2])]
        at = {id(queue): key for key, queue in self.queues.items()}
        for cycle, answers in self.answers.items():
            lost += [packet for queue, packet, accepted, _ in answers if failing(at[id(queue)]) and not accepted]
            self.answers[cycle] = [one for one in answers if not failing(at[id(one[0])])]
        self.lost += lost
        return len(lost)

    def _clear(self, queue: Queue) -> int:
        """Forget what a queue holds; returns how many packets have not been sent from there."""
        lost = [packet for packet in queue.packets if packet not in queue.sent]
        queue.packets, queue.sent = [], set()
        self.lost += lost
        return len(lost)

    def _stop_source(self, node: Place, loss: Losses) -> None:
        self._drop_offers(node)
        back = next((change.cycle for change in self._coming if node not in change.nodes), _NEVER)
        while self.births.get((node, self.message[node]), _NEVER) < back:
            loss.unsent += self.set.message_packets - self.accepted[node]
            self.message[node] += 1
            self.accepted[node] = 0
        self.offered[node] = self.accepted[node] = 0
        self.may_offer[node] = _NEVER
        self.stopped.add(node)

    def _drop_offers(self, node: Place) -> None:
        for cycle, arrivals in self.arrivals.items():
            self.arrivals[cycle] = [one for one in arrivals if one[2] is not None or one[0] != node]

    def _free(self, link: Link) -> None:
        if self.link_free[link] == _NEVER:
            self.link_free[link] = self.now
            self.wakes[self.now].append(link)

    # ---- new ways ---------------------------------------------------------------------------------------------------

    def _put_in_force(self, change: Change) -> None:
        broken = bool(change.links or change.nodes)
        if self.escape == RINGS:
            following = _SPARE if broken else RINGS
        elif self.escape == _SPARE:
            following = (1,) if broken else RINGS
        else:
            following = _SPARE
        self.ready_at = self.now + self.set.send_cycles
        if following != self.escape and not self._is_empty(following):
            if self.now < self.empty_by:
                return
            self._empty(following)
        self.empty_by = self.ready_at + DRAIN_PACKETS * self.set.send_cycles
        self.escape = following
        self.grid = Broken(self.whole, self.nodes, change) if following != RINGS else self.whole  # type: ignore[assignment]
        if broken or following == RINGS:
            self.wanted = None
            for loss in self.losses:
                loss.in_force = self.now if loss.in_force < 0 else loss.in_force
        self._give_back()
        for node in self.stopped - self.gone:
            self.may_offer[node] = self.now
        self.stopped &= self.gone

    def _is_empty(self, vcs: tuple[int, ...]) -> bool:
        return not any(queue.packets for (_, _, vc), queue in self.queues.items() if vc in vcs)

    def _give_back(self) -> None:
        """Let failed links give back what waits before them."""
        self.gives_back = frozenset(link for link in self.down if link[0] not in self.gone)
        for link in self.gives_back:
            self._free(link)

    def _empty(self, vcs: tuple[int, ...]) -> None:
        """Drop what stands in channels, and what has been sent from there and not been taken."""
        dropped = self._cut(lambda queue: queue[2] in vcs)
        for (_, _, vc), queue in self.queues.items():
            if vc in vcs:
                dropped += self._clear(queue)
        self.losses[-1].undrained += dropped

    # ---- packets in a network that is not whole ---------------------------------------------------------------------

    def _choose(self, node: Place, t: Place) -> Detour | None:
        if self.escape == RINGS or self.set.algorithm == "abr" or node == t:
            return super()._choose(node, t)
        grid, best = self.grid, None
        highest = self._profit(node, t, t, grid.distance(node, t))
        delta = outflank_delta(grid.distance(node, t), self.set.outflank_distance, Fraction(*self.set.outflank_share))
        for one in detours(grid, node, t, outflank=self.set.algorithm == "ofr", delta=delta):
            if grid.minimal_ports(node, one.place):  # else it has failed
                worth = self._profit(node, t, one.place, one.hops, one)
                if worth > highest:
                    best, highest = one, worth
        return best

    def _room(self, node: Place, goal: Place, t: Place, came: tuple[int, int] | None) -> bool | tuple[int, int]:
        """Queue for a packet to `t` by way of `goal`: adaptive, or escape; who is on the escape stays there."""
        if node == t:
            return self._sink_has_room(node)
        size, need, (escape,) = self.set.queue_packets, 1 if came else self.set.inject_slots, self.escape
        if came is None or came[1] != escape:
            free = {p: size - len(self.queues[node, p, 0].packets) for p in self.grid.minimal_ports(node, goal)}
            port = max(free, key=lambda p: (free[p], -p))
            if free[port] >= need:
                return port, 0
        assert isinstance(self.grid, Broken)
        port = self.grid.escape_port(node, t)
        return (port, escape) if size - len(self.queues[node, port, escape].packets) >= need else False

    def _can_reach(self, node: Place, t: Place) -> bool:
        return node == t or bool(self.grid.minimal_ports(node, t))

    def _take_offer(self, node: Place, links: list[Link]) -> None:
        if self.escape == RINGS:
            super()._take_offer(node, links)
            return
        message = self.message[node]
        t = self.destinations[node, message]
        self.may_offer[node] = self.now + (self.set.host_answer_cycles if self.set.feed_waits else 0)
        packet = None
        if self._can_reach(node, t):
            via = self._choose(node, t)
            goal = via.place if via else t
            room = self._room(node, goal, t, None)
            if not room:
                self.offered[node] -= 1
                self.refused += 1
                return
            packet = Packet(node, t, via, message, self.accepted[node], self.now, goal)
            self.packets.append(packet)
        else:
            self.losses[-1].unroutable += 1
        self.accepted[node] += 1
        if self.accepted[node] == self.set.message_packets:
            self.message[node] += 1
            self.offered[node] = self.accepted[node] = 0
        if packet is not None:
            self._enter(node, packet, room, links)

    def _enter(self, node: Place, packet: Packet, room: bool | tuple[int, int], links: list[Link]) -> None:
        if isinstance(room, tuple) and room[1] in self.escape:
            packet.goal = packet.destination
        self._place(node, packet, room, links)

    def _take(self, node: Place, origin: tuple[Place, int, int], packet: Packet, links: list[Link]) -> None:
        if self.escape == RINGS:
            super()._take(node, origin, packet, links)
            return
        t = packet.destination
        goal = t if packet.goal == node else packet.goal
        if node == t or not self._can_reach(node, goal):
            goal = t
        drop = not self._can_reach(node, t)
        room = True if drop else self._room(node, goal, t, origin[1:])
        answer = (self.queues[origin], packet, bool(room), origin[:2])
        self.answers[self.now + self.set.answer_cycles].append(answer)
        if drop:
            self.losses[-1].unroutable += 1
        elif not room:
            self.refused += 1
        else:
            packet.goal, packet.keeps = goal, False
            packet.hops += node != origin[0]
            self._enter(node, packet, room, links)
