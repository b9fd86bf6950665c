"""Everything that a user of the lookup engine needs, from one configuration: Verilog and what goes with it."""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from amaranth.hdl import Shape
from amaranth.lib.wiring import Out

from hopforge.gen.lint import waiver_file
from hopforge.gen.verilog import to_verilog, tool_versions
from hopforge.hw.lookup import Lookup
from hopforge.model.config import Config
from hopforge.model.csr import CsrMap, Register, csr_map
from hopforge.model.errors import UserError
from hopforge.model.lookup_params import LookupParams
from hopforge.model.results import staged

__all__ = ["engine_parameters", "generate_lookup", "lookup_files", "top_name"]

_ACCESS = {
    "const": "fixed value",
    "ro": "read only",
    "rw": "read and write",
    "wo": "write only, reads 0",
    "w1": "writing 1 acts, reads 0",
    "rc": "cleared by reading",
}


def engine_parameters(config: Config) -> LookupParams:
    """Parameters of the engine that a configuration describes.

    Raises
    ------
    UserError
        If the hardware cannot do what the configuration wants.
    """
    try:
        return LookupParams.from_config(config)
    except ValueError as error:
        raise UserError(f"{config.name}: {error}") from None


def top_name(config: Config) -> str:
    """Name of the top module, and stem of every file."""
    return f"{config.name}_lookup"


def generate_lookup(config: Config, folder: Path | None = None, *, period_ns: float = 1.0) -> list[Path]:
    """Write the engine of a configuration; the files appear together, complete.

    Parameters
    ----------
    config : Config
        Checked configuration.
    folder : Path, optional
        By default ``build/NAME/lookup``.
    period_ns : float
        Clock period of the constraints, ns.

    Returns
    -------
    list of Path
        Verilog, lint waivers, constraints, FuseSoC core, manifest, register documentation.

    Raises
    ------
    UserError
        If the hardware cannot do what the configuration wants, or the folder cannot be written.
    """
    target = Path("build") / config.name / "lookup" if folder is None else folder
    files = lookup_files(config, period_ns=period_ns)
    with staged(target) as scratch:
        for name, text in files.items():
            (scratch / name).write_text(text, encoding="utf-8")
    return [target / name for name in files]


def lookup_files(config: Config, *, period_ns: float = 1.0) -> dict[str, str]:
    """Text of every generated file by its name, Verilog first."""
    if not period_ns > 0:
        raise UserError(f"the clock period must be above 0 ns, not {period_ns:g}")
    params = engine_parameters(config)
    name = top_name(config)
    engine = Lookup(params=params)
    registers = csr_map(params)
    ports = _ports(engine)
    files = {
        f"{name}.sv": to_verilog(engine, name),
        f"{name}.vlt": waiver_file(),
        f"{name}.sdc": _constraints(name, ports, period_ns),
        f"{name}.core": _core(name),
        f"{name}.md": _documentation(name, params, registers),
    }
    files[f"{name}.json"] = _manifest(config, params, ports, registers, files)
    return files


def _ports(engine: Lookup) -> list[dict[str, Any]]:
    """Name, direction and width of every port, clock and reset included."""
    ports: list[dict[str, Any]] = [
        {"name": "clk", "direction": "input", "width_bits": 1, "role": "clock, rising edge"},
        {"name": "rst", "direction": "input", "width_bits": 1, "role": "synchronous reset, active high"},
    ]
    for port, member in engine.signature.members.items():
        direction = "output" if member.flow is Out else "input"
        ports.append({"name": port, "direction": direction, "width_bits": Shape.cast(member.shape).width})
    return ports


