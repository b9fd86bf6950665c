"""Serial line: 8 data bits, no parity, one stop bit."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["LEAST_DIVISOR", "UartReceiver", "UartTransmitter"]

LEAST_DIVISOR = 4
"""Fewest cycles of a bit time."""

_BITS = 10  # start, data, stop


def _check(divisor: int) -> None:
    if divisor < LEAST_DIVISOR:
        raise ValueError(f"divisor must be at least {LEAST_DIVISOR} cycles, not {divisor}")


class UartReceiver(wiring.Component):
    """Bytes from a line.

    ``line`` may change at any time. ``valid`` is a pulse with ``data``; ``error`` is a pulse instead of it if the stop
    bit was 0: then the next byte begins when the line has been 1. ``quiet``: nothing is under way.
    Each bit is sampled once, in its middle. Latency: half a bit time and three cycles behind the stop bit's edge.
    Reset: nothing under way.

    Parameters
    ----------
    divisor : int
        Cycles of a bit time, 4 at least.
    """

    line: Signal
    data: Signal
    valid: Signal
    error: Signal
    quiet: Signal

    def __init__(self, *, divisor: int):
        _check(divisor)
        self.divisor = divisor
        super().__init__({"line": In(1), "data": Out(8), "valid": Out(1), "error": Out(1), "quiet": Out(1)})

    def elaborate(self, platform: object) -> Module:
        """Build the synchroniser, the timer and the shift register."""
        m = Module()
        first = Signal(init=1)
        line = Signal(init=1)
        timer = Signal(range(self.divisor))
        left = Signal(range(_BITS + 1))  # samples to be taken
        broken = Signal()  # wait for a 1
        bits = Signal(_BITS - 1)
        m.d.sync += [first.eq(self.line), line.eq(first), self.valid.eq(0), self.error.eq(0)]
        m.d.comb += self.quiet.eq((left == 0) & ~broken & line)
        with m.If(broken):
            m.d.sync += broken.eq(~line)
        with m.Elif(left == 0):
            m.d.sync += timer.eq(self.divisor // 2 - 1)
            with m.If(~line):
                m.d.sync += left.eq(_BITS)
        with m.Elif(timer != 0):
            m.d.sync += timer.eq(timer - 1)
        with m.Else():
            m.d.sync += [timer.eq(self.divisor - 1), left.eq(left - 1), bits.eq(Cat(bits[1:], line))]
            with m.If((left == _BITS) & line):  # no start bit, only a short pulse
                m.d.sync += left.eq(0)
            with m.If(left == 1):
                m.d.sync += [self.valid.eq(line), self.error.eq(~line), broken.eq(~line), self.data.eq(bits[1:])]
        return m


class UartTransmitter(wiring.Component):
    """Bytes to a line.

    A byte is taken in a cycle with ``valid`` and ``ready``, and is on the line in the ten bit times that follow.
    Reset: the line rests at 1.

    Parameters
    ----------
    divisor : int
        Cycles of a bit time, 4 at least.
    """

    line: Signal
    data: Signal
    valid: Signal
    ready: Signal

    def __init__(self, *, divisor: int):
        _check(divisor)
        self.divisor = divisor
        super().__init__({"line": Out(1, init=1), "data": In(8), "valid": In(1), "ready": Out(1)})

    def elaborate(self, platform: object) -> Module:
        """Build the timer and the shift register."""
        m = Module()
        timer = Signal(range(self.divisor))
        left = Signal(range(_BITS + 1))
        bits = Signal(_BITS - 1, init=(1 << _BITS - 1) - 1)
        m.d.comb += self.ready.eq(left == 0)
        with m.If(self.ready & self.valid):
            m.d.sync += [
                left.eq(_BITS), timer.eq(self.divisor - 1), self.line.eq(0), bits.eq(Cat(self.data, 1)),
            ]  # fmt: skip
        with m.Elif(self.ready | (timer != 0)):
            m.d.sync += timer.eq(timer - (timer != 0))
        with m.Else():
            m.d.sync += [timer.eq(self.divisor - 1), left.eq(left - 1)]
            with m.If(left != 1):
                m.d.sync += [self.line.eq(bits[0]), bits.eq(Cat(bits[1:], 1))]
        return m
