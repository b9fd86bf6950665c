"""Wishbone in front of the registers."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hopforge.hw.buses.register_access import access_signature
from hopforge.model.lookup.csr import WORD_BITS
from hopforge.model.router.bus_space import AddressSpace
from hopforge.model.router.partial_write import BYTES

__all__ = ["Wishbone"]


class Wishbone(wiring.Component):
    """Slave of Wishbone B4, standard (classic) single cycles, 32 bits of data in bytes.

    ``ack`` or ``err`` is high for one cycle when the access is done, and only while ``cyc`` and ``stb`` are: a cycle
    that the master ends before has no answer; its access is carried out all the same if it had been taken. ``err``: no
    register, or a write that is refused. Reset: idle.

    - ``cyc`` to ``err``: the bus; word addresses, since a word is the port size.
    - ``access``: what `hopforge.hw.buses.register_access.RegisterAccess` does.

    Parameters
    ----------
    space : AddressSpace
        What the bus reaches.
    """

    access: Any
    cyc: Signal
    stb: Signal
    we: Signal
    adr: Signal
    dat_w: Signal
    sel: Signal
    dat_r: Signal
    ack: Signal
    err: Signal

    def __init__(self, *, space: AddressSpace):
        super().__init__(
            {
                "cyc": In(1), "stb": In(1), "we": In(1), "adr": In(space.word_bits), "dat_w": In(WORD_BITS),
                "sel": In(BYTES), "dat_r": Out(WORD_BITS), "ack": Out(1), "err": Out(1),
                "access": Out(access_signature(space.word_bits)),
            }
        )  # fmt: skip
        self.wanted = Signal()

    def elaborate(self, platform: object) -> Module:
        """Begin an access with a cycle, answer while it lasts."""
        m = Module()
        access = self.access
        asked = Signal()
        failed = Signal()
        answered = Signal()
        m.d.comb += [
            asked.eq(self.cyc & self.stb),
            access.req_valid.eq(asked),
            access.req_write.eq(self.we),
            access.req_addr.eq(self.adr),
            access.req_data.eq(self.dat_w),
            access.req_strobes.eq(self.sel),
            access.resp_ready.eq(1),
            failed.eq(access.resp_missing | access.resp_refused),
            answered.eq(access.resp_valid & asked & self.wanted),
            self.ack.eq(answered & ~failed),
            self.err.eq(answered & failed),
            self.dat_r.eq(access.resp_data),
        ]
        with m.If(~asked):
            m.d.sync += self.wanted.eq(0)
        with m.Elif(access.req_ready):
            m.d.sync += self.wanted.eq(1)
        return m
