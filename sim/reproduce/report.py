"""The tables that ``hopforge reproduce`` prints."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from hopforge.sim.reproduce.registry import Comparison, Options, Reproduction
from hopforge.sim.reproduce.runner import Outcome, run_reproduction, select


def format_value(value: float | None) -> str:
    """Four significant digits, or a dash for None."""
    if value is None:
        return "–"
    return (f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}").replace("-", "−")


def with_unit(value: float | None, unit: str) -> str:
    """`format_value` and the unit, if there are any."""
    return f"{format_value(value)} {unit}" if unit and value is not None else format_value(value)


def paper_text(comparison: Comparison) -> str:
    """Give the paper's wording where it states a bound, else its number with the unit."""
    return comparison.claim or with_unit(comparison.paper, comparison.unit)


def deviation_text(comparison: Comparison) -> str:
    """Signed deviation in %, or a dash."""
    deviation = comparison.deviation_percent
    return "–" if deviation is None else f"{deviation:+.1f} %".replace("-", "−")


def list_table(reproductions: Mapping[str, Reproduction]) -> Table:
    """Names, titles, sources and the options that each reproduction takes."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("name", "shows", "source", "options"):
        table.add_column(column, no_wrap=column == "name")
    for reproduction in reproductions.values():
        options = ", ".join(f"--{name}" for name in reproduction.uses)
        table.add_row(reproduction.name, reproduction.title, reproduction.source, options)
    return table


def outcome_group(outcome: Outcome) -> Group:
    """Paper, ours, deviation and assumption of one reproduction, with its assumptions and files."""
    reproduction = outcome.reproduction
    table = Table(
        box=SIMPLE_HEAD, header_style="bold", title=f"{reproduction.name}: {reproduction.title}", title_justify="left"
    )
    for column in ("quantity", "paper", "ours", "deviation", "assumption"):
        table.add_column(column, justify="right" if column in ("ours", "deviation") else "left")
    for c in outcome.comparisons:
        table.add_row(c.quantity, paper_text(c), with_unit(c.ours, c.unit), deviation_text(c), c.assumption)
    lines = [Text(f"assumed: {text}", style="dim") for text in reproduction.assumptions]
    resumed = (
        f" ({outcome.resumed_points} of {outcome.points} points from an earlier run)" if outcome.resumed_points else ""
    )
    written = Text(f"written: {outcome.folder}{resumed}")
    return Group(table, *lines, written, Text(""))


def markdown_rows(outcome: Outcome) -> str:
    """Rows of a Markdown table: quantity, paper, ours, deviation, assumption."""
    return "\n".join(
        f"| {c.quantity} | {paper_text(c)} | {with_unit(c.ours, c.unit)} | {deviation_text(c)} | {c.assumption} |"
        for c in outcome.comparisons
    )


def run_and_show(
    patterns: Sequence[str], folder: Path, options: Options, reproductions: Mapping[str, Reproduction], console: Console
) -> list[Outcome]:
    """Run what `patterns` select, with a progress bar, and print each comparison as it is finished.

    Raises
    ------
    UserError
        An unknown name, a missing input, a folder that can't be written.
    KeyboardInterrupt
        Passed on; finished points are kept, and a note says so.
    """
    chosen = select(patterns, reproductions)
    outcomes = []
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

                outcome = run_reproduction(reproduction, folder, options, advance)
                progress.remove_task(task)
                progress.console.print(outcome_group(outcome))
                outcomes.append(outcome)
    except KeyboardInterrupt:
        console.print(f"stopped; finished points are kept in {folder}, the same command continues from there")
        raise
    return outcomes
