"""A netlist with all its mutants on Verilator: which of them differ from a golden trace, and where first."""

import re
import subprocess
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from string import Template
from typing import NamedTuple

import numpy as np

from hopforge.gen.mutation.mutate import SELECTOR, Mutant, Netlist
from hopforge.gen.tools.processor_time import run_within
from hopforge.gen.tools.verilated_runtime import build_model
from hopforge.sim.cosim.poked_counters import CounterBits, counter_bits
from hopforge.sim.drive.replay import Columns, Replay, port_columns
from hopforge.sim.drive.runner import UNOPTIMISED, SimulatorError, is_short, member_name

_SOURCE = Path(__file__).with_suffix(".cpp")
_BUILD_TIMEOUT_S = 900
_PLAY_TIMEOUT_S = 300  # of processor time; a mutant that takes so long does not end
_AFTER_RESET = 400
"""Cycles of a trace that are compared after a further reset."""


class Use(NamedTuple):
    """Cycles before a reset.

    Attributes
    ----------
    begin, cycles : int
        Which of a trace are played; they are not compared.
    reset_cycles : int
        How long the reset is.
    """

    begin: int
    cycles: int
    reset_cycles: int


class Surroundings(NamedTuple):
    """What is done to a netlist besides a trace.

    Attributes
    ----------
    used_cycles : int
        Cycles of the trace that are played, and not compared, before the reset: without them everything is as after
        reset by itself, and no trace shows a register that the reset forgets.
    used_masks : dict
        Inputs of which only these bits are driven in these cycles.
    uses : tuple of Use
        Further resets, in the middle of work; after each the first `_AFTER_RESET` cycles of the trace are compared.
    """

    used_cycles: int = 0
    used_masks: Mapping[str, int] = {}
    uses: tuple[Use, ...] = ()


def build(netlist: Netlist, mutants: Sequence[Mutant], replay: Replay, around: Surroundings) -> Path:
    """Compile the netlist with all mutants and the loop that plays a trace to some of them."""
    folder = netlist.folder.resolve()
    verilog = netlist.verilog(mutants)
    counters = counter_bits(verilog)
    for name in {bits.register for bits in counters}:
        declared = re.compile(rf"( reg (?:\[\d+:0\] )?{re.escape(_escaped(name))})([ ;])")
        verilog = declared.sub(r"\1 /*verilator public_flat_rw*/\2", verilog, count=1)
    (folder / "raced.sv").write_text(verilog)
    (folder / "race.cpp").write_text(_race_source(netlist.top, replay, around, counters))
    few = is_short(len(verilog), replay.cycles * len(mutants))
    compiler = ["--output-split", "1000000", *UNOPTIMISED] if few else ["-CFLAGS", "-O1"]
    done = build_model(
        [
            "--cc", "--exe", "--build", "-j", "1", "-O3", "--x-assign", "fast", "-Wno-fatal", "-Wno-lint", "-Wno-style",
            "--no-assert", *compiler, "--top-module", netlist.top, "raced.sv", "race.cpp",
        ],
        folder, timeout_s=_BUILD_TIMEOUT_S,
    )  # fmt: skip
    (folder / "build.log").write_text(done.stdout)
    program = folder / "obj_dir" / f"V{netlist.top}"
    if done.returncode != 0 or not program.exists():
        raise SimulatorError(f"verilator could not build the mutants of {netlist.top}: see {folder / 'build.log'}")
    return program


