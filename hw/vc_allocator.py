"""Allocation of output virtual channels to input virtual channels."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hopforge.hw.allocator import ALLOCATORS, allocator

__all__ = ["VcAllocator"]


class VcAllocator(wiring.Component):
    """VA of docs/router.md: at most one output VC for each input VC and the other way round.

    Input VC n = i·vcs + v, output VC m = o·vcs + w; bit n·ports·vcs + m of ``requests`` and ``grants`` is their pair.
    An input VC requests VCs of one output port only.
    Combinational; one allocation per cycle; every grant is used. Reset: all pointers 0, nobody granted.

    Parameters
    ----------
    ports, vcs : int
        Ports of the router, virtual channels of a port.
    kind : str
        ``input_first``, ``output_first`` (one iteration of iSLIP) or ``wavefront``.
    arbiter : str
        ``round_robin`` or ``matrix``: arbiters of the separable kinds.

    Raises
    ------
    ValueError
        An unknown name, a number below 1.
    """

    requests: Signal
    grants: Signal

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
        self._allocator = allocator(kind, size=ports * vcs, arbiter=arbiter, group=vcs)
        size = (ports * vcs) ** 2
        super().__init__({"requests": In(size), "grants": Out(size)})

    def elaborate(self, platform: object) -> Module:
        """Build the allocator; all its grants are used."""
        m = Module()
        m.submodules.allocator = inner = self._allocator
        m.d.comb += [inner.requests.eq(self.requests), self.grants.eq(inner.grants), inner.taken.eq(~0)]
        return m
