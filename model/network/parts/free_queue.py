"""Output VCs without an allocator (docs/definitions/router.md, VCs without an allocator): ``va: free_queue``."""

from numba import int64, uint32, uint64

from hopforge.model.kernel.bits import bit_of, first_at_or_after
from hopforge.model.kernel.compile import c_kernel, inner
from hopforge.model.kernel.memory import int32s, int64s, words
from hopforge.model.network.core.hooks import HOOK_SIGNATURE, SETTLE
from hopforge.model.network.core.kinds import ACTIVE, HOST_VC_BITS, HOST_VC_MASK, VA
from hopforge.model.network.core.net_record import Net
from hopforge.model.network.core.records import input_vc, output_port, output_vc
from hopforge.model.network.core.switch_requests import leave_switch, want_switch


@c_kernel(HOOK_SIGNATURE)
def ask_with_heads(net: Net, router: int, requests: int, now: int) -> int:
    """Let the heads of a router ask for the switch in this cycle, with the VC that each would take: `vc_match`."""
    vcs = net.vcs
    for k in range(requests):
        n = router * net.ports * vcs + int64s(net.request_vc)[k]
        p = router * net.ports + int64s(net.request_port)[k]
        w = first_at_or_after(uint64(int64s(net.request_mask)[k]), int64(output_port(net, p).next_vc))
        vc = input_vc(net, n)
        vc.out_vc = p * vcs + w
        want_switch(net, n, uint64(1))
        int32s(net.spec_vc)[net.speculative] = n
        int32s(net.spec_mask)[net.speculative] = vc.flits
        net.speculative += 1
    return 0


@inner
def settle_heads(net: Net) -> None:
    """Give the heads that were granted their VC; the others ask anew in the next cycle."""
    vcs = net.vcs
    for k in range(net.speculative):
        n = int64(int32s(net.spec_vc)[k])
        vc = input_vc(net, n)
        m, number = int64(vc.out_vc), int64(vc.number)
        p = m // vcs
        if vc.flits == int32s(net.spec_mask)[k]:  # nothing has left
            leave_switch(net, p, number, uint64(1))
            continue
        given, port = output_vc(net, m), output_port(net, p)
        w = int64(given.vc)
        port.next_vc = w + 1 if w + 1 < vcs else 0
        port.free_mask = port.free_mask & ~(uint32(1) << given.vc)
        words(net.waiting)[int64(vc.router) * net.vc_words + (number >> 6)] &= ~bit_of(number)
        if vc.state == VA:
            vc.state = ACTIVE
        if vc.state == ACTIVE or net.release_credits != 0:  # otherwise its only flit has released it
            given.owner = n
    net.speculative = 0


@inner
def release_vcs(net: Net, count: int) -> None:
    """Free the first `count` output VCs of ``net.released``; the others follow in the next cycle."""
    released = int32s(net.released)
    for k in range(count):
        code = int64(released[k])
        port = output_port(net, code >> HOST_VC_BITS)
        port.free_mask = port.free_mask | (uint32(1) << uint32(code & HOST_VC_MASK))
    for k in range(count, net.released_count):
        released[k - count] = released[k]
    net.released_count -= count


@c_kernel(HOOK_SIGNATURE)
def give_vcs(net: Net, event: int, a: int, b: int) -> int:
    """Give VCs, or take them back: the hook `vc_queue`."""
    if event == SETTLE:
        settle_heads(net)
    else:
        release_vcs(net, a)
    return 0
