"""The commands that show results."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hopforge.commands.terminal import complain, progress_bar, say_written, show_rows

if TYPE_CHECKING:
    from hopforge.sim.pages.find import Problem, ResultSet

_MOST_PROBLEMS = 20


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder with results of any commands, such as build.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="The page (default: DIR/report.html).")
    ] = None,
    rows: Annotated[int, typer.Option(min=1, help="Rows of a table that are shown.")] = 200,
) -> None:
    """Gather all results below a folder in one page: plots, tables, and the command that repeats each.

    The page needs no network: it holds everything, with plots that zoom and whose axes can be changed, tables that sort
    and filter, in light and dark. Files that cannot be read are named on the page and here.

    Example:

    hopforge report build
    """
    import shlex

    from hopforge.model.errors import UserError
    from hopforge.model.output.destination import is_special
    from hopforge.model.output.results import command_words
    from hopforge.sim.pages import check_folder, find_results, result_page
    from hopforge.sim.pages.report import check_page, write_report

    target = folder / "report.html" if output is None else output
    check_folder(folder)
    check_page(target)
    with progress_bar("files") as advance:
        found = find_results(folder, target, advance)
    if not found.sets:
        _tell(found.problems)
        raise UserError(f"{folder}: no results of hopforge below it (CSV, Parquet, JSON metadata, PNG)")
    write_report(result_page(found, shlex.join(command_words()), rows=rows), target)
    _tell([*found.problems, *(f"{name}: metadata.json does not list it" for name in found.unlisted)])
    if is_special(target):
        return  # what comes out of a pipe is the page and nothing else
    show_rows([(result.folder, _words(result)) for result in found.sets])
    say_written(target)


def view(
    folder: Annotated[
        Path,
        typer.Argument(metavar="RESULT", help="Result of net, series, trace, hits, route, app (of a graph)."),
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="The page (default: RESULT/view.html).")
    ] = None,
) -> None:
    """Draw the network of a result in one page to move through: loads of links, buffers, caches, failures, packets.

    Links have the colours of their load, routers of their buffers or hit rate, low to high. With series and failures a
    slider moves through time, with a trace through the way of a packet. A click on a router shows its ports, virtual
    channels and caches. The page needs no network and no server.

    Example:

    hopforge view build/sweep_torus8/net
    """
    import shlex

    from hopforge.model.output.destination import is_special
    from hopforge.model.output.results import command_words
    from hopforge.sim.pages import check_folder
    from hopforge.sim.pages.report import check_page, write_report
    from hopforge.sim.pages.view_page import one_result, view_page

    check_folder(folder)
    target = folder / "view.html" if output is None else output
    check_page(target)
    with progress_bar("files") as advance:
        result = one_result(folder, target, advance)
    page = view_page(result, shlex.join(command_words()))
    write_report(page, target)
    if is_special(target):
        return
    show_rows([("network", page.summary), ("result", result.command or "not known")])
    say_written(target)


def compare(
    first: Annotated[Path, typer.Argument(metavar="RUN", help="Result of net, sweep, app or hits.")],
    second: Annotated[Path, typer.Argument(metavar="RUN", help="Another one of the same kind.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of table and plot (default: build/compare).")
    ] = None,
) -> None:
    """Compare two results: what was changed between them, how their figures differ, and whether that is significant.

    Figures differ if the 95 % interval of their difference leaves out 0. It comes from the interval of each run, or,
    with several seeds, from these. Where runs have neither, the difference is shown without a verdict.

    Example:

    hopforge compare build/one/sweep build/two/sweep
    """
    from hopforge.commands.terminal import output_folder, show_table
    from hopforge.model.output.results import check_writable
    from hopforge.sim.pages.compare import compare_results, subject_at
    from hopforge.sim.pages.compare_write import comparison_lines, comparison_rows, write_comparison

    folder = output_folder(output, "compare")
    check_writable(folder)
    found = compare_results(subject_at(first), subject_at(second))
    write_comparison(found, folder)
    show_rows(comparison_rows(found))
    show_table(comparison_lines(found))
    say_written(folder)


def _words(result: "ResultSet") -> str:
    counts = (len(result.tables), "table"), (len(result.pictures), "picture")
    return f"{result.kind}: " + ", ".join(f"{number} {name}{'' if number == 1 else 's'}" for number, name in counts)


def _tell(problems: "Sequence[Problem | str]") -> None:
    for problem in problems[:_MOST_PROBLEMS]:
        complain(f"not shown: {problem}")
    if len(problems) > _MOST_PROBLEMS:
        complain(f"not shown: {len(problems) - _MOST_PROBLEMS} files more")
