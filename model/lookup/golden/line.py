"""A line of the golden cache as a stored word, with check bits and with bits that faults have inverted."""

from typing import NamedTuple

from hopforge.model.lookup.params import LookupParams
from hopforge.model.numbers.code_word import code_columns

__all__ = ["Line", "LineWords"]

_RESERVED_BITS = 16


class Line(NamedTuple):
    """What is read of a line; `word`: what is stored, if it is not the code word of the line."""

    valid: bool = False
    tag: int = 0
    output: int = 0
    epoch: int = 0
    wrong: bool = False
    repaired: bool = False
    word: int | None = None


class LineWords:
    """Lines as words (docs/definitions/protection.md).

    Parameters
    ----------
    params : LookupParams
        The engine.
    """

    def __init__(self, params: LookupParams) -> None:
        epoch_at = params.tag_bits + params.output_bits
        self._places = (  # of the data bits: first bit in the word, width
            (0, params.key_bits),
            (params.tag_bits, params.output_bits),
            (epoch_at, params.epoch_bits),
            (epoch_at + _RESERVED_BITS - 1, 1),
        )
        self._checks_at = epoch_at + _RESERVED_BITS
        self._check_bits = params.line_check_bits
        protection = params.protection
        self._columns = () if protection is None else code_columns(params.line_data_bits, protection)
        self._corrects = protection == "secded"

    @property
    def bits(self) -> int:
        """Bits of a stored word."""
        return self._checks_at + self._check_bits

    @property
    def used_bits(self) -> tuple[int, ...]:
        """Bits of a stored word that mean something: data and check bits."""
        data = (bit for first, width in self._places for bit in range(first, first + width))
        return (*data, *range(self._checks_at, self.bits))

    def flipped(self, line: Line, bit: int) -> Line:
        """Return `line` with a bit of its word inverted."""
        word = self._word(line) if line.word is None else line.word
        return self._line(word ^ 1 << bit)

    def _word(self, line: Line) -> int:
        data = place = 0
        for value, (_, width) in zip((line.tag, line.output, line.epoch, line.valid), self._places, strict=True):
            data |= int(value) << place
            place += width
        return self._spread(data) | self._checks(data) << self._checks_at

    def _spread(self, data: int) -> int:
        """Return the word with these data bits."""
        word = 0
        for first, width in self._places:
            word |= (data & (1 << width) - 1) << first
            data >>= width
        return word

    def _checks(self, data: int) -> int:
        checks = 0
        for bit, column in enumerate(self._columns):
            checks ^= column if data >> bit & 1 else 0
        return checks

    def _line(self, word: int) -> Line:
        """Read a word."""
        data = place = 0
        for first, width in self._places:
            data |= (word >> first & (1 << width) - 1) << place
            place += width
        syndrome = self._checks(data) ^ word >> self._checks_at
        wrong = repaired = False
        if syndrome and self._corrects:
            repaired = syndrome in self._columns or syndrome.bit_count() == 1
            data ^= 1 << self._columns.index(syndrome) if syndrome in self._columns else 0
            wrong = not repaired
        elif syndrome:
            wrong = True
        fields = []
        for _, width in self._places:
            fields.append(data & (1 << width) - 1)
            data >>= width
        tag, output, epoch, valid = fields
        return Line(bool(valid), tag, output, epoch, wrong, repaired, word)
