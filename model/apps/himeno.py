"""The Himeno benchmark: Jacobi's method for Poisson's equation on a box, halos by messages (himenoBMTxps, MPI)."""

from hopforge.model.apps.calls import FLOAT, AppError, Calls, written_program
from hopforge.model.workload.trace import Trace

#: size → edges of the box (the program's arrays have one more)
SIZES = {"XS": (64, 32, 32), "S": (128, 64, 64), "M": (256, 128, 128), "L": (512, 256, 256), "XL": (1024, 512, 512)}
#: operations a point and iteration, as the benchmark counts them
FLOPS = 34


def grid(size: str, ranks: int) -> tuple[int, int, int] | None:
    """Return the grid of ranks with the least surface of a part, x first; None if every part would be empty."""
    box = SIZES[size]
    best, shape = None, None
    for x in range(1, min(ranks, box[0]) + 1):
        if ranks % x:
            continue
        for y in range(1, min(ranks // x, box[1]) + 1):
            z = ranks // x // y
            if ranks % (x * y) or z > box[2]:
                continue
            a, b, c = box[0] / x, box[1] / y, box[2] / z
            surface = a * b * (z > 1) + b * c * (x > 1) + a * c * (y > 1)
            if best is None or surface < best:
                best, shape = surface, (x, y, z)
    return shape


def himeno_trace(size: str, iterations: int, ranks: int) -> Trace:
    """Return the calls of so many iterations: the sum of the squared residuals, then the halos, z first.

    Parameters
    ----------
    size : str
        ``XS``, ``S``, ``M``, ``L`` or ``XL``.
    iterations : int
        Jacobi steps; the benchmark itself runs as many as fit in a minute.
    ranks : int
        Any number that can be cut in three factors no larger than the edges.

    Raises
    ------
    AppError
        No such factors.
    """
    shape = grid(size, ranks)
    if shape is None:
        raise AppError(
            f"workload.ranks: {ranks} ranks cannot be put in a grid of at most "
            f"{'×'.join(map(str, SIZES[size]))}, the points of size {size}"
        )
    grid_shape = shape

    def write(calls: Calls) -> None:
        weight = [1, grid_shape[0], grid_shape[0] * grid_shape[1]]
        place = [calls.rank // w % n for w, n in zip(weight, grid_shape, strict=True)]
        own = [edge // n + (at < edge % n) for edge, n, at in zip(SIZES[size], grid_shape, place, strict=True)]
        step = calls.part()
        step.compute(FLOPS * own[0] * own[1] * own[2])
        for axis in (2, 1, 0):
            face = (own[axis - 2] + 2) * (own[axis - 1] + 2)
            near = [
                calls.rank + way * weight[axis] for way in (-1, 1) if 0 <= place[axis] + way < grid_shape[axis]
            ]
            for other in near:
                step.irecv(other, axis, face, FLOAT)
            for other in near:
                step.isend(other, axis, face, FLOAT)
            if near:
                step.waitall(2 * len(near))
        step.allreduce(1, FLOAT)
        calls.extend(step, iterations)

    return written_program(f"himeno.{size}.{ranks}", ranks, write)
