"""Timing of a mapped netlist, by abc and by OpenSTA."""

import dataclasses
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from hopforge.gen.design.blocks import Block
from hopforge.gen.synth.result import SynthResult
from hopforge.gen.tools.yosys import YosysError

__all__ = ["abc_path", "netlist_ports", "timed"]

MANY_PERIODS = "MANY_PERIODS_"
"""Begins the report of paths that have several periods."""


def abc_path(log: str) -> Iterator[str]:
    """Start, cells and end of the critical path as ``stime -p`` prints it."""
    ends = re.findall(r"Start-point = (\S+) \((\S+)\)\.\s+End-point = (\S+) \((\S+)\)", log)
    if ends:
        yield ends[-1][1]
    yield from re.findall(r"Path\s*\d+ -- .*?:.*?\s(\w+_X\d+)\s", log)
    if ends:
        yield ends[-1][3]


LIMIT_S = 1200
"""Seconds that OpenSTA may take: latches of a router are many paths."""
OUTSIDE_NS = 0.1
"""After the clock edge the inputs of a clocked block change; so do by default the words that memories read."""


def timed(
    block: Block, top: str, result: SynthResult, folder: Path, *, memory_ns: float = OUTSIDE_NS
) -> SynthResult:  # fmt: skip
    """Add what OpenSTA says, if there is one.

    A path ends at a register, an output or the enable of a clock gate. Latches are passed through: what arrives while
    they are open goes on (time borrowing), and is there long before they close.

    Raises
    ------
    YosysError
        OpenSTA takes longer than `LIMIT_S`.
    """
    program = shutil.which("sta")
    if program is None:
        return result
    period = 10.0
    netlist = (folder / f"{result.recipe}.v").read_text()
    of_top = netlist[netlist.index(f"module {top}(") :].partition("endmodule")[0]
    inputs = netlist_ports(of_top, "input")
    outputs = {name for name in netlist_ports(of_top, "output") if not name.endswith(".clk")}
    words = sorted(name for name in inputs if "." in name)
    memories = [words] if words and memory_ns != OUTSIDE_NS else []
    lines = ["read_liberty cells.lib", f"read_verilog {result.recipe}.v", f"link_design {top}"]
    if block.clocked:
        # What lies outside are registers and memories: their outputs come after a clock edge, too.
        lines += [
            f"create_clock -name clk -period {period} [get_ports clk]",
            f"set_input_delay {OUTSIDE_NS} -clock clk [get_ports {{{' '.join(sorted(inputs - {'clk'}))}}}]",
            *(f"set_input_delay {memory_ns} -clock clk [get_ports {{{' '.join(memory)}}}]" for memory in memories),
            f"set_output_delay 0.04 -clock clk [get_ports {{{' '.join(sorted(outputs))}}}]",
            *(["set_false_path -from [get_ports rst]"] if "rst" in inputs else []),
            *(
                f"set_multicycle_path -setup {periods} -through [get_cells {name}]"
                for name, periods in block.many_periods.items()
            ),
        ]
    else:
        lines += [
            f"create_clock -name clk -period {period}",
            "set_input_delay 0 -clock clk [all_inputs]",
            "set_output_delay 0 -clock clk [all_outputs]",
        ]
    ends = ""
    if block.clocked:
        gates = sorted(set(re.findall(r"^  \w*GATE\w* [^;]*?\.(E|EN|CEN|ENA)\(", netlist, re.MULTILINE)))
        pins = "".join(f" [get_pins */{pin}]" for pin in gates)
        lines.append(f"set ends [concat [all_registers -edge_triggered -data_pins] [all_outputs]{pins}]")
        ends = " -to $ends"
    lines += [
        f"report_checks -path_delay max{ends} -format full -digits 4",
        "puts ENDPOINTS",
        f"report_checks -path_delay max{ends} -format end -digits 4 -group_count 100000 -endpoint_count 1",
        *(
            line
            for name in block.many_periods
            for line in (f"puts {MANY_PERIODS}{name}", f"report_checks -through [get_cells {name}] -digits 4")
        ),
        "exit",
    ]
    (folder / "time.tcl").write_text("\n".join(lines) + "\n")
    try:
        done = subprocess.run(
            [program, "-no_splash", "-exit", "time.tcl"], cwd=folder, capture_output=True, text=True, timeout=LIMIT_S,
            check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise YosysError(f"{block.name}, {result.recipe}: OpenSTA did not end within {LIMIT_S} s") from error
    (folder / f"{result.recipe}.timing").write_text(done.stdout)
    slack = re.search(r"^\s*(-?[\d.]+)\s+slack", done.stdout, re.MULTILINE)
    if slack is None:
        return result
    report, _, endpoints = done.stdout.partition("ENDPOINTS")
    endpoints, *slow = endpoints.split(MANY_PERIODS)
    shares = {part.split()[0]: _share(part, period, block.many_periods[part.split()[0]]) for part in slow}
    path = re.findall(r"[\^v] (\S+)(?: \((\w+)\))?", report)
    return dataclasses.replace(
        result,
        sta_ns=max(round(period - float(slack[1]), 4), *shares.values(), 0.0),
        path=tuple(
            f"{cell}" if cell and not cell.startswith(("in", "out")) else pin for pin, cell in path if pin != "input"
        ),
        stages_ns=_by_submodule(endpoints, netlist, period) | shares if block.clocked else {},
    )


def _share(report: str, period: float, periods: int) -> float:
    """Return the shortest period for the worst path of `report`, which has as many of them."""
    slack = re.search(r"^\s*(-?[\d.]+)\s+slack", report, re.MULTILINE)
    return 0.0 if slack is None else round(period - float(slack[1]) / periods, 4)


def netlist_ports(netlist: str, direction: str) -> set[str]:
    """Names of the ports of a netlist, as OpenSTA writes them (without the backslash of an escaped name)."""
    found = re.findall(rf"^  {direction} (?:\[[^]]*\] )?\\?(\S+?) ?;", netlist, re.MULTILINE)
    return set(found)


def _by_submodule(endpoints: str, netlist: str, period: float) -> dict[str, float]:
    """Shortest period by the submodule (and register) in which the paths end; those of memories by their port."""
    registers = dict(re.findall(r"^  \w*DFF\w* (\w+) \([^;]*?\.Q\(\\?([^\s)\[]+)", netlist, re.MULTILINE))
    worst: dict[str, float] = {}
    for name, slack in re.findall(r"^(\S+) \(.*?(-?[\d.]+) \((?:MET|VIOLATED)\)$", endpoints, re.MULTILINE):
        cell = name.split("/")[0]
        place = registers.get(cell, cell.split("\\")[0])  # a cell is named by its wire, a backslash and its type
        place = re.sub(r"(\$\d+)?(\[\d+\])?$", "", place)
        worst[place] = max(worst.get(place, 0.0), round(period - float(slack), 4))
    return dict(sorted(worst.items(), key=lambda item: -item[1]))