def play(
    program: Path, replay: Replay, numbers: Sequence[int], counts_from: int | None = None
) -> Iterator[tuple[int, int, str]]:
    """Yield (mutant, cycle, port) of those that differ from `replay`; cycle -1 if the simulation did not end.

    All counters begin with `counts_from` instead of what they are after reset.
    """
    folder, rows = program.parent, program.with_name("trace.bin")
    rows.write_bytes(np.hstack([replay.driven, replay.expected]).tobytes())
    start = "-" if counts_from is None else str(counts_from)
    left = list(numbers)
    while left:
        done: set[int] = set()
        late = False
        try:
            text = run_within([str(program), str(rows), start, *map(str, left)], folder, _PLAY_TIMEOUT_S).stdout
        except subprocess.TimeoutExpired as expired:
            late, text = True, (expired.output or b"").decode(errors="replace")
        for number, cycle, signal in re.findall(r"^(\d+) (\d+) (\S+)$", text, re.MULTILINE):  # nothing of Verilator's
            done.add(int(number))
            if signal != "-":
                yield int(number), int(cycle), signal
        left = [number for number in left if number not in done]
        if left and not (late and done):  # at the next one the simulator ended, or spent all the time: no end
            yield left[0], -1, "none"
            left = left[1:]


def _poke(place: str, bits: CounterBits) -> str:
    ones = (1 << bits.width) - 1
    kept = f"({place} & ~{ones << bits.lowest:#x}u)"
    return f"    {place} = {kept} | (counts >> {bits.first} & {ones:#x}u) << {bits.lowest};"


def _escaped(name: str) -> str:
    return name if name.isidentifier() else f"\\{name}"


def _verilated(top: str, name: str, ports: Collection[str]) -> str:
    """Return where the verilated class keeps a register."""
    if name in ports:
        return f"top->{member_name(name)}"
    words = re.sub(r"[^\w]", lambda sign: f"__0{ord(sign[0]):02x}", member_name(name))
    return f"top->rootp->{top}__DOT__{words}"


def _set(port: Columns) -> str:
    """Return the statement that sets an input of the model from a row."""
    if port.words > 1:
        return f"    SET({member_name(port.name)}, {port.first});"
    return f"    top->{member_name(port.name)} = row[{port.first}];"


def _race_source(top: str, replay: Replay, around: Surroundings, counters: Sequence[CounterBits]) -> str:
    """Return the C++ loop: a trace, what counters begin with, and mutants as arguments; a line for each to stdout."""
    inputs, outputs = len(replay.inputs), len(replay.outputs)
    ins = port_columns(replay.inputs)
    sets = "\n".join(_set(port) for port in ins)
    uses = "\n".join(
        f"    top->{member_name(port.name)} = row[{port.first}] & {around.used_masks[port.name]}ull;"
        if port.name in around.used_masks
        else _set(port)
        for port in ins
    )
    gets = "\n".join(
        f"        GET({member_name(port.name)}, {port.first});"
        if port.words > 1
        else f"        got[{port.first}] = top->{member_name(port.name)};"
        for port in port_columns([output.name for output in replay.outputs])
    )
    ports = {output.name for output in replay.outputs}
    pokes = "\n".join(_poke(_verilated(top, bits.register, ports), bits) for bits in counters)
    tick = "top->clk = 1; top->eval(); top->clk = 0;" if replay.clocked else ""
    zeros = " ".join(
        f"ZERO({member_name(port.name)})" if port.words > 1 else f"top->{member_name(port.name)} = 0;" for port in ins
    )
    reset = f"{zeros} top->rst = 1; for (int i = 0; i < cycles; i++) {{ top->eval(); {tick} }} top->rst = 0;"
    rounds = ", ".join(f"{{{use.begin}, {use.cycles}, {use.reset_cycles}, {_AFTER_RESET}}}" for use in around.uses)
    last = f"{{0, {around.used_cycles}, 2, SIZE_MAX}}"
    fields = {
        "top": top,
        "names": ", ".join(f'"{output.name}"' for output in replay.outputs),
        "gates": ", ".join(map(str, replay.gates)),
        "width": inputs + outputs,
        "inputs": inputs,
        "outputs": outputs,
        "rounds": ", ".join(word for word in (rounds, last) if word),
        "uses": uses,
        "sets": sets,
        "gets": gets,
        "pokes": pokes,
        "reset": reset if replay.clocked else "",
        "tick": tick,
        "settle_cycles": replay.settle_cycles,
        "selector": SELECTOR,
    }
    return Template(_SOURCE.read_text(encoding="utf-8")).substitute(fields)
