"""Area and delay in a standard-cell library, block by block, best of several recipes.

Yosys maps to gates, its abc to cells; OpenSTA, if it is installed, times the mapped netlist with registers. Ideal
wires and clocks. Without a library: generic gates and logic levels.
"""

import dataclasses
import json
import re
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from hopforge.gen.design.blocks import Block, lookup_blocks
from hopforge.gen.design.collective_blocks import collective_blocks
from hopforge.gen.design.configured import engine_parameters
from hopforge.gen.design.inference_blocks import inference_blocks
from hopforge.gen.design.q_table_blocks import q_table_blocks
from hopforge.gen.design.router_blocks import allocator_blocks, router_blocks
from hopforge.gen.design.rule_cache_blocks import rule_cache_blocks
from hopforge.gen.design.service_host import acknowledge_blocks
from hopforge.gen.synth.cells import Library, gate_cell, read_library, reset_map
from hopforge.gen.synth.result import SynthResult
from hopforge.gen.synth.timing import OUTSIDE_NS, abc_path, timed
from hopforge.gen.tools.abc_recipes import EFFORTS, RECIPES
from hopforge.gen.tools.yosys import YosysError, run_yosys
from hopforge.gen.verilog.writer import to_rtlil, tool_versions
from hopforge.model.config import Config
from hopforge.model.errors import UserError
from hopforge.model.output.results import command_words, staged

__all__ = ["BLOCK_SETS", "map_with_memories", "synthesize", "synthesize_config"]

SLOT_BITS = 84 * 8
"""Bits of the smallest Ethernet packet with preamble and gap."""

BLOCK_SETS = ("lookup", "router", "allocators", "q_table", "inference", "acknowledges", "collectives", "rule_cache")
"""Names of the sets of blocks: of the lookup engine, of the router, a fixed table of arbiters and allocators, the
table of Q-adaptive, a fixed table of DQN agents, service host, collective unit and the router beside
it, rule cache."""

COPY = "_copy"
"""Part of the name of a register that is equal to another one and must stay, to drive a part of its load."""

_MANY_PERIODS = (
    "strash; ifraig; scorr; dc2; dc2; dc2; dch -f; map -a; topo; buffer -c; upsize -D 850; dnsize -D 850; stime -p"
)
"""Script of abc for what has several periods."""

_GATED_REGISTERS_MIN = 3
"""A clock gate replaces the enables of at least so many registers; one of Nangate has the area of two multiplexers."""


def synthesize(
    block: Block,
    library: Library | None,
    *,
    recipes: Sequence[str] | None = None,
    first: bool = False,
    folder: Path | None = None,
    timeout_s: float = 300,
    memory_ns: float = OUTSIDE_NS,
) -> list[SynthResult]:
    """Map a block with each recipe; best first.

    Best: the smallest of those that are within the aim, else the fastest. A recipe that takes longer than the limit
    is left out.

    Parameters
    ----------
    block : Block
        What to map.
    library : Library or None
        Cells; None: generic gates.
    recipes : sequence of str, optional
        Names in `RECIPES`; by default those of the block.
    first : bool
        Take the first recipe that comes to an end, and try no more.
    folder : Path, optional
        Receives netlists and reports, by default nothing is kept.
    timeout_s : float
        Limit of one recipe, s of processor time.
    memory_ns : float
        From a clock edge to what a memory outside of a clocked block reads, ns.

    Raises
    ------
    UserError
        For an unknown recipe, or if no recipe came to an end.
    """
    for recipe in recipes or ():
        if recipe not in RECIPES:
            raise UserError(f"unknown recipe {recipe!r}; there are {', '.join(RECIPES)}")
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        top = f"block_{block.name}"
        _prepare(block, top, place, timeout_s)
        if library is None:
            return [_generic(block, top, place, timeout_s)]
        (place / "cells.lib").write_text(library.text)
        results: list[SynthResult] = []
        problems: list[str] = []
        aimed = block.efforts and block.aim_ns is not None
        for recipe in recipes or block.recipes:
            if first and results:
                break
            for effort in EFFORTS if aimed and "{ps}" in RECIPES[recipe] else (0.9,):
                try:
                    results.append(_map(block, top, recipe, effort, library, place, timeout_s, memory_ns))
                except YosysError as error:
                    problems.append(f"{recipe}: {error}")
        if not results:
            raise UserError(f"{block.name}: no recipe came to an end: {'; '.join(problems)}")
        results.sort(key=lambda result: _rank(block, result))
        if folder is not None:
            _keep(block, results[0], place, folder)
    return results


