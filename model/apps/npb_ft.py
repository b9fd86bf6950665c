"""NPB FT, Fourier transform of a box: slabs (or, with more ranks than planes, pencils) are transposed."""

from math import log, log2

from hopforge.model.apps.calls import COMPLEX16, INT, LOGICAL, Calls

#: class → edges of the box, iterations
SIZES = {
    "S": (64, 64, 64, 6), "W": (128, 128, 32, 6), "A": (256, 256, 128, 6), "B": (512, 256, 256, 20),
    "C": (512, 512, 512, 20), "D": (2048, 1024, 1024, 25), "E": (4096, 2048, 2048, 25),
}


def grid(problem: str, ranks: int) -> tuple[int, int]:
    """Return the processor array np1 × np2: one row, as long as every rank has a plane."""
    planes = SIZES[problem][2]
    return (1, ranks) if ranks <= planes else (planes, ranks // planes)


def legal(problem: str, ranks: int) -> bool:
    """Tell whether the benchmark runs on so many ranks: a power of two that divides the box in every layout."""
    x, y, z, _ = SIZES[problem]
    if ranks < 1 or ranks & (ranks - 1):
        return False
    first, second = grid(problem, ranks)
    return max(first, 1) <= min(x, y) and second <= min(y, z)


def write(calls: Calls, problem: str, ranks: int) -> None:
    """Append the calls of one rank."""
    x, y, z, iterations = SIZES[problem]
    first, second = grid(problem, ranks)
    points = x * y * z
    own = points // ranks
    # operations as ft.f counts them: (14.8157 + 7.19641 ln N + (5.23518 + 7.21113 ln N)·iterations)·N
    setup, forward = 14.8157 * own, 7.19641 * log(points) * own
    evolve, backward = 5.23518 * own, 7.21113 * log(points) * own
    share = [log2(edge) / log2(points) for edge in (x, y, z)]

    def transpose_rows(part: Calls) -> None:
        if first == 1:
            part.alltoall(own // ranks, COMPLEX16)
        else:  # among the ranks of one row; a trace knows no communicators, so in pairs
            _pairs(part, calls.rank // second * second, 1, second, own // second)

    def transpose_columns(part: Calls) -> None:
        _pairs(part, calls.rank % second, second, first, own // first)

    def transform(part: Calls, flops: float, inverse: bool) -> None:
        if ranks == 1:
            part.compute(flops)
        elif first == 1:
            parts = [share[0] + share[1], share[2]]
            part.compute(flops * parts[inverse])
            transpose_rows(part)
            part.compute(flops * parts[not inverse])
        else:
            steps = [transpose_columns, transpose_rows]
            parts = list(share)
            if inverse:
                steps.reverse()
                parts.reverse()
            part.compute(flops * parts[0])
            for step, following in zip(steps, parts[1:], strict=True):
                step(part)
                part.compute(flops * following)

    for _ in range(4):
        calls.bcast(1, INT)
    calls.bcast(1, LOGICAL)
    calls.compute(setup)
    transform(calls, forward, inverse=False)
    calls.barrier()
    calls.compute(setup)
    transform(calls, forward, inverse=False)
    step = calls.part()
    step.compute(evolve)
    transform(step, backward, inverse=True)
    step.reduce(1, COMPLEX16)
    calls.extend(step, calls.iterations(iterations))


def _pairs(part: Calls, start: int, stride: int, members: int, count: int) -> None:
    """Write an all-to-all of `members` ranks as exchanges in pairs, the rank itself left out."""
    own = (part.rank - start) // stride
    for turn in range(1, members):
        other = start + stride * (own ^ turn)
        part.exchange(other, count, other, count, COMPLEX16)
