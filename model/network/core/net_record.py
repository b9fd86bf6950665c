"""The record that kernels get: settings, counters, and the addresses of all arrays of a network."""

from operator import itemgetter
from typing import Any

import numpy as np
from numba import float64, int32, int64, types

from hopforge.model.dqn.tables import Tables
from hopforge.model.kernel.constant_record import constant_record
from hopforge.model.network.core.layouts import (
    CLASS_COUNT,
    CLASS_SOURCE,
    HOST,
    INPUT_PORT,
    INPUT_VC,
    MESSAGE,
    NOTE,
    OUTPUT_PORT,
    OUTPUT_VC,
    PACKET,
    PACKET_RECORD,
    RANK,
    REPLIER,
    ROUTER,
    TRAFFIC_CLASS,
    TRAIL,
)
from hopforge.model.network.core.spray_records import FLOW, GAP, REORDER_BUFFER, SPRAY, SPRAYED

#: fields of records that never change during a run
FIXED = frozenset({
    "routers", "ports", "vcs", "buffer", "hosts", "input_vcs", "output_vcs", "max_candidates", "table",
    "switching_mode", "release_credits", "rc_cycles", "lookahead", "input_vc", "output_vc", "input_port", "output_port",
    "router", "host", "router_rng",
    "credit_to", "port", "number", "vc", "target", "depth", "first", "connected", "cycles_per_flit",
    "flit_time", "return_time", "inject_mask", "reply_mask", "unusual", "port_share", "vc_shift", "fifo_apart",
    "fifo_bytes", "far", "candidate_bytes", "decides", "stage_batches",
})  # fmt: skip

