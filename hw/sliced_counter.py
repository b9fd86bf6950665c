"""A wide counter for short periods: slices, each with a bit that says that it is full."""

from amaranth.hdl import Cat, Module, Signal, Value

__all__ = ["sliced_counter"]

_SLICE_BITS = 4


def sliced_counter(m: Module, name: str, event: Value, clear: Value, *, width_bits: int = 32) -> Value:
    """Count the cycles with `event`; the value is exact in every cycle, wraps around, and `clear` beats the event.

    A slice steps when all below it are full. That they are is a register of its own for each, so that no carry runs
    through the counter. Reset: 0.

    Parameters
    ----------
    m : Module
        Receives the registers.
    name : str
        What is counted, for their names.
    event, clear : Value
        One bit each, from registers.
    width_bits : int
        Width of the counter, a multiple of 4.
    """
    slices: list[Signal] = []
    below: Value = event
    full: list[Signal] = []
    for number in range(width_bits // _SLICE_BITS):
        here = Signal(_SLICE_BITS, name=f"count_{name}_{number}")
        steps = Signal(name=f"count_{name}_{number}_steps")
        is_full = Signal(name=f"count_{name}_{number}_full")
        m.d.comb += steps.eq(below if not full else event & Cat(full).all())
        with m.If(clear):
            m.d.sync += [here.eq(0), is_full.eq(0)]
        with m.Elif(steps):
            m.d.sync += [here.eq(here + 1), is_full.eq(here == (1 << _SLICE_BITS) - 2)]
        slices.append(here)
        full.append(is_full)
    return Cat(*slices)
