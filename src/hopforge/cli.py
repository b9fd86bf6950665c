"""Command line of hopforge: every command parses, calls one function, and turns a user's mistake into one line."""

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from hopforge import __version__
from hopforge.model.errors import UserError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

START = "Start here"
HARDWARE = "From gates"
NETWORK = "To networks"
PAPERS = "Against the papers"

app = typer.Typer(
    name="hopforge",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with **hopforge doctor** and **hopforge demo**; each command tells more with --help.",
)

ConfigPath = Annotated[Path, typer.Argument(metavar="CONFIG", help="YAML file of a switch and its network.")]
"""Argument of every command that reads a configuration."""


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"hopforge {__version__}")
        raise typer.Exit


@app.callback()
def hopforge(
    _version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and leave.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show where an error came from (also: HOPFORGE_TRACEBACK=1).")
    ] = False,
) -> None:
    """Switches and routing of high-performance networks, from one YAML file.

    The file describes a switch and the network that it is built into (see configs/ and docs/configuration.md). From it
    come Verilog of the lookup path with its routing cache, a co-simulation that checks the Verilog cycle by cycle, and
    the hit rates of the caches when a workload runs over the whole network.
    """
    if debug:
        os.environ["HOPFORGE_TRACEBACK"] = "1"


@app.command(rich_help_panel=START)
def doctor() -> None:
    """Show which tools and extras are here, what each is for, and how to get what is missing."""
    from rich.console import Console
    from rich.table import Table

    from hopforge.sim.doctor import survey

    findings = survey()
    table = Table("tool", "found", "needed for", box=None, pad_edge=False)
    for finding in findings:
        table.add_row(finding.name, finding.found or "[yellow]missing[/]", finding.purpose)
    console = Console()
    console.print(table)
    missing = [finding for finding in findings if finding.found is None]
    console.print("\nEverything is here." if not missing else "\nOptional parts that are missing, and how to get each:")
    for finding in missing:
        console.print(f"  {finding.name}: {finding.remedy}", markup=False, highlight=False, soft_wrap=True)


@app.command(rich_help_panel=START)
def demo(
    config: Annotated[
        Path | None, typer.Argument(metavar="[CONFIG]", help="Another configuration than the shipped one.")
    ] = None,
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of everything.")] = Path("build/demo"),
    skip_cosim: Annotated[bool, typer.Option("--skip-cosim", help="Leave out what needs a simulator.")] = False,
    liberty: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Cell library (.lib, .lib.gz): show areas and delays too.")
    ] = None,
) -> None:
    """From one YAML file: Verilog, lint, co-simulation, hit rates and a report page, in less than two minutes.

    The shipped configuration is a recorded MPI program (NPB IS) on 64 nodes of a 4x4x4 torus. The lookup engine is done
    twice, with node reduction and with whole addresses as keys; the network runs in the cycle simulator with the cache
    on and off, and a 2x2 network in RTL is compared with that simulator. Exit status 1 if the hardware differs from the
    golden model.
    """
    from rich.console import Console

    from hopforge.sim.demo import demo_config, run_demo

    words = ["hopforge demo", *([str(config)] if config else []), *(["--skip-cosim"] if skip_cosim else [])]
    words += ["--liberty FILE"] if liberty else []
    with _steps() as progress:
        found = run_demo(
            demo_config(config), output, command=" ".join(words), cosim=not skip_cosim, liberty=liberty,
            progress=progress,
        )
    console = Console(soft_wrap=True, highlight=False)
    for variant in found.variants:
        assert variant.hits is not None
        console.print(f"{variant.label}: {100 * variant.hits.totals['hit_rate']:.3f} % of the lookups hit")
    for subject, result in (*found.network.rows(), *(found.rtl.rows() if found.rtl else [])):
        console.print(f"{subject}: {result}", markup=False)
    console.print(f"open {found.page}", markup=False)
    if found.problems:
        _complain("\n".join(found.problems))
        raise typer.Exit(1)


