"""The collective plane of a configured network as a generated package."""

import dataclasses
import json
from collections.abc import Iterator

from hopforge.gen.packages.package import Package
from hopforge.hw.collectives.network import CollectiveNetwork
from hopforge.model.config import Config
from hopforge.model.router.collective_params import OPERATIONS
from hopforge.model.router.collective_plane import PlaneDesign, configured_plane

__all__ = ["collectives_name", "collectives_package", "plane_component"]

PERIOD_NS = 1.5
"""Clock period of the constraints: that of the routers beside it."""


def collectives_name(config: Config) -> str:
    """Name of the top module, and stem of every file."""
    return f"{config.name}_collectives"


def plane_component(design: PlaneDesign) -> CollectiveNetwork:
    """Return units and links of a plane."""
    return CollectiveNetwork(params=design.params, ports=design.ports, links=design.links, hosts=design.hosts)


def collectives_package(config: Config) -> Package:
    """Return what is generated of the collective plane of a configured network.

    Raises
    ------
    UserError
        Groups that do not fit the network.
    """
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
