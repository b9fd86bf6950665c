"""The command that measures gates."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hopforge.commands.configuration import read, say_unused
from hopforge.commands.terminal import ConfigPath, complain, output_folder, show_rows, step_times

if TYPE_CHECKING:
    from rich.console import Console

    from hopforge.gen.synth.result import SynthResult
    from hopforge.model.config import Config

#: what makes the other parts ready
_GENERATED = {
    "router": "gen router", "network": "gen network", "q_table": "gen q-table", "collectives": "gen collectives",
    "rule_cache": "gen rule-cache", "acknowledges": "cosim --part service_host",
}  # fmt: skip


def timing(
    config: ConfigPath,
    *,
    liberty: Annotated[Path, typer.Option(metavar="FILE", help="Cell library (.lib, .lib.gz).")],
    part: Annotated[
        str, typer.Option(help="lookup, router (number 0), network, q_table, collectives, rule_cache.")
    ] = "lookup",
    period_ns: Annotated[
        float | None, typer.Option("--period-ns", help="Clock period in the constraints (default: the package's).")
    ] = None,
    recipe: Annotated[
        str | None, typer.Option(help="Recipe of abc (default: lut-buffered, else lut-fast).")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of all files (default: build/NAME/timing).")
    ] = None,
    timeout_s: Annotated[
        float, typer.Option("--timeout-s", min=1, help="Limit of processor time of the mapping.")
    ] = 300,
) -> None:
    """Check the constraints (.sdc) of a generated part: map it to cells, let OpenSTA read and time it.

    Exit status 1 if a name is not there, something has no constraint, or the clock period is not kept.

    Example:

    hopforge timing configs/demo.yml --liberty cells.lib
    """
    from hopforge.gen.synth.cells import read_library
    from hopforge.gen.synth.package_timing import check_timing

    checked, library = read(config, _GENERATED.get(part, "timing")), read_library(liberty)
    with step_times() as steps:
        report = check_timing(
            checked, part, library, period_ns=period_ns, recipe=recipe,
            folder=output_folder(output, "timing", config), timeout_s=timeout_s, progress=steps.begin,
        )  # fmt: skip
    show_rows(report.rows())
    say_unused(checked, f"timing --part {part}")
    if report.problems:
        raise typer.Exit(1)


def synth(
    config: ConfigPath,
    *,
    liberty: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Cell library (.lib, .lib.gz); without: gates and levels.")
    ] = None,
    block: Annotated[list[str] | None, typer.Option(help="Only this block (repeat for more).")] = None,
    blocks: Annotated[
        str,
        typer.Option(
            metavar="SET",
            help="lookup, router, q_table, acknowledges, collectives, rule_cache; allocators or inference (of DQN): "
            "fixed tables.",
        ),
    ] = "lookup",
    recipe: Annotated[list[str] | None, typer.Option(help="Only this recipe of abc (repeat for more).")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of the results (default: build/NAME/synth).")
    ] = None,
    timeout_s: Annotated[
        float, typer.Option("--timeout-s", min=1, help="Limit of processor time of one recipe on one block.")
    ] = 300,
    memory_ns: Annotated[
        float, typer.Option("--memory-ns", min=0, help="From a clock edge to what a memory outside reads, ns.")
    ] = 0.1,
    stages: Annotated[
        bool, typer.Option("--stages", help="Show the shortest period of each stage of a deep engine (needs OpenSTA).")
    ] = False,
) -> None:
    """Measure area and delay of each block of lookup path, router or table: best of several recipes, ideal wires.

    The delay is OpenSTA's if it is installed (clocked blocks: shortest period with flip-flops), else that of abc
    without flip-flops. Netlists, timing reports and a table of every recipe stay in the folder.

    Example:

    hopforge synth configs/demo.yml --block crc_index
    """
    from rich.console import Console
    from rich.table import Table

    from hopforge.gen.synth.area_and_delay import synthesize_config
    from hopforge.gen.synth.result import medians
    from hopforge.model.errors import UserError

    if stages and (liberty is None or not any(name.startswith("engine_deep") for name in block or ())):
        raise UserError("--stages is for --block engine_deep with --liberty")
    checked = read(config, "synth" if blocks == "lookup" else _GENERATED.get(blocks, "gen q-table"))
    status = Console(stderr=True).status("")
    with status:
        found = synthesize_config(
            checked, liberty, blocks=blocks, names=block, recipes=recipe,
            folder=output_folder(output, "synth", config), timeout_s=timeout_s, memory_ns=memory_ns,
            progress=lambda name: status.update(f"synthesizing {name}"),
        )  # fmt: skip
    table = Table(box=None, pad_edge=False)
    headings = ("block", "recipe", "cells", "flops", "area um2", "abc ns", "OpenSTA ns", "levels")
    for heading in headings:
        table.add_column(heading, justify="left" if heading in ("block", "recipe") else "right", no_wrap=True)
    table.columns[0].min_width = max(len(results[0].block) for results in found)
    for results in found:
        best = results[0]
        figures = (
            None if best.area_um2 is None else f"{best.area_um2:.0f}",
            None if best.delay_ns is None else f"{best.delay_ns:.3f}",
            None if best.sta_ns is None else f"{best.sta_ns:.3f}",
            None if best.levels is None else f"{best.levels}",
        )
        table.add_row(best.block, best.recipe, f"{best.cells}", f"{best.flops}", *(figure or "-" for figure in figures))
    console = Console(soft_wrap=True, highlight=False)
    console.print(table)
    if stages:
        _show_stages(console, found)
    for results in found:
        middle = medians(results)
        if middle is not None:
            area, delay = middle
            console.print(f"median of {len(results)} recipes, {results[0].block}: {area:.0f} um2, {delay:.3f} ns")
        if results[0].path:
            console.print(f"critical path of {results[0].block}: {' > '.join(results[0].path)}", markup=False)
    if blocks == "lookup" or blocks in _GENERATED:
        say_unused(checked, f"synth --blocks {blocks}", also_unused=_left_out(checked) if blocks == "router" else ())
    else:
        complain(f"hopforge synth --blocks {blocks} measures a fixed table; it uses no section of the file")


def _left_out(config: "Config") -> list[str]:
    """Return what a generated router has beside the router, which is measured alone."""
    unused = ["csr"] if "csr" in config.written else []
    return [*unused, "router.host_ports"] if config.router.host_ports != "flits" else unused


def _show_stages(console: "Console", found: "list[list[SynthResult]]") -> None:
    """Print the shortest period of each stage, by recipe; only deep engines have stages that are known by name."""
    from rich.table import Table

    from hopforge.gen.synth.stages import by_stage
    from hopforge.model.errors import UserError

    deep = [results for results in found if results[0].block.startswith("engine_deep") and results[0].stages_ns]
    if not deep:
        raise UserError("--stages needs OpenSTA (sta), which is missing: apt-get install opensta")
    for results in deep:
        periods = {result.recipe: by_stage(result.stages_ns) for result in results}
        table = Table(box=None, pad_edge=False)
        table.add_column("stage, ns", no_wrap=True)
        for recipe in periods:
            table.add_column(recipe, justify="right", no_wrap=True)
        for stage in periods[results[0].recipe]:
            table.add_row(stage, *(f"{one[stage]:.3f}" if stage in one else "-" for one in periods.values()))
        console.print(table)
