"""The arrays of a simulated network at cycle 0 that do not depend on how its routers are connected."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.kernel.histogram import HISTOGRAM_BINS
from hopforge.model.kernel.rng import seed_streams
from hopforge.model.network.core.kinds import HOST_VC_BITS, INPUT_FIRST, OUTPUT_FIRST, TABLE_LENGTH, UNIFORM_LENGTH
from hopforge.model.network.core.layouts import HOST, INPUT_PORT, OUTPUT_PORT, OUTPUT_VC, input_vc_type
from hopforge.model.network.core.loads_ahead import CHUNK
from hopforge.model.network.core.net_record import ARRAYS
from hopforge.model.network.core.sources import schedule_changed
from hopforge.model.network.core.state import NetState
from hopforge.model.network.settings import VC_ALLOCATORS, RouterParameters, SourceParameters, Tables
from hopforge.model.topology import Topology


def pool_size(hosts: int) -> int:
    """Packet records that a network of so many hosts begins with; the pool grows."""
    return max(64, 4 * hosts)


def event_capacity(topology: Topology, router: RouterParameters, tables: Tables) -> int:
    """Events of one kind that one cycle can bring.

    Look-ahead: answers of engines come to those of RC; agents: heads that they have decided about.
    """
    of_port = 3 if router.lookahead or tables.agents is not None else 2
    of_port += router.input_speedup if router.sped_up else 0
    of_port = max(of_port, router.vcs) if router.stage_batches else of_port  # whose heads are ready at once
    return of_port * topology.routers * topology.max_ports + topology.hosts


def port_words(topology: Topology, router: RouterParameters) -> int:
    """Words of a mask of ports: those of a router, or of its crossbar if there are more."""
    speedup = max(router.input_speedup, router.output_speedup) if router.sped_up else 1
    return (topology.max_ports * speedup + 63) // 64


def turn_ports(topology: Topology, router: RouterParameters) -> NDArray[np.int64]:
    """Ports that pointers and draws of a router's allocators go over (docs/definitions/router.md, allocator_ports)."""
    if router.allocator_ports == "network":
        return np.full(topology.routers, topology.max_ports)
    if topology.kind == "butterfly":  # a stage has k; in ours the first and the last have their routers in common
        return np.full(topology.routers, topology.params["k"])
    there = (topology.peer_router >= 0) | (topology.host_at >= 0)
    last = topology.max_ports - np.argmax(there[:, ::-1], axis=1)
    return np.maximum(topology.ports, np.where(there.any(axis=1), last, 0))


def matrix_entries(topology: Topology, router: RouterParameters) -> int:
    """Entries of the matrix arbiters of SA: of inputs and outputs, in both allocators."""
    width = topology.max_ports * max(router.input_speedup, router.output_speedup)
    return 4 * topology.routers * width * width


def needs_lists(topology: Topology, router: RouterParameters, tables: Tables) -> bool:
    """Whether VA works on lists of requests: heads that choose among outputs, and allocators of other kinds."""
    separable = VC_ALLOCATORS[router.va] in (INPUT_FIRST, OUTPUT_FIRST) and router.vc_arbiter != "matrix"
    one_word = topology.max_ports * router.vcs <= 64
    asks_once = router.speculation is False and not router.lookahead  # which needs the route before VA, too
    once = router.vc_iterations == 1
    return not (separable and one_word and tables.max_candidates == 1 and asks_once and once)


