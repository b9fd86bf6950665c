"""What ``hopforge reproduce`` prints: the list, progress and the table of each figure."""

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from hopforge.model.output.results import write_text
from hopforge.sim.reproduce.pages import cells, run_page
from hopforge.sim.reproduce.registry import Options, Reproduction
from hopforge.sim.reproduce.runner import Outcome, run_reproduction, select
from hopforge.sim.run.kept_results import LostRunsError

LIST_COLUMNS = 80
_NAME_COLUMNS = 20


def list_text(reproductions: Mapping[str, Reproduction]) -> str:
    """Name and title of every reproduction, a line of `LIST_COLUMNS` at most each; below, what takes which option."""
    lines = []
    for reproduction in reproductions.values():
        line = f"{reproduction.name:{_NAME_COLUMNS}}  {reproduction.title}"
        lines.append(line if len(line) <= LIST_COLUMNS else line[: LIST_COLUMNS - 1].rstrip() + "…")
    for option in dict.fromkeys(name for r in reproductions.values() for name in r.uses):
        names = ", ".join(r.name for r in reproductions.values() if option in r.uses)
        lines += ["", *textwrap.wrap(f"with --{option}: {names}", LIST_COLUMNS)]
    return "\n".join(lines)


def outcome_group(outcome: Outcome) -> Group:
    """Paper, ours, deviation and assumption of one reproduction, with its assumptions and files."""
    reproduction = outcome.reproduction
    table = Table(
        box=SIMPLE_HEAD, header_style="bold", title=f"{reproduction.name}: {reproduction.title}", title_justify="left"
    )
    for column in ("quantity", reproduction.reference, "ours", "deviation", "assumption"):
        table.add_column(column, justify="right" if column in ("ours", "deviation") else "left")
    for c in outcome.comparisons:
        table.add_row(*cells(c, c.deviation_percent))
    lines = [Text(f"assumed: {text}", style="dim") for text in reproduction.assumptions]
    resumed = (
        f" ({outcome.resumed_points} of {outcome.points} points from an earlier run)" if outcome.resumed_points else ""
    )
    written = Text(f"written: {outcome.folder}{resumed}")
    shown = [] if outcome.table is None else [_shown(outcome.table)]
    return Group(*shown, table, *lines, written, Text(""))


def _shown(data: pd.DataFrame) -> Table:
    table = Table(box=SIMPLE_HEAD, header_style="bold")
    for column in data:
        table.add_column(str(column))
    for row in data.itertuples(index=False):
        table.add_row(*map(str, row))
    return table


def page_command(patterns: Sequence[str], options: Options) -> str:
    """Return the command that writes the page, with bare file names."""
    quoted = [f"'{pattern}'" if set(pattern) & set("*?[") else pattern for pattern in patterns]
    flags = [
        f"--{name} {path.name}"
        for name in ("liberty", "traces", "reference", "configs")
        if (path := getattr(options, name))
    ]
    flags += [f"--hosts {options.hosts}"] if options.hosts else []
    full = ["--full"] if options.full else []
    return " ".join(["hopforge reproduce", *quoted, *flags, *full, "--page FILE"])


def run_and_show(
    patterns: Sequence[str],
    folder: Path,
    options: Options,
    reproductions: Mapping[str, Reproduction],
    console: Console,
    page: Path | None = None,
) -> list[Outcome]:
    """Run what `patterns` select, with a progress bar, and print each comparison as it is finished.

    `page` receives all comparisons as one Markdown page.

    Raises
    ------
    UserError
        An unknown name, a missing input, a folder that can't be written.
    LostRunsError
        Points have twice ended the process that measured them; all else is done, but no page.
    KeyboardInterrupt
        Passed on; finished points are kept, and a note says so.
    """
    chosen = select(patterns, reproductions)
    outcomes = []
    lost: list[str] = []
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    try:
        with Progress(*columns, console=console, transient=True) as progress:
            for reproduction in chosen:
                task = progress.add_task(reproduction.name, total=None)

                def advance(_: Reproduction, done: int, total: int, task: TaskID = task) -> None:
                    progress.update(task, completed=done, total=total)

                def tell(line: str, name: str = reproduction.name) -> None:
                    progress.console.print(f"{name}: {line}", markup=False, highlight=False)

                try:
                    outcome = run_reproduction(reproduction, folder, options, advance, tell)
                except LostRunsError as error:  # the other figures can be measured all the same
                    lost.append(f"{reproduction.name}: {error}")
                    continue
                finally:
                    progress.remove_task(task)
                progress.console.print(outcome_group(outcome))
                outcomes.append(outcome)
    except KeyboardInterrupt:
        console.print(f"stopped; finished points are kept in {folder}, the same command continues from there")
        raise
    if lost:
        raise LostRunsError("\n".join(lost))
    if page is not None:
        write_text(page, run_page([outcome.folder for outcome in outcomes], page_command(patterns, options)), "text")
    return outcomes
