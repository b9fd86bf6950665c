"""NPB LU, symmetric successive over-relaxation: wavefronts run over a grid of ranks, plane by plane."""

from math import isqrt

from hopforge.model.apps.calls import DOUBLE, INT, LOGICAL, Calls

#: class → edge of the cube, iterations
SIZES = {
    "S": (12, 50), "W": (33, 300), "A": (64, 250), "B": (102, 250), "C": (162, 250), "D": (408, 300), "E": (1020, 300),
}
FROM_SOUTH, FROM_NORTH, FROM_EAST, FROM_WEST = 1, 2, 3, 4


def grid(ranks: int) -> tuple[int, int] | None:
    """Return the grid of ranks, rows (x) first: columns ≤ rows ≤ 2·columns; None if there is none."""
    for columns in range(isqrt(ranks), 0, -1):
        if ranks % columns == 0:
            rows = ranks // columns
            return (rows, columns) if rows <= 2 * columns else None
    return None


def legal(problem: str, ranks: int) -> bool:
    """Tell whether the benchmark runs on so many ranks: a grid, and at least three points along each edge of a part."""
    shape = grid(ranks) if ranks >= 1 else None
    return shape is not None and SIZES[problem][0] // shape[0] >= 3


def _part(points: int, parts: int, index: int) -> tuple[int, int]:
    """Return how many points lie before a part, and in it."""
    extra = points % parts
    size = points // parts + (index < extra)
    return index * size + (0 if index < extra else extra), size


def write(calls: Calls, problem: str, ranks: int) -> None:
    """Append the calls of one rank."""
    points, iterations = SIZES[problem]
    shape = grid(ranks)
    assert shape is not None, "checked by legal"
    rows, columns = shape
    row, column = calls.rank % rows, calls.rank // rows
    north = calls.rank - 1 if row > 0 else None
    south = calls.rank + 1 if row < rows - 1 else None
    west = calls.rank - rows if column > 0 else None
    east = calls.rank + rows if column < columns - 1 else None
    x_before, nx = _part(points, rows, row)
    y_before, ny = _part(points, columns, column)
    along_x = 5 * (nx - (north is None) - (south is None))  # unknowns of an edge of the part
    along_y = 5 * (ny - (west is None) - (east is None))
    # an iteration (lu.f: Mflops); a quarter for the right-hand side, the rest for the two sweeps
    flops = (1984.77 * points**3 - 10923.3 * points**2 + 27770.9 * points - 144010.0) / ranks
    plane = 3 * flops / 8 / (points - 2)

    def shift(part: Calls, to: int | None, source: int | None, tag: int, count: int) -> None:
        if source is not None:
            part.irecv(source, tag, count)
        if to is not None:
            part.send(to, tag, count)
        if source is not None:
            part.wait_received(source, tag)

    def halos(part: Calls) -> None:
        """Two layers in all four directions."""
        shift(part, south, north, FROM_NORTH, 10 * ny * points)
        shift(part, north, south, FROM_SOUTH, 10 * ny * points)
        shift(part, east, west, FROM_WEST, 10 * nx * points)
        shift(part, west, east, FROM_EAST, 10 * nx * points)

    def sweep(
        part: Calls, sources: tuple[int | None, int | None], to: tuple[int | None, int | None], tags: tuple[int, int]
    ) -> None:
        plane_calls = part.part()
        for source, tag, count in zip(sources, tags, (along_y, along_x), strict=True):
            if source is not None:
                plane_calls.recv(source, tag, count)
        plane_calls.compute(plane)
        for target, tag, count in zip(to, tags, (along_y, along_x), strict=True):
            if target is not None:
                plane_calls.send(target, tag, count)
        part.extend(plane_calls, points - 2)

    def right_side(part: Calls) -> None:
        halos(part)
        part.compute(flops / 4)

    def iteration(part: Calls) -> None:
        sweep(part, (north, west), (south, east), (FROM_NORTH, FROM_WEST))
        sweep(part, (south, east), (north, west), (FROM_SOUTH, FROM_EAST))

    for _ in range(3):
        calls.bcast(1, INT)
    for count in (1, 1, 5):
        calls.bcast(count)
    for _ in range(3):
        calls.bcast(1, INT)
    calls.bcast(1, LOGICAL)
    halos(calls)  # the forcing term
    iterations = calls.iterations(iterations)
    for times in (1, iterations):
        right_side(calls)
        calls.allreduce(5)
        calls.barrier()
        step = calls.part()
        iteration(step)
        right_side(step)
        calls.extend(step, times - 1)
        iteration(calls)
        if times == iterations:
            calls.allreduce(5)
        right_side(calls)
        if times == iterations:
            calls.allreduce(5)
        calls.allreduce(1)
    calls.allreduce(5)  # norm of the error
    _surface_integral(calls, points, (x_before, nx), (y_before, ny), (north, south, west, east))


def _surface_integral(
    calls: Calls, points: int, x: tuple[int, int], y: tuple[int, int],
    neighbours: tuple[int | None, int | None, int | None, int | None],
) -> None:
    """Append the integral over the box 2 … n − 1, 2 … n − 2, 3 … n − 1 (pintgr.f; numbers from 1)."""
    north, south, west, east = neighbours
    (x_before, nx), (y_before, ny) = x, y
    x_begin, x_end, x_last = _inside(2, points - 1, x_before, nx)
    y_begin, y_end, y_last = _inside(2, points - 2, y_before, ny)

    def one_way(source: int | None, receives: bool, to: int | None, sends: bool, tag: int, count: int) -> None:
        if receives and source is not None:
            calls.irecv(source, tag, count)
            calls.wait_received(source, tag)
        if sends and to is not None:
            calls.send(to, tag, count)

    one_way(east, y_last == ny, west, y_begin == 1, FROM_EAST, 2 * nx)
    one_way(south, x_last == nx, north, x_begin == 1, FROM_SOUTH, 2 * (ny + 2))
    calls.allreduce(1)
    for edge in (y_before + y_begin == 2, y_before + y_end == points - 2):
        if edge:
            one_way(south, x_last == nx, north, x_begin == 1, FROM_SOUTH, points)
    calls.allreduce(1)
    for edge in (x_before + x_begin == 2, x_before + x_end == points - 1):
        if edge:
            one_way(east, y_last == ny, west, y_begin == 1, FROM_EAST, points)
    calls.allreduce(1, DOUBLE)


def _inside(low: int, high: int, before: int, size: int) -> tuple[int, int, int]:
    """Return first and last own point of the integral's range, and the last one with a successor in it (from 1)."""
    begin, end = size + 1, 0
    first, last = before + 1, before + size
    if first >= low and last < high + size:
        begin = 1
    if first > low - size and last <= high:
        end = size
    if first <= low <= last:
        begin = low - before
    if first <= high <= last:
        end = high - before
    return begin, end, end - 1 if before + end == high else end
