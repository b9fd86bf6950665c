"""Everything that a user of the lookup engine needs, from one configuration: Verilog and what goes with it."""

import dataclasses
from typing import Any

from hopforge.gen.design.configured import packaged_engine_parameters
from hopforge.gen.packages.litex_module import litex_files
from hopforge.gen.packages.package import (
    Package,
    register_sections,
    register_table,
    registers_as_data,
)
from hopforge.gen.packages.register_bus import bus_as_data, bus_introduction, bus_paths, interrupt_sections
from hopforge.gen.registers.maps import register_map_files
from hopforge.hw.lookup.engine import is_deep, lookup_engine, many_periods
from hopforge.hw.lookup.on_bus import LookupOnBus
from hopforge.model.config import Config
from hopforge.model.lookup.csr import CsrMap, csr_map
from hopforge.model.lookup.params import LookupParams
from hopforge.model.router.bus_space import lookup_space

__all__ = [
    "lookup_name",
    "lookup_package",
    "lookup_parameters_as_data",
]  # fmt: skip

_THROUGH = (("resp_ready", "req_ready"),)
"""Combinational paths from port to port of engines to a depth of 4: a response that is taken makes room for a
request."""


_DESCRIPTION = "Routing-cache lookup engine of one input port"


def lookup_name(config: Config) -> str:
    """Name of the top module, and stem of every file."""
    return f"{config.name}_lookup"


def lookup_package(config: Config) -> Package:
    """Return what is generated of the engine of a configuration."""
    params, bus = packaged_engine_parameters(config), config.csr.bus
    name, space = lookup_name(config), lookup_space(params)
    registers = csr_map(params)
    component = lookup_engine(params=params) if bus == "native" else LookupOnBus(params=params, bus=bus)
    return Package(
        name=name,
        kind="lookup",
        description=_DESCRIPTION,
        component=component,
        through=(() if is_deep(params) else _THROUGH) + bus_paths(bus),
        many_periods=many_periods(params),
        manifest={
            "definition": "docs/definitions/lookup-engine.md",
            "parameters": lookup_parameters_as_data(params),
            "derived": {
                "key_bits": params.key_bits,
                "sets": params.sets,
                "index_bits": params.index_bits,
                "hit_latency_cycles": params.hit_cycles,
            },
            **bus_as_data(bus, space),
            "registers": registers_as_data(registers),
        },
        documentation=_documentation(name, params, registers, bus),
        more={
            **register_map_files(name, _DESCRIPTION + ".", space, bus=bus),
            **litex_files(name, component, space, bus),
        },
    )


def lookup_parameters_as_data(params: LookupParams) -> dict[str, Any]:
    """Parameters of an engine as plain data."""
    crc = params.crc if isinstance(params.crc, str) else params.crc.model_dump()
    data = dataclasses.asdict(params) | {"crc": crc}
    if params.second_level is None:
        del data["second_level"]
    return data


def _native(params: LookupParams) -> tuple[str, ...]:
    """Return what a read on the bus of the engine itself is like."""
    when = "shows it three cycles later" if is_deep(params) else "shows it in the following cycle"
    return (
        "32-bit words; the address on the bus (`csr_addr`) is the word address. A read takes effect with `csr_re` and",
        f"`csr_rdata` {when}. Bits outside of the fields read 0 and ignore writes.",
    )


def _documentation(name: str, params: LookupParams, registers: CsrMap, bus: str) -> str:
    """Register documentation as Markdown."""
    lines = [
        f"# Registers of `{name}`",
        "",
        *bus_introduction(bus, _native(params)),
        "",
        f"{params.address_bits}-bit addresses, {params.key_bits}-bit keys, {params.entries} entries in {params.ways} "
        f"ways ({params.policy}{', skewed' if params.skewed else ''}), {params.mshrs} MSHRs, TCAM {params.tcam_kind}, "
        f"pipeline depth {params.pipeline_depth}{', with a memory stage' if params.memory_stage else ''}.",
        "",
        *register_table(registers),
        *register_sections(registers),
        *interrupt_sections(bus, lookup_space(params)),
    ]
    return "\n".join(lines) + "\n"
