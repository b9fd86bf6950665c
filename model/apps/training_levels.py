"""Collectives in several levels: the members stand in a grid, and every dimension has rings (or trees) of its own.

An all-reduce is a reduce-scatter along the first dimension, an all-reduce of what is left along the others, and an
all-gather back. With two dimensions, inside groups and between them, that is the hierarchical all-reduce; with those of
a torus, each a ring of neighbours, the one of Jain and Sabharwal (2010) and of today's tori of accelerators.
"""

from functools import lru_cache
from math import prod

from hopforge.model.workload.chakra_collectives import Template, as_template
from hopforge.model.workload.collective_rounds import Schedule, Transfer
from hopforge.model.workload.collective_sizes import PIECES
from hopforge.model.workload.collectives import schedule

#: operations that have levels
LEVELLED = ("allreduce", "allgather", "reduce_scatter")
#: operation → algorithms whose blocks are pieces of the members, or one whole
TAKEN = {
    "allreduce": ("recursive_doubling", "ring", "halving_doubling", "binomial"),
    "allgather": ("ring", "recursive_doubling", "bruck"),
    "reduce_scatter": ("pairwise", "recursive_halving", "ring"),
    "alltoall": ("pairwise", "bruck", "ring", "linear"),
}
Algorithms = tuple[tuple[str, str], ...]


def is_whole(operation: str, algorithms: dict[str, str], dims: tuple[int, ...]) -> bool:
    """Tell whether an operation moves one block, the whole vector, not one piece for each member."""
    return operation == "allreduce" and len(dims) == 1 and ("allreduce", algorithms["allreduce"]) not in PIECES


@lru_cache(maxsize=256)
def level_template(operation: str, algorithms: Algorithms, dims: tuple[int, ...]) -> Template:
    """Return the operations of each member of a grid.

    Parameters
    ----------
    operation : str
        allreduce, allgather, reduce_scatter or, in one dimension only, alltoall.
    algorithms : tuple of (str, str)
        The algorithm of each operation.
    dims : tuple of int
        Members along each dimension; the first one counts fastest in the number of a member.
    """
    names = dict(algorithms)
    if len(dims) == 1:
        return as_template(schedule(operation, names[operation], dims[0]), dims[0])
    return as_template(level_schedule(operation, names, dims), prod(dims))


def level_schedule(operation: str, algorithms: dict[str, str], dims: tuple[int, ...]) -> Schedule:
    """Return the rounds; block m is the piece of member m.

    Raises
    ------
    ValueError
        An operation without levels.
    """
    if operation not in LEVELLED:
        raise ValueError(f"operation must be one of {', '.join(LEVELLED)}, not {operation!r}")
    last = len(dims) - 1
    rounds: list[tuple[Transfer, ...]] = []
    if operation in ("reduce_scatter", "allreduce"):
        for level in range(last if operation == "allreduce" else last + 1):
            rounds += _along("reduce_scatter", algorithms, dims, level)
    if operation == "allreduce":
        rounds += _along("allreduce", algorithms, dims, last)
    if operation in ("allgather", "allreduce"):
        for level in reversed(range(last if operation == "allreduce" else last + 1)):
            rounds += _along("allgather", algorithms, dims, level)
    return tuple(rounds)


def _along(
    operation: str, algorithms: dict[str, str], dims: tuple[int, ...], level: int
) -> list[tuple[Transfer, ...]]:
    """Return the rounds of an operation on all lines of a dimension at once.

    A member of a line works with the pieces of those who have its numbers in the dimensions before.
    """
    steps = schedule(operation, algorithms[operation], dims[level])
    stride, size, members = prod(dims[:level]), dims[level], prod(dims)
    whole = operation == "allreduce" and (operation, algorithms[operation]) not in PIECES
    rounds: list[list[Transfer]] = [[] for _ in steps]
    for start in range(members):
        if start // stride % size:
            continue
        line = [start + n * stride for n in range(size)]
        pieces = _pieces(start % stride, stride, size, members)
        if whole:
            pieces = [[piece for part in pieces for piece in part]]
        for number, part in enumerate(steps):
            rounds[number] += [
                each._replace(
                    src=line[each.src], dst=line[each.dst],
                    blocks=tuple(piece for block in each.blocks for piece in pieces[block]),
                )
                for each in part
            ]
    return [tuple(part) for part in rounds]


def _pieces(before: int, stride: int, size: int, members: int) -> list[list[int]]:
    """Return for each place on a line which pieces are those of it, of all with `before` in the dimensions before."""
    return [list(range(before + n * stride, members, stride * size)) for n in range(size)]
