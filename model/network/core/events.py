"""What happens to flits outside the allocators: into the FIFO, RC, out of the FIFO, over the link, to the host."""

from collections.abc import Callable, Mapping
from typing import Any

from numba import int32, int64, uint32, uint64

from hopforge.model.kernel.bits import bit_of
from hopforge.model.kernel.compile import inlined, inner
from hopforge.model.kernel.memory import floats, int8s, int32s, int64s, prefetch, words
from hopforge.model.network.core.candidates import (
    blank_candidates,
    candidate,
    candidate_mask,
    candidate_need,
    candidate_port,
)
from hopforge.model.network.core.event_log import call_log
from hopforge.model.network.core.hooks import HEAD_HERE, HEAD_IN, HEAD_OUT, TAKE, TAKEN, call_hook
from hopforge.model.network.core.kinds import (
    ACTIVE,
    AHEAD_ENGINES,
    DRAIN,
    GRANTED,
    HEAD,
    HOST_VC_BITS,
    HOST_VC_MASK,
    IDLE,
    RC,
    RECEIVED,
    STORE_AND_FORWARD,
    TAIL,
    UNDECIDED,
    VA,
)
from hopforge.model.network.core.layouts import OUTPUT_VC
from hopforge.model.network.core.loads_ahead import (
    INPUT_PORT_BYTES,
    OUTPUT_PORT_BYTES,
    OUTPUT_VC_BYTES,
)
from hopforge.model.network.core.lookup_state import ask_next_route, ask_route, row_there
from hopforge.model.network.core.net_record import Net
from hopforge.model.network.core.packet_ends import count_arrival
from hopforge.model.network.core.records import (
    fifo_of,
    host_at,
    input_port,
    input_vc,
    output_port,
    output_vc,
    packet_at,
    router_at,
    vc_in_port,
)
from hopforge.model.network.core.switch_requests import want_switch

_OUTPUT_VC_FIELDS: Mapping[str, Any] = OUTPUT_VC.fields or {}
CREDITS_AT = int(_OUTPUT_VC_FIELDS["credits"][1])


@inlined
def send_credit(net: Net, target: int, when: int) -> None:
    """Let a credit count at output VC `target` (or output_vcs + host VC) from cycle `when` on."""
    slot = when & net.wheel_mask
    place = int32s(net.credit_events)[slot]
    int32s(net.credit_event)[slot * net.event_capacity + place] = target
    int32s(net.credit_events)[slot] = place + 1


@inlined
def put_flit(net: Net, target: int, flit: int, when: int) -> None:
    """Deliver `flit` to input VC `target` (or input_vcs + host VC) at the start of cycle `when`."""
    slot = when & net.wheel_mask
    place = int32s(net.flit_events)[slot]
    int64s(net.flit_event)[slot * net.event_capacity + place] = (int64(target) << 32) | int64(flit)
    int32s(net.flit_events)[slot] = place + 1


@inlined
def send_flit(net: Net, n: int, m: int, flit_time: int, flit: int, now: int) -> None:
    """Put a granted flit of input VC `n` on the link behind output VC `m`."""
    put_flit(net, int64(output_vc(net, m).target), int64(flit), now + flit_time)
    if net.log_event != 0:
        call_log(net.log_event, net, GRANTED, now, n, m, flit)


@inlined
def pop_flit(net: Net, n: int, now: int) -> int:
    """Take the first flit of input VC `n`, return the credit upstream, and note the next packet after a tail."""
    net.last_move = now
    return take_first(net, n, int64(input_vc(net, n).port), now, now)


