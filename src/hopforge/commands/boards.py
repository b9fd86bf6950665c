"""Commands that build designs for FPGA boards, and run them."""

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from hopforge.commands.configuration import read, say_unused
from hopforge.commands.terminal import ConfigPath, complain, output_folder, show_rows, show_table, working

Design = Annotated[str, typer.Option("--design", help="engine or network.")]
Baud = Annotated[int, typer.Option("--baud", min=300, help="Rate of the serial line.")]


class BoardCommands(TyperGroup):
    """`hopforge fpga BOARD CONFIG` is short for `hopforge fpga build BOARD CONFIG`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put in the word that may be left out."""
        if args and not args[0].startswith("-") and args[0] not in self.commands:
            args = ["build", *args]
        return super().parse_args(ctx, args)


def _list(wanted: bool) -> None:
    if not wanted:
        return
    from hopforge.gen.fpga.boards import BOARDS

    rows = [("board", "what it is", "holds", "LUTs", "block RAMs", "clock")]
    for board in BOARDS.values():
        clock = f"{board.mhz['engine']:g} MHz"
        rows.append(
            (board.name, board.title, board.holds, str(board.luts), f"{board.brams} of {board.bram_kbit} kbit", clock)
        )
    show_table(rows, left=3)
    raise typer.Exit


def fpga(
    _list: Annotated[
        bool, typer.Option("--list", callback=_list, is_eager=True, help="List the boards and what each holds.")
    ] = False,
) -> None:
    """Put designs on FPGA boards, and run them: hopforge fpga BOARD CONFIG, hopforge fpga run CONFIG."""


def build(
    board: Annotated[str, typer.Argument(metavar="BOARD", help="Name of a board (hopforge fpga --list).")],
    config: ConfigPath,
    *,
    design: Design = "engine",
    mhz: Annotated[float | None, typer.Option("--mhz", help="Clock (default: that of the board).")] = None,
    baud: Baud = 115_200,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of placement.")] = 1,
    tries: Annotated[
        int, typer.Option("--tries", min=1, help="Placements at most, with the next seeds, until one keeps the clock.")
    ] = 4,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of the files (default: build/NAME/fpga/build).")
    ] = None,
) -> None:
    """Write the bitstream of a design for a board, with its clock and what it takes of the chip.

    The word build may be left out. Exit status 1 if the design does not keep its clock; the worst path is named then.
    For a chip of AMD it is a project for Vivado.

    Example:

    hopforge fpga build icebreaker configs/boards/up5k.yml
    """
    from hopforge.gen.fpga.bitstream import BuildOptions, build_for_board
    from hopforge.gen.fpga.board_design import design_kind
    from hopforge.gen.fpga.boards import board_named

    target, kind = board_named(board), design_kind(design)
    checked = read(config, f"fpga --design {kind}")
    options = BuildOptions(design=kind, mhz=mhz, baud=baud, seed=seed, tries=tries)
    with working():
        report = build_for_board(checked, target, options, output=output_folder(output, "fpga build", config))
    show_rows(report.rows())
    say_unused(checked, f"fpga --design {kind}")
    if not report.passed:
        complain(f"{report.problem} (--mhz, --seed, --tries)")
        raise typer.Exit(1)


def run(
    config: ConfigPath,
    *,
    port: Annotated[str | None, typer.Option("--port", help="Serial port of the board, such as /dev/ttyUSB0.")] = None,
    simulate: Annotated[
        bool, typer.Option("--simulate", help="The design in Verilator behind a pseudo-terminal instead of a board.")
    ] = False,
    design: Design = "engine",
    count: Annotated[int, typer.Option("--count", min=1, help="Lookups, or packets of each host.")] = 100,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Where the random words begin.")] = 1,
    router: Annotated[int, typer.Option("--router", min=0, help="Switch of which the engine is.")] = 0,
    baud: Baud = 115_200,
    timeout_s: Annotated[float, typer.Option("--timeout-s", help="Longest wait for a reply.")] = 2.0,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of the report (default: build/NAME/fpga/run).")
    ] = None,
) -> None:
    """Run a design on a board, or simulated, and compare every counter with the twin.

    Exit status 1 if a counter differs; the light for mismatches is then on.

    Example:

    hopforge fpga run configs/boards/up5k.yml --simulate
    """
    from hopforge.gen.fpga.board_design import design_kind
    from hopforge.model.errors import UserError
    from hopforge.sim.boards.host_run import RunOptions, run_on_board

    if (port is None) != simulate:
        raise UserError("hopforge fpga run takes either --port PORT or --simulate")
    kind = design_kind(design)
    checked, folder = read(config, f"fpga --design {kind}"), output_folder(output, "fpga run", config)
    options = RunOptions(
        design=kind, count=count, seed=seed, router=router, baud=baud, timeout_s=timeout_s
    )  # fmt: skip
    with working():
        report = run_on_board(checked, options, port=port, output=folder)
    report.keep(folder / "run.json")
    show_rows(report.rows())
    say_unused(checked, f"fpga --design {kind}")
    if not report.passed:
        raise typer.Exit(1)
