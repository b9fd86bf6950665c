"""A generated package: Verilog of a component and everything that goes with it, written together."""

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from amaranth.hdl import Value
from amaranth.lib.wiring import Component, Out

from hopforge.gen.packages.constraints import constraints_as_data, constraints_text
from hopforge.gen.packages.smoke_bench import smoke_bench
from hopforge.gen.verilog.lint import waiver_file
from hopforge.gen.verilog.writer import to_verilog, tool_versions
from hopforge.model.errors import UserError
from hopforge.model.lookup.csr import Register
from hopforge.model.output.results import staged

__all__ = [
    "Package", "component_ports", "package_constraints", "package_files", "register_sections", "register_table",
    "registers_as_data", "write_package",
]  # fmt: skip

_PART = "xc7a100tcsg324-1"
"""FPGA of the target synth; another one is a line of the core file."""

_ACCESS = {
    "const": "fixed value",
    "ro": "read only",
    "rw": "read and write",
    "wo": "write only, reads 0",
    "w1": "writing 1 acts, reads 0",
    "rc": "cleared by reading",
    "w1c": "cleared by writing 1",
}


@dataclass(frozen=True, kw_only=True)
class Package:
    """What distinguishes one package from another.

    Parameters
    ----------
    name : str
        Name of the top module, and stem of every file.
    kind : str
        Library of the FuseSoC core.
    description : str
        One sentence for it.
    component : Component
        What becomes Verilog.
    manifest : mapping
        What the manifest says about it, beside tools, ports and files.
    documentation : str
        Register documentation as Markdown.
    more : mapping
        Further files: what follows the name, and the text.
    through : tuple of (str, str)
        Inputs and outputs with a combinational path from one to the other.
    many_periods : mapping of str to int
        Instances in the top module through which a path may take several periods, and how many.
    period_ns : float
        Clock period of the constraints unless another one is asked for: what is kept at 45 nm.
    """

    name: str
    kind: str
    description: str
    component: Component
    manifest: Mapping[str, Any]
    documentation: str
    more: Mapping[str, str] = field(default_factory=dict)
    through: tuple[tuple[str, str], ...] = ()
    many_periods: Mapping[str, int] = field(default_factory=dict)
    period_ns: float = 1.0


def package_files(package: Package, *, period_ns: float | None = None) -> dict[str, str]:
    """Text of every file by its name: Verilog, waivers, constraints, core, documentation, further ones, manifest.

    `period_ns`: as for `package_constraints`.

    Raises
    ------
    UserError
        A clock period that is none.
    """
    constraints = package_constraints(package, period_ns=period_ns)
    name = package.name
    ports = component_ports(package.component)
    files = {
        f"{name}.sv": to_verilog(package.component, name),
        f"{name}.vlt": waiver_file(),
        f"{name}.sdc": constraints,
        f"{name}_tb.sv": smoke_bench(name, ports, _identity(package)),
        f"{name}.core": _core(package),
        f"{name}.md": package.documentation,
        **{f"{name}{rest}": text for rest, text in package.more.items()},
    }
    content = dict(package.manifest)
    registers = content.pop("registers")
    manifest = {
        "name": name,
        "definition": content.pop("definition"),
        "versions": tool_versions(),
        **content,
        "ports": ports,
        "constraints": constraints_as_data(package.period_ns if period_ns is None else period_ns, package.through),
        "registers": registers,
        "files": {file: hashlib.sha256(text.encode()).hexdigest() for file, text in files.items()},
    }
    files[f"{name}.json"] = json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
    return files


def package_constraints(package: Package, *, period_ns: float | None = None) -> str:
    """Return the constraints of a package, for its own clock period if none is given.

    Raises
    ------
    UserError
        A clock period that is none.
    """
    period_ns = package.period_ns if period_ns is None else period_ns
    if not (period_ns > 0 and math.isfinite(period_ns)):
        raise UserError(f"the clock period must be above 0 ns and finite, not {period_ns:g}")
    ports = component_ports(package.component)
    return constraints_text(package.name, ports, period_ns, package.through, package.many_periods)


