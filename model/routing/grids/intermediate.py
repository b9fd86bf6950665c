"""Intermediate destinations of POR and OFR and their profit, as docs/definitions/torus-router.md defines them.

Plain functions of coordinates: what the golden network uses, and what the kernel's tables come from.
"""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations, product
from typing import NamedTuple

Place = tuple[int, ...]

#: λ of the outflank destinations by (dimensions, coordinates in which s and t are equal); the equal ones come first
TURNS: Mapping[tuple[int, int], tuple[Place, ...]] = {
    (2, 0): ((1, -1), (-1, 1)),
    (2, 1): ((1, -1), (1, 0), (-1, 0), (-1, 1)),
    (3, 0): ((0, -1, 1), (0, 1, -1), (-1, 0, 1), (1, 0, -1), (-1, 1, 0), (1, -1, 0)),
    (3, 1): ((0, -1, 1), (0, 1, -1), (1, 0, 0), (-1, 0, 0)),
    (3, 2): ((1, 0, 1), (-1, 0, 0), (0, 1, -1), (0, -1, 0)),
}


def turns_of(dimensions: int, equal: int) -> tuple[Place, ...]:
    """λ of the outflank destinations, the coordinates in which s and t are equal first.

    Up to three dimensions those of `TURNS`. Beyond, they go on in the same way: among the coordinates that differ every
    ordered pair has one −1 and one +1; of each coordinate that is equal there is +1 and −1. Where only one coordinate
    differs it needs the equal ones: +1 with the first of them, −1 with the second.
    """
    if dimensions <= 3:
        return TURNS.get((dimensions, equal), ())
    differing = range(equal, dimensions)
    if not differing:
        return ()

    def place(turns: Mapping[int, int]) -> Place:
        return tuple(turns.get(i, 0) for i in range(dimensions))

    found = [place({i: sign, j: -sign}) for i, j in combinations(differing, 2) for sign in (-1, 1)]
    for i in range(equal):
        last = {equal: 1 - 2 * i} if len(differing) == 1 and i < 2 else {}
        found += [place({i: 1, **last}), place({i: -1})]
    return tuple(found)


def outflank_delta(distance: int, delta: int, share: Fraction) -> int:
    """Δ of a pair of nodes: `delta`, or, if `share` is not 0, that share of its distance, rounded, at least 1."""
    return max(1, int(share * distance + Fraction(1, 2))) if share else delta


class Grid(NamedTuple):
    """A torus or mesh as far as routing needs it."""

    radices: Place
    torus: bool = True
    both_ways: bool = False

    def ways(self, i: int, a: int, b: int) -> tuple[int, tuple[int, ...]]:
        """Distance from coordinate `a` to `b` of dimension `i`, and the minimal directions: +1, −1."""
        if a == b:
            return 0, ()
        if not self.torus:
            return abs(b - a), (1 if b > a else -1,)
        ahead = (b - a) % self.radices[i]
        behind = self.radices[i] - ahead
        if ahead == behind:
            return ahead, (1, -1) if self.both_ways else (1,)
        return (ahead, (1,)) if ahead < behind else (behind, (-1,))

    def distance(self, s: Sequence[int], t: Sequence[int]) -> int:
        """Hops between two nodes."""
        return sum(self.ways(i, a, b)[0] for i, (a, b) in enumerate(zip(s, t, strict=True)))

    def minimal_ports(self, s: Sequence[int], t: Sequence[int]) -> list[int]:
        """Ports of `s` that are minimal towards `t`: 2i for (dimension i, +), 2i + 1 for (i, −)."""
        return [
            2 * i + (way < 0)
            for i, (a, b) in enumerate(zip(s, t, strict=True))
            for way in self.ways(i, a, b)[1]
        ]  # fmt: skip

    def ports(self, s: Sequence[int]) -> list[int]:
        """Ports of `s` with a link."""
        return [2 * i + (way < 0) for i in range(len(s)) for way in (1, -1) if self.neighbour(s, 2 * i + (way < 0))]

    def neighbour(self, s: Sequence[int], port: int) -> Place | None:
        """Node at the other end of a port, None if there is none."""
        i, x = port // 2, s[port // 2] + (-1 if port % 2 else 1)
        if self.torus:
            x %= self.radices[i]
        elif not 0 <= x < self.radices[i]:
            return None
        return (*s[:i], x, *s[i + 1 :])


