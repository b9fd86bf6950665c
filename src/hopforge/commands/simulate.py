"""Commands that run traffic over a network."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hopforge.commands.terminal import ConfigPath, complain, progress_bar, say_written, show_rows
from hopforge.model.seeds import MOST_SEED

if TYPE_CHECKING:
    import pandas as pd

    from hopforge.model.config import Config


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
    from hopforge.model.config import load_config
    from hopforge.model.output.results import check_writable
    from hopforge.sim.hits.hit_rates import run_hits, summary_rows, write_report

    checked = load_config(config)
    target = output or Path("build/hits") / checked.name
    check_writable(target)
    with progress_bar("packets") as advance:
        found = run_hits(checked, advance)
    write_report(found, target)
    show_rows(summary_rows(found))
    say_written(target)


def net(
    config: ConfigPath,
    load: Annotated[
        float | None, typer.Option(min=0.0, max=1.0, help="Offered flits per host, cycle (default: simulation.load).")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, max=MOST_SEED, help="Of every random draw (default: the file's).")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of the results (default: build/net/NAME).")
    ] = None,
) -> None:
    """Simulate the network cycle by cycle, at one load or running a program: latency, throughput, hops, channel loads.

    With `traffic.source: program` the hosts run the recorded MPI program or the collective of section `workload`; its
    makespan and the times of its ranks are written, too. Routers are those of docs/definitions/router.md. The
    combination of network, routing and virtual channels is first proved free of deadlock.
    """
    from hopforge.model.config import load_config
    from hopforge.model.output.results import check_writable
    from hopforge.sim.failures.report import failure_rows
    from hopforge.sim.run.measurement import write_measurement
    from hopforge.sim.run.program_run import program_rows, run_program, write_program
    from hopforge.sim.run.simulation import Simulation
    from hopforge.sim.run.sweep import measurement_rows

    checked = load_config(config)
    target = output or Path("build/net") / checked.name
    check_writable(target)
    if checked.router.model == "packet":
        _packet_net(checked, load, seed, target)
        return
    run = Simulation(checked, checked.simulation.load if load is None else load, checked.seed if seed is None else seed)
    if run.placed is not None:
        if load is not None:
            raise typer.BadParameter("--load is for sources with a load, not for traffic.source: program")
        with progress_bar("messages") as advance:
            done = run_program(run, advance)
        write_program(run, done, target)
        rows = program_rows(done)
    else:
        with progress_bar("cycles") as advance:
            found = run.run(lambda cycles: advance(cycles, checked.simulation.max_cycles))
        write_measurement(run, found, target)
        rows = measurement_rows(found) + (failure_rows(run.reconfiguration) if run.reconfiguration is not None else [])
    show_rows(rows)
    say_written(target)


def _packet_net(checked: "Config", load: float | None, seed: int | None, target: Path) -> None:
    from hopforge.sim.packet.network import PacketNetwork
    from hopforge.sim.packet.simulation import measurement_rows, run_packets, write_packets

    network = PacketNetwork(
        checked, checked.simulation.load if load is None else load, checked.seed if seed is None else seed
    )
    with progress_bar("packets") as advance:
        found = run_packets(network, advance)
    write_packets(checked, network, found, target)
    show_rows(measurement_rows(found))
    say_written(target)


def series(
    config: ConfigPath,
    load: Annotated[
        float | None, typer.Option(min=0.0, max=1.0, help="Offered load at the beginning (default: simulation.load).")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, max=MOST_SEED, help="Of every random draw (default: the file's).")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of the results (default: build/series/NAME).")
    ] = None,
    frames: Annotated[
        bool, typer.Option("--frames", help="Draw the loads of all links: a PNG for each bin, and an animated GIF.")
    ] = False,
) -> None:
    """Simulate the network from empty in bins of time: latency, throughput, hops and detours over time, convergence.

    Section `simulation` gives the length of the run, its bins, changes of the load, and routers whose learned times
    are written.
    """
    from hopforge.model.config import load_config
    from hopforge.model.output.results import check_writable
    from hopforge.sim.packet.network import PacketNetwork
    from hopforge.sim.packet.series import run_packet_series, series_network
    from hopforge.sim.run.link_frames import check_frames
    from hopforge.sim.run.simulation import Simulation
    from hopforge.sim.run.time_series import run_series, series_rows, write_series

    checked = load_config(config)
    if frames:
        check_frames(checked.simulation.series_bins)
    target = output or Path("build/series") / checked.name
    check_writable(target)
    offered = checked.simulation.load if load is None else load
    chosen = checked.seed if seed is None else seed
    run: Simulation | PacketNetwork
    with progress_bar("bins") as advance:
        if checked.router.model == "packet":
            run = series_network(checked, offered, chosen)
            found = run_packet_series(run, advance)
        else:
            run = Simulation(checked, offered, chosen)
            found = run_series(run, advance, channels=frames)
    if not frames:
        write_series(checked, found, target)
    else:
        with progress_bar("pictures") as advance:
            write_series(checked, found, target, run.topology, advance)
    show_rows(series_rows(found))
    say_written(target)


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

    Of a file with section `app` the program runs, with all variants and seeds (`hopforge app`). A sweep that was
    stopped (Ctrl-C) goes on where it was. The results do not depend on where they are computed.
    """
    from hopforge.model.config import load_config
    from hopforge.model.output.results import check_writable
    from hopforge.sim.packet.sweep import is_packet_sweep, packet_sweep_runs, write_packet_sweep
    from hopforge.sim.programs.app_sweep import app_sweep_runs, is_app_sweep, write_app_sweep
    from hopforge.sim.run.sweep import sweep_runs, write_sweep

    checked = load_config(config)
    target = output or Path("build/sweep") / checked.name
    check_writable(target)
    kept = (0, 0)
    run, write, show = sweep_runs, write_sweep, _show_sweep
    if is_app_sweep(checked):
        run, write, show = app_sweep_runs, write_app_sweep, _show_app_sweep
    elif is_packet_sweep(checked):
        run, write, show = packet_sweep_runs, write_packet_sweep, _show_packet_sweep
    with progress_bar("runs") as advance:

        def count(done: int, total: int) -> None:
            nonlocal kept
            kept = (done, total)
            advance(done, total)

        try:
            runs = run(checked, target, count, workers, dask)
        except KeyboardInterrupt:
            complain(f"{kept[0]} of {kept[1]} runs are finished and kept in {target}; the same command goes on")
            raise
    write(checked, runs, target)
    show(checked, runs)
    say_written(target)