_SETTINGS = [
    ("routers", "i8"),
    ("ports", "i8"),
    ("vcs", "i8"),
    ("buffer", "i8"),
    ("hosts", "i8"),
    ("input_vcs", "i8"),
    ("output_vcs", "i8"),
    ("router_words", "i8"),
    ("vc_words", "i8"),  # of 64 VCs, in a router
    ("port_words", "i8"),  # of 64 ports of a router, or of its crossbar
    ("wheel_mask", "i8"),
    ("event_capacity", "i8"),
    ("max_candidates", "i8"),
    ("va_kind", "i8"),
    ("sa_kind", "i8"),
    ("matrix", "i8"),  # arbiters of SA
    ("va_matrix", "i8"),
    ("switching_mode", "i8"),
    ("release_credits", "i8"),
    ("head_credits", "i8"),  # of an output VC that a head may be given (va: free_queue)
    ("rc_cycles", "i8"),
    ("lookahead", "i8"),  # heads bring their route along where ``input_port.carried``: AHEAD_TABLES, AHEAD_ENGINES
    ("router_credit_delay", "i8"),
    ("deadlock_cycles", "i8"),
    ("source_kind", "i8"),
    ("length_kind", "i8"),
    ("length_low", "i8"),
    ("length_high", "i8"),
    ("log_failure", "f8"),  # log(1 − packets per cycle) of a Bernoulli source
    ("load_changes", "i8"),  # number of changes of its rate during the run
    ("log_no_event", "f8"),
    ("off_share", "f8"),  # on/off source while on: next event, and its probability to be "off"
    ("log_stay_off", "f8"),
    ("on_rate", "f8"),
    ("script_flits", "i8"),
    ("message_packets", "i8"),  # packets of a message (Bernoulli, on/off)
    ("full_flits", "i8"),  # length of all packets of a program's message but the last one
    ("interleaved", "i8"),  # a host sends packets of its messages in turn
    ("log_capacity", "i8"),  # events
    ("log_event", "i8"),  # addresses of functions, 0: absent (model.network.core.hooks) ...
    ("speculation", "i8"),
    ("vc_lists", "i8"),  # of VA by lists of requests, 0: heads wait at the output port of their only candidate
    ("vc_match", "i8"),  # of these: wavefront, and free_queue, of which heads ask for the switch ...
    ("vc_queue", "i8"),  # ... and then take their VC
    ("switch_match", "i8"),  # of SA: allocators other than output_first with round-robin arbiters
    ("step_routes", "i8"),  # of RC: it counts in steps (parts.step_routes)
    ("messages", "i8"),
    ("may_send", "i8"),  # whether a head may leave its host, 0: when a VC is free (parts.spraying)
    ("sources", "i8"),  # of classes of traffic, 0: every host has one source (core.sources)
    ("traffic_classes", "i8"),
    ("qos", "i8"),
    ("vc_class", "i8"),  # class of every VC, CLASS_BITS each
    ("replies", "i8"),
    ("acks", "i8"),  # acknowledges (model.network.parts.acknowledges)
    ("agent", "i8"),  # that `acks` calls: who makes entries for them, and gets rewards
    ("agents", "i8"),  # address of the agents of DQN routing (parts.agent_state.AGENTS), 0: none
    ("feedback", "i8"),
    ("report", "i8"),  # ... that `feedback` calls
    ("learn", "i8"),
    ("lookup", "i8"),  # address of the lookup engines (lookup_state.LOOKUPS), 0: routes come from tables
    ("lookup_step", "i8"),  # ... and of the function that moves them on
    ("reply_flits", "i8"),  # 0: by the length of the request
    ("reply_early", "i8"),  # 1: a reply is created a cycle before it can leave
    ("reply_delay", "i8"),  # cycles
    ("reply_places", "i8"),  # of a host, 0: no limit
    ("ack_flits", "i8"),
    ("ack_delay", "i8"),  # cycles
    ("ack_ratio", "i8"),  # every so many packets of a host ask for one, 0: none does
    ("ack_mask", "i8"),  # VCs
    ("trail_depth", "i8"),  # entries of a router's table of routed packets (parts.trail_tables)
    ("trail_groups", "i8"),  # of routers, each of which has episodes of its own ...
    ("trail_episodes", "i8"),  # ... at most so many ...
    ("trail_inputs", "i8"),  # ... of observations with so many numbers
    ("max_hops", "i8"),
    ("busy_too", "i8"),
    ("reward_rejected", "i8"),
    ("ack_queue", "i8"),
    ("ack_own", "i8"),
    ("reward_unit", "f8"),
    ("reward_offset", "f8"),
    ("reward_by_time", "i8"),
    ("unusual", "i8"),  # a head may meet more than a table that answers at once: `build.is_unusual`
    ("vc_shift", "i8"),  # log2 of the bytes of an input VC
    ("fifo_apart", "i8"),  # its FIFO is not in its cache line
    ("fifo_bytes", "i8"),  # from the FIFO of an input VC to that of the next
    ("far", "i8"),  # the state is larger than what stays near the processor: load more ahead of time
    ("candidate_bytes", "i8"),  # from the candidates of an input VC to those of the next
    ("sped_up", "i8"),  # SA by `parts.sped_switch`: several crossbar ports, steps of a cycle, iterations
    ("between_ports", "i8"),  # ... between crossbar ports (`parts.crossbar_match`), not by other routers' allocators
    ("hold_switch", "i8"),
    ("input_speedup", "i8"),  # crossbar ports of an input
    ("output_speedup", "i8"),  # ... of an output
    ("internal_speedup", "f8"),  # steps of a router in a cycle
    ("iterations", "i8"),  # of iSLIP in SA ...
    ("va_iterations", "i8"),  # and in VA
    ("first_output", "i8"),  # of the crossbar, from which max_size goes through the outputs of an input
    ("crossbar_cycles", "i8"),  # ... of a flit through the crossbar
    ("stage_batches", "i8"),  # RC and crossbar take the next heads and flits when those before have left
    ("queue_flits", "i8"),  # behind the crossbar of an output, from which on it is not asked for; 0: no limit
    ("output_queues", "i8"),  # flits wait behind the crossbar until the channel takes them
    ("port_share", "i8"),  # VC number · port_share >> PORT_SHARE_BITS is its port
    ("decides", "i8"),  # the relation is asked when a head leaves its host, too (routing.decision: host)
    ("decides_ahead", "i8"),  # ... and for the next router, when the switch sends a head there (decision: ahead)
    ("injection", "i8"),  # ANY_VC, BY_DESTINATION or AFTER_LAST: which of its VCs a host may take
    ("choices", "i8"),  # address of int64[]: what the proof lets `routing.plan.draw_below` draw; 0: random numbers
]

