"""Section `topology`: which network the switch is built into."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from hopforge.model.config.base import Section

Radices = Annotated[tuple[Annotated[int, Field(ge=1, le=256)], ...], Field(min_length=1, max_length=12)]


class MeshConfig(Section):
    """k-ary n-mesh with a radix per dimension (dimension 0 first)."""

    kind: Literal["mesh"]
    radices: Radices
    hosts_per_router: Annotated[int, Field(ge=1, le=256)] = 1


class TorusConfig(Section):
    """k-ary n-torus with a radix per dimension (dimension 0 first)."""

    kind: Literal["torus"]
    radices: Radices
    hosts_per_router: Annotated[int, Field(ge=1, le=256)] = 1


class FatTreeConfig(Section):
    """k-ary tree with n + 1 switch levels and k^(n+1) hosts (spec/lookup.md)."""

    kind: Literal["fat_tree"]
    k: Annotated[int, Field(ge=2, le=256)]
    n: Annotated[int, Field(ge=0, le=11)]


class DragonflyConfig(Section):
    """Dragonfly: p hosts a router, a routers a group, h global ports a router, g groups (default a·h + 1)."""

    kind: Literal["dragonfly"]
    p: Annotated[int, Field(ge=1, le=256)]
    a: Annotated[int, Field(ge=1, le=256)]
    h: Annotated[int, Field(ge=1, le=256)]
    g: Annotated[int, Field(ge=1)] | None = None
    arrangement: Literal["absolute", "relative", "palmtree"] = "absolute"


class EdgeListConfig(Section):
    """Any connected graph: a text file with two router numbers a line."""

    kind: Literal["edge_list"]
    file: Path
    hosts_per_router: Annotated[int, Field(ge=1, le=256)] = 1


TopologyConfig = Annotated[
    MeshConfig | TorusConfig | FatTreeConfig | DragonflyConfig | EdgeListConfig, Field(discriminator="kind")
]