@inlined
def take_first(net: Net, n: int, q: int, now: int, back: int) -> int:
    """As `pop_flit`, of a VC of input port number `q`, with a credit that leaves in cycle `back`.

    The caller notes that something has moved.
    """
    vc = input_vc(net, n)
    buffer = net.buffer
    flit = int64(fifo_of(net, n)[vc.head])
    vc.head = vc.head + 1 if vc.head + 1 < buffer else 0
    vc.flits = vc.flits - 1
    send_credit(net, int64(vc.credit_to), back + input_port(net, q).credit_time)
    if net.feedback != 0 and flit & HEAD != 0:
        call_hook(net.feedback, net, HEAD_OUT, int64(n), int64(flit) >> 2)
    # without branches, which would be mispredicted
    tail = int64(flit & TAIL != 0)
    vc.state = int64(vc.state) & (tail - 1)  # IDLE is 0
    int32s(net.heads_next)[net.heads_count] = n
    net.heads_count += tail & int64(vc.flits > 0)
    return flit


@inner
def ask_ahead(net: Net, n: int) -> None:
    """Let input VC `n` ask for its route in the next router from this cycle on, if there is one."""
    vc = input_vc(net, n)
    port = int64(vc.router) * net.ports + candidate_port(int64s(net.candidate)[n * net.max_candidates])
    carried = input_port(net, port).carried
    int8s(net.unanswered)[n] = carried
    if carried != 0 and net.lookup != 0:
        ask_next_route(net, port, int64(vc.number))


@inner
def answer_ahead(net: Net, n: int) -> None:
    """Let the head of input VC `n` ask for the switch from this cycle on: its route in the next router is known."""
    vc = input_vc(net, n)
    int8s(net.unanswered)[n] = 0
    if vc.state == ACTIVE and vc.flits > 0 and output_vc(net, int64(vc.out_vc)).credits > 0:
        want_switch(net, n, uint64(1))


@inlined
def wait_at_port(net: Net, n: int, output: int) -> None:
    """Let the head of input VC `n` wait for a VC at port `output` of its router, that of its only candidate."""
    vc = input_vc(net, n)
    p = int64(vc.router) * net.ports + output
    if net.sparse != 0:
        prefetch(net.output_port + p * OUTPUT_PORT_BYTES)
        prefetch(net.output_vc + p * net.vcs * OUTPUT_VC_BYTES)
        prefetch(net.input_port + int64(vc.port) * INPUT_PORT_BYTES)
    words(net.heads_at)[p] |= bit_of(int64(vc.number))
    words(net.wanted)[p >> 6] |= bit_of(p)


@inlined
def end_routing(net: Net, n: int) -> None:
    """RC of input VC `n` ended with the last cycle."""
    enter(net, n, int64(input_vc(net, n).out_port))


@inlined
def enter(net: Net, n: int, output: int) -> None:
    """RC of input VC `n` has ended: to VA, or to DRAIN without candidates.

    Port `output` is that of its only candidate; without ``vc_lists``, else any number.
    """
    vc = input_vc(net, n)
    if vc.candidates != 0:
        vc.state = VA
        if net.vc_lists == 0:
            wait_at_port(net, n, output)
        else:
            words(net.waiting)[int64(vc.router) * net.vc_words + (int64(vc.number) >> 6)] |= bit_of(int64(vc.number))
            words(net.active)[vc.router >> 6] |= bit_of(int64(vc.router))
        if net.lookahead == AHEAD_ENGINES:
            ask_ahead(net, n)
        return
    vc.state = DRAIN
    port = input_port(net, int64(vc.port))
    router_at(net, int64(vc.router)).drain_ports += int64(port.drain_mask == 0)
    port.drain_mask |= uint32(1) << uint32(vc_in_port(net, vc))
    words(net.draining)[vc.router >> 6] |= bit_of(int64(vc.router))


@inlined
def route_one_hop(net: Net, n: int, packet: Any, out: Any) -> int:
    """Route an acknowledge: from the service port to the port that it says, from any other to the service port."""
    vc, service = input_vc(net, n), net.ports - 1
    from_service = vc.port - int64(vc.router) * net.ports == service
    port = packet.part if from_service else service
    mask = net.ack_mask if from_service else (int64(1) << net.vcs) - 1
    out[0] = candidate(port, mask)
    return 1


