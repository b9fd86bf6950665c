"""From a topology and parameters to the state of a network.

`settings` are the parameters, `wiring` says what is connected with what, `arrays` the rest of the state; `build_net`
puts them together and adds the optional parts that the parameters ask for.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.free_memory import refuse_beyond_memory
from hopforge.model.kernel.arena import gather
from hopforge.model.network.arrays import (
    empty_sizes,
    event_capacity,
    filled_arrays,
    matrix_entries,
    needs_lists,
    pool_size,
    port_words,
    set_source,
    state_bytes,
    turn_ports,
)
from hopforge.model.network.core.event_log import note_next_router, put_log
from hopforge.model.network.core.kinds import (
    ANY_VC,
    BY_DESTINATION,
    OUTPUT_FIRST,
    PORT_SHARE_BITS,
    SCRIPT,
    STORE_AND_FORWARD,
)
from hopforge.model.network.core.net_record import ARRAYS
from hopforge.model.network.core.sources import NEVER, schedule_first
from hopforge.model.network.core.state import NetState, NetworkError
from hopforge.model.network.parts.acknowledge_arrays import put_acknowledges
from hopforge.model.network.parts.agent_build import put_agents
from hopforge.model.network.parts.chosen_ahead import match_chosen, match_chosen_words
from hopforge.model.network.parts.class_arrays import put_classes
from hopforge.model.network.parts.drawn_vcs import match_drawn_vcs
from hopforge.model.network.parts.feedback import put_feedback
from hopforge.model.network.parts.free_queue import ask_with_heads, give_vcs
from hopforge.model.network.parts.held_switch import held_match, held_match_words
from hopforge.model.network.parts.islip_vcs import match_islip
from hopforge.model.network.parts.lonely_match import match_lonely_vcs
from hopforge.model.network.parts.lookup_build import attach_lookup
from hopforge.model.network.parts.maximum_match import match_maximum
from hopforge.model.network.parts.messages import put_message_slots
from hopforge.model.network.parts.program_arrays import put_program
from hopforge.model.network.parts.reply_arrays import put_replies
from hopforge.model.network.parts.shared_switch import begin_shared, shared_match, shared_match_words
from hopforge.model.network.parts.speculation import speculate, speculate_words
from hopforge.model.network.parts.sped_speculation import sped_shared_match, sped_speculate, sped_yield
from hopforge.model.network.parts.sped_switch import sped_match, sped_match_words
from hopforge.model.network.parts.spray_arrays import put_spraying
from hopforge.model.network.parts.step_routes import step_routes
from hopforge.model.network.parts.switch_match import switch_match, switch_match_words
from hopforge.model.network.parts.vc_match import match_vcs
from hopforge.model.network.parts.wavefront import match_wavefront
from hopforge.model.network.parts.wide_switch import wide_match
from hopforge.model.network.service_ports import for_service_hosts, with_service_hosts
from hopforge.model.network.settings import (
    SWITCH_ALLOCATORS,
    SWITCHING,
    VC_ALLOCATORS,
    RouterParameters,
    SourceParameters,
    Tables,
)
from hopforge.model.network.wiring import link_latencies, wired_records
from hopforge.model.topology import Topology
from hopforge.model.topology.limits import MAX_PORTS, ONE_WORD_PORTS

MAX_MATRIX_BYTES = 1 << 30
#: `router.va` → the hook `vc_match`
_VC_MATCHES = {
    "wavefront": match_wavefront, "rr_wavefront": match_wavefront, "max_size": match_maximum, "loa": match_lonely_vcs,
    "pim": match_drawn_vcs,
}  # fmt: skip
#: candidates of a packet: their number is a byte of its input VC
MAX_CANDIDATES = 255
#: a state of this size stays in the second cache of a processor
NEAR_BYTES = 4 << 20


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
        The network; at most `MAX_PORTS` ports a router.
    router, source, tables
        Parameters of routers and hosts, data of routing and pattern.
    seed : int
        Seeds the streams of hosts and routers.
    log_events : int
        Capacity of the event log (0: none).

    Raises
    ------
    NetworkError
        Too many ports, a packet longer than the buffer under cut-through, matrix arbiters that need over 1 GiB.
    """
    _check_limits(topology, router, source, tables)
    homes = topology.host_router
    if source.acknowledges is not None:
        router, tables = for_service_hosts(topology, router, tables)
        topology = with_service_hosts(topology)
    latency = link_latencies(topology, router)
    rc_cycles = router.rc_cycles if router.lookup is None else router.lookup.params.hit_cycles + 1
    longest = int(max(latency.max() + 3 + router.credit_delay_cycles, rc_cycles + 1))
    longest += (router.rc_cycles if router.lookup is None else 0) * router.stage_batches
    longest += 2 * (router.crossbar_cycles - 1)
    if router.has_output_queues:  # which credits bound, and credits wait for their turn, too
        longest += router.vcs * router.buffer_flits * int(np.max(router.cycles_per_flit))
    wheel = 1 << longest.bit_length()

    state = NetState()
    _set_sizes(state, topology, router, tables, wheel)
    _set_router(state, router)
    set_source(state.record[0], source)
    empty = empty_sizes(topology, router, tables, wheel)
    bytes_needed = state_bytes(topology, router, empty) + tables.routing.nbytes  # which is copied
    refuse_beyond_memory(bytes_needed, f"the routers and hosts of the {topology.name}")
    filled = wired_records(topology, router, tables, latency) | filled_arrays(topology, router, source, tables, seed)
    state.record["script_flits"] = script_flits(source, filled)
    for name, array in gather(filled, {name: (max(size, 1), ARRAYS[name]) for name, size in empty.items()}).items():
        state.put(name, array)
    if "fifo" not in state.arrays:
        state.put_part("fifo", "input_vc")
    state["router"]["turn_ports"] = turn_ports(topology, router)
    _set_strides(state)
    if log_events:
        put_log(state, log_events)
    elif tables.decides_ahead:
        state.put_function("log_event", note_next_router)
    _put_router_parts(state, router, topology.max_ports)
    if needs_lists(topology, router, tables):
        state.put_function("vc_lists", match_vcs)
        state.record["candidate_bytes"] = 8 * tables.max_candidates
    state.record["hosts"] = len(homes)
    _put_source_parts(state, source, tables)
    if source.acknowledges is not None:
        mask = (1 << router.vcs) - 1 if tables.ack_mask is None else tables.ack_mask
        put_acknowledges(state, homes, mask, source.acknowledges)
    if router.lookup is not None:
        attach_lookup(state, topology.routers, topology.max_ports, router.vcs, router.lookup)
    state.record["unusual"] = is_unusual(state)
    if source.classes is not None:
        put_classes(state, source.classes, source.script, seed)
    else:
        schedule_first(state.record[0])
    return state