_COUNTERS = [
    ("cycle", "i8"),
    ("last_move", "i8"),
    ("partial_steps", "f8"),  # sped_up: what is left of a step ...
    ("steps", "i8"),  # ... steps since the beginning ...
    ("step_follows", "i8"),  # ... and whether another one follows in this cycle
    ("step_heads", "i8"),  # step_routes: heads in RC
    ("free_packets", "i8"),
    ("heads_count", "i8"),
    ("heads_sent_count", "i8"),  # decides_ahead: heads that the switch has sent in the last step
    ("sparse", "i8"),  # `far`, but what this cycle touches stays near the processor
    ("granted_count", "i8"),
    ("released_count", "i8"),
    ("speculative", "i8"),
    ("spec_matches", "i8"),
    ("flits_created", "i8"),
    ("flits_injected", "i8"),
    ("flits_ejected", "i8"),
    ("flits_dropped", "i8"),
    ("packets_created", "i8"),
    ("packets_ejected", "i8"),
    ("packets_dropped", "i8"),
    ("measure_from", "i8"),
    ("measured", "i8"),
    ("latency_sum", "i8"),
    ("network_latency_sum", "i8"),
    ("network_latency_squares", "f8"),
    ("network_latency_max", "i8"),
    ("hops_sum", "i8"),
    ("lost_hops", "i8"),
    ("latency_max", "i8"),
    ("latency_min", "i8"),
    ("flit_hops", "i8"),
    ("route_calls", "i8"),
    ("free_messages", "i8"),
    ("messages_measured", "i8"),
    ("message_latency_sum", "i8"),
    ("message_latency_max", "i8"),
    ("messages_queued", "i8"),
    ("messages_arrived", "i8"),
    ("arrived_count", "i8"),
    ("departed_count", "i8"),
    ("timers", "i8"),
    ("ranks_running", "i8"),
    ("calls_ready", "i8"),  # record of a call of collective units that is complete (linked by `next`), 0: none
    ("leaving_count", "i8"),
    ("notes", "i8"),  # feedback that has arrived
    ("flits_added", "i8"),  # beyond the listed packets: of acknowledges that were made
    ("acks_alive", "i8"),  # under way, or waiting
    ("acks_late", "i8"),  # cycles from a packet's arrival to the latest of those that found no entry
    ("heads_here", "i8"),  # entries to be made in this cycle ...
    ("acks_here", "i8"),  # ... and acknowledges to be looked at
    ("reward", "f8"),  # that `agent` is told of
    ("undecided", "i8"),  # packets that wait for an agent
    ("log_length", "i8"),
    ("mistake", "i8"),  # of a function of a user's (model.network.core.user_code), 0: none ...
    ("mistake_function", "i8"),  # ... its number ...
    ("mistake_line", "i8"),  # ... line, 0: unknown ...
    ("mistake_which", "i8"),  # ... candidate ...
    ("mistake_value", "i8"),  # ... what it returned, or a wrong index, and behind this ...
    ("mistake_bound", "i8"),  # ... the number of entries ...
    ("mistake_a", "i8"),  # ... router or host ...
    ("mistake_b", "i8"),  # ... port or packet ...
    ("mistake_c", "i8"),  # ... VC ...
    ("mistake_d", "i8"),  # ... destination ...
    ("mistake_exception", "i8"),  # ... address and size of the description of what it raised
    ("mistake_exception_bytes", "i8"),
]

