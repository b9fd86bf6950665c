"""A wide counter for short periods: a few low bits, and slices that seldom step."""

from itertools import pairwise

from amaranth.hdl import Cat, Module, Signal, Value

__all__ = ["sliced_counter"]

_LOW_BITS = 4
_UPPER_SHARES = (1, 1, 1)
"""Relative widths of the slices above the low bits."""


def sliced_counter(m: Module, name: str, event: Value, clear: Value, *, width_bits: int = 32) -> Value:
    """Count the cycles with `event`; the value is exact in every cycle, wraps around, and `clear` beats the event.

    There are three slices above the low bits. That the next event carries into a slice is known from a register, so
    that no carry runs through the counter. Reset: 0.

    Parameters
    ----------
    m : Module
        Receives the registers.
    name : str
        What is counted, for their names.
    event, clear : Value
        One bit each, from registers.
    width_bits : int
        Width of the counter, at least 7.
    """
    uppers = len(_UPPER_SHARES)
    upper_bits = width_bits - _LOW_BITS
    ends = [upper_bits * sum(_UPPER_SHARES[:number]) // sum(_UPPER_SHARES) for number in range(uppers + 1)]
    low = Signal(_LOW_BITS, name=f"count_{name}_low")
    slices = [Signal(end - start, name=f"count_{name}_at{start + _LOW_BITS}") for start, end in pairwise(ends)]
    steps = [Signal(name=f"count_{name}_steps{number}") for number in range(uppers)]  # with the next event
    last_but_one = Signal(name=f"count_{name}_last_but_one")
    m.d.comb += last_but_one.eq(low == (1 << _LOW_BITS) - 2)
    with m.If(clear):
        m.d.sync += [value.eq(0) for value in (low, *slices, *steps)]
    with m.Elif(event):
        m.d.sync += low.eq(low + 1)
        for number, (value, step) in enumerate(zip(slices, steps, strict=True)):
            full = Cat(*slices[:number]).all() if number else 1
            m.d.sync += step.eq(last_but_one & full)
            with m.If(step):
                m.d.sync += value.eq(value + 1)
    return Cat(low, *slices)