@app.command(rich_help_panel=START)
def check(config: ConfigPath) -> None:
    """Check a configuration and show what it amounts to."""
    from rich.console import Console
    from rich.table import Table

    from hopforge.model.config import load_config
    from hopforge.model.summary import summarize

    table = Table(box=None, show_header=False, pad_edge=False)
    for subject, words in summarize(load_config(config)):
        table.add_row(f"[bold]{subject}[/]", words)
    Console().print(table)


@app.command(rich_help_panel=START)
def schema(
    markdown: Annotated[
        bool, typer.Option("--markdown", help="The page of every key instead (docs/configuration.md).")
    ] = False,
) -> None:
    """Print the JSON schema of a configuration, for editors that complete and check YAML."""
    from hopforge.model.config import reference

    typer.echo(reference.markdown() if markdown else reference.json_schema(), nl=False)


@app.command(rich_help_panel=HARDWARE)
def cosim(
    config: ConfigPath,
    *,
    part: Annotated[
        str, typer.Option("--part", help="lookup (the engine), router or network (all routers).")
    ] = "lookup",
    simulator: Annotated[
        str | None, typer.Option(help="icarus (with cocotb) or verilator (fast); default: the configuration's.")
    ] = None,
    lookups: Annotated[
        int | None, typer.Option(min=1, help="lookup: requests; default: the configuration's.")
    ] = None,
    load: Annotated[
        float | None, typer.Option(min=0, max=1, help="network: flits per host and cycle; default: simulation.load.")
    ] = None,
    cycles: Annotated[
        int | None, typer.Option(min=1, help="router, network: cycles with new packets; default: the configuration's.")
    ] = None,
    variants: Annotated[
        int | None, typer.Option(min=1, help="router: as many routers drawn at random; finished runs are kept.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Of the traffic; default: the configuration's.")] = None,
    waves: Annotated[bool, typer.Option("--waves", help="Record all signals (FST or VCD).")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of everything (default: below build/cosim).")
    ] = None,
) -> None:
    """Compare Verilog with its golden model, every output in every cycle. Exit status 1 if anything differs.

    Part lookup: the engine under unfriendly random traffic: idle cycles, back-pressure, flushes, invalidations, TCAM
    writes, changes of the configuration, TCAM answers out of order. Part router: one router, random packets,
    credits that are late or held back. Part network: the configured network and traffic against the network simulator,
    every flit in its cycle, and the counters of all ports at the end.
    """
    from rich.console import Console
    from rich.table import Table

    from hopforge.model.config import load_config
    from hopforge.sim.cosim_parts import cosim_part
    from hopforge.sim.runner import simulator_name

    options = {"lookups": lookups, "load": load, "cycles": cycles, "variants": variants}
    with _progress("cycles") as advance:
        report = cosim_part(
            part, load_config(config, hardware=True),
            simulator=None if simulator is None else simulator_name(simulator),
            given={name: value for name, value in options.items() if value is not None},
            seed=seed, waves=waves, output=output, progress=advance,
        )  # fmt: skip
    table = Table(box=None, show_header=False, pad_edge=False)
    for subject, words in report.rows():
        table.add_row(f"[bold]{subject}[/]", words)
    Console().print(table)
    if not report.passed:
        raise typer.Exit(1)


gen_app = typer.Typer(no_args_is_help=True, help="Write Verilog and what goes with it.")
app.add_typer(gen_app, name="gen", rich_help_panel=HARDWARE)


@gen_app.command("lookup")
def gen_lookup(
    config: ConfigPath,
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of the files (default: build/NAME/lookup).")
    ] = None,
    period_ns: Annotated[float, typer.Option("--period-ns", help="Clock period in the constraints.")] = 1.0,
) -> None:
    """Write the lookup engine: Verilog, lint waivers, constraints, FuseSoC core, manifest, register documentation.

    The same configuration and tools give the same bytes.
    """
    from hopforge.gen.lookup import generate_lookup
    from hopforge.model.config import load_config

    for path in generate_lookup(load_config(config, hardware=True), output, period_ns=period_ns):
        typer.echo(str(path))