def empty_sizes(topology: Topology, router: RouterParameters, tables: Tables, wheel: int) -> dict[str, int]:
    """Entries of each array that begins with zeros; `wheel`: slots of a wheel of events."""
    R, P, V, H = topology.routers, topology.max_ports, router.vcs, topology.hosts
    NI, NP, width = R * P * V, R * P, P * V
    words, all_port_words, vc_words = (R + 63) // 64, (NP + 63) // 64, (width + 63) // 64
    capacity = event_capacity(topology, router, tables)
    many, most = port_words(topology, router), P * max(V, router.output_speedup)
    pairs = width * V if router.va in ("wavefront", "rr_wavefront") else 4 * most
    pairs = pairs if router.va in ("wavefront", "rr_wavefront", "max_size", "loa", "pim") else 1
    pairs = max(pairs, 2 * most + P * router.input_speedup * many) if router.sa == "max_size" else pairs
    lists = needs_lists(topology, router, tables)
    speculative = NI if router.speculation or router.va == "free_queue" or router.hold_switch else 1
    connections = NI if router.hold_switch and router.sped_up else 0  # `parts.connections`
    return {
        "host_tail_sent": H << HOST_VC_BITS,
        "host_wake": H,
        "awake": H,
        "packet": pool_size(H),
        "unanswered": NI if router.lookahead else 1,
        "candidate": tables.max_candidates * (NI + tables.decides if lists else 1),
        "active": words,
        "waiting": R * vc_words if lists else 1,
        "wanted": 1 if lists else all_port_words,
        "heads_at": 1 if lists else NP,
        "switching": NP * vc_words,
        "asking": all_port_words,
        "offered": all_port_words,
        "offers": 64 * P,
        "draining": words,
        "granted_input": NP,
        "granted_output": NP,
        "flit_event": wheel * capacity,
        "flit_events": wheel,
        "credit_event": wheel * capacity,
        "credit_events": wheel,
        "ready_event": wheel * capacity,
        "ready_events": wheel,
        # tails that leave, heads that agents have decided about (an agent serves a router or more, and its queue is
        # full for at most one head of a port), heads that come; the place behind the last one is written, too
        "heads_next": (1 + router.input_speedup) * NP + R + CHUNK + 1,
        "bodies": CHUNK + 1,
        "to_hosts": capacity + 1,
        "granted": NI,
        "released": (1 + router.input_speedup) * NP + 1,  # the place behind the last one is written, too
        "spec_vc": speculative,
        "spec_port": speculative + connections,
        "spec_mask": speculative + connections,
        "request_vc": width,
        "request_port": width,
        "request_mask": width,
        "winner_rank": width,
        "winner_request": width,
        "pair_order": pairs,
        "pair_request": pairs,
        "pair_output": pairs,
        "asking_inputs": 64 * many * many,
        "asking_outputs": 64 * many * many,
        "requested": many,
        "chosen": many,
        "taken_inputs": many,
        "taken_outputs": many,
        "representative": (64 * many) ** 2,
        "match_input": max(width, 64 * many),
        "match_output": max(width, 64 * many),
        "match_vc": max(width, 64 * many),
        "crossbar_pointer": 2 * NP * (router.output_speedup + 2 * router.input_speedup) if router.sped_up else 1,
        "crossbar_step": NP * (router.output_speedup + router.input_speedup)
        if router.sped_up and router.speculation else 1,
        "credit_sent": NP if router.sped_up else 1,
        "credit_step": NP if router.sped_up else 1,
        "rc_free": 2 * R if router.stage_batches else 1,
        "crossbar_free": 2 * R if router.stage_batches else 1,
        "rc_step": 2 * R if router.stage_batches else 1,
        "step_head": NI if router.routes_in_steps else 1,
        "step_end": NI if router.routes_in_steps else 1,
        "heads_sent": NP * max(router.input_speedup, router.output_speedup) if tables.decides_ahead else 1,
        "queue_group": 2 * (router.crossbar_cycles + 1) * NP if router.output_queue_flits else 1,
        "router": R,
        "histogram": HISTOGRAM_BINS,
        "network_histogram": HISTOGRAM_BINS,
    }


def state_bytes(topology: Topology, router: RouterParameters, empty: dict[str, int]) -> int:
    """Return the bytes that the state of a network takes while it is built; `empty`: from `empty_sizes`.

    Records and credits exist twice for a moment, and the numbers that they are filled with beside them.
    """
    ports, buffer = topology.routers * topology.max_ports, router.buffer_flits
    of_vc = input_vc_type(buffer)
    fifo = 0 if "fifo" in (of_vc.fields or {}) else 4 * buffer
    vc = 2 * (of_vc.itemsize + OUTPUT_VC.itemsize + fifo) + 4 * 8
    port = 2 * (INPUT_PORT.itemsize + OUTPUT_PORT.itemsize) + 6 * 8
    host = 2 * (HOST.itemsize + (4 << HOST_VC_BITS) + 4 * 8)
    matrix = 2 * router.vcs**2 * (router.vc_arbiter == "matrix") + 4 * (router.arbiter == "matrix")
    filled = ports * (router.vcs * vc + port + 2 * 8 * topology.max_ports * matrix) + topology.hosts * host
    return filled + sum(max(size, 1) * ARRAYS[name].itemsize for name, size in empty.items())


