"""Links and switches that fail in a packet network with its queues at the end of the links, in plain Python.

Written from the definition (docs/definitions/torus-router.md), to be compared with the kernel packet by packet.
"""

from collections.abc import Callable, Sequence

from hopforge.model.routing.grids.intermediate import Grid, Place
from hopforge.sim.packet.golden import Packet
from hopforge.sim.packet.golden_credits import GoldenCreditNetwork, Key
from hopforge.sim.packet.golden_failures import RINGS, Broken, Change, GoldenFailures, Link, Losses
from hopforge.sim.packet.golden_programs import GoldenCreditPrograms, Hosts, Message
from hopforge.sim.packet.settings import Settings

_SOURCE = -1
_NEVER = float("inf")


class GoldenCreditFailures(GoldenCreditNetwork, GoldenFailures):
    """All routers, links and sources, and what fails; parameters and attributes as of `GoldenFailures`."""

    def __init__(
        self,
        grid: Grid,
        settings: Settings,
        destinations: dict[tuple[Place, int], Place],
        births: dict[tuple[Place, int], int],
        changes: Sequence[Change] = (),
    ) -> None:
        super().__init__(grid, settings, destinations, births)
        self.plan(changes)

    def _cycle(self) -> None:
        if self._changes_now():
            for node in self.nodes:
                self._serve(node)
        super()._cycle()

    # ---- failures and repairs ---------------------------------------------------------------------------------------

    def _fail(self, failing: frozenset[Link], gone: frozenset[Place], loss: Losses) -> None:
        for link in failing:
            self.link_free[link] = _NEVER  # type: ignore[assignment]
        loss.on_links = self._lose_coming(lambda key: key[:2] in failing)
        for node in gone:
            loss.in_switches += self._lose_coming(lambda key, at=node: key == (at, _SOURCE, 0))  # type: ignore[misc]
            loss.in_switches += self._lose_waiting(lambda key, at=node: self._end(key) == at)  # type: ignore[misc]

    def _lose_coming(self, failing: Callable[[Key], bool]) -> int:
        """Lose packets on their way into queues: their slots there are free at once, those that they left now."""
        lost = 0
        for landings in self.landings.values():
            for key, packet in [one for one in landings if failing(one[0])]:
                landings.remove((key, packet))
                self.held[key] -= 1
                self._leaves_now(packet, key[0])
                self.lost.append(packet)
                lost += 1
        return lost

    def _leaves_now(self, packet: Packet, node: Place) -> None:
        """Let a packet leave now the queue at a node from which it is being sent, if it is still there."""
        pending = [
            (cycle, key) for cycle, leaving in self.departures.items() for key, one in leaving
            if one is packet and self._end(key) == node
        ]  # fmt: skip
        if pending:
            cycle, key = max(pending)
            self.departures[cycle].remove((key, packet))
            self.departures[self.now].append((key, packet))

    def _lose_waiting(self, failing: Callable[[Key], bool]) -> int:
        lost = 0
        for key, queue in self.queues.items():
            if failing(key):
                waiting = [packet for packet in queue.packets if packet not in queue.sent]
                queue.packets = [packet for packet in queue.packets if packet in queue.sent]
                self.held[key] -= len(waiting)
                self.lost += waiting
                lost += len(waiting)
        return lost

    def _drop_offers(self, node: Place) -> None:
        """Nothing: what the source has sent is in the switch."""

    def _free(self, link: Link) -> None:
        self.link_free[link] = self.now

    # ---- new ways ---------------------------------------------------------------------------------------------------

    def _is_empty(self, vcs: tuple[int, ...]) -> bool:
        coming = [key for landings in self.landings.values() for key, _ in landings]
        return super()._is_empty(vcs) and not any(vc in vcs for _, _, vc in coming)

    def _empty(self, vcs: tuple[int, ...]) -> None:
        def fails(key: Key) -> bool:
            return key[2] in vcs

        self.losses[-1].undrained += self._lose_coming(fails) + self._lose_waiting(fails)

    def _give_back(self) -> None:
        """Nothing: what would go over a failed link has not left its queue."""

    # ---- packets in a network that is not whole ---------------------------------------------------------------------

    def _send_on(self, node: Place, key: Key, packet: Packet) -> bool:
        if self.escape == RINGS:
            return super()._send_on(node, key, packet)
        t, via = packet.destination, packet.via
        if not self._can_reach(node, t):
            self.losses[-1].unroutable += 1
            self.departures[self.now + self.set.host_send_cycles].append((key, packet))
            return True
        goal = t if packet.goal == node else packet.goal
        if key[1] == _SOURCE:
            via = self._choose(node, t)
            goal = via.place if via else t
        if node == t:
            if not self._to_sink(node, packet, key):
                return False
        else:
            goal = goal if self._can_reach(node, goal) else t
            out = self._way_around(node, goal, t, key)
            if out is None:
                return False
            goal = t if out[1] in self.escape else goal
            self._to_link(node, out, packet, key, goal)
        self._note_sent(key, packet, via, goal)
        packet.keeps = False
        return True

    def _way_around(self, node: Place, goal: Place, t: Place, key: Key) -> tuple[int, int] | None:
        """Port and VC for a packet to `t` by way of `goal`: adaptive, or escape; who is on the escape stays there."""
        need, (escape,) = self.set.inject_slots if key[1] == _SOURCE else 1, self.escape
        free = {p: self.set.queue_packets - self.held[node, p, 0] for p in self.grid.minimal_ports(node, goal)}
        free = {p: slots for p, slots in free.items() if slots >= need}
        if free and key[2] != escape:
            idle = [p for p in free if self.link_free[node, p] <= self.now]
            return (max(idle, key=lambda p: (free[p], -p)), 0) if idle else None
        assert isinstance(self.grid, Broken)
        port = self.grid.escape_port(node, t)
        can = self.link_free[node, port] <= self.now
        return (port, escape) if can and self.set.queue_packets - self.held[node, port, escape] >= need else None


class GoldenCreditProgramFailures(GoldenCreditPrograms, GoldenCreditFailures):
    """A program on routers with their queues at the end of the links, and what fails.

    No rank runs at a switch that fails: all packets can be sent on.
    """

    def __init__(self, grid: Grid, settings: Settings, nodes: list[Place], hosts: Hosts, changes: list[Change]) -> None:
        super().__init__(grid, settings, nodes, hosts)
        self.plan(changes)

    @property
    def lost_messages(self) -> list[Message]:
        """Messages that have lost a packet of their data, their request or their answer, in the order of their loss."""
        return list(dict.fromkeys(self.tasks[packet].message for packet in self.lost))

