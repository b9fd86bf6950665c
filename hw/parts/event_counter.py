"""A counter for an event that is known late in the cycle."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value

__all__ = ["event_counter"]

_LOW_BITS = 2


def event_counter(m: Module, name: str, event: Value, clear: Value, *, width_bits: int = 32) -> Value:
    """Count the cycles with `event`: only the low bits wait for it, their carry moves on in the next cycle.

    The value is exact in every cycle. It wraps around; `clear` beats the event. Reset: 0.

    Parameters
    ----------
    m : Module
        Receives the registers.
    name : str
        What is counted, for their names.
    event, clear : Value
        One bit each.
    width_bits : int
        Width of the counter, more than 2.
    """
    high_bits = width_bits - _LOW_BITS
    low = Signal(_LOW_BITS, name=f"count_{name}_low")
    high = Signal(high_bits, name=f"count_{name}_high")
    incremented = Signal(high_bits, name=f"count_{name}_incremented")
    carry = Signal(name=f"count_{name}_carry")
    seen = Signal(high_bits, name=f"count_{name}_seen")
    m.d.comb += [incremented.eq(high + 1), seen.eq(Mux(carry, incremented, high))]
    with m.If(clear):
        m.d.sync += [low.eq(0), high.eq(0), carry.eq(0)]
    with m.Else():
        m.d.sync += [low.eq(low + event), high.eq(seen), carry.eq(event & low.all())]
    return Cat(low, seen)
