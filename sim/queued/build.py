"""From a topology and parameters to the state of a network of input-output-queued routers."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.free_memory import refuse_beyond_memory
from hopforge.model.kernel.arena import LINE_BYTES, gather
from hopforge.model.network.build import build_net
from hopforge.model.network.core.kinds import BERNOULLI, HOST_VC_BITS, ON_OFF
from hopforge.model.network.core.layouts import NOTE
from hopforge.model.network.core.state import NetState, NetworkError
from hopforge.model.network.settings import RouterParameters, SourceParameters, Tables
from hopforge.model.topology import Topology
from hopforge.sim.queued.parts import PART_QUEUES, Parts, find_parts
from hopforge.sim.queued.records import (
    ARRAYS,
    INPUT_QUEUE,
    INTERVAL,
    INTERVAL_BITS,
    LINE,
    NIC,
    OUTPUT_QUEUE,
    PART,
    QUEUES,
)

#: slots of the calendar of hosts
CALENDAR_SLOTS = 1024
#: records of packets for each host at the beginning
PACKETS_PER_HOST = 32
#: bins of the latency histogram in a packet time
BINS_PER_PACKET = 10
#: what a part touches most: arrays in the order of routers, and of hosts
SLICES = ("memory", "input_queue", "output_queue", "output_vc", "output_port")
HOST_SLICES = ("host", "nic", "departures")
#: delay lines of one sort, of all parts
MAX_LINES = 65535


@dataclass(frozen=True)
class QueueParameters:
    """Parameters of input-output-queued routers (docs/definitions/router-models.md); times in cycles.

    Attributes
    ----------
    packet_cycles : int
        Time of a packet on a link.
    match_cycles : int
        Time between two matches of the crossbar.
    flight_cycles : int or ndarray, int32[router, port]
        From the begin of sending to the arrival at the other end of the link at an output port.
    nic_packets : int
        Packets that wait in the NIC of a host with an interval source.
    wake_late : bool
        An idle output port sends a packet time after a packet or credit has come to it.
    part_queues : int
        Input queues of a part of the network (`parts`): changes how fast it is simulated, and nothing else.
    """

    vcs: int
    input_packets: int = 20
    output_packets: int = 20
    packet_cycles: int = 80
    match_cycles: int = 8
    flight_cycles: Any = 125
    nic_packets: int = 20
    wake_late: bool = False
    deadlock_cycles: int = 400_000
    part_queues: int = PART_QUEUES

    @property
    def longest_still_cycles(self) -> int:
        """Most cycles in which nothing moves although all is well: a packet or a credit is under way."""
        return int(np.max(self.flight_cycles)) + 2 * (self.packet_cycles + self.match_cycles)

    def __post_init__(self) -> None:
        for name in ("input_packets", "output_packets", "nic_packets"):
            if not 1 <= getattr(self, name) <= 65535:
                raise NetworkError(f"{name} must be 1..65535, not {getattr(self, name)}")
        for name in ("packet_cycles", "match_cycles"):
            if getattr(self, name) < 1:
                raise NetworkError(f"{name} must be at least 1, not {getattr(self, name)}")
        if int(np.min(self.flight_cycles)) < 1:
            raise NetworkError(f"flight_cycles must be at least 1, not {int(np.min(self.flight_cycles))}")


@dataclass(frozen=True)
class IntervalSource(SourceParameters):
    """Every host creates a packet, or a round of several, in fixed intervals, the first one at cycle 0.

    Attributes
    ----------
    interval_packets : float
        Packet times between the last packet of a round and the first of the next one.
    round_packets : tuple of int
        Fewest and most packets of a round; sizes are drawn uniformly.
    """

    interval_packets: float = 1.0
    round_packets: tuple[int, int] = (1, 1)


class QueuedState(NetState):
    """State of a network of input-output-queued routers: that of `NetState`, and the queues.

    Attributes
    ----------
    queues : dict of ndarray
        By the names of `records.ARRAYS`.
    queue_record : ndarray
        ``QUEUES[1]``: settings, counters and addresses.
    lines : dict of dict of ndarray
        By array and number of a delay line: the arrays whose addresses its record has, by field.
    """

    def __init__(self, net: NetState) -> None:
        self.__dict__.update(net.__dict__)
        self.queues: dict[str, NDArray[Any]] = {}
        self.queue_record = np.zeros(1, QUEUES)
        self.lines: dict[tuple[str, int], dict[str, NDArray[Any]]] = {}
        self.follow_pool(_grow_following)

    def put_queue(self, name: str, array: NDArray[Any]) -> None:
        """Set the array `name` of `records.ARRAYS`."""
        if array.dtype != ARRAYS[name] or not array.flags.c_contiguous:
            raise TypeError(f"array {name} must be contiguous {ARRAYS[name]}, not {array.dtype}")
        self.queues[name] = array
        self.queue_record[name] = array.ctypes.data

    def put_line(self, name: str, number: int, arrays: dict[str, NDArray[Any]]) -> None:
        """Set the arrays of a delay line."""
        self.lines[name, number] = arrays
        line = self.queues[name][number]
        for field, array in arrays.items():
            line[field] = array.ctypes.data
        if not line["far"]:
            line["put_entries"], line["put_notes"] = line["entries"], line["notes"]

    @property
    def flits_present(self) -> int:
        """Packets that stand in queues or are on links, counted one by one."""
        queued = sum(
            int(self.queues[name]["length"].astype(np.int64).sum()) for name in ("input_queue", "output_queue")
        )
        line: Any = self.queues["packet_line"]
        return queued + int((line["last"] - line["first"]).sum())

    def enter_hosts(self) -> None:
        """Enter every host in the calendar of its part; called before the first cycle."""
        self.queues["calendar"][:] = -1
        _fill_calendars(self, self.queues["nic"], self.queues["part"], self.queues["calendar"])

    def set_interval(self, packets: float) -> None:
        """Set the packet times between two rounds of every host (from the one after the next one on)."""
        cycles = packets * int(self.queue_record["packet_cycles"][0])
        self.queue_record["interval"] = round(cycles * (1 << INTERVAL_BITS))

    def waiting_channels(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Edges between output VCs that cannot send for want of credits and those that the packet behind waits for."""
        output, inputs = self.queues["output_queue"], self.queues["input_queue"]
        count = len(inputs)
        stuck = np.flatnonzero((output["length"] > 0) & (output["credits"] == 0) & (output["target"] >= 0))
        stuck = stuck[output["target"][stuck] < count]
        target = output["target"][stuck].astype(np.int64)
        asks = inputs["output"][target] >= 0
        width = int(self["ports"]) * int(self["vcs"])
        return stuck[asks], target[asks] // width * width + inputs["output"][target[asks]]


