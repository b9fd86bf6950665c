"""OR of bits, and selection by bits of which at most one is set."""

from collections.abc import Sequence

from amaranth.hdl import Cat, Const, Value

__all__ = ["and_or", "any_of"]


def any_of(values: Sequence[Value]) -> Value:
    """OR of single bits; 0 without any."""
    return Cat(*values).any() if values else Const(0, 1)


def and_or(choices: Sequence[tuple[Value, Value]], width: int) -> Value:
    """AND-OR selection: the value whose condition holds, 0 if none does."""
    result: Value = Const(0, width)
    for condition, value in choices:
        result = result | (value & condition.replicate(width))
    return result[:width]
