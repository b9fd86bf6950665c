"""What long work far below a command says of how far it is, for whoever listens."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

_listeners: list[Callable[[str], None]] = []


@contextmanager
def told(listener: Callable[[str], None]) -> Iterator[None]:
    """Hand the words of `tell` to a listener while the block runs."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.pop()


def tell(words: str) -> None:
    """Say how far the work is; nothing happens where nobody listens.

    Examples
    --------
    >>> with told(print):
    ...     tell("2 of 5")
    2 of 5
    """
    if _listeners:
        _listeners[-1](words)