def _show_app_sweep(checked: "Config", runs: "pd.DataFrame") -> None:
    from rich.console import Console
    from rich.table import Table

    from hopforge.sim.programs.app_sweep import summarise_apps

    table = Table("variant", box=None, pad_edge=False)
    for heading in ("makespan", "gain", "waiting", "computing", "misses", "energy"):
        table.add_column(heading, justify="right")
    for row in summarise_apps(runs).itertuples():
        table.add_row(
            str(row.variant), f"{row.makespan_s:.6g} s", f"{row.gain:.4f}", f"{row.waiting_share:.1%}",
            f"{row.computing_share:.1%}", f"{row.miss_share:.3%}", f"{row.energy_j:.4g} J",
        )
    Console().print(table)


def _show_packet_sweep(checked: "Config", runs: "pd.DataFrame") -> None:
    from rich.console import Console
    from rich.table import Table

    from hopforge.sim.packet.sweep import summarise_packets

    table = Table(title=checked.name, box=None, pad_edge=False)
    table.add_column("variant")
    for heading in ("load", "lifetime", "99 %", "accepted", "links passed", "outflank", "wraparound"):
        table.add_column(heading, justify="right")
    for row in summarise_packets(runs).itertuples():
        lifetime = f"{row.lifetime_ns:.0f} ns" if row.sustained else "saturated"
        table.add_row(
            str(row.variant), f"{row.load:.4g}", lifetime, f"{row.lifetime_p99_ns:.0f} ns", f"{row.accepted:.4f}",
            f"{row.hops:.3f}", f"{row.outflanked:.2%}", f"{row.wrapped:.2%}",
        )  # fmt: skip
    Console().print(table)


def _show_sweep(checked: "Config", runs: "pd.DataFrame") -> None:
    from rich.console import Console
    from rich.table import Table

    from hopforge.sim.run.sweep import summarise

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
    Console().print(table)


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
    seed: Annotated[
        int | None, typer.Option(min=0, max=MOST_SEED, help="Of every random draw (default: the file's).")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of the results (default: build/trace/NAME).")
    ] = None,
) -> None:
    """Follow packets through the network: in which cycle each flit was where, and what it waited for.

    Simulates the network from its start, chooses packets and simulates it once more. Writes the events of every flit
    (CSV), a timing diagram of every packet (PNG) and the list of all packets.
    """
    from hopforge.model.config import load_config
    from hopforge.model.output.results import check_writable
    from hopforge.sim.run.packet_life import packet_key
    from hopforge.sim.run.packet_report import life_text, write_trace
    from hopforge.sim.run.packet_trace import follow, list_packets
    from hopforge.sim.run.packet_trace import slowest as slowest_packets

    checked = load_config(config)
    keys = [packet_key(text) for text in packet or []]
    target = output or Path("build/trace") / checked.name
    check_writable(target)
    offered = checked.simulation.load if load is None else load
    chosen_seed = checked.seed if seed is None else seed
    with progress_bar("cycles") as advance:
        packets = list_packets(checked, offered, chosen_seed, cycles, advance)
    if slowest is not None or not keys:
        keys += slowest_packets(packets, slowest or 3, after)
    run, lives = follow(checked, offered, chosen_seed, cycles, packets, keys)
    write_trace(run, lives, packets, target)
    for life in lives:
        typer.echo(life_text(run, life))
    say_written(target)