@gen_app.command("router")
def gen_router(
    config: ConfigPath,
    *,
    router: Annotated[int, typer.Option("--router", min=0, help="Number of the router in the network.")] = 0,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of the files (default: build/NAME/router).")
    ] = None,
    period_ns: Annotated[float, typer.Option("--period-ns", help="Clock period in the constraints.")] = 1.0,
) -> None:
    """Write a router of the network with its registers: the same files as for the lookup engine.

    Routes come from a table or from a lookup engine per input port (router.route_computation); with engines the files
    include the TCAM contents and the register writes that make the router work (docs/router-generation.md).
    """
    from hopforge.gen.router import generate_router
    from hopforge.model.config import load_config

    for path in generate_router(load_config(config), output, router=router, period_ns=period_ns):
        typer.echo(str(path))


@gen_app.command("network")
def gen_network(
    config: ConfigPath,
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of the files (default: build/NAME/network).")
    ] = None,
    period_ns: Annotated[float, typer.Option("--period-ns", help="Clock period in the constraints.")] = 1.0,
) -> None:
    """Write the whole network, routers and links, with one register bus: the same files as for a router.

    Meant for small networks: their Verilog is simulated and prototyped as one design (docs/router-generation.md).
    """
    from hopforge.gen.network import generate_network
    from hopforge.model.config import load_config

    for path in generate_network(load_config(config), output, period_ns=period_ns):
        typer.echo(str(path))


@app.command(rich_help_panel=HARDWARE)
def lint(
    config: ConfigPath,
    *,
    what: Annotated[
        str | None, typer.Option("--what", help="lookup, router or network; default: lookup and router.")
    ] = None,
    router: Annotated[int, typer.Option("--router", min=0, help="Number of the router in the network.")] = 0,
) -> None:
    """Check generated Verilog with Verilator (-Wall): lookup engine, router or network. Exit status 1 on a finding.

    What is waived is counted and comes with its reason.
    """
    from hopforge.gen.lint import WAIVERS
    from hopforge.gen.lint_config import lint_config
    from hopforge.model.config import load_config

    findings = 0
    for name, report in lint_config(load_config(config), what, router=router):
        typer.echo(f"{name}: {len(report.findings)} findings")
        for rule, count in sorted(report.waived.items()):
            typer.echo(f"  waived {rule} ({count}): {WAIVERS[rule]}")
        for finding in report.findings:
            typer.echo(f"  {finding}")
        findings += len(report.findings)
    if findings:
        raise typer.Exit(1)


@app.command(rich_help_panel=HARDWARE)
def mutate(
    configs: Annotated[list[Path], typer.Argument(metavar="CONFIG...", help="YAML files; each gives an engine.")],
    *,
    count: Annotated[int, typer.Option(min=1, help="Mutants in all.")] = 60,
    block: Annotated[str, typer.Option(help="node_reduction, routing_cache, lookup, all of them, or router.")] = "all",
    seed: Annotated[int, typer.Option(min=0, help="Of mutants and stimulus.")] = 1,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of everything (default: build/mutate).")
    ] = None,
) -> None:
    """Put faults into the hardware and see whether the benches notice them.

    Mutants of the netlists run against the golden traces; those that no trace shows are tried to be proved equivalent.
    Small engines are fast: see configs/mutation and docs/mutation.md. Exit status 1 if fewer than 95 % of all mutants
    with an effect are killed.
    """
    from rich.console import Console
    from rich.table import Table

    from hopforge.model.config import load_config
    from hopforge.sim.mutate import block_names, enough, report_rows, survivor_lines
    from hopforge.sim.mutate import mutate as run_mutate

    checked, blocks = [load_config(config, hardware=True) for config in configs], block_names(block)
    step = ""
    with _steps() as steps:

        def show(what: str, done: int, total: int) -> None:
            nonlocal step
            if what != step:
                step = what
                steps.begin(what)
            steps.advance(done, total)

        report = run_mutate(checked, count, blocks=blocks, seed=seed, output=output, progress=show)
    table = Table(box=None, pad_edge=False)
    for number, column in enumerate(("block", "mutants", "killed", "equivalent", "survived", "score")):
        table.add_column(column, justify="right" if number else "left")
    for row in report_rows(report):
        table.add_row(*row)
    console = Console()
    console.print(table)
    for line in survivor_lines(report):
        console.print(line, markup=False, highlight=False)
    if not enough(report):
        raise typer.Exit(1)


