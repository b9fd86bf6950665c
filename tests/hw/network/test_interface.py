"""The interface that answers requests against the golden host: every output in every cycle."""

from collections import deque

import numpy as np
import pytest
from amaranth.sim import Simulator

from hopforge.hw.network.interface import NetworkInterface
from hopforge.model.router.flit import BODY, HEAD, SINGLE, TAIL, Flit, PortOutputs
from hopforge.model.router.network import Packet
from hopforge.model.router.params import RouterParams
from hopforge.model.router.reply_rules import ReplyRules
from hopforge.model.router.replying_host import ReplyingHost

SMALL = {"ports": 3, "vcs": 4, "buffer_flits": 3, "width_bits": 40, "address_bits": 8, "tag_bits": 6, "length_bits": 4}
CASES = {
    "one place": ({}, ReplyRules(3, 1, places=1)),
    "three places, late": ({}, ReplyRules(1, 5, places=3)),
    "two VCs, one flit of buffer": ({"vcs": 2, "buffer_flits": 1}, ReplyRules(2, 2, places=2)),
    "cut-through": (
        {"switching": "vct", "vc_release": "credits", "buffer_flits": 5, "vcs": 6, "length_bits": 3},
        ReplyRules(4, 3, places=2),
    ),
    "as long as the request says": ({}, ReplyRules(delay_cycles=0, places=2, lengths=((1, 4), (3, 2)))),
    "cut-through, as long as the request says": (
        {"switching": "vct", "vc_release": "credits", "buffer_flits": 5, "vcs": 2},
        ReplyRules(places=3, lengths=((2, 3), (4, 5), (3, 1))),
    ),
}


class Router:
    """What the router does at the port of a host: random packets, and credits for what comes."""

    def __init__(self, params: RouterParams, seed: int) -> None:
        self.params, self.rng = params, np.random.default_rng(seed)
        self.credits = [params.buffer_flits] * params.vcs
        self.left = [0] * params.vcs
        self.begun = [0] * params.vcs
        self.owed: deque[int] = deque()

    def outputs(self, cycle: int) -> PortOutputs:
        """Return a flit, often, and a credit for a flit of before, often."""
        p, rng, flit, credit = self.params, self.rng, None, None
        v = int(rng.integers(p.vcs))
        if self.credits[v] and rng.random() < (0.9 if cycle % 400 < 200 else 0.3):
            first = not self.left[v]
            if first:
                self.left[v] = int(rng.integers(1, 5))
            last = self.left[v] == 1
            kind = SINGLE if first and last else HEAD if first else TAIL if last else BODY
            flit = Flit(kind, v, int(rng.integers(1 << p.width_bits)))
            self.left[v] -= 1
            self.credits[v] -= 1
        if self.owed and rng.random() < 0.6:
            credit = self.owed.popleft()
        return PortOutputs(flit, credit)


@pytest.mark.parametrize("name", list(CASES))
@pytest.mark.thinned(2)
def test_equals_golden_host(name: str) -> None:
    changed, rules = CASES[name]
    params = RouterParams(**(SMALL | changed))
    rng = np.random.default_rng(5)
    packets = [Packet(int(t), int(rng.integers(1 << 40)), int(rng.integers(1, 4)), 7) for t in range(0, 1500, 6)]
    golden, router = ReplyingHost(params, packets, rules), Router(params, 3)
    dut = NetworkInterface(params=params, rules=rules)
    half = params.vcs // 2
    replies = 0

    async def bench(ctx) -> None:  # type: ignore[no-untyped-def]
        nonlocal replies
        for cycle in range(1500):
            seen = router.outputs(cycle)
            ctx.set(dut.channel.out_valid, int(seen.flit is not None))
            if seen.flit is not None:
                data = {"kind": seen.flit.kind, "vc": seen.flit.vc, "data": seen.flit.data}
                ctx.set(dut.channel.out_flit, data)
            ctx.set(dut.channel.in_credit_valid, int(seen.credit is not None))
            ctx.set(dut.channel.in_credit_vc, seen.credit or 0)
            request = next((flit for at, flit in golden.sent[-1:] if at == cycle - 1 and flit.vc < half), None)
            ctx.set(dut.host.in_valid, int(request is not None))
            if request is not None:
                ctx.set(dut.host.in_flit, {"kind": request.kind, "vc": request.vc, "data": request.data})
            want = golden.step(cycle, seen)
            taken = [flit for at, flit in golden.received[-1:] if at == cycle]
            sent = [flit for at, flit in golden.sent[-1:] if at == cycle and flit.vc >= half]
            replies += len(sent)
            assert ctx.get(dut.channel.in_valid) == (want.flit is not None), cycle
            if want.flit is not None:
                flit = ctx.get(dut.channel.in_flit)
                assert (flit.kind, flit.vc, flit.data) == (want.flit.kind, want.flit.vc, want.flit.data), cycle
                router.owed.append(want.flit.vc)
            assert ctx.get(dut.channel.out_credit_valid) == (want.credit is not None), cycle
            if want.credit is not None:
                assert ctx.get(dut.channel.out_credit_vc) == want.credit, cycle
                router.credits[want.credit] += 1
            assert ctx.get(dut.host.out_valid) == len(taken), cycle
            if taken:
                flit = ctx.get(dut.host.out_flit)
                assert (flit.kind, flit.vc, flit.data) == (taken[0].kind, taken[0].vc, taken[0].data), cycle
            assert ctx.get(dut.host.busy) == len(sent), cycle
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert replies > 100


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (ReplyRules(own=False, places=1), "vcs must be own in hardware, not shared"),
        (ReplyRules(), "queue must be set in hardware, not null"),
        (ReplyRules(delay_cycles=1025, places=1), "delay_cycles must be at most 1024 in hardware, not 1025"),
        (ReplyRules(16, places=1), r"^flits must be at most 15 in hardware \(router.length_bits\), not 16"),
        (ReplyRules(places=1, lengths=((1, 16), (2, 3))), "^lengths must be at most 15 in hardware"),
    ],
)
def test_bad_rules(rules: ReplyRules, message: str) -> None:
    params = RouterParams(**SMALL | {"switching": "vct", "buffer_flits": 20})
    with pytest.raises(ValueError, match=message):
        NetworkInterface(params=params, rules=rules)


def test_a_head_holds_the_longest_reply() -> None:
    cut_through = RouterParams(**SMALL | {"switching": "vct", "buffer_flits": 20})
    assert NetworkInterface(params=cut_through, rules=ReplyRules(15, places=1)).rules.longest == 15
    wormhole = RouterParams(**SMALL)  # whose heads hold no length
    assert NetworkInterface(params=wormhole, rules=ReplyRules(16, places=1)).rules.longest == 16
