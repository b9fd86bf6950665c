"""A netlist of cells plays a replay on Icarus, without delays; how often every net changes."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hopforge.gen.synth.gate_energy import Activity, Bit, Netlist
from hopforge.gen.tools.processor_time import run_within
from hopforge.model.errors import UserError
from hopforge.sim.drive.replay import WORD_BITS, Replay, port_columns

__all__ = ["GateRun", "run_gates"]

_TIMEOUT_S = 1200
_VARIABLE = re.compile(r"\$var \w+ (\d+) (\S+) \\?(\S+)\s*(?:\[(\d+)(?::(\d+))?\])?\s*\$end")


class GateRun(NamedTuple):
    """What a run found: cycles in which an output differed, and the activity of each bit in the cycles measured."""

    mismatches: int
    cycles: int
    activities: dict[Bit, Activity]


def run_gates(
    netlist: Path, memories: Path, cells: Netlist, top: str, replay: Replay, folder: Path, *, begin: int
) -> GateRun:
    """Play a replay to a netlist and count the changes of its nets from cycle `begin` on.

    Changes that are taken back in the same cycle (glitches) do not count: cells have no delay.

    Parameters
    ----------
    netlist, memories : Path
        Verilog of the netlist and of its memories.
    cells : Netlist
        What it is made of.
    top : str
        Its module.
    replay : Replay
        Inputs and what must come out.
    folder : Path
        For the files of the run.
    begin : int
        First cycle that counts.

    Raises
    ------
    UserError
        Icarus is missing, fails or takes too long.
    """
    program = shutil.which("iverilog")
    if program is None:
        raise UserError("Icarus Verilog (iverilog) is missing: apt-get install iverilog")
    (folder / "cells.v").write_text("".join(cell.verilog() for cell in cells.cells.values()))
    (folder / "bench.v").write_text(_bench(top, replay, begin))
    _write_rows(folder / "driven.hex", replay.driven)
    _write_rows(folder / "expected.hex", replay.expected)
    _write_rows(folder / "care.hex", _care(replay))
    sources = ["bench.v", "cells.v", str(netlist.resolve()), str(memories.resolve())]
    for command in ([program, "-g2012", "-s", "bench", "-o", "bench.vvp", *sources], ["vvp", "-n", "bench.vvp"]):
        try:
            done = run_within(command, folder, _TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise UserError(f"{top}: {command[0]} took longer than {_TIMEOUT_S} s of processor time") from None
        if done.returncode:
            raise UserError(f"{top}: {Path(command[0]).name} failed: {(done.stderr or done.stdout).strip()[-300:]}")
    found = re.search(r"^mismatches (\d+)", done.stdout, re.MULTILINE)
    if found is None:
        raise UserError(f"{top}: the run has no end: {done.stdout.strip()[-300:]}")
    cycles = len(replay.driven) - begin
    return GateRun(int(found[1]), cycles, _activities(folder / "changes.vcd", cycles))


def _write_rows(path: Path, rows: np.ndarray) -> None:
    path.write_text("".join("".join(f"{int(word):016x}" for word in row[::-1]) + "\n" for row in rows))


def _care(replay: Replay) -> np.ndarray:
    """Return which bits of the outputs mean something."""
    names = [output.name for output in replay.outputs]
    care = np.full(replay.expected.shape, ~np.uint64(0))
    for column, output in enumerate(replay.outputs):
        if output.gate is not None:
            care[replay.expected[:, names.index(output.gate)] == 0, column] = 0
    care[: replay.settle_cycles] = 0
    return care


def _bench(top: str, replay: Replay, begin: int) -> str:
    """Verilog of the bench: reset, a row of inputs after each edge, outputs compared before the next one."""
    ins, outs = replay.driven.shape[1] * WORD_BITS, replay.expected.shape[1] * WORD_BITS
    lines = [
        "`timescale 1ns/1ps", "module bench;", "  reg clk = 0, rst = 1;",
        f"  reg [{ins - 1}:0] driven = 0, rows [0:{len(replay.driven) - 1}];",
        f"  reg [{outs - 1}:0] expected [0:{len(replay.driven) - 1}], care [0:{len(replay.driven) - 1}];",
        f"  wire [{outs - 1}:0] got;", "  integer cycle, mismatches = 0;",
    ]  # fmt: skip
    ports = ["    .clk(clk)", "    .rst(rst)"]
    for port in port_columns(replay.inputs):
        ports.append(f"    .\\{port.name} (driven[{port.first * WORD_BITS} +: {port.words * WORD_BITS}])")
    for port in port_columns([output.name for output in replay.outputs]):
        ports.append(f"    .\\{port.name} (got[{port.first * WORD_BITS} +: {port.words * WORD_BITS}])")
    lines += [f"  {top} dut (", ",\n".join(ports), "  );"]
    lines += [
        "  initial begin",
        '    $readmemh("driven.hex", rows); $readmemh("expected.hex", expected); $readmemh("care.hex", care);',
        '    $dumpfile("changes.vcd");',
        "    repeat (2) begin #1 clk = 1; #1 clk = 0; end",
        "    #1 clk = 1; #0.5 rst = 0;",
        f"    for (cycle = 0; cycle < {len(replay.driven)}; cycle = cycle + 1) begin",
        "      driven = rows[cycle];",
        f"      if (cycle == {begin}) $dumpvars(1, dut);",
        "      #0.5 clk = 0;",
        "      #0.5 if (((got ^ expected[cycle]) & care[cycle]) !== 0) mismatches = mismatches + 1;",
        "      #0.5 clk = 1; #0.5;",
        "    end",
        '    $display("mismatches %0d", mismatches);', "    $finish;", "  end", "endmodule", "",
    ]  # fmt: skip
    return "\n".join(lines)


def _activities(path: Path, cycles: int) -> dict[Bit, Activity]:
    """Read changes and shares of time at 1 from a VCD."""
    with path.open() as file:
        nets = dict(_declared(file))
        values = {key: "x" * width for key, (_, width, _) in nets.items()}
        changes = {key: [0] * width for key, (_, width, _) in nets.items()}
        since = dict.fromkeys(nets, 0)
        high = {key: [0] * width for key, (_, width, _) in nets.items()}
        now = first = -1
        for line in file:
            mark = line[0]
            if mark == "#":
                now = int(line[1:])
                first = now if first < 0 else first
                continue
            if mark in "01xz":
                key, value = line[1:-1], mark
            elif mark == "b":
                text, key = line[1:].split()
                value = text.rjust(len(values[key]), "0" if text[0] in "01" else text[0])
            else:
                continue
            before, spent = values[key], now - since[key]
            for place, (old, new) in enumerate(zip(before, value, strict=True)):
                if old == "1":
                    high[key][place] += spent
                if old not in (new, "x"):
                    changes[key][place] += 1
            values[key], since[key] = value, now
    last = max(now, first + 1)
    found = {}
    for key, (names, width, lsb) in nets.items():
        for place in range(width):
            above = high[key][place] + (last - since[key] if values[key][place] == "1" else 0)
            activity = Activity(changes[key][place] / cycles, above / (last - first))
            for name in names:
                found[Bit(name, lsb + width - 1 - place)] = activity
    return found


def _declared(file: Iterator[str]) -> Iterator[tuple[str, tuple[list[str], int, int]]]:
    """Yield every net of the header of a VCD: key, names, width, lowest bit."""
    nets: dict[str, tuple[list[str], int, int]] = {}
    for line in file:
        found = _VARIABLE.match(line.strip())
        if found:
            low = int(found[5] if found[5] is not None else found[4] or 0)
            nets.setdefault(found[2], ([], int(found[1]), low))[0].append(found[3])
        elif line.startswith("$enddefinitions"):
            break
    yield from nets.items()
