"""Hosts that run a program on the packet networks, in plain Python, cycle by cycle.

Written from docs/guides/programs.md and docs/definitions/torus-router.md, to be compared with the kernel message by
message (`tests/sim/packet/test_packet_programs.py`). An operation is (name, message), or ("compute", cycles).
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hopforge.model.routing.grids.intermediate import Detour, Grid, Place
from hopforge.sim.packet.golden import GoldenNetwork, Packet
from hopforge.sim.packet.golden_credits import GoldenCreditNetwork, Key
from hopforge.sim.packet.settings import Settings

_SOURCE = -1


@dataclass(eq=False)
class Message:
    """A message between ranks.

    `how`: at_once; matched: starts when its receive is posted; asks: sends a request, and starts with the answer.
    """

    source: Place
    target: Place
    packets: int
    how: str = "at_once"
    eager: bool = False
    posted: bool = False
    requested: bool = False
    left: bool = False
    started: int = -1
    arrived: int = -1
    taken: int = 0
    come: int = 0


@dataclass(eq=False)
class Task:
    """What a host still has to send of a message: its data, a request or an answer."""

    message: Message
    what: str
    target: Place
    packets: int
    queued: int
    offered: int = 0


@dataclass(eq=False)
class Rank:
    """A rank and where it is in its operations."""

    operations: Sequence[tuple[str, Any]]
    at: int = 0
    busy: int = 0
    waited: int = 0
    finished: int = -1


@dataclass(eq=False)
class Hosts:
    """Ranks and hosts; `now` of the network."""

    ranks: list[Rank]
    interleaved: bool
    queue: dict[Place, list[Task]] = field(default_factory=lambda: defaultdict(list))

    def add(self, host: Place, message: Message, what: str, now: int) -> None:
        """Queue data, a request or an answer at a host."""
        target = message.source if what == "answer" else message.target
        self.queue[host].append(Task(message, what, target, message.packets if what == "data" else 1, now))

    def step(self, now: int) -> None:
        """Let all ranks go on as far as they can: always the first one that can."""
        while any(self._goes_on(rank, now) for rank in self.ranks):
            pass
        for rank in self.ranks:
            rank.waited += rank.finished < 0 and rank.busy <= now

    def _goes_on(self, rank: Rank, now: int) -> bool:
        """Run a rank until it waits, computes or is at its end; returns whether it did anything."""
        if rank.finished >= 0 or rank.busy > now:
            return False
        begin = rank.at
        while rank.at < len(rank.operations) and rank.busy <= now and self._done(rank, now):
            rank.at += 1
        if rank.at == len(rank.operations) and rank.busy <= now:
            rank.finished = now
            return True
        return rank.at > begin

    def _done(self, rank: Rank, now: int) -> bool:
        name, operand = rank.operations[rank.at]
        if name == "compute":
            rank.busy = now + operand
            return True
        if name == "send":
            self._send(operand, now)
        elif name == "post":
            operand.posted = True
            if operand.source == operand.target:
                pass
            elif operand.how == "matched" and operand.started >= 0:
                self.add(operand.source, operand, "data", now)
            elif operand.requested:
                self.add(operand.target, operand, "answer", now)
        elif name == "wait sent":
            return bool(operand.left or operand.eager)
        elif name == "receive":
            return 0 <= operand.arrived <= now
        return True

    def _send(self, message: Message, now: int) -> None:
        message.started = now
        if message.source == message.target:
            message.left, message.arrived = True, now
        elif message.how == "asks":
            self.add(message.source, message, "request", now)
        elif message.how == "at_once" or message.posted:
            self.add(message.source, message, "data", now)

    def come(self, task: Task, now: int) -> None:
        """Take a packet that has arrived."""
        message = task.message
        if task.what == "request":
            message.requested = True
            if message.posted:
                self.add(message.target, message, "answer", now)
        elif task.what == "answer":
            self.add(message.source, message, "data", now)
        else:
            message.come += 1
            if message.come == message.packets:
                message.arrived = now

    def offer(self, host: Place) -> Task | None:
        """Take the next packet out of the queue of a host."""
        if not self.queue[host]:
            return None
        task = self.queue[host][0]
        task.offered += 1
        if task.offered == task.packets:
            self.queue[host].pop(0)
        elif self.interleaved:
            self.queue[host].append(self.queue[host].pop(0))
        return task

    def again(self, host: Place, task: Task) -> None:
        """Put a packet back that its router has not taken."""
        task.offered -= 1
        if task not in self.queue[host]:
            self.queue[host].insert(0, task)

    def gone(self, task: Task) -> None:
        """Note that a packet has left its host for good."""
        if task.what == "data":
            task.message.taken += 1
            task.message.left = task.message.taken == task.message.packets

    @property
    def ended(self) -> bool:
        """All ranks are at their end."""
        return all(rank.finished >= 0 for rank in self.ranks)


class GoldenPrograms(GoldenNetwork):
    """A program on routers with their queues before the links."""

    def __init__(self, grid: Grid, settings: Settings, nodes: list[Place], hosts: Hosts) -> None:
        super().__init__(grid, settings, {(node, 0): node for node in nodes}, {})
        self._begin(hosts)

    def _begin(self, hosts: Hosts) -> None:
        self.hosts = hosts
        self.free: dict[Place, float] = dict.fromkeys(self.nodes, 0)
        self.offers: dict[int, list[tuple[Place, Task]]] = defaultdict(list)
        self.coming: dict[int, list[Task]] = defaultdict(list)
        self.tasks: dict[Packet, Task] = {}
        self._offered: dict[Place, Task] = {}

    def _feed(self) -> None:
        """Nothing at the times of sources: `_cycle` lets hosts offer."""

    def _cycle(self) -> None:
        for node, task in self.offers.pop(self.now, ()):
            self._offered[node] = task
            self.arrivals[self.now].append((node, 0, None, None))
        super()._cycle()
        for task in self.coming.pop(self.now, ()):
            self.hosts.come(task, self.now)
        self.hosts.step(self.now)
        for node in self.nodes:
            if self.free[node] > self.now:
                continue
            offer = self.hosts.offer(node)
            if offer is None:
                continue
            left = self.now + self.set.host_send_cycles
            self.free[node] = float("inf") if self.set.feed_waits else left
            self.offers[self.now + self.set.offer_cycles].append((node, offer))

    def _take_offer(self, node: Place, links: list[tuple[Place, int]]) -> None:
        task = self._offered.pop(node)
        t = task.target
        via = self._choose(node, t)
        goal = via.place if via else t
        room = self._room_of(node, goal, via, t)
        if self.set.feed_waits:
            self.free[node] = self.now + self.set.host_answer_cycles
        if not room:
            self.refused += 1
            self.hosts.again(node, task)
            return
        packet = Packet(node, t, via, 0, 0, self.now, goal)
        self.tasks[packet] = task
        self.packets.append(packet)
        self.hosts.gone(task)
        self._enter_first(node, packet, room, links)

    def _room_of(self, node: Place, goal: Place, via: Detour | None, t: Place) -> bool | tuple[int, int] | None:
        """Queue for a packet of a host."""
        return self._queue_for(node, goal, via, 1 if goal != t else 2, None)

    def _enter_first(
        self, node: Place, packet: Packet, room: bool | tuple[int, int], links: list[tuple[Place, int]]
    ) -> None:
        self._place(node, packet, room, links)

    def _deliver(self, packet: Packet) -> None:
        super()._deliver(packet)
        self.coming[packet.delivered].append(self.tasks[packet])


class GoldenCreditPrograms(GoldenCreditNetwork):
    """A program on routers with their queues at the end of the links."""

    def __init__(self, grid: Grid, settings: Settings, nodes: list[Place], hosts: Hosts) -> None:
        super().__init__(grid, settings, {(node, 0): node for node in nodes}, {})
        self.hosts = hosts
        self.free: dict[Place, float] = dict.fromkeys(nodes, 0)
        self.leaving: dict[int, list[Task]] = defaultdict(list)
        self.tasks: dict[Packet, Task] = {}
        self.coming: dict[int, list[Task]] = defaultdict(list)

    def _feed(self) -> None:
        """As of `GoldenPrograms`."""

    def _cycle(self) -> None:
        super()._cycle()
        for task in self.leaving.pop(self.now, ()):
            self.hosts.gone(task)
        for task in self.coming.pop(self.now, ()):
            self.hosts.come(task, self.now)
        self.hosts.step(self.now)
        for node in self.nodes:
            key = (node, _SOURCE, 0)
            if self.free[node] > self.now or self.held[key] >= self.set.queue_packets:
                continue
            offer = self.hosts.offer(node)
            if offer is None:
                continue
            self.held[key] += 1
            packet = Packet(node, offer.target, None, 0, 0, -1)
            self.tasks[packet] = offer
            self.free[node] = left = self.now + self.set.host_send_cycles
            self.leaving[left].append(offer)
            self.landings[self.now + self.set.offer_cycles].append((key, packet))

    def _send_on(self, node: Place, key: Key, packet: Packet) -> bool:
        sent = super()._send_on(node, key, packet)
        if packet.delivered >= 0:
            self.coming[packet.delivered].append(self.tasks[packet])
        return sent
