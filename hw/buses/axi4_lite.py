"""AXI4-Lite in front of the registers."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hopforge.hw.buses.register_access import access_signature
from hopforge.model.lookup.csr import WORD_BITS
from hopforge.model.router.bus_space import AddressSpace
from hopforge.model.router.partial_write import BYTES

__all__ = ["Axi4Lite"]

_OKAY, _SLVERR, _DECERR = 0, 2, 3


class Axi4Lite(wiring.Component):
    """Slave of AXI4-Lite, 32 bits of data.

    Address and data of a write are taken independently, one of each ahead; a read likewise. A write and a read that
    wait take turns. No output depends on an input of the same cycle. Response: OKAY; DECERR where there is no register;
    SLVERR for a write that is refused. Reset: nothing waits.

    - ``awaddr`` to ``rready``: the five channels; byte addresses, of which the lowest two bits do not count.
    - ``access``: what `hopforge.hw.buses.register_access.RegisterAccess` does.

    Parameters
    ----------
    space : AddressSpace
        What the bus reaches.
    """

    access: Any
    awaddr: Signal
    awvalid: Signal
    awready: Signal
    wdata: Signal
    wstrb: Signal
    wvalid: Signal
    wready: Signal
    bresp: Signal
    bvalid: Signal
    bready: Signal
    araddr: Signal
    arvalid: Signal
    arready: Signal
    rdata: Signal
    rresp: Signal
    rvalid: Signal
    rready: Signal

    def __init__(self, *, space: AddressSpace):
        super().__init__(
            {
                "awaddr": In(space.byte_bits), "awvalid": In(1), "awready": Out(1),
                "wdata": In(WORD_BITS), "wstrb": In(BYTES), "wvalid": In(1), "wready": Out(1),
                "bresp": Out(2), "bvalid": Out(1), "bready": In(1),
                "araddr": In(space.byte_bits), "arvalid": In(1), "arready": Out(1),
                "rdata": Out(WORD_BITS), "rresp": Out(2), "rvalid": Out(1), "rready": In(1),
                "access": Out(access_signature(space.word_bits)),
            }
        )  # fmt: skip
        self.has_address = Signal()
        self.has_data = Signal()
        self.has_read = Signal()
        self.serves_write = Signal()
        self.busy = Signal()

    def elaborate(self, platform: object) -> Module:
        """Build a place for each channel and the choice."""
        m = Module()
        access, word = self.access, slice(2, None)
        address = Signal(len(access.req_addr))
        source = Signal(len(access.req_addr))
        data = Signal(WORD_BITS)
        strobes = Signal(BYTES)
        self._place(m, self.has_address, self.awvalid, self.awready, [(address, self.awaddr[word])])
        self._place(m, self.has_data, self.wvalid, self.wready, [(data, self.wdata), (strobes, self.wstrb)])
        self._place(m, self.has_read, self.arvalid, self.arready, [(source, self.araddr[word])])
        both = Signal()
        write = Signal()
        m.d.comb += [
            both.eq(self.has_address & self.has_data),
            write.eq(both & ~(self.has_read & self.serves_write)),  # the other one than last time
            access.req_valid.eq((both | self.has_read) & ~self.busy),
            access.req_write.eq(write),
            access.req_addr.eq(Mux(write, address, source)),
            access.req_data.eq(data),
            access.req_strobes.eq(strobes),
        ]
        with m.If(access.req_valid & access.req_ready):
            m.d.sync += [self.busy.eq(1), self.serves_write.eq(write)]
            with m.If(write):
                m.d.sync += [self.has_address.eq(0), self.has_data.eq(0)]
            with m.Else():
                m.d.sync += self.has_read.eq(0)
        with m.If(access.resp_valid & access.resp_ready):
            m.d.sync += self.busy.eq(0)
        code = Mux(access.resp_missing, _DECERR, Mux(access.resp_refused, _SLVERR, _OKAY))
        m.d.comb += [
            self.bvalid.eq(access.resp_valid & self.serves_write),
            self.rvalid.eq(access.resp_valid & ~self.serves_write),
            self.bresp.eq(code),
            self.rresp.eq(code),
            self.rdata.eq(access.resp_data),
            access.resp_ready.eq(Mux(self.serves_write, self.bready, self.rready)),
        ]
        return m

    def _place(self, m: Module, full: Signal, valid: Value, ready: Signal, parts: list[tuple[Signal, Value]]) -> None:
        """Take what a channel brings while there is nothing yet."""
        m.d.comb += ready.eq(~full)
        with m.If(valid & ready):
            m.d.sync += [full.eq(1), *(kept.eq(brought) for kept, brought in parts)]
