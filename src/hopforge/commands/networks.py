"""Commands about a network that does not move: its graph, its routing tables."""

from pathlib import Path
from typing import Annotated

import typer

from hopforge.commands.configuration import read, say_unused
from hopforge.commands.terminal import (
    ConfigPath,
    complain,
    output_folder,
    progress_bar,
    say_written,
    show_rows,
    show_table,
)


def topology(
    config: ConfigPath,
    export: Annotated[
        str | None,
        typer.Option(
            "--export", metavar="FORMAT", help="Write it: graphml, anynet, edges, simgrid, simgrid-full, sst, ns3, png."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where to (default: build/NAME/topology/NAME.FORMAT)."),
    ] = None,
) -> None:
    """Show the size, distances, floor plan and cables of a network, or write it for other programs.

    The formats are GraphML, BookSim 2's anynet and an edge list, which `kind: edge_list` all reads, a platform of
    SimGrid (simgrid: shortest paths; simgrid-full: the route of every pair), a graph for SST's any-topology module
    (sst), a file of the Inet generator, which ns-3 reads (ns3), and a picture (png).

    Example:

    hopforge topology configs/sweep_hyperx.yml --export graphml
    """
    from hopforge.model.output.destination import is_special
    from hopforge.sim.pages.export import describe, describe_left_out, export_file, export_format

    checked = read(config, "topology")
    path, left_out = None, []
    if export is not None or output is not None:
        left_out = describe_left_out(checked, export_format(export, output))
        path = export_file(checked, export, output, output_folder(None, "topology", config) / config.stem)
    if path is not None and is_special(path):
        return  # what comes out of a pipe is the file and nothing else
    show_rows([*describe(checked), *left_out])
    say_unused(checked, "topology")
    if path is not None:
        say_written(path)


def bounds(
    config: ConfigPath,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of the results (default: build/NAME/bounds).")
    ] = None,
) -> None:
    """Compute what a network can carry, without a simulation: channel loads, worst permutations, ideal throughput.

    For uniform traffic and the pattern of section `traffic`: the busiest channel of minimal routing (three ways to
    share shortest ways) and Valiant's. For minimal routing the permutation of hosts that loads a channel most, exactly;
    for any routing the best throughput, by a linear program. What is too large is named before it begins.

    Example:

    hopforge bounds configs/sweep_slim_fly.yml
    """
    from hopforge.api.bounds import BoundsFound
    from hopforge.model.output.results import check_writable

    checked = read(config, "bounds")
    target = output_folder(output, "bounds", config)
    check_writable(target)
    found = BoundsFound(checked)
    for line in found.left_out:
        complain(line)
    with progress_bar(found.unit) as advance:
        found.run(advance)
    found.write(target)
    show_rows(found.rows())
    show_table(found.lines())
    say_unused(checked, "bounds")
    say_written(target)


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
    from hopforge.api.route import RouteFound
    from hopforge.model.output.results import check_writable

    checked = read(config, "route")
    target = output_folder(output, "route", config)
    check_writable(target)
    found = RouteFound(checked, fail=fail or [], fail_switch=fail_switch or [])
    with progress_bar(found.unit) as advance:
        found.run(advance)
    with progress_bar("parts of the files") as advance:
        found.write(target, progress=advance)
    show_rows(found.rows())
    say_unused(found.config, "route")
    say_written(target)
