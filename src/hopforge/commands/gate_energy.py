"""Command that measures energy on a netlist of cells."""

from pathlib import Path
from typing import Annotated

import typer

from hopforge.commands.configuration import read, say_unused
from hopforge.commands.terminal import ConfigPath, output_folder, show_rows


def energy(
    config: ConfigPath,
    *,
    liberty: Annotated[Path, typer.Option(metavar="FILE", help="Cell library (.lib, .lib.gz).")],
    part: Annotated[str, typer.Option("--part", help="lookup (the engine) or router.")] = "lookup",
    cycles: Annotated[int, typer.Option(min=1, help="Lookups, or cycles with new packets.")] = 1000,
    period_ns: Annotated[float, typer.Option("--period-ns", help="Clock period; it counts for leakage only.")] = 1.0,
    recipe: Annotated[str, typer.Option(help="Of abc.")] = "lut-fast",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of the result (default: build/NAME/energy).")
    ] = None,
    timeout_s: Annotated[
        float, typer.Option("--timeout-s", min=1, help="Limit of processor time of the mapping.")
    ] = 300,
) -> None:
    """Measure the energy of a lookup or a flit: changes of every net of a gate-level run · energies of the library.

    Random traffic goes through the mapped netlist (Icarus); every output is compared with the golden model. The sum
    stands beside the analytic model, and beside OpenSTA at a uniform activity (docs/guides/energy.md).

    Example:

    hopforge energy configs/demo.yml --liberty cells.lib
    """
    from rich.console import Console

    from hopforge.sim.cosim.gate_report import GATE_PARTS, measure_gates

    used = f"energy --part {part}" if part in GATE_PARTS else "energy --part lookup"
    checked = read(config, used)
    status = Console(stderr=True).status("")
    with status:
        report = measure_gates(
            checked, part, liberty, folder=output_folder(output, "energy", config), cycles=cycles,
            period_ns=period_ns, recipe=recipe, timeout_s=timeout_s, progress=status.update,
        )  # fmt: skip
    show_rows(report.rows())
    say_unused(checked, used)
