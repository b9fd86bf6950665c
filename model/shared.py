"""Work that several commands need, done once while `hopforge check` prepares them one after the other."""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

Found = TypeVar("Found")
_kept: list[dict[Hashable, Any]] = []


@contextmanager
def sharing() -> Iterator[None]:
    """Keep what `once` makes until the block ends, or the one around it."""
    _kept.append(_kept[-1] if _kept else {})
    try:
        yield
    finally:
        _kept.pop()


def once(key: Hashable, make: Callable[[], Found]) -> Found:
    """Return what `make` makes, or inside `sharing` what it made for the same key before.

    Examples
    --------
    >>> with sharing():
    ...     once("key", list) is once("key", list)
    True
    """
    if not _kept:
        return make()
    known = _kept[-1]
    if key not in known:
        known[key] = make()
    found: Found = known[key]
    return found
