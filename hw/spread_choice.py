"""One of several equal ports of a route, chosen by the hash of a packet's source and destination (ECMP)."""

from collections.abc import Sequence
from functools import reduce
from operator import or_

from amaranth.hdl import Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hopforge.model.router.params import SPREAD_ROUTER_BITS, RouterParams
from hopforge.model.topology.spread import GOAL_FACTOR, ROUTER_FACTOR, SOURCE_FACTOR

__all__ = ["SpreadChoice", "remainder"]

_HASH_BITS = 32
#: bits of a number that are reduced by themselves, then put together two by two
_DIGIT_BITS = 4


def remainder(m: Module, value: Value, divisor: int) -> Value:
    """Return `value` modulo `divisor`, unsigned and combinational.

    Digits are reduced each by itself and put together two by two: the depth grows with the logarithm of the width.

    Parameters
    ----------
    m : Module
        Gets the signals between.

    Raises
    ------
    ValueError
        A divisor below 1.
    """
    if divisor < 1:
        raise ValueError(f"divisor must be at least 1, not {divisor}")
    if divisor & (divisor - 1) == 0:
        return value[: divisor.bit_length() - 1] if divisor > 1 else Const(0, 1)
    digits = [value[at : at + _DIGIT_BITS] for at in range(0, len(value), _DIGIT_BITS)]
    parts = [_reduced(m, digit, 1 << _DIGIT_BITS, divisor) for digit in digits]
    weight = (1 << _DIGIT_BITS) % divisor
    while len(parts) > 1:
        highest = (divisor - 1) * (weight + 1)
        highs = [*parts[1::2], Const(0, 1)]
        parts = [
            _reduced(m, high * weight + low, highest + 1, divisor)
            for low, high in zip(parts[::2], highs, strict=False)
        ]
        weight = weight * weight % divisor
    return parts[0]


def _reduced(m: Module, value: Value, limit: int, divisor: int) -> Value:
    """Return a value below `limit` modulo `divisor`; a signal for each step, which is read more than once."""
    rest = Signal(range(limit), name=f"rest_{divisor}")
    m.d.comb += rest.eq(value)
    for shift in reversed(range(((limit - 1) // divisor).bit_length())):
        less = Signal(range(min(limit, divisor << shift)), name=f"rest_{divisor}_{shift}")
        m.d.comb += less.eq(Mux(rest >= divisor << shift, rest - (divisor << shift), rest))
        rest = less
    return rest


class SpreadChoice(wiring.Component):
    """Leaves one of the ports of a route: that of place h(s, d, r) mod n among the n of them, the lowest is 0.

    h: docs/definitions/any-routing.md (Spread). Combinational from the data of a head and ``ports`` to ``port``, a mask
    of one bit, or of none where ``ports`` has none. ``router`` is r.

    Parameters
    ----------
    params : RouterParams
        A router; those with the same structure have the same unit.
    counts : sequence of int
        How many ports a route can have.
    """

    data: Signal
    router: Signal
    ports: Signal
    port: Signal

    def __init__(self, *, params: RouterParams, counts: Sequence[int]):
        self.params, self.counts = params, tuple(counts)
        super().__init__({
            "data": In(2 * params.address_bits), "router": In(SPREAD_ROUTER_BITS), "ports": In(params.ports),
            "port": Out(params.ports),
        })  # fmt: skip

    def elaborate(self, platform: object) -> Module:
        """Build the hash, its remainders, and the choice."""
        m = Module()
        p = self.params
        count = Signal(range(p.ports + 1))
        place = Signal(range(p.ports))
        below: Value = Const(0, 1)
        for o in range(p.ports):
            m.d.comb += self.port[o].eq(self.ports[o] & (place == below))
            counted = Signal(range(o + 2), name=f"ports_to_{o}")
            m.d.comb += counted.eq(below + self.ports[o])
            below = counted
        m.d.comb += count.eq(below)
        several = [n for n in self.counts if n > 1]
        if several:
            word = self._hash(m)
            m.d.comb += place.eq(reduce(or_, (Mux(count == n, remainder(m, word, n), 0) for n in several)))
        return m

    def _hash(self, m: Module) -> Signal:
        """Return h of the head."""
        goal, source = self.data[: self.params.address_bits], self.data[self.params.address_bits :]
        word = Signal(_HASH_BITS, name="of_source")
        mixed = Signal(_HASH_BITS, name="of_goal")
        last = Signal(_HASH_BITS, name="of_router")
        m.d.comb += [
            word.eq((source + 1) * SOURCE_FACTOR),
            mixed.eq((word ^ (word >> 15) ^ goal)[:_HASH_BITS] * GOAL_FACTOR),
            last.eq((mixed ^ (mixed >> 13) ^ self.router)[:_HASH_BITS] * ROUTER_FACTOR),
        ]
        found = Signal(_HASH_BITS, name="hash")
        m.d.comb += found.eq(last ^ (last >> 16))
        return found
