"""Input-output-queued routers once more, plainly: lists, a cycle at a time, as in docs/definitions/router-models.md.

Slow; the tests compare the compiled kernel with it in every cycle. Failures: docs/guides/failures.md.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hopforge.model.kernel.rng import seed_streams
from hopforge.model.topology import Topology
from hopforge.sim.queued.build import QueueParameters

MASK = (1 << 64) - 1
#: router and port; router, port and virtual channel
Port = tuple[int, int]
Channel = tuple[int, int, int]


class Stream:
    """SplitMix64."""

    def __init__(self, state: int) -> None:
        self.state = state

    def word(self) -> int:
        """Next 64 bits."""
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)

    def below(self, bound: int) -> int:
        """Draw a whole number from 0 to `bound` − 1."""
        return ((self.word() >> 32) * bound) >> 32

    def share(self) -> float:
        """Draw a number from 0 to 1."""
        return (self.word() >> 11) / float(1 << 53)


@dataclass
class Packet:
    """A packet; `number` counts those of its host, `arrivals` are the cycles in which it came into routers."""

    src: int
    number: int
    dst: int
    created: int
    hops: int = 0
    arrivals: list[int] = field(default_factory=list)
    via: int | None = None
    decided: bool = False


class Golden:
    """The definition, with lists, one cycle at a time.

    Parameters
    ----------
    topology, given, seed
        As of `build_queues`.
    interval : float
        Packet times between two rounds of an interval source, to uniformly drawn other hosts.
    rounds : tuple of int
        Fewest and most packets of a round.

    Attributes
    ----------
    down, known : set of (router, port)
        Ports whose link is down, and those of which the routing knows it.
    stopped : bool
        Hosts send nothing.
    aside : dict of deque
        By host: packets that it has set aside, to be sent again.
    lost : int
        Packets lost, wherever they were.
    """

    def __init__(
        self, topology: Topology, given: QueueParameters, interval: float, seed: int, rounds: tuple[int, int] = (1, 1)
    ) -> None:
        self.topology, self.given, self.now = topology, given, 0
        R, P, V = topology.routers, topology.max_ports, given.vcs
        self.flight = np.broadcast_to(given.flight_cycles, (R, P))
        self.inputs = {(r, i, v): deque[Packet]() for r in range(R) for i in range(P) for v in range(V)}
        self.goes: dict[tuple[int, int, int], tuple[int, int]] = {}
        self.used = {key: (-1, key[1] * V + key[2]) for key in self.inputs}
        self.outputs = {key: deque[Packet]() for key in self.inputs}
        self.credits = dict.fromkeys(self.inputs, given.input_packets)
        self.preferred = {(r, o): 0 for r in range(R) for o in range(P)}
        self.free_at = dict.fromkeys(self.preferred, -1)
        self.router_stream = [Stream(int(s)) for s in seed_streams(seed, 1, R)]
        self.host_stream = [Stream(int(s)) for s in seed_streams(seed, 2, topology.hosts)]
        H = topology.hosts
        self.nic: list[deque[Packet]] = [deque() for _ in range(H)]
        self.made, self.nic_free, self.nic_credits = [0] * H, [0] * H, [given.input_packets] * H
        self.rounds, self.round_left = rounds, [0] * H
        self.step_fp = round(interval * given.packet_cycles * (1 << 20))
        self.due_fp = [0] * H
        self.packets_under_way: list[tuple[int, int, Any, Packet]] = []  # arrival, flight, place, packet
        self.credits_under_way: list[tuple[int, int, Any, Any]] = []
        self.latencies: list[int] = []
        self.hops: list[int] = []
        self.received = [0] * H
        self.down: set[Port] = set()
        self.known: set[Port] = set()
        self.stopped = False
        self.aside: dict[int, deque[Packet]] = {}
        self.lost = 0

    def route(self, r: int, i: int, v: int, packet: Packet) -> tuple[int, int]:
        """Output port and virtual channel of a packet."""
        raise NotImplementedError

    def note(self, r: int, i: int, packet: Packet) -> Any:
        """Make what goes upstream with the credit of a packet."""
        return None

    def learn(self, r: int, o: int, note: Any) -> None:
        """Use a note that has come back."""
        raise AssertionError("no notes")

    def queue_length(self, r: int, o: int, v: int) -> int:
        """Packets in an output queue, and used credits."""
        return len(self.outputs[r, o, v]) + self.given.input_packets - self.credits[r, o, v]

    def head(self, key: Channel) -> None:
        """Route the first packet of an input queue."""
        packet = self.inputs[key][0]
        self.goes[key] = self.route(*key, packet)
        packet.hops += 1

    def upstream(self, r: int, i: int) -> tuple[str, Any, int]:
        """Find what sends to an input port, and the flight time of credits to it."""
        host = int(self.topology.host_at[r, i])
        if host >= 0:
            return "host", host, int(self.flight[r, i])
        far = int(self.topology.peer_router[r, i]), int(self.topology.peer_port[r, i])
        return "router", far, int(self.flight[far])

    def fail(self, ports: set[Port], switches: set[int] | None = None) -> None:
        """Let links and switches fail before the cycle that comes next; `ports` are also all those of the switches.

        What is on a failed link, in a failed switch, or between it and its hosts is lost, and credited at once. What
        hosts of the switch have set aside is lost, too.
        """
        failing = switches or set()
        self.down = self.down | ports
        for entry in list(self.packets_under_way):
            kind, place = entry[2][:2]
            if kind == "host":
                router, port = int(self.topology.host_router[place]), int(self.topology.host_port[place])
                sender, origin, vc = "router", (router, port), entry[2][2]
                gone = router in failing
            else:
                sender, origin, _ = self.upstream(*place[:2])
                vc = place[2]
                gone = origin in ports if sender == "router" else place[0] in failing
            if gone:
                self.packets_under_way.remove(entry)
                self.give_back(sender, origin, vc)
                self.lose(entry[3])
        for key in (key for key in self.inputs if key[0] in failing):
            for packet in (*self.inputs[key], *self.outputs[key]):
                self.lose(packet)
            sender, origin, _ = self.upstream(*key[:2])
            for _ in self.inputs[key]:
                self.give_back(sender, origin, key[2])
            self.inputs[key].clear()
            self.outputs[key].clear()
        for h in list(self.aside):
            if int(self.topology.host_router[h]) in failing:
                for packet in self.aside.pop(h):
                    self.lose(packet)

    def give_back(self, sender: str, origin: Any, vc: int) -> None:
        """Credit a packet that is lost where it came from."""
        if sender == "router":
            self.credits[(*origin, vc)] += 1
        else:
            self.nic_credits[origin] += 1

    def lose(self, packet: Packet) -> None:
        """Note that a packet is lost."""
        self.lost += 1

    def repair(self, ports: set[Port]) -> None:
        """Let links work again."""
        self.down = self.down - ports

    def stop(self) -> None:
        """Let the hosts begin no packet any more."""
        self.stopped = True

    @property
    def empty(self) -> bool:
        """Nothing is in the network."""
        return not self.packets_under_way and not any(self.inputs.values()) and not any(self.outputs.values())

    def reprogram(self) -> None:
        """Let the routing know what is down, and the hosts send."""
        self.known, self.stopped = set(self.down), False

    def turn_away(self) -> None:
        """Hand a packet of every failed port to a host of its router; without hosts it is lost."""
        for r, o in sorted(self.down):
            waiting = [v for v in range(self.given.vcs) if self.outputs[r, o, v]]
            if waiting:
                hosts = [int(h) for h in self.topology.host_at[r] if h >= 0]
                m = (r * self.topology.max_ports + o) * self.given.vcs + waiting[0]
                packet = self.outputs[r, o, waiting[0]].popleft()
                if hosts:
                    self.aside.setdefault(hosts[m % len(hosts)], deque()).append(packet)
                else:
                    self.lose(packet)

    def send_again(self) -> None:
        """Let every host with a free link send the first packet that it has set aside."""
        for h, packets in self.aside.items():
            if packets and self.nic_free[h] <= self.now and self.nic_credits[h] > 0:
                packet = packets.popleft()
                packet.hops, packet.arrivals, packet.via = 0, [], None
                self.enter(h, packet)

    def step(self) -> None:
        """Simulate a cycle."""
        if self.now % self.given.match_cycles == 0:
            if self.stopped:
                self.turn_away()
            else:
                self.send_again()
        now, given, topology = self.now, self.given, self.topology
        for entry in sorted((e for e in self.credits_under_way if e[0] == now), key=lambda e: -e[1]):
            (kind, place, vc), note = entry[2], entry[3]
            if kind == "host":
                self.nic_credits[place] += 1
            else:
                self.credits[(*place, vc)] += 1
                self.wake(*place)
                if note is not None:
                    self.learn(place[0], place[1], note)
        self.credits_under_way = [e for e in self.credits_under_way if e[0] > now]
        for _, flight, place, packet in sorted((e for e in self.packets_under_way if e[0] == now), key=lambda e: -e[1]):
            if place[0] == "host":
                self.latencies.append(now - packet.created)
                self.hops.append(packet.hops)
                self.received[place[1]] += 1
                self.take(packet)
                router, port = int(topology.host_router[place[1]]), int(topology.host_port[place[1]])
                self.credits_under_way.append((now + flight, flight, ("router", (router, port), place[2]), None))
                continue
            packet.arrivals.append(now)
            self.inputs[place[1]].append(packet)
            if len(self.inputs[place[1]]) == 1:
                self.head(place[1])
        self.packets_under_way = [e for e in self.packets_under_way if e[0] > now]
        self.react()
        if now % given.match_cycles == 0:
            for r in range(topology.routers):
                self.match(r)
        for r, o in self.free_at:
            self.send(r, o)
        for h in range(topology.hosts):
            self.host(h)
        self.now += 1

    def take(self, packet: Packet) -> None:
        """Let a host take a packet that has arrived."""

    def react(self) -> None:
        """Let hosts react to what has arrived."""

    def match(self, r: int) -> None:
        """One match of the crossbar of a router."""
        asking = [
            key
            for key in self.inputs
            if key[0] == r and self.inputs[key] and len(self.outputs[(r, *self.goes[key])]) < self.given.output_packets
        ]
        taken_in, taken_out = set(), set()
        granted: list[Channel] = []
        for key in sorted(asking, key=self.used.__getitem__):
            o, w = self.goes[key]
            if key[1] in taken_in or o in taken_out:
                continue
            taken_in.add(key[1])
            taken_out.add(o)
            self.used[key] = (self.now, len(granted))
            granted.append(key)
            packet = self.inputs[key].popleft()
            kind, place, flight = self.upstream(r, key[1])
            note = self.note(r, key[1], packet) if kind == "router" else None
            self.credits_under_way.append((self.now + flight, flight, (kind, place, key[2]), note))
            self.outputs[r, o, w].append(packet)
            self.wake(r, o)
        for key in granted:
            if self.inputs[key]:
                self.head(key)

    def wake(self, r: int, o: int) -> None:
        """Let an idle output port, to which a packet or credit has come, look later (if ports wake late)."""
        if self.given.wake_late and self.free_at[r, o] < self.now:
            self.free_at[r, o] = self.now + self.given.packet_cycles

    def send(self, r: int, o: int) -> None:
        """Let an output port send."""
        given = self.given
        if self.free_at[r, o] > self.now or (r, o) in self.down:
            return
        if given.wake_late and self.free_at[r, o] < self.now:
            return
        ready = [v for v in range(given.vcs) if self.outputs[r, o, v] and self.credits[r, o, v] > 0]
        if not ready:
            return
        v = min(ready, key=lambda v: (v - self.preferred[r, o]) % given.vcs)
        self.preferred[r, o] = (v + 1) % given.vcs
        self.free_at[r, o] = self.now + given.packet_cycles
        self.credits[r, o, v] -= 1
        packet, flight = self.outputs[r, o, v].popleft(), int(self.flight[r, o])
        host = int(self.topology.host_at[r, o])
        far = (int(self.topology.peer_router[r, o]), int(self.topology.peer_port[r, o]), v)
        place = ("host", host, v) if host >= 0 else ("router", far)
        self.packets_under_way.append((self.now + flight, flight, place, packet))

    def host(self, h: int) -> None:
        """Let a host send."""
        self.generate(h)
        if self.stopped or self.aside.get(h):
            return
        if self.nic[h] and self.nic_free[h] <= self.now and self.nic_credits[h] > 0:
            self.enter(h, self.nic[h].popleft())
            self.generate(h)

    def enter(self, h: int, packet: Packet) -> None:
        """Put a packet on the link from its host."""
        self.nic_free[h] = self.now + self.given.packet_cycles
        self.nic_credits[h] -= 1
        router, port = int(self.topology.host_router[h]), int(self.topology.host_port[h])
        flight = int(self.flight[router, port])
        self.packets_under_way.append((self.now + flight, flight, ("router", (router, port, 0)), packet))

    def generate(self, h: int) -> None:
        """Let a host create packets as long as its queue has a place and they are due."""
        while len(self.nic[h]) < self.given.nic_packets and self.due_fp[h] >> 20 <= self.now:
            chosen = self.host_stream[h].below(self.topology.hosts - 1)
            dst = chosen + 1 if chosen >= h else chosen
            self.nic[h].append(Packet(h, self.made[h], dst, self.now))
            self.made[h] += 1
            if self.round_left[h] == 0:
                low, high = self.rounds
                self.round_left[h] = low + (self.host_stream[h].below(high - low + 1) if high > low else 0)
            self.round_left[h] -= 1
            self.due_fp[h] = max(self.due_fp[h], self.now << 20) + (0 if self.round_left[h] else self.step_fp)
