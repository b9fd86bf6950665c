"""Copies of rows; an assignment of slices would allocate memory, for rows that overlap."""

from hopforge.model.kernel.compile import inner


@inner
def copy_row(target, source):  # type: ignore[no-untyped-def]
    """Copy the words of a row."""
    for index in range(target.shape[0]):
        target[index] = source[index]


@inner
def copy_rows(target, source):  # type: ignore[no-untyped-def]
    """Copy all rows of a table."""
    for row in range(target.shape[0]):
        for index in range(target.shape[1]):
            target[row, index] = source[row, index]
