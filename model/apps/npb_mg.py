"""NPB MG, multigrid: halos of a cube change hands at every level; at coarse levels only some ranks have points."""

from dataclasses import dataclass

from hopforge.model.apps.calls import DOUBLE, INT, LOGICAL, Calls

#: class → log₂ of the edge of the cube, iterations
SIZES = {"S": (5, 4), "W": (7, 4), "A": (8, 4), "B": (8, 20), "C": (9, 20), "D": (10, 50), "E": (11, 50)}
#: ten largest and ten smallest random numbers become the charges
CHARGES = 10
#: operations: 58 a point and iteration in all (mg.f); residual, smoother and restriction as its comments count them
FLOPS, RESIDUAL, SMOOTHER, RESTRICTION = 58, 15, 16, 24


def grid(ranks: int) -> tuple[int, int, int]:
    """Return the edges of the grid of ranks, x first."""
    power = ranks.bit_length() - 1
    x = power // 3
    y = (power - x) // 2
    return 1 << x, 1 << y, 1 << power - x - y


def legal(problem: str, ranks: int) -> bool:
    """Tell whether the benchmark runs on so many ranks: a power of two, with a point of the cube for each."""
    return ranks >= 1 and ranks & (ranks - 1) == 0 and max(grid(ranks)) <= 1 << SIZES[problem][0]


@dataclass
class _Level:
    """What a rank has at one level; the lists are per axis.

    Attributes
    ----------
    size : list of int
        Points, halo included (2: none).
    ahead, behind : list of int
        Next ranks that have points.
    gives, takes : list of bool
        When values go from the next coarser level to this one: gives its halo to ranks that had no points there, or
        takes it.
    """

    size: list[int]
    ahead: list[int]
    behind: list[int]
    gives: list[bool]
    takes: list[bool]

    @property
    def idle(self) -> bool:
        return 2 in self.size