@app.command(rich_help_panel=HARDWARE)
def synth(
    config: ConfigPath,
    *,
    liberty: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Cell library (.lib, .lib.gz); without: gates and levels.")
    ] = None,
    block: Annotated[list[str] | None, typer.Option(help="Only this block (repeat for more).")] = None,
    blocks: Annotated[
        str, typer.Option(metavar="SET", help="lookup, router, or allocators (a fixed table, with arbiters).")
    ] = "lookup",
    recipe: Annotated[list[str] | None, typer.Option(help="Only this recipe of abc (repeat for more).")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of the results (default: build/NAME/synth).")
    ] = None,
    timeout_s: Annotated[float, typer.Option("--timeout-s", min=1, help="Limit of one recipe on one block.")] = 300,
) -> None:
    """Measure area and delay of each block of the lookup path or the router: best of several recipes, ideal wires.

    The delay is OpenSTA's if it is installed (clocked blocks: shortest period with flip-flops), else that of abc
    without flip-flops. Netlists, timing reports and a table of every recipe stay in the folder.
    """
    from rich.console import Console
    from rich.table import Table

    from hopforge.gen.synth import synthesize_config
    from hopforge.model.config import load_config

    checked = load_config(config, hardware=True)
    status = Console(stderr=True).status("")
    with status:
        found = synthesize_config(
            checked, liberty, blocks=blocks, names=block, recipes=recipe, folder=output, timeout_s=timeout_s,
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
    for results in found:
        if results[0].path:
            console.print(f"critical path of {results[0].block}: {' > '.join(results[0].path)}", markup=False)


@app.command(rich_help_panel=HARDWARE)
def prove(
    subject: Annotated[
        str | None,
        typer.Argument(metavar="[SUBJECT]", help="reduction, member, crc, lookup, allocators; default: all."),
    ] = None,
    *,
    wide: Annotated[bool, typer.Option("--wide", help="48-bit addresses instead of 24.")] = False,
) -> None:
    """Prove by SAT, for all inputs, that the hardware is what the specification says.

    Each proof is also run on hardware with a planted fault, where it must fail. Exit status 1 if anything is not as it
    should be.
    """
    from hopforge.gen.prove import tasks

    failed = 0
    for task in tasks(subject, wide=wide):
        start = time.perf_counter()
        passed = task.run()
        failed += not passed
        word = "proved" if passed else "FAILED"
        typer.echo(f"{word} {time.perf_counter() - start:6.1f} s  {task.subject}: {task.name}")
    if failed:
        _complain(f"{failed} of the proofs failed")
        raise typer.Exit(1)


@app.command(rich_help_panel=NETWORK)
def hits(
    config: ConfigPath,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of the results (default: build/hits/NAME).")
    ] = None,
) -> None:
    """Replay the workload through a routing cache at every input port of the network.

    Shows hits, misses by cause, and the lookup time, forwarding rate, power and latency that follow; writes them per
    port, switch and class of port as CSV and Parquet, with two plots and the metadata to repeat the run.
    """
    from rich.console import Console
    from rich.table import Table

    from hopforge.model.config import load_config
    from hopforge.model.hit_rates import run_hits, summary_rows, write_report
    from hopforge.model.results import check_writable

    checked = load_config(config)
    target = output or Path("build/hits") / checked.name
    check_writable(target)
    with _progress("packets") as advance:
        found = run_hits(checked, advance)
    write_report(found, target)
    table = Table(box=None, show_header=False, pad_edge=False)
    for subject, words in summary_rows(found):
        table.add_row(f"[bold]{subject}[/]", words)
    console = Console()
    console.print(table)
    console.print(f"wrote {target}", markup=False, highlight=False, soft_wrap=True)


