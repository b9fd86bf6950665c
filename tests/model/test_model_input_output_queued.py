"""Input-output-queued routers against a plain golden written from docs/router-models.md, in every cycle."""

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from hopforge.model.config.lookup import AddressConfig
from hopforge.model.config.router import RouterConfig
from hopforge.model.config.topology import DragonflyConfig
from hopforge.model.input_output_queued.build import IntervalSource, QueuedState, QueueParameters, build_queues
from hopforge.model.input_output_queued.kernel import run_cycles
from hopforge.model.input_output_queued.parts import find_parts
from hopforge.model.link_times import port_values
from hopforge.model.network.build import SourceParameters, Tables
from hopforge.model.network.records import DONE, GROW
from hopforge.model.network.rng import seed_streams
from hopforge.model.routing import ROUTING, RoutingPlan
from hopforge.model.topology import Topology, build
from hopforge.model.traffic import prepare_traffic

MASK = (1 << 64) - 1


class Stream:
    """SplitMix64."""

    def __init__(self, state: int) -> None:
        self.state = state

    def word(self) -> int:
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)

    def below(self, bound: int) -> int:
        return ((self.word() >> 32) * bound) >> 32

    def share(self) -> float:
        return (self.word() >> 11) / float(1 << 53)


@dataclass
class Packet:
    src: int
    number: int
    dst: int
    created: int
    hops: int = 0
    arrivals: list[int] = field(default_factory=list)
    via: int | None = None
    decided: bool = False


class Golden:
    """The definition, with lists, one cycle at a time."""

    def __init__(self, topology: Topology, given: QueueParameters, interval: float, seed: int) -> None:
        self.topology, self.given, self.now = topology, given, 0
        R, P, V = topology.routers, topology.max_ports, given.vcs
        self.flight = np.broadcast_to(given.flight_cycles, (R, P))
        self.inputs = {(r, i, v): deque[Packet]() for r in range(R) for i in range(P) for v in range(V)}
        self.goes: dict[tuple[int, int, int], tuple[int, int]] = {}
        self.used = {key: (-1, key[1] * V + key[2]) for key in self.inputs}
        self.outputs = {key: deque[Packet]() for key in self.inputs}
        self.credits = dict.fromkeys(self.inputs, given.input_packets)
        self.preferred = {(r, o): 0 for r in range(R) for o in range(P)}
        self.free_at = dict.fromkeys(self.preferred, 0)
        self.router_stream = [Stream(int(s)) for s in seed_streams(seed, 1, R)]
        self.host_stream = [Stream(int(s)) for s in seed_streams(seed, 2, topology.hosts)]
        H = topology.hosts
        self.nic: list[deque[Packet]] = [deque() for _ in range(H)]
        self.made, self.nic_free, self.nic_credits = [0] * H, [0] * H, [given.input_packets] * H
        self.step_fp = round(interval * given.packet_cycles * (1 << 20))
        self.due_fp = [0] * H
        self.packets_under_way: list[tuple[int, int, Any, Packet]] = []  # arrival, flight, place, packet
        self.credits_under_way: list[tuple[int, int, Any, Any]] = []
        self.latencies: list[int] = []
        self.hops: list[int] = []
        self.received = [0] * H

    def route(self, r: int, i: int, v: int, packet: Packet) -> tuple[int, int]:
        raise NotImplementedError

    def note(self, r: int, i: int, packet: Packet) -> Any:
        return None

    def learn(self, r: int, o: int, note: Any) -> None:
        raise AssertionError("no notes")

    def queue_length(self, r: int, o: int, v: int) -> int:
        return len(self.outputs[r, o, v]) + self.given.input_packets - self.credits[r, o, v]

    def head(self, key: tuple[int, int, int]) -> None:
        packet = self.inputs[key][0]
        self.goes[key] = self.route(*key, packet)
        packet.hops += 1

    def upstream(self, r: int, i: int) -> tuple[str, Any, int]:
        host = int(self.topology.host_at[r, i])
        if host >= 0:
            return "host", host, int(self.flight[r, i])
        far = int(self.topology.peer_router[r, i]), int(self.topology.peer_port[r, i])
        return "router", far, int(self.flight[far])

    def step(self) -> None:
        now, given, topology = self.now, self.given, self.topology
        for entry in sorted((e for e in self.credits_under_way if e[0] == now), key=lambda e: -e[1]):
            (kind, place, vc), note = entry[2], entry[3]
            if kind == "host":
                self.nic_credits[place] += 1
            else:
                self.credits[(*place, vc)] += 1
                if note is not None:
                    self.learn(*place, note)
        self.credits_under_way = [e for e in self.credits_under_way if e[0] > now]
        for _, flight, place, packet in sorted((e for e in self.packets_under_way if e[0] == now), key=lambda e: -e[1]):
            if place[0] == "host":
                self.latencies.append(now - packet.created)
                self.hops.append(packet.hops)
                self.received[place[1]] += 1
                router, port = int(topology.host_router[place[1]]), int(topology.host_port[place[1]])
                self.credits_under_way.append((now + flight, flight, ("router", (router, port), place[2]), None))
                continue
            packet.arrivals.append(now)
            self.inputs[place[1]].append(packet)
            if len(self.inputs[place[1]]) == 1:
                self.head(place[1])
        self.packets_under_way = [e for e in self.packets_under_way if e[0] > now]
        if now % given.match_cycles == 0:
            for r in range(topology.routers):
                self.match(r)
        for r, o in self.free_at:
            self.send(r, o)
        for h in range(topology.hosts):
            self.host(h)
        self.now += 1

    def match(self, r: int) -> None:
        asking = [
            key
            for key in self.inputs
            if key[0] == r and self.inputs[key] and len(self.outputs[(r, *self.goes[key])]) < self.given.output_packets
        ]
        taken_in, taken_out, granted = set(), set(), []
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
        for key in granted:
            if self.inputs[key]:
                self.head(key)

    def send(self, r: int, o: int) -> None:
        given = self.given
        if self.free_at[r, o] > self.now:
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
        self.generate(h)
        if self.nic[h] and self.nic_free[h] <= self.now and self.nic_credits[h] > 0:
            packet = self.nic[h].popleft()
            self.nic_free[h] = self.now + self.given.packet_cycles
            self.nic_credits[h] -= 1
            router, port = int(self.topology.host_router[h]), int(self.topology.host_port[h])
            flight = int(self.flight[router, port])
            self.packets_under_way.append((self.now + flight, flight, ("router", (router, port, 0)), packet))
            self.generate(h)

    def generate(self, h: int) -> None:
        if len(self.nic[h]) < self.given.nic_packets and self.due_fp[h] >> 20 <= self.now:
            chosen = self.host_stream[h].below(self.topology.hosts - 1)
            dst = chosen + 1 if chosen >= h else chosen
            self.nic[h].append(Packet(h, self.made[h], dst, self.now))
            self.made[h] += 1
            self.due_fp[h] = max(self.due_fp[h], self.now << 20) + self.step_fp