def _rank(block: Block, result: SynthResult) -> tuple[bool, float]:
    """Order of results: within the aim by area, then the others by delay."""
    delay = result.figure_ns or 0.0
    within = block.aim_ns is not None and delay <= block.aim_ns
    return (not within, (result.area_um2 or 0.0) if within else delay)


def map_with_memories(block: Block, library: Library, recipe: str, folder: Path, timeout_s: float = 300) -> SynthResult:
    """Map a block, with its memories as instances; leave ``RECIPE.v`` and ``memories.v`` in `folder`.

    Raises
    ------
    UserError
        An unknown recipe.
    YosysError
        If yosys fails or takes too long.
    """
    if recipe not in RECIPES:
        raise UserError(f"unknown recipe {recipe!r}; there are {', '.join(RECIPES)}")
    top = f"block_{block.name}"
    (folder / "cells.lib").write_text(library.text)
    _prepare(block, top, folder, timeout_s, outside=False)
    return _map(block, top, recipe, 0.9, library, folder, timeout_s)


def _prepare(block: Block, top: str, folder: Path, timeout_s: float, *, outside: bool = True) -> None:
    """Write ``prepared.il``: generic gates, memories outside as ports, clock gates as modules.

    If memories are not to be `outside` they stay instances, whose modules are written as ``memories.v``.
    """
    text = to_rtlil(block.build(), top)
    (folder / "design.il").write_text(text)
    bodies = re.findall(r"^module (\\\S+)\n(.*?)^end$", text, re.MULTILINE | re.DOTALL)
    memories = [name for name, body in bodies if name != f"\\{top}" and re.search(r"^  cell \$mem", body, re.MULTILINE)]
    gates = [name for name, body in bodies if "cell $dlatch" in body and "parameter \\EN_POLARITY 0" in body]
    widths = re.findall(r"^  cell \$dlatch .*?WIDTH (\d+)", text, re.MULTILINE | re.DOTALL)
    (folder / "gates.txt").write_text("\n".join([str(max(map(int, widths), default=0)), *gates]))
    lines = ["read_rtlil design.il", f"hierarchy -top {top}", "proc"]
    lines += [f"setattr -mod -set keep_hierarchy 1 {top}_{name}" for name in block.many_periods]
    if re.search(rf"wire .*{COPY}", text):
        lines.append(f"setattr -set keep 1 w:*{COPY}* %ci1 t:$dff %i")  # else equal registers would be merged
    lines += [f"blackbox {name}" for name in memories + gates]
    lines += [f"synth -top {top} -noshare -flatten -noabc", "opt -full", "simplemap"]
    if outside:
        lines += [f"expose -evert t:{name}" for name in memories]
    else:
        lines = [
            "read_rtlil design.il", "proc", "select -none", *(f"select -add {name}" for name in memories),
            "write_verilog -noattr -selected memories.v", "select -clear", "design -reset", *lines,
        ]  # fmt: skip
    lines += ["opt_clean -purge", "check -assert", "write_rtlil prepared.il"]
    run_yosys("\n".join(lines) + "\n", folder, name="prepare", timeout_s=timeout_s)


def _gate_clocks(block: Block, library: Library, folder: Path) -> str:
    """Return commands that put the library's clock gates where the block has them, or may have them."""
    load, *modules = (folder / "gates.txt").read_text().split("\n")
    gate = gate_cell(library, int(load)) if modules or block.clock_gates else None
    if gate is None:
        if modules:
            raise UserError(f"{library.name}: no cell with clock_gating_integrated_cell: latch_posedge for the latches")
        return ""
    ports, instance = "input clk, input enable, output gated", gate.instance("enable", "clk", "gated")
    (folder / "gates.v").write_text("".join(f"module {name} ({ports}); {instance} endmodule\n" for name in modules))
    commands = "techmap -map gates.v\n" if modules else ""
    if block.clock_gates:
        (folder / "resets.v").write_text(reset_map())
        commands += (
            "techmap -map resets.v\nsimplemap\nopt_merge\nopt_clean\n"
            f"clockgate -liberty cells.lib -min_net_size {_GATED_REGISTERS_MIN}\nopt_clean\n"
        )
    return commands


