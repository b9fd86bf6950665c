"""Round-robin choice with a pointer that the user moves."""

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


class RoundRobin(wiring.Component):
    """Choose the first request at or after a pointer, wrapping around.

    Combinational from ``requests`` to ``grant``; the pointer (0 after reset) moves at the end of a cycle: with
    ``advance`` to the number after the grant, with ``stay`` to the grant itself, else not at all.

    Parameters
    ----------
    width : int
        Number of requesters.

    Raises
    ------
    ValueError
        A width below 1.
    """

    requests: Signal
    grant: Signal
    advance: Signal
    stay: Signal

    def __init__(self, *, width: int):
        if width < 1:
            raise ValueError(f"width must be at least 1, not {width}")
        self.width = width
        super().__init__({"requests": In(width), "grant": Out(width), "advance": In(1), "stay": In(1)})

    def elaborate(self, platform: object) -> Module:
        """Build the two priority chains and the pointer as a thermometer code."""
        m = Module()
        if self.width == 1:
            m.d.comb += self.grant.eq(self.requests)
            return m
        at_or_after = Signal(self.width)
        preferred = Signal(self.width)
        first_preferred = Signal(self.width)
        first = Signal(self.width)
        m.d.comb += [
            preferred.eq(self.requests & at_or_after),
            first_preferred.eq(lowest_one(preferred)),
            first.eq(lowest_one(self.requests)),
            self.grant.eq(Mux(preferred.any(), first_preferred, first)),
        ]
        # No bit set means the same as all set: pointer 0.
        with m.If(self.advance):
            m.d.sync += at_or_after.eq(Cat(self.grant[:i].any() if i else 0 for i in range(self.width)))
        with m.Elif(self.stay):
            m.d.sync += at_or_after.eq(Cat(self.grant[: i + 1].any() for i in range(self.width)))
        return m
