"""Between a host and its router: chooses one of several paths for each packet."""

from collections.abc import Sequence

from amaranth.hdl import Array, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.data import View
from amaranth.lib.wiring import In, Out

from hopforge.hw.ports.input_ports import flit_layout
from hopforge.model.router.params import RouterParams

__all__ = ["PathChoice"]


class PathChoice(wiring.Component):
    """Writes the number of the path into the low bits of the destination of every head (several-paths.md).

    The host writes its destination's first address, a multiple of 2^`lmc`. Combinational from ``flit`` to
    ``path_flit``; with `turns` a head that stands on ``flit`` with ``valid`` counts for the next one to the same host.
    Reset: no packet was sent.

    Parameters
    ----------
    params : RouterParams
        The router at which the host is.
    lmc : int
        Bits of a path's number.
    first : sequence of int
        Path of the first packet, by destination host.
    turns : bool
        Every packet to a host takes the next path; or all take the first.

    Raises
    ------
    ValueError
        Paths that are not there, or addresses without room for them.
    """

    valid: Signal
    flit: View
    path_flit: View

    def __init__(self, *, params: RouterParams, lmc: int, first: Sequence[int], turns: bool):
        if not 1 <= lmc <= params.address_bits:
            raise ValueError(f"lmc must be from 1 to address_bits={params.address_bits}, not {lmc}")
        wrong = next((path for path in first if not 0 <= path < 1 << lmc), None)
        if wrong is not None:
            raise ValueError(f"first must have paths below {1 << lmc}, not {wrong}")
        if len(first) << lmc > 1 << params.address_bits:
            raise ValueError(
                f"address_bits must have room for {len(first) << lmc} addresses, not be {params.address_bits}"
            )
        self.params, self.lmc, self.first, self.turns = params, lmc, tuple(first), turns
        layout = flit_layout(params)
        super().__init__({"valid": In(1), "flit": In(layout), "path_flit": Out(layout)})

    def elaborate(self, platform: object) -> Module:
        """Build the table of first paths, and a counter for each destination."""
        m = Module()
        host = self.flit.data[self.lmc : self.params.address_bits]
        path, head = Signal(self.lmc), self.flit.kind[0]
        with m.Switch(host):
            for start in range(1 << self.lmc):
                numbers = [number for number, path in enumerate(self.first) if path == start]
                if numbers and len(host):
                    with m.Case(*numbers):
                        m.d.comb += path.eq(start)
        if not len(host):
            m.d.comb += path.eq(self.first[0])
        chosen = Signal(self.lmc)
        m.d.comb += chosen.eq(path)
        if self.turns:
            sent = Array(Signal(self.lmc, name=f"sent{number}") for number in range(len(self.first)))
            inside = host < len(self.first)
            m.d.comb += chosen.eq(path + sent[host])
            with m.If(self.valid & head & inside):
                m.d.sync += sent[host].eq(sent[host] + 1)
        m.d.comb += self.path_flit.as_value().eq(self.flit.as_value())
        with m.If(head):
            m.d.comb += self.path_flit.data[: self.lmc].eq(chosen)
        return m
