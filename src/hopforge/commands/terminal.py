"""What the commands share on the terminal: the argument CONFIG, results, progress, complaints."""

import contextlib
import functools
import inspect
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hopforge.api.progress import progress_bar  # noqa: F401 - the commands take it from here

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

ConfigPath = Annotated[Path, typer.Argument(metavar="CONFIG", help="YAML file of a switch and its network.")]
"""Argument of every command that reads a configuration."""

Force = Annotated[bool, typer.Option("--force", help="Replace inputs and files of another kind, too.")]
"""Option of every command that writes."""


def with_force(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command that writes the option ``--force``."""
    signature = inspect.signature(command)
    if "output" not in signature.parameters:
        return command

    @functools.wraps(command)
    def run(*arguments: Any, force: bool, **options: Any) -> None:
        from hopforge.model.output.destination import replace_anything

        replace_anything(force)
        command(*arguments, **options)

    option = inspect.Parameter("force", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Force)
    run.__signature__ = signature.replace(parameters=[*signature.parameters.values(), option])  # type: ignore[attr-defined]
    run.__annotations__ = {**command.__annotations__, "force": Force}
    return run


def output_folder(output: Path | None, command: str, config: Path | None = None) -> Path:
    """Return where a command writes: `output` if it is given, else ``build/NAME/COMMAND``.

    NAME is the name of the YAML file without its ending; without a file it is ``build/COMMAND``. The words of a command
    of two words are folders: ``gen lookup`` writes to ``build/NAME/gen/lookup``.
    """
    if output is not None:
        return output
    return Path("build", *([] if config is None else [config.stem]), *command.split())


_WIDEST = 10_000  # characters of a row of a table in a file


def show_table(rows: Sequence[Sequence[str]], left: int = 1) -> None:
    """Print headings and rows in columns, nothing cut; all but the first `left` are flush right."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for number, heading in enumerate(rows[0]):
        table.add_column(heading, justify="left" if number < left else "right", overflow="fold")
    for row in rows[1:]:
        table.add_row(*map(Text, row))
    console = Console()
    if not console.is_terminal:  # a file has no edge: each row is one line
        console.width = max(
            console.width, console.measure(table, options=console.options.update(width=_WIDEST)).maximum
        )
    console.print(table)


def show_rows(rows: Iterable[tuple[str, str]]) -> None:
    """Print pairs of subject and words as two columns."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(overflow="fold")
    table.add_column(overflow="fold")  # no path is cut
    for subject, words in rows:  # words are the user's, too: brackets in them are no markup
        table.add_row(Text(subject, style="bold"), Text(words))
    Console().print(table)


def say_written(path: Path) -> None:
    """Print where the results are."""
    from rich.console import Console

    Console().print(f"wrote {path}", markup=False, highlight=False, soft_wrap=True)


_MOST_LINES, _LONGEST_LINE, _LONGEST_WORD = 20, 2000, 240


def complain(text: str) -> None:
    """Print every line to stderr, behind the name of the program; of many lines the first, of long words both ends."""
    lines = text.rstrip("\n").split("\n")
    for line in lines[:_MOST_LINES]:
        typer.echo(f"hopforge: {_shortened(line)}", err=True)
    if len(lines) > _MOST_LINES:
        typer.echo(f"hopforge: and {len(lines) - _MOST_LINES} more", err=True)


def _shortened(line: str) -> str:
    words = [_both_ends(word, _LONGEST_WORD) for word in line.split(" ")]
    shown = _both_ends(" ".join(words), _LONGEST_LINE)
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in shown)


def _both_ends(text: str, most: int) -> str:
    """Return a text whole, or its ends and the number of characters in between."""
    end = most // 4
    gone = len(text) - most
    return text if gone <= 0 else f"{text[: most - end]}…[{gone} more]…{text[-end:]}"


@contextlib.contextmanager
def working() -> Iterator[None]:
    """Show on stderr, on a terminal, what long work says of how far it is (`model.progress.tell`) in the block."""
    from rich.console import Console
    from rich.text import Text

    from hopforge.model.progress import told

    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status("") as status, told(lambda words: status.update(Text(words))):  # no markup: names of users
        yield


class StepTimes:
    """Shows the steps of a long command on stderr: the present one with a bar, those that are done with their time."""

    def __init__(self, console: "Console", bar: "Progress") -> None:
        self._console, self._bar = console, bar
        self._task: TaskID | None = None
        self._start, self._step = 0.0, ""

    def begin(self, step: str) -> None:
        """Finish the present step and start the next one."""
        self.end()
        self._start, self._step = time.perf_counter(), step
        self._task = self._bar.add_task(step, total=None)

    def advance(self, done: int, total: int) -> None:
        """Move the bar."""
        if self._task is not None:
            self._bar.update(self._task, completed=done, total=total)

    def end(self) -> None:
        """Print the present step and its time."""
        if self._task is not None:
            self._bar.remove_task(self._task)
            self._task = None
            self._console.print(f"{time.perf_counter() - self._start:6.1f} s  {self._step}", highlight=False)


@contextlib.contextmanager
def step_times() -> Iterator[StepTimes]:
    """Show the steps of the block on stderr while it runs."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        steps = StepTimes(console, bar)
        yield steps
        steps.end()