def levels(problem: str, ranks: int, rank: int) -> dict[int, _Level]:
    """Return the levels of one rank by log₂ of the cube's edge, from the finest to 1 (mg.f, setup)."""
    finest = SIZES[problem][0]
    shape = grid(ranks)
    place = [rank % shape[0], rank // shape[0] % shape[1], rank // (shape[0] * shape[1])]
    weight = [1, shape[0], shape[0] * shape[1]]
    step = [1, 1, 1]
    found: dict[int, _Level] = {}
    for level in range(finest, 0, -1):
        points = 1 << level
        size = [2 + (at + 1) * points // n - at * points // n for at, n in zip(place, shape, strict=True)]
        following = [
            2 + (s + at + 1) * points // n - (s + at) * points // n
            for s, at, n in zip(step, place, shape, strict=True)
        ]
        step = [2 * s if 2 in pair else s for s, *pair in zip(step, size, following, strict=True)]
        if level < finest:
            finer = found[level + 1]
            finer.gives = [(ours, theirs) == (3, 2) for ours, theirs in zip(size, following, strict=True)]
            finer.takes = [(ours, theirs) == (2, 3) for ours, theirs in zip(size, following, strict=True)]

        def neighbour(axis: int, way: int, step: list[int] = step) -> int:
            return rank + weight[axis] * ((place[axis] + way * step[axis]) % shape[axis] - place[axis])

        found[level] = _Level(
            size, [neighbour(axis, 1) for axis in range(3)], [neighbour(axis, -1) for axis in range(3)],
            [False] * 3, [False] * 3,
        )
    return found


class _Rank:
    """The steps of one rank at each level, by log₂ of the cube's edge there."""

    def __init__(self, problem: str, ranks: int, rank: int) -> None:
        self.finest = SIZES[problem][0]
        self.alone = ranks == 1
        self.level = levels(problem, ranks, rank)
        self.buffer = 2 * (2 + (1 << self.finest - (ranks.bit_length() - 1) // 3)) ** 2
        # points of all levels below the finest, per point of it: 1/8 + 1/64 + … = (1 − 8^(1 − finest)) / 7
        coarser, least = sum(8.0 ** (k - self.finest) for k in range(1, self.finest)), 8.0 ** (1 - self.finest)
        counted = 2 * RESIDUAL + SMOOTHER + coarser * (RESIDUAL + SMOOTHER + RESTRICTION) - least * RESIDUAL
        self.interpolation = (FLOPS - counted) / (1 + coarser - least)

    def _ready(self, part: Calls, axis: int, at: _Level) -> None:
        part.irecv(at.ahead[axis], tag(axis, -1), self.buffer)
        part.irecv(at.behind[axis], tag(axis, 1), self.buffer)

    def _take(self, part: Calls, axis: int, at: _Level) -> None:
        part.wait_received(at.ahead[axis], tag(axis, -1))
        part.wait_received(at.behind[axis], tag(axis, 1))

    def halo(self, part: Calls, k: int) -> None:
        """Exchange halos with the neighbours (comm3)."""
        at = self.level[k]
        if at.idle or self.alone:
            return
        x, y, z = at.size
        for axis, values in enumerate(((y - 2) * (z - 2), x * (z - 2), x * y)):
            self._ready(part, axis, at)
            part.send(at.ahead[axis], tag(axis, 1), values)
            part.send(at.behind[axis], tag(axis, -1), values)
            self._take(part, axis, at)

    def _expand(self, part: Calls, k: int) -> None:
        """Give halos to ranks that had no points at the next coarser level (comm3_ex)."""
        at = self.level[k]
        if self.alone:
            return
        x, y, z = at.size
        for axis, values in enumerate((y * z, x * z, x * y)):
            if at.takes[axis]:
                self._ready(part, axis, at)
                self._take(part, axis, at)
            if at.gives[axis]:
                part.send(at.ahead[axis], tag(axis, 1), 2 * values)
                part.send(at.behind[axis], tag(axis, -1), values)

    def _work(self, part: Calls, k: int, flops: float) -> None:
        x, y, z = self.level[k].size
        part.compute(flops * (x - 2) * (y - 2) * (z - 2))

    def residual(self, part: Calls, k: int) -> None:
        """Compute the residual."""
        self._work(part, k, RESIDUAL)
        self.halo(part, k)

    def _smooth(self, part: Calls, k: int) -> None:
        self._work(part, k, SMOOTHER)
        self.halo(part, k)

    def cycle(self, part: Calls) -> None:
        """Go down to the coarsest level and up again (mg3P), then compute the residual."""
        for k in range(self.finest - 1, 0, -1):
            self._work(part, k, RESTRICTION)
            self.halo(part, k)
        self._smooth(part, 1)
        for k in range(2, self.finest + 1):
            self._work(part, k, self.interpolation)
            self._expand(part, k)
            self.residual(part, k)
            self._smooth(part, k)
        self.residual(part, self.finest)

    def charges(self, calls: Calls) -> None:
        """Find the charges (zran3)."""
        calls.barrier()
        for _ in range(2 * CHARGES):
            calls.allreduce(1)
            calls.allreduce(4, INT)
        calls.barrier()
        self.halo(calls, self.finest)


def _norm(calls: Calls) -> None:
    calls.allreduce(1)
    calls.allreduce(1)


def write(calls: Calls, problem: str, ranks: int) -> None:
    """Append the calls of one rank."""
    rank = _Rank(problem, ranks, calls.rank)
    cycle = calls.part()
    rank.cycle(cycle)
    calls.barrier()
    for _ in range(5):
        calls.bcast(1, INT)
    calls.bcast(8, INT)
    calls.bcast(1, LOGICAL)
    rank.charges(calls)
    _norm(calls)
    rank.residual(calls, rank.finest)
    _norm(calls)
    calls.extend(cycle)
    rank.charges(calls)
    calls.barrier()
    rank.residual(calls, rank.finest)
    _norm(calls)
    calls.extend(cycle, calls.iterations(SIZES[problem][1]))
    _norm(calls)
    calls.reduce(1, DOUBLE)


def tag(axis: int, way: int) -> int:
    """Return the tag of a halo that travels along an axis in direction ±1."""
    return 100 * (way + 2 + 10 * (axis + 1))
