"""Whether a package keeps its own constraints: mapped to a cell library, read and timed by OpenSTA."""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from hopforge.gen.design.blocks import Block
from hopforge.gen.packages.package import Package, package_constraints
from hopforge.gen.packages.parts import PARTS
from hopforge.gen.synth.area_and_delay import synthesize
from hopforge.gen.synth.cells import Library
from hopforge.gen.synth.timing import netlist_ports
from hopforge.gen.tools.processor_time import run_within
from hopforge.model.config import Config
from hopforge.model.errors import UserError
from hopforge.model.output.results import staged

__all__ = ["TimingReport", "check_timing"]

_MEMORY_INPUT_NS, _MEMORY_OUTPUT_NS = 0.1, 0.04  # as in gen.synth.timing
_STA_TIMEOUT_S = 600
#: the second where abc does not end with the first, as with some routers
_RECIPES = ("lut-buffered", "lut-fast")


@dataclass(frozen=True, kw_only=True)
class TimingReport:
    """What OpenSTA says about a package and its constraints.

    Attributes
    ----------
    name : str
        Top module.
    warnings : tuple of str
        What it says while it reads the constraints, such as a name that is not there.
    unconstrained : tuple of str
        Ports and registers without a constraint.
    through : frozenset of (str, str)
        Inputs and outputs with a path between them without a register.
    declared : frozenset of (str, str)
        Those that the manifest names.
    slack_ns : float
        Of the slowest path; below 0: it does not keep its clock period.
    period_ns : float
        Of the constraints.
    path : tuple of str
        Start and end of the slowest path.
    recipe : str
        By which abc chose the cells.
    """

    name: str
    warnings: tuple[str, ...]
    unconstrained: tuple[str, ...]
    through: frozenset[tuple[str, str]]
    declared: frozenset[tuple[str, str]]
    slack_ns: float
    period_ns: float
    path: tuple[str, ...]
    recipe: str

    def rows(self) -> Iterator[tuple[str, str]]:
        """Return the report as (subject, words) for a table."""
        yield "top", self.name
        yield "recipe", self.recipe
        yield "period", f"{self.period_ns:g} ns, slack {self.slack_ns:g} ns"
        yield "slowest path", " to ".join(self.path)
        yield "without a register", _named(self.through)
        problems = self.problems
        yield "problems", "0" if not problems else f"{len(problems)}; first: {problems[0]}"

    @property
    def problems(self) -> list[str]:
        """A line for everything that is wrong."""
        lines = [*self.warnings, *(f"{end}: not constrained" for end in self.unconstrained)]
        lines += [
            f"{start} to {end}: a path without a register that the manifest does not name"
            for start, end in sorted(self.through - self.declared)
        ]
        if self.slack_ns < 0:
            lines.append(f"{' to '.join(self.path)}: {-self.slack_ns:g} ns too long for {self.period_ns:g} ns")
        return lines


def _named(paths: frozenset[tuple[str, str]]) -> str:
    return ", ".join(f"{start} to {end}" for start, end in sorted(paths)) or "none"


