"""Section `topology`: which network the switch is built into."""

from typing import Annotated, Literal

from pydantic import Field

from hopforge.model.config.base import Section
from hopforge.model.config.paths import ConfigPath

Radices = Annotated[tuple[Annotated[int, Field(ge=1, le=256)], ...], Field(min_length=1, max_length=12)]


class MeshConfig(Section):
    """k-ary n-mesh with a radix per dimension."""

    kind: Literal["mesh"]
    """Grid without wrap-around links."""
    radices: Radices
    """Routers along each dimension, dimension 0 first."""
    hosts_per_router: Annotated[int, Field(ge=1, le=256)] = 1
    """Hosts at every router."""


class TorusConfig(Section):
    """k-ary n-torus with a radix per dimension."""

    kind: Literal["torus"]
    """Grid with wrap-around links."""
    radices: Radices
    """Routers along each dimension, dimension 0 first."""
    hosts_per_router: Annotated[int, Field(ge=1, le=256)] = 1
    """Hosts at every router."""


class FatTreeConfig(Section):
    """k-ary tree with n + 1 switch levels and k^(n+1) hosts."""

    kind: Literal["fat_tree"]
    """k-ary tree."""
    k: Annotated[int, Field(ge=2, le=256)]
    """Ports down (and up) of a switch."""
    n: Annotated[int, Field(ge=0, le=11)]
    """Level of the root; level 0 are the leaves."""


class DragonflyConfig(Section):
    """Dragonfly: groups of fully connected routers, groups fully connected by global links."""

    kind: Literal["dragonfly"]
    """Dragonfly."""
    p: Annotated[int, Field(ge=1, le=256)]
    """Hosts of a router."""
    a: Annotated[int, Field(ge=1, le=256)]
    """Routers of a group."""
    h: Annotated[int, Field(ge=1, le=256)]
    """Global ports of a router."""
    g: Annotated[int, Field(ge=1)] | None = None
    """Groups; a·h + 1 unless given, and at most that."""
    arrangement: Literal["absolute", "relative", "palmtree"] = "absolute"
    """Which router of a group has the link to which group."""

    @property
    def groups(self) -> int:
        """Number of groups, a·h + 1 unless given."""
        return self.a * self.h + 1 if self.g is None else self.g


class EdgeListConfig(Section):
    """Any connected graph, routed by shortest-path tables."""

    kind: Literal["edge_list"]
    """Any connected graph."""
    file: ConfigPath
    """Text file with two router numbers a line; relative to this configuration file."""
    hosts_per_router: Annotated[int, Field(ge=1, le=256)] = 1
    """Hosts at every router."""


TopologyConfig = Annotated[
    MeshConfig | TorusConfig | FatTreeConfig | DragonflyConfig | EdgeListConfig, Field(discriminator="kind")
]
