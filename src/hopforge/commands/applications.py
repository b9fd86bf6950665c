"""Commands about programs: how long they take, and their calls as files."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from hopforge.commands.configuration import read, say_unused
from hopforge.commands.terminal import ConfigPath, output_folder, progress_bar, say_written, show_rows, show_table

if TYPE_CHECKING:
    from hopforge.model.config import Config


def collectives(
    config: ConfigPath,
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of the results (default: build/NAME/collectives).")
    ] = None,
) -> None:
    """Time barrier, broadcast and all-reduce in the network, beside the same by hosts.

    In the network: units beside the routers combine words on their way up a tree and copy them on their way down
    (section `collective_plane`, docs/definitions/network-collectives.md). By hosts: named algorithms in the router
    simulator, on the same network with the same cables and clock.

    Example:

    hopforge collectives configs/collective_plane.yml
    """
    from hopforge.model.output.results import check_writable
    from hopforge.sim.programs.network_collectives import run_collectives
    from hopforge.sim.start.preparation import prepare

    checked, target = read(config, "collectives"), output_folder(output, "collectives", config)
    setup = prepare("collectives", checked)
    check_writable(target)
    with progress_bar("operations") as advance:
        found = run_collectives(setup, advance)
    found.write(target)
    show_rows(found.rows())
    show_table(found.lines(), left=2)
    say_unused(checked, "collectives")
    say_written(target)


class AppCommand(TyperCommand):
    """`hopforge app CONFIG`, and the same with the word `run` before it."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Leave out the word."""
        return super().parse_args(ctx, args[1:] if args[:1] == ["run"] else args)


def app(
    config: ConfigPath,
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="ARGUMENTS", help="Of --program; behind -- if one starts with -.")
    ] = None,
    *,
    engine: Annotated[
        str | None, typer.Option(metavar="ENGINE", help="flow, packet or loggops (default: app.engine of the file).")
    ] = None,
    backend: Annotated[
        str | None,
        typer.Option(metavar="BACKEND", help="Of engine flow: embedded, simgrid or auto (default: app.backend)."),
    ] = None,
    program: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Run this program, compiled by smpicc, in SimGrid instead of `workload`."),
    ] = None,
    ranks: Annotated[
        int | None, typer.Option("--ranks", "-n", min=1, help="Ranks of --program (default: one for each host).")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of the results (default: build/NAME/app).")
    ] = None,
) -> None:
    """Run the program of section `workload` on the network: makespan and the times of its ranks.

    Engine flow shares the bandwidth of links among messages, by hopforge itself or by SimGrid (backend simgrid); engine
    packet simulates the routers cycle by cycle. Both take times from the sections `timing` and `app`
    (docs/guides/applications.md). Engine loggops has no network but the parameters of LogGOPS (app.loggops,
    docs/definitions/goal.md). With --program a compiled MPI program runs on the network, and what it calls is
    written as a trace; the word `run` may stand before CONFIG. With workload.kind: jobs several programs run at once,
    each beside a run alone (docs/definitions/jobs.md).

    Example:

    hopforge app configs/app_mg_torus.yml --engine packet
    """
    from hopforge.model.config import load_config
    from hopforge.model.output.results import check_writable
    from hopforge.sim.start.preparation import for_command

    checked = for_command("app", _chosen_engine(load_config(config, keys=False), engine, backend))
    target = output_folder(output, "app", config)
    if program is not None:
        if engine is not None or backend is not None:
            raise typer.BadParameter("--program runs in SimGrid; replay its trace with another engine (kind: trace)")
        check_writable(target)
        _run_program(checked, program, ranks, arguments or [], target)
        return
    for option, value in (("-n", ranks), ("ARGUMENTS", arguments)):
        if value:
            raise typer.BadParameter(f"{option} is for --program; workload.ranks counts those of the file")
    check_writable(target)
    from hopforge.api.app import AppFound

    found = AppFound(checked)
    if words := found.forecast():
        typer.echo(words, err=True)
    with progress_bar(found.unit) as advance:
        found.run(advance)
    found.write(target)
    show_rows(found.rows())
    if lines := found.lines():
        show_table(lines, left=2)
    only = {"app.machine_gflops"} if checked.app.machine_gflops is not None else set()  # of --program
    say_unused(checked, "app", also_unused=only.difference(checked.unused))
    say_written(target)