def check_timing(
    config: Config,
    part: str,
    library: Library,
    *,
    period_ns: float | None = None,
    recipe: str | None = None,
    folder: Path | None = None,
    timeout_s: float = 300,
    progress: Callable[[str], None] = lambda step: None,
) -> TimingReport:
    """Map a package to cells and let OpenSTA read its constraints.

    Wires and clock are ideal. Memories are macros outside, with their own ports: what they read comes 0.1 ns after
    the edge, what they are given is there 0.04 ns before it.

    Parameters
    ----------
    config : Config
        Checked configuration.
    part : str
        One of `PARTS`; of a network's routers number 0.
    library : Library
        Cells.
    period_ns : float, optional
        Of the clock; by default that of the package.
    recipe : str, optional
        Of `hopforge.gen.tools.abc_recipes.RECIPES`; by default lut-buffered, or lut-fast where abc does not end
        with that.
    folder : Path, optional
        Keeps netlist, constraints and the log of OpenSTA.
    timeout_s : float
        Limit of the mapping, s of processor time.
    progress : callable
        Called with what is done next, and how much processor time it may take.

    Raises
    ------
    UserError
        An unknown part, no OpenSTA, a design that cannot be mapped or timed.
    """
    if part not in PARTS:
        raise UserError(f"part must be one of {', '.join(PARTS)}, not {part!r}")
    program = shutil.which("sta")
    if program is None:
        raise UserError("timing needs OpenSTA (sta), which is missing: apt-get install opensta")
    package = PARTS[part](config)
    period_ns = package.period_ns if period_ns is None else period_ns
    constraints = package_constraints(package, period_ns=period_ns)
    block = Block(
        name=package.name, what=part, clocked=True, build=lambda: package.component, aim_ns=period_ns, efforts=False,
        many_periods=package.many_periods,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() if folder is None else staged(folder) as scratch:
        place = Path(scratch)
        progress(f"map {package.name} to cells (at most {timeout_s:g} s of processor time)")
        recipes = _RECIPES if recipe is None else (recipe,)
        (mapped,) = synthesize(block, library, recipes=recipes, first=True, folder=place, timeout_s=timeout_s)
        (place / "cells.lib").write_text(library.text)
        (place / f"{package.name}.sdc").write_text(constraints)
        netlist = (place / f"{package.name}.v").read_text()
        (place / "check.tcl").write_text(_script(package.name, netlist))
        progress(f"time {package.name} (at most {_STA_TIMEOUT_S} s of processor time)")
        try:
            done = run_within([program, "-no_splash", "-exit", "check.tcl"], place, _STA_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise UserError(
                f"{package.name}: OpenSTA took longer than {_STA_TIMEOUT_S} s of processor time"
            ) from None
        log = done.stdout + done.stderr
        (place / f"{package.name}.log").write_text(log)
        (place / "cells.lib").unlink()
    return _report(package, log, period_ns, mapped.recipe, netlist)


def _script(name: str, netlist: str) -> str:
    """Return the commands of OpenSTA; words of our own separate what they print."""
    inside = {}
    for direction in ("input", "output"):
        ports = sorted(netlist_ports(netlist, direction))
        inside[direction] = [port for port in ports if "." in port and not port.endswith(".clk")]
    lines = [
        "read_liberty cells.lib", f"read_verilog {name}.v", f"link_design block_{name}",
        "puts CONSTRAINTS", f"read_sdc {name}.sdc", "puts MEMORIES",
    ]  # fmt: skip
    for direction, delay in (("input", _MEMORY_INPUT_NS), ("output", _MEMORY_OUTPUT_NS)):
        if inside[direction]:
            lines.append(f"set_{direction}_delay {delay} -clock clk [get_ports {{{' '.join(inside[direction])}}}]")
    lines += [
        "puts SETUP", "check_setup -verbose", "puts THROUGH",
        "foreach port [all_inputs] {",
        '  puts "FROM [get_full_name $port]"',
        "  report_checks -unconstrained -from $port -to [all_outputs] -format end -group_count 10000",
        "}",
        "puts CONSTANT",
        "foreach port [all_outputs] {",
        '  puts "TO [get_full_name $port]"',
        "  report_checks -unconstrained -to $port -format end",
        "}",
        "puts SLOWEST", "report_checks -path_delay max -format full -digits 4", "puts END", "exit", "",
    ]  # fmt: skip
    return "\n".join(lines)


def _report(package: Package, log: str, period_ns: float, recipe: str, netlist: str) -> TimingReport:
    parts = re.split(r"^(CONSTRAINTS|MEMORIES|SETUP|THROUGH|CONSTANT|SLOWEST|END)$", log, flags=re.MULTILINE)
    said = dict(zip(parts[1::2], parts[2::2], strict=True))
    slack = re.search(r"^\s*(-?[\d.]+)\s+slack", said.get("SLOWEST", ""), re.MULTILINE)
    if slack is None or "END" not in said:
        raise UserError(f"{package.name}: OpenSTA found no path: {log.strip().splitlines()[-1:]}")
    ports = {"__".join(map(str, path)) for path, _, _ in package.component.signature.flatten(package.component)}
    through = set()
    for block in said["THROUGH"].split("FROM ")[1:]:
        start = _port(block.split("\n", 1)[0])
        reached = {_port(end) for end in re.findall(r"^(\S+) \(output\)", block, re.MULTILINE)}
        through |= {(start, end) for end in reached if {start, end} <= ports}
    ends = tuple(re.findall(r"^(?:Startpoint|Endpoint): (\S+)", said["SLOWEST"], re.MULTILINE))
    unconstrained = dict.fromkeys(re.findall(r"^  (\S+)", said["SETUP"], re.MULTILINE))
    constant = set(re.findall(r"^TO (\S+)\nNo paths found", said["CONSTANT"], re.MULTILINE))
    if unconstrained:
        constant |= _tied(netlist)
    return TimingReport(
        name=package.name,
        warnings=tuple(line for line in said["CONSTRAINTS"].splitlines() if line.strip()),
        # the clock of a memory is an output, too
        unconstrained=tuple(
            end
            for end in unconstrained
            if not constant & {end, end.replace("\\", "")} and not end.endswith(".clk")
        ),
        through=frozenset(through),
        declared=frozenset(package.through),
        slack_ns=float(slack[1]),
        period_ns=period_ns,
        path=ends,
        recipe=recipe,
    )


def _tied(netlist: str) -> set[str]:
    """Pins of cells with a constant, to which there is no path: `instance/pin`, without the signs that escape names."""
    found = set()
    for instance in re.finditer(r"^ +\S+ (\S+) +\(\n((?: +\.\w+\(.*\),?\n)+) *\);", netlist, re.MULTILINE):
        for pin in re.findall(r"\.(\w+)\(1'[hb][01]\)", instance[2]):
            found.add(f"{instance[1]}/{pin}".replace("\\", ""))
    return found


def _port(name: str) -> str:
    return re.sub(r"\[\d+\]$", "", name)