#: arrays of a network: name, element type (dtypes above, or a scalar), meaning
ARRAYS: dict[str, np.dtype[Any]] = {
    "input_vc": INPUT_VC,  # input_vc_type(B)[input_vcs]
    "output_vc": OUTPUT_VC,  # OUTPUT_VC[output_vcs]
    "input_port": INPUT_PORT,  # INPUT_PORT[routers·P]
    "output_port": OUTPUT_PORT,  # OUTPUT_PORT[routers·P]
    "router": ROUTER,  # ROUTER[routers]
    "host": HOST,  # HOST[hosts]
    "host_credits": np.dtype("int32"),  # int32[hosts, 16]
    "host_tail_sent": np.dtype("uint8"),  # uint8[hosts, 16]
    "host_wake": np.dtype("int64"),  # int64[hosts]: first cycle in which the host has something to do
    "awake": np.dtype("int32"),  # hosts that have something to do in this cycle
    "packet": PACKET,  # PACKET[pool]
    "free_packet": np.dtype("int32"),  # int32[pool]: stack
    "fifo": np.dtype("int32"),  # int32[input_vcs, B]: packet << 2 | kind; a small one is a part of `input_vc`
    "unanswered": np.dtype("uint8"),  # uint8[input_vcs]: heads without the answer that they take along (AHEAD_ENGINES)
    "candidate": np.dtype("int64"),  # vc_lists: int64[input_vcs, max_candidates]; else the last answer of a relation
    "active": np.dtype("uint64"),  # vc_lists: bit per router with VCs in VA
    "waiting": np.dtype("uint64"),  # uint64[routers, vc_words]: VCs in VA
    "wanted": np.dtype("uint64"),  # without vc_lists: bit per output port that a VC in VA waits for
    "heads_at": np.dtype("uint64"),  # uint64[routers, P]: VCs in VA that wait for an output port
    "switching": np.dtype("uint64"),  # uint64[routers, P, vc_words]: VCs that ask for the switch to an output port
    "asking": np.dtype("uint64"),  # bit per output port that a VC asks the switch for
    "offered": np.dtype("uint64"),  # bit per input port that an output port offers itself to
    "offers": np.dtype("uint64"),  # uint64[64·P]: outputs that offer themselves to the input ports of a few routers
    "draining": np.dtype("uint64"),  # bit per router with VCs in DRAIN
    "granted_input": np.dtype("int64"),  # 1 + cycle of the switch's last grant, noted for speculation and draining ...
    "granted_output": np.dtype("int64"),  # ... of every port
    "flit_event": np.dtype("int64"),  # int64[wheel, capacity]: target << 32 | flit
    "flit_events": np.dtype("int32"),  # int32[wheel]
    "credit_event": np.dtype("int32"),  # int32[wheel, capacity]: output VC, or output_vcs + host VC
    "credit_events": np.dtype("int32"),
    "ready_event": np.dtype("int32"),  # int32[wheel, capacity]: input VCs whose RC ends
    "ready_events": np.dtype("int32"),
    "heads_next": np.dtype("int32"),  # input VCs whose next head is routed in the next cycle
    "bodies": np.dtype("int32"),  # input VCs that get a flit behind others in this cycle (core.arrivals)
    "to_hosts": np.dtype("int64"),  # events of flits that come to hosts in this cycle
    "va_recent": np.dtype("int64"),  # matrix arbiters: time of the last grant, see vc_allocation
    "sa_recent": np.dtype("int64"),
    "granted": np.dtype("int32"),  # input VCs that VA served in this cycle
    "released": np.dtype("int32"),  # port << HOST_VC_BITS | vc: output VCs whose tails left in this cycle (free_queue:
    #: and in the last one)
    "spec_vc": np.dtype("int32"),  # switch requests of heads without a VC in this cycle: input VC ...
    "spec_port": np.dtype("int32"),  # ... output port ...
    "spec_mask": np.dtype("int32"),  # ... and VCs
    "request_vc": np.dtype("int64"),  # of one router in VA: requesting VC ...
    "request_port": np.dtype("int64"),  # ... output port
    "request_mask": np.dtype("int64"),  # ... mask of output VCs
    "winner_stamp": np.dtype("int64"),  # per output VC of a router: whose entry it is
    "winner_rank": np.dtype("int64"),  # best rank
    "winner_request": np.dtype("int64"),  # its request
    "pair_order": np.dtype("int64"),  # wavefront VA: diagonal ...
    "pair_request": np.dtype("int64"),  # ... request
    "pair_output": np.dtype("int64"),  # ... output VC
    "asking_inputs": np.dtype("uint64"),  # [output, port_words] of one router: inputs that ask
    "asking_outputs": np.dtype("uint64"),  # [input, port_words]: outputs that chose it
    "requested": np.dtype("uint64"),  # [port_words]: outputs that somebody asks for ...
    "chosen": np.dtype("uint64"),  # ... inputs that an output chose ...
    "taken_inputs": np.dtype("uint64"),  # ... inputs that are matched already ...
    "taken_outputs": np.dtype("uint64"),  # ... outputs that are
    "representative": np.dtype("uint8"),  # uint8[ports, 64 port_words]: VC that stands for (input, output)
    "match_input": np.dtype("int64"),  # of one router in SA: requests, then matches: input ...
    "match_output": np.dtype("int64"),  # ... output
    "match_vc": np.dtype("int64"),  # ... VC
    "crossbar_pointer": np.dtype("int32"),  # sped_up: int32[routers, (2·input_speedup + output_speedup)·P], and those
    #: of the second allocator
    "crossbar_step": np.dtype("int64"),  # sped_up, speculation: int64[routers, (input_speedup + output_speedup)·P]: 1 +
    #: the step of the last grant that was not speculative
    "credit_sent": np.dtype("int64"),  # sped_up: int64[routers·P]: cycle of the last credit of an input port ...
    "credit_step": np.dtype("int64"),  # ... and 1 + the step in which it was made
    "batch_place": np.dtype("int32"),  # stage_batches: int32[routers·P]: place in the next three of an input port
    "rc_free": np.dtype("int64"),  # stage_batches: first cycle of the batch of a router in RC after the last ...
    "crossbar_free": np.dtype("int64"),  # ... and in the crossbar
    "rc_step": np.dtype("int64"),  # step_routes, stage_batches: 1 + the step in which this batch began
    "step_head": np.dtype("int32"),  # step_routes: int32[input_vcs]: heads in RC ...
    "step_end": np.dtype("int64"),  # ... and the last cycle of it, −1: it has not begun
    "inject_by_destination": np.dtype("int32"),  # [destination]: VCs that hosts may use
    "heads_sent": np.dtype("int64"),  # decides_ahead: next input VC << 32 | packet
    "queue_group": np.dtype("int64"),  # queue_flits: int64[routers·P, groups, 2]: `parts.output_queues`
    "table": np.dtype("int32"),  # of the routing algorithm
    "memory": np.dtype("float64"),  # of the routing algorithm (learning)
    "router_rng": np.dtype("uint64"),
    "pattern_table": np.dtype("int32"),
    "host_rng": np.dtype("uint64"),
    "length_table": np.dtype("float64"),  # cumulative distribution of packet lengths
    "script_time": np.dtype("int64"),  # listed packets: creation, sorted per host
    "script_destination": np.dtype("int32"),  # ... destination
    "script_length": np.dtype("int32"),  # ... length
    "change_time": np.dtype("int64"),  # int64[load_changes]: cycles from which on a Bernoulli source has another rate
    "change_log": np.dtype("float64"),  # float64[load_changes + 1]: its `log_failure` at first, and from each on
    "script_first": np.dtype("int64"),  # int64[hosts + 1]
    "script_next": np.dtype("int64"),  # int64[hosts]
    "message": MESSAGE,  # MESSAGE[...]: of a program, or slots of those under way
    "free_message": np.dtype("int32"),  # stack of slots
    "packet_message": np.dtype("int32"),  # int32[pool]: message of each packet
    "message_histogram": np.dtype("int64"),  # int64[bins]: latency of measured messages
    "flow": FLOW,  # FLOW[hosts, hosts]: from, to (parts.spraying)
    "gap": GAP,  # GAP[pool]
    "sprayed": SPRAYED,  # SPRAYED[pool]
    "reorder_buffer": REORDER_BUFFER,  # REORDER_BUFFER[hosts]
    "spray": SPRAY,  # SPRAY[1]: settings and counters
    "reorder_histogram": np.dtype("int64"),  # int64[spray_records.HISTOGRAMS, bins]
    "rank": RANK,  # RANK[ranks]
    "replier": REPLIER,  # REPLIER[hosts]
    "reply_length": np.dtype("int32"),  # int32[flits]: of the reply to a request of so many flits
    "outside": np.dtype("int32"),  # int32[hosts, 16, B]: flits that wait at a host for a place
    "outside_first": np.dtype("int32"),  # int32[hosts, 16]: ... the first of them
    "outside_flits": np.dtype("int32"),  # int32[hosts, 16]: ... their number
    "traffic_class": TRAFFIC_CLASS,  # TRAFFIC_CLASS[classes of traffic]
    "class_source": CLASS_SOURCE,  # CLASS_SOURCE[hosts, classes of traffic]
    "class_streams": np.dtype("uint64"),  # uint64[classes, hosts]: random streams
    "class_tables": np.dtype("int32"),  # of the patterns of all classes
    "quota": np.dtype("int32"),  # int32[routers·P, classes]: flits left in the round of an output (qos: WEIGHTED) ...
    "host_quota": np.dtype("int32"),  # int32[hosts, classes]: ... of a host
    "best_level": np.dtype("int64"),  # int64[P]: of the outputs, then of the inputs of one router in SA
    "class_count": CLASS_COUNT,  # CLASS_COUNT[CLASSES], or of the classes of traffic
    "class_histogram": np.dtype("int64"),  # int64[CLASSES, bins]
    "trail": TRAIL,  # TRAIL[pool]
    "trail_home": np.dtype("int32"),  # int32[hosts]: router of each
    "trail_head": np.dtype("int64"),  # input VC << 32 | packet of heads that came in this cycle
    "trail_taken": np.dtype("int64"),  # host << 32 | packets and acknowledges whose tails were taken in this cycle
    **{
        f"trail_{name}": np.dtype("float32" if name == "episode_observations" else "int64") for name in Tables._fields
    },  # tables of routed packets
    "program_kind": np.dtype("uint8"),  # operations of all ranks (model.workload.program): kind ...
    "program_operand": np.dtype("int64"),  # ... message, or cycles to compute
    "timer": np.dtype("int64"),  # heap of time << RANK_BITS | rank
    "arrived": np.dtype("int32"),  # messages of a program whose last tail came in this cycle
    "departed": np.dtype("int32"),  # ... left its host in the last cycle
    "packet_times": np.dtype("int64"),  # int64[pool, 2]: arrival of the head at this router and at the one before
    "leaving": np.dtype("int64"),  # input VC << 32 | packet of heads that leave a router in this cycle
    "note_event": NOTE,  # NOTE[wheel, routers·P]: feedback on its way
    "note_events": np.dtype("int32"),  # int32[wheel]
    "histogram": np.dtype("int64"),  # int64[bins]: latency of measured packets
    "network_histogram": np.dtype("int64"),  # int64[bins]: the same since the head left the host
    "log": np.dtype("int64"),  # int64[capacity, 6]: see event_log.put_log
    "crossbar_start": np.dtype("int64"),  # several steps in a cycle: where the batch of ``crossbar_free`` begins, whose
    #: first step that is
}

