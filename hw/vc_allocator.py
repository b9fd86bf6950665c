"""Allocation of output virtual channels to input virtual channels."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hopforge.hw.allocator import ALLOCATORS, SeparableAllocator, allocator

__all__ = ["VcAllocator"]


class VcAllocator(wiring.Component):
    """VA of docs/router.md: at most one output VC for each input VC and the other way round.

    Input VC n = i·vcs + v, output VC m = o·vcs + w; bit n·ports·vcs + m of ``requests`` and ``grants`` is their pair.
    An input VC requests VCs of one output port only: ``asked_port`` (one-hot, bit n·ports + o), which may stand there
    without a request. Combinational; one allocation per cycle; every grant is used.
    Reset: all pointers 0, nobody granted.

    Parameters
    ----------
    ports, vcs : int
        Ports of the router, virtual channels of a port.
    kind : str
        ``input_first``, ``output_first`` (one iteration of iSLIP) or ``wavefront``.
    arbiter : str
        ``round_robin`` or ``matrix``: arbiters of the separable kinds.

    Attributes
    ----------
    granted, granted_vc : Signal
        Whether each input VC has a grant in this cycle, and of which VC (one-hot; without a grant any value).
    given : Signal
        Whether each output VC is granted in this cycle.
    out_port, out_vc : Signal
        Registers: the output VC that was granted last to each input VC, one-hot (0: never).

    Raises
    ------
    ValueError
        An unknown name, a number below 1.
    """

    requests: Signal
    asked_port: Signal
    grants: Signal
    granted: Signal
    granted_vc: Signal
    given: Signal
    out_port: Signal
    out_vc: Signal

    def __init__(self, *, ports: int, vcs: int, kind: str = "output_first", arbiter: str = "round_robin"):
        if kind not in ALLOCATORS:
            raise ValueError(f"va must be one of {', '.join(ALLOCATORS)}, not {kind!r}")
        for name, value in (("ports", ports), ("vcs", vcs)):
            if value < 1:
                raise ValueError(f"{name} must be at least 1, not {value}")
        self.ports = ports
        self.vcs = vcs
        self.kind = kind
        self.arbiter = arbiter
        size = ports * vcs
        self._allocator = allocator(kind, size=size, arbiter=arbiter, group=vcs, refusable=False)
        super().__init__(
            {
                "requests": In(size * size),
                "asked_port": In(size * ports),
                "grants": Out(size * size),
                "granted": Out(size),
                "granted_vc": Out(size * vcs),
                "given": Out(size),
                "out_port": Out(size * ports),
                "out_vc": Out(size * vcs),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the allocator, and remember what it grants."""
        m = Module()
        ports, vcs = self.ports, self.vcs
        size = ports * vcs
        m.submodules.allocator = inner = self._allocator
        m.d.comb += [
            inner.requests.eq(self.requests),
            self.grants.eq(inner.grants),
            self.granted.eq(inner.row_granted),
            self.given.eq(inner.column_granted),
        ]
        if isinstance(inner, SeparableAllocator):
            m.d.comb += [
                inner.group_of.eq(self.asked_port),
                inner.last_group.eq(self.out_port),
                inner.last_member.eq(self.out_vc),
                self.granted_vc.eq(inner.member),
            ]
        else:
            for n in range(size):
                row = inner.grants[n * size : (n + 1) * size]
                m.d.comb += self.granted_vc[n * vcs : (n + 1) * vcs].eq(Cat(row[w::vcs].any() for w in range(vcs)))
        for n in range(size):
            with m.If(self.granted[n]):
                m.d.sync += [
                    self.out_port[n * ports : (n + 1) * ports].eq(self.asked_port[n * ports : (n + 1) * ports]),
                    self.out_vc[n * vcs : (n + 1) * vcs].eq(self.granted_vc[n * vcs : (n + 1) * vcs]),
                ]
        return m
