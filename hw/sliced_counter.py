"""A wide counter for short periods: a few low bits, and slices that seldom step."""

from itertools import pairwise

from amaranth.hdl import Cat, Module, Mux, Signal, Value

__all__ = ["sliced_counter", "slices"]

_LOW_BITS = 4
_UPPER_SHARES = (1, 1, 1)
"""Relative widths of the slices above the low bits."""


def slices(width_bits: int = 32) -> list[tuple[int, int]]:
    """First bit of each slice of a counter, and of what follows it; the register is ``count_NAME_atFIRST``."""
    uppers = len(_UPPER_SHARES)
    upper_bits = width_bits - _LOW_BITS
    ends = [upper_bits * sum(_UPPER_SHARES[:number]) // sum(_UPPER_SHARES) for number in range(uppers + 1)]
    return [(start + _LOW_BITS, end + _LOW_BITS) for start, end in pairwise(ends)]


def sliced_counter(m: Module, name: str, event: Value, clear: Value, *, width_bits: int = 32) -> Value:
    """Count the cycles with `event`, each a cycle later; the value wraps around, and `clear` beats the event of before.

    There are three slices above the low bits. That a slice steps is found out beside the event, so that
    no carry runs through the counter. Reset: 0.

    Parameters
    ----------
    m : Module
        Receives the registers.
    name : str
        What is counted, for their names.
    event : Value
        One bit; may be late.
    clear : Value
        One bit, from a register.
    width_bits : int
        Width of the counter, at least 7.
    """
    low = Signal(_LOW_BITS, name=f"count_{name}_low")
    upper = [Signal(end - start, name=f"count_{name}_at{start}") for start, end in slices(width_bits)]
    steps = [Signal(name=f"count_{name}_steps{number}") for number in range(len(upper))]
    happened = Signal(name=f"count_{name}_happened")
    carries = Signal(name=f"count_{name}_carries")  # an event of this cycle finds the low bits full
    most = (1 << _LOW_BITS) - 1
    m.d.comb += carries.eq(Mux(happened, low == most - 1, low == most) & ~clear)
    m.d.sync += [
        happened.eq(event),
        *(step.eq(event & carries & Cat(*upper[:i]).all()) for i, step in enumerate(steps)),
    ]
    with m.If(clear):
        m.d.sync += [value.eq(0) for value in (low, *upper)]
    with m.Else():
        with m.If(happened):
            m.d.sync += low.eq(low + 1)
        for value, step in zip(upper, steps, strict=True):
            with m.If(step):
                m.d.sync += value.eq(value + 1)
    return Cat(low, *upper)
