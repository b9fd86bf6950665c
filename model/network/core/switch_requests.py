"""Which input VCs ask for the switch to an output port, as SA reads it."""

from typing import Any

from numba import int64, uint64

from hopforge.model.kernel.bits import any_bit, bit_of
from hopforge.model.kernel.compile import inlined
from hopforge.model.kernel.memory import int8s, words
from hopforge.model.network.core.kinds import AHEAD_ENGINES
from hopforge.model.network.core.net_record import Net
from hopforge.model.network.core.records import input_vc


@inlined
def place_of(net: Net, p: int, number: int) -> int:
    """Word of ``switching`` with the bit of VC `number` of its router, for output port `p`."""
    if net.vc_words == 1:
        return p
    return p * net.vc_words + (number >> 6)


@inlined
def want_switch(net: Net, n: int, ready: Any) -> None:
    """Input VC `n` asks for the switch from this cycle on if `ready` is 1 (0: nothing changes)."""
    vc = input_vc(net, n)
    ask_switch(net, n, int64(vc.router) * net.ports + int64(vc.out_port), int64(vc.number), ready)


@inlined
def ask_switch(net: Net, n: int, p: int, number: int, ready: Any) -> None:
    """As `want_switch`, where output port `p` and the number of input VC `n` in its router are known."""
    if net.lookahead == AHEAD_ENGINES:
        ready &= uint64(int8s(net.unanswered)[n] == 0)
    words(net.switching)[place_of(net, p, number)] |= ready << uint64(number & 63)
    words(net.asking)[p >> 6] |= ready << uint64(p & 63)


@inlined
def leave_switch(net: Net, p: int, number: int, leaves: Any) -> None:
    """VC `number` of its router asks for the switch to output port `p` no longer if `leaves` is 1."""
    place = place_of(net, p, number)
    left = words(net.switching)[place] & ~(leaves << uint64(number & 63))
    words(net.switching)[place] = left
    if net.vc_words == 1:
        words(net.asking)[p >> 6] &= ~(uint64(left == uint64(0)) << uint64(p & 63))
    elif left == uint64(0) and not any_bit(words(net.switching), p * net.vc_words, net.vc_words):
        words(net.asking)[p >> 6] &= ~bit_of(p)
