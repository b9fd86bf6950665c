"""Next word of xorshift32."""

from amaranth.hdl import Cat, Const, Value

from hopforge.model.board.random_words import SHIFTS

__all__ = ["next_word"]


def next_word(word: Value) -> Value:
    """Return the random word behind `word`, three XORs deep (docs/definitions/board-protocol.md)."""
    for shift in SHIFTS:
        zeros = Const(0, abs(shift))
        word = word ^ (Cat(zeros, word)[: len(word)] if shift > 0 else Cat(word, zeros)[-shift:])
    return word
