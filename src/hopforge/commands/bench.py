"""Commands that measure the speed of hopforge on this machine."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hopforge.commands.terminal import output_folder, say_written

if TYPE_CHECKING:
    from hopforge.sim.start.bench import Case


def bench_lookup(
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of the results (default: build/bench/lookup).")
    ] = None,
    repetitions: Annotated[int, typer.Option(min=1, help="Timed runs of each case; the best counts.")] = 5,
    trace: Annotated[
        Path | None, typer.Option(help="Another recorded program to replay (at most 64 ranks), such as NPB CG.")
    ] = None,
) -> None:
    """Time golden lookups and the replay of recorded programs, on one core.

    The last column is the rate over that of a plain random generator in the same process: it says how fast the code
    is, not how fast the machine.

    Example:

    hopforge bench lookup --repetitions 3
    """
    from rich.console import Console
    from rich.table import Table

    from hopforge.model.output.results import check_writable
    from hopforge.sim.start.bench import CLOCK, lookup_cases
    from hopforge.sim.start.bench_results import write_bench

    target = output_folder(output, "bench lookup")
    check_writable(target)
    rows = _measured(lookup_cases(trace), repetitions)
    write_bench(rows, target, clock=CLOCK)
    table = Table(box=None, pad_edge=False)
    table.add_column("case", no_wrap=True)
    for heading in ("work", "best", "worst", "rate", "per step"):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(
            str(row["case"]), f"{row['work']:,} {row['unit']}s", f"{row['best_s']:.3g} s", f"{row['worst_s']:.3g} s",
            f"{row['million_per_s']:.3g} M/s", f"{row['per_yardstick_step']:.3g}",
        )  # fmt: skip
    Console().print(table)
    say_written(target)


def bench_dqn(
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of the results (default: build/bench/dqn).")
    ] = None,
    repetitions: Annotated[int, typer.Option(min=1, help="Timed runs of each case; the best counts.")] = 5,
) -> None:
    """Time the agent of DQN routing, on one core: decisions and training steps of the paper's network.

    `aim_per_s` in the table of the results is what 100 000 decisions of a 4x4 torus in 120 s need.

    Example:

    hopforge bench dqn --repetitions 3
    """
    from rich.console import Console
    from rich.table import Table

    from hopforge.model.output.results import check_writable
    from hopforge.sim.start.bench import CLOCK
    from hopforge.sim.start.bench_dqn import AIMS, dqn_cases
    from hopforge.sim.start.bench_results import write_bench

    target = output_folder(output, "bench dqn")
    check_writable(target)
    rows = [row | {"aim_per_s": AIMS[row["case"]]} for row in _measured(dqn_cases(), repetitions)]
    write_bench(rows, target, clock=CLOCK)
    table = Table(box=None, pad_edge=False)
    table.add_column("case", no_wrap=True)
    for heading in ("best", "worst", "per second", "aim"):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(
            row["case"], f"{row['best_s']:.3g} s", f"{row['worst_s']:.3g} s", f"{1e6 * row['million_per_s']:,.0f}",
            f"{row['aim_per_s']:,.0f}",
        )  # fmt: skip
    Console().print(table)
    say_written(target)


def _measured(cases: Iterator["Case"], repetitions: int) -> list[dict[str, Any]]:
    """Time cases while the terminal says so."""
    from rich.console import Console

    from hopforge.sim.start.bench import measure

    with Console().status("measuring"):
        return list(measure(cases, repetitions))


def bench_net(
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of the results (default: build/bench/net).")
    ] = None,
    repetitions: Annotated[int, typer.Option(min=1, help="Timed runs of each case; the medians count.")] = 5,
    booksim: Annotated[
        Path | None, typer.Option(metavar="BINARY", help="A BookSim 2 binary to run in turn with ours.")
    ] = None,
    sizes: Annotated[
        bool, typer.Option("--sizes", help="Networks of 64, 512, 4096 and 65 536 routers instead.")
    ] = False,
    against: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="A checkout of another version of hopforge to run in turn with this one."),
    ] = None,
    threads: Annotated[
        int | None, typer.Option(min=2, metavar="N", help="Run one thread and N threads in turn, and predict more.")
    ] = None,
) -> None:
    """Time the network simulator on one core: flits times routers visited per second of processor time.

    The load is 0.3 flits per host and cycle, 0.5 on the dragonfly, 0.15 with 65 536 routers. With --sizes all networks
    are in memory and run in turn; the cost of a flit in a router is given beside that in the smallest.

    With --booksim or --against both simulate the same networks in turn; the ratio is the median of the pairs. With
    --against large networks, busy and nearly idle, are added, and the counters of both versions are compared.

    With --threads one thread and N threads simulate the same networks in turn, by the wall clock and in processor
    time. From the times of all parts and of a barrier, the times on N, 16 and 64 cores are predicted. With --sizes a
    network of 65 536 routers is added (2 GiB, minutes). Only idle cores tell anything.

    Example:

    hopforge bench net --sizes
    """
    from rich.console import Console
    from rich.table import Table

    from hopforge.model.errors import UserError
    from hopforge.model.output.results import check_writable
    from hopforge.sim.start.bench_net import CASES, CLOCK, SIZES, measure_net, measure_sizes
    from hopforge.sim.start.bench_results import write_bench

    if threads is not None:
        if booksim is not None or against is not None:
            raise UserError("--threads goes with neither --booksim nor --against")
        _bench_threads(threads, output_folder(output, "bench net"), repetitions, sizes=sizes)
        return
    if against is not None:
        if booksim is not None or sizes:
            raise UserError("--against goes with neither --booksim nor --sizes")
        _bench_versions(against, output_folder(output, "bench net"), repetitions)
        return
    if booksim is not None and sizes:
        raise UserError("--booksim does not go with --sizes")
    if booksim is not None and not booksim.is_file():
        raise UserError(f"--booksim: no such file: {booksim}")
    target = output_folder(output, "bench net")
    check_writable(target)
    console = Console()
    with console.status("measuring"):
        rows = measure_sizes(SIZES, repetitions) if sizes else list(measure_net(CASES, booksim, repetitions))
    write_bench(rows, target, clock=CLOCK)
    table = Table(box=None, pad_edge=False)
    table.add_column("case", no_wrap=True)
    for heading in ("routers", "M flit-hops/s", "ns each", "MiB", *(["beside"] if sizes else ["BookSim", "ratio"])):
        table.add_column(heading, justify="right")
    for row in rows:
        beside = [f"{row['cost_ratio']:.2f}"] if sizes else ["", ""]
        if "ratio" in row:
            beside = [f"{row['booksim_million_flit_hops_per_s']:.3g} M/s", f"{row['ratio']:.3g}"]
        table.add_row(
            str(row["case"]), f"{row['routers']:,}", f"{row['million_flit_hops_per_s']:.3g}",
            f"{row['ns_per_flit_hop']:.3g}", f"{row['state_mib']:.1f}", *beside,
        )  # fmt: skip
    console.print(table)
    say_written(target)


def _bench_threads(threads: int, target: Path, repetitions: int, *, sizes: bool) -> None:
    """Time one thread and several in turn."""
    from rich.console import Console
    from rich.table import Table

    from hopforge.model.output.results import check_writable
    from hopforge.sim.start.bench_results import write_bench
    from hopforge.sim.start.bench_threads import CASES, CLOCK, LARGE, PREDICTED_CORES, measure_threads

    check_writable(target)
    console = Console()
    with console.status("measuring"):
        rows = list(measure_threads([*CASES, LARGE] if sizes else CASES, threads, repetitions))
    write_bench(rows, target, clock=CLOCK)
    cores = dict.fromkeys((threads, *PREDICTED_CORES))
    table = Table(box=None, pad_edge=False)
    table.add_column("case", no_wrap=True)
    for heading in ("parts", "wall", "median", "CPU", "results", *(f"on {number}" for number in cores)):
        table.add_column(heading, justify="right")
    for row in rows:
        predicted = (f"{row[f'predicted_{number}']:.2f}" if f"predicted_{number}" in row else "" for number in cores)
        table.add_row(
            str(row["case"]), str(row["parts"]), f"{row['wall_ratio']:.2f}", f"{row['wall_ratio_median']:.2f}",
            f"{row['cpu_ratio_median']:.2f}", "the same" if row["same_results"] else "DIFFER", *predicted,
        )  # fmt: skip
    console.print(table)
    say_written(target)


def _bench_versions(against: Path, target: Path, repetitions: int) -> None:
    """Time this version and another one in turn."""
    from rich.console import Console
    from rich.table import Table

    from hopforge.model.kernel.program_cache import program_root
    from hopforge.model.output.results import check_writable
    from hopforge.sim.start.bench_net import CLOCK
    from hopforge.sim.start.bench_results import write_bench
    from hopforge.sim.start.bench_versions import measure_versions, source_of

    theirs = source_of(against)
    check_writable(target)
    console = Console()
    with console.status("measuring"):
        rows = list(measure_versions(program_root().parent, theirs, repetitions))
    write_bench(rows, target, clock=CLOCK)
    table = Table(box=None, pad_edge=False)
    table.add_column("case", no_wrap=True)
    for heading in ("load", "ns per flit-hop", "theirs", "ratio", "lowest", "highest", "results"):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(
            str(row["case"]), f"{row['load']:g}", f"{row['ns_per_flit_hop']:.3g}",
            f"{row['against_ns_per_flit_hop']:.3g}", f"{row['ratio']:.3g}", f"{row['ratio_lowest']:.3g}",
            f"{row['ratio_highest']:.3g}", "the same" if row["same_results"] else "DIFFER",
        )  # fmt: skip
    console.print(table)
    say_written(target)


def bench_route(
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of the results (default: build/bench/route).")
    ] = None,
    method: Annotated[
        list[str] | None, typer.Option(help="Only acro, lash, lash_tor, dfsssp, loren, thorup_zwick (repeat for more).")
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="The large networks, too: minutes, and gigabytes.")] = False,
) -> None:
    """Time virtual layers (ACRO, LASH, LASH-TOR, DFSSSP) and tables (LOREN, Thorup-Zwick) of growing networks.

    Processor time and memory of a process per case, beside the aims; a plot of the growth with the network.

    Example:

    hopforge bench route --method loren
    """
    from rich.console import Console
    from rich.table import Table

    from hopforge.model.output.results import check_writable
    from hopforge.sim.start.bench_results import write_bench
    from hopforge.sim.start.bench_route import CLOCK, LABELS, chosen_cases, draw_growth, measure_route

    cases = chosen_cases(full, method or [])
    target = output_folder(output, "bench route")
    check_writable(target)
    console, rows = Console(), []
    with console.status("measuring") as status:
        for row in measure_route(cases):
            rows.append(row)
            status.update(f"measured {len(rows)} of {len(cases)}")
    write_bench(rows, target, clock=CLOCK, plot=draw_growth)
    table = Table(box=None, pad_edge=False)
    table.add_column("method", no_wrap=True)
    for heading in ("switches", "degree", "layers, entries", "CPU s", "aim", "MiB", "aim"):
        table.add_column(heading, justify="right", no_wrap=heading != "layers, entries")
    for row in rows:
        table.add_row(
            LABELS[row["method"]], f"{row['routers']:,}", f"{row['degree']}", f"{row['result']}",
            f"{row['cpu_s']:.2g}", f"{row['limit_s']:.0f}" if row["limit_s"] else "", f"{row['peak_mib']:.0f}",
            f"{1024 * row['limit_gib']:.0f}" if row["limit_gib"] else "",
        )  # fmt: skip
    console.print(table)
    say_written(target)


def bench_app(
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of the results (default: build/bench/app).")
    ] = None,
    repetitions: Annotated[int, typer.Option(min=1, help="Timed runs of each case; the medians count.")] = 3,
    full: Annotated[bool, typer.Option("--full", help="The large programs, too: minutes.")] = False,
    trace: Annotated[
        list[Path] | None, typer.Option(help="Another recorded program of at most 64 ranks (repeat for more).")
    ] = None,
) -> None:
    """Time programs by engine flow and, where it is installed, by SimGrid in turn; by engine packet, too.

    Processor time of engine flow alone, and the whole with reading the trace, as in SimGrid's; how many times as long
    SimGrid takes; how far the makespans are apart; and processor time of engine packet.

    Example:

    hopforge bench app --full
    """
    from rich.console import Console
    from rich.table import Table

    from hopforge.model.output.results import check_writable
    from hopforge.sim.start.bench_app import CLOCK, chosen_cases, measure_app
    from hopforge.sim.start.bench_results import write_bench

    cases = chosen_cases(full, trace or [])
    target = output_folder(output, "bench app")
    check_writable(target)
    console, rows = Console(), []
    with console.status("measuring") as status:
        for row in measure_app(cases, repetitions):
            rows.append(row)
            status.update(f"measured {len(rows)} of {len(cases)}")
    write_bench(rows, target, clock=CLOCK)
    table = Table(box=None, pad_edge=False)
    table.add_column("program", no_wrap=True)
    for heading in ("engine s", "whole s", "SimGrid s", "ratio", "whole", "apart", "packet s"):
        table.add_column(heading, justify="right")
    for row in rows:
        beside = (
            f"{row['simgrid_s']:.3g}", f"{row['engine_ratio']:.3g}", f"{row['whole_ratio']:.3g}",
            f"{abs(row['deviation_percent']):.1g} %",
        ) if "simgrid_s" in row else ("",) * 4  # fmt: skip
        table.add_row(
            str(row["case"]),
            f"{row['engine_s']:.3g}",
            f"{row['whole_s']:.3g}",
            *beside,
            f"{row['packet_s']:.3g}" if "packet_s" in row else "",
        )
    console.print(table)
    say_written(target)


def bench_flow(
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of the results (default: build/bench/flow).")
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="33.5 million messages, too: gigabytes.")] = False,
) -> None:
    """Time engine flow on collectives of very many messages: all-to-all, and all-reduce around a ring.

    Processor time (making the program, running it, adding up results) and memory of a process per case, beside the
    aims; processor time of the engine alone.

    Example:

    hopforge bench flow --full
    """
    from rich.console import Console
    from rich.table import Table

    from hopforge.model.output.results import check_writable
    from hopforge.sim.start.bench_flow import CLOCK, chosen_flows, measure_flows
    from hopforge.sim.start.bench_results import write_bench

    cases = chosen_flows(full)
    target = output_folder(output, "bench flow")
    check_writable(target)
    console, rows = Console(), []
    with console.status("measuring") as status:
        for row in measure_flows(cases):
            rows.append(row)
            status.update(f"measured {len(rows)} of {len(cases)}")
    write_bench(rows, target, clock=CLOCK)
    table = Table(box=None, pad_edge=False)
    table.add_column("program", no_wrap=True)
    for heading in ("messages", "CPU s", "aim", "engine s", "M messages/s", "MiB", "aim"):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(
            row["case"], f"{row['messages']:,}", f"{row['cpu_s']:.3g}",
            f"{row['limit_s']:.0f}" if row["limit_s"] else "", f"{row['engine_s']:.3g}", f"{row['million_per_s']:.2f}",
            f"{row['peak_mib']:.0f}", f"{1024 * row['limit_gib']:.0f}" if row["limit_gib"] else "",
        )  # fmt: skip
    console.print(table)
    say_written(target)


def bench_routing(
    file: Annotated[Path, typer.Argument(metavar="FILE.py", help="A routing algorithm of your own.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of the results (default: build/bench/routing).")
    ] = None,
    rounds: Annotated[int, typer.Option(min=2, help="Timed pairs of rounds; the median of their ratios counts.")] = 81,
) -> None:
    """Time what the checks of a routing file cost: its relation with and without them, in turn, on an 8x8 mesh.

    Processor time at load 0.25, after the proof of freedom from deadlock and with routing.check: false.

    Example:

    hopforge bench routing configs/west_first.py
    """
    from rich.console import Console
    from rich.table import Table

    from hopforge.model.output.results import check_writable
    from hopforge.sim.start.bench_results import write_bench
    from hopforge.sim.start.bench_routing import CLOCK, LOAD, measure_routing

    target = output_folder(output, "bench routing")
    check_writable(target)
    console = Console()
    with console.status("measuring"):
        rows = list(measure_routing(file, rounds))
    write_bench(rows, target, clock=CLOCK, load=LOAD)
    table = Table(box=None, pad_edge=False)
    table.add_column("case", no_wrap=True)
    for heading in ("with checks", "without", "more", "half of the rounds"):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(
            str(row["case"]), f"{row['guarded_s']:.3g} s", f"{row['bare_s']:.3g} s", f"{row['guard_percent']:.1f} %",
            f"{row['low_quartile_percent']:.1f} to {row['high_quartile_percent']:.1f} %",
        )
    console.print(table)
    say_written(target)