def filled_arrays(
    topology: Topology, router: RouterParameters, source: SourceParameters, tables: Tables, seed: int
) -> dict[str, NDArray[Any]]:
    """Arrays that begin with other values: credits, random streams, priorities of matrix arbiters, tables, script."""
    P, V, H = topology.max_ports, router.vcs, topology.hosts
    NP, width, pool = topology.routers * P, P * V, pool_size(H)
    time, destination, length, first = _script_arrays(source, H)
    return {
        "host_credits": np.full(max(H << HOST_VC_BITS, 1), router.buffer_flits, np.int32),
        "free_packet": np.arange(pool - 1, -1, -1, dtype=np.int32),
        "winner_stamp": np.full(width, -1, np.int64),
        "va_recent": np.full(2 * NP * V * width if router.vc_arbiter == "matrix" else 1, -1, np.int64),
        "sa_recent": np.full(matrix_entries(topology, router) if router.arbiter == "matrix" else 1, -1, np.int64),
        "table": np.ascontiguousarray(tables.routing, np.int32),
        "memory": np.array(tables.memory, np.float64),
        "inject_by_destination": np.asarray(
            [0] if tables.inject_by_destination is None else tables.inject_by_destination, np.int32
        ),
        "crossbar_start": np.full(
            2 * topology.routers if router.stage_batches else 1, -router.crossbar_cycles, np.int64
        ),
        "batch_place": _batch_places(topology) if router.stage_batches else np.zeros(1, np.int32),
        "router_rng": seed_streams(seed, 1, topology.routers),
        "pattern_table": np.ascontiguousarray(tables.pattern, np.int32),
        "host_rng": seed_streams(seed, 2, H),
        "length_table": _length_table(source),
        "script_time": time,
        "script_destination": destination,
        "script_length": length,
        "script_first": first,
        "script_next": first[:-1].copy() if H else np.zeros(1, np.int64),
    }


def _batch_places(topology: Topology) -> NDArray[np.int32]:
    """Place of the batches of every input port: one for a router, one for either half of a butterfly's."""
    ports = topology.max_ports
    places = np.repeat(np.arange(topology.routers, dtype=np.int32), ports)
    if topology.kind == "butterfly":  # routers with hosts are two, one of the first stage and one of the last
        last = np.repeat(np.bincount(topology.host_router, minlength=topology.routers) > 0, ports)
        last[topology.host_router * ports + topology.host_port] = False
        places[last] += topology.routers
    return places


def set_source(s: Any, source: SourceParameters) -> None:
    """Fill the settings of the record `s` that say what every host creates."""
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
        return
    low, high = source.lengths
    s["length_kind"], s["length_low"], s["length_high"] = (UNIFORM_LENGTH if low != high else 0), low, high


def change_rates(state: NetState, cycles: list[int], rates: list[float]) -> None:
    """Let Bernoulli sources have other rates from given cycles on; called before the first cycle.

    Parameters
    ----------
    state : NetState
        A network at cycle 0.
    cycles : list of int
        Cycles of the changes, rising.
    rates : list of float
        Packets per host and cycle from each on.
    """
    with np.errstate(divide="ignore"):
        logs = np.log1p(-np.array(rates))
    state.put("change_time", np.array(cycles, np.int64))
    state.put("change_log", np.concatenate([[float(state["log_failure"])], logs]))
    state.record["load_changes"] = len(cycles)
    schedule_changed(state.record[0])


def _length_table(source: SourceParameters) -> NDArray[np.float64]:
    """Cumulative distribution of the lengths; one entry unless they are a table."""
    if not isinstance(source.lengths, np.ndarray):
        return np.full(1, 2.0)
    table = np.cumsum(source.lengths) / np.sum(source.lengths)
    table[-1] = 2.0
    return np.ascontiguousarray(table, np.float64)


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