Net = Any  # what kernels call the record below
#: the record that the kernels get: settings, counters and the addresses of `ARRAYS` (same names)
NET = np.dtype([*_SETTINGS, *_COUNTERS, *((name, "i8") for name in ARRAYS)], align=True)

_CONSTANT = [*(name for name, _ in _SETTINGS), *ARRAYS]
NET_RECORD = constant_record(NET, _CONSTANT)
#: settings of a plain network: no part that only some need (`hooks`), a router's VCs and ports in one word. The kernel
#: is compiled for these once more, without what they rule out
PLAIN = dict.fromkeys(
    (
        "log_event", "load_changes", "speculation", "vc_lists", "vc_match", "vc_queue", "switch_match", "step_routes",
        "messages", "may_send", "sources", "qos", "replies", "acks", "agent", "agents", "feedback", "report", "learn",
        "lookup", "lookup_step", "ack_ratio", "sped_up", "hold_switch", "queue_flits", "output_queues", "lookahead",
        "unusual", "release_credits", "candidate_bytes",
    ), 0,
) | {"vc_words": 1, "port_words": 1}  # fmt: skip
PLAIN_RECORD = constant_record(NET, _CONSTANT, known=PLAIN)
_plain_settings, _plain_values = itemgetter(*PLAIN), tuple(PLAIN.values())


def is_plain(record: Any) -> bool:
    """Whether a record of `NET` is one that kernels may get as `PLAIN_RECORD`."""
    return bool(_plain_settings(record) == _plain_values)


#: ``route(router, in_port, in_vc, packet, net, table, memory, out) -> number of candidates`` (model.routing);
#: ``out`` holds zeros (`candidates.blank_candidates`)
ROUTE_SIGNATURE = int64(
    int64,
    int64,
    int64,
    PACKET_RECORD,
    NET_RECORD,
    types.CPointer(int32),
    types.CPointer(float64),
    types.CPointer(int64),
)
#: ``pattern(host, number, net, table) -> destination host`` (sim.traffic)
PATTERN_SIGNATURE = int64(int64, int64, NET_RECORD, types.CPointer(int32))
