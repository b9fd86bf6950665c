"""SA: which input VC sends a flit through the crossbar (definitions/router.md, SA); `allocate_routers` serves all.

Here is `output_first` with round-robin arbiters; the others are in `model.network.parts.switch_match`.
"""

from typing import Any

from numba import int64, uint32, uint64

from hopforge.model.kernel.bits import bit_of, bits_at, first_at_or_after, first_of_words, trailing_zeros
from hopforge.model.kernel.compile import inlined, inner
from hopforge.model.kernel.memory import int32s, int64s, prefetch, words
from hopforge.model.network.core.events import send_flit, take_first
from hopforge.model.network.core.hooks import ACTIVATE, ALLOCATE, GRANT, MATCH, RELEASE, SETTLE, call_hook
from hopforge.model.network.core.kinds import HOST_VC_BITS, HOST_VC_MASK, PORT_SHARE_BITS, TAIL
from hopforge.model.network.core.loads_ahead import OUTPUT_VC_BYTES
from hopforge.model.network.core.net_record import Net
from hopforge.model.network.core.records import input_port, input_vc, output_port, output_vc
from hopforge.model.network.core.switch_requests import leave_switch
from hopforge.model.network.core.vc_allocation import allocate_heads

#: most routers that go through VA and SA together, a divisor of 64: few enough for the first cache
BLOCK = 8


@inlined
def vc_that_asks(net: Net, p: int, start: int) -> int:
    """VC (number in the router), the first from input port `start` on, that asks for global output port `p`."""
    first = p * net.vc_words
    if net.vc_words == 1:
        return first_at_or_after(words(net.switching)[first], start * net.vcs)
    return first_of_words(words(net.switching), first, net.vc_words, start * net.vcs)


@inlined
def vcs_that_ask(net: Net, p: int, i: int) -> Any:
    """Mask of the VCs of input port `i` of a router that ask for its global output port `p`."""
    if net.vc_words == 1:
        return words(net.switching)[p] >> uint64(i * net.vcs) & ~(~uint64(0) << uint64(net.vcs))
    return bits_at(words(net.switching), (p * net.vc_words << 6) + i * net.vcs, net.vcs)


@inlined
def grant_switch(net: Net, n: int, p: int, now: int) -> None:
    """Send the first flit of input VC `n` to output port `p`."""
    vc = input_vc(net, n)
    net.last_move = now
    send_through(net, n, int64(vc.port), p, int64(vc.number), now, now, now)


@inlined
def send_through(net: Net, n: int, q: int, p: int, number: int, now: int, leaves: int, back: int) -> None:
    """As `grant_switch` for VC `number` of its router, of input port number `q`.

    The flit leaves as one that is granted in cycle `leaves`, its credit in cycle `back`. The caller notes that
    something has moved.
    """
    vc = input_vc(net, n)
    m = int64(vc.out_vc)
    output = output_vc(net, m)
    port = output_port(net, p)
    output.credits = output.credits - 1
    flit = take_first(net, n, q, now, back)
    send_flit(net, n, m, leaves - now + port.flit_time, flit, now)
    port.flits += 1
    port.busy_until = leaves + port.cycles_per_flit
    # without branches, which would be mispredicted
    tail = int64(flit & TAIL != 0)
    free = tail & (1 - net.release_credits)
    if net.release_credits != 0:
        output.tail_sent = output.tail_sent | tail
    output.owner = int64(output.owner) | -free
    int32s(net.released)[net.released_count] = (p << HOST_VC_BITS) | int64(output.vc)  # free when VA is over
    net.released_count += free
    over = uint64(tail) | uint64(output.credits == 0) | uint64(vc.flits == 0)
    leave_switch(net, p, number, over)


@inner
def note_grant(net: Net, p: int, i: int, now: int) -> None:
    """Note for speculation and draining that output port `p` took a flit of input `i` of its router."""
    int64s(net.granted_input)[int64(output_port(net, p).first) + i] = now + 1
    int64s(net.granted_output)[p] = now + 1


