"""C = A·B by SUMMA (van de Geijn and Watts 1997): panels are broadcast along rows and columns of a grid of ranks."""

from math import isqrt

from hopforge.model.apps.calls import AppError, Calls, written_program
from hopforge.model.workload.collectives import schedule
from hopforge.model.workload.trace import Trace


def grid(ranks: int) -> tuple[int, int]:
    """Return rows and columns, as near to a square as the number of ranks allows; rows ≤ columns."""
    rows = next(n for n in range(isqrt(ranks), 0, -1) if ranks % n == 0)
    return rows, ranks // rows


def matrix_product_trace(order: int, panel: int, ranks: int) -> Trace:
    """Return the calls of a product of two square matrices of doubles.

    Rank r holds the block of row r // columns and column r mod columns of each matrix. In each step the ranks that hold
    the next `panel` columns of A send their part along their row, those that hold the next rows of B along their
    column, down binomial trees; then everybody multiplies.

    Parameters
    ----------
    order : int
        Rows of the matrices.
    panel : int
        Columns of A (rows of B) in a step.
    ranks : int
        Any number.

    Raises
    ------
    AppError
        The matrix has fewer columns than the grid.
    """
    rows, columns = grid(ranks)
    if order < columns:
        raise AppError(
            f"workload.order: {order} is less than the {columns} columns of the {rows}×{columns} grid of {ranks} ranks"
        )

    def write(calls: Calls) -> None:
        row, column = divmod(calls.rank, columns)
        height, width = _extent(order, rows, row), _extent(order, columns, column)
        start = 0
        while start < order:
            # a panel stays within one block of A and one of B
            a_owner, a_end = _block(order, columns, start)
            b_owner, b_end = _block(order, rows, start)
            size = min(panel, a_end - start, b_end - start)
            _spread(calls, [row * columns + c for c in range(columns)], a_owner, height * size)
            _spread(calls, [r * columns + column for r in range(rows)], b_owner, width * size)
            calls.compute(2.0 * height * width * size)
            start += size

    return written_program(f"matrix_product.{order}.{ranks}", ranks, write)


def _extent(size: int, parts: int, part: int) -> int:
    return size // parts + (part < size % parts)


def _block(size: int, parts: int, at: int) -> tuple[int, int]:
    """Return the part that holds an index, and where it ends."""
    end = 0
    for part in range(parts):
        end += _extent(size, parts, part)
        if at < end:
            return part, end
    raise AssertionError(at)


def _spread(calls: Calls, members: list[int], owner: int, count: int) -> None:
    """Append this rank's part of a broadcast among some of the ranks; a trace knows no communicators."""
    own = members.index(calls.rank)
    for part in schedule("bcast", "binomial", len(members), owner):
        for transfer in part:
            if transfer.dst == own:
                calls.recv(members[transfer.src], 0, count)
        for transfer in part:
            if transfer.src == own:
                calls.send(members[transfer.dst], 0, count)