def outflank_destinations(grid: Grid, s: Place, t: Place, delta: int) -> Iterator[Place]:
    """Destinations beside the minimal orthant; on a mesh those that lie in it.

    Seed 003, section 3.1.2, with the sets of its example 2. Where λ = 0 the midpoint is on the minimal path, of an odd
    length the one nearer to `s`.
    """
    equal = [i for i in range(len(s)) if s[i] == t[i]]
    order = equal + [i for i in range(len(s)) if s[i] != t[i]]
    for turns in turns_of(len(s), len(equal)):
        place = [0] * len(s)
        for i, turn in zip(order, turns, strict=True):
            distance, ways = grid.ways(i, s[i], t[i])
            if not ways:
                place[i] = s[i] + turn * delta
            elif turn == 0:
                place[i] = s[i] + ways[0] * (distance // 2)
            else:
                place[i] = (t[i] if turn > 0 else s[i]) + turn * ways[0] * delta
        if grid.torus:
            yield tuple(x % k for x, k in zip(place, grid.radices, strict=True))
        elif all(0 <= x < k for x, k in zip(place, grid.radices, strict=True)):
            yield tuple(place)


def wraparound_destinations(grid: Grid, s: Place, t: Place) -> Iterator[Place]:
    """Middles of all orthants of the torus but the minimal one (seed 003, equation 1, modulo the radices)."""
    if not grid.torus:
        return
    minimal = tuple(int(2 * abs(a - b) > k) for a, b, k in zip(s, t, grid.radices, strict=True))
    choices = [(0,) if a == b else (0, 1) for a, b in zip(s, t, strict=True)]
    for beta in sorted(product(*choices), key=lambda bits: bits[::-1]):
        if beta != minimal:
            yield tuple((a + b + bit * k) // 2 % k for a, b, bit, k in zip(s, t, beta, grid.radices, strict=True))


def long_ways(grid: Grid, s: Place, t: Place) -> Iterator[tuple[int, Place]]:
    """Orthants of the torus but the minimal one: hops from `s` to `t`, and directions (+1, −1, 0) of the dimensions."""
    ways = [grid.ways(i, a, b) for i, (a, b) in enumerate(zip(s, t, strict=True))]
    choices = [(False, True) if distance else (False,) for distance, _ in ways]
    for turned in sorted(product(*choices), key=lambda one: one[::-1]) if grid.torus else ():
        if any(turned):
            hops = sum(k - d if turn else d for turn, k, (d, _) in zip(turned, grid.radices, ways, strict=True))
            signs = (((-1 if turn else 1) * (way or (0,))[0]) for turn, (_, way) in zip(turned, ways, strict=True))
            yield hops, tuple(signs)


class Detour(NamedTuple):
    """An intermediate destination and the length of the route through it; or the directions of an orthant."""

    place: Place
    hops: int
    outflanks: bool
    directions: Place | None = None


def detours(grid: Grid, s: Place, t: Place, *, outflank: bool, delta: int, wraparound: str = "middle") -> list[Detour]:
    """All that POR (without `outflank`) or OFR may choose for a packet from `s` to `t`, in the order of preference."""
    found: list[tuple[Place, bool]] = []
    if s != t:
        if outflank:
            found += [(place, True) for place in outflank_destinations(grid, s, t, delta)]
        if wraparound == "middle":
            found += [(place, False) for place in wraparound_destinations(grid, s, t)]
    middles = [
        Detour(q, grid.distance(s, q) + grid.distance(q, t), outflanks) for q, outflanks in found if q not in (s, t)
    ]
    if s == t or wraparound == "middle":
        return middles
    return middles + [Detour(t, hops, False, directions) for hops, directions in long_ways(grid, s, t)]


def profit(least: int, used: Sequence[int], eta: Fraction, hops: int, hops_through: int) -> Fraction:
    """π = u*/u + η·d/d̃ with u the mean of `used`; 0/0 counts as 1 (seed 003, equation 15)."""
    mean = Fraction(sum(used), len(used))
    return (least / mean if mean else Fraction(1)) + eta * Fraction(hops, hops_through)