def _grow_following(state: NetState, pool: int) -> None:
    """Follow the pool of packets, which has grown to `pool` records."""
    assert isinstance(state, QueuedState)
    if "following" not in state.queues:
        return
    following = np.zeros(pool, np.int32)
    following[: len(state.queues["following"])] = state.queues["following"]
    state.put_queue("following", following)


def build_queues(
    topology: Topology, parameters: QueueParameters, source: SourceParameters, tables: Tables, seed: int
) -> QueuedState:
    """Allocate and initialise the state at cycle 0.

    Parameters
    ----------
    topology : Topology
        The network; at most `MAX_PORTS` ports a router.
    parameters, source, tables
        Of routers and hosts, data of routing and pattern.
    seed : int
        Of the streams of hosts and routers.

    Raises
    ------
    NetworkError
        Too many ports, or packets of several flits.
    """
    _check_packets(source)
    patience = max(parameters.deadlock_cycles, parameters.longest_still_cycles)
    router = RouterParameters(vcs=parameters.vcs, deadlock_cycles=patience)
    state = QueuedState(build_net(topology, router, source, tables, seed))
    while len(state["packet"]) < PACKETS_PER_HOST * topology.hosts:
        state.grow_packets()
    for name, array in gather({name: state[name] for name in ("packet", "free_packet")}).items():
        state.put(name, array)
    wires = _find_wires(topology, parameters, alone=_hosts_alone(source))
    _fill_record(state, parameters, source, wires)
    arrays = _queue_arrays(state, parameters, wires)
    sizes = {
        "requests": topology.routers * wires.words, "blocked": wires.queues * wires.words,
        "following": len(state["packet"]), "places": wires.window, "slice": 1, "order": wires.per_router,
        "age": wires.per_router, "granted": wires.ports, "matched": 2 * ((wires.ports + 63) // 64),
        "departures": topology.hosts * parameters.nic_packets,
    }  # fmt: skip
    need = sum(size * ARRAYS[name].itemsize for name, size in sizes.items())
    refuse_beyond_memory(need, f"the queues of the {topology.name}")
    for name, size in sizes.items():
        arrays[name] = np.zeros(max(size, 1), ARRAYS[name])
    arrays |= _part_arrays(wires.parts, wires.ports, len(wires.delays))
    _fill_calendars(state, arrays["nic"], arrays["part"], arrays["calendar"])
    _place(state, arrays, _delay_lines(arrays, parameters, wires, notes=tables.feedback is not None))
    if len(wires.parts) > 1:
        slices = _slices(state, wires.parts, tables.rows, wires.window // parameters.match_cycles)
        state.queue_record["slices"] = slices.shape[1]
        state.put_queue("slice", slices)
    return state


def _check_packets(source: SourceParameters) -> None:
    """Refuse packets of several flits."""
    program = source.program
    if program is not None and program.full_flits != 1:
        raise NetworkError(
            f"workload.mtu_bytes must be at most traffic.flit_bytes={program.flit_bytes} with "
            f"router.model=input_output_queued, not {program.mtu_bytes}"
        )
    if source.longest != 1:
        raise NetworkError(f"packets must have 1 flit in input-output-queued routers, not {source.longest}")


def _hosts_alone(source: SourceParameters) -> bool:
    """Whether hosts create packets without looking at one another, so that parts can run for themselves."""
    return source.kind in (BERNOULLI, ON_OFF, INTERVAL) and source.message_packets == 1


@dataclass(frozen=True)
class _Wires:
    """Links, and the delay line that each uses: there is one for each delay and part of the network.

    Attributes
    ----------
    ports, vcs : int
        Of each router.
    here, there : ndarray, int64[link]
        Port (router · ports + number) at the beginning of a link, and at its end.
    hosts : ndarray, int64[host]
        Port of each host.
    delays : ndarray, int64
        The different delays in cycles, the longest first.
    kind, part_of : ndarray, int64[port]
        Which of them the link at a port has, and the part that its router is in.
    parts : Parts
        The parts of the network.
    """

    ports: int
    vcs: int
    here: NDArray[np.int64]
    there: NDArray[np.int64]
    hosts: NDArray[np.int64]
    delays: NDArray[np.int64]
    kind: NDArray[np.int64]
    part_of: NDArray[np.int64]
    parts: Parts

    @property
    def per_router(self) -> int:
        """Queues of a router."""
        return self.ports * self.vcs

    @property
    def queues(self) -> int:
        """Queues of all routers."""
        return len(self.kind) * self.vcs

    @property
    def words(self) -> int:
        """Words of 64 bits for a mask of a router's queues."""
        return (self.per_router + 63) // 64

    @property
    def window(self) -> int:
        """Cycles that a part runs for itself."""
        return int(self.parts.far_cycles) if len(self.parts) > 1 else 1

    def line(self, part_at: NDArray[np.int64], link_at: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of the delay line that ports of a part use for links at ports."""
        found: NDArray[np.int64] = self.part_of[part_at] * len(self.delays) + self.kind[link_at]
        return found


def _find_wires(topology: Topology, parameters: QueueParameters, *, alone: bool) -> _Wires:
    R, P, V = topology.routers, topology.max_ports, parameters.vcs
    flights = np.broadcast_to(np.asarray(parameters.flight_cycles, np.int64), (R, P))
    flight = flights.reshape(-1)
    peer = topology.peer_router.reshape(-1).astype(np.int64) * P + topology.peer_port.reshape(-1)
    here = np.flatnonzero(topology.peer_router.reshape(-1) >= 0)
    hosts = topology.host_router.astype(np.int64) * P + topology.host_port
    delays = np.unique(np.concatenate([flight[here], flight[hosts]]))[::-1]
    if not len(delays):
        delays = np.ones(1, np.int64)
    queues = R * P * V
    least = max(parameters.part_queues, queues * len(delays) // MAX_LINES) if alone else queues
    parts = find_parts(topology, flights, P * V, least)
    kind = np.searchsorted(-delays, -flight).clip(max=len(delays) - 1)
    return _Wires(P, V, here, peer[here], hosts, delays, kind, np.repeat(parts.of_router, P), parts)


def _fill_record(state: QueuedState, parameters: QueueParameters, source: SourceParameters, wires: _Wires) -> None:
    record = state.queue_record[0]
    record["packet_cycles"], record["match_cycles"] = parameters.packet_cycles, parameters.match_cycles
    record["input_depth"], record["output_depth"] = parameters.input_packets, parameters.output_packets
    record["words"], record["wake_late"] = wires.words, parameters.wake_late
    record["nic_depth"], record["calendar_mask"] = parameters.nic_packets, CALENDAR_SLOTS - 1
    record["bin_cycles"] = max(parameters.packet_cycles // BINS_PER_PACKET, 1)
    record["lines"], record["parts"] = len(wires.delays), len(wires.parts)
    record["window"] = wires.window
    record["reserve"] = len(wires.hosts) * (wires.window // parameters.packet_cycles + 1)
    # credits and links may be busy for so long after the last packet
    state.record["wheel_mask"] = int(wires.delays[0]) + parameters.packet_cycles
    if isinstance(source, IntervalSource):
        state.record["source_kind"] = INTERVAL
        state.set_interval(source.interval_packets)
        low, high = source.round_packets
        record["round_low"], record["round_span"] = low, high - low + 1


def _queue_arrays(state: QueuedState, parameters: QueueParameters, wires: _Wires) -> dict[str, NDArray[Any]]:
    """Return the queues at inputs, at outputs and in hosts, with their neighbours and delay lines."""
    V, H, each, here, there = wires.vcs, len(wires.hosts), wires.per_router, wires.here, wires.there
    deep = parameters.input_packets
    inputs, outputs = np.zeros(wires.queues, INPUT_QUEUE), np.zeros(wires.queues, OUTPUT_QUEUE)
    number = np.arange(wires.queues)
    inputs["router"], inputs["number"] = number // each, number % each
    inputs["stamp"], inputs["output"] = number % each - each, -1
    outputs["target"], outputs["credits"] = -1, deep
    outputs["port"], outputs["router"], outputs["vc"] = number // V, number // each, number % V
    outputs["number"] = number // V % wires.ports
    nic = np.zeros(max(H, 1), NIC)
    nic["next"], nic["credits"] = -1, deep
    nic["packet_line"][:H] = nic["credit_line"][:H] = wires.line(wires.hosts, wires.hosts)
    for v in range(V):
        outputs["target"][here * V + v] = there * V + v
        outputs["packet_line"][here * V + v] = wires.line(there, here)
        inputs["credit_to"][there * V + v] = here * V + v
        inputs["credit_line"][there * V + v] = wires.line(here, here)
        host = wires.hosts * V + v
        outputs["target"][host] = wires.queues + (np.arange(H) << HOST_VC_BITS) + v
        inputs["credit_to"][host] = wires.queues + np.arange(H)
        outputs["packet_line"][host] = inputs["credit_line"][host] = wires.line(wires.hosts, wires.hosts)
    allowed = state["host"]["inject_mask"][:H].astype(np.int64)
    lowest = np.array([(int(mask) & -int(mask)).bit_length() - 1 for mask in allowed], np.int64)
    nic["target"][:H], nic["output_vc"][:H] = wires.hosts * V + lowest, wires.hosts * V
    # what routing algorithms read: free places behind an output VC, in its queue and in the buffer at the other end
    state["output_vc"]["depth"] = state["output_vc"]["credits"] = deep + parameters.output_packets
    state["output_port"]["free_mask"] = 0
    state["output_port"]["busy_until"] = -1
    return {"input_queue": inputs, "output_queue": outputs, "nic": nic}


def _delay_lines(
    arrays: dict[str, NDArray[Any]], parameters: QueueParameters, wires: _Wires, *, notes: bool
) -> dict[tuple[str, int], dict[str, NDArray[Any]]]:
    """Add the delay lines to the arrays; return the arrays of each, large enough for all that can be on its way."""
    parts, delays = wires.parts, wires.delays
    count = len(parts) * len(delays)

    def users(part_at: NDArray[np.int64], link_at: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.bincount(wires.line(part_at, link_at), minlength=count)

    both = 2 * users(wires.hosts, wires.hosts)  # to and from hosts
    packets, credits = both + users(wires.there, wires.here), both + users(wires.here, wires.here)
    for name, size in (("packet_line", count), ("credit_line", count), ("free_line", len(parts))):
        arrays[name] = np.zeros(size, LINE)
    found: dict[tuple[str, int], dict[str, NDArray[Any]]] = {}
    for k in range(count):
        delay = int(delays[k % len(delays)])
        far = len(parts) > 1 and delay == parts.far_cycles
        most = int(packets[k]) * (delay // parameters.packet_cycles + 2)
        found["packet_line", k] = _line_arrays(arrays["packet_line"][k : k + 1], delay, most, far=far)
        most = int(credits[k]) * min(delay // parameters.match_cycles + 2, wires.vcs * parameters.input_packets)
        found["credit_line", k] = _line_arrays(arrays["credit_line"][k : k + 1], delay, most, far=far, notes=notes)
    for k, routers in enumerate(np.diff(parts.first_router).tolist()):
        most = 2 * wires.ports * routers
        found["free_line", k] = _line_arrays(arrays["free_line"][k : k + 1], parameters.packet_cycles, most)
    return found


def _place(
    state: QueuedState, arrays: dict[str, NDArray[Any]], lines: dict[tuple[str, int], dict[str, NDArray[Any]]]
) -> None:
    """Put all arrays into one block of memory, and their addresses into the records."""
    flat = {f"{name} {k} {field}": array for (name, k), own in lines.items() for field, array in own.items()}
    block = gather(arrays | flat)
    for name in arrays:
        state.put_queue(name, block[name])
    for (name, k), own in lines.items():
        state.put_line(name, k, {field: block[f"{name} {k} {field}"] for field in own})
    part: Any = state.queues["part"]
    for name in ("asking", "pending", "due_hosts", "calendar"):
        part[name] += state.queues[name].ctypes.data


def _slices(state: QueuedState, parts: Parts, rows: tuple[tuple[int, int], ...], steps: int) -> NDArray[np.int64]:
    """Where each part finds what it touches in the large arrays; `rows` are those of the table of routing."""
    routers, hosts = parts.first_router, parts.first_host
    found = []

    def add(address: int, places: NDArray[np.int64], size: int) -> None:
        lines = np.diff(places) * size // (LINE_BYTES * max(steps, 1)) + 1
        found.append(np.stack([address + places[:-1] * size, lines], axis=1))

    for names, places in ((SLICES, routers), (HOST_SLICES, hosts)):
        for name in names:
            array = state.queues[name] if name in state.queues else state[name]
            add(array.ctypes.data, places, array.nbytes // max(int(places[-1]), 1))
    table = state["table"]
    for first, entries in rows:
        add(table.ctypes.data + first * table.itemsize, routers, entries * table.itemsize)
    return np.ascontiguousarray(np.stack(found, axis=1), np.int64)


def _part_arrays(parts: Parts, ports: int, lines: int) -> dict[str, NDArray[Any]]:
    """Return the parts, with places in bytes in their masks and calendars, and these."""
    part: Any = np.zeros(len(parts), PART)
    routers, hosts = np.diff(parts.first_router), np.diff(parts.first_host)
    part["first_router"], part["first_port"] = parts.first_router[:-1], parts.first_router[:-1] * ports
    part["first_host"], part["hosts"] = parts.first_host[:-1], hosts
    part["first_line"], part["free_line"] = np.arange(len(parts)) * lines, np.arange(len(parts))
    found: dict[str, NDArray[Any]] = {"part": part}
    sizes = {"asking": routers, "pending": routers * ports, "due_hosts": hosts}
    for (name, bits), field in zip(sizes.items(), ("asking_words", "pending_words", "due_words"), strict=True):
        part[field] = (bits + 63) // 64
        part[name] = (np.cumsum(part[field]) - part[field]) * 8
        found[name] = np.zeros(max(int(part[field].sum()), 1), np.uint64)
    part["calendar"] = np.arange(len(parts)) * CALENDAR_SLOTS * 4
    found["calendar"] = np.full(len(parts) * CALENDAR_SLOTS, -1, np.int32)
    return found


def _line_arrays(
    line: NDArray[Any], delay: int, capacity: int, *, far: bool = False, notes: bool = False
) -> dict[str, NDArray[Any]]:
    """Fill in a delay line; returns the arrays that it needs by the names of their addresses."""
    size, cycles = (1 << int(max(count, 2) - 1).bit_length() for count in (capacity, delay + 1))
    line["delay"], line["mask"], line["count_mask"], line["far"] = delay, size - 1, cycles - 1, far
    found: dict[str, NDArray[Any]] = {"entries": np.zeros(size, np.int64), "counts": np.zeros(cycles, np.int32)}
    if notes:
        found["notes"] = np.zeros(size, NOTE)
    if far:
        found |= {"put_entries": np.zeros(size, np.int64), "sent": np.zeros(size, np.int32)}
        if notes:
            found["put_notes"] = np.zeros(size, NOTE)
    return found


def _fill_calendars(state: QueuedState, nic: Any, part: Any, calendar: NDArray[np.int32]) -> None:
    """Enter every host in the slot of its first packet (or in the last one, where it is entered again)."""
    interval = int(state["source_kind"]) == INTERVAL
    for k, (first, hosts) in enumerate(zip(part["first_host"].tolist(), part["hosts"].tolist(), strict=True)):
        for h in range(first, first + hosts):
            slot = 0 if interval else min(int(state["host"]["next_time"][h]), CALENDAR_SLOTS - 1)
            nic["next"][h] = calendar[k * CALENDAR_SLOTS + slot]
            calendar[k * CALENDAR_SLOTS + slot] = h