def _chosen_engine(config: "Config", engine: str | None, backend: str | None) -> "Config":
    from hopforge.model.config.app import BACKENDS
    from hopforge.sim.programs.app_setup import ENGINES

    chosen = {}
    for option, value, known in (("engine", engine, ENGINES), ("backend", backend, BACKENDS)):
        if value is not None:
            if value not in known:
                raise typer.BadParameter(f"--{option} must be one of {', '.join(known)}, not {value}")
            chosen[option] = value
    used = engine or config.app.engine
    if backend is not None and used != "flow":
        raise typer.BadParameter(f"--backend is for engine flow, not {used}")
    return config.model_copy(update={"app": config.app.model_copy(update=chosen)})


def _run_program(config: "Config", program: Path, ranks: int | None, arguments: list[str], target: Path) -> None:
    from hopforge.sim.programs.smpi_execution import execution_rows, run_executable, write_execution

    with progress_bar("ranks at their end") as advance:
        done = run_executable(config, program, ranks, arguments, advance)
    write_execution(config, done, target)
    show_rows(execution_rows(done))
    say_written(target)


def workload(
    config: ConfigPath,
    to: Annotated[
        str, typer.Option(metavar="FORM", help="trace or chakra (a folder), goal or goal-binary (a file).")
    ] = "trace",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="New folder of the trace (default: build/NAME/workload); new file of a schedule "
            "of GOAL (default: build/NAME/workload.goal or .bin).",
        ),
    ] = None,
) -> None:
    """Write the program of section `workload` as time-independent trace, schedule of GOAL or traces of Chakra.

    A trace is a text for each rank; SimGrid replays it. A schedule is a graph of computations, sends and receives, with
    times in nanoseconds by app.host_gflops (docs/definitions/goal.md). `workload.kind: trace` reads both. Traces of
    Chakra are such a graph as a file for each rank, trace.RANK.et (docs/definitions/chakra.md); `kind: chakra` reads
    them.

    Example:

    hopforge workload configs/app_mg_torus.yml --to goal
    """
    from hopforge.model.workload.chakra_files import write_chakra
    from hopforge.model.workload.goal_files import WRITERS, write_goal
    from hopforge.model.workload.read_trace import write_trace
    from hopforge.model.workload.schedule import Schedule
    from hopforge.sim.programs.application import trace_rows
    from hopforge.sim.start.preparation import prepare

    forms = ("trace", *WRITERS, "chakra")
    if to not in forms:
        raise typer.BadParameter(f"--to must be one of {', '.join(forms)}, not {to}")
    checked = read(config, "workload")
    target = output_folder(output, "workload", config)
    program = prepare("workload", checked, form=to)
    if isinstance(program, Schedule):
        if to == "trace":
            said = program.file or program.name
            raise typer.BadParameter(f"--to trace: {said} is a schedule; {', '.join(forms[1:])} write one")
        if to == "chakra":
            write_chakra(program, target)
        else:
            target = target if output is not None else target.with_suffix(WRITERS[to][0])
            write_goal(program, target, to)
    else:
        write_trace(program, target)
    show_rows(trace_rows(program))
    if to == "trace":
        say_unused(checked, "workload")
    else:  # a schedule takes its times from one key of section app
        others = sorted(checked.app.model_fields_set - {"host_gflops"})
        say_unused(checked, "workload", ("app", "workload.computing"), [f"app.{key}" for key in others])
    say_written(target)
