"""Files that a Python program writes: `force` replaces what is there, and mistakes are of one kind."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from hopforge.model.output.destination import replace_anything
from hopforge.model.output.results import ResultError

__all__ = ["forced", "writing"]


@contextlib.contextmanager
def forced(force: bool) -> Iterator[None]:
    """Let files of this block replace inputs and files of another kind, if `force` says so."""
    replace_anything(force)
    try:
        yield
    except ResultError as error:
        error.args = (str(error).replace("add --force", "say force=True"), *error.args[1:])
        raise
    finally:
        replace_anything(False)


@contextlib.contextmanager
def writing(path: Path, force: bool) -> Iterator[None]:
    """As `forced`, for one file that the user named.

    Raises
    ------
    ResultError
        It cannot be written.
    """
    with forced(force):
        try:
            yield
        except OSError as error:
            raise ResultError(f"{path}: cannot be written: {error.strerror or error}") from error
