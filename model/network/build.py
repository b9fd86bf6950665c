"""From a topology and parameters to the state of a network."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.errors import UserError
from hopforge.model.network.arena import gather
from hopforge.model.network.event_log import put_log
from hopforge.model.network.feedback import Feedback, put_feedback
from hopforge.model.network.lookup_build import LookupState, RouteLookup, attach_lookup
from hopforge.model.network.messages import grow_messages, put_message_slots
from hopforge.model.network.program_arrays import ProgramSource, put_program
from hopforge.model.network.records import (
    ARRAYS,
    HISTOGRAM_BINS,
    HOST,
    HOST_VC_BITS,
    INPUT_FIRST,
    INPUT_PORT,
    INPUT_VC,
    NET,
    OUTPUT_FIRST,
    OUTPUT_PORT,
    OUTPUT_VC,
    PACKET,
    SCRIPT,
    TABLE_LENGTH,
    UNIFORM_LENGTH,
    WAVEFRONT,
)
from hopforge.model.network.rng import seed_streams
from hopforge.model.network.shared_switch import compiled_shared_switch
from hopforge.model.network.sources import NEVER, schedule_first
from hopforge.model.network.speculation import compiled_speculation
from hopforge.model.network.switch_match import compiled_switch_match
from hopforge.model.network.wavefront import compiled_wavefront
from hopforge.model.topology import Topology

ALLOCATORS = {"input_first": INPUT_FIRST, "output_first": OUTPUT_FIRST, "islip": OUTPUT_FIRST, "wavefront": WAVEFRONT}
SWITCHING = {"wormhole": 0, "vct": 1, "saf": 2}
MAX_PORTS = 64
MAX_VCS = 16
MAX_MATRIX_BYTES = 1 << 30


#: listed packets: host, time, destination, length, one entry a packet
Script = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]


class NetworkError(UserError, ValueError):
    """Parameters that no network can be built from: the message names parameter, limit and value."""


@dataclass(frozen=True)
class RouterParameters:
    """Parameters of every router (docs/definitions/router.md, Parameters); times in cycles.

    Attributes
    ----------
    link_latency_cycles : NDArray or int
        Latency L of the links between routers: one number, or int[router, port] by output port.
    lookup : RouteLookup, optional
        Lookup engines that compute routes, in place of tables that answer after `rc_cycles`.
    """

    vcs: int = 4
    buffer_flits: int = 8
    switching: str = "wormhole"
    rc_cycles: int = 0
    va: str = "output_first"
    sa: str = "output_first"
    arbiter: str = "round_robin"
    speculation: bool | str = False
    vc_release: str = "tail"
    credit_delay_cycles: int = 0
    link_latency_cycles: Any = 1
    host_latency_cycles: int = 1
    cycles_per_flit: int = 1
    deadlock_cycles: int = 5000
    lookup: RouteLookup | None = None

    def __post_init__(self) -> None:
        checks = [
            ("vcs", 1 <= self.vcs <= MAX_VCS, f"1..{MAX_VCS}", self.vcs),
            ("buffer_flits", 1 <= self.buffer_flits <= 65535, "1..65535", self.buffer_flits),
            ("switching", self.switching in SWITCHING, "wormhole, vct or saf", self.switching),
            ("va", self.va in ALLOCATORS, ", ".join(ALLOCATORS), self.va),
            ("sa", self.sa in ALLOCATORS, ", ".join(ALLOCATORS), self.sa),
            ("arbiter", self.arbiter in ("round_robin", "matrix"), "round_robin or matrix", self.arbiter),
            ("speculation", self.speculation in (False, True, "shared"), "false, true or shared", self.speculation),
            ("vc_release", self.vc_release in ("tail", "credits"), "tail or credits", self.vc_release),
            ("rc_cycles", self.rc_cycles >= 0, "at least 0", self.rc_cycles),
            ("credit_delay_cycles", self.credit_delay_cycles >= 0, "at least 0", self.credit_delay_cycles),
            ("host_latency_cycles", self.host_latency_cycles >= 1, "at least 1", self.host_latency_cycles),
            ("cycles_per_flit", self.cycles_per_flit >= 1, "at least 1", self.cycles_per_flit),
        ]
        for name, fine, limit, value in checks:
            if not fine:
                raise NetworkError(f"{name} must be {limit}, not {value}")
        if int(np.min(self.link_latency_cycles)) < 1:
            raise NetworkError(f"link_latency_cycles must be at least 1, not {int(np.min(self.link_latency_cycles))}")


@dataclass(frozen=True)
class SourceParameters:
    """What every host creates.

    Attributes
    ----------
    kind : int
        BERNOULLI, ON_OFF, SCRIPT or PROGRAM.
    packet_rate : float
        Packets per host and cycle (Bernoulli), or while on (on/off).
    on_to_off, off_to_on : float
        Probabilities per cycle of an on/off source.
    lengths : ndarray or tuple
        ``(low, high)`` uniform (equal: fixed), or probabilities of lengths 1, 2, ... (float array).
    script : tuple of arrays, optional
        ``(host, time, destination, length)`` of listed packets (SCRIPT).
    message_packets : int
        Packets of a message, created together for one destination (BERNOULLI, ON_OFF).
    program : ProgramSource, optional
        Ranks that send (PROGRAM).
    """

    kind: int = 0
    packet_rate: float = 0.0
    on_to_off: float = 0.0
    off_to_on: float = 0.0
    lengths: Any = (1, 1)
    script: Script | None = None
    message_packets: int = 1
    program: ProgramSource | None = None

    @property
    def longest(self) -> int:
        """Longest packet in flits."""
        if self.program is not None:
            return self.program.full_flits
        if self.script is not None:
            return int(self.script[3].max(initial=1))
        return len(self.lengths) if isinstance(self.lengths, np.ndarray) else int(self.lengths[1])


class NetState:
    """The arrays of a network and the record that the kernels get; it keeps the arrays alive.

    Attributes
    ----------
    arrays : dict of ndarray
        By the names of `records.ARRAYS`.
    record : ndarray
        ``NET[1]``: settings, counters and the addresses of the arrays.
    lookup : LookupState or None
        Lookup engines, if they compute the routes.
    """

    def __init__(self) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}
        #: what the addresses of functions in the record stand for
        self.functions: list[Any] = []
        self.record = np.zeros(1, NET)
        self.lookup: LookupState | None = None

    def put(self, name: str, array: NDArray[Any]) -> None:
        """Set (or replace) the array `name`; its type must be that of `records.ARRAYS`."""
        if array.dtype != ARRAYS[name] or not array.flags.c_contiguous:
            raise TypeError(f"array {name} must be contiguous {ARRAYS[name]}, not {array.dtype}")
        self.arrays[name] = array
        self.record[name] = array.ctypes.data

    def put_function(self, name: str, function: Any) -> None:
        """Set the address `name` of a compiled C function."""
        self.functions.append(function)
        self.record[name] = function.address

    def __getitem__(self, name: str) -> Any:
        """Array `name`, or a setting or counter of the record."""
        return self.arrays[name] if name in self.arrays else self.record[name][0]

    @property
    def flits_in_flight(self) -> int:
        """Flits that hosts have sent and that have neither arrived nor been dropped, from the counters."""
        return int(self["flits_injected"] - self["flits_ejected"] - self["flits_dropped"])

    @property
    def flits_present(self) -> int:
        """Flits that stand in FIFOs or on links, counted one by one."""
        return int(self["input_vc"]["flits"].astype(np.int64).sum() + self["flit_events"].sum())

    def grow_packets(self) -> None:
        """Double the pool of packet records."""
        old = len(self["packet"])
        packet, free = np.zeros(2 * old, PACKET), np.zeros(2 * old, np.int32)
        packet[:old] = self["packet"]
        used = int(self["free_packets"])
        free[:used] = self["free_packet"][:used]
        free[used : used + old] = np.arange(2 * old - 1, old - 1, -1)
        self.put("packet", packet)
        self.put("free_packet", free)
        if self["messages"]:
            grow_messages(self, 2 * old)
        if self["feedback"]:
            times = np.zeros(4 * old, np.int64)
            times[: 2 * old] = self["packet_times"]
            self.put("packet_times", times)
        self.record["free_packets"] = used + old


@dataclass
class Tables:
    """Data of a routing algorithm and of a traffic pattern for the kernel."""

    routing: NDArray[np.int32] = field(default_factory=lambda: np.zeros(1, np.int32))
    memory: NDArray[np.float64] = field(default_factory=lambda: np.zeros(1))
    pattern: NDArray[np.int32] = field(default_factory=lambda: np.zeros(1, np.int32))
    max_candidates: int = 1
    inject_mask: Any = None
    feedback: Feedback | None = None


def _zeros(count: int, dtype: Any) -> NDArray[Any]:
    return np.zeros(max(count, 1), dtype)


def build_net(
    topology: Topology,
    router: RouterParameters,
    source: SourceParameters,
    tables: Tables,
    seed: int,
    log_events: int = 0,
) -> NetState:
    """Allocate and initialise the state of a network at cycle 0.

    Parameters
    ----------
    topology : Topology
        The network; at most 64 ports a router.
    router, source, tables
        Parameters of routers and hosts, data of routing and pattern.
    seed : int
        Seeds the streams of hosts and routers.
    log_events : int
        Capacity of the event log (0: none).

    Raises
    ------
    NetworkError
        More than 64 ports, a packet longer than the buffer under cut-through, matrix arbiters that need over 1 GiB.
    """
    R, P, V, B, H = topology.routers, topology.max_ports, router.vcs, router.buffer_flits, topology.hosts
    if P > MAX_PORTS:
        raise NetworkError(f"ports must be at most {MAX_PORTS}, not {P} ({topology.name})")
    if router.switching != "wormhole" and source.longest > B:
        raise NetworkError(
            f"buffer_flits must hold the longest packet ({source.longest} flits) under {router.switching}, not {B}"
        )
    matrix = router.arbiter == "matrix"
    width = P * V
    matrix_bytes = 8 * (2 * R * width * width + 4 * R * P * P)
    if matrix and matrix_bytes > MAX_MATRIX_BYTES:
        raise NetworkError(
            f"matrix arbiters of {R} routers with {P} ports and {V} VCs need {matrix_bytes >> 20} MiB, more than 1024"
        )
    NI, NP = R * P * V, R * P
    latency = np.broadcast_to(np.asarray(router.link_latency_cycles, np.int64), (R, P)).copy()
    latency[topology.host_at >= 0] = router.host_latency_cycles
    c = router.credit_delay_cycles
    rc_cycles = router.rc_cycles if router.lookup is None else router.lookup.params.pipeline_depth + 1
    wheel = 1 << int(max(latency.max() + 3 + c, rc_cycles + 1)).bit_length()

    state = NetState()
    s = state.record[0]
    s["routers"], s["ports"], s["vcs"], s["buffer"], s["hosts"] = R, P, V, B, H
    s["input_vcs"] = s["output_vcs"] = NI
    s["wheel_mask"], s["max_candidates"] = wheel - 1, tables.max_candidates
    s["va_kind"], s["sa_kind"], s["matrix"] = ALLOCATORS[router.va], ALLOCATORS[router.sa], matrix
    s["switching_mode"] = SWITCHING[router.switching]
    s["release_credits"], s["rc_cycles"] = router.vc_release == "credits", router.rc_cycles
    s["router_credit_delay"], s["deadlock_cycles"] = c, router.deadlock_cycles
    length_table = _source_settings(s, source)

    input_vc, output_vc = np.zeros(NI, INPUT_VC), np.zeros(NI, OUTPUT_VC)
    input_port, output_port = np.zeros(NP, INPUT_PORT), np.zeros(NP, OUTPUT_PORT)
    vcs = np.tile(np.arange(V), NP)
    input_vc["vc"] = output_vc["vc"] = vcs
    input_vc["port"] = np.arange(NI) // V
    input_vc["router"], input_vc["number"] = np.arange(NI) // width, np.arange(NI) % width
    input_vc["credit_to"] = -1
    output_vc["owner"], output_vc["target"] = -1, -1
    output_vc["credits"] = output_vc["depth"] = B
    input_port["router"], input_port["port"] = np.arange(NP) // P, np.arange(NP) % P
    flat_latency = latency.reshape(-1)
    output_port["flit_time"], output_port["return_time"] = 2 + flat_latency, 1 + flat_latency + c
    output_port["cycles_per_flit"] = router.cycles_per_flit
    output_port["first"] = np.arange(NP) // P * P
    here = np.flatnonzero(topology.peer_router.reshape(-1) >= 0)
    there = topology.peer_router.reshape(-1)[here].astype(np.int64) * P + topology.peer_port.reshape(-1)[here]
    for v in range(V):
        output_vc["target"][here * V + v] = there * V + v
        input_vc["credit_to"][there * V + v] = here * V + v
    credit_time = np.zeros(NP, np.int64)
    credit_time[there] = 1 + flat_latency[here] + c
    output_port["connected"][here] = 1

    host = _zeros(H, HOST)
    host_ports = topology.host_router.astype(np.int64) * P + topology.host_port
    if H:
        host["input_vc"], host["output_vc"], host["output_port"] = host_ports * V, host_ports * V, host_ports
        host["flit_time"], host["depth"], host["packet"] = 1 + flat_latency[host_ports], B, -1
        host["free_mask"] = (1 << V) - 1
        host["inject_mask"] = (1 << V) - 1 if tables.inject_mask is None else tables.inject_mask
        output_port["cycles_per_flit"][host_ports] = 1
        output_port["connected"][host_ports] = 1
        credit_time[host_ports] = 1 + flat_latency[host_ports]
        for v in range(V):
            host_vc = NI + (np.arange(H) << HOST_VC_BITS) + v
            input_vc["credit_to"][host_ports * V + v] = host_vc
            output_vc["target"][host_ports * V + v] = host_vc
    input_vc["credit_time"] = np.repeat(credit_time, V)
    host["queue_first"] = host["queue_last"] = host["message"] = -1
    output_port["free_mask"] = np.where(output_port["connected"] == 1, (1 << V) - 1, 0)

    pool = max(64, 4 * H)
    s["free_packets"], s["latency_min"] = pool, NEVER
    s["router_words"] = words = (R + 63) // 64
    port_words = (NP + 63) // 64
    s["vc_words"] = vc_words = (width + 63) // 64
    s["event_capacity"] = capacity = 2 * NP + H
    vct_pairs = width * V if ALLOCATORS[router.va] == WAVEFRONT else 1
    speculative = NI if router.speculation else 1
    sizes = {
        "host_tail_sent": H << HOST_VC_BITS,
        "host_wake": H,
        "awake": H,
        "packet": pool,
        "fifo": NI * B,
        "candidate": NI * tables.max_candidates,
        "active": words,
        "waiting": R * vc_words,
        "switching": NP * vc_words,
        "asking": port_words,
        "offered": port_words,
        "offers": 64 * P,
        "draining": words,
        "flit_event": wheel * capacity,
        "flit_events": wheel,
        "credit_event": wheel * capacity,
        "credit_events": wheel,
        "ready_event": wheel * capacity,
        "ready_events": wheel,
        "heads_next": NP + 1,  # the place behind the last one is written, too
        "release_next": capacity,
        "granted": NI,
        "spec_vc": speculative,
        "spec_port": speculative,
        "spec_mask": speculative,
        "request_vc": width,
        "request_port": width,
        "request_mask": width,
        "winner_rank": width,
        "winner_request": width,
        "pair_order": vct_pairs,
        "pair_request": vct_pairs,
        "pair_output": vct_pairs,
        "asking_inputs": 64,
        "asking_outputs": 64,
        "representative": 64 * 64,
        "match_input": max(width, 64),
        "match_output": max(width, 64),
        "match_vc": max(width, 64),
        "router": R,
        "histogram": HISTOGRAM_BINS,
    }
    for name, size in sizes.items():
        state.put(name, _zeros(size, ARRAYS[name]))
    script = _script_arrays(source, H)
    filled = {
        "input_vc": input_vc,
        "output_vc": output_vc,
        "input_port": input_port,
        "output_port": output_port,
        "host": host,
        "host_credits": np.full(max(H << HOST_VC_BITS, 1), B, np.int32),
        "free_packet": np.arange(pool - 1, -1, -1, dtype=np.int32),
        "winner_stamp": np.full(width, -1, np.int64),
        "va_recent": np.full(2 * NI * width if matrix else 1, -1, np.int64),
        "sa_recent": np.full(4 * NP * P if matrix else 1, -1, np.int64),
        "table": np.ascontiguousarray(tables.routing, np.int32),
        "memory": np.array(tables.memory, np.float64),
        "router_rng": seed_streams(seed, 1, R),
        "pattern_table": np.ascontiguousarray(tables.pattern, np.int32),
        "host_rng": seed_streams(seed, 2, H),
        "length_table": length_table,
        "script_time": script[0],
        "script_destination": script[1],
        "script_length": script[2],
        "script_first": script[3],
        "script_next": script[3][:-1].copy() if H else np.zeros(1, np.int64),
    }
    for name, array in filled.items():
        state.put(name, array)
    for name, array in gather(state.arrays).items():
        state.put(name, array)
    s["script_flits"] = int(script[2].sum()) if source.kind == SCRIPT else 0
    if log_events:
        put_log(state, log_events)
    if router.speculation == "shared":
        begin, match = compiled_shared_switch()
        state.put_function("speculation", begin)
        state.put_function("switch_match", match)
    elif router.speculation:
        state.put_function("speculation", compiled_speculation())
    if ALLOCATORS[router.va] == WAVEFRONT:
        state.put_function("wavefront", compiled_wavefront())
    if router.speculation != "shared" and (matrix or ALLOCATORS[router.sa] != OUTPUT_FIRST):
        state.put_function("switch_match", compiled_switch_match())
    if source.message_packets > 1:
        put_message_slots(state)
    if tables.feedback is not None:
        put_feedback(state, tables.feedback)
    if source.program is not None:
        put_program(state, source.program)
    if router.lookup is not None:
        attach_lookup(state, R, P, V, router.lookup)
    schedule_first(state.record[0])
    return state


def _source_settings(s: Any, source: SourceParameters) -> NDArray[np.float64]:
    """Fill the source's settings; returns the cumulative distribution of lengths."""
    with np.errstate(divide="ignore"):
        s["source_kind"] = source.kind
        s["log_failure"] = np.log1p(-source.packet_rate)
        event = 1 - (1 - source.on_to_off) * (1 - source.packet_rate)
        s["log_no_event"] = np.log1p(-event)
        s["off_share"] = source.on_to_off / event if event else 0.0
        s["log_stay_off"] = np.log1p(-source.off_to_on)
        s["on_rate"] = source.packet_rate
    s["message_packets"] = source.message_packets
    if isinstance(source.lengths, np.ndarray):
        s["length_kind"] = TABLE_LENGTH
        table = np.cumsum(source.lengths) / np.sum(source.lengths)
        table[-1] = 2.0
        return np.ascontiguousarray(table, np.float64)
    low, high = source.lengths
    s["length_kind"], s["length_low"], s["length_high"] = (UNIFORM_LENGTH if low != high else 0), low, high
    return np.full(1, 2.0)


def _script_arrays(
    source: SourceParameters, hosts: int
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Sort listed packets by host and time: times, destinations, lengths, first of each host."""
    if source.script is None or len(source.script[0]) == 0:
        return np.zeros(1, np.int64), np.zeros(1, np.int32), np.zeros(1, np.int32), np.zeros(hosts + 1, np.int64)
    host, time, destination, length = (np.asarray(column, np.int64) for column in source.script)
    order = np.lexsort((np.arange(len(host)), time, host))
    first = np.searchsorted(host[order], np.arange(hosts + 1)).astype(np.int64)
    return time[order].copy(), destination[order].astype(np.int32), length[order].astype(np.int32), first
