"""A router of a configured network as a generated package."""

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

from hopforge.gen.design.configured import router_design, stream_design
from hopforge.gen.packages.litex_module import litex_files
from hopforge.gen.packages.lookup import lookup_parameters_as_data
from hopforge.gen.packages.package import (
    Package,
    register_sections,
    register_table,
    registers_as_data,
)
from hopforge.gen.packages.register_bus import bus_as_data, bus_introduction, bus_paths, interrupt_sections
from hopforge.gen.packages.stream_ports import stream_sections, streams_as_data
from hopforge.gen.registers.maps import register_map_files
from hopforge.hw.router.on_bus import RouterOnBus
from hopforge.hw.router.streamed import router_with_streams
from hopforge.model.config import Config
from hopforge.model.lookup.csr import CSR_ADDR_BITS, csr_map
from hopforge.model.lookup.tcam import TcamRow
from hopforge.model.router.bus_space import router_space
from hopforge.model.router.csr import all_engines_address, engine_address, router_csr_map
from hopforge.model.router.params import RouterParams
from hopforge.model.router.program import RouterProgram
from hopforge.model.router.stream_params import StreamParams
from hopforge.model.topology import Topology

__all__ = [
    "ROUTER_PERIOD_NS",
    "engine_pages_as_data",
    "engine_sections",
    "program_text",
    "router_name",
    "router_package",
    "router_parameters_as_data",
]

ROUTER_PERIOD_NS = 1.5
"""Clock period of the constraints: what a router of 5 ports and 4 VCs with latches keeps at 45 nm."""


def router_name(config: Config, router: int) -> str:
    """Name of the top module, and stem of every file."""
    return f"{config.name}_router{router}"


def router_package(config: Config, *, router: int = 0) -> Package:
    """Return what is generated of a router of a configured network."""
    design = router_design(config, router=router)
    params, name, bus = design.params[router], router_name(config, router), config.csr.bus
    streams = stream_design(config, design, router)
    space = router_space(params, tuple(stream.port for stream in streams))
    manifest: dict[str, Any] = {
        "definition": "docs/definitions/router.md, docs/guides/generate-a-router.md",
        "parameters": router_parameters_as_data(params),
        "place": {"router": router, "ports": _neighbours(design.topology, router)},
        **bus_as_data(bus, space),
        **streams_as_data(streams),
        "registers": registers_as_data(router_csr_map(params)),
    }
    description = f"Router {router} of the network {config.name}"
    component = (
        router_with_streams(params, streams)
        if bus == "native"
        else RouterOnBus(params=params, bus=bus, streams=streams)
    )
    more = register_map_files(name, f"{description}.", space, bus=bus) | litex_files(name, component, space, bus)
    if params.lookup is not None:
        manifest["engines"] = engine_pages_as_data(params)
        more["_program.json"] = program_text([design.program(router)])
    return Package(
        name=name,
        kind="router",
        description=description,
        component=component,
        manifest=manifest,
        through=bus_paths(bus),
        period_ns=ROUTER_PERIOD_NS,
        documentation=_documentation(name, params, bus, streams),
        more=more,
    )


def router_parameters_as_data(params: RouterParams) -> dict[str, Any]:
    """Parameters of a router as plain data; routes as (mask of ports, class, escape port or null)."""
    content = {field.name: getattr(params, field.name) for field in dataclasses.fields(params)}
    if params.lookahead is None:
        del content["lookahead"]
    else:
        content["lookahead"] = ahead = dataclasses.asdict(params.lookahead)
        if not params.lookahead.behind:
            del ahead["behind"]
    if not params.cycles_per_flit:
        del content["cycles_per_flit"]
    if not params.entropy_bits:
        del content["entropy_bits"]
    content["routes"] = [[route.ports, route.route_class, route.escape] for route in params.routes]
    content["lookup"] = None if params.lookup is None else lookup_parameters_as_data(params.lookup)
    content["quality"] = None if params.quality is None else dataclasses.asdict(params.quality)
    return content


def _neighbours(topology: Topology, router: int) -> list[str | None]:
    """Return what is at each port."""
    rows = zip(topology.host_at[router], topology.peer_router[router], topology.peer_port[router], strict=True)
    return [
        f"host {host}" if host >= 0 else f"router {peer} port {port}" if peer >= 0 else None
        for host, peer, port in rows
    ]


