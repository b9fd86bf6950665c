"""Check bits of a stored word, and what they say when it is read."""

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hopforge.model.numbers.code_word import Protection, check_bits, code_columns, code_masks

__all__ = ["CodeWordCheck", "coded"]


def coded(data: Value, protection: Protection) -> Value:
    """Return `data` with its check bits above it."""
    masks = code_masks(len(data), protection)
    checks = [Cat(data[bit] for bit in range(len(data)) if mask >> bit & 1).xor() for mask in masks]
    return Cat(data, *checks)


class CodeWordCheck(wiring.Component):
    """Read a word with check bits (``docs/definitions/protection.md``).

    ``data`` is what was stored, unless the word is ``wrong``: more of its bits have changed than can be corrected.
    ``repaired`` says that one was corrected, ``word_repaired`` is the word as it should be. With parity nothing is
    ever corrected. Combinational.

    Parameters
    ----------
    data_bits : int
        Bits of a word without its check bits.
    protection : {"parity", "secded"}
        Code.

    Attributes
    ----------
    syndrome : Signal
        For proofs: 0 if nothing has changed.
    """

    word: Signal
    data: Signal
    word_repaired: Signal
    wrong: Signal
    repaired: Signal

    def __init__(self, *, data_bits: int, protection: Protection):
        self.data_bits = data_bits
        self.protection = protection
        checks = check_bits(data_bits, protection)
        self.word_bits = data_bits + checks
        self.syndrome = Signal(checks)
        super().__init__(
            {
                "word": In(self.word_bits),
                "data": Out(data_bits),
                "word_repaired": Out(self.word_bits),
                "wrong": Out(1),
                "repaired": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the syndrome and, with SECDED, what it corrects."""
        m = Module()
        data, checks = self.word[: self.data_bits], self.word[self.data_bits :]
        syndrome = self.syndrome
        m.d.comb += [
            syndrome.eq(coded(data, self.protection)[self.data_bits :] ^ checks),
            self.word_repaired.eq(self.word),
            self.data.eq(self.word_repaired[: self.data_bits]),
        ]
        if self.protection == "parity":
            m.d.comb += self.wrong.eq(syndrome)
            return m
        columns = (*code_columns(self.data_bits, self.protection), *(1 << check for check in range(len(checks))))
        changed = Signal(self.word_bits)
        m.d.comb += [
            changed.eq(Cat(syndrome == column for column in columns)),
            self.word_repaired.eq(self.word ^ changed),
            self.repaired.eq(changed.any()),
            self.wrong.eq(syndrome.any() & ~self.repaired),
        ]
        return m
