"""Commands that run traffic over a network."""

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
from hopforge.model.seeds import MOST_SEED

_SEED_HELP = "Of traffic and decisions during the run (default: the file's); tables that are drawn keep the file's."
RunSeed = Annotated[int | None, typer.Option("--seed", min=0, max=MOST_SEED, help=_SEED_HELP)]
"""Option of the commands that run a network once."""


def hits(
    config: ConfigPath,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of the results (default: build/NAME/hits).")
    ] = None,
    no_bounds: Annotated[
        bool, typer.Option("--no-bounds", help="Do not count what LRU and the best choices of lines would miss.")
    ] = False,
    sizes: Annotated[
        bool, typer.Option("--sizes", help="Count the misses of caches of other sizes: table sizes.")
    ] = False,
    prefetch: Annotated[
        int | None, typer.Option(metavar="N", help="Hosts send empty packets N messages ahead.")
    ] = None,
    prefetch_cycles: Annotated[
        int | None, typer.Option(metavar="N", help="Instead: they come N cycles ahead to every cache.")
    ] = None,
    refill: Annotated[
        int | None, typer.Option(metavar="N", help="Switches see sequences of destinations, read N ahead (0: none).")
    ] = None,
    eject: Annotated[
        str | None, typer.Option(metavar="hard|soft", help="They also eject the key that a sender has left.")
    ] = None,
    tcam_cycles: Annotated[int, typer.Option(metavar="N", help="Cycles of a TCAM read, for the options above.")] = 0,
) -> None:
    """Replay the workload through a routing cache at every input port of the network.

    Shows hits, misses by cause, and the lookup time, forwarding rate, power and latency that follow. Writes them per
    port, switch and class of port as CSV and Parquet, with two plots and the metadata to repeat the run.

    Bounds are the least misses that any replacement policy could have (docs/definitions/replacement.md). Prefetch and
    refill have lines in the cache before their packets come (docs/definitions/prefetch.md).

    Example:

    hopforge hits configs/hits_fat_tree.yml
    """
    from hopforge.api.hits import HitsFound
    from hopforge.model.output.results import check_writable
    from hopforge.sim.hits.assisted import Help
    from hopforge.sim.hits.sizes import size_words

    wanted = Help(prefetch, prefetch_cycles, refill, eject, tcam_cycles)
    checked = read(config, "hits")
    target = output_folder(output, "hits", config)
    check_writable(target)
    found = HitsFound(checked, bounds=not no_bounds, sizes=sizes, wanted=wanted)
    if words := found.forecast():
        typer.echo(words, err=True)
    with progress_bar(found.unit) as advance:
        found.run(advance)
    found.write(target)
    show_rows(found.rows())
    if sizes:
        typer.echo(size_words(checked.lookup.cache.ways))
        show_table(found.lines())
    say_unused(checked, "hits")
    say_written(target)


def net(
    config: ConfigPath,
    load: Annotated[
        float | None, typer.Option(min=0.0, max=1.0, help="Offered flits per host, cycle (default: simulation.load).")
    ] = None,
    seed: RunSeed = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of the results (default: build/NAME/net).")
    ] = None,
    plots: Annotated[bool, typer.Option("--plots", help="Draw what the tables hold, too (PNG).")] = False,
    threads: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Threads of the run (default: as many as pay).")
    ] = None,
) -> None:
    """Simulate the network cycle by cycle, at one load or running a program: latency, throughput, hops, channel loads.

    With `traffic.source: program` the hosts run the recorded MPI program or the collective of section `workload`; its
    makespan and the times of its ranks are written, too. Routers are those of docs/definitions/router.md. The
    combination of network, routing and virtual channels is first proved free of deadlock.

    Tables are always written; --plots also draws the loads of all channels (channels.png), rates over time if
    something fails (series.png), and lifetimes with router.model: packet (messages.png).

    A large network is simulated on several cores (docs/definitions/threads.md). The results are the same for any
    number of threads.

    Example:

    hopforge net configs/booksim/mesh8x8_uniform_p1.yml --load 0.2
    """
    from hopforge.api.simulate import NetFound
    from hopforge.model.output.results import check_writable

    checked = read(config, "net")
    target = output_folder(output, "net", config)
    check_writable(target)
    found = NetFound(checked, load=load, seed=seed, threads=threads)
    with progress_bar(found.unit, found.words) as advance:
        found.run(advance)
    found.write(target, plots=plots)
    show_rows(found.rows())
    say_unused(checked, "net")
    say_written(target)
    found.refuse()


