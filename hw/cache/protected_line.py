"""Lines of a cache with check bits: what is stored, and what is read."""

from typing import NamedTuple

from amaranth.hdl import Cat, Const, Module, Signal, Value

from hopforge.hw.parts.code_word import CodeWordCheck, coded
from hopforge.hw.parts.shared import shared
from hopforge.model.numbers.code_word import Protection, check_bits

__all__ = ["LineCode", "ReadLine"]


class ReadLine(NamedTuple):
    """A line that was read, one bit of it corrected if need be.

    Attributes
    ----------
    line : Value
        Without check bits; not valid if it is wrong.
    wrong, repaired : Value
        More has changed than can be corrected; one bit was corrected.
    word_repaired : Value
        What should be stored, with check bits.
    """

    line: Value
    wrong: Value
    repaired: Value
    word_repaired: Value


class LineCode:
    """The code words of lines (``docs/definitions/protection.md``).

    Parameters
    ----------
    key_bits, tag_bits, output_bits, epoch_bits, line_bits : int
        Widths; the line without check bits.
    protection : {"parity", "secded"}
        Code.
    """

    def __init__(
        self, *, key_bits: int, tag_bits: int, output_bits: int, epoch_bits: int, line_bits: int, protection: Protection
    ):  # fmt: skip
        self.protection = protection
        self.line_bits = line_bits
        epoch_at = tag_bits + output_bits
        epoch_ends = epoch_at + epoch_bits
        self.parts = ((0, key_bits), (tag_bits, epoch_at), (epoch_at, epoch_ends), (line_bits - 1, line_bits))
        self.data_bits = sum(stop - start for start, stop in self.parts)
        self.check_bits = check_bits(self.data_bits, protection)

    def _data(self, line: Value) -> Value:
        return Cat(line[start:stop] for start, stop in self.parts)

    def stored(self, line: Value) -> Value:
        """Return a line with its check bits above it."""
        return Cat(line, coded(self._data(line), self.protection)[self.data_bits :])

    def _line(self, data: Value) -> Value:
        """Return the line of data bits, 0 where it has none."""
        pieces: list[Value] = []
        place = taken = 0
        for start, stop in self.parts:
            pieces += [Const(0, start - place), data[taken : taken + stop - start]]
            taken += stop - start
            place = stop
        return Cat(pieces)

    def read(self, m: Module, platform: object, way: int, stored: Value) -> ReadLine:
        """Build what checks the word `stored` that was read of a way."""
        check = CodeWordCheck(data_bits=self.data_bits, protection=self.protection)
        m.submodules[f"check{way}"] = shared(check, platform, self.data_bits, self.protection)
        line = Signal(self.line_bits, name=f"checked{way}")
        m.d.comb += [
            check.word.eq(Cat(self._data(stored), stored[self.line_bits :])),
            line.eq(self._line(Cat(check.data[:-1], check.data[-1] & ~check.wrong))),
        ]
        word = Cat(line, check.word_repaired[self.data_bits :])
        return ReadLine(line, check.wrong, check.repaired, word)