def engine_pages_as_data(params: RouterParams) -> dict[str, Any]:
    """Return registers of the lookup engines and where they lie on the bus of the router."""
    assert params.lookup is not None
    shared = {} if params.ports_per_engine == 1 else {"ports_per_engine": params.ports_per_engine}
    return shared | {
        "all_word_address": all_engines_address(0),
        "port_0_word_address" if not shared else "engine_0_word_address": engine_address(0, 0),
        "stride_words": 1 << CSR_ADDR_BITS,
        "registers": registers_as_data(csr_map(params.lookup)),
    }


def program_text(programs: Sequence[RouterProgram]) -> str:
    """JSON with the TCAM rows and the register operations of routers, one row or operation on a line."""
    lines = ["{", '  "routers": [']
    for program in programs:
        rows = _rows_as_data(program.rows)
        operations = [
            [step.kind, f"{step.address:#06x}", f"{step.data:#010x}", f"{step.mask:#010x}", step.name]
            for step in program.operations
        ]
        lines += [
            f'    {{"router": {program.router},',
            '     "tcam": [',
            *_listed(rows),
            *_rows_of_ports(program),
            '     ], "operations": [',
            *_listed(operations),
            "     ]}" + ("," if program is not programs[-1] else ""),
        ]
    return "\n".join([*lines, "  ]", "}", ""])


def _rows_as_data(rows: Sequence[TcamRow]) -> list[dict[str, Any]]:
    return [
        {"value": f"{row.value:#x}", "mask": f"{row.mask:#x}", "output": row.output, "lag": int(row.lag)}
        for row in rows
    ]


def _rows_of_ports(program: RouterProgram) -> list[str]:
    """Lines with the rows of each port (look-ahead)."""
    rows = [_rows_as_data(of_port) for of_port in program.rows_of_ports]
    return ['     ], "tcam_of_ports": [', *_listed(rows)] if rows else []


def _listed(items: Sequence[Any]) -> list[str]:
    return [f"      {json.dumps(item)}{',' if number < len(items) - 1 else ''}" for number, item in enumerate(items)]


_NATIVE = (
    "32-bit words; the address on the bus (`csr__addr`) is the word address. A read takes effect with `csr__re`",
    "and `csr__rdata` shows it in the following cycle. Bits outside of the fields, and addresses without a",
    "register, read 0 and ignore writes.",
)


def _documentation(name: str, params: RouterParams, bus: str, streams: Sequence[StreamParams]) -> str:
    """Register documentation as Markdown."""
    registers = router_csr_map(params)
    lines = [
        f"# Registers of `{name}`",
        "",
        *bus_introduction(bus, _NATIVE),
        "",
        f"{params.ports} ports of {params.vcs} virtual channels with {params.buffer_flits} flits each, "
        f"{params.switching}, {params.width_bits} bits of data in a flit, routes from a {params.rc}.",
        "",
        *register_table(registers, digits=4),
        *engine_sections(params),
        *stream_sections(streams),
        *register_sections(registers, digits=4),
        *interrupt_sections(bus, router_space(params)),
    ]
    return "\n".join(lines) + "\n"


def engine_sections(params: RouterParams) -> list[str]:
    """Lines of the documentation on the registers of lookup engines; none in mode table."""
    if params.lookup is None:
        return []
    whose, number = "Each input port has an engine of its own; its", "port"
    if params.asks_ahead:
        ahead = ", ".join(str(port) for port in range(params.ports) if params.carries(port))
        whose = (
            f"Each port has an engine of its own. That of ports {ahead} is at the output and answers for the router "
            "behind the link (look-ahead); that of the others is at the input. Its"
        )
    if params.ports_per_engine > 1:
        groups = (params.engine_ports(engine) for engine in range(params.engines))
        served = "; ".join(
            f"engine {engine}: {f'ports {ports[0]} to {ports[-1]}' if len(ports) > 1 else f'port {ports[0]}'}"
            for engine, ports in enumerate(groups)
        )
        whose, number = f"Input ports share engines ({served}). Their", "engine"
    lines = [
        "",
        "## Lookup engines",
        "",
        f"{whose} registers are at 0x{engine_address(0, 0):04X} + {number} · "
        f"0x{1 << CSR_ADDR_BITS:X} + the word below. A write at 0x{all_engines_address(0):04X} + word goes to the "
        f"engines of all ports; reads there give 0.",
        "",
        "| word | register | reset | what |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| 0x{register.address:02X} | {register.name} | 0x{register.reset:08X} | {register.description} |"
        for register in csr_map(params.lookup)
    ]
    return lines
