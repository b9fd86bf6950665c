"""SA of routers with more ports than a word has bits: `output_first` with round-robin arbiters, masks of several words.

The same decisions as `model.network.core.switch_allocation.allocate_switches`, for any number of ports.
"""

from numba import int64, uint64

from hopforge.model.kernel.bits import bit_of, bits_between, first_at_or_after, first_of_words, trailing_zeros
from hopforge.model.kernel.compile import c_kernel, inlined, inner
from hopforge.model.kernel.memory import words
from hopforge.model.network.core.hooks import HOOK_SIGNATURE
from hopforge.model.network.core.kinds import PORT_SHARE_BITS
from hopforge.model.network.core.net_record import Net
from hopforge.model.network.core.records import input_port, output_port
from hopforge.model.network.core.switch_allocation import grant_switch, note_grant, vc_that_asks, vcs_that_ask
from hopforge.model.network.parts.port_masks import any_asks


@inlined
def take_offer(net: Net, i: int, start: int) -> int:
    """Output, the first at or after `start`, that offers itself to input `i`; all its offers are cleared."""
    offers, count = words(net.offers), net.port_words
    o = first_of_words(offers, i * count, count, start)
    for k in range(i * count, (i + 1) * count):
        offers[k] = 0
    return int64(o)


@inner
def offer_outputs(net: Net, first: int, last: int, now: int) -> None:
    """Let the outputs of the router with ports `first` … `last` − 1 offer themselves to an input that asks for them."""
    offers, offered = words(net.offers), words(net.offered)
    for word in range(first >> 6, (last + 63) >> 6):
        outputs = bits_between(words(net.asking)[word], word, first, last)
        while outputs != uint64(0):
            p = (word << 6) + trailing_zeros(outputs)
            outputs &= outputs - uint64(1)
            output = output_port(net, p)
            if output.busy_until <= now:
                i = (vc_that_asks(net, p, int64(output.g)) * net.port_share) >> PORT_SHARE_BITS
                offers[i * net.port_words + ((p - first) >> 6)] |= bit_of(p - first)
                offered[(first + i) >> 6] |= bit_of(first + i)


@inner
def match_router(net: Net, first: int, last: int, now: int) -> None:
    """SA of the router with ports `first` … `last` − 1 in cycle `now`."""
    offer_outputs(net, first, last, now)
    ports, offered = net.ports, words(net.offered)
    noted = net.speculation != 0 or words(net.draining)[(first // ports) >> 6] != uint64(0)
    for word in range(first >> 6, (last + 63) >> 6):
        inputs = offered[word]
        offered[word] = 0
        while inputs != uint64(0):
            q = (word << 6) + trailing_zeros(inputs)
            inputs &= inputs - uint64(1)
            port, i = input_port(net, q), q - first
            o = take_offer(net, i, int64(port.a))
            p = first + o
            v = first_at_or_after(vcs_that_ask(net, p, i), int64(port.q))
            port.q = v + 1 if v + 1 < net.vcs else 0
            port.a = o + 1 if o + 1 < ports else 0
            output_port(net, p).g = i + 1 if i + 1 < ports else 0
            grant_switch(net, q * net.vcs + v, p, now)
            if noted:
                note_grant(net, p, i, now)


@c_kernel(HOOK_SIGNATURE)
def wide_match(net: Net, first: int, end: int, now: int) -> int:
    """SA of routers `first` up to, but without, `end`: the hook `switch_match`."""
    for router in range(first, end):
        if any_asks(net, 2, router):
            match_router(net, router * net.ports, (router + 1) * net.ports, now)
    return 0
