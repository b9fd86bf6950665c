"""The command that measures the figures of papers again."""

from pathlib import Path
from typing import Annotated

import typer

from hopforge.commands.terminal import complain, output_folder
from hopforge.model.errors import UserError
from hopforge.model.seeds import MOST_SEED


def reproduce(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Figures, or patterns: lookup.fig4.5, 'lookup.*'.")
    ] = None,
    *,
    show_list: Annotated[bool, typer.Option("--list", help="List the figures, a line each.")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of the results (default: build/reproduce).")
    ] = None,
    liberty: Annotated[
        Path | None, typer.Option(help="Cell library (.lib, .lib.gz) for areas and delays; without: gates, levels.")
    ] = None,
    traces: Annotated[Path | None, typer.Option(help="Folder with more recorded programs (*.tar.xz).")] = None,
    reference: Annotated[
        Path | None, typer.Option(metavar="CSV", help="booksim: other runs of BookSim 2 to compare with.")
    ] = None,
    configs: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="booksim: folder with a CASE.yml or CASE.cfg (BookSim's own) for each case."),
    ] = None,
    hosts: Annotated[
        int | None, typer.Option(help="routing.*: networks of about 100, 1000 (--full) or 10000 hosts.")
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Figures that draw at random: more trials.")] = False,
    seed: Annotated[int, typer.Option(min=0, max=MOST_SEED, help="Of every random draw.")] = 1,
    page: Annotated[Path | None, typer.Option(help="Write all comparisons to this file, as Markdown.")] = None,
) -> None:
    """Measure figures of the papers again: the paper's value, ours, the deviation and what was assumed.

    Writes data (CSV), figure (PNG), comparison (CSV) and metadata (JSON) of each to a folder of its name. A run that
    you stop goes on where it was; points are measured again when hopforge or an input has changed.

    Example:

    hopforge reproduce 'lookup.fig5.*'
    """
    from rich.console import Console

    from hopforge.sim.reproduce import REPRODUCTIONS, Options
    from hopforge.sim.reproduce.booksim.comparison import own_reproductions, refused_cases
    from hopforge.sim.reproduce.report import list_text, run_and_show
    from hopforge.sim.reproduce.routing.networks import SIZES

    console = Console()
    if hosts is not None and hosts not in SIZES:
        raise UserError(f"--hosts: must be {', '.join(map(str, SIZES[:-1]))} or {SIZES[-1]}, not {hosts}")
    options = Options(full, seed, liberty, traces, reference, configs, hosts)
    known = REPRODUCTIONS if reference is None and configs is None else own_reproductions(options)
    refused = [] if known is REPRODUCTIONS else refused_cases(options)
    if refused:
        complain("\n".join(refused))
    if show_list or not names:
        typer.echo(list_text(known))
        return
    run_and_show(names, output_folder(output, "reproduce"), options, known, console, page)