def series(
    config: ConfigPath,
    load: Annotated[
        float | None, typer.Option(min=0.0, max=1.0, help="Offered load at the beginning (default: simulation.load).")
    ] = None,
    seed: RunSeed = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of the results (default: build/NAME/series).")
    ] = None,
    frames: Annotated[
        bool, typer.Option("--frames", help="Draw the loads of all links: a PNG for each bin, and an animated GIF.")
    ] = False,
) -> None:
    """Simulate the network from empty in bins of time: latency, throughput, hops and detours over time, convergence.

    Section `simulation` gives the length of the run, its bins, changes of the load, and routers whose learned times
    are written.

    Example:

    hopforge series configs/q_adaptive72.yml --frames
    """
    from hopforge.api.simulate import SeriesFound
    from hopforge.model.output.results import check_writable

    checked = read(config, "series")
    target = output_folder(output, "series", config)
    check_writable(target)
    found = SeriesFound(checked, load=load, seed=seed, frames=frames)
    with progress_bar(found.unit, found.words) as advance:
        found.run(advance)
    if not frames:
        found.write(target)
    else:
        with progress_bar("pictures") as advance:
            found.write(target, progress=advance)
    show_rows(found.rows())
    say_unused(checked, "series")
    say_written(target)
    found.refuse()


def sweep(
    config: ConfigPath,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of the results (default: build/NAME/sweep).")
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes (default: one per core).")] = None,
    dask: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Use the workers of this Dask scheduler: tcp://HOST:PORT.")
    ] = None,
) -> None:
    """Simulate all variants, loads and seeds of section `simulation` on all cores: table and latency-load plot.

    With a section `app` in the file, the sweep runs its program with all variants and seeds (`hopforge app`). Each run
    is kept as soon as it is finished, so a sweep that you stop (Ctrl-C) goes on where it was. A run is computed again
    when hopforge, the configuration or a file that it names has changed; the command says so. The results do not depend
    on where they are computed.

    Example:

    hopforge sweep configs/sweep_torus8.yml --workers 2
    """
    from hopforge.api.sweep import SweepFound
    from hopforge.model.output.results import check_writable

    checked = read(config, "sweep")
    target = output_folder(output, "sweep", config)
    check_writable(target)
    found = SweepFound(checked)
    kept = (0, 0)
    with progress_bar(found.unit) as advance:

        def count(done: int, total: int) -> None:
            nonlocal kept
            kept = (done, total)
            advance(done, total)

        try:
            found.run(count, target, workers, dask, complain)
        except KeyboardInterrupt:
            complain(f"{kept[0]} of {kept[1]} runs are finished and kept in {target}; the same command goes on")
            raise
    found.write(target)
    show_rows(found.rows())
    show_table(found.lines())
    say_unused(checked, "sweep")
    say_written(target)


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
    seed: RunSeed = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of the results (default: build/NAME/trace).")
    ] = None,
) -> None:
    """Follow packets through the network: in which cycle each flit was where, and what it waited for.

    Simulates the network from its start, chooses packets and simulates it once more. Writes the events of every flit
    (CSV), a timing diagram of every packet (PNG) and the list of all packets.

    Example:

    hopforge trace configs/net_is_4x4x4.yml --slowest 2
    """
    from hopforge.model.output.results import check_writable
    from hopforge.sim.run.packet_life import packet_key
    from hopforge.sim.run.packet_report import life_text, write_trace
    from hopforge.sim.run.packet_trace import follow, list_packets
    from hopforge.sim.run.packet_trace import slowest as slowest_packets
    from hopforge.sim.run.router_models import router_model

    checked = read(config, "trace")
    router_model(checked, "trace")
    keys = [packet_key(text) for text in packet or []]
    target = output_folder(output, "trace", config)
    check_writable(target)
    offered = checked.simulation.load if load is None else load
    chosen_seed = checked.seed if seed is None else seed
    with progress_bar("cycles") as advance:
        packets = list_packets(checked, offered, chosen_seed, cycles, advance, keys=keys)
    if slowest is not None or not keys:
        keys += slowest_packets(packets, slowest or 3, after)
    run, lives = follow(checked, offered, chosen_seed, cycles, packets, keys)
    write_trace(run, lives, packets, target)
    for life in lives:
        typer.echo(life_text(run, life))
    say_unused(checked, "trace")
    say_written(target)
