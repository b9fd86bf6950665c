"""One of several equal ports of a route, chosen by the hash of a packet's source and destination (ECMP)."""

from collections.abc import Sequence
from functools import reduce
from operator import xor

from amaranth.hdl import Const, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hopforge.hw.parts.and_or import and_or, any_of
from hopforge.model.router.params import RouterParams
from hopforge.model.topology.spread import (
    ENTROPY_FACTOR,
    FEW_BITS,
    FEW_WAYS,
    FIRST_FACTORS,
    FOLD_TURNS,
    GOAL_TURN,
    HALF_BITS,
    LAST_TURNS,
    SECOND_FACTORS,
)

__all__ = ["KEY_BITS", "SpreadChoice", "port_number", "spread_counts"]

KEY_BITS = 2 * HALF_BITS
"""Width of what a router adds to its hash, `router_key`."""


class SpreadChoice(wiring.Component):
    """Leaves one of the ports of a route: that of place h(s, d, r, e) among the n of them, the lowest is 0.

    h and place: docs/definitions/any-routing.md (Spread). Combinational from the data of a head and ``ports`` to
    ``port``, a mask of one bit, or of none where ``ports`` has none.

    But for the entropy nothing is multiplied: for every number of ports that a route can have, the hash is compared
    with where the places begin, beside the table that gives the ports.

    Parameters
    ----------
    params : RouterParams
        A router; those with the same structure have the same unit.
    counts : sequence of int
        How many ports a route can have.
    """

    data: Signal
    key: Signal
    ports: Signal
    port: Signal
    entropy: Signal

    def __init__(self, *, params: RouterParams, counts: Sequence[int]):
        self.params, self.counts = params, tuple(counts)
        super().__init__({
            "data": In(2 * params.address_bits), "key": In(KEY_BITS), "ports": In(params.ports),
            "port": Out(params.ports),
        } | ({"entropy": In(params.entropy_bits)} if params.entropy_bits else {}))  # fmt: skip

    def elaborate(self, platform: object) -> Module:
        """Build the hash, its places, and the choice."""
        m = Module()
        several = [n for n in self.counts if n > 1]
        if not several:
            m.d.comb += self.port.eq(self.ports)
            return m
        ports = self.params.ports
        below: list[Value] = [Const(0, 1)]
        for o in range(ports):
            counted = Signal(range(o + 2), name=f"ports_to_{o}")
            m.d.comb += counted.eq(below[-1] + self.ports[o])
            below.append(counted)
        reached = self._reached(m, several, below[-1])
        place = Signal(range(max(several)))
        for k in range(len(reached)):
            last = k + 1 == len(reached)
            with m.If(reached[k] if last else reached[k] & ~reached[k + 1]):
                m.d.comb += place.eq(k + 1)
        for o in range(ports):
            m.d.comb += self.port[o].eq(self.ports[o] & (below[o] == place))
        return m

    def _reached(self, m: Module, several: Sequence[int], count: Value) -> list[Signal]:
        """Return for places 1, 2, … whether the hash is there or behind."""
        half = self._hash(m)
        among = {n: Signal(name=f"among_{n}") for n in several}
        m.d.comb += [found.eq(count == n) for n, found in among.items()]
        found = []
        for k in range(1, max(several)):
            reached = Signal(name=f"reached_{k}")
            m.d.comb += reached.eq(any_of([among[n] & self._behind(half, k, n) for n in several if n > k]))
            found.append(reached)
        return found

    def _behind(self, half: Value, k: int, n: int) -> Value:
        """Return whether the hash is at place k of n or behind it."""
        bits = FEW_BITS if n <= FEW_WAYS else HALF_BITS
        return half[-bits:] >= -(-(k << bits) // n)

    def _key(self) -> Value:
        """Return what router and entropy add."""
        if not self.params.entropy_bits:
            return self.key
        return self.key ^ (self.entropy * Const(ENTROPY_FACTOR))[:KEY_BITS]

    def _hash(self, m: Module) -> Signal:
        """Return h of the head."""
        bits = self.params.address_bits
        goal, source, word = (Signal(KEY_BITS, name=name) for name in ("goal", "source", "word"))
        half, found = (Signal(HALF_BITS, name=name) for name in ("half", "hash"))
        first, second = _mixed(m, word, FIRST_FACTORS, "first"), _mixed(m, half, SECOND_FACTORS, "second")
        m.d.comb += [
            goal.eq(self.data[:bits]),
            source.eq(self.data[bits:]),
            word.eq(source ^ goal.rotate_left(GOAL_TURN) ^ self._key()),
            half.eq(reduce(xor, (first.rotate_left(by) for by in FOLD_TURNS), first)),
            found.eq(reduce(xor, (second.rotate_left(by) for by in LAST_TURNS), second)),
        ]
        return found


def spread_counts(params: RouterParams) -> tuple[int, ...]:
    """Return how many ports a route of a router can have: those of its table, or any number in mode lookup."""
    if params.rc == "lookup":
        return tuple(range(params.ports + 1))
    return tuple(sorted({route.ports.bit_count() for route in params.routes}))


def port_number(params: RouterParams, port: Value) -> Value:
    """Return the number of the port of a mask, P for none, in the bits of field `route`."""
    bits = params.port_field_bits
    numbers = [(port[o], Const(o, bits)) for o in range(params.ports)]
    return and_or([*numbers, (~port.any(), Const(params.ports, bits))], bits)


def _mixed(m: Module, word: Signal, factors: tuple[int, int], name: str) -> Signal:
    """Return a word with the product of two of its rotations added, bit by bit."""
    left, right = (word.rotate_left(by) for by in factors)
    found = Signal.like(word, name=name)
    m.d.comb += found.eq(word ^ (left & right))
    return found
