"""Gate of a clock."""

from amaranth.hdl import ClockSignal, Instance, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["ClockGate"]


class ClockGate(wiring.Component):
    """Pass the high phase of the clock in the cycle after one with ``enable``.

    ``enable`` is held while the clock is high, so that ``gated`` has no glitch; it has a whole cycle to settle.
    Synthesis maps the module to a cell of the library; Amaranth's simulator cannot run it.
    """

    enable: Signal
    gated: Signal

    def __init__(self) -> None:
        super().__init__({"enable": In(1), "gated": Out(1)})

    def elaborate(self, platform: object) -> Module:
        """Hold the enable in a latch that is open while the clock is low."""
        m = Module()
        held = Signal()
        m.submodules.hold = Instance(
            "$dlatch", p_WIDTH=1, p_EN_POLARITY=0, i_EN=ClockSignal(), i_D=self.enable, o_Q=held
        )
        m.d.comb += self.gated.eq(held & ClockSignal())
        return m
