"""NPB BT and SP: line solves in x, y and z on a cube cut in p³ cells, p of them for each of p² ranks."""

from math import isqrt

from hopforge.model.apps.calls import DOUBLE, INT, LOGICAL, Calls

#: class → edge of the cube, iterations
BT_SIZES = {
    "S": (12, 60), "W": (24, 200), "A": (64, 200), "B": (102, 200), "C": (162, 200), "D": (408, 250), "E": (1020, 250),
}
SP_SIZES = {
    "S": (12, 100), "W": (36, 400), "A": (64, 400), "B": (102, 400), "C": (162, 400), "D": (408, 500), "E": (1020, 500),
}
EAST, WEST, NORTH, SOUTH, BOTTOM, TOP = 2000, 3000, 4000, 5000, 6000, 7000
#: tags of values that go on (and back) along each axis
FORWARD, BACKWARD = (WEST, SOUTH, BOTTOM), (EAST, NORTH, TOP)


def bt_legal(problem: str, ranks: int) -> bool:
    """Tell whether BT runs on so many ranks: a square, and cells of at least three points."""
    return _legal(BT_SIZES[problem][0], ranks)


def sp_legal(problem: str, ranks: int) -> bool:
    """Tell whether SP runs on so many ranks: a square, and cells of at least three points."""
    return _legal(SP_SIZES[problem][0], ranks)


def _legal(points: int, ranks: int) -> bool:
    return ranks >= 1 and isqrt(ranks) ** 2 == ranks and points // isqrt(ranks) >= 3


class Cells:
    """The cells of one rank and its neighbours (make_set.f).

    Parameters
    ----------
    points : int
        Edge of the cube.
    ranks, rank : int
        p², and which.

    Attributes
    ----------
    place : list of tuple
        Position of the p cells in the grid of cells.
    following, preceding : list of int
        Neighbours along each axis, the same for all cells.
    """

    def __init__(self, points: int, ranks: int, rank: int) -> None:
        self.points, self.edge = points, isqrt(ranks)
        p = self.edge
        i, j = rank % p, rank // p
        self.place = [((i + k) % p, (j - k) % p, k) for k in range(p)]
        self.following = [(i + 1) % p + p * j, i + p * ((j + 1) % p), (i - 1) % p + p * ((j + 1) % p)]
        self.preceding = [(i - 1) % p + p * j, i + p * ((j - 1) % p), (i + 1) % p + p * ((j - 1) % p)]

    def size(self, at: int) -> int:
        """Return the points of a cell along an axis on which it stands at `at`."""
        return self.points // self.edge + (at < self.points % self.edge)

    def line(self, axis: int) -> list[tuple[int, int, int]]:
        """Return the cells in the order in which a line along the axis meets them."""
        return sorted(self.place, key=lambda cell: cell[axis])

    def faces(self) -> list[tuple[int, int]]:
        """Return for each axis the values of 5 variables in two layers of all inner faces: sent on, sent back."""
        sums = []
        for axis in range(3):
            face = [10 * self.size(cell[axis - 2]) * self.size(cell[axis - 1]) for cell in self.place]
            on = sum(f for f, cell in zip(face, self.place, strict=True) if cell[axis] != self.edge - 1)
            back = sum(f for f, cell in zip(face, self.place, strict=True) if cell[axis] != 0)
            sums.append((on, back))
        return sums


def copy_faces(part: Calls, cells: Cells) -> None:
    """Append the exchange of all faces (copy_faces.f)."""
    if cells.edge == 1:
        return
    faces = cells.faces()
    for axis, (on, back) in enumerate(faces):
        part.irecv(cells.following[axis], FORWARD[axis], on)
        part.irecv(cells.preceding[axis], BACKWARD[axis], back)
    for axis, (on, back) in enumerate(faces):
        part.isend(cells.following[axis], BACKWARD[axis], on)
        part.isend(cells.preceding[axis], FORWARD[axis], back)
    part.waitall(12)


