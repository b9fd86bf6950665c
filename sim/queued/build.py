"""From a topology and parameters to the state of a network of input-output-queued routers."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.kernel.arena import LINE_BYTES, gather
from hopforge.model.network.build import build_net
from hopforge.model.network.core.records import BERNOULLI, HOST_VC_BITS, NOTE, ON_OFF
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
#: what a part touches most
SLICES = ("memory", "input_queue", "output_queue", "output_vc", "output_port")
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
        line = self.queues["packet_line"]
        return queued + int((line["last"] - line["first"]).sum())

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
        The network; at most 64 ports a router.
    parameters, source, tables
        Of routers and hosts, data of routing and pattern.
    seed : int
        Of the streams of hosts and routers.

    Raises
    ------
    NetworkError
        More than 64 ports, or packets of several flits.
    """
    program = source.program
    if program is not None and program.full_flits != 1:
        raise NetworkError(
            f"workload.mtu_bytes must be at most traffic.flit_bytes={program.flit_bytes} with "
            f"router.model=input_output_queued, not {program.mtu_bytes}"
        )
    if source.longest != 1:
        raise NetworkError(f"packets must have 1 flit in input-output-queued routers, not {source.longest}")
    R, P, V, H = topology.routers, topology.max_ports, parameters.vcs, topology.hosts
    deep, out_deep = parameters.input_packets, parameters.output_packets
    state = QueuedState(
        build_net(topology, RouterParameters(vcs=V, deadlock_cycles=parameters.deadlock_cycles), source, tables, seed)
    )
    while len(state["packet"]) < PACKETS_PER_HOST * H:
        state.grow_packets()
    for name, array in gather({name: state[name] for name in ("packet", "free_packet")}).items():
        state.put(name, array)
    NI = R * P * V
    words = (P * V + 63) // 64
    flights = np.broadcast_to(np.asarray(parameters.flight_cycles, np.int64), (R, P))
    flight = flights.reshape(-1)
    peer = topology.peer_router.reshape(-1).astype(np.int64) * P + topology.peer_port.reshape(-1)
    here = np.flatnonzero(topology.peer_router.reshape(-1) >= 0)
    there = peer[here]
    host_port = topology.host_router.astype(np.int64) * P + topology.host_port
    alone = source.kind in (BERNOULLI, ON_OFF, INTERVAL) and source.message_packets == 1
    delays = np.unique(np.concatenate([flight[here], flight[host_port]]))[::-1]
    if not len(delays):
        delays = np.ones(1, np.int64)
    least = max(parameters.part_queues, NI * len(delays) // MAX_LINES) if alone else NI
    parts = find_parts(topology, flights, P * V, least)
    kind = np.searchsorted(-delays, -flight).clip(max=len(delays) - 1)  # of a port's link, by falling delay
    part_of = np.repeat(parts.of_router, P)  # of a port

    record = state.queue_record[0]
    record["packet_cycles"], record["match_cycles"] = parameters.packet_cycles, parameters.match_cycles
    record["input_depth"], record["output_depth"], record["words"] = deep, out_deep, words
    record["wake_late"] = parameters.wake_late
    record["nic_depth"], record["calendar_mask"] = parameters.nic_packets, CALENDAR_SLOTS - 1
    record["bin_cycles"] = max(parameters.packet_cycles // BINS_PER_PACKET, 1)
    record["lines"], record["parts"] = len(delays), len(parts)
    record["window"] = window = parts.far_cycles if len(parts) > 1 else 1
    record["reserve"] = H * (window // parameters.packet_cycles + 1)
    # credits and links may be busy for so long after the last packet
    state.record["wheel_mask"] = int(delays[0]) + parameters.packet_cycles
    if isinstance(source, IntervalSource):
        state.record["source_kind"] = INTERVAL
        state.set_interval(source.interval_packets)
        low, high = source.round_packets
        record["round_low"], record["round_span"] = low, high - low + 1

    inputs, outputs = np.zeros(NI, INPUT_QUEUE), np.zeros(NI, OUTPUT_QUEUE)
    number = np.arange(NI)
    inputs["router"], inputs["port"], inputs["vc"] = number // (P * V), number // V % P, number % V
    inputs["stamp"], inputs["output"] = number % (P * V) - P * V, -1
    outputs["target"], outputs["credits"] = -1, deep
    outputs["port"], outputs["router"], outputs["vc"] = number // V, number // (P * V), number % V
    outputs["number"] = number // V % P
    nic = np.zeros(max(H, 1), NIC)
    nic["next"], nic["credits"] = -1, deep
    nic["packet_line"][:H] = nic["credit_line"][:H] = part_of[host_port] * len(delays) + kind[host_port]
    for v in range(V):
        outputs["target"][here * V + v] = there * V + v
        outputs["packet_line"][here * V + v] = part_of[there] * len(delays) + kind[here]
        inputs["credit_to"][there * V + v] = here * V + v
        inputs["credit_line"][there * V + v] = part_of[here] * len(delays) + kind[here]
        outputs["target"][host_port * V + v] = NI + (np.arange(H) << HOST_VC_BITS) + v
        inputs["credit_to"][host_port * V + v] = NI + np.arange(H)
        outputs["packet_line"][host_port * V + v] = part_of[host_port] * len(delays) + kind[host_port]
        inputs["credit_line"][host_port * V + v] = part_of[host_port] * len(delays) + kind[host_port]
    allowed = state["host"]["inject_mask"][:H].astype(np.int64)
    lowest = np.array([(int(mask) & -int(mask)).bit_length() - 1 for mask in allowed], np.int64)
    nic["target"][:H], nic["output_vc"][:H] = host_port * V + lowest, host_port * V
    # what routing algorithms read: free places behind an output VC, in its queue and in the buffer at the other end
    state["output_vc"]["depth"] = state["output_vc"]["credits"] = deep + out_deep
    state["output_port"]["free_mask"] = 0
    state["output_port"]["busy_until"] = -1

    arrays: dict[str, NDArray[Any]] = {"input_queue": inputs, "output_queue": outputs, "nic": nic}
    sizes = {
        "requests": R * words, "blocked": NI * words, "following": len(state["packet"]), "places": window, "slice": 1,
        "order": P * V, "age": P * V, "granted": 64, "departures": H * parameters.nic_packets,
    }  # fmt: skip
    for name, size in sizes.items():
        arrays[name] = np.zeros(max(size, 1), ARRAYS[name])
    arrays |= _part_arrays(parts, P, len(delays))
    _fill_calendars(state, nic, parts, arrays["calendar"])
    count, lines = len(parts), len(delays)
    both = np.bincount(part_of[host_port] * lines + kind[host_port], minlength=count * lines) * 2  # to and from hosts
    packets = both + np.bincount(part_of[there] * lines + kind[here], minlength=count * lines)
    credits = both + np.bincount(part_of[here] * lines + kind[here], minlength=count * lines)
    for name, size in (("packet_line", count * lines), ("credit_line", count * lines), ("free_line", count)):
        arrays[name] = np.zeros(size, LINE)
    found: dict[tuple[str, int], dict[str, NDArray[Any]]] = {}
    notes = tables.feedback is not None
    for k in range(count * lines):
        delay = int(delays[k % lines])
        far = count > 1 and delay == parts.far_cycles
        most = int(packets[k]) * (delay // parameters.packet_cycles + 2)
        found["packet_line", k] = _line_arrays(arrays["packet_line"][k : k + 1], delay, most, far=far)
        most = int(credits[k]) * min(delay // parameters.match_cycles + 2, V * deep)
        found["credit_line", k] = _line_arrays(arrays["credit_line"][k : k + 1], delay, most, far=far, notes=notes)
    for k in range(count):
        most = 2 * P * int(np.diff(parts.first_router)[k])
        found["free_line", k] = _line_arrays(arrays["free_line"][k : k + 1], parameters.packet_cycles, most)
    flat = {f"{name} {k} {field}": array for (name, k), own in found.items() for field, array in own.items()}
    block = gather(arrays | flat)
    for name in arrays:
        state.put_queue(name, block[name])
    for (name, k), own in found.items():
        state.put_line(name, k, {field: block[f"{name} {k} {field}"] for field in own})
    for name in ("asking", "pending", "due_hosts", "calendar"):
        state.queues["part"][name] = state.queues[name].ctypes.data + state.queues["part"][name]
    if count > 1:
        state.queue_record["slices"] = len(SLICES)
        state.put_queue("slice", _slices(state, parts, window // parameters.match_cycles))
    return state


def _slices(state: QueuedState, parts: Parts, steps: int) -> NDArray[np.int64]:
    """Where each part finds its routers in the large arrays, which are in the order of routers."""
    found = np.zeros((len(parts), len(SLICES), 2), np.int64)
    for k, name in enumerate(SLICES):
        array = state.queues[name] if name in state.queues else state[name]
        first = parts.first_router * array.nbytes // parts.first_router[-1]
        found[:, k, 0] = array.ctypes.data + first[:-1]
        found[:, k, 1] = np.diff(first) // (LINE_BYTES * max(steps, 1)) + 1
    return found


def _part_arrays(parts: Parts, ports: int, lines: int) -> dict[str, NDArray[Any]]:
    """Return the parts, with places in bytes in their masks and calendars, and these."""
    part = np.zeros(len(parts), PART)
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
        found |= {"put_entries": np.zeros(size, np.int64), "sent": np.zeros(size, np.int64)}
        if notes:
            found["put_notes"] = np.zeros(size, NOTE)
    return found


def _fill_calendars(state: QueuedState, nic: NDArray[Any], parts: Parts, calendar: NDArray[np.int32]) -> None:
    """Enter every host in the slot of its first packet (or in the last one, where it is entered again)."""
    interval = int(state["source_kind"]) == INTERVAL
    for k, (first, end) in enumerate(zip(parts.first_host[:-1].tolist(), parts.first_host[1:].tolist(), strict=True)):
        for h in range(first, end):
            slot = 0 if interval else min(int(state["host"]["next_time"][h]), CALENDAR_SLOTS - 1)
            nic["next"][h] = calendar[k * CALENDAR_SLOTS + slot]
            calendar[k * CALENDAR_SLOTS + slot] = h
