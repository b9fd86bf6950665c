"""Comparison of bit ranges of two words that share their logic."""

from amaranth.hdl import Module, Signal, Value

__all__ = ["CompareTree"]


class CompareTree:
    """Magnitude and equality of bit ranges of two words, shared between ranges that contain each other."""

    def __init__(self, m: Module, word: Value, reference: Value, name: str) -> None:
        self._m = m
        self._word = word
        self._reference = reference
        self._name = name
        self._known: dict[tuple[int, int], tuple[Signal, Signal]] = {}

    def __call__(self, start: int, width: int) -> tuple[Signal, Signal]:
        """Signals (greater, different) of bits ``start … start + width − 1`` of word against reference."""
        if (start, width) in self._known:
            return self._known[start, width]
        greater = Signal(name=f"{self._name}_gt_{start}_{width}")
        different = Signal(name=f"{self._name}_ne_{start}_{width}")
        if width == 1:
            self._m.d.comb += [
                greater.eq(self._word[start] & ~self._reference[start]),
                different.eq(self._word[start] ^ self._reference[start]),
            ]
        else:
            split = self._split(start, width)
            low_greater, low_different = self(start, split)
            high_greater, high_different = self(start + split, width - split)
            self._m.d.comb += [
                greater.eq(high_greater | (~high_different & low_greater)),
                different.eq(high_different | low_different),
            ]
        self._known[start, width] = greater, different
        return greater, different

    @staticmethod
    def _split(start: int, width: int) -> int:
        """Width of the low part: half, or for odd widths so that pairs stay aligned with those of even widths."""
        if width % 2 == 0:
            return width // 2
        if width == 3:
            return 2 if start % 2 == 0 else 1
        return width // 2
