"""The tables that ``hopforge reproduce`` prints."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from hopforge.model.output.results import write_text
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


def cells(comparison: Comparison) -> tuple[str, str, str, str, str]:
    """Quantity, paper, ours, deviation and assumption as texts."""
    ours = with_unit(comparison.ours, comparison.unit)
    return comparison.quantity, paper_text(comparison), ours, deviation_text(comparison), comparison.assumption


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
        table.add_row(*cells(c))
    lines = [Text(f"assumed: {text}", style="dim") for text in reproduction.assumptions]
    resumed = (
        f" ({outcome.resumed_points} of {outcome.points} points from an earlier run)" if outcome.resumed_points else ""
    )
    written = Text(f"written: {outcome.folder}{resumed}")
    return Group(table, *lines, written, Text(""))


_PAGE_HEAD = """# Reproduced figures

What the papers state beside what we measure. The papers' plots are lost: a dash means that their text states no
value. Deviation is (ours − paper)/paper. Each command also writes the data (CSV), the figure (PNG) and what is needed
to repeat it (JSON).

This page is written by `{command}`.
"""


def markdown_section(outcome: Outcome, options: Options) -> str:
    """Heading, command, assumptions and table of one reproduction, as Markdown."""
    reproduction = outcome.reproduction
    flags = "".join(f" --{name} {path.name}" for name in reproduction.uses if (path := getattr(options, name)))
    full = " --full" if options.full else ""
    source = reproduction.source[0].upper() + reproduction.source[1:]
    return "\n".join(
        [
            f"## {reproduction.name}: {reproduction.title}",
            "",
            f"{source}. `hopforge reproduce {reproduction.name}{flags}{full}`",
            "",
            *(f"- {text}" for text in reproduction.assumptions),
            "",
            "| quantity | paper | ours | deviation | assumption |",
            "|---|---|---|---|---|",
            *(f"| {' | '.join(cells(c))} |" for c in outcome.comparisons),
            "",
        ]
    )


def markdown_page(outcomes: Sequence[Outcome], patterns: Sequence[str], options: Options) -> str:
    """Page of all outcomes; it names the command that wrote it, with bare file names."""
    quoted = [f"'{pattern}'" if set(pattern) & set("*?[") else pattern for pattern in patterns]
    flags = [
        f"--{name} {path.name}"
        for name in ("liberty", "traces", "reference", "configs")
        if (path := getattr(options, name))
    ]
    full = ["--full"] if options.full else []
    command = " ".join(["hopforge reproduce", *quoted, *flags, *full, "--page FILE"])
    return "\n".join([_PAGE_HEAD.format(command=command), *(markdown_section(o, options) for o in outcomes)])


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

                def tell(line: str, name: str = reproduction.name) -> None:
                    progress.console.print(f"{name}: {line}", markup=False, highlight=False)

                outcome = run_reproduction(reproduction, folder, options, advance, tell)
                progress.remove_task(task)
                progress.console.print(outcome_group(outcome))
                outcomes.append(outcome)
    except KeyboardInterrupt:
        console.print(f"stopped; finished points are kept in {folder}, the same command continues from there")
        raise
    if page is not None:
        write_text(page, markdown_page(outcomes, patterns, options))
    return outcomes
