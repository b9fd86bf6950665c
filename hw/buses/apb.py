"""APB in front of the registers."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hopforge.hw.buses.register_access import access_signature
from hopforge.model.lookup.csr import WORD_BITS
from hopforge.model.router.bus_space import AddressSpace
from hopforge.model.router.partial_write import BYTES

__all__ = ["Apb"]


class Apb(wiring.Component):
    """Completer of APB4 (``pstrb``, ``pslverr``), 32 bits of data.

    A transfer begins in its setup phase; ``pready`` is low until it is done. No output depends on an input of the same
    cycle. ``pslverr``: no register, or a write that is refused. Reset: idle.

    - ``psel`` to ``pslverr``: the bus; byte addresses, of which the lowest two bits do not count.
    - ``access``: what `hopforge.hw.buses.register_access.RegisterAccess` does.

    Parameters
    ----------
    space : AddressSpace
        What the bus reaches.
    """

    access: Any
    psel: Signal
    penable: Signal
    pwrite: Signal
    paddr: Signal
    pwdata: Signal
    pstrb: Signal
    pready: Signal
    prdata: Signal
    pslverr: Signal

    def __init__(self, *, space: AddressSpace):
        super().__init__(
            {
                "psel": In(1), "penable": In(1), "pwrite": In(1), "paddr": In(space.byte_bits),
                "pwdata": In(WORD_BITS), "pstrb": In(BYTES),
                "pready": Out(1), "prdata": Out(WORD_BITS), "pslverr": Out(1),
                "access": Out(access_signature(space.word_bits)),
            }
        )  # fmt: skip

    def elaborate(self, platform: object) -> Module:
        """Connect the phases."""
        m = Module()
        access = self.access
        m.d.comb += [
            access.req_valid.eq(self.psel & ~self.penable),
            access.req_write.eq(self.pwrite),
            access.req_addr.eq(self.paddr[2:]),
            access.req_data.eq(self.pwdata),
            access.req_strobes.eq(self.pstrb),
            access.resp_ready.eq(self.psel & self.penable),
            self.pready.eq(access.resp_valid),
            self.prdata.eq(access.resp_data),
            self.pslverr.eq(access.resp_valid & (access.resp_missing | access.resp_refused)),
        ]
        return m