def _generic(block: Block, top: str, folder: Path, timeout_s: float) -> SynthResult:
    """Gates and levels of the simple gates of abc."""
    log = run_yosys(
        "read_rtlil prepared.il\nabc -g AND,NAND,OR,NOR,XOR,XNOR,MUX\nopt_clean\nstat -json\nltp -noff\n",
        folder, name="generic", timeout_s=timeout_s,
    )  # fmt: skip
    kinds = {kind: int(count) for kind, count in re.findall(r"\"(\$_\w+)\":\s*(\d+)", log.split('"design"')[0])}
    levels = re.search(r"Longest topological path in .*\(length=(\d+)\)", log)
    flops = sum(count for kind, count in kinds.items() if "DFF" in kind)
    return SynthResult(
        block=block.name, recipe="generic", levels=int(levels[1]) if levels else None,
        cells=sum(kinds.values()) - flops, flops=flops,
    )  # fmt: skip


def _map(
    block: Block, top: str, recipe: str, effort: float, library: Library, folder: Path, timeout_s: float,
    memory_ns: float = OUTSIDE_NS,
) -> SynthResult:  # fmt: skip
    """Map with one recipe and time the result."""
    wanted = int(1000 * ((block.aim_ns or 0.43) * effort - (0.13 if block.clocked else 0.0)))
    script = RECIPES[recipe].format(ps=wanted)
    if script != RECIPES[recipe]:
        recipe = f"{recipe}-{effort:g}"
    # Registers and what lies outside drive and load the logic like cells of the library, not like ideal sources.
    weak = " -dont_use *DFF*_X1" if block.clocked and "cell (DFF_X2)" in (folder / "cells.lib").read_text() else ""
    constraints = " -constr drive.constr" if block.clocked and weak else ""
    (folder / "drive.constr").write_text("set_driving_cell BUF_X2\nset_load 2.0\n")
    (folder / f"{recipe}.abc").write_text("\n".join(script.split("; ")) + "\n")
    (folder / "many_periods.abc").write_text("\n".join(_MANY_PERIODS.split("; ")) + "\n")
    abc = f"abc -liberty cells.lib{constraints} -script"
    apart = [f"{top}_{name}" for name in block.many_periods]
    mapping = [f"{abc} {recipe}.abc {top if apart else ''}", *(f"{abc} many_periods.abc {name}" for name in apart)]
    log = run_yosys(
        "read_liberty -lib -ignore_miss_func cells.lib\n"
        f"read_rtlil prepared.il\n{_gate_clocks(block, library, folder)}dfflibmap -liberty cells.lib{weak}\n"
        + "\n".join(mapping)
        + "\nopt_clean\nrename -wire\n"
        f"stat -liberty cells.lib\nwrite_verilog -noattr -noexpr -simple-lhs {recipe}.v\n",
        folder, name=recipe, timeout_s=timeout_s,
    )  # fmt: skip
    area = re.findall(r"Chip area for (?:top )?module .*?:\s*([\d.]+)", log)
    own_log = log.partition("many_periods.abc")[0]
    delay = re.findall(r"Delay =\s*([\d.]+) ps", own_log)
    instances = re.findall(r"^  (\w+) (?:\\\S+ |\w+) ?\($", (folder / f"{recipe}.v").read_text(), re.MULTILINE)
    instances = [cell for cell in instances if cell not in {"module", *apart}]
    flops = sum(1 for cell in instances if "DFF" in cell)
    result = SynthResult(
        block=block.name, recipe=recipe,
        area_um2=float(area[-1]) if area else None,
        delay_ns=float(delay[-1]) / 1000 if delay else None,
        cells=len(instances) - flops, flops=flops, path=tuple(abc_path(own_log)),
    )  # fmt: skip
    return timed(block, top, result, folder, memory_ns=memory_ns)


