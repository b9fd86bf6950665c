"""Faults in a netlist: one Verilog text that holds many mutants behind a selector, and a proof that one has no effect.

The mutants are those of yosys's ``mutate``: one bit of one port of one cell is inverted, stuck, or replaced by its
combination with another bit. Clocks are left alone.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from amaranth.back import rtlil
from amaranth.hdl import Shape
from amaranth.lib.wiring import Component, Out

from hopforge.gen.mutation.unreachable_fault import never_shows
from hopforge.gen.tools.abc import to_gates
from hopforge.gen.tools.yosys import YosysError, run_yosys

__all__ = ["SELECTOR", "Mutant", "Netlist", "write_netlist"]

SELECTOR = "mutant"
"""Input of the mutated module: number of the active mutant, 0 for none."""

_BASE = "netlist.il"
_SOURCE = re.compile(r'(?<=attribute \\src ")[^"]*')
_PATH = re.compile(r"[^|\s]*/(?=(?:hopforge|amaranth)/)")
# Ports whose faults say nothing about a bench: every clock, and what a memory has but does not use.
_LEFT_ALONE = re.compile(r"(.*_)?CLK|RD_[AS]RST")
_OURS = "mutable"  # attribute of the cells that may be mutated


class Mutant(NamedTuple):
    """One fault.

    Attributes
    ----------
    number : int
        Value of `SELECTOR`, from 1.
    mode : str
        ``inv``, ``const0``, ``const1``, ``cnot0`` or ``cnot1`` (inverted where another bit of the port is 0 or 1).
    cell, port : str
        Where.
    bit : int
        Bit of the port.
    wire : str
        What the bit belongs to, as ``name[bit]``; empty if it has no public name.
    source : str
        Lines of Python that the cell comes from, separated by ``|``; may be empty.
    command : str
        Options of yosys's ``mutate``.
    """

    number: int
    mode: str
    cell: str
    port: str
    bit: int
    wire: str
    source: str
    command: str


class Netlist(NamedTuple):
    """A flattened component as a file of RTLIL.

    Attributes
    ----------
    folder : Path
        Where the files are.
    top : str
        Its module.
    inputs, outputs : tuple of (str, int)
        Names and widths of the ports, without ``clk`` and ``rst``.
    clocked : bool
        Whether it has ``clk`` and ``rst``.
    chosen : str
        What may be mutated, as a selection of yosys.
    """

    folder: Path
    top: str
    inputs: tuple[tuple[str, int], ...]
    outputs: tuple[tuple[str, int], ...]
    clocked: bool
    chosen: str = "*"

    def mutants(self, count: int, seed: int) -> list[Mutant]:
        """Draw mutants, spread evenly over the netlist.

        Parameters
        ----------
        count : int
            How many; fewer if there are not as many.
        seed : int
            The same seed gives the same mutants.
        """
        script = f"read_rtlil {_BASE}\nmutate -list {2 * count + 16} -seed {seed} -o list.txt {self.chosen}\n"
        run_yosys(script, self.folder)
        lines = [line for line in (self.folder / "list.txt").read_text().splitlines() if line.startswith("mutate")]
        wanted = [line for line in lines if not _LEFT_ALONE.fullmatch(_option(line, "-port").lstrip("\\"))]
        always = _always_read((self.folder / _BASE).read_text())
        order = np.random.default_rng(seed).permutation(len(wanted)).tolist()
        order = [index for index in order if not _of_cells(wanted[index], always)][:count]
        return [_mutant(number, wanted[index]) for number, index in enumerate(sorted(order), 1)]

    def by_hand(self, command: str) -> Mutant:
        """Return the mutant with number 1 and these options of ``mutate``, such as ``-mode inv -cell …``."""
        return _mutant(1, f"mutate {command}")

    def verilog(self, mutants: Sequence[Mutant]) -> str:
        """Verilog of the netlist with all `mutants`, of which the input `SELECTOR` chooses one.

        Raises
        ------
        ValueError
            If the numbers are not 1, 2, ….
        """
        if [mutant.number for mutant in mutants] != list(range(1, len(mutants) + 1)):
            raise ValueError(f"mutants must have the numbers 1 to {len(mutants)}")
        width = max(1, len(mutants).bit_length())
        script = [f"read_rtlil {_BASE}"]
        script += [f"mutate {mutant.command} -ctrl {SELECTOR} {width} {mutant.number}" for mutant in mutants]
        if not mutants:
            script.append(f"cd {self.top}\nadd -input {SELECTOR} {width}\ncd")
        run_yosys("\n".join([*script, "opt_clean", "write_verilog -sv -noattr mutants.sv", ""]), self.folder)
        return (self.folder / "mutants.sv").read_text()

    def has_no_effect(self, mutant: Mutant, gates: Mapping[str, str], *, steps: int = 4, timeout_s: float = 60) -> bool:
        """Try to prove that a mutant behaves like the original at the ports, for any inputs.

        First one cycle from any state that can be reached: all outputs and all next states equal, but for registers
        that do not count. Then the same from any state at all, by another solver. Last, for faults in what is not used,
        induction over the outputs alone, from reset.

        Parameters
        ----------
        mutant : Mutant
            Which.
        gates : mapping
            Output to the output that says whether it means anything.
        steps : int
            Most cycles of the induction.
        timeout_s : float
            Limit of each of the three, in seconds.

        Returns
        -------
        bool
            Proved. False: there is a difference, or no proof was found in the time.
        """
        (self.folder / "judged.v").write_text(self._wrapper(gates))
        begin = [
            f"read_rtlil {_BASE}",
            f"mutate {mutant.command} -ctrl {SELECTOR} 1 1",
            *self._begin_of(mutant),
            "read_verilog -sv judged.v",
            "hierarchy -top judged",
            "flatten",
            "memory_map",
            "opt_clean",
            # bit by bit, registers that never change are constants, and so are gates behind them
            "simplemap",
            "opt -full",
            "async2sync",
            "dffunmap",
        ]
        split = ["splitnets -ports", "simplemap t:$dff", "opt_clean", "rename -enumerate w:*"]
        split += ["expose -dff -evert-dff", "opt_clean"]
        split.append("select -assert-none t:$_DFF_P_ t:$dff")
        pair = []
        for name, word in (("gold", 0), ("gate", 1)):
            pair += [f"copy judged {name}", f"delete -input {name}/w:{SELECTOR}", f"cd {name}"]
            pair += [f"connect -set {SELECTOR} 1'{word}", "cd"]
        pair += ["miter -equiv -flatten gold gate miter", "cd miter", "opt -full", "cd"]
        prove = "sat -verify -prove trigger 0"

        def succeeds(*script: str) -> bool:
            try:
                run_yosys("\n".join([*begin, *script, ""]), self.folder, name="proof", timeout_s=timeout_s)
            except YosysError:
                return False
            return True

        def never_seen() -> bool:
            file = self.folder / "faulty.aig"
            file.unlink(missing_ok=True)
            written = succeeds(*to_gates(f"write_aiger -zinit -symbols {file.name}"))
            return written and never_shows(file, SELECTOR, timeout_s=timeout_s)

        return (
            never_seen()
            or succeeds(*split, *pair, f"{prove} miter")
            or succeeds(*pair, f"{prove} -tempinduct -seq 1 -maxsteps {steps} miter")
        )

    def _begin_of(self, mutant: Mutant) -> list[str]:
        """Return commands that let a mutated register begin as before: what `mutate` puts behind it has its name."""
        wire, bit = mutant.wire.removesuffix("]").rpartition("[")[::2]
        found = re.search(
            rf"attribute \\init \d+'([01]+)\n(?: +attribute .*\n)*  wire (?:\S+ \d+ )*\\{re.escape(wire)}\n",
            (self.folder / _BASE).read_text(),
        )
        if mutant.port != "Q" or not wire or found is None:
            return []
        return [
            f"select -set unnamed c:{mutant.cell} %co1:+[Q] a:init %d c:* %d",
            f"setattr -set init 1'{found[1][-1 - int(bit)]} @unnamed",
        ]

    def _wrapper(self, gates: Mapping[str, str]) -> str:
        """Verilog around the mutated module: outputs are 0 where they mean nothing."""
        clock = [("clk", 1), ("rst", 1)] if self.clocked else []
        ins = [*clock, (SELECTOR, 1), *self.inputs]
        # escaped names: a port may be called like a word of the language
        ports = [f"input {_range(width)}\\{name} " for name, width in ins]
        ports += [f"output {_range(width)}\\{name} " for name, width in self.outputs]
        body = [f"wire [{width - 1}:0] raw_{name};" for name, width in self.outputs]
        for name, _ in self.outputs:
            means = f"raw_{gates[name]} ? raw_{name} : 0" if name in gates else f"raw_{name}"
            body.append(f"assign \\{name} = {means};")
        connections = [f".\\{name} (\\{name} )" for name, _ in ins]
        connections += [f".\\{name} (raw_{name})" for name, _ in self.outputs]
        body += [f"{self.top} inside ({', '.join(connections)});"]
        return "\n".join([f"module judged ({', '.join(ports)});", *body, "endmodule", ""])


def write_netlist(
    component: Component, name: str, folder: Path, *, spared: str = "", reset: Mapping[str, int] | None = None
) -> Netlist:
    """Flatten a component and remove what is obviously redundant, so that few mutants are without effect.

    Parameters
    ----------
    component : Component
        Fresh; not used up by `hopforge.gen.verilog.writer` before.
    name : str
        Name of the module.
    folder : Path
        For all files.
    spared : str
        Modules below the top whose cells are not mutated, as a pattern of yosys; empty: none.
    reset : mapping, optional
        Registers, as regular expressions of their names in their modules, and what they are after reset.

    Raises
    ------
    ValueError
        No register has such a name.
    """
    folder.mkdir(parents=True, exist_ok=True)
    text = rtlil.convert(component, name=name, emit_src=True)
    text = _SOURCE.sub(lambda source: _PATH.sub("", source[0]), text)
    for register, value in (reset or {}).items():
        text = _with_reset(text, register, value)
    (folder / "design.il").write_text(text)
    ours = f"c:* {name}.{spared}/c:* %d" if spared else "c:*"
    run_yosys(
        f"read_rtlil design.il\nhierarchy -top {name}\nproc\nsetattr -set {_OURS} 1 {ours}\nflatten\nopt\nwreduce\n"
        f"opt\nmemory_collect\nopt_clean -purge\nwrite_rtlil {_BASE}\n",
        folder,
        name="flatten",
    )
    ports = [
        ("__".join(map(str, path)), Shape.cast(member.shape).width, member.flow)
        for path, member, _ in component.signature.flatten(component)
    ]
    return Netlist(
        folder,
        name,
        tuple((port, width) for port, width, flow in ports if flow is not Out),
        tuple((port, width) for port, width, flow in ports if flow is Out),
        "\\rst" in (folder / _BASE).read_text(),
        f"a:{_OURS}" if spared else "*",
    )


def _with_reset(text: str, register: str, value: int) -> str:
    """Return RTLIL of Amaranth in which all registers of that name are `value` after reset."""
    done, changed = [], 0
    for module in text.split("\nmodule "):
        here = module
        for place in re.findall(rf"connect \\D (\$\d+) .*\n.*\n +connect \\Q \\{register}\n", module):
            old = rf"(switch \\rst \[0\]\n +case 1'1\n +assign {re.escape(place)} \S+ )(\d+)'[01]+\n"
            here, times = re.subn(old, lambda found: f"{found[1]}{found[2]}'{value:0{int(found[2])}b}\n", here)
            changed += times
        done.append(here)
    if not changed:
        raise ValueError(f"{register} must be the name of a register with a reset")
    return "\nmodule ".join(done)


def _range(width: int) -> str:
    return f"[{width - 1}:0] " if width > 1 else ""


def _always_read(netlist: str) -> frozenset[str]:
    """Memories of a netlist in RTLIL with ports that read without a clock: yosys refuses any other enable than 1."""
    cells = re.findall(r"^  cell \$mem_v2 (\S+)$(.*?)^  end$", netlist, re.MULTILINE | re.DOTALL)
    # 32 bits stand there as a decimal number, unless the first of them is 1
    enable = {name: re.search(r"\\RD_CLK_ENABLE (?:\d+$|\d+'[01]*0)", text, re.MULTILINE) for name, text in cells}
    return frozenset(name.lstrip("\\") for name, found in enable.items() if found)


def _of_cells(line: str, memories: frozenset[str]) -> bool:
    """Whether a fault is one of the enables of `memories`."""
    return _option(line, "-port").lstrip("\\") == "RD_EN" and _option(line, "-cell").lstrip("\\") in memories


def _option(line: str, name: str) -> str:
    words = shlex.split(line.replace("\\", "\\\\"))
    return words[words.index(name) + 1] if name in words else ""


def _mutant(number: int, line: str) -> Mutant:
    wire = _option(line, "-wire").lstrip("\\")
    return Mutant(
        number,
        _option(line, "-mode"),
        _option(line, "-cell").lstrip("\\"),
        _option(line, "-port").lstrip("\\"),
        int(_option(line, "-portbit") or 0),
        f"{wire}[{_option(line, '-wirebit') or 0}]" if wire else "",
        _option(line, "-src"),
        line.removeprefix("mutate").strip(),
    )