@app.command(rich_help_panel=NETWORK)
def topology(
    config: ConfigPath,
    export: Annotated[
        str | None,
        typer.Option(
            "--export", metavar="FORMAT", help="Write it: graphml, anynet, edges, simgrid, simgrid-full, png."
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Where to (default: build/NAME.FORMAT).")
    ] = None,
) -> None:
    """Show the size, distances, floor plan and cables of a network, or write it for other programs.

    The formats are GraphML, BookSim 2's anynet and an edge list, which `kind: edge_list` all reads, a platform of
    SimGrid (simgrid: shortest paths; simgrid-full: the route of every pair), and the floor plan as a picture (png).
    """
    from rich.console import Console
    from rich.table import Table

    from hopforge.model.config import load_config
    from hopforge.model.topology.export import describe, export_file

    checked = load_config(config)
    path = export_file(checked, export, output) if export is not None or output is not None else None
    table = Table(box=None, show_header=False, pad_edge=False)
    for subject, words in describe(checked):
        table.add_row(f"[bold]{subject}[/]", words)
    console = Console()
    console.print(table)
    if path is not None:
        console.print(f"wrote {path}", markup=False, highlight=False, soft_wrap=True)


@app.command(rich_help_panel=NETWORK)
def route(
    config: ConfigPath,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of the results (default: build/route/NAME).")
    ] = None,
) -> None:
    """Compute routing tables and virtual layers of an irregular network: sizes, path lengths, loads, pictures.

    Section `tables` names the scheme (shortest paths, LOREN, Cowen, Thorup-Zwick, or a table of yours) and the method
    of virtual layers. Every pair is followed and the layers are proved free of deadlock. The tables are also written
    as CSV, JSON and in the form of OpenSM's forwarding tables.
    """
    from rich.console import Console
    from rich.table import Table

    from hopforge.model.config import load_config
    from hopforge.model.irregular.tables import build_tables
    from hopforge.model.irregular.write import quality_table, route_rows, write_route
    from hopforge.model.results import check_writable
    from hopforge.model.topology import build

    checked = load_config(config)
    target = output or Path("build/route") / checked.name
    check_writable(target)
    tables = build_tables(checked.tables, build(checked.topology, checked.address), checked.seed)
    with _progress("traffic patterns") as advance:
        quality = quality_table(checked, tables, advance)
    with _progress("table sizes") as advance:
        write_route(checked, tables, quality, target, advance)
    shown = Table(box=None, show_header=False, pad_edge=False)
    for subject, words in route_rows(tables, quality):
        shown.add_row(f"[bold]{subject}[/]", words)
    console = Console()
    console.print(shown)
    console.print(f"wrote {target}", markup=False, highlight=False, soft_wrap=True)


