"""Area and delay of the lookup path in a standard-cell library, block by block, best of several recipes.

Yosys maps to gates, its abc to cells; OpenSTA, if it is installed, times the mapped netlist with registers. Ideal
wires. Without a library: generic gates and logic levels.
"""

import dataclasses
import gzip
import json
import re
import shutil
import subprocess
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from amaranth.hdl import Module, Signal, Value
from amaranth.lib.data import View
from amaranth.lib.wiring import Component, In, Out

from hopforge.gen.lookup import engine_parameters
from hopforge.gen.verilog import to_rtlil, tool_versions
from hopforge.gen.yosys import YosysError, run_yosys
from hopforge.hw.crc_hash import CrcHash
from hopforge.hw.lookup import Lookup
from hopforge.hw.node_reduction import (
    NodeReduction,
    ReductionCompare,
    ReductionParameters,
    ReductionSelect,
    ReductionSetup,
)  # fmt: skip
from hopforge.hw.tag_select import TagSelect
from hopforge.hw.tcam import Tcam
from hopforge.model.config import Config
from hopforge.model.crc import crc_matrix
from hopforge.model.errors import UserError
from hopforge.model.lookup_params import LookupParams
from hopforge.model.results import staged

__all__ = [
    "RECIPES",
    "Block",
    "Library",
    "Registered",
    "SynthResult",
    "blocks",
    "read_library",
    "synthesize",
    "synthesize_config",
]

SLOT_BITS = 84 * 8
"""Bits of the smallest Ethernet packet with preamble and gap."""

_EXACT = "strash; ifraig; scorr; dc2; dc2; strash; &get -n; &syn3; &syn4; &put; dch -f; "
_LUTS = "strash; if -g -K 6 -C 8; strash; dch -f; if -g; strash; dch -f; "
_DEEP = _LUTS + "if -g; strash; dc2; dch -f; "
_SIZE = "topo; buffer -c; upsize -D {ps}; dnsize -D {ps}; stime -p"

_BUFFERED = "buffer -p -N 8; topo; upsize; dnsize; stime -p"

RECIPES: dict[str, str] = {
    "fraig-fast": "strash; &get -n; &fraig -x; &put; scorr; dc2; dch -f; map -B 0.9; topo; buffer -c; upsize; dnsize; "
    "stime -p",
    "lut-fast": _LUTS + "map -B 0.9; topo; buffer -c; upsize; dnsize; stime -p",
    "lut-buffered": _LUTS + "map -B 0.9; " + _BUFFERED,
    "exact-buffered": _EXACT + "map -B 0.9; " + _BUFFERED,
    "lut": _LUTS + "map; " + _SIZE,
    "deep": _DEEP + "map -B 0.5; " + _SIZE,
    "deep-fast": _DEEP + "map; topo; buffer -c; upsize; dnsize; stime -p",
    "exact": _EXACT + "map -B 0.5; " + _SIZE,
    "exact-fast": _EXACT + "map -B 0.9; topo; buffer -c; upsize; dnsize; stime -p",
    "choices": "strash; &get -n; &st; &dch -x; &put; map -B 0.9; topo; buffer -c; upsize; dnsize; stime -p",
    "area": _LUTS + "map -a; " + _SIZE,
}
"""Scripts of abc by name; ``{ps}`` stands for the wanted delay in ps."""

_EFFORTS = (1.0, 0.95, 0.92, 0.88)
"""Shares of the aim that a recipe with ``{ps}`` is told to reach; the name of a result carries it."""

_QUICK = ("lut-buffered", "exact-buffered", "lut-fast")


@dataclass(frozen=True)
class Library:
    """A liberty file, unpacked.

    Parameters
    ----------
    name : str
        Name that the file gives itself.
    corner : str
        Process, voltage and temperature that it was characterized for, as far as it says.
    text : str
        The file.
    """

    name: str
    corner: str
    text: str


def read_library(path: Path) -> Library:
    """Read a liberty file (``.lib`` or ``.lib.gz``).

    Raises
    ------
    UserError
        If it cannot be read, or is not a liberty file.
    """
    try:
        raw = path.read_bytes()
        if raw[:2] == b"\x1f\x8b":
            raw = gzip.decompress(raw)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UserError(f"{path}: cannot read the cell library: {reason}") from None
    text = raw.decode(errors="replace")
    name = re.search(r"\blibrary\s*\(\s*\"?([\w.-]+)\"?\s*\)", text)
    if name is None or not re.search(r"\bcell\s*\(", text):
        raise UserError(f"{path}: not a liberty file: it has no library (...) with cells")

    def entry(key: str) -> str:
        found = re.search(rf"\b{key}\s*:\s*\"?([\w.+-]+)\"?\s*;", text)
        return found[1] if found else "?"

    corner = f"{entry('default_operating_conditions')}, {entry('nom_voltage')} V, {entry('nom_temperature')} °C"
    return Library(name[1], corner, text)