@inlined
def is_held(net: Net, vc: Any, packet: Any) -> bool:
    """Whether a head must wait before RC: for the rest of its packet, or for the decision of an agent."""
    if net.switching_mode == STORE_AND_FORWARD and vc.flits < packet.length:
        return True
    return bool(net.undecided != 0 and packet.user0 == UNDECIDED)


@inlined
def batch_of(net: Net, q: int) -> int:
    """Place of the batches that what comes from input port number `q` belongs to: those of its router, or of a half."""
    return int64(int32s(net.batch_place)[q])


@inlined
def batch_start(free: Any, place: int, ready: int, cycles: int) -> int:
    """First cycle in a stage of `cycles` cycles of what is ready for it in cycle `ready`, at the end of a batch.

    ``free[place]`` is the first cycle in which the batch after the last one can begin.
    """
    start = int64(free[place]) - cycles
    if start < ready:
        start = max(ready, int64(free[place]))
        free[place] = start + cycles
    return start


@inlined
def start_routing(net: Net, route: Callable[..., int], n: int, now: int) -> None:
    """First RC cycle of the head of input VC `n`: evaluate the routing algorithm."""
    vc = input_vc(net, n)
    flit = int64(fifo_of(net, n)[vc.head])
    packet = packet_at(net, flit >> 2)
    unusual = net.unusual != 0
    if unusual and is_held(net, vc, packet):
        return
    place = net.candidate + n * net.candidate_bytes
    if net.vc_lists == 0:
        int64s(place)[0] = 0
    else:
        blank_candidates(net, (n * net.candidate_bytes) >> 3)
    if unusual and net.acks != 0 and packet.dst >= net.hosts:
        vc.candidates = route_one_hop(net, n, packet, int64s(place))
    else:
        vc.candidates = route(
            int64(vc.router),
            int64(vc.port) - int64(vc.router) * net.ports,
            vc_in_port(net, vc),
            packet,
            net,
            int32s(net.table),
            floats(net.memory),
            int64s(place),
        )
    output = int64(0)
    if net.vc_lists == 0:
        packed = int64s(place)[0]
        output = candidate_port(packed)
        vc.out_port = output
        vc.vc_mask = candidate_mask(packed)
        vc.need = candidate_need(packed)
    packet.hops += 1
    wait: Any = int64(0)
    if unusual:
        carried = net.lookahead != 0 and input_port(net, int64(vc.port)).carried != 0
        if net.lookup != 0:
            if not carried:
                vc.state = RC
                ask_route(net, int64(vc.port), vc_in_port(net, vc))
                return
            if not row_there(net, int64(vc.router), packet):
                vc.candidates = 0
        if net.step_routes != 0:
            vc.state = RC
            int32s(net.step_head)[net.step_heads] = n
            int64s(net.step_end)[net.step_heads] = -1
            net.step_heads += 1
            return
        wait = int64(0) if carried else net.rc_cycles
        if net.stage_batches != 0:
            wait += batch_start(int64s(net.rc_free), batch_of(net, int64(vc.port)), now, int64(net.rc_cycles)) - now
    if wait == 0 and vc.candidates > 0:
        enter(net, n, output)
        return
    vc.state = RC
    slot = (now + max(wait, 1)) & net.wheel_mask  # r = 0 and unroutable: in VA for a cycle, without a request
    int32s(net.ready_event)[slot * net.event_capacity + int32s(net.ready_events)[slot]] = n
    int32s(net.ready_events)[slot] += 1


@inlined
def receive(net: Net, target: int, flit: int, now: int) -> None:
    """Let a flit come to a host, which takes it at once if it has no limit of replies."""
    if net.replies != 0 and net.reply_places != 0:
        call_hook(net.replies, net, TAKE, int64(target), int64(flit))
        net.last_move = now
        return
    take_flit(net, target, flit, now)