def is_unusual(state: NetState) -> bool:
    """Whether a head may meet more than a table that answers at once: the kernel asks this first."""
    parts = ("rc_cycles", "lookahead", "lookup", "agents", "acks", "feedback")
    return int(state["switching_mode"]) == STORE_AND_FORWARD or any(int(state[name]) != 0 for name in parts)


def script_flits(source: SourceParameters, filled: dict[str, NDArray[Any]]) -> int:
    """Flits of all listed packets and of the replies to them; 0 without a list."""
    if source.kind != SCRIPT or source.script is None:
        return 0
    replies = 0 if source.replies is None else int(source.replies.flits_of(source.script[3]).sum())
    return int(filled["script_length"].sum()) + replies


def _check_limits(topology: Topology, router: RouterParameters, source: SourceParameters, tables: Tables) -> None:
    """Refuse what the kernel cannot hold."""
    R, P, V = topology.routers, topology.max_ports, router.vcs
    if P > MAX_PORTS:
        raise NetworkError(f"ports must be at most {MAX_PORTS}, not {P} ({topology.name})")
    if P > ONE_WORD_PORTS:
        _check_wide(topology, tables)
    if tables.max_candidates > MAX_CANDIDATES:
        raise NetworkError(f"a packet may have at most {MAX_CANDIDATES} candidates, not {tables.max_candidates}")
    if router.sa_first_output >= P:
        raise NetworkError(
            f"router.sa_first_output must be at most {P - 1}, the last port of a router ({topology.name}), "
            f"not {router.sa_first_output}"
        )
    if router.allocator_ports == "own" and topology.kind == "butterfly" and "rr_wavefront" in (router.va, router.sa):
        raise NetworkError(
            "router.allocator_ports must be network with rr_wavefront on a butterfly, whose first and last stage share "
            "the pointer, not own"
        )
    if router.switching != "wormhole" and source.longest > router.buffer_flits:
        raise NetworkError(
            f"router.buffer_flits must hold the longest packet ({source.longest} flits) under {router.switching}, "
            f"not {router.buffer_flits}"
        )
    of_vcs = 2 * R * (P * V) ** 2 if router.vc_arbiter == "matrix" else 0
    of_switch = matrix_entries(topology, router) if router.arbiter == "matrix" else 0
    if (matrix_bytes := 8 * (of_vcs + of_switch)) > MAX_MATRIX_BYTES:
        raise NetworkError(
            f"matrix arbiters of {R} routers with {P} ports and {V} VCs need {matrix_bytes >> 20} MiB, more than 1024"
        )


def _check_wide(topology: Topology, tables: Tables) -> None:
    """Refuse what has masks of one word for the ports of a router."""
    if tables.agents is not None:
        raise NetworkError(
            f"routing.algorithm must be another one than dqn on routers of more than {ONE_WORD_PORTS} ports, not dqn "
            f"({topology.name}: {topology.max_ports} ports)"
        )


