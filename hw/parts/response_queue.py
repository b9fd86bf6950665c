"""Responses that wait for their taker; the first one is in registers at the port."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out


class ResponseQueue(wiring.Component):
    """Queue of words, first in, first out, whose first place is the output.

    ``push`` puts ``word`` behind the others; the user sees to it that there is a place (``held``: a bit per place,
    first place lowest, by the registers). The first one leaves with ``ready``.

    Latency: one cycle from ``push`` to ``valid``; throughput: one word per cycle. Reset: empty.

    Parameters
    ----------
    places : int
        Words that it holds.
    width_bits : int
        Of a word.

    Raises
    ------
    ValueError
        A parameter below 1.
    """

    push: Signal
    word: Signal
    ready: Signal
    valid: Signal
    first: Signal
    held: Signal

    def __init__(self, *, places: int, width_bits: int):
        if places < 1 or width_bits < 1:
            raise ValueError(f"places and width_bits must be at least 1, not {places} and {width_bits}")
        self.places = places
        self.width_bits = width_bits
        super().__init__(
            {
                "push": In(1),
                "word": In(width_bits),
                "ready": In(1),
                "valid": Out(1),
                "first": Out(width_bits),
                "held": Out(places),
            }
        )
        self.words = [Signal(width_bits, name=f"word{i}", reset_less=True) for i in range(places)]

    def elaborate(self, platform: object) -> Module:
        """Build the places; all move up by one when the first leaves."""
        m = Module()
        held, words = self.held, self.words
        m.d.comb += [self.valid.eq(held[0]), self.first.eq(words[0])]
        leaves = Signal()
        m.d.comb += leaves.eq(self.ready & held[0])
        for i, word in enumerate(words):
            follows = held[i + 1] if i + 1 < self.places else 0
            follower = words[i + 1] if i + 1 < self.places else self.word
            before = held[i - 1] if i else 1
            with m.If(self.ready | ~held[i]):
                m.d.sync += word.eq(Mux(follows, follower, self.word))
            m.d.sync += held[i].eq(Mux(leaves, follows | (held[i] & self.push), held[i] | (before & self.push)))
        return m
