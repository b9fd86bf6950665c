"""A packet network made ready for the kernel, stepped, and looked into."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import int64, types
from numpy.typing import NDArray

from hopforge.model.config import Config
from hopforge.model.kernel.compile import entry
from hopforge.model.kernel.memory import int32s
from hopforge.model.kernel.rng import seed_streams
from hopforge.model.network.core.records import NET, NET_RECORD, PATTERN_SIGNATURE
from hopforge.model.routing.deadlock import DeadlockError
from hopforge.model.topology import Topology, build
from hopforge.model.topology.failed import refuse_failed
from hopforge.sim.packet import records as r
from hopforge.sim.packet.credit_kernel import run as run_with_credits
from hopforge.sim.packet.escape import check_escape
from hopforge.sim.packet.intermediate import TURNS, Grid
from hopforge.sim.packet.kernel import run as run_kernel
from hopforge.sim.packet.settings import PacketError, packet_settings, unit_period_ns
from hopforge.sim.traffic import TrafficPlan, prepare_traffic

#: cycles without a packet taken by any router, with packets inside, after which a run has come to a standstill
STANDSTILL_PACKET_TIMES = 2000

#: messages by which a node can be ahead of the others in a pattern by message, with ``packet.phase: random``
_MOST_AHEAD = 1024

_ALGORITHMS = {"abr": r.ABR, "por": r.POR, "ofr": r.OFR}


class PacketNetwork:
    """A packet network at one load and seed.

    Parameters
    ----------
    config : Config
        With ``router.model: packet``.
    load : float
        In units of the load that saturates the bisection under uniform traffic.
    seed : int
        Of destinations and, with ``packet.process: exponential``, times.
    log : bool
        Note the life of every packet.
    check : bool
        Prove the escape network free of deadlock first.
    messages : int, optional
        Of every node, instead of ``packet.messages``.

    Raises
    ------
    PacketError, TrafficError, DeadlockError
        Settings that do not fit, or that can deadlock.
    """

    def __init__(
        self,
        config: Config,
        load: float,
        seed: int,
        *,
        log: bool = False,
        check: bool = True,
        messages: int | None = None,
    ) -> None:
        if load <= 0:
            raise PacketError(f"the load must be above 0, not {load}")
        self.config, self.load, self.seed = config, load, seed
        self.settings = packet_settings(config)
        if messages is not None:
            self.settings = dataclasses.replace(self.settings, messages=messages)
        refuse_failed(config.failed, "router.model: packet")
        self.topology: Topology = build(config.topology, config.address)
        self.grid = Grid(
            tuple(int(k) for k in self.topology.params["radices"]),
            self.topology.kind == "torus",
            config.packet.ties == "both",
        )
        if check and config.routing.check:
            check_escape(self.grid, self.settings)
        self.period_cycles = self.settings.message_packets * unit_period_ns(config) / self.settings.cycle_ns / load
        traffic = config.traffic
        pattern = str(traffic.file) if traffic.file is not None else traffic.pattern
        plan = prepare_traffic(self.topology, pattern, traffic.model_dump(), np.random.default_rng((seed, 3)))
        ahead = np.zeros(self.topology.hosts, np.int64)
        if config.packet.phase == "random":
            ahead = np.random.default_rng((seed, 5)).integers(0, _MOST_AHEAD, self.topology.hosts)
        self.destinations = draw_destinations(plan, ahead, self.settings.messages, seed)
        self.births = self._births(config.packet.process, plan)
        self._allocate(log)

    def _births(self, process: str, plan: TrafficPlan) -> NDArray[np.int64]:
        """Cycles of creation: int64[node, message]."""
        nodes, messages = self.topology.hosts, self.settings.messages
        if plan.silent is not None and plan.silent.any():
            raise PacketError("traffic.pattern with silent hosts is for other router models than packet")
        if process == "periodic":
            times = np.arange(messages) * self.period_cycles
            return np.repeat(np.ceil(times).astype(np.int64)[None], nodes, axis=0)
        gaps = np.random.default_rng((self.seed, 4)).exponential(self.period_cycles, (nodes, messages))
        return np.ceil(np.cumsum(gaps, axis=1)).astype(np.int64)

    def _allocate(self, log: bool) -> None:
        s, radices = self.settings, self.grid.radices
        n, nodes = len(radices), self.topology.routers
        links = 2 * n
        p = np.zeros(r.PARAMETERS, np.int64)
        p[r.NODES], p[r.DIMENSIONS], p[r.QUEUE], p[r.TORUS] = nodes, n, s.queue_packets, self.grid.torus
        p[r.SEND_CYCLES], p[r.LINK_CYCLES] = s.send_cycles, s.link_cycles
        p[r.HOST_SEND_CYCLES], p[r.HOST_CYCLES] = s.host_send_cycles, s.host_cycles
        p[r.FEED_CYCLES], p[r.FEED_WAITS] = s.feed_cycles, s.feed_waits
        p[r.ENTER_SLOTS], p[r.INJECT_SLOTS] = s.enter_slots, s.inject_slots
        p[r.ADAPTIVE_ONLY] = s.congestion == "adaptive"
        p[r.IDLE_COUNTS_ONE], p[r.FULL_IS_WORTHLESS] = s.idle_ratio == "one", s.full_profit == "zero"
        p[r.KEEPS_DIRECTIONS] = s.wraparound == "directions"
        p[r.ALGORITHM], p[r.DISTANCE] = _ALGORITHMS[s.algorithm], s.outflank_distance
        p[r.ETA], p[r.ETA_PARTS] = s.eta
        p[r.MESSAGE_PACKETS], p[r.MESSAGES] = s.message_packets, s.messages
        p[r.DEADLOCK_CYCLES] = STANDSTILL_PACKET_TIMES * s.send_cycles
        self.parameters = p
        self.counters = np.zeros(r.COUNTERS, np.int64)
        peer = np.zeros((nodes, r.PORT_STRIDE), np.int32)
        peer[:, :links] = self.topology.peer_router[:, 1:]  # port 0 is the host's
        exists = (self.topology.peer_router[:, 1:] >= 0) @ (1 << np.arange(links))
        queues = nodes * r.PORT_STRIDE * r.VC_STRIDE
        pool = nodes * (links * r.VCS * s.queue_packets + s.queue_packets + 4)
        self.counters[r.FREE_COUNT] = pool
        in_flight = -(-(s.send_cycles + s.link_cycles) // s.send_cycles) + 1
        offers = -(-(s.host_send_cycles + s.host_cycles) // s.feed_cycles) + 2
        self.queue_packet = np.zeros((queues, s.queue_packets), np.int32)
        self.queue_count = np.zeros(queues, np.uint8)
        self.queue_sent = np.zeros(queues, np.uint64)
        self.packets = np.zeros((pool, 8), np.int32)
        self.source = np.zeros((nodes, 4), np.int64)
        direct = np.zeros((nodes, 3), np.int64)
        direct[:, 2] = exists
        whole = nodes * s.messages * s.message_packets
        self.log = np.full((whole if log else 0, 5), -1, np.int64)
        self.histogram = np.zeros(r.BINS, np.int64)
        self.message_sums = np.zeros((s.messages, 2), np.int64)
        self.ends = np.zeros((6, 2), np.int64)
        self._rings = {
            r.ARRIVALS: _ring(nodes * links * in_flight),
            r.OFFERS: _ring(nodes * max(offers, s.queue_packets)),
        }
        answers = nodes * links * (r.VCS * s.queue_packets if s.queues == "receiving" else in_flight)
        self.link_free = np.zeros((nodes * r.PORT_STRIDE, 2), np.int64)
        self._arguments: tuple[Any, ...] = (
            p, self.counters, np.array(radices, np.int64), _steps(self.grid), _coordinates(radices, nodes),
            peer.reshape(-1), _turns(), self.destinations, self.births, self.queue_packet, self.queue_count,
            self.queue_sent, self.link_free, np.zeros(nodes, np.int64), self.packets,
            np.arange(pool, dtype=np.int32)[::-1].copy(), self.source, np.zeros((nodes, r.MOST_VIA, 4), np.int64),
            np.zeros(nodes, np.int64), direct, self._rings[r.ARRIVALS], _ring(answers),
            _ring(2 * nodes * links), self._rings[r.OFFERS], self.ends, self.log, self.histogram, self.message_sums,
            np.full((nodes, links + 1), -1, np.int64), np.zeros(nodes, np.int64), np.zeros(nodes, np.uint8),
            np.zeros(8 * nodes * links, np.int64), np.zeros(links, np.int64), np.zeros(n, np.int64),
        )  # fmt: skip

        self._credits: tuple[Any, ...] = ()
        if s.queues == "receiving":
            peer[:, r.HOST_PORT] = np.arange(nodes)
            # what a neighbour sends to its port p comes from the side of the opposite port
            into = np.full((nodes, r.PORT_STRIDE), -1, np.int32)
            neighbours = self.topology.peer_router[:, 1:]
            for port in range(links):
                there = neighbours[:, port ^ 1] >= 0
                into[there, port] = neighbours[there, port ^ 1] * r.PORT_STRIDE + port
            self.source[:, 3] = -1
            self.held = np.zeros(queues, np.uint8)
            self._credits = (self.held, into, _ring(2 * nodes), _ring(nodes * (s.queue_packets + 1)))

    def channel_packets(self) -> NDArray[np.int64]:
        """Packets that each channel between routers has sent, refused ones too, in the order of `Topology.channels`."""
        channels = self.topology.channels()
        sent = self.link_free[:, 1].reshape(self.topology.routers, r.PORT_STRIDE)
        return np.asarray(sent[channels.src_router, channels.src_port - 1])  # port 0 is the host's

    @property
    def cycle(self) -> int:
        """Present cycle."""
        return int(self.counters[r.NOW])

    def advance(self, until: int) -> bool:
        """Go on until cycle `until`; returns whether everything has been delivered.

        Raises
        ------
        DeadlockError
            A standstill.
        """
        if self._credits:
            code = run_with_credits(until, *self._arguments, *self._credits)
        else:
            code = run_kernel(until, *self._arguments)
        if code == r.STUCK:
            inside = int(self.counters[r.INJECTED] - self.counters[r.DELIVERED])
            raise DeadlockError(
                f"deadlock at cycle {self.cycle}: {inside} packets are inside and no router has taken one since cycle "
                f"{int(self.counters[r.LAST_MOVE])}"
            )
        return bool(code == r.EMPTY)

    def set_load(self, load: float) -> None:
        """Offer another load from the present cycle on: the messages that have not been created yet move in time."""
        stretch = self.load / load
        later = self.births > self.cycle
        self.births[later] = self.cycle + np.ceil((self.births[later] - self.cycle) * stretch).astype(np.int64)
        self.load, self.period_cycles = load, self.period_cycles * stretch

    def check_conservation(self) -> None:
        """Find every packet that was taken and not delivered in its queue (our own mistake otherwise)."""
        inside = int(self.counters[r.INJECTED] - self.counters[r.DELIVERED])
        counted = len(self.live_packets())
        if counted != inside:
            raise AssertionError(f"{inside} packets should be inside, {counted} are there")

    def live_packets(self) -> set[int]:
        """Numbers of the packet records that stand in their present queue, or, with credits, are on a link."""
        found = set()
        if self._credits:
            for kind, ring in self._rings.items():
                first, count = self.ends[kind].tolist()
                places = (first + np.arange(count)) % len(ring)
                found |= {what >> 31 for what in ring[places, 1].tolist()}
            for q in np.flatnonzero(self.queue_count):
                found |= set(self.queue_packet[q, : self.queue_count[q]].tolist())
            return {packet for packet in found if self.packets[packet, 6] >= 0}
        for q in np.flatnonzero(self.queue_count):
            for packet in self.queue_packet[q, : self.queue_count[q]].tolist():
                if self.packets[packet, 6] == q:
                    found.add(packet)
        return found


@entry(
    types.void(
        types.FunctionType(PATTERN_SIGNATURE), NET_RECORD, int64, types.int64[::1], types.Array(types.int64, 2, "C")
    )
)
def _fill(pattern: Callable[..., int], net: Any, table: int, ahead: Any, out: Any) -> None:
    for host in range(out.shape[0]):
        for number in range(out.shape[1]):
            out[host, number] = pattern(int64(host), ahead[host] + number, net, int32s(table))


def draw_destinations(plan: TrafficPlan, ahead: NDArray[np.int64], messages: int, seed: int) -> NDArray[np.int64]:
    """Destinations of the first messages of all hosts: int64[host, message], by the pattern of `sim.traffic`.

    A host begins with the message of the pattern whose number is ahead[host].
    """
    hosts = len(ahead)
    record = np.zeros(1, NET)
    streams = seed_streams(seed, 1, hosts)
    record["host_rng"] = streams.ctypes.data
    record["hosts"] = hosts
    table = np.ascontiguousarray(plan.table, np.int32)
    found = np.zeros((hosts, messages), np.int64)
    _fill(plan.pattern, record[0], table.ctypes.data, ahead, found)
    return found


def _power_of_two(least: int) -> int:
    return 1 << max(least - 1, 1).bit_length()


def _ring(least: int) -> NDArray[np.int64]:
    return np.zeros((_power_of_two(least), 2), np.int64)


def _steps(grid: Grid) -> NDArray[np.int32]:
    """int32[n, k, k]: 4 · distance + 1 if + is minimal + 2 if − is."""
    largest = max(grid.radices)
    steps = np.zeros((len(grid.radices), largest, largest), np.int32)
    for i, k in enumerate(grid.radices):
        for a in range(k):
            for b in range(k):
                distance, ways = grid.ways(i, a, b)
                steps[i, a, b] = 4 * distance + sum(1 if way > 0 else 2 for way in ways)
    return steps


def _coordinates(radices: tuple[int, ...], nodes: int) -> NDArray[np.int32]:
    weights = [math.prod(radices[:i]) for i in range(len(radices))]
    return np.stack([np.arange(nodes) // w % k for w, k in zip(weights, radices, strict=True)], axis=1).astype(np.int32)


def _turns() -> NDArray[np.int64]:
    table = np.full((2, 4, 6, 3), 2, np.int64)
    for (n, equal), rows in TURNS.items():
        for k, row in enumerate(rows):
            table[n - 2, equal, k, :n] = row
    return table
