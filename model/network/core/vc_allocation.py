"""VA: which input VC gets which output VC (docs/definitions/router.md, VA).

Here are heads with one candidate each, separable allocators and round-robin arbiters: a head waits at the output port
that it asks for, so that a port without a free VC costs nothing. All others are in `model.network.parts.vc_match`.
"""

from typing import Any

from numba import int64, uint32, uint64

from hopforge.model.kernel.bits import bit_of, first_at_or_after, trailing_zeros
from hopforge.model.kernel.compile import inlined, inner
from hopforge.model.kernel.memory import int64s, words
from hopforge.model.network.core.kinds import ACTIVE, INPUT_FIRST, WORMHOLE
from hopforge.model.network.core.net_record import Net
from hopforge.model.network.core.records import fifo_of, input_vc, output_port, output_vc, packet_at
from hopforge.model.network.core.switch_requests import ask_switch


@inlined
def packet_flits(net: Net, n: int) -> Any:
    """Length of the packet whose head input VC `n` holds, where VA must know it; else 0."""
    if net.switching_mode == WORMHOLE:
        return int64(0)
    flit = int64(fifo_of(net, n)[input_vc(net, n).head])
    return int64(packet_at(net, flit >> 2).length)


@inner
def with_room(net: Net, p: int, mask: int, need: int) -> int:
    """Those VCs of `mask` at output port number `p` that have `need` credits."""
    rest = mask
    while rest != 0:
        vc = trailing_zeros(uint64(rest))
        rest &= rest - 1
        if output_vc(net, p * net.vcs + vc).credits < need:
            mask &= ~(1 << vc)
    return mask


@inlined
def available_vcs(net: Net, p: int, allowed: int, need: int) -> int:
    """Those VCs of the mask `allowed` that are free at output port number `p` and have `need` credits."""
    mask = allowed & int64(output_port(net, p).free_mask)
    return mask if need == 0 else with_room(net, p, mask, need)


@inlined
def asked_vcs(net: Net, p: int, n: int) -> int:
    """VCs at output port number `p` that input VC `n`, which waits there, can be given."""
    vc = input_vc(net, n)
    return available_vcs(net, p, int64(vc.vc_mask), max(int64(vc.need), packet_flits(net, n)))


@inlined
def first_in_turn(net: Net, n: int, output: int, mask: int) -> int:
    """VC of `mask` at port `output` of the router that input VC `n` takes: the first at or after its pointer."""
    start = int64(input_vc(net, n).pointer) - output * net.vcs
    if start < 0 or start >= net.vcs:
        start = int64(0)
    return first_at_or_after(uint64(mask), start)


@inlined
def grant_head(net: Net, p: int, number: int, mask: int) -> None:
    """Give one of the VCs `mask` at output port number `p` to VC `number` of its router."""
    vcs = net.vcs
    port = output_port(net, p)
    n = int64(port.first) * vcs + number
    output = p - int64(port.first)
    w = first_in_turn(net, n, output, mask)
    width, own = net.ports * vcs, output * vcs + w
    given, taker = output_vc(net, p * vcs + w), input_vc(net, n)
    given.owner = n
    given.pointer = number + 1 if number + 1 < width else 0
    taker.pointer = own + 1 if own + 1 < width else 0
    taker.state = ACTIVE
    taker.out_vc = p * vcs + w
    port.free_mask = port.free_mask & ~(uint32(1) << uint32(w))
    left = words(net.heads_at)[p] & ~bit_of(number)
    words(net.heads_at)[p] = left
    words(net.wanted)[p >> 6] &= ~(uint64(left == uint64(0)) << uint64(p & 63))
    ask_switch(net, n, p, number, uint64(given.credits > 0))


@inlined
def chosen_vcs(net: Net, p: int, n: int) -> int:
    """VCs at output port number `p` that input VC `n` asks for: all that it can be given, or the first in turn."""
    mask = asked_vcs(net, p, n)
    if net.va_kind == INPUT_FIRST and mask != 0:
        mask = int64(1) << first_in_turn(net, n, p - int64(output_port(net, p).first), mask)
    return mask


@inner
def share_port(net: Net, p: int, heads: Any) -> None:
    """VA at output port number `p`, at which several `heads` (VCs of the router) wait."""
    first = int64(output_port(net, p).first) * net.vcs
    asking, won = words(net.asking_inputs), int64s(net.request_mask)
    asked, by_all = int64(0), ~int64(0)
    rest = heads
    while rest != uint64(0):
        mask = chosen_vcs(net, p, first + trailing_zeros(rest))
        rest &= rest - uint64(1)
        asked |= mask
        by_all &= mask
    same = asked == by_all  # all ask for the same: no list for each VC
    rest = heads if not same else uint64(0)
    while rest != uint64(0):
        number = trailing_zeros(rest)
        rest &= rest - uint64(1)
        mask = chosen_vcs(net, p, first + number)
        while mask != 0:
            asking[trailing_zeros(uint64(mask))] |= bit_of(number)
            mask &= mask - 1
    winners = uint64(0)
    while asked != 0:
        w = trailing_zeros(uint64(asked))
        asked &= asked - 1
        asks = heads
        if not same:
            asks = asking[w]
            asking[w] = 0
        number = first_at_or_after(asks, int64(output_vc(net, p * net.vcs + w).pointer))
        won[number] = (won[number] if winners & bit_of(number) != uint64(0) else 0) | (int64(1) << w)
        winners |= bit_of(number)
    while winners != uint64(0):
        number = trailing_zeros(winners)
        winners &= winners - uint64(1)
        grant_head(net, p, number, won[number])


@inlined
def allocate_heads(net: Net, routers: int, waited: Any) -> None:
    """VA of routers from number `routers` on, after their SA: VCs ask from the next cycle on.

    The bits of `waited` are their output ports at which heads wait, at most 64 in all.
    """
    first = routers * net.ports
    while waited != uint64(0):
        p = first + trailing_zeros(waited)
        waited &= waited - uint64(1)
        port = output_port(net, p)
        if port.free_mask == 0:
            continue
        heads = words(net.heads_at)[p]
        if heads & (heads - uint64(1)) != uint64(0):
            share_port(net, p, heads)
            continue
        number = trailing_zeros(heads)
        n = int64(port.first) * net.vcs + number
        mask = asked_vcs(net, p, n)
        if mask != 0:
            grant_head(net, p, number, mask)