@app.command(rich_help_panel=NETWORK)
def net(
    config: ConfigPath,
    load: Annotated[
        float | None, typer.Option(min=0.0, max=1.0, help="Offered flits per host, cycle (default: simulation.load).")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Of every random draw (default: the file's).")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of the results (default: build/net/NAME).")
    ] = None,
) -> None:
    """Simulate the network cycle by cycle, at one load or running a program: latency, throughput, hops, channel loads.

    With `traffic.source: program` the hosts run the recorded MPI program or the collective of section `workload`; its
    makespan and the times of its ranks are written, too. Routers are those of docs/router.md. The combination of
    network, routing and virtual channels is first proved free of deadlock.
    """
    from rich.console import Console
    from rich.table import Table

    from hopforge.model.config import load_config
    from hopforge.model.program_run import program_rows, run_program, write_program
    from hopforge.model.results import check_writable
    from hopforge.model.simulation import Simulation, write_measurement
    from hopforge.model.sweep import measurement_rows

    checked = load_config(config)
    target = output or Path("build/net") / checked.name
    check_writable(target)
    run = Simulation(checked, checked.simulation.load if load is None else load, checked.seed if seed is None else seed)
    if run.placed is not None:
        if load is not None:
            raise typer.BadParameter("--load is for sources with a load, not for traffic.source: program")
        with _progress("messages") as advance:
            done = run_program(run, advance)
        write_program(run, done, target)
        rows = program_rows(done)
    else:
        with _progress("cycles") as advance:
            found = run.run(lambda cycles: advance(cycles, checked.simulation.max_cycles))
        write_measurement(run, found, target)
        rows = measurement_rows(found)
    table = Table(box=None, show_header=False, pad_edge=False)
    for subject, words in rows:
        table.add_row(f"[bold]{subject}[/]", words)
    console = Console()
    console.print(table)
    console.print(f"wrote {target}", markup=False, highlight=False, soft_wrap=True)


@app.command(rich_help_panel=NETWORK)
def sweep(
    config: ConfigPath,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of the results (default: build/sweep/NAME).")
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes (default: one per core).")] = None,
    dask: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Use the workers of this Dask scheduler: tcp://HOST:PORT.")
    ] = None,
) -> None:
    """Simulate all variants, loads and seeds of section `simulation` on all cores: table and latency-load plot.

    A sweep that was stopped (Ctrl-C) goes on where it was. The results do not depend on where they are computed.
    """
    from rich.console import Console
    from rich.table import Table

    from hopforge.model.config import load_config
    from hopforge.model.results import check_writable
    from hopforge.model.sweep import summarise, sweep_runs, write_sweep

    checked = load_config(config)
    target = output or Path("build/sweep") / checked.name
    check_writable(target)
    kept = (0, 0)
    with _progress("runs") as advance:

        def count(done: int, total: int) -> None:
            nonlocal kept
            kept = (done, total)
            advance(done, total)

        try:
            runs = sweep_runs(checked, target, count, workers, dask)
        except KeyboardInterrupt:
            _complain(f"{kept[0]} of {kept[1]} runs are finished and kept in {target}; the same command goes on")
            raise
    write_sweep(checked, runs, target)
    table = Table(box=None, pad_edge=False)
    if checked.variants:
        table.add_column("variant")
    for heading in ("load", "latency", "99 %", "accepted", "worst host", "hops"):
        table.add_column(heading, justify="right")
    for row in summarise(runs).itertuples():
        latency = "saturated" if row.saturated else f"{row.latency:.2f} ± {row.latency_interval:.2f}"
        table.add_row(
            *([str(row.variant)] if checked.variants else []),
            f"{row.load:.4g}", latency, f"{row.latency_p99:.0f}", f"{row.accepted:.4f}", f"{row.accepted_worst:.4f}",
            f"{row.hops:.3f}",
        )  # fmt: skip
    console = Console()
    console.print(table)
    console.print(f"wrote {target}", markup=False, highlight=False, soft_wrap=True)


