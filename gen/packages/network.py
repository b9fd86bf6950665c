"""A configured network of routers as a generated package."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from hopforge.gen.design.configured import NetworkDesign, acknowledge_setup, network_streams, whole_network_design
from hopforge.gen.packages.package import (
    Package,
    register_sections,
    register_table,
    registers_as_data,
)
from hopforge.gen.packages.router import (
    ROUTER_PERIOD_NS,
    engine_pages_as_data,
    engine_sections,
    program_text,
    router_parameters_as_data,
)
from hopforge.gen.packages.stream_ports import network_stream_sections, network_streams_as_data
from hopforge.hw.network.network import Network
from hopforge.model.config import Config
from hopforge.model.network.settings import router_parameters
from hopforge.model.router.configured import network_links
from hopforge.model.router.csr import ROUTER_CSR_ADDR_BITS, router_csr_map
from hopforge.model.router.links import topology_hosts
from hopforge.model.router.reply_rules import reply_rules
from hopforge.model.router.stream_params import StreamParams

__all__ = ["network_component", "network_name", "network_package"]


def network_name(config: Config) -> str:
    """Name of the top module, and stem of every file."""
    return f"{config.name}_network"


def network_package(config: Config) -> Package:
    """Return what is generated of a configured network."""
    design = whole_network_design(config)
    topology, params, name = design.topology, design.params, network_name(config)
    links, hosts = network_links(config, topology), topology_hosts(topology)
    rules, streams = reply_rules(config), network_streams(design)
    manifest: dict[str, Any] = {
        "definition": "docs/definitions/router.md, docs/guides/generate-a-router.md",
        "topology": topology.name,
        "router_stride_words": 1 << ROUTER_CSR_ADDR_BITS,
        "hosts": [
            {"host": host, "address": int(topology.host_address[host]), "router": end.router, "port": end.port}
            for host, end in enumerate(hosts)
        ],
        "links": [[*link.source, *link.target, link.latency_cycles] for link in links],
        **network_streams_as_data(streams, hosts),
        "registers": registers_as_data(router_csr_map(params[0])),
    }
    if rules is not None:
        manifest["replies"] = {"definition": "docs/definitions/replies.md", **asdict(rules)}
    if (acknowledges := acknowledge_setup(design)) is not None:
        manifest["acknowledges"] = {
            "definition": "docs/definitions/service-host.md", **asdict(acknowledges.rules),
            "vcs": list(acknowledges.vcs), "port": params[0].ports - 1, "first_address": topology.hosts,
        }  # fmt: skip
    if design.paths is not None:
        manifest["paths"] = {"definition": "docs/definitions/several-paths.md", **asdict(design.paths)}
    more = {"_routers.json": _routers(design)}
    if params[0].lookup is not None:
        manifest["engines"] = engine_pages_as_data(params[0])
        more["_program.json"] = program_text(design.programs)
    return Package(
        name=name,
        kind="network",
        description=f"Network {topology.name}",
        component=network_component(design, streams),
        manifest=manifest,
        period_ns=ROUTER_PERIOD_NS,
        documentation=_documentation(name, design, streams),
        more=more,
    )


def network_component(design: NetworkDesign, streams: Sequence[StreamParams] = ()) -> Network:
    """Return the routers, links and interfaces of hosts of a configured network, with AXI-Stream adapters if given."""
    config, topology = design.config, design.topology
    rules, acknowledges = reply_rules(config), acknowledge_setup(design)
    alone = rules is None and acknowledges is None
    return Network(
        routers=design.params, links=network_links(config, topology), hosts=topology_hosts(topology), replies=rules,
        acknowledges=acknowledges, streams=streams, paths=design.paths,
        host_latency_cycles=1 if alone else router_parameters(config, topology).host_latency_cycles,
    )  # fmt: skip


def _routers(design: NetworkDesign) -> str:
    """JSON with the parameters of every router, one on a line."""
    rows = [json.dumps(router_parameters_as_data(params)) for params in design.params]
    return "[\n" + ",\n".join(rows) + "\n]\n"


def _documentation(name: str, design: NetworkDesign, streams: Sequence[StreamParams]) -> str:
    """Register documentation as Markdown."""
    params, topology = design.params[0], design.topology
    registers = router_csr_map(params)
    lines = [
        f"# Registers of `{name}`",
        "",
        f"{topology.name}: {topology.routers} routers, {topology.hosts} hosts.",
        "",
        "32-bit words. The address on the bus (`csr__addr`) is a word address: the number of the router · "
        f"0x{1 << ROUTER_CSR_ADDR_BITS:X} + the word below, the same in every router. A read takes effect with",
        "`csr__re` and `csr__rdata` shows it in the following cycle. Bits outside of the fields, and addresses without",
        "a register, read 0 and ignore writes.",
        "",
        *register_table(registers, digits=4),
        *engine_sections(params),
        *network_stream_sections(streams, topology_hosts(topology)),
        *register_sections(registers, digits=4),
    ]
    return "\n".join(lines) + "\n"