def _keep(block: Block, result: SynthResult, place: Path, folder: Path) -> None:
    """Copy the netlist and the timing report of the best recipe."""
    folder.mkdir(parents=True, exist_ok=True)
    for suffix in ("v", "timing"):
        source = place / f"{result.recipe}.{suffix}"
        if source.exists():
            shutil.copyfile(source, folder / f"{block.name}.{suffix}")


def synthesize_config(
    config: Config,
    liberty: Path | None = None,
    *,
    blocks: str = "lookup",
    names: Sequence[str] | None = None,
    recipes: Sequence[str] | None = None,
    folder: Path,
    timeout_s: float = 300,
    memory_ns: float = OUTSIDE_NS,
    progress: Callable[[str], None] = lambda name: None,
) -> list[list[SynthResult]]:
    """Synthesize the blocks of a configuration and write ``synth.csv`` and ``synth.json``.

    Parameters
    ----------
    config : Config
        Checked configuration.
    liberty : Path, optional
        Cell library; without: generic gates and levels.
    blocks : str
        One of `BLOCK_SETS`.
    names : sequence of str, optional
        Blocks of the set; by default all that do not take very long.
    recipes : sequence of str, optional
        Names in `RECIPES`; by default those of each block.
    folder : Path
        For all files.
    timeout_s : float
        Limit of one recipe on one block, s of processor time.
    memory_ns : float
        As for `synthesize`.
    progress : callable
        Called with the name of each block before it is begun.

    Returns
    -------
    list of list of SynthResult
        Per block, best recipe first.

    Raises
    ------
    UserError
        Unknown set, block or recipe, unreadable library, unwritable folder.
    """
    every = _blocks(config, blocks)
    for name in names or ():
        if name not in every:
            raise UserError(f"unknown block {name!r}; there are {', '.join(every)}")
    library = None if liberty is None else read_library(liberty)
    found: list[list[SynthResult]] = []
    with staged(folder) as scratch:
        for name in names or (block.name for block in every.values() if not block.on_request):
            progress(name)
            found.append(
                synthesize(
                    every[name], library, recipes=recipes, folder=scratch, timeout_s=timeout_s, memory_ns=memory_ns
                )
            )
        table = pd.DataFrame(_row(every[results[0].block], result) for results in found for result in results)
        table.to_csv(scratch / "synth.csv", index=False)
        content = {
            "command": command_words(),
            "library": None if library is None else {"name": library.name, "corner": library.corner},
            "versions": tool_versions(),
            "wires": "ideal",
            "memory_ns": memory_ns,
            "recipes": RECIPES,
            "config": config.model_dump(mode="json"),
            "results": [[dataclasses.asdict(result) for result in results] for results in found],
        }
        (scratch / "synth.json").write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    return found


def _blocks(config: Config, blocks: str) -> dict[str, Block]:
    if blocks == "lookup":
        return lookup_blocks(engine_parameters(config))
    if blocks == "router":
        return router_blocks(config)
    if blocks == "allocators":
        return allocator_blocks()
    if blocks == "q_table":
        return q_table_blocks(config)
    if blocks == "inference":
        return inference_blocks()
    if blocks == "acknowledges":
        return acknowledge_blocks(config)
    if blocks == "collectives":
        return collective_blocks(config)
    if blocks == "rule_cache":
        return rule_cache_blocks(config)
    raise UserError(f"unknown set of blocks {blocks!r}; there are {', '.join(BLOCK_SETS)}")


def _row(block: Block, result: SynthResult) -> dict[str, Any]:
    """One line of the table."""
    plain = dataclasses.asdict(result)
    return {
        **{key: value for key, value in plain.items() if key not in ("path", "stages_ns")},
        "aim_um2": block.aim_um2,
        "aim_ns": block.aim_ns,
        "gbps": round(SLOT_BITS / result.figure_ns, 1) if block.clocked and result.figure_ns else None,
    }
