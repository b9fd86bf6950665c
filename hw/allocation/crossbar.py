"""The crossbar."""

from collections.abc import Sequence

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hopforge.hw.parts.shared import place

__all__ = ["Crossbar", "OneHotMux"]


class Crossbar(wiring.Component):
    """Each output carries the word of the input that its select bits name, or 0.

    Combinational. Bit i·outputs + o of ``select`` connects input i to output o; at most one input per output.

    Parameters
    ----------
    inputs, outputs : int
        Numbers of words.
    width_bits : int
        Bits of a word.

    Raises
    ------
    ValueError
        A number below 1.
    """

    select: Signal
    words: Sequence[Signal]
    out: Sequence[Signal]

    def __init__(self, *, inputs: int, outputs: int, width_bits: int):
        for name, value in (("inputs", inputs), ("outputs", outputs), ("width_bits", width_bits)):
            if value < 1:
                raise ValueError(f"{name} must be at least 1, not {value}")
        self.inputs = inputs
        self.outputs = outputs
        self.width_bits = width_bits
        super().__init__(
            {
                "select": In(inputs * outputs),
                "words": In(width_bits).array(inputs),
                "out": Out(width_bits).array(outputs),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """One multiplexer per output."""
        m = Module()
        for o in range(self.outputs):
            mux = OneHotMux(inputs=self.inputs, width_bits=self.width_bits)
            inputs = {"select": self.select[o :: self.outputs]}
            inputs |= {f"words__{i}": word for i, word in enumerate(self.words)}
            place(m, f"output{o}", mux, platform, self.inputs, self.width_bits, **inputs)
            m.d.comb += self.out[o].eq(mux.out)
        return m


class OneHotMux(wiring.Component):
    """The word of the input whose select bit is 1, or 0. Combinational.

    Parameters
    ----------
    inputs : int
        Number of words.
    width_bits : int
        Bits of a word.
    """

    select: Signal
    words: Sequence[Signal]
    out: Signal

    def __init__(self, *, inputs: int, width_bits: int):
        super().__init__({"select": In(inputs), "words": In(width_bits).array(inputs), "out": Out(width_bits)})

    def elaborate(self, platform: object) -> Module:
        """AND and OR of whole words: bit by bit, Verilator makes ten times as much of it."""
        m = Module()
        terms: list[Value] = [word & self.select[i].replicate(len(word)) for i, word in enumerate(self.words)]
        while len(terms) > 1:
            terms = [a | b for a, b in zip(terms[::2], terms[1::2], strict=False)] + terms[len(terms) & ~1 :]
        m.d.comb += self.out.eq(terms[0])
        return m
