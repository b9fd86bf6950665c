"""The next number, without a chain of carries."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

__all__ = ["count_in_halves", "low_half", "plus_one", "prefixes_all"]


def prefixes_all(bits: Value) -> list[Value]:
    """For each bit, whether all bits below it are 1: a tree that shares what it finds out.

    Parameters
    ----------
    bits : Value
        Any width.
    """
    every = [bits[number] for number in range(len(bits))]  # of bit `number` and those below, as far as `span` reaches
    span = 1
    while span < len(bits):
        every = [here & every[i - span] if i >= span else here for i, here in enumerate(every)]
        span *= 2
    return [Const(1), *every[:-1]]


def plus_one(number: Value) -> Value:
    """Return ``number`` + 1, of the same width; behind the last one comes 0.

    Parameters
    ----------
    number : Value
        Any width.
    """
    return Cat(number[i] ^ below for i, below in enumerate(prefixes_all(number)))


def low_half(number: Value) -> Value:
    """Return the lower half of the bits of ``number``.

    Parameters
    ----------
    number : Value
        Any width.
    """
    return number[: (len(number) + 1) // 2]


def count_in_halves(m: Module, number: Signal, low_full: Signal, step: Value, clear: Value) -> None:
    """Let a number go on by one with `step`, or to 0 with `clear`, which goes first; no carry runs through both halves.

    Parameters
    ----------
    m : Module
        Receives the logic.
    number : Signal
        Register, 0 after reset.
    low_full : Signal
        Register that says that all bits of the `low_half` are 1.
    step, clear : Value
        One bit each.
    """
    low = low_half(number)
    half = len(low)
    high = number[half:]
    m.d.sync += [
        low.eq(Mux(step, plus_one(low), low) & ~clear.replicate(half)),
        low_full.eq(Mux(step, low == (1 << half) - 2, low_full) & ~clear),
    ]
    if len(high):
        m.d.sync += high.eq(Mux(step & low_full, plus_one(high), high) & ~clear.replicate(len(high)))