def write_bt(calls: Calls, problem: str, ranks: int) -> None:
    """Append the calls of one rank of BT."""
    points, iterations = BT_SIZES[problem]
    cells = Cells(points, ranks, calls.rank)
    flops = (3478.8 * points**3 - 17655.7 * points**2 + 28023.7 * points) / ranks  # an iteration (bt.f: Mflops)
    face = (points // cells.edge + 1) ** 2
    step = calls.part()
    copy_faces(step, cells)
    step.compute(flops / 4)
    for axis in range(3):
        _bt_solve(step, cells, axis, face, flops / 4)
    calls.bcast(1, INT)
    calls.bcast(1)
    calls.bcast(3, INT)
    for _ in range(2):
        calls.bcast(1, INT)
    calls.bcast(1, LOGICAL)
    _steps(calls, cells, step, iterations)


def write_sp(calls: Calls, problem: str, ranks: int) -> None:
    """Append the calls of one rank of SP."""
    points, iterations = SP_SIZES[problem]
    cells = Cells(points, ranks, calls.rank)
    # an iteration (sp.f: Mflops)
    flops = (881.174 * points**3 - 4683.91 * points**2 + 11484.5 * points - 19272.4) / ranks
    step = calls.part()
    copy_faces(step, cells)
    step.compute(flops / 4)
    for axis in range(3):
        _sp_solve(step, cells, axis, flops / 4)
    calls.bcast(1, INT)
    calls.bcast(1)
    calls.bcast(3, INT)
    calls.bcast(1, LOGICAL)
    _steps(calls, cells, step, iterations)


def _steps(calls: Calls, cells: Cells, step: Calls, iterations: int) -> None:
    calls.extend(step)
    calls.barrier()
    calls.extend(step, calls.iterations(iterations))
    calls.allreduce(5)  # verification: norms of the error and, once more, of the right-hand side
    copy_faces(calls, cells)
    calls.allreduce(5)
    calls.reduce(1, DOUBLE)
    calls.barrier()


def _bt_solve(part: Calls, cells: Cells, axis: int, face: int, flops: float) -> None:
    """Append a solve along one axis: 5×5 blocks and 5 values go on, 5 values of the solution come back."""
    line, p = cells.line(axis), cells.edge
    on, back = cells.following[axis], cells.preceding[axis]
    first, second = [other for other in range(3) if other != axis]

    def tags(cell: tuple[int, int, int]) -> tuple[int, int]:
        offset = cell[first] + p * cell[second]
        return FORWARD[axis] + offset, BACKWARD[axis] + offset

    work = flops / (2 * p)
    for stage, cell in enumerate(line):
        if stage > 0:
            part.irecv(back, tags(cell)[0], 30 * face)
            part.wait_sent(on, tags(line[stage - 1])[0])
            part.wait_received(back, tags(cell)[0])
        part.compute(work)
        if stage < p - 1:
            part.isend(on, tags(cell)[0], 30 * face)
    for stage in range(p - 1, -1, -1):
        if stage < p - 1:
            part.irecv(on, tags(line[stage])[1], 5 * face)
            part.wait_sent(back, tags(line[stage + 1])[1])
            part.wait_received(on, tags(line[stage])[1])
        part.compute(work)
        if stage > 0:
            part.isend(back, tags(line[stage])[1], 5 * face)


def _sp_solve(part: Calls, cells: Cells, axis: int, flops: float) -> None:
    """Append a solve along one axis: 22 values a line go on, 10 come back; the outermost lines are no unknowns."""
    line, p = cells.line(axis), cells.edge
    on, back = cells.following[axis], cells.preceding[axis]

    def lines(cell: tuple[int, int, int]) -> int:
        count = 1
        for other in range(3):
            if other != axis:
                count *= cells.size(cell[other]) - (cell[other] == 0) - (cell[other] == p - 1)
        return count

    work = flops / (2 * p)
    for stage, cell in enumerate(line):
        if stage > 0:
            part.irecv(back, 0, 22 * lines(cell))
            part.waitall(2)
        part.compute(work)
        if stage < p - 1:
            part.isend(on, 0, 22 * lines(cell))
    for stage in range(p - 1, -1, -1):
        if stage < p - 1:
            part.irecv(on, 0, 10 * lines(line[stage]))
            part.waitall(2)
        part.compute(work)
        if stage > 0:
            part.isend(back, 0, 10 * lines(line[stage]))
