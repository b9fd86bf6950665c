"""Allocation of output virtual channels in several iterations of iSLIP: the sides of one port."""

from collections.abc import Sequence
from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hopforge.hw.parts.arbiter import GroupRoundRobinArbiter, RoundsArbiter
from hopforge.hw.parts.shared import place, shared

__all__ = ["RoundsInput", "RoundsOutput", "iterated_allocation"]


class RoundsInput(wiring.Component):
    """Input VCs of a port, which take one of the output VCs that have picked them, in every iteration anew.

    Bits v·vcs + w stand for VC v and VC w of the port that it asks (``asked_port``, one-hot, bit v·ports + o). All
    iterations begin at the same pointers; grants of the first one move them. Combinational from ``picked`` to all else.

    Parameters
    ----------
    ports, vcs : int
        Ports of the router, virtual channels of a port.
    iterations : int
        How often.

    Attributes
    ----------
    picked : sequence of Signal
        Of iteration j and output port o (number j·ports + o): which of its VCs have picked which VC.
    accepted : sequence of Signal
        By iteration: which of them each VC takes.
    waiting : sequence of Signal
        By iteration: the VCs that are without a grant after it.
    granted, granted_vc : Signal
        The VCs that have a grant at last, and of which VC.
    """

    asked_port: Signal
    picked: Sequence[Signal]
    accepted: Sequence[Signal]
    waiting: Sequence[Signal]
    granted: Signal
    granted_vc: Signal

    def __init__(self, ports: int, vcs: int, iterations: int):
        self.ports = ports
        self.vcs = vcs
        self.iterations = iterations
        super().__init__(
            {
                "asked_port": In(vcs * ports),
                "picked": In(vcs * vcs).array(iterations * ports),
                "accepted": Out(vcs * vcs).array(iterations),
                "waiting": Out(vcs).array(iterations),
                "granted": Out(vcs),
                "granted_vc": Out(vcs * vcs),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """One choice for each VC and iteration."""
        m = Module()
        ports, vcs = self.ports, self.vcs
        asked = [self.asked_port[v * ports : (v + 1) * ports] for v in range(vcs)]
        ports_before = [Signal(ports, name=f"port_before{v}") for v in range(vcs)]
        vcs_before = [Signal(vcs, name=f"vc_before{v}") for v in range(vcs)]
        waiting: Value = ~Const(0, vcs)
        for j in range(self.iterations):
            offered, got = Signal(vcs * vcs, name=f"offered{j}"), Signal(vcs, name=f"got{j}")
            choices = [GroupRoundRobinArbiter(groups=ports, group_width=vcs) for _ in range(vcs)]
            for v, choice in enumerate(choices):
                m.submodules[f"vc{v}_{j}"] = shared(choice, platform, ports, vcs)
                m.d.comb += [
                    choice.requests.eq(offered[v * vcs : (v + 1) * vcs]),
                    choice.group.eq(asked[v]),
                    choice.last_group.eq(ports_before[v]),
                    choice.last_member.eq(vcs_before[v]),
                ]
            m.d.comb += [
                offered.eq(reduce(or_, (self.picked[j * ports + o] for o in range(ports)))),
                got.eq(Cat(offered[v * vcs : (v + 1) * vcs].any() for v in range(vcs))),  # who is picked takes one
                self.accepted[j].eq(Cat(choice.member for choice in choices)),
                self.waiting[j].eq(waiting & ~got),
            ]
            waiting = self.waiting[j]
            for v, choice in enumerate(choices if j == 0 else []):
                with m.If(got[v]):
                    m.d.sync += [ports_before[v].eq(asked[v]), vcs_before[v].eq(choice.member)]
        m.d.comb += [self.granted.eq(~waiting), self.granted_vc.eq(reduce(or_, self.accepted))]
        return m


class RoundsOutput(wiring.Component):
    """Output VCs of a port, which pick among the input VCs that request them, in every iteration among what is left.

    Bit n·vcs + w stands for input VC n of the router and VC w. Pointers as in `RoundsInput`.

    Parameters
    ----------
    ports, vcs, iterations : int
        As in `RoundsInput`.

    Attributes
    ----------
    requests : Signal
        Who requests which VC.
    waiting : sequence of Signal
        By iteration: the input VCs that are without a grant after it, bit n.
    picked, accepted : sequence of Signal
        By iteration: whom each VC picks; what input VCs take of all that they are offered.
    given : Signal
        The VCs that are granted.
    """

    requests: Signal
    waiting: Sequence[Signal]
    picked: Sequence[Signal]
    accepted: Sequence[Signal]
    given: Signal

    def __init__(self, ports: int, vcs: int, iterations: int):
        self.ports = ports
        self.vcs = vcs
        self.iterations = iterations
        pairs = ports * vcs * vcs
        super().__init__(
            {
                "requests": In(pairs),
                "waiting": In(ports * vcs).array(iterations),
                "picked": Out(pairs).array(iterations),
                "accepted": In(pairs).array(iterations),
                "given": Out(vcs),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """One arbiter for each VC, which picks in every iteration."""
        m = Module()
        vcs, size = self.vcs, self.ports * self.vcs
        arbiters = [RoundsArbiter(width=size, rounds=self.iterations) for _ in range(vcs)]
        for w, arbiter in enumerate(arbiters):
            m.submodules[f"vc{w}"] = shared(arbiter, platform, size, self.iterations)
        free: Value = ~Const(0, vcs)
        for j in range(self.iterations):
            gone = Signal(vcs, name=f"gone{j}")
            used = Signal(size * vcs, name=f"used{j}")
            for w, arbiter in enumerate(arbiters):
                left = self.requests[w::vcs] & self.waiting[j - 1] & free[w].replicate(size)
                m.d.comb += arbiter.requests[j].eq(left if j else self.requests[w::vcs])
            m.d.comb += [
                self.picked[j].eq(Cat(arbiter.grant[j][n] for n in range(size) for arbiter in arbiters)),
                used.eq(self.picked[j] & self.accepted[j]),
                gone.eq(Cat(used[w::vcs].any() for w in range(vcs))),
            ]
            if j == 0:
                m.d.comb += [arbiter.advance.eq(gone[w]) for w, arbiter in enumerate(arbiters)]
            free = free & ~gone
        m.d.comb += self.given.eq(~free)
        return m


def iterated_allocation(
    m: Module, platform: object, requests: Sequence[Value], asked_port: Sequence[Value], *, vcs: int, iterations: int
) -> tuple[list[RoundsInput], list[RoundsOutput]]:
    """Place both sides of all ports, and lead what one picks to what the other takes.

    Parameters
    ----------
    m, platform
        The parent, and what its ``elaborate`` was given.
    requests, asked_port : sequence of Value
        By input port, as in `hopforge.hw.allocation.vc_allocator.VcAllocator`.
    vcs, iterations : int
        As in `RoundsInput`.

    Returns
    -------
    list of RoundsInput
        By input port.
    list of RoundsOutput
        By output port.
    """
    ports = len(requests)
    key = ports, vcs, iterations
    inputs, outputs = [RoundsInput(*key) for _ in range(ports)], [RoundsOutput(*key) for _ in range(ports)]
    pairs, rounds = vcs * vcs, range(iterations)
    accepted = [Signal(ports * pairs, name=f"accepted{j}") for j in rounds]
    waiting = [Signal(ports * vcs, name=f"waiting{j}") for j in rounds]
    m.d.comb += [word.eq(Cat(unit.accepted[j] for unit in inputs)) for j, word in enumerate(accepted)]
    m.d.comb += [word.eq(Cat(unit.waiting[j] for unit in inputs)) for j, word in enumerate(waiting)]
    for i, unit in enumerate(inputs):
        of_input = slice(i * pairs, (i + 1) * pairs)
        offers = {
            f"picked__{j * ports + o}": output.picked[j][of_input] for j in rounds for o, output in enumerate(outputs)
        }
        place(m, f"input{i}", unit, platform, *key, asked_port=asked_port[i], **offers)
    for o, output in enumerate(outputs):
        starts = range(o * vcs, ports * pairs, ports * vcs)
        known = {f"accepted__{j}": accepted[j] for j in rounds} | {f"waiting__{j}": waiting[j] for j in rounds}
        asking = Cat(word[start : start + vcs] for word in requests for start in starts)
        place(m, f"output{o}", output, platform, *key, requests=asking, **known)
    return inputs, outputs
