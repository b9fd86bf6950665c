"""A wide counter for short periods: a few low bits, and slices that seldom step."""

from itertools import pairwise

from amaranth.hdl import Cat, Module, Mux, Signal, Value

from hopforge.hw.parts.plus_one import prefixes_all

__all__ = ["sliced_counter", "slices"]

_LOW_BITS = 4
_UPPER_SLICES = 4
"""Slices above the low bits."""


def slices(width_bits: int = 32) -> list[tuple[int, int]]:
    """First bit of each slice of a counter, and of what follows it; the register is ``count_NAME_atFIRST``."""
    upper_bits = width_bits - _LOW_BITS
    ends = [upper_bits * number // _UPPER_SLICES for number in range(_UPPER_SLICES + 1)]
    return [(start + _LOW_BITS, end + _LOW_BITS) for start, end in pairwise(ends)]


def sliced_counter(m: Module, name: str, event: Value, clear: Value, *, width_bits: int = 32) -> Value:
    """Count the cycles with `event`, each a cycle later; the value wraps around, and `clear` beats the event of before.

    There are four slices above the low bits. That a slice steps is found out beside the event, so that
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
        Width of the counter, at least 8.
    """
    low = Signal(_LOW_BITS, name=f"count_{name}_low")
    upper = [Signal(end - start, name=f"count_{name}_at{start}") for start, end in slices(width_bits)]
    # A slice changes so seldom that what is known of it a cycle late is right when the next one may step.
    full = [Signal(name=f"count_{name}_full{number}") for number in range(_UPPER_SLICES - 1)]
    happened = Signal(name=f"count_{name}_happened")
    steps = Signal(name=f"count_{name}_steps")
    most = (1 << _LOW_BITS) - 1
    carries = Mux(happened, low == most - 1, low == most) & ~clear  # an event of this cycle finds the low bits full
    m.d.sync += [
        happened.eq(event),
        steps.eq(event & carries),
        *(flag.eq(part.all()) for flag, part in zip(full, upper, strict=False)),
        low.eq(_stepped(low, happened, clear)),
        *(part.eq(_stepped(part, steps & Cat(*full[:i]).all(), clear)) for i, part in enumerate(upper)),
    ]
    return Cat(low, *upper)


def _stepped(value: Value, step: Value, clear: Value) -> Value:
    """Next value of a part of the counter."""
    toggles = Cat(step & below for below in prefixes_all(value))
    return (value ^ toggles) & ~clear.replicate(len(value))
