"""Commands about a network that does not move: its graph, its routing tables."""

from pathlib import Path
from typing import Annotated

import typer

from hopforge.commands.terminal import ConfigPath, output_folder, progress_bar, say_written, show_rows


def topology(
    config: ConfigPath,
    export: Annotated[
        str | None,
        typer.Option(
            "--export", metavar="FORMAT", help="Write it: graphml, anynet, edges, simgrid, simgrid-full, png."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where to (default: build/NAME/topology/NAME.FORMAT)."),
    ] = None,
) -> None:
    """Show the size, distances, floor plan and cables of a network, or write it for other programs.

    The formats are GraphML, BookSim 2's anynet and an edge list, which `kind: edge_list` all reads, a platform of
    SimGrid (simgrid: shortest paths; simgrid-full: the route of every pair), and the floor plan as a picture (png).

    Example:

    hopforge topology configs/sweep_hyperx.yml --export graphml
    """
    from hopforge.model.config import load_config
    from hopforge.sim.pages.export import describe, export_file

    checked = load_config(config)
    path = None
    if export is not None or output is not None:
        path = export_file(checked, export, output, output_folder(None, "topology", config) / config.stem)
    show_rows(describe(checked))
    if path is not None:
        say_written(path)


def route(
    config: ConfigPath,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of the results (default: build/NAME/route).")
    ] = None,
    fail: Annotated[
        list[str] | None,
        typer.Option("--fail", metavar="LINK", help="A link that has failed: routers 3-7 or router.port 3.2 (repeat)."),
    ] = None,
    fail_switch: Annotated[
        list[str] | None, typer.Option("--fail-switch", metavar="ROUTER", help="A switch that has failed (repeat).")
    ] = None,
) -> None:
    """Compute routing tables and virtual layers of an irregular network: sizes, path lengths, loads, pictures.

    Section `tables` names the scheme (shortest paths, LOREN, Cowen, Thorup-Zwick, or a table of yours) and the method
    of virtual layers. Every pair is followed and the layers are proved free of deadlock. The tables are also written
    as CSV, JSON and in the form of OpenSM's forwarding tables. With failed links or switches (also section `failed`)
    the tables are computed on what is left of the network, and compared with those of all of it. Above 8192 switches:
    LOREN's tables, with sampled pairs.

    Example:

    hopforge route configs/loren64.yml --fail 3-4
    """
    from hopforge.model.config import load_config
    from hopforge.model.irregular.failure import tables_after_failure, with_options
    from hopforge.model.irregular.tables import MAX_ROUTERS, build_tables
    from hopforge.model.output.results import check_writable
    from hopforge.model.topology import build
    from hopforge.sim.pages.route_large import large_rows, sample_loren, write_large
    from hopforge.sim.pages.route_write import quality_table, route_rows, write_route

    checked = load_config(config)
    target = output_folder(output, "route", config)
    check_writable(target)
    network = build(checked.topology, checked.address)
    failed = with_options(network, checked.failed, fail or [], fail_switch or [])
    checked = checked.model_copy(update={"failed": failed})
    if network.routers > MAX_ROUTERS and checked.tables.scheme == "loren":
        with progress_bar("destinations") as advance:
            found = sample_loren(checked, network, advance)
        write_large(checked, found, target)
        show_rows(large_rows(found))
        say_written(target)
        return
    failure = None
    if failed.none:
        tables = build_tables(checked.tables, network, checked.seed)
    else:
        tables, failure = tables_after_failure(checked.tables, network, failed, checked.seed)
    with progress_bar("traffic patterns") as advance:
        quality = quality_table(checked, tables, advance)
    with progress_bar("table sizes") as advance:
        write_route(checked, tables, quality, target, advance, failure)
    show_rows(route_rows(tables, quality) + ([] if failure is None else failure.rows))
    say_written(target)