@app.command(rich_help_panel=NETWORK)
def trace(
    config: ConfigPath,
    packet: Annotated[
        list[str] | None, typer.Option(metavar="HOST.NUMBER", help="A packet by source and number (repeat for more).")
    ] = None,
    slowest: Annotated[
        int | None, typer.Option(min=1, max=100, help="The packets of greatest latency (default: 3, if none is named).")
    ] = None,
    after: Annotated[int, typer.Option(min=0, help="For --slowest: only packets created from this cycle on.")] = 0,
    cycles: Annotated[int, typer.Option(min=1, max=1_000_000, help="Length of the run.")] = 3000,
    load: Annotated[
        float | None, typer.Option(min=0.0, max=1.0, help="Offered flits per host, cycle (default: simulation.load).")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Of every random draw (default: the file's).")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of the results (default: build/trace/NAME).")
    ] = None,
) -> None:
    """Follow packets through the network: in which cycle each flit was where, and what it waited for.

    Simulates the network from its start, chooses packets and simulates it once more. Writes the events of every flit
    (CSV), a timing diagram of every packet (PNG) and the list of all packets.
    """
    from rich.console import Console

    from hopforge.model.config import load_config
    from hopforge.model.packet_trace import follow, life_text, list_packets, packet_key, write_trace
    from hopforge.model.packet_trace import slowest as slowest_packets
    from hopforge.model.results import check_writable

    checked = load_config(config)
    keys = [packet_key(text) for text in packet or []]
    target = output or Path("build/trace") / checked.name
    check_writable(target)
    offered = checked.simulation.load if load is None else load
    chosen_seed = checked.seed if seed is None else seed
    with _progress("cycles") as advance:
        packets = list_packets(checked, offered, chosen_seed, cycles, advance)
    if slowest is not None or not keys:
        keys += slowest_packets(packets, slowest or 3, after)
    run, lives = follow(checked, offered, chosen_seed, cycles, packets, keys)
    write_trace(run, lives, packets, target)
    for life in lives:
        typer.echo(life_text(run, life))
    Console().print(f"wrote {target}", markup=False, highlight=False, soft_wrap=True)


@app.command(rich_help_panel=PAPERS)
def reproduce(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Figures, or patterns: lookup.fig4.5, 'lookup.*'.")
    ] = None,
    *,
    show_list: Annotated[bool, typer.Option("--list", help="List what can be reproduced.")] = False,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the results.")] = Path("build/reproduce"),
    liberty: Annotated[
        Path | None, typer.Option(help="Cell library (.lib, .lib.gz) for areas and delays; without: gates, levels.")
    ] = None,
    traces: Annotated[Path | None, typer.Option(help="Folder with more recorded programs (*.tar.xz).")] = None,
    full: Annotated[bool, typer.Option("--full", help="Figures that draw at random: more trials.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Of every random draw.")] = 1,
    page: Annotated[Path | None, typer.Option(help="Write all comparisons to this file, as Markdown.")] = None,
) -> None:
    """Measure figures of the papers again: the paper's value, ours, the deviation and what was assumed.

    Writes data (CSV), figure (PNG), comparison (CSV) and metadata (JSON) of each. A run that was stopped continues
    where it was.
    """
    from rich.console import Console

    from hopforge.sim.reproduce import REPRODUCTIONS, Options
    from hopforge.sim.reproduce.report import list_table, run_and_show

    console = Console()
    if show_list or not names:
        console.print(list_table(REPRODUCTIONS))
        return
    options = Options(full=full, seed=seed, liberty=liberty, traces=traces)
    run_and_show(names, output, options, REPRODUCTIONS, console, page)


bench_app = typer.Typer(no_args_is_help=True, help="Measure the speed of hopforge on this machine.")
app.add_typer(bench_app, name="bench", rich_help_panel=NETWORK)


@bench_app.command("lookup")
def bench_lookup(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the results.")] = Path("build/bench/lookup"),
    repetitions: Annotated[int, typer.Option(min=1, help="Timed runs of each case; the best counts.")] = 5,
    trace: Annotated[
        Path | None, typer.Option(help="Another recorded program to replay (at most 64 ranks), such as NPB CG.")
    ] = None,
) -> None:
    """Time golden lookups and the replay of recorded programs, on one core.

    The last column is the rate over that of a plain random generator in the same process: it says how fast the code
    is, not how fast the machine.
    """
    from rich.console import Console
    from rich.table import Table

    from hopforge.model.results import check_writable
    from hopforge.sim.bench import lookup_cases, measure, write_bench

    check_writable(output)
    console = Console()
    rows = []
    with console.status("measuring"):
        for row in measure(lookup_cases(trace), repetitions):
            rows.append(row)
    write_bench(rows, output)
    table = Table(box=None, pad_edge=False)
    table.add_column("case", no_wrap=True)
    for heading in ("work", "best", "worst", "rate", "per step"):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(
            str(row["case"]), f"{row['work']:,} {row['unit']}s", f"{row['best_s']:.3g} s", f"{row['worst_s']:.3g} s",
            f"{row['million_per_s']:.3g} M/s", f"{row['per_yardstick_step']:.3g}",
        )  # fmt: skip
    console.print(table)
    console.print(f"wrote {output}", markup=False, highlight=False, soft_wrap=True)

