"""Commands about programs: how long they take, and their calls as files."""

from pathlib import Path
from typing import Annotated

import typer

from hopforge.commands.terminal import ConfigPath, progress_bar, say_written, show_rows


def app(
    config: ConfigPath,
    engine: Annotated[
        str | None, typer.Option(metavar="ENGINE", help="flow or packet (default: app.engine of the file).")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of the results (default: build/app/NAME).")
    ] = None,
) -> None:
    """Run the program of section `workload` on the network: makespan and the times of its ranks.

    Engine flow shares the bandwidth of links among messages; engine packet simulates the routers cycle by cycle. Both
    take times from the sections `timing` and `app` (docs/applications.md).
    """
    from hopforge.model.application import ENGINES, app_rows, run_app, write_app
    from hopforge.model.config import load_config
    from hopforge.model.results import check_writable

    checked = load_config(config)
    if engine is not None:
        if engine not in ENGINES:
            raise typer.BadParameter(f"--engine must be one of {', '.join(ENGINES)}, not {engine}")
        checked = checked.model_copy(update={"app": checked.app.model_copy(update={"engine": engine})})
    target = output or Path("build/app") / checked.name
    check_writable(target)
    with progress_bar("messages") as advance:
        done = run_app(checked, advance)
    write_app(checked, done, target)
    show_rows(app_rows(done))
    say_written(target)


def workload(
    config: ConfigPath,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="New folder of the trace (default: build/workload/NAME).")
    ] = None,
) -> None:
    """Write the program of section `workload` as a time-independent trace, a text for each rank.

    SimGrid replays it, and `workload.kind: trace` reads it.
    """
    from hopforge.model.application import checked_program, trace_rows
    from hopforge.model.config import load_config
    from hopforge.model.trace import write_trace

    checked = load_config(config)
    target = output or Path("build/workload") / checked.name
    trace = checked_program(checked)
    write_trace(trace, target)
    show_rows(trace_rows(trace))
    say_written(target)
