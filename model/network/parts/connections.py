"""Which crossbar ports are connected for the rest of a packet (router.md, connections).

For routers with speedups, and with speculation.

Behind the requests of heads, from place ``input_vcs`` on, ``net.spec_port`` is 1 + crossbar output · VCs + VC of every
crossbar input that is connected, 0 for the others, and ``net.spec_mask`` how many of a router's are.
"""

from numba import uint64

from hopforge.model.kernel.bits import bit_of
from hopforge.model.kernel.compile import inlined, inner
from hopforge.model.kernel.memory import int32s, words
from hopforge.model.network.core.net_record import Net
from hopforge.model.network.parts.port_masks import forget, put_bit


@inlined
def connected_to(net: Net, router: int, e: int) -> int:
    """Return what crossbar input `e` of a router is connected to."""
    return int(int32s(net.spec_port)[net.input_vcs + router * net.ports * net.input_speedup + e])


@inlined
def set_connected(net: Net, router: int, e: int, held: int) -> None:
    """Note what crossbar input `e` is connected to (0: nothing)."""
    before = connected_to(net, router, e)
    int32s(net.spec_port)[net.input_vcs + router * net.ports * net.input_speedup + e] = held
    int32s(net.spec_mask)[net.input_vcs + router] += int(held != 0) - int(before != 0)


@inlined
def any_connected(net: Net, router: int) -> bool:
    """Whether a crossbar input of a router is connected."""
    return bool(net.hold_switch != 0 and int32s(net.spec_mask)[net.input_vcs + router] != 0)


@inlined
def is_taken(address: int, number: int) -> bool:
    """Whether bit `number` is set in the mask at `address`."""
    return bool(words(address)[number >> 6] & bit_of(number) != uint64(0))


@inner
def mark_connected(net: Net, router: int) -> None:
    """Enter what is connected in ``net.taken_inputs`` and ``net.taken_outputs``: nobody else may use it in the step."""
    forget(words(net.taken_inputs), 0, net.port_words)
    forget(words(net.taken_outputs), 0, net.port_words)
    if not any_connected(net, router):
        return
    for e in range(net.ports * net.input_speedup):
        held = connected_to(net, router, e) - 1
        if held >= 0:
            put_bit(uint64(0), net.taken_inputs, 2, e)  # 2: in the array, of whatever size
            put_bit(uint64(0), net.taken_outputs, 2, held // net.vcs)


@inlined
def is_closed(net: Net, e: int, f: int) -> bool:
    """Whether crossbar input `e` or output `f` is connected to another one: what `mark_connected` has entered."""
    return bool(net.hold_switch != 0 and (is_taken(net.taken_inputs, e) or is_taken(net.taken_outputs, f)))
