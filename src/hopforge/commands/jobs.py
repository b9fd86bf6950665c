"""The command about jobs that share a machine."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hopforge.commands.terminal import output_folder, progress_bar, say_written, show_rows, show_table
from hopforge.model.seeds import MOST_SEED

if TYPE_CHECKING:
    from hopforge.model.workload.job_log import JobLog

_MOST_JOBS = 1_000_000


def jobs(
    log: Annotated[
        Path | None, typer.Argument(metavar="[LOG]", help="Log of jobs: SWF 2.2, also packed by gzip.")
    ] = None,
    *,
    nodes: Annotated[int | None, typer.Option("--nodes", min=1, help="Nodes of the machine, in one line.")] = None,
    dims: Annotated[
        str | None, typer.Option("--dims", metavar="KxKx…", help="Nodes in each dimension: 16x8x8.")
    ] = None,
    ppn: Annotated[
        int | None, typer.Option("--ppn", min=1, max=1 << 20, help="Processors of a node (default: 1, or the header).")
    ] = None,
    scheduler: Annotated[
        list[str] | None, typer.Option("--scheduler", help="fcfs or easy (repeat; default: both).")
    ] = None,
    placement: Annotated[
        list[str] | None,
        typer.Option("--placement", help="linear, contiguous, block, random, group or subtree (repeat)."),
    ] = None,
    group: Annotated[
        list[int] | None,
        typer.Option("--group", metavar="N", min=1, help="Nodes of a group or subtree (repeat for levels)."),
    ] = None,
    seed: Annotated[
        int, typer.Option("--seed", min=0, max=MOST_SEED, help="Of random placement and of a drawn log.")
    ] = 1,
    generate: Annotated[
        str | None,
        typer.Option("--generate", metavar="KIND", help="Draw the log instead: all, batch, interactive or typed."),
    ] = None,
    count: Annotated[
        int | None, typer.Option("--count", min=1, max=_MOST_JOBS, help="Jobs of a drawn log (default: 1000).")
    ] = None,
    interference: Annotated[
        bool, typer.Option("--interference", help="Count the links of a torus that jobs share at the busiest instant.")
    ] = False,
    plots: Annotated[bool, typer.Option("--plots", help="Draw what the tables hold, too (PNG).")] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder of the results (default: build/NAME/jobs, drawn: build/jobs)."),
    ] = None,
) -> None:
    """Run the jobs of a log on a machine that they share: waits, slowdowns, utilisation, sizes of jobs.

    The log is in the Standard Workload Format (.swf, .swf.gz), or drawn from the model of Lublin and Feitelson
    (--generate). Every scheduler runs it with every placement; docs/definitions/jobs.md defines them. Without --nodes
    and --dims the machine is that of the header (MaxNodes, MaxProcs). Jobs that cannot run are skipped and counted.

    Example:

    hopforge jobs --generate all --dims 8x4x4
    """
    from hopforge.model.output.results import check_writable
    from hopforge.sim.jobs.placement import PLACEMENTS
    from hopforge.sim.jobs.prepared import groups_of, machine_of, prepare_jobs
    from hopforge.sim.jobs.runs import run_jobs, write_jobs
    from hopforge.sim.jobs.space_sharing import SCHEDULERS
    from hopforge.sim.jobs.tables import schedule_lines, summary_rows

    sizes = _dims(nodes, dims)
    schedulers = _chosen("--scheduler", scheduler, SCHEDULERS, [*SCHEDULERS])
    placements = _chosen("--placement", placement, PLACEMENTS, ["linear"])
    read = _log(log, generate, count, sizes, ppn, seed)
    target = output_folder(output, "jobs", None if log is None else Path(log.name.removesuffix(".gz")))
    machine = machine_of(read, sizes, ppn)
    setup = prepare_jobs(
        read, machine, drawn=log is None, schedulers=schedulers, placements=placements, seed=seed,
        interference=interference, groups=groups_of(machine, sorted(group or ()), placements),
    )  # fmt: skip
    check_writable(target)
    with progress_bar("jobs") as advance:
        found = run_jobs(setup, advance)
    write_jobs(found, target, plots=plots)
    show_rows(summary_rows(found))
    show_table(schedule_lines(found), left=2)
    say_written(target)


def _dims(nodes: int | None, dims: str | None) -> tuple[int, ...] | None:
    if dims is None:
        return None if nodes is None else (nodes,)
    if nodes is not None:
        raise typer.BadParameter("--nodes and --dims both name the machine; leave one out")
    words = dims.split("x")
    if len(words) > 16 or not all(word.isascii() and word.isdigit() and 0 < len(word) < 10 for word in words):
        raise typer.BadParameter(f"--dims must be at most 16 whole numbers with x between, as 16x8x8, not {dims[:40]}")
    found = tuple(map(int, words))
    if min(found) < 1:
        raise typer.BadParameter(f"--dims must be numbers from 1, not {dims}")
    return found


def _chosen(option: str, given: list[str] | None, names: Iterable[str], otherwise: list[str]) -> list[str]:
    names = list(names)
    for one in given or []:
        if one not in names:
            raise typer.BadParameter(f"{option} must be one of {', '.join(names)}, not {one}")
    return list(dict.fromkeys(given or otherwise))


def _log(
    log: Path | None, generate: str | None, count: int | None, dims: tuple[int, ...] | None, ppn: int | None, seed: int
) -> "JobLog":
    """Read or draw the log."""
    import math

    import numpy as np

    from hopforge.model.workload.job_log import read_log
    from hopforge.model.workload.lublin import KINDS, draw_log
    from hopforge.sim.jobs.prepared import JobsError, check_nodes

    if (log is None) == (generate is None):
        raise typer.BadParameter("name either a LOG or --generate")
    if generate is None:
        if count is not None:
            raise typer.BadParameter("--count is for --generate; a log has its own jobs")
        assert log is not None
        return read_log(log)
    if generate not in KINDS:
        raise typer.BadParameter(f"--generate must be one of {', '.join(KINDS)}, not {generate}")
    if dims is None:
        raise typer.BadParameter("--generate needs a machine: --nodes or --dims")
    check_nodes(math.prod(dims))
    try:
        return draw_log(generate, count or 1000, math.prod(dims) * (ppn or 1), np.random.default_rng(seed))
    except ValueError as error:
        raise JobsError(str(error)) from error