class Registered(Component):
    """A combinational component between registers: every input and output has one.

    Latency 2 cycles more than without (1 without registers at the inputs); one result per cycle. Registers have no
    reset.

    Parameters
    ----------
    inner : Component
        What lies between.
    inputs : bool
        Whether the inputs have registers too.
    """

    def __init__(self, inner: Component, *, inputs: bool = True) -> None:
        self.inner = inner
        self.inputs = inputs
        super().__init__(inner.signature)

    def elaborate(self, platform: object) -> Module:
        """Put the registers."""
        m = Module()
        m.submodules.inner = inner = self.inner
        for name, member in self.inner.signature.members.items():
            outside, inside = getattr(self, name), getattr(inner, name)
            held = Signal.like(Value.cast(inside), name=f"{name}_q", reset_less=True)
            if member.flow is Out:
                m.d.sync += held.eq(inside)
                m.d.comb += outside.eq(held)
            elif self.inputs:
                m.d.sync += held.eq(outside)
                m.d.comb += inside.eq(held)
            else:
                m.d.comb += inside.eq(outside)
        return m


class KeySelect(Component):
    """Stage A2: key select and the whole CRC of the payload.

    Combinational.

    Parameters
    ----------
    parameters : ReductionParameters
        Key functions.
    masks : sequence of int
        Matrix of the index CRC.
    constant : int
        CRC of payload 0.
    """

    partial: View
    key: Signal
    index: Signal

    def __init__(self, parameters: ReductionParameters, masks: Sequence[int], constant: int) -> None:
        self.parameters = parameters
        self.masks = tuple(masks)
        self.constant = constant
        super().__init__(
            {
                "partial": In(parameters.partial_layout),
                "key": Out(parameters.key_bits),
                "index": Out(len(self.masks)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Connect select and CRC."""
        m = Module()
        m.submodules.select = select = ReductionSelect(self.parameters)
        m.submodules.hash = crc = CrcHash(
            width_bits=self.parameters.address_bits, masks=self.masks, constant=self.constant
        )
        m.d.comb += [
            select.partial.eq(self.partial),
            crc.data.eq(select.payload),
            self.key.eq(select.key),
            self.index.eq(crc.hash),
        ]
        return m


@dataclass(frozen=True, kw_only=True)
class Block:
    """Something to synthesize.

    Parameters
    ----------
    name : str
        Name in tables.
    what : str
        One line for the table.
    build : callable
        Makes the component.
    clocked : bool
        Delay = shortest clock period (with flip-flops) instead of input to output.
    aim_ns, aim_um2 : float or None
        Target delay and area (spec/router.md, Nangate 45 typical).
    recipes : tuple of str
        Recipes to try by default.
    """

    name: str
    what: str
    build: Callable[[], Component]
    clocked: bool = False
    aim_ns: float | None = None
    aim_um2: float | None = None
    recipes: tuple[str, ...] = tuple(RECIPES)

    @property
    def small(self) -> bool:
        """Whether every recipe is tried with several efforts."""
        return self.aim_ns is not None and self.recipes is not _QUICK


@dataclass(frozen=True, kw_only=True)
class SynthResult:
    """One block with one recipe.

    ``delay_ns``: of the combinational logic by abc; ``sta_ns``: by OpenSTA (clocked blocks: shortest period, flip-flops
    included). ``path``: start, cells, end of the critical path. ``stages_ns``: shortest period by submodule of the
    endpoint (clocked, with OpenSTA). Without a library ``area_um2``, ``delay_ns``, ``sta_ns`` are None and ``levels``
    is set.
    """

    block: str
    recipe: str
    area_um2: float | None = None
    delay_ns: float | None = None
    sta_ns: float | None = None
    levels: int | None = None
    cells: int = 0
    flops: int = 0
    path: tuple[str, ...] = ()
    stages_ns: Mapping[str, float] = dataclasses.field(default_factory=dict)

    @property
    def figure_ns(self) -> float | None:
        """Delay that counts: OpenSTA's if there is one."""
        return self.delay_ns if self.sta_ns is None else self.sta_ns


def blocks(params: LookupParams) -> dict[str, Block]:
    """All blocks of an engine, and those of the specification's table.

    Parameters
    ----------
    params : LookupParams
        The engine.

    Returns
    -------
    dict of Block
        By name, in the order of a table.
    """
    matrix = crc_matrix(params.crc, params.address_bits)
    reduction = ReductionParameters(
        address_bits=params.address_bits, functions=params.functions, chunk_bits=params.chunk_bits,
        comparators=params.comparators, up_choices=("d_mod_k", "highest_mismatch"), max_members=params.max_members,
        crc_masks=tuple(matrix.masks), crc_constant=matrix.constant,
    )  # fmt: skip
    torus = ReductionParameters(
        address_bits=48, functions=("torus",), chunk_bits=(8,), comparators=6, terminals=False
    )  # fmt: skip
    tree = ReductionParameters(address_bits=20, functions=("fat_tree",), chunk_bits=(5,), comparators=4)
    dragonfly = ReductionParameters(functions=("dragonfly",), chunk_bits=(8,))
    every = dataclasses.replace(reduction, functions=("arbitrary", "mesh", "torus", "fat_tree", "dragonfly"))
    index = range(max(1, params.index_bits))
    tag_bits, output_bits = params.tag_bits, params.output_bits
    found = [
        Block(
            name="crc_index", what="set index: CRC of the payload", aim_ns=0.186,
            build=lambda: CrcHash(
                width_bits=params.address_bits, masks=[matrix.masks[row] for row in index],
                constant=matrix.constant & (1 << len(index)) - 1,
            ),
        ),
        Block(
            name="torus", what="torus reduction, run-time k, 6 dimensions x 8 bits", aim_ns=0.25, aim_um2=480,
            build=lambda: NodeReduction(torus),
        ),
        Block(
            name="fat_tree", what="fat-tree reduction, 4 digits x 5 bits", aim_ns=0.15, aim_um2=80,
            build=lambda: NodeReduction(tree),
        ),
        Block(name="dragonfly", what="dragonfly reduction, 3 fields of 8 bits", build=lambda: NodeReduction(dragonfly)),
        Block(name="reduction", what="reduction as configured, one step", build=lambda: NodeReduction(reduction)),
        Block(
            name="stage_a1", what="compare, all functions, with registers", clocked=True, aim_ns=0.43,
            build=lambda: Registered(ReductionCompare(every)),
        ),
        Block(
            name="stage_a2", what="key select and CRC-32, with registers", clocked=True, aim_ns=0.43,
            build=lambda: Registered(KeySelect(every, matrix.masks, matrix.constant)),
        ),
        Block(
            name="setup", what="registers that the comparators see, with registers", clocked=True,
            build=lambda: Registered(ReductionSetup(every)), recipes=_QUICK,
        ),
        Block(
            name="tag_select", what=f"tag compare and select, {params.ways} x {tag_bits} bits", clocked=True,
            aim_ns=0.43,
            build=lambda: Registered(TagSelect(ways=params.ways, tag_bits=tag_bits, output_bits=output_bits)),
        ),
    ]  # fmt: skip
    if params.tcam_kind != "external":
        found.append(
            Block(
                name="tcam", what=f"TCAM, {params.tcam_rows} rows, {params.tcam_kind}", clocked=True, recipes=_QUICK,
                build=lambda: Tcam(
                    kind=params.tcam_kind, rows=params.tcam_rows, address_bits=params.address_bits,
                    output_bits=output_bits, id_bits=params.mshr_id_bits,
                    latency_cycles=params.tcam_latency_cycles, member_bits=0,
                ),
            )
        )  # fmt: skip
    pipelined = dataclasses.replace(params, pipeline_depth=4, tcam_kind="external")
    found.append(
        Block(
            name="engine", what="pipelined engine, depth 4, SRAM and TCAM outside", clocked=True, aim_ns=0.43,
            build=lambda: Lookup(params=pipelined), recipes=_QUICK,
        )
    )  # fmt: skip
    return {block.name: block for block in found}


def synthesize(
    block: Block,
    library: Library | None,
    *,
    recipes: Sequence[str] | None = None,
    folder: Path | None = None,
    timeout_s: float = 300,
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
    folder : Path, optional
        Receives netlists and reports, by default nothing is kept.
    timeout_s : float
        Limit of one recipe, s.

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
        for recipe in recipes or block.recipes:
            for effort in _EFFORTS if block.small and "{ps}" in RECIPES[recipe] else (0.9,):
                try:
                    results.append(_map(block, top, recipe, effort, place, timeout_s))
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


def _prepare(block: Block, top: str, folder: Path, timeout_s: float) -> None:
    """Write ``prepared.il``: generic gates, memories outside as ports."""
    text = to_rtlil(block.build(), top)
    (folder / "design.il").write_text(text)
    memories = tuple(
        name for name, body in re.findall(r"^module (\\\S+)\n(.*?)^end$", text, re.MULTILINE | re.DOTALL)
        if name != f"\\{top}" and re.search(r"^  cell \$mem", body, re.MULTILINE)
    )  # fmt: skip
    lines = ["read_rtlil design.il", f"hierarchy -top {top}", "proc"]
    lines += [f"blackbox {name}" for name in memories]
    lines += [f"synth -top {top} -noshare -flatten -noabc", "opt -full"]
    if memories:
        lines += [f"expose -evert t:{name}" for name in memories]
    lines += ["opt_clean -purge", "check -assert", "write_rtlil prepared.il"]
    run_yosys("\n".join(lines) + "\n", folder, name="prepare", timeout_s=timeout_s)


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


def _map(block: Block, top: str, recipe: str, effort: float, folder: Path, timeout_s: float) -> SynthResult:
    """Map with one recipe and time the result."""
    wanted = int(1000 * ((block.aim_ns or 0.43) * effort - (0.13 if block.clocked else 0.0)))
    script = RECIPES[recipe].format(ps=wanted)
    if script != RECIPES[recipe]:
        recipe = f"{recipe}-{effort:g}"
    # Registers and what lies outside drive and load the logic like cells of the library, not like ideal sources.
    weak = " -dont_use *_X1" if block.clocked and "cell (DFF_X2)" in (folder / "cells.lib").read_text() else ""
    constraints = " -constr drive.constr" if block.clocked and weak else ""
    (folder / "drive.constr").write_text("set_driving_cell BUF_X2\nset_load 2.0\n")
    (folder / f"{recipe}.abc").write_text("\n".join(script.split("; ")) + "\n")
    log = run_yosys(
        "read_liberty -lib -ignore_miss_func cells.lib\n"
        f"read_rtlil prepared.il\ndfflibmap -liberty cells.lib{weak}\n"
        f"abc -liberty cells.lib{constraints} -script {recipe}.abc\nopt_clean\nrename -wire\n"
        f"stat -liberty cells.lib\nwrite_verilog -noattr -noexpr -simple-lhs {recipe}.v\n",
        folder, name=recipe, timeout_s=timeout_s,
    )  # fmt: skip
    area = re.findall(r"Chip area for (?:top )?module .*?:\s*([\d.]+)", log)
    delay = re.findall(r"Delay =\s*([\d.]+) ps", log)
    instances = re.findall(r"^  (\w+) (?:\\\S+ |\w+) ?\($", (folder / f"{recipe}.v").read_text(), re.MULTILINE)
    instances = [cell for cell in instances if cell != "module"]
    flops = sum(1 for cell in instances if "DFF" in cell)
    result = SynthResult(
        block=block.name, recipe=recipe,
        area_um2=float(area[-1]) if area else None,
        delay_ns=float(delay[-1]) / 1000 if delay else None,
        cells=len(instances) - flops, flops=flops, path=tuple(_abc_path(log)),
    )  # fmt: skip
    return _timed(block, top, result, folder)


def _abc_path(log: str) -> Iterator[str]:
    """Start, cells and end of the critical path as ``stime -p`` prints it."""
    ends = re.findall(r"Start-point = (\S+) \((\S+)\)\.\s+End-point = (\S+) \((\S+)\)", log)
    if ends:
        yield ends[-1][1]
    yield from re.findall(r"Path\s*\d+ -- .*?:.*?\s(\w+_X\d+)\s", log)
    if ends:
        yield ends[-1][3]


def _timed(block: Block, top: str, result: SynthResult, folder: Path) -> SynthResult:
    """Add what OpenSTA says, if there is one."""
    program = shutil.which("sta")
    if program is None:
        return result
    period = 10.0
    netlist = (folder / f"{result.recipe}.v").read_text()
    inputs = _ports(netlist, "input")
    outputs = {name for name in _ports(netlist, "output") if not name.endswith(".clk")}
    lines = ["read_liberty cells.lib", f"read_verilog {result.recipe}.v", f"link_design {top}"]
    if block.clocked:
        # What lies outside are registers and memories: their outputs come after a clock edge, too.
        lines += [
            f"create_clock -name clk -period {period} [get_ports clk]",
            f"set_input_delay 0.1 -clock clk [get_ports {{{' '.join(sorted(inputs - {'clk'}))}}}]",
            f"set_output_delay 0.04 -clock clk [get_ports {{{' '.join(sorted(outputs))}}}]",
            *(["set_false_path -from [get_ports rst]"] if "rst" in inputs else []),
        ]
    else:
        lines += [
            f"create_clock -name clk -period {period}",
            "set_input_delay 0 -clock clk [all_inputs]",
            "set_output_delay 0 -clock clk [all_outputs]",
        ]
    lines += [
        "report_checks -path_delay max -format full -digits 4",
        "puts ENDPOINTS",
        "report_checks -path_delay max -format end -digits 4 -group_count 100000 -endpoint_count 1",
        "exit",
    ]
    (folder / "time.tcl").write_text("\n".join(lines) + "\n")
    try:
        done = subprocess.run(
            [program, "-no_splash", "-exit", "time.tcl"], cwd=folder, capture_output=True, text=True, timeout=120,
            check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return result
    (folder / f"{result.recipe}.timing").write_text(done.stdout)
    slack = re.search(r"^\s*(-?[\d.]+)\s+slack", done.stdout, re.MULTILINE)
    if slack is None:
        return result
    report, _, endpoints = done.stdout.partition("ENDPOINTS")
    path = re.findall(r"[\^v] (\S+)(?: \((\w+)\))?", report)
    return dataclasses.replace(
        result,
        sta_ns=round(period - float(slack[1]), 4),
        path=tuple(
            f"{cell}" if cell and not cell.startswith(("in", "out")) else pin for pin, cell in path if pin != "input"
        ),
        stages_ns=_by_submodule(endpoints, netlist, period) if block.clocked else {},
    )


def _ports(netlist: str, direction: str) -> set[str]:
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
    names: Sequence[str] | None = None,
    recipes: Sequence[str] | None = None,
    folder: Path | None = None,
    timeout_s: float = 300,
    progress: Callable[[str], None] = lambda name: None,
) -> list[list[SynthResult]]:
    """Synthesize the blocks of a configuration and write ``synth.csv`` and ``synth.json``.

    Parameters
    ----------
    config : Config
        Checked configuration.
    liberty : Path, optional
        Cell library; without: generic gates and levels.
    names : sequence of str, optional
        Blocks; by default all.
    recipes : sequence of str, optional
        Names in `RECIPES`; by default those of each block.
    folder : Path, optional
        By default ``build/NAME/synth``.
    timeout_s : float
        Limit of one recipe on one block, s.
    progress : callable
        Called with the name of each block before it is begun.

    Returns
    -------
    list of list of SynthResult
        Per block, best recipe first.

    Raises
    ------
    UserError
        Unknown block or recipe, unreadable library, unwritable folder.
    """
    every = blocks(engine_parameters(config))
    for name in names or ():
        if name not in every:
            raise UserError(f"unknown block {name!r}; there are {', '.join(every)}")
    library = None if liberty is None else read_library(liberty)
    target = Path("build") / config.name / "synth" if folder is None else folder
    found: list[list[SynthResult]] = []
    with staged(target) as scratch:
        for name in names or every:
            progress(name)
            found.append(synthesize(every[name], library, recipes=recipes, folder=scratch, timeout_s=timeout_s))
        table = pd.DataFrame(_row(every[results[0].block], result) for results in found for result in results)
        table.to_csv(scratch / "synth.csv", index=False)
        content = {
            "library": None if library is None else {"name": library.name, "corner": library.corner},
            "versions": tool_versions(),
            "wires": "ideal",
            "recipes": RECIPES,
            "config": config.model_dump(mode="json"),
            "results": [[dataclasses.asdict(result) for result in results] for results in found],
        }
        (scratch / "synth.json").write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    return found


def _row(block: Block, result: SynthResult) -> dict[str, Any]:
    """One line of the table."""
    plain = dataclasses.asdict(result)
    return {
        **{key: value for key, value in plain.items() if key not in ("path", "stages_ns")},
        "aim_um2": block.aim_um2,
        "aim_ns": block.aim_ns,
        "gbps": round(SLOT_BITS / result.figure_ns, 1) if block.clocked and result.figure_ns else None,
    }