def write_package(files: Mapping[str, str], folder: Path) -> list[Path]:
    """Write the files; they appear together, complete.

    Raises
    ------
    UserError
        If the folder cannot be written.
    """
    with staged(folder) as scratch:
        for name, text in files.items():
            (scratch / name).write_text(text, encoding="utf-8")
    return [folder / name for name in files]


def component_ports(component: Component) -> list[dict[str, Any]]:
    """Name, direction and width of every port, clock and reset included."""
    ports: list[dict[str, Any]] = [
        {"name": "clk", "direction": "input", "width_bits": 1, "role": "clock, rising edge"},
        {"name": "rst", "direction": "input", "width_bits": 1, "role": "synchronous reset, active high"},
    ]
    for path, member, signal in component.signature.flatten(component):
        direction = "output" if member.flow is Out else "input"
        width = len(Value.cast(signal))
        if width:  # Verilog has no ports of 0 bits
            ports.append({"name": "__".join(map(str, path)), "direction": direction, "width_bits": width})
    return ports


def _identity(package: Package) -> int | None:
    """Return what register ID reads; none: there is no such register."""
    return next((register["reset"] for register in package.manifest["registers"] if register["name"] == "ID"), None)


def _core(package: Package) -> str:
    """FuseSoC core description (CAPI 2)."""
    name = package.name
    return f"""CAPI=2:
name: hopforge:{package.kind}:{name}:1.0.0
description: {package.description}, generated by hopforge
filesets:
  rtl:
    files:
      - {name}.sv
    file_type: systemVerilogSource
  lint:
    files:
      - {name}.vlt
    file_type: vlt
  bench:
    files:
      - {name}_tb.sv
    file_type: systemVerilogSource
  constraints:
    files:
      - {name}.sdc
    file_type: SDC
targets:
  default:
    filesets: [rtl]
    toplevel: {name}
  lint:
    flow: lint
    flow_options:
      tool: verilator
      verilator_options: [-Wall]
    filesets: [lint, rtl]
    toplevel: {name}
  sim:
    flow: sim
    flow_options:
      tool: icarus
      iverilog_options: [-g2012]
    filesets: [rtl, bench]
    toplevel: {name}_tb
  synth:
    flow: vivado
    flow_options:
      part: {_PART}
      pnr: none
    filesets: [rtl, constraints]
    toplevel: {name}
"""


def registers_as_data(registers: Iterable[Register]) -> list[dict[str, Any]]:
    """Return registers as the manifest holds them."""
    return [
        {
            "name": register.name,
            "word_address": register.address,
            "reset": register.reset,
            "description": register.description,
            "fields": [asdict(field) for field in register.fields],
        }
        for register in registers
    ]


def register_table(registers: Iterable[Register], *, digits: int = 2) -> list[str]:
    """Lines of a Markdown table of registers; `digits` of an address."""
    lines = ["| word | register | reset | what |", "|---|---|---|---|"]
    lines += [
        f"| 0x{register.address:0{digits}X} | [{register.name}](#{register.name.lower()}) | 0x{register.reset:08X} "
        f"| {register.description} |"
        for register in registers
    ]
    return lines


def register_sections(registers: Iterable[Register], *, digits: int = 2) -> list[str]:
    """Lines of a Markdown section for each register, with its fields."""
    lines: list[str] = []
    for register in registers:
        lines += [
            "",
            f"## {register.name}",
            "",
            f"Word 0x{register.address:0{digits}X}. {register.description}",
            "",
            "| bits | field | access | reset | what |",
            "|---|---|---|---|---|",
        ]
        for part in register.fields:
            top = part.lsb + part.width - 1
            bits = f"{top}:{part.lsb}" if part.width > 1 else f"{part.lsb}"
            lines.append(f"| {bits} | {part.name} | {_ACCESS[part.access]} | {part.reset:#x} | {part.description} |")
    return lines