@bench_app.command("net")
def bench_net(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the results.")] = Path("build/bench/net"),
    repetitions: Annotated[int, typer.Option(min=1, help="Timed runs of each case; the medians count.")] = 5,
    booksim: Annotated[
        Path | None, typer.Option(metavar="BINARY", help="A BookSim 2 binary to run in turn with ours.")
    ] = None,
    sizes: Annotated[bool, typer.Option("--sizes", help="Networks of 64, 512 and 4096 routers instead.")] = False,
) -> None:
    """Time the network simulator at load 0.3, on one core: flits times routers visited per second of processor time.

    With --booksim both simulate the same networks in turn; the ratio is the median of the pairs.
    """
    from rich.console import Console
    from rich.table import Table

    from hopforge.model.errors import UserError
    from hopforge.model.results import check_writable
    from hopforge.sim.bench_net import CASES, SIZES, measure_net, write_bench_net

    if booksim is not None and not booksim.is_file():
        raise UserError(f"--booksim: no such file: {booksim}")
    check_writable(output)
    console = Console()
    with console.status("measuring"):
        rows = list(measure_net(SIZES if sizes else CASES, booksim, repetitions))
    write_bench_net(rows, output)
    table = Table(box=None, pad_edge=False)
    table.add_column("case", no_wrap=True)
    for heading in ("routers", "M flit-hops/s", "ns each", "MiB", "BookSim", "ratio"):
        table.add_column(heading, justify="right")
    for row in rows:
        theirs = f"{row['booksim_million_flit_hops_per_s']:.3g} M/s" if "ratio" in row else ""
        table.add_row(
            str(row["case"]), f"{row['routers']:,}", f"{row['million_flit_hops_per_s']:.3g}",
            f"{row['ns_per_flit_hop']:.3g}", f"{row['state_mib']:.1f}", theirs,
            f"{row['ratio']:.3g}" if "ratio" in row else "",
        )  # fmt: skip
    console.print(table)
    console.print(f"wrote {output}", markup=False, highlight=False, soft_wrap=True)


@contextlib.contextmanager
def _progress(unit: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar on stderr while the block runs; what it yields is called with (done, in all)."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(unit, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


class _Steps:
    """Shows the steps of the demo on stderr: the present one with a bar, those that are done with their time."""

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
def _steps() -> Iterator[_Steps]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        steps = _Steps(console, bar)
        yield steps
        steps.end()


def _complain(text: str) -> None:
    for line in text.splitlines() or [""]:
        typer.echo(f"hopforge: {line}", err=True)


def _words(error: UserError | OSError | MemoryError) -> str:
    """Return what to tell about an error: no class and no number, but file and line where they are known."""
    if isinstance(error, MemoryError):
        return "not enough memory"
    if isinstance(error, OSError):
        reason = error.strerror or str(error)
        return f"{error.filename}: {reason}" if error.filename else reason
    from hopforge.model.config.load import with_place

    return with_place(str(error))


def main() -> NoReturn:
    """Run the command line.

    Exit status 0: done; 1: a check failed or an error of hopforge itself; 2: a user's mistake, a missing tool or a file
    that cannot be read or written; 130: interrupted.
    """
    try:
        app()
    except SystemExit as error:
        if error.code == 130:
            _complain("interrupted")
        raise
    except (UserError, OSError, MemoryError) as error:
        if os.environ.get("HOPFORGE_TRACEBACK"):
            raise
        _complain(_words(error))
        sys.exit(2)
    except Exception as error:
        if os.environ.get("HOPFORGE_TRACEBACK"):
            raise
        _complain(f"error in hopforge itself: {type(error).__name__}: {error}; please report it (--debug shows where)")
        sys.exit(1)
    sys.exit(0)


if __name__ == "__main__":
    main()