@inlined
def allocate_switches(net: Net, routers: int, asked: Any, now: int) -> None:
    """SA of routers from number `routers` on in cycle `now`, without the speculative requests.

    The bits of `asked` are their output ports that a VC asks for, at most 64 in all.

    Every output port offers itself to the first input at or after its pointer that asks for it, every input takes the
    first offer at or after its own.
    """
    ports = net.ports
    first = routers * ports
    offers, offered = words(net.offers), uint64(0)
    noted = net.speculation != 0 or words(net.draining)[routers >> 6] != uint64(0)
    while asked != uint64(0):
        p = first + trailing_zeros(asked)
        asked &= asked - uint64(1)
        output = output_port(net, p)
        if output.busy_until <= now:
            head = int64(output.first)
            number = vc_that_asks(net, p, int64(output.g))
            n = head * net.vcs + number  # probably the one that sends
            prefetch(net.output_vc + int64(input_vc(net, n).out_vc) * OUTPUT_VC_BYTES)
            if net.fifo_apart != 0:  # else in the cache line of the VC
                prefetch(net.fifo + n * net.fifo_bytes + 4 * int64(input_vc(net, n).head))
            k = head - first + ((number * net.port_share) >> PORT_SHARE_BITS)
            offers[k] |= bit_of(p - head)
            offered |= bit_of(k)
    if offered != uint64(0):
        net.last_move = now
    while offered != uint64(0):
        k = trailing_zeros(offered)
        offered &= offered - uint64(1)
        q = first + k
        port = input_port(net, q)
        i = int64(port.port)
        o = first_at_or_after(offers[k], int64(port.a))
        offers[k] = 0
        p = q - i + o
        v = first_at_or_after(vcs_that_ask(net, p, i), int64(port.q))
        port.q = v + 1 if v + 1 < net.vcs else 0
        port.a = o + 1 if o + 1 < ports else 0
        output_port(net, p).g = i + 1 if i + 1 < ports else 0
        send_through(net, q * net.vcs + v, q, p, i * net.vcs + v, now, now, now)
        if noted:
            note_grant(net, p, i, now)


@inlined
def free_released(net: Net) -> None:
    """Free the output VCs whose tails left by the grants of this cycle, once VA is over."""
    for k in range(net.released_count):
        code = int64(int32s(net.released)[k])
        port = output_port(net, code >> HOST_VC_BITS)
        port.free_mask = port.free_mask | (uint32(1) << uint32(code & HOST_VC_MASK))
    net.released_count = 0


@inlined
def block_of(net: Net) -> int:
    """Routers that go through VA and SA together: a power of two, with at most 64 ports if it is more than one."""
    block: Any = int64(BLOCK)
    while block > 1 and block * net.ports > 64:
        block >>= 1
    return int(block)


@inlined
def match_lists(net: Net, first: int, block: int) -> None:
    """VA of the `block` routers from number `first` on by lists of requests (`parts.vc_match`)."""
    routers = (words(net.active)[first >> 6] >> uint64(first & 63)) & ~(~uint64(0) << uint64(block))
    if routers != uint64(0):
        call_hook(net.vc_lists, net, ALLOCATE, first, int64(routers))


@inlined
def allocate_routers(net: Net, now: int, start: int, stop: int) -> None:
    """VA and SA of routers number `start` (a multiple of `BLOCK`) up to, but without, `stop` in cycle `now`.

    A few routers come after the other: their state is then still in the cache.

    All decide on the registers at the start of the cycle. Heads that wait at output ports are served after SA: the VCs
    that SA frees are set aside until then, and what VA gives asks for the switch at once. Lists of requests are made
    before SA; who is granted asks after it. With speculation VA of all routers comes first, then both matches, then the
    grants: a speculative match is carried out if VA and SA allow it.
    """
    net.speculative = 0
    separate = net.speculation != 0
    released = int64(net.released_count)  # with `vc_queue`: in the cycle before
    block = block_of(net)
    for stage in range(2 if separate else 1):
        for first in range(start, stop, block):
            end = min(first + block, stop)
            if net.vc_lists != 0 and stage == 0:
                match_lists(net, first, block)
            if separate and stage == 0:
                continue
            waited = uint64(0)
            if net.vc_lists == 0:
                waited = bits_at(words(net.wanted), first * net.ports, (end - first) * net.ports)
            if net.switch_match != 0:
                call_hook(net.switch_match, net, int64(first), int64(end), now)
            else:
                asked = bits_at(words(net.asking), first * net.ports, (end - first) * net.ports)
                if net.vc_lists == 0 and asked | waited == uint64(0):
                    continue
                allocate_switches(net, first, asked, now)
            if net.vc_lists == 0:
                allocate_heads(net, first, waited)
            elif net.granted_count != 0 and not separate:
                call_hook(net.vc_lists, net, ACTIVATE, now, now)
            if net.vc_queue != 0:
                call_hook(net.vc_queue, net, SETTLE, now, now)
            elif not separate:
                free_released(net)
        if separate and stage == 0:
            call_hook(net.speculation, net, MATCH, now, now)
    if separate:
        call_hook(net.speculation, net, GRANT, now, now)
        call_hook(net.vc_lists, net, ACTIVATE, now, now)
        free_released(net)
    if net.vc_queue != 0 and released != 0:
        call_hook(net.vc_queue, net, RELEASE, released, now)