@inlined
def take_flit(net: Net, target: int, flit: int, now: int) -> None:
    """Let a host take a flit: credit back at once, statistics with the tail, the packet's record becomes free."""
    host, v = target >> HOST_VC_BITS, target & HOST_VC_MASK
    receiver = host_at(net, host)
    send_credit(net, receiver.output_vc + v, now + receiver.return_time)
    receiver.flits_received += 1
    net.flits_ejected += 1
    net.last_move = now
    if net.log_event != 0:
        call_log(net.log_event, net, RECEIVED, now, host, v, flit)
    if flit & TAIL == 0:
        return
    if net.acks != 0 and host >= net.hosts:
        call_hook(net.acks, net, TAKEN, int64(flit) >> 2, now)
        return
    count_arrival(net, int64(flit) >> 2, now, 1)


@inner
def release(net: Net, target: int) -> None:
    """Output VC `target` (or output_vcs + host VC) becomes free (vc_release: credits)."""
    if target >= net.output_vcs:
        h = target - net.output_vcs
        host = host_at(net, h >> HOST_VC_BITS)
        host.free_mask = host.free_mask | (uint32(1) << uint32(h & HOST_VC_MASK))
        return
    output = output_vc(net, target)
    output.owner = -1
    port = output_port(net, target // net.vcs)
    port.free_mask = port.free_mask | (uint32(1) << output.vc)


@inlined
def count_credit(net: Net, target: int) -> None:
    """As `take_credit`, where a VC is free again with its tail (vc_release: tail)."""
    inside = target < net.output_vcs
    host = net.host_credits + (target - net.output_vcs) * 4
    vc = net.output_vc + target * OUTPUT_VC_BYTES + CREDITS_AT
    credits = int32s(host ^ ((host ^ vc) & -int64(inside)))  # without a branch, which would be mispredicted
    credits[0] += 1
    # one condition, seldom true, not two: whether it is a router's would be mispredicted
    if int64(credits[0] - 1) | int64(not inside) == 0:
        output = output_vc(net, target)
        if output.owner >= 0:
            want_switch(net, int64(output.owner), uint64(input_vc(net, int64(output.owner)).flits > 0))


@inlined
def take_credit(net: Net, target: int) -> None:
    """Let a credit count from this cycle on at output VC `target` (or output_vcs + host VC)."""
    if net.release_credits == 0:
        count_credit(net, target)
        return
    if target >= net.output_vcs:
        h = target - net.output_vcs
        int32s(net.host_credits)[h] += 1
        if int8s(net.host_tail_sent)[h] != 0 and int32s(net.host_credits)[h] == host_at(net, h >> HOST_VC_BITS).depth:
            int8s(net.host_tail_sent)[h] = 0
            release(net, target)
        return
    output = output_vc(net, target)
    output.credits = output.credits + 1
    if output.credits == 1 and output.owner >= 0 and output.tail_sent == 0:
        want_switch(net, int64(output.owner), uint64(input_vc(net, int64(output.owner)).flits > 0))
    if output.tail_sent != 0 and output.credits == output.depth:
        output.tail_sent = 0
        release(net, target)


@inlined
def accept(net: Net, n: int, flit: int, now: int) -> bool:
    """Note that a flit written at the end of the last cycle stands in the FIFO of input VC `n`; True: RC begins."""
    vc = input_vc(net, n)
    buffer = net.buffer
    place = int64(vc.head) + vc.flits
    if place >= buffer:
        place -= buffer
    fifo_of(net, n)[place] = int32(flit)
    vc.flits = vc.flits + 1
    if net.unusual != 0 and flit & HEAD != 0:
        if net.feedback != 0:
            call_hook(net.feedback, net, HEAD_IN, int64(flit) >> 2, now)
        if net.acks != 0:
            call_hook(net.acks, net, HEAD_HERE, int64(n), int64(flit) >> 2)
    if vc.state == IDLE:
        return True
    want_switch(net, n, uint64(vc.state == ACTIVE) & uint64(output_vc(net, int64(vc.out_vc)).credits > 0))
    return False
