"""Allocation of output virtual channels to input virtual channels."""

from collections.abc import Sequence
from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hopforge.hw.allocation.allocator import ALLOCATORS, WavefrontAllocator, check_iterations
from hopforge.hw.allocation.vc_rounds import iterated_allocation
from hopforge.hw.parts.arbiter import ARBITERS, GROUP_ARBITERS, grouped_arbiter
from hopforge.hw.parts.shared import place, shared
from hopforge.model.router.params import check_input_vcs

__all__ = ["VcAllocator"]


class VcAllocator(wiring.Component):
    """VA of docs/definitions/router.md: at most one output VC for each input VC and the other way round.

    Input VC n = i·vcs + v, output VC m = o·vcs + w; bit v·ports·vcs + m of ``requests[i]`` is their pair.
    An input VC requests VCs of one output port only: ``asked_port[i]`` (one-hot, bit v·ports + o), which may stand
    there without a request. With ``input_first`` requests may stand there without ``asked_port``: they count for
    nothing, and ``wanted_port[i]`` is the port of both kinds of requests. So the first arbiters need not wait for who
    asks at all. Combinational; one allocation per cycle; every grant is used.
    Reset: all pointers 0, nobody granted.

    The separable kinds are built port by port (`VcInput`, `VcOutput`): between an input and an output port lie vcs²
    pairs, and the matrix of all (ports·vcs)² exists nowhere as one word.

    Parameters
    ----------
    ports, vcs : int
        Ports of the router, virtual channels of a port.
    kind : str
        ``input_first``, ``output_first`` (iSLIP) or ``wavefront``.
    arbiter : str
        ``round_robin`` or ``matrix``: arbiters of the separable kinds.
    iterations : int
        Of iSLIP with round-robin arbiters; several are built by `vc_rounds`.

    Attributes
    ----------
    granted, granted_vc : sequence of Signal
        By input port: whether each VC has a grant in this cycle, and of which VC of the port that it asks (one-hot, bit
        v·vcs + w; without a grant any value).
    given : sequence of Signal
        By output port: whether each VC is granted in this cycle.
    out_port, out_vc : sequence of Signal
        By input port. Registers: the output VC that was granted last to each VC, one-hot (0: never).

    Raises
    ------
    ValueError
        An unknown name, a number below 1, more input VCs than `INPUT_VCS_MAX`.
    """

    requests: Sequence[Signal]
    asked_port: Sequence[Signal]
    wanted_port: Sequence[Signal]
    granted: Sequence[Signal]
    granted_vc: Sequence[Signal]
    given: Sequence[Signal]
    out_port: Sequence[Signal]
    out_vc: Sequence[Signal]

    def __init__(
        self, *, ports: int, vcs: int, kind: str = "output_first", arbiter: str = "round_robin", iterations: int = 1
    ):
        if kind not in ALLOCATORS:
            raise ValueError(f"va must be one of {', '.join(ALLOCATORS)}, not {kind!r}")
        if arbiter not in ARBITERS:
            raise ValueError(f"arbiter must be one of {', '.join(ARBITERS)}, not {arbiter!r}")
        for name, value in (("ports", ports), ("vcs", vcs)):
            if value < 1:
                raise ValueError(f"{name} must be at least 1, not {value}")
        check_iterations("va", kind, arbiter, iterations)
        check_input_vcs(ports, vcs, kind, arbiter, iterations=iterations)
        self.ports = ports
        self.vcs = vcs
        self.kind = kind
        self.arbiter = arbiter
        self.iterations = iterations
        wanted = {"wanted_port": In(vcs * ports).array(ports)} if kind == "input_first" else {}
        super().__init__(
            {
                "requests": In(vcs * ports * vcs).array(ports),
                "asked_port": In(vcs * ports).array(ports),
                **wanted,
                "granted": Out(vcs).array(ports),
                "granted_vc": Out(vcs * vcs).array(ports),
                "given": Out(vcs).array(ports),
                "out_port": Out(vcs * ports).array(ports),
                "out_vc": Out(vcs * vcs).array(ports),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the allocator, and remember what it grants."""
        m = Module()
        if self.kind == "wavefront":
            self._wavefront(m)
        elif self.iterations > 1:
            self._iterated(m, platform)
        else:
            self._separable(m, platform)
        return m

    def _separable(self, m: Module, platform: object) -> None:
        ports, vcs = self.ports, self.vcs
        kind = (ports, vcs, self.kind == "output_first", self.arbiter)
        inputs, outputs = [VcInput(*kind) for _ in range(ports)], [VcOutput(*kind) for _ in range(ports)]
        pairs = vcs * vcs
        accepted = Signal(ports * pairs)  # by input VC: its choice among what it is offered
        m.d.comb += accepted.eq(Cat(unit.accepted for unit in inputs))
        for i, unit in enumerate(inputs):
            of_input = slice(i * pairs, (i + 1) * pairs)
            offers = {f"picked__{o}": output.picked[of_input] for o, output in enumerate(outputs)}
            if not unit.outputs_first:
                offers["requests"] = self.requests[i]
            port = self.asked_port[i] if unit.outputs_first else self.wanted_port[i]
            place(m, f"input{i}", unit, platform, *kind, asked_port=port, **offers)
            m.d.comb += [
                self.granted[i].eq(unit.granted),
                self.granted_vc[i].eq(unit.accepted),
                self.out_port[i].eq(unit.out_port),
                self.out_vc[i].eq(unit.out_vc),
            ]
        for o, output in enumerate(outputs):
            if output.outputs_first:
                starts = range(o * vcs, ports * pairs, ports * vcs)
                asking = {"requests": Cat(word[start : start + vcs] for word in self.requests for start in starts)}
            else:
                asking = {"asked": Cat(word[o::ports] for word in self.asked_port)}
            place(m, f"output{o}", output, platform, *kind, accepted=accepted, **asking)
            m.d.comb += self.given[o].eq(output.given)

    def _iterated(self, m: Module, platform: object) -> None:
        inputs, outputs = iterated_allocation(
            m, platform, self.requests, self.asked_port, vcs=self.vcs, iterations=self.iterations
        )
        m.d.comb += [given.eq(output.given) for given, output in zip(self.given, outputs, strict=True)]
        for i, unit in enumerate(inputs):
            m.d.comb += [self.granted[i].eq(unit.granted), self.granted_vc[i].eq(unit.granted_vc)]
            _remember(m, self.granted[i], (self.asked_port[i], self.out_port[i]), (self.granted_vc[i], self.out_vc[i]))

    def _wavefront(self, m: Module) -> None:
        ports, vcs = self.ports, self.vcs
        size = ports * vcs
        m.submodules.allocator = inner = WavefrontAllocator(size=size, refusable=False)
        m.d.comb += inner.requests.eq(Cat(*self.requests))
        for i in range(ports):
            numbers = range(i * vcs, (i + 1) * vcs)
            rows = [inner.grants[n * size : (n + 1) * size] for n in numbers]
            m.d.comb += [
                self.granted[i].eq(inner.row_granted[i * vcs : (i + 1) * vcs]),
                self.granted_vc[i].eq(Cat(row[w::vcs].any() for row in rows for w in range(vcs))),
                self.given[i].eq(inner.column_granted[i * vcs : (i + 1) * vcs]),
            ]
            _remember(m, self.granted[i], (self.asked_port[i], self.out_port[i]), (self.granted_vc[i], self.out_vc[i]))


class VcInput(wiring.Component):
    """Arbiters of the VCs of an input port, and what was granted to them last. Combinational from input to output.

    ``requests`` and ``asked_port`` (input_first: ``wanted_port``) as in `VcAllocator`, the same for ``granted``,
    ``out_port``, ``out_vc``.
    ``picked[o]`` says which VCs of output port o have picked the VCs of this port, ``accepted`` which of the candidates
    each VC takes, both with bit v·vcs + w.

    Parameters
    ----------
    ports, vcs : int
        As in `VcAllocator`.
    outputs_first : bool
        The VCs choose among those that have picked them; else among what they request (``requests`` exists).
    arbiter : str
        As in `VcAllocator`.
    """

    requests: Signal
    asked_port: Signal
    picked: Sequence[Signal]
    accepted: Signal
    granted: Signal
    out_port: Signal
    out_vc: Signal

    def __init__(self, ports: int, vcs: int, outputs_first: bool, arbiter: str):
        self.ports = ports
        self.vcs = vcs
        self.outputs_first = outputs_first
        self.arbiter = arbiter
        members = {
            "asked_port": In(vcs * ports),
            "picked": In(vcs * vcs).array(ports),
            "accepted": Out(vcs * vcs),
            "granted": Out(vcs),
            "out_port": Out(vcs * ports),
            "out_vc": Out(vcs * vcs),
        }
        if not outputs_first:
            members["requests"] = In(vcs * ports * vcs)
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        """One arbiter per VC, among the VCs of the port that it asks."""
        m = Module()
        ports, vcs = self.ports, self.vcs
        size = ports * vcs
        asked = [self.asked_port[v * ports : (v + 1) * ports] for v in range(vcs)]
        offered = Signal(vcs * vcs)
        m.d.comb += offered.eq(reduce(or_, self.picked))
        arbiters = [GROUP_ARBITERS[self.arbiter](groups=ports, group_width=vcs) for _ in range(vcs)]
        for v, arbiter in enumerate(arbiters):
            m.submodules[f"vc{v}"] = shared(arbiter, platform, ports, vcs)
            if self.outputs_first:
                candidates: Value = offered[v * vcs : (v + 1) * vcs]
            else:
                own = self.requests[v * size : (v + 1) * size]
                candidates = Cat(own[w::vcs].any() for w in range(vcs))
            m.d.comb += [
                arbiter.requests.eq(candidates),
                arbiter.group.eq(asked[v]),
                arbiter.last_group.eq(self.out_port[v * ports : (v + 1) * ports]),
                arbiter.last_member.eq(self.out_vc[v * vcs : (v + 1) * vcs]),
                arbiter.advance.eq(self.granted[v]),
            ]
        m.d.comb += [
            self.accepted.eq(Cat(arbiter.member for arbiter in arbiters)),
            self.granted.eq(Cat(offered[v * vcs : (v + 1) * vcs].any() for v in range(vcs))),
        ]
        _remember(m, self.granted, (self.asked_port, self.out_port), (self.accepted, self.out_vc))
        return m


class VcOutput(wiring.Component):
    """Arbiters of the VCs of an output port. Combinational.

    Bit n·vcs + w of ``picked`` says that VC w has picked input VC n; ``given`` are the VCs that are granted.
    ``accepted`` (the same bits) is what each input VC takes of what it is offered.

    Parameters
    ----------
    ports, vcs : int
        As in `VcAllocator`.
    outputs_first : bool
        The VCs pick among ``requests`` (bit n·vcs + w), and one is given if its pick accepts it. Else they pick among
        what the input VCs accept that ask this port (bit n of ``asked``), and one is given if it picks.
    arbiter : str
        As in `VcAllocator`.
    """

    requests: Signal
    asked: Signal
    picked: Signal
    accepted: Signal
    given: Signal

    def __init__(self, ports: int, vcs: int, outputs_first: bool, arbiter: str):
        self.ports = ports
        self.vcs = vcs
        self.outputs_first = outputs_first
        self.arbiter = arbiter
        pairs = ports * vcs * vcs
        members = {"picked": Out(pairs), "accepted": In(pairs), "given": Out(vcs)}
        members |= {"requests": In(pairs)} if outputs_first else {"asked": In(ports * vcs)}
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        """One arbiter per VC, among all input VCs."""
        m = Module()
        ports, vcs = self.ports, self.vcs
        requests = Signal(ports * vcs * vcs)
        used = Signal(ports * vcs * vcs)
        if self.outputs_first:
            m.d.comb += [requests.eq(self.requests), used.eq(self.picked & self.accepted)]
        else:
            asked = Cat(self.asked[n].replicate(vcs) for n in range(ports * vcs))
            m.d.comb += [requests.eq(self.accepted & asked), used.eq(requests)]
        arbiters = [grouped_arbiter(self.arbiter, groups=ports, group_width=vcs) for _ in range(vcs)]
        for w, arbiter in enumerate(arbiters):
            m.submodules[f"vc{w}"] = shared(arbiter, platform, ports, vcs)
            m.d.comb += [arbiter.requests.eq(requests[w::vcs]), arbiter.advance.eq(self.given[w])]
        m.d.comb += [
            self.picked.eq(Cat(arbiter.grant[n] for n in range(ports * vcs) for arbiter in arbiters)),
            self.given.eq(Cat(used[w::vcs].any() for w in range(vcs))),
        ]
        return m


def _remember(m: Module, granted: Value, *memories: tuple[Value, Signal]) -> None:
    """Keep parts of words, as many as there are bits in `granted`, when their bit is set."""
    for number in range(len(granted)):
        with m.If(granted[number]):
            for word, register in memories:
                width = len(word) // len(granted)
                span = slice(number * width, (number + 1) * width)
                m.d.sync += register[span].eq(word[span])