class GoldenDragonfly(Golden):
    """Ways on a dragonfly with one link for each pair of groups, from the arrays of the topology."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.p, self.a, self.g = (int(self.topology.params[name]) for name in ("p", "a", "g"))
        self.link = {}
        for r in range(self.topology.routers):
            for o in range(self.topology.max_ports):
                peer = int(self.topology.peer_router[r, o])
                if peer >= 0 and peer // self.a != r // self.a:
                    self.link[r // self.a, peer // self.a] = (r, o)

    def to(self, r: int, goal: int) -> int:
        """Port towards another router."""
        peers = self.topology.peer_router[r].tolist()
        if goal // self.a == r // self.a:
            return peers.index(goal)
        gate, port = self.link[r // self.a, goal // self.a]
        return port if gate == r else peers.index(gate)

    def minimal(self, r: int, dst: int) -> int:
        goal = dst // self.p
        return dst % self.p if goal == r else self.to(r, goal)

    def draw_outside(self, r: int, a: int, b: int) -> int:
        others = [x for x in range(self.g) if x not in (a, b)]
        chosen = self.router_stream[r].below(len(others) * self.a)
        return others[chosen // self.a] * self.a + chosen % self.a


class GoldenUgalNode(GoldenDragonfly):
    def route(self, r: int, i: int, v: int, packet: Packet) -> tuple[int, int]:
        here, goal, source = r // self.a, packet.dst // self.p // self.a, packet.src // self.p // self.a
        direct = self.minimal(r, packet.dst)
        if here == goal:
            return direct, 3
        if i < self.p:
            via = self.draw_outside(r, source, goal)
            around = self.to(r, self.link[here, via // self.a][0]) if self.link[here, via // self.a][0] != r else -1
            around = self.link[here, via // self.a][1] if around < 0 else around
            if around == direct:
                q_min, q_non = self.queue_length(r, direct, 2), self.queue_length(r, around, 0)
            else:
                q_min, q_non = (
                    sum(self.queue_length(r, o, w) for w in range(self.given.vcs)) for o in (direct, around)
                )
            if q_min > 2 * q_non:
                packet.via = via
        if packet.via == r:
            packet.via = None
        if packet.via is None:
            return direct, 2
        return self.to(r, packet.via), 1 if packet.via // self.a == here else 0


class GoldenQAdaptive(GoldenDragonfly):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.q: dict[tuple[int, int, int, int], float] = {}
        self.ports = [o for o in range(self.p, self.topology.max_ports) if self.topology.peer_router[0, o] >= 0]

    def estimate(self, r: int, goal: int, number: int, o: int) -> float:
        peer = int(self.topology.peer_router[r, o])
        first = 300.0 if peer // self.a == goal and peer // self.a != r // self.a else 330.0
        return self.q.get((r, goal, number, o), first)

    def best(self, r: int, goal: int, number: int) -> int:
        return min(self.ports, key=lambda o: self.estimate(r, goal, number, o))

    def route(self, r: int, i: int, v: int, packet: Packet) -> tuple[int, int]:
        hops = len(packet.arrivals) - 1
        here, goal, number = r // self.a, packet.dst // self.p // self.a, packet.src % self.p
        port = direct = self.minimal(r, packet.dst)
        first_of_group = hops == 1 and i >= self.p + self.a - 1
        if here != goal and (hops == 0 or (first_of_group and direct < self.p + self.a - 1)):
            if hops == 0:
                other, threshold = self.best(r, goal, number), 0.2
            else:
                other, threshold = self.p + self.router_stream[r].below(self.a - 1), 0.35
            q_min = self.estimate(r, goal, number, direct)
            if (q_min - self.estimate(r, goal, number, other)) / q_min >= threshold:
                port = other
            if self.router_stream[r].share() < 0.05:
                port = self.p + self.router_stream[r].below(len(self.ports))
        return port, min(hops, 4)

    def note(self, r: int, i: int, packet: Packet) -> Any:
        goal, number = packet.dst // self.p // self.a, packet.src % self.p
        rest = 0.0
        if r // self.a != goal:
            rest = self.estimate(r, goal, number, self.best(r, goal, number))
        elif i < self.p + self.a - 1:
            return None
        return goal, number, (packet.arrivals[-1] - packet.arrivals[-2]) * 0.4 + rest

    def learn(self, r: int, o: int, note: Any) -> None:
        goal, number, value = note
        old = self.estimate(r, goal, number, o)
        self.q[r, goal, number, o] = old + (0.2 if value < old else 0.04) * (value - old)


GOLDEN = {"ugal_node": (GoldenUgalNode, 4), "q_adaptive": (GoldenQAdaptive, 5)}


def dragonfly(p: int, a: int, h: int, **others: Any) -> Topology:
    return build(DragonflyConfig(kind="dragonfly", p=p, a=a, h=h, **others), AddressConfig(chunk_bits=4))


def kernel(
    topology: Topology, plan: RoutingPlan, given: QueueParameters, source: SourceParameters, seed: int
) -> tuple[QueuedState, Any]:
    traffic = prepare_traffic(topology, "uniform", {"include_self": False}, np.random.default_rng(1))
    tables = Tables(plan.table, plan.memory, traffic.table, plan.max_candidates, plan.inject_mask, plan.feedback)
    state = build_queues(topology, given, source, tables, seed)

    def run(cycles: int) -> int:
        code, end = GROW, int(state["cycle"]) + cycles
        while code == GROW:
            code = run_cycles(
                plan.route, traffic.pattern, state.record[0], state.queue_record[0], end - int(state["cycle"])
            )
            if code == GROW:
                state.grow_packets()
        return int(code)

    return state, run


def contents(state: QueuedState, name: str) -> list[list[tuple[int, int]]]:
    """Source and number of the packets in every queue, first one first."""
    packets, following, found = state["packet"], state.queues["following"], []
    for queue in state.queues[name]:
        which, p = [], int(queue["first"])
        for _ in range(int(queue["length"])):
            which.append((int(packets["src"][p]), int(packets["number"][p])))
            p = int(following[p])
        found.append(which)
    return found


@pytest.mark.parametrize(
    ("algorithm", "shape", "depths", "interval", "seed"),
    [
        ("ugal_node", (2, 4, 2), (3, 2, 3), 1.0, 1),
        ("ugal_node", (1, 2, 1), (1, 1, 1), 1.3, 2),
        ("q_adaptive", (2, 2, 2), (2, 3, 2), 1.0, 3),
        ("q_adaptive", (2, 4, 2), (20, 20, 20), 1.25, 4),
    ],
)
def test_every_cycle_as_the_golden(
    algorithm: str, shape: tuple[int, int, int], depths: tuple[int, int, int], interval: float, seed: int
) -> None:
    topology = dragonfly(*shape)
    golden_class, vcs = GOLDEN[algorithm]
    flight = port_values(topology, 25, 60, 9)
    given = QueueParameters(
        vcs=vcs, input_packets=depths[0], output_packets=depths[1], nic_packets=depths[2], packet_cycles=16,
        match_cycles=4, flight_cycles=flight,
    )  # fmt: skip
    golden = golden_class(topology, given, interval, seed)
    options = {"router": RouterConfig(model="input_output_queued"), "epsilon": 0.05}
    plan = ROUTING[algorithm](topology, vcs, options)
    state, run = kernel(topology, plan, given, IntervalSource(interval_packets=interval), seed)
    ejected = 0
    for cycle in range(450):
        golden.step()
        assert run(1) == DONE
        length = {
            "input_queue": [len(queue) for queue in golden.inputs.values()],
            "output_queue": [len(queue) for queue in golden.outputs.values()],
        }
        for name, wanted in length.items():
            assert state.queues[name]["length"].tolist() == wanted, (cycle, name)
        assert state["host"]["flits_received"].tolist() == golden.received, cycle
        if len(golden.latencies) > ejected:
            ejected = len(golden.latencies)
            assert (state["latency_sum"], state["hops_sum"]) == (sum(golden.latencies), sum(golden.hops)), cycle
        if cycle % 50 == 49:
            for name, wanted in (("input_queue", golden.inputs), ("output_queue", golden.outputs)):
                assert contents(state, name) == [[(k.src, k.number) for k in q] for q in wanted.values()], cycle
            assert state["packets_created"] == sum(golden.made) - sum(len(queue) for queue in golden.nic)
    assert ejected > 20
    assert state.flits_present == state.flits_in_flight
    if isinstance(golden, GoldenQAdaptive):
        learned = plan.memory.size - np.count_nonzero(state["memory"] == plan.memory)
        assert learned > 20
        assert learned == sum(value != golden_first(golden, key) for key, value in golden.q.items())
        estimates = state["memory"][-topology.routers * golden.g * golden.p * (topology.max_ports - golden.p) :]
        estimates = estimates.reshape(topology.routers, golden.g, golden.p, -1)
        for (r, goal, number, o), value in golden.q.items():
            assert estimates[r, goal, number, o - golden.p] == value


def golden_first(golden: GoldenQAdaptive, key: tuple[int, int, int, int]) -> float:
    kept, golden.q = golden.q, {}
    first = golden.estimate(*key)
    golden.q = kept
    return first


def test_parts_of_a_dragonfly_are_groups_or_several() -> None:
    topology = dragonfly(2, 4, 2)
    flight = np.asarray(port_values(topology, 25, 60, 9), np.int64)
    parts = find_parts(topology, flight, 35, 1)
    assert (len(parts), parts.far_cycles) == (9, 60)
    assert parts.first_router.tolist() == list(range(0, 37, 4))
    assert parts.first_host.tolist() == list(range(0, 73, 8))
    assert find_parts(topology, flight, 35, 281).first_router.tolist() == [0, 12, 24, 36]


@pytest.mark.parametrize(("local", "far", "host"), [(25, 60, 60), (60, 25, 9)])
def test_one_part_where_order_or_links_forbid_more(local: int, far: int, host: int) -> None:
    topology = dragonfly(2, 4, 2)
    flight = np.asarray(port_values(topology, local, far, host), np.int64)
    assert len(find_parts(topology, flight, 35, 1)) == 1


@pytest.mark.parametrize(
    ("algorithm", "vcs", "options"),
    [
        ("q_adaptive", 5, {"epsilon": 0.05}),
        ("q_adaptive", 5, {"epsilon": 0.05, "estimate_bits": 12, "estimate_rounding": "random"}),
        ("par", 5, {}),
    ],
)
@pytest.mark.parametrize("source", [IntervalSource(interval_packets=1.1), SourceParameters(packet_rate=0.7 / 16)])
def test_parts_one_after_the_other_give_the_same(
    algorithm: str, vcs: int, options: dict[str, Any], source: SourceParameters
) -> None:
    topology = dragonfly(2, 4, 2)
    plan = ROUTING[algorithm](topology, vcs, {"router": RouterConfig(model="input_output_queued"), **options})
    found = []
    for least, chunks in ((1, [701, 1, 1299, 59, 61]), (10_000, [2121]), (400, [60, 2061])):
        given = QueueParameters(
            vcs=vcs, input_packets=3, output_packets=2, nic_packets=3, packet_cycles=16, match_cycles=4,
            flight_cycles=port_values(topology, 25, 60, 9), part_queues=least,
        )  # fmt: skip
        state, run = kernel(topology, plan, given, source, 3)
        assert (int(state.queue_record["parts"][0]) > 1) == (least < 10_000)
        for cycles in chunks:
            assert run(cycles) == DONE
            assert state.flits_present == state.flits_in_flight
        counters = [
            int(state[name])
            for name in ("cycle", "last_move", "packets_created", "latency_sum", "hops_sum", "measured", "notes")
        ]
        queues = [state.queues[name]["length"].tolist() for name in ("input_queue", "output_queue")]
        which = [contents(state, name) for name in ("input_queue", "output_queue")]
        streams = [state[name].tobytes() for name in ("memory", "histogram", "router_rng", "host_rng")]
        found.append((counters, queues, which, streams))
    assert found[0][0][5] > 1000
    assert found[0] == found[1] == found[2]