def _set_sizes(state: NetState, topology: Topology, router: RouterParameters, tables: Tables, wheel: int) -> None:
    """Write the sizes of the network into the record."""
    R, P, V = topology.routers, topology.max_ports, router.vcs
    s = state.record[0]
    s["routers"], s["ports"], s["vcs"], s["buffer"], s["hosts"] = R, P, V, router.buffer_flits, topology.hosts
    s["input_vcs"] = s["output_vcs"] = R * P * V
    s["wheel_mask"], s["max_candidates"] = wheel - 1, tables.max_candidates
    s["free_packets"], s["latency_min"] = pool_size(topology.hosts), NEVER
    s["router_words"], s["vc_words"] = (R + 63) // 64, (P * V + 63) // 64
    s["port_words"] = port_words(topology, router)
    s["port_share"] = (1 << PORT_SHARE_BITS) // V + 1
    s["event_capacity"] = event_capacity(topology, router, tables)
    s["injection"] = ANY_VC if tables.inject_by_destination is None else BY_DESTINATION
    s["decides"], s["decides_ahead"] = tables.decides, tables.decides_ahead


def _set_strides(state: NetState) -> None:
    """Write down how far the input VCs stand apart, and whether all of the state stays near the processor."""
    s = state.record[0]
    stride = state["input_vc"].strides[0]
    s["vc_shift"], s["fifo_bytes"] = stride.bit_length() - 1, state["fifo"].strides[0]
    s["fifo_apart"] = "fifo" not in (state["input_vc"].dtype.fields or {})
    s["far"] = state.nbytes > NEAR_BYTES


def _set_router(state: NetState, router: RouterParameters) -> None:
    """Write the parameters of the routers into the record."""
    s = state.record[0]
    s["va_kind"], s["sa_kind"] = VC_ALLOCATORS[router.va], SWITCH_ALLOCATORS[router.sa]
    s["matrix"], s["va_matrix"] = router.arbiter == "matrix", router.vc_arbiter == "matrix"
    s["switching_mode"] = SWITCHING[router.switching]
    s["release_credits"], s["rc_cycles"] = router.vc_release == "credits", router.rc_cycles
    s["lookahead"] = router.lookahead
    s["head_credits"] = router.va == "free_queue"
    s["between_ports"], s["hold_switch"] = router.between_ports, router.hold_switch
    s["sped_up"], s["output_queues"] = router.sped_up, router.has_output_queues
    s["input_speedup"], s["output_speedup"] = router.input_speedup, router.output_speedup
    s["iterations"], s["va_iterations"] = router.allocator_iterations, router.vc_iterations
    s["internal_speedup"] = router.internal_speedup
    s["first_output"] = router.sa_first_output * router.output_speedup
    s["crossbar_cycles"], s["stage_batches"] = router.crossbar_cycles, router.stage_batches
    s["queue_flits"] = router.output_queue_flits or 0
    s["router_credit_delay"] = router.credit_delay_cycles
    s["deadlock_cycles"] = max(router.deadlock_cycles, router.longest_still_cycles)


def _put_router_parts(state: NetState, router: RouterParameters, ports: int) -> None:
    """Attach the allocators that the kernel itself does not hold."""
    one_word = ports <= ONE_WORD_PORTS and state["port_words"] == 1
    if router.sped_up and router.speculation:
        parts = {"shared": begin_shared, "yielding": sped_yield}
        state.put_function("speculation", parts.get(str(router.speculation), sped_speculate))
    elif router.speculation == "shared":
        state.put_function("speculation", begin_shared)
        state.put_function("switch_match", shared_match if one_word else shared_match_words)
    elif router.speculation:
        state.put_function("speculation", speculate if one_word else speculate_words)
    if router.va in _VC_MATCHES:
        state.put_function("vc_match", _VC_MATCHES[router.va])
    if router.va == "free_queue":
        state.put_function("vc_match", ask_with_heads)
        state.put_function("vc_queue", give_vcs)
    own_match = router.arbiter == "matrix" or SWITCH_ALLOCATORS[router.sa] != OUTPUT_FIRST
    if router.vc_iterations > 1 and VC_ALLOCATORS[router.va] == OUTPUT_FIRST:
        state.put_function("vc_match", match_islip)
    if router.routes_in_steps:
        state.put_function("step_routes", step_routes)
    if router.sped_up and router.speculation == "shared":
        state.put_function("switch_match", sped_shared_match)
    elif router.hold_switch and not router.sped_up:
        state.put_function("switch_match", held_match if one_word else held_match_words)
    elif router.sped_up:
        state.put_function("switch_match", sped_match if one_word else sped_match_words)
    elif router.sa == "input_ahead":
        state.put_function("switch_match", match_chosen if one_word else match_chosen_words)
    elif router.speculation != "shared" and own_match:
        state.put_function("switch_match", switch_match if one_word else switch_match_words)
    elif router.speculation != "shared" and ports > ONE_WORD_PORTS:
        state.put_function("switch_match", wide_match)


def _put_source_parts(state: NetState, source: SourceParameters, tables: Tables) -> None:
    """Attach messages of several packets, the notes of learning algorithms and the ranks of a program."""
    reorders = source.spraying is not None and source.spraying.deliver is not None and source.program is None
    if source.message_packets > 1 or reorders:
        put_message_slots(state)
    if tables.feedback is not None:
        put_feedback(state, tables.feedback)
    if tables.agents is not None:
        put_agents(state, tables.agents)
    if source.program is not None:
        put_program(state, source.program)
    if source.replies is not None:
        put_replies(state, source.replies)
    if source.spraying is not None:
        put_spraying(state, source.spraying)
