"""Combine some of several words: sum, smallest, largest, bit by bit."""

from collections.abc import Sequence

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hopforge.model.router.collective_params import OPERATIONS

__all__ = ["WordCombiner"]


class WordCombiner(wiring.Component):
    """Combine the words that are used, by an operation of `OPERATIONS`; numbers have no sign, a sum wraps around.

    Combinational: a balanced tree. Operation ``barrier`` gives 0, ``multicast`` is for one used word, which it gives.
    Without used words the result means nothing.

    Parameters
    ----------
    words, width_bits : int
        How many, and the bits of one.

    Raises
    ------
    ValueError
        A parameter below 1.
    """

    used: Signal
    word: Sequence[Signal]
    operation: Signal
    result: Signal

    def __init__(self, *, words: int, width_bits: int):
        if words < 1 or width_bits < 1:
            raise ValueError(f"words and width_bits must be at least 1, not {words} and {width_bits}")
        self.words, self.width_bits = words, width_bits
        super().__init__(
            {
                "used": In(words),
                "word": In(width_bits).array(words),
                "operation": In(3),
                "result": Out(width_bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the tree."""
        m = Module()
        is_one = {name: self.operation == code for code, name in enumerate(OPERATIONS)}
        level: list[tuple[Value, Value]] = [(self.used[n], self.word[n]) for n in range(self.words)]
        number = 0
        while len(level) > 1:
            above = []
            for (used_a, a), (used_b, b) in zip(level[::2], level[1::2], strict=False):
                both = Signal(self.width_bits, name=f"both{number}")
                smaller = Signal(name=f"smaller{number}")
                m.d.comb += smaller.eq(a < b)
                with m.If(is_one["sum"]):
                    m.d.comb += both.eq(a + b)
                with m.Elif(is_one["min"] | is_one["max"]):
                    m.d.comb += both.eq(Mux(smaller ^ is_one["max"], a, b))
                with m.Elif(is_one["and"]):
                    m.d.comb += both.eq(a & b)
                with m.Elif(is_one["xor"]):
                    m.d.comb += both.eq(a ^ b)
                with m.Else():
                    m.d.comb += both.eq(a | b)
                word = Signal(self.width_bits, name=f"word{number}")
                m.d.comb += word.eq(Mux(used_a & used_b, both, Mux(used_a, a, b)))
                above.append((used_a | used_b, word))
                number += 1
            level = above + ([level[-1]] if len(level) % 2 else [])
        m.d.comb += self.result.eq(Mux(is_one["barrier"], 0, level[0][1]))
        return m
