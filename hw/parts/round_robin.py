"""Round-robin choice with a pointer that the user moves."""

from collections.abc import Sequence

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out


def lowest_one(requests: Value) -> Value:
    """One-hot of the lowest 1 of ``requests`` (0 without one).

    Parameters
    ----------
    requests : Value
        Any width.

    Returns
    -------
    Value
        As wide as ``requests``.
    """
    return Cat(requests[i] & ~requests[:i].any() if i else requests[0] for i in range(len(requests)))


def select(one_hot: Value, words: Sequence[Value]) -> Value:
    """AND-OR multiplexer.

    Parameters
    ----------
    one_hot : Value
        One select bit per word; 0 selects 0.
    words : sequence of Value
        Words of equal width.

    Returns
    -------
    Value
        The selected word.
    """
    return Cat(Cat(one_hot[i] & word[bit] for i, word in enumerate(words)).any() for bit in range(len(words[0])))


class RoundRobin(wiring.Component):
    """Choose the first request at or after a pointer, wrapping around.

    Combinational from ``requests`` to ``grant``; the pointer (0 after reset) moves at the end of a cycle: with
    ``advance`` to the number after the grant, with ``stay`` to the grant itself, else not at all. ``grant`` is
    ``first_preferred`` if ``any_preferred``, else ``first``.

    Parameters
    ----------
    width : int
        Number of requesters.

    Attributes
    ----------
    at_or_after : Signal
        For proofs: the pointer, as the numbers at or after it.

    Raises
    ------
    ValueError
        A width below 1.
    """

    requests: Signal
    grant: Signal
    first_preferred: Signal
    first: Signal
    any_preferred: Signal
    advance: Signal
    stay: Signal

    def __init__(self, *, width: int):
        if width < 1:
            raise ValueError(f"width must be at least 1, not {width}")
        self.width = width
        self.at_or_after = Signal(width)
        super().__init__(
            {
                "requests": In(width),
                "grant": Out(width),
                "first_preferred": Out(width),
                "first": Out(width),
                "any_preferred": Out(1),
            }
            | self._pointer_ports()
        )

    def _pointer_ports(self) -> dict[str, wiring.Member]:
        return {"advance": In(1), "stay": In(1)}

    def select(self, words: Sequence[Value]) -> Value:
        """Return the granted one of `words`, faster than a multiplexer behind ``grant`` would.

        Both candidates are selected while it is being decided which one counts.
        """
        return Mux(self.any_preferred, select(self.first_preferred, words), select(self.first, words))

    def elaborate(self, platform: object) -> Module:
        """Build the two priority chains and the pointer as a thermometer code."""
        m = Module()
        if self.width == 1:
            m.d.comb += [self.grant.eq(self.requests), self.first.eq(self.requests)]
            return m
        at_or_after = self.at_or_after
        preferred = Signal(self.width)
        m.d.comb += [
            preferred.eq(self.requests & at_or_after),
            self.first_preferred.eq(lowest_one(preferred)),
            self.first.eq(lowest_one(self.requests)),
            self.any_preferred.eq(preferred.any()),
            self.grant.eq(Mux(self.any_preferred, self.first_preferred, self.first)),
        ]
        self._move_pointer(m, at_or_after)
        return m

    def _move_pointer(self, m: Module, at_or_after: Signal) -> None:
        """Set the pointer; no bit set means the same as all set: 0."""
        with m.If(self.advance):
            m.d.sync += at_or_after.eq(self._after(self.grant))
        with m.Elif(self.stay):
            m.d.sync += at_or_after.eq(Cat(self.grant[: i + 1].any() for i in range(self.width)))

    def _after(self, one_hot: Value) -> Value:
        return Cat(one_hot[:i].any() if i else 0 for i in range(self.width))


class LateRoundRobin(RoundRobin):
    """`RoundRobin` whose pointer moves to the number after ``behind`` (one-hot, or 0), a register with what was chosen.

    Parameters
    ----------
    width : int
        Number of requesters.
    """

    behind: Signal

    def _pointer_ports(self) -> dict[str, wiring.Member]:
        return {"behind": In(self.width)}

    def _move_pointer(self, m: Module, at_or_after: Signal) -> None:
        with m.If(self.behind.any()):
            m.d.sync += at_or_after.eq(self._after(self.behind))
