"""The state of a packet network: its arrays, and the record of their addresses that the kernels get."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.kernel.histogram import HISTOGRAM_BINS
from hopforge.model.network.core.layouts import HOST
from hopforge.model.routing.grids.intermediate import Grid, turns_of
from hopforge.model.topology import Topology
from hopforge.sim.packet import records as r
from hopforge.sim.packet.events import NEVER
from hopforge.sim.packet.settings import Settings

#: cycles without a packet taken by any router, with packets inside, after which a run has come to a standstill
STANDSTILL_PACKET_TIMES = 2000

_ALGORITHMS = {"abr": r.ABR, "por": r.POR, "ofr": r.OFR}


def port_bits(dimensions: int) -> int:
    """Bits of a port: room for the links of a node, one of its source, and one more."""
    return max(3, (2 * dimensions + 1).bit_length())


@dataclass(frozen=True, eq=False)
class Sources:
    """Messages of the nodes.

    Attributes
    ----------
    destinations, births : int64[node, message]
        Where messages go, and in which cycle they are created.
    """

    destinations: NDArray[np.int64]
    births: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class HostProgram:
    """A program on the nodes.

    Attributes
    ----------
    arrays : dict
        Of `model.network.parts.program_arrays.program_arrays`.
    ranks : int
        Ranks.
    interleaved : bool
        A host sends packets of its messages in turn.
    """

    arrays: Mapping[str, NDArray[Any]]
    ranks: int
    interleaved: bool

    @property
    def message_bits(self) -> int:
        """Bits of the number of a message."""
        return len(self.arrays["message"]).bit_length()


class PacketState:
    """All arrays of a packet network at its start, by the names of `records.ARRAYS`.

    Parameters
    ----------
    settings : Settings
        Times in cycles, sizes and rules.
    grid : Grid
        Nodes and minimal directions.
    topology : Topology
        The same network, with its channels.
    sources : Sources or HostProgram
        What the sources send.
    log : bool
        Note the life of every packet.

    Attributes
    ----------
    record : NumPy record
        ``NET[1]``: settings, counters and the addresses of the arrays.
    counters : NumPy record
        The fields `records.COUNTERS` of it.
    """

    def __init__(
        self,
        settings: Settings,
        grid: Grid,
        topology: Topology,
        sources: Sources | HostProgram,
        *,
        log: bool,
        failures: bool = False,
    ) -> None:
        self.vcs = r.VCS + failures
        self._settings, self._nodes, self._ports = settings, topology.routers, 2 * len(grid.radices)
        self._port_bits = port_bits(len(grid.radices))
        self._arrays: dict[str, NDArray[Any]] = {}
        self._events: list[NDArray[Any]] = []
        whole = np.zeros(1, r.NET)
        self.record: Any = whole[0]
        self.counters: Any = whole[[name for name, _ in r.COUNTERS]][0]
        self._fill_settings(grid, log)
        self._add_grid(grid, topology)
        self._add_queues()
        self._add_sources(topology)
        if isinstance(sources, HostProgram):
            self._add_program(sources)
        else:
            self._add("destination", sources.destinations)
            self._add("birth", sources.births)
        self._add_rings()
        self._add_results(log)
        self._add_cycle()

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return an array."""
        return self._arrays[name]

    def _add(self, name: str, array: NDArray[Any]) -> None:
        """Keep an array, with the type that the kernels expect, and its address."""
        held = np.ascontiguousarray(array, r.ARRAYS[name])
        self._arrays[name] = held
        self.record[name] = held.ctypes.data

    def _fill_settings(self, grid: Grid, log: bool) -> None:
        s, record = self._settings, self.record
        record["nodes"], record["dimensions"], record["longest"] = self._nodes, len(grid.radices), max(grid.radices)
        for name in (
            "queue_packets", "send_cycles", "link_cycles", "host_send_cycles", "host_cycles", "hop_cycles",
            "offer_cycles", "answer_cycles", "host_answer_cycles", "sink_wait_cycles", "feed_cycles",
            "feed_waits", "enter_slots", "inject_slots", "message_packets", "messages",
        ):  # fmt: skip
            record[name] = getattr(s, name)
        record["torus"], record["vcs"], record["escape_vc"] = grid.torus, self.vcs, -1
        record["port_bits"], record["host_port"] = self._port_bits, (1 << self._port_bits) - 2
        record["share"], record["share_parts"] = s.outflank_share
        record["adaptive_only"] = s.congestion == "adaptive"
        record["idle_counts_one"], record["full_is_worthless"] = s.idle_ratio == "one", s.full_profit == "zero"
        record["keeps_directions"] = s.wraparound == "directions"
        record["algorithm"], record["distance"] = _ALGORITHMS[s.algorithm], s.outflank_distance
        record["eta"], record["eta_parts"] = s.eta
        record["standstill_cycles"] = max(STANDSTILL_PACKET_TIMES * s.send_cycles, 2 * s.longest_way_cycles)
        record["logs"] = log

    def _add_grid(self, grid: Grid, topology: Topology) -> None:
        """Nodes, their neighbours, and the steps between coordinates."""
        nodes, ports = self._nodes, self._ports
        neighbours = topology.peer_router[:, 1:]  # port 0 is the host's
        stride = 1 << self._port_bits
        peer = np.zeros((nodes, stride), np.int32)
        peer[:, :ports] = neighbours
        peer[:, stride - 2] = np.arange(nodes)
        # what a neighbour sends to its port p comes from the side of the opposite port
        into = np.full((nodes, stride), -1, np.int32)
        for port in range(ports):
            there = neighbours[:, port ^ 1] >= 0
            into[there, port] = neighbours[there, port ^ 1] * stride + port
        table = nodes if self.vcs > r.VCS else 1
        self._add("around_way", np.zeros((table, table)))
        self._add("around_next", np.zeros((table, table)))
        self._add("radix", np.array(grid.radices))
        self._add("step", _steps(grid))
        self._add("coordinate", _coordinates(grid.radices, nodes))
        self._add("peer", peer)
        self._add("into", into)
        turn = _turns(len(grid.radices))
        self._add("turn", turn)
        self.record["turn_rows"] = turn.shape[1]

    def _add_queues(self) -> None:
        """Queues, links and the packets in them."""
        nodes, size = self._nodes, self._settings.queue_packets
        links = nodes << self._port_bits
        queues = links * r.VC_STRIDE
        pool = nodes * (self._ports * self.vcs * size + size + 4)
        self._add("queue_packet", np.zeros((queues, size)))
        self._add("queue_count", np.zeros(queues))
        self._add("queue_sent", np.zeros(queues))
        self._add("held", np.zeros(queues))
        self._add("link", np.zeros(links, r.LINK))
        self._add("sink_free", np.zeros(nodes))
        self._add("packet", np.zeros(pool, r.PACKET))
        self._add("free_packet", np.arange(pool)[::-1])
        self.record["free_packets"] = pool

    def _add_sources(self, topology: Topology) -> None:
        """Add the sources and the ways of their present messages."""
        source = np.zeros(self._nodes, r.SOURCE)
        source["listed"] = -1
        routes = np.zeros(self._nodes, r.ROUTES)
        routes["links"] = (topology.peer_router[:, 1:] >= 0) @ (1 << np.arange(self._ports))
        self._add("source", source)
        self._add("routes", routes)
        # outflank, and the orthants but one
        most = int(self.record["turn_rows"]) + (1 << self._ports // 2)
        self.record["most_via"] = most
        self._add("via", np.zeros((self._nodes, most), r.VIA))

    def _add_program(self, program: HostProgram) -> None:
        """Ranks and messages of a program, and the queues of their hosts."""
        nodes, record, s = self._nodes, self.record, self._settings
        for name, array in program.arrays.items():
            self._add(name, array)
        host = np.zeros(nodes, HOST)
        host["queue_first"] = host["queue_last"] = host["packet"] = -1
        self._add("host", host)
        self._add("host_wake", np.full(nodes, -1))
        # what a sink holds, and what is on its link
        self._add("coming_message", np.zeros(nodes * (s.queue_packets + s.host_cycles // s.host_send_cycles + 2)))
        self._add("untaken", program.arrays["message"]["to_send"].copy())
        self._add("due_host", np.zeros(nodes))
        self._add("due", np.zeros(nodes))
        self._add("departure", np.zeros(2 * nodes))
        record["programs"], record["interleaved"] = True, program.interleaved
        record["message_bits"] = program.message_bits
        record["timers"] = record["ranks_running"] = program.ranks
        record["next_feed"] = NEVER

    def _add_rings(self) -> None:
        """Rings that hold as many events of their kind as there can be."""
        s, nodes, links = self._settings, self._nodes, self._nodes * self._ports
        in_flight = -(-(s.send_cycles + s.link_cycles) // s.send_cycles) + 1
        offers = -(-(s.host_send_cycles + s.host_cycles) // s.feed_cycles) + 2
        places = {
            r.ARRIVALS: links * in_flight,
            r.ANSWERS: links * (self.vcs * s.queue_packets if s.queues == "receiving" else in_flight),
            r.FREES: 2 * links,
            r.OFFERS: nodes * max(offers, s.queue_packets),
            # with failures whole queues may be dropped at once
            r.SINKS: len(self["packet"]) if self.vcs > r.VCS else 2 * nodes,
            r.HOST_CREDITS: nodes * max(s.queue_packets + 1, offers),
            r.HOST_FREES: 2 * nodes,
            r.LATE_ARRIVALS: links * in_flight if s.queues == "receiving" else 1,
        }
        ring = np.zeros(r.EVENT_KINDS, r.RING)
        for kind in range(r.EVENT_KINDS):
            events = np.zeros(1 << max(places[kind] - 1, 1).bit_length(), r.EVENT)
            self._events.append(events)
            ring[kind]["mask"], ring[kind]["events"] = len(events) - 1, events.ctypes.data
        self._add("ring", ring)

    def _add_results(self, log: bool) -> None:
        s = self._settings
        lives = np.zeros(self._nodes * s.messages * s.message_packets if log else 0, r.LOG)
        for name in r.LOG.names or ():
            lives[name] = -1
        self._add("log", lives)
        self._add("histogram", np.zeros(HISTOGRAM_BINS))
        self._add("message_sum", np.zeros(s.messages, r.MESSAGE_SUM))

    def _add_cycle(self) -> None:
        """Room for what happens in one cycle."""
        nodes, ports = self._nodes, self._ports
        self._add("arrived", np.full((nodes, ports + 1), -1))
        self._add("active_node", np.zeros(nodes))
        self._add("active", np.zeros(nodes))
        self._add("ready_link", np.zeros(8 * nodes * ports))
        self._add("used", np.zeros(ports))
        self._add("place", np.zeros(ports // 2))

    def events_of(self, kind: int) -> list[tuple[int, int]]:
        """Return cycle and what happens of the events of a kind that have not happened yet, in order."""
        ring, events = self["ring"][kind], self._events[kind]
        places = (ring["first"] + np.arange(ring["count"])) & ring["mask"]
        return [(int(time), int(what)) for time, what in events[places].tolist()]

    def put_events(self, kind: int, events: list[tuple[int, int]]) -> None:
        """Let these events, in order of time, be all of a kind."""
        ring = self["ring"][kind]
        assert len(events) <= int(ring["mask"]) + 1, "more events of a kind than there can be"
        self._events[kind][: len(events)] = events
        ring["first"], ring["count"] = 0, len(events)

    def pending(self, kind: int) -> NDArray[np.int64]:
        """Return what the events of a kind say that have not happened yet, in order."""
        ring, events = self["ring"][kind], self._events[kind]
        return np.asarray(events["what"][(ring["first"] + np.arange(ring["count"])) & ring["mask"]])


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


def _turns(dimensions: int) -> NDArray[np.int64]:
    """λ by equal coordinates: int64[dimensions, …, dimensions]; a 2 ends a list."""
    lists = [turns_of(dimensions, equal) for equal in range(dimensions)]
    table = np.full((dimensions, max(map(len, lists)) + 1, dimensions), 2, np.int64)
    for equal, rows in enumerate(lists):
        for k, row in enumerate(rows):
            table[equal, k] = row
    return table
