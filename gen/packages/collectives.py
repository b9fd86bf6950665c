"""The collective plane of a configured network as a generated package, and its blocks to synthesize."""

import dataclasses
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from hopforge.gen.design.blocks import Block, Registered
from hopforge.gen.design.router_blocks import router_blocks
from hopforge.gen.packages.package import Package, package_files, write_package
from hopforge.hw.collectives.network import CollectiveNetwork
from hopforge.hw.collectives.unit import CollectiveUnit
from hopforge.hw.collectives.word_combiner import WordCombiner
from hopforge.model.config import Config
from hopforge.model.router.collective_params import OPERATIONS
from hopforge.model.router.collective_plane import PlaneDesign, configured_plane

__all__ = ["collective_blocks", "collectives_files", "collectives_name", "generate_collectives", "plane_component"]

PERIOD_NS = 1.5
"""Clock period of the constraints: that of the routers beside it."""
_RECIPES = ("lut-buffered", "lut-fast")


def collectives_name(config: Config) -> str:
    """Name of the top module, and stem of every file."""
    return f"{config.name}_collectives"


def plane_component(design: PlaneDesign) -> CollectiveNetwork:
    """Return units and links of a plane."""
    return CollectiveNetwork(params=design.params, ports=design.ports, links=design.links, hosts=design.hosts)


def generate_collectives(config: Config, folder: Path, *, period_ns: float | None = None) -> list[Path]:
    """Write the collective plane of a configured network; the files appear together, complete.

    Parameters
    ----------
    config : Config
        Checked configuration.
    folder : Path
        For all files.
    period_ns : float
        Clock period of the constraints, ns; by default that of the package.

    Returns
    -------
    list of Path
        Verilog, lint waivers, constraints, FuseSoC core, documentation, writes of the trees, manifest.

    Raises
    ------
    UserError
        Groups that do not fit the network, or a folder that cannot be written.
    """
    return write_package(collectives_files(config, period_ns=period_ns), folder)


def collectives_files(config: Config, *, period_ns: float | None = None) -> dict[str, str]:
    """Text of every generated file by its name, Verilog first."""
    return package_files(_package(config), period_ns=period_ns)


def _package(config: Config) -> Package:
    design, name = configured_plane(config), collectives_name(config)
    return Package(
        name=name,
        kind="collectives",
        description=f"Collective plane of the {design.network}",
        component=plane_component(design),
        period_ns=PERIOD_NS,
        manifest={
            "definition": "docs/definitions/network-collectives.md",
            "topology": design.network,
            "parameters": dataclasses.asdict(design.params),
            "operations": list(OPERATIONS),
            "flit": [{"field": field, "bits": bits} for field, bits in design.params.fields],
            "hosts": [{"host": n, "unit": end.router, "port": end.port} for n, end in enumerate(design.hosts)],
            "links": [[*link.source, *link.target, link.latency_cycles] for link in design.links],
            "registers": [],
        },
        documentation=_documentation(name, design),
        more={"_trees.json": _trees(design)},
    )


def _trees(design: PlaneDesign) -> str:
    """JSON with the groups, and what software writes, one write on a line."""
    groups = [
        {"group": g, "root": tree.root, "depth": tree.depth, "hosts": list(tree.hosts)}
        for g, tree in enumerate(design.trees)
    ]
    names = ("set_unit", "set_group", "set_children", "set_parent")
    writes = ",\n".join(json.dumps(dict(zip(names, write, strict=True))) for write in design.writes)
    return f'{{"groups": {json.dumps(groups)},\n"writes": [\n{writes}\n]}}\n'


def _documentation(name: str, design: PlaneDesign) -> str:
    """Return what a user of the module must know, as Markdown."""
    p = design.params
    return "\n".join(
        [
            f"# `{name}`",
            "",
            f"Collective plane of the {design.network}: {len(design.ports)} units, {len(design.hosts)} hosts, "
            f"{p.groups} groups. `docs/definitions/network-collectives.md` of hopforge defines it.",
            "",
            f"Write every line of `{name}_trees.json` before a group is used: `set_valid` 1 for a cycle each.",
            f"A host may send {p.buffer_flits} flits of a group before it gets credits, and must hold as many.",
            "",
            "| field of a flit | lowest bit | bits |",
            "|---|---|---|",
            *_fields(design),
            "",
            "| operation | code |",
            "|---|---|",
            *(f"| {operation} | {code} |" for code, operation in enumerate(OPERATIONS)),
            "",
        ]
    )


def _fields(design: PlaneDesign) -> Iterator[str]:
    at = 0
    for field, bits in design.params.fields:
        yield f"| {field} | {at} | {bits} |"
        at += bits


def collective_blocks(config: Config) -> dict[str, Block]:
    """Return the unit of the router with the most ports, its combiner, and the router beside it.

    Raises
    ------
    UserError
        Groups that do not fit the network, or a router that the hardware cannot be.
    """
    design = configured_plane(config)
    p, ports = design.params, max(design.ports)
    block = partial(Block, clocked=True, recipes=_RECIPES, efforts=False, clock_gates=True)
    size = f"{ports} ports, {p.groups} groups, {p.width_bits} bits, {p.buffer_flits} flits"
    found = [
        block(
            name="collective_unit", what=f"collective unit, {size}",
            build=lambda: CollectiveUnit(params=p, ports=ports),
        ),
        block(
            name="word_combiner", what=f"combines {ports} words of {p.width_bits} bits, between registers",
            build=lambda: Registered(WordCombiner(words=ports, width_bits=p.width_bits)),
        ),
        router_blocks(config)["router"],
    ]  # fmt: skip
    return {each.name: each for each in found}
