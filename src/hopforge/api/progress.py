"""Progress on a terminal and in Jupyter: a bar on stderr, or what a caller makes of the numbers."""

import contextlib
import importlib.util
import time
from collections.abc import Callable, Iterator
from typing import TypeAlias

__all__ = ["Progress", "progress_bar", "shown"]

#: True: a bar, where somebody looks; False: nothing; a function: called with (done, in all)
Progress: TypeAlias = bool | Callable[[int, int], None]


#: seconds between two questions for the words
WORDS_S = 0.5


@contextlib.contextmanager
def progress_bar(unit: str, words: Callable[[], str] = str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar on stderr while the block runs; what it yields is called with (done, in all).

    `words` is asked twice a second for what stands behind the bar: what agents have learned.

    Without a terminal there is none; in Jupyter there is one where ipywidgets, which rich needs for it, is there.
    """
    from rich.console import Console  # noqa: PLC0415 - takes a tenth of a second
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
               TextColumn("{task.fields[words]}"))  # fmt: skip
    console = Console(stderr=True)
    seen = importlib.util.find_spec("ipywidgets") is not None if console.is_jupyter else console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=not seen) as bar:
        task, asked = bar.add_task(unit, total=None, words=""), -WORDS_S

        def advance(done: int, total: int) -> None:
            nonlocal asked
            bar.update(task, completed=done, total=total)
            if seen and time.monotonic() - asked >= WORDS_S:
                asked = time.monotonic()
                bar.update(task, words=words())

        yield advance


@contextlib.contextmanager
def shown(progress: Progress, unit: str, words: Callable[[], str] = str) -> Iterator[Callable[[int, int], None]]:
    """Yield what is called with (done, in all), as the argument `progress` of a function asks for it."""
    if callable(progress):
        yield progress
    elif not isinstance(progress, bool | None):
        raise TypeError(f"progress must be true, false or a function of (done, in all), not {progress!r}")
    elif progress:
        with progress_bar(unit, words) as advance:
            yield advance
    else:
        yield lambda done, total: None