def _manifest(
    config: Config,
    params: LookupParams,
    ports: list[dict[str, Any]],
    registers: CsrMap,
    files: Mapping[str, str],
) -> str:
    content = {
        "name": top_name(config),
        "definition": "docs/lookup-engine.md",
        "versions": tool_versions(),
        "parameters": dataclasses.asdict(params) | {"crc": _crc(params)},
        "derived": {
            "key_bits": params.key_bits,
            "sets": params.sets,
            "index_bits": params.index_bits,
            "hit_latency_cycles": params.pipeline_depth,
        },
        "ports": ports,
        "registers": [_register(register) for register in registers],
        "files": {name: hashlib.sha256(text.encode()).hexdigest() for name, text in files.items()},
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _crc(params: LookupParams) -> Any:
    """Name or parameters of the CRC as plain data."""
    return params.crc if isinstance(params.crc, str) else params.crc.model_dump()


def _register(register: Register) -> dict[str, Any]:
    return {
        "name": register.name,
        "word_address": register.address,
        "reset": register.reset,
        "description": register.description,
        "fields": [dataclasses.asdict(field) for field in register.fields],
    }


def _constraints(name: str, ports: list[dict[str, Any]], period_ns: float) -> str:
    """Synopsys design constraints: one clock, half of the period for what lies outside."""
    outside = round(period_ns / 2, 6)
    inputs = " ".join(port["name"] for port in ports[1:] if port["direction"] == "input")
    outputs = " ".join(port["name"] for port in ports if port["direction"] == "output")
    return "\n".join(
        (
            f"# {name}: one clock; half of the period is left to what lies outside",
            f"create_clock -name clk -period {period_ns:g} [get_ports clk]",
            f"set_clock_uncertainty {round(period_ns * 0.05, 6):g} [get_clocks clk]",
            f"set_input_delay {outside:g} -clock clk [get_ports {{{_with_bits(inputs)}}}]",
            f"set_output_delay {outside:g} -clock clk [get_ports {{{_with_bits(outputs)}}}]",
            "",
        )
    )


def _with_bits(names: str) -> str:
    """Patterns that match a port and its bits: tools differ in which of the two they name."""
    return " ".join(f"{name} {name}[*]" for name in names.split())


def _core(name: str) -> str:
    """FuseSoC core description (CAPI 2)."""
    return f"""CAPI=2:
name: hopforge:lookup:{name}:1.0.0
description: Routing-cache lookup engine of one input port, generated by hopforge
filesets:
  rtl:
    files:
      - {name}.sv
    file_type: systemVerilogSource
  lint:
    files:
      - {name}.vlt
    file_type: vlt
  constraints:
    files:
      - {name}.sdc
    file_type: SDC
targets:
  default:
    filesets: [rtl]
    toplevel: {name}
  lint:
    default_tool: verilator
    filesets: [lint, rtl]
    toplevel: {name}
    tools:
      verilator:
        mode: lint-only
        verilator_options: [-Wall]
  synth:
    filesets: [rtl, constraints]
    toplevel: {name}
"""


def _documentation(name: str, params: LookupParams, registers: CsrMap) -> str:
    """Register documentation as Markdown."""
    lines = [
        f"# Registers of `{name}`",
        "",
        "32-bit words; the address on the bus (`csr_addr`) is the word address. A read takes effect with `csr_re` and",
        "`csr_rdata` shows it in the following cycle. Bits outside of the fields read 0 and ignore writes.",
        "",
        f"{params.address_bits}-bit addresses, {params.key_bits}-bit keys, {params.entries} entries in {params.ways} "
        f"ways ({params.policy}{', skewed' if params.skewed else ''}), {params.mshrs} MSHRs, TCAM {params.tcam_kind}, "
        f"pipeline depth {params.pipeline_depth}.",
        "",
        "| word | register | reset | what |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| 0x{register.address:02X} | [{register.name}](#{register.name.lower()}) | 0x{register.reset:08X} "
        f"| {register.description} |"
        for register in registers
    ]
    for register in registers:
        lines += ["", f"## {register.name}", "", f"Word 0x{register.address:02X}. {register.description}", ""]
        lines += ["| bits | field | access | reset | what |", "|---|---|---|---|---|"]
        for field in register.fields:
            top = field.lsb + field.width - 1
            bits = f"{top}:{field.lsb}" if field.width > 1 else f"{field.lsb}"
            lines.append(
                f"| {bits} | {field.name} | {_ACCESS[field.access]} | {field.reset:#x} | {field.description} |"
            )
    return "\n".join(lines) + "\n"
