"""Registers of the interrupt."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hopforge.model.lookup.csr import WORD_BITS
from hopforge.model.router.interrupts import INTERRUPT_WORD_BITS, built_sources, interrupt_map

__all__ = ["Interrupts"]


class Interrupts(wiring.Component):
    """Status, enable and clear of ``model.router.interrupts.interrupt_map`` on a native bus, and the interrupt.

    An event in cycle t is in INT_STATUS from t+1 on, and on ``irq`` from t+2 on, if it is enabled. ``irq`` is a level.
    Bus: as in `hopforge.hw.lookup.csr.ControlStatus`. Reset: nothing has happened, nothing is enabled.

    Parameters
    ----------
    sources : tuple of str
        Sources that the design has.
    """

    addr: Signal
    we: Signal
    re: Signal
    wdata: Signal
    rdata: Signal
    events: Signal
    irq: Signal

    def __init__(self, *, sources: tuple[str, ...]):
        self.map = interrupt_map(sources)
        bits = len(built_sources(sources))
        super().__init__(
            {
                "addr": In(INTERRUPT_WORD_BITS),
                "we": In(1),
                "re": In(1),
                "wdata": In(WORD_BITS),
                "rdata": Out(WORD_BITS),
                "events": In(bits),
                "irq": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the registers."""
        m = Module()
        status = Signal(len(self.events))
        enable = Signal(len(self.events))
        word = Signal(WORD_BITS)
        known = sum(field.mask for field in self.map["INT_STATUS"].fields)
        writes = {name: self.we & (self.addr == self.map[name].address) for name in self.map.by_name}
        cleared = self.wdata & writes["INT_CLEAR"].replicate(WORD_BITS)
        m.d.sync += [
            status.eq(((status & ~cleared) | self.events) & known),
            self.irq.eq((status & enable).any()),
        ]
        with m.If(writes["INT_ENABLE"]):
            m.d.sync += enable.eq(self.wdata & known)
        with m.Switch(self.addr):
            with m.Case(self.map["INT_STATUS"].address):
                m.d.comb += word.eq(status)
            with m.Case(self.map["INT_ENABLE"].address):
                m.d.comb += word.eq(enable)
            with m.Default():
                m.d.comb += word.eq(0)
        with m.If(self.re):
            m.d.sync += self.rdata.eq(word)
        return m
