"""Section `topology`: which network the switch is built into."""

import math
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from hopforge.model.config.base import ConfigPath, Problem, Section
from hopforge.model.numbers.galois_field import prime_power
from hopforge.model.seeds import MOST_SEED

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


class ButterflyConfig(Section):
    """k-ary n-fly with n stages of k^(n-1) routers and k^n hosts; packets go from the first stage to the last."""

    kind: Literal["butterfly"]
    """k-ary n-fly."""
    k: Annotated[int, Field(ge=2, le=170)]
    """Inputs and outputs of a router in each stage."""
    n: Annotated[int, Field(ge=1, le=12)]
    """Stages."""

    @property
    def routers(self) -> int:
        """Routers; those of the first and last stage that serve the same hosts count as one."""
        return int(max(self.n - 1, 1) * self.k ** (self.n - 1))

    @property
    def most_ports(self) -> int:
        """Ports of a router with hosts."""
        return 3 * self.k if self.n > 1 else self.k


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


class FullyConnectedConfig(Section):
    """Every router linked to every other one."""

    kind: Literal["fully_connected"]
    """Complete graph."""
    routers: Annotated[int, Field(ge=2, le=8192)]
    """Number of routers."""
    hosts_per_router: Annotated[int, Field(ge=1, le=256)] = 1
    """Hosts at every router."""


class HyperXConfig(Section):
    """HyperX: a grid whose lines are fully connected."""

    kind: Literal["hyperx"]
    """Grid of routers in which all routers of a line are linked with each other."""
    sizes: Annotated[tuple[Annotated[int, Field(ge=2, le=4096)], ...], Field(min_length=1, max_length=12)]
    """Routers along each dimension, dimension 0 first."""
    hosts_per_router: Annotated[int, Field(ge=1, le=256)] = 1
    """Hosts at every router."""


def _field_problems(q: int) -> Iterator[Problem]:
    """Check that GF(q) exists."""
    if prime_power(q) is not None:
        return
    below = next((n for n in range(q - 1, 1, -1) if prime_power(n)), 2)
    above = next(n for n in range(q + 1, 2 * q + 2) if prime_power(n))
    yield Problem("q", f"must be a power of a prime, such as {below} or {above}, not {q}")


class SlimFlyConfig(Section):
    """Slim Fly: the McKay-Miller-Širáň graph of 2q² routers, of diameter 2."""

    kind: Literal["slim_fly"]
    """McKay-Miller-Širáň graph."""
    q: Annotated[int, Field(ge=3, le=724)]
    """Power of a prime; every router has (3q − δ)/2 links for q = 4w + δ, δ in −1, 0, 1."""
    hosts_per_router: Annotated[int, Field(ge=1, le=1024)] | None = None
    """Hosts at every router; half the links, rounded up, unless given."""

    @property
    def delta(self) -> int:
        """δ of q = 4w + δ: −1, 0 or 1."""
        return (self.q + 1) % 4 - 1

    @property
    def links_per_router(self) -> int:
        """Degree k' = (3q − δ)/2 of the graph."""
        return (3 * self.q - self.delta) // 2

    @property
    def terminals(self) -> int:
        """Hosts at every router."""
        return -(-self.links_per_router // 2) if self.hosts_per_router is None else self.hosts_per_router

    def problems(self) -> Iterator[Problem]:
        """Check that GF(q) exists."""
        yield from _field_problems(self.q)


class PolarFlyConfig(Section):
    """PolarFly: the polarity graph of Erdős and Rényi, q² + q + 1 routers, of diameter 2."""

    kind: Literal["polarfly"]
    """Polarity graph of a projective plane."""
    q: Annotated[int, Field(ge=2, le=1021)]
    """Power of a prime; every router has q + 1 links, but the q + 1 quadrics, whose own point lies on their line: q."""
    hosts_per_router: Annotated[int, Field(ge=1, le=1024)] | None = None
    """Hosts at every router; half the links, rounded up, unless given."""

    @property
    def links_per_router(self) -> int:
        """Largest degree q + 1 of the graph."""
        return self.q + 1

    @property
    def terminals(self) -> int:
        """Hosts at every router."""
        return -(-self.links_per_router // 2) if self.hosts_per_router is None else self.hosts_per_router

    def problems(self) -> Iterator[Problem]:
        """Check that GF(q) exists."""
        yield from _field_problems(self.q)


class DragonflyPlusConfig(Section):
    """Dragonfly+ (Megafly): groups of leaves and spines, all groups linked by their spines."""

    kind: Literal["dragonfly_plus"]
    """Groups of complete bipartite graphs of leaves, which have the hosts, and spines, which have the global links."""
    hosts_per_router: Annotated[int, Field(ge=1, le=256)]
    """Hosts of a leaf."""
    leaves: Annotated[int, Field(ge=1, le=256)]
    """Leaves of a group."""
    spines: Annotated[int, Field(ge=1, le=256)]
    """Spines of a group."""
    h: Annotated[int, Field(ge=1, le=256)]
    """Global links of a spine."""
    g: Annotated[int, Field(ge=2)] | None = None
    """Groups; spines·h + 1 unless given. g − 1 must divide spines·h: so many links has each pair of groups."""

    @property
    def groups(self) -> int:
        """Number of groups, spines·h + 1 unless given."""
        return self.spines * self.h + 1 if self.g is None else self.g

    @property
    def hosts(self) -> int:
        """Number of hosts."""
        return self.groups * self.leaves * self.hosts_per_router

    def problems(self) -> Iterator[Problem]:
        """Check that global links can be shared evenly."""
        if self.spines * self.h % (self.groups - 1):
            yield Problem(
                "g", f"g − 1 must divide spines·h = {self.spines * self.h} (links for each other group), not g={self.g}"
            )


class CascadeConfig(Section):
    """Cascade (Cray XC): a dragonfly whose groups are grids with fully connected lines."""

    kind: Literal["cascade"]
    """Groups in two dimensions, all groups linked."""
    hosts_per_router: Annotated[int, Field(ge=1, le=256)]
    """Hosts of a router."""
    sizes: tuple[Annotated[int, Field(ge=1, le=256)], Annotated[int, Field(ge=1, le=256)]]
    """Routers along both dimensions of a group: in a row, and in a column. A Cray XC has [16, 6]."""
    links: tuple[Annotated[int, Field(ge=1, le=64)], Annotated[int, Field(ge=1, le=64)]] = (1, 1)
    """Parallel links of two routers of a row, and of a column. A Cray XC has [1, 3]."""
    h: Annotated[int, Field(ge=1, le=256)]
    """Most global links of a router. A Cray XC has 10."""
    g: Annotated[int, Field(ge=1)] | None = None
    """Groups; routers of a group · h + 1 unless given, and at most that. Each pair has as many links as all can."""
    arrangement: Literal["absolute", "relative", "palmtree"] = "absolute"
    """Which router of a group has the link to which group."""

    @property
    def size(self) -> int:
        """Routers of a group."""
        return self.sizes[0] * self.sizes[1]

    @property
    def groups(self) -> int:
        """Number of groups, size·h + 1 unless given."""
        return self.size * self.h + 1 if self.g is None else self.g

    @property
    def hosts(self) -> int:
        """Number of hosts."""
        return self.groups * self.size * self.hosts_per_router

    @property
    def links_per_group_pair(self) -> int:
        """Global links of each pair of groups."""
        return self.size * self.h // (self.groups - 1) if self.groups > 1 else 0

    @property
    def links_per_router(self) -> int:
        """Links of the first router of a group, which has the most."""
        inside = sum((size - 1) * links for size, links in zip(self.sizes, self.links, strict=True))
        return inside + min(self.h, self.links_per_group_pair * (self.groups - 1))

    def problems(self) -> Iterator[Problem]:
        """Check that every pair of groups can be linked, and that there are links at all."""
        most = self.size * self.h + 1
        if self.groups > most:
            yield Problem("g", f"must be at most routers of a group·h + 1 = {most}, not {self.groups}")
        elif self.groups * self.size == 1:
            yield Problem("g", "must be at least 2 for groups of one router, not 1")


class ClosConfig(Section):
    """Folded Clos: a tree of two or three levels whose links up may be fewer than those down."""

    kind: Literal["clos"]
    """Leaves, middles and roots: leaf and spine without roots, a fat tree of pods with them."""
    hosts_per_router: Annotated[int, Field(ge=1, le=256)]
    """Hosts of a leaf."""
    pods: Annotated[int, Field(ge=1, le=4096)] = 1
    """Parts, each a complete bipartite graph of leaves and middles."""
    leaves: Annotated[int, Field(ge=1, le=4096)]
    """Leaves of a pod."""
    middles: Annotated[int, Field(ge=1, le=256)]
    """Middles of a pod."""
    roots: Annotated[int, Field(ge=0, le=4096)] = 0
    """Roots, which link the pods; 0 for one pod."""
    uplinks: Literal["share", "all"] = "share"
    """Every middle has its share of the roots, the same in each pod; or all of them."""
    host_links: Annotated[int, Field(ge=1, le=64)] = 1
    """Links of a host, to as many leaves one behind the other; each counts as one of `hosts_per_router`."""

    @property
    def hosts(self) -> int:
        """Number of hosts."""
        return self.pods * self.leaves * self.hosts_per_router

    @property
    def roots_of_middle(self) -> int:
        """Links up of a middle."""
        return self.roots if self.uplinks == "all" else self.roots // self.middles

    def problems(self) -> Iterator[Problem]:
        """Check that pods are linked, roots shared evenly, and that hosts find leaves for all their links."""
        yield from _host_link_problems(self.host_links, "leaves", self.leaves)
        if self.pods > 1 and self.roots == 0:
            yield Problem("roots", f"must be at least 1 for pods={self.pods}, not 0")
        elif self.pods == 1 and self.roots:
            yield Problem("roots", f"must be 0 for pods=1, not {self.roots}")
        elif self.uplinks == "share" and self.roots % self.middles:
            yield Problem("roots", f"must be a multiple of middles={self.middles} to be shared, not {self.roots}")


def _host_link_problems(links: int, key: str, routers: int) -> Iterator[Problem]:
    """Check that hosts with several links find routers for them."""
    if routers % links:
        yield Problem("host_links", f"must divide {key}={routers}, not {links}")


class DirectorConfig(Section):
    """Switches at the top of racks under director switches, which are folded Clos networks of cards inside."""

    kind: Literal["director"]
    """Racks under directors."""
    hosts_per_router: Annotated[int, Field(ge=1, le=256)]
    """Hosts of a rack."""
    racks: Annotated[int, Field(ge=1, le=65536)]
    """Switches at the top of racks."""
    uplinks: Annotated[int, Field(ge=1, le=256)]
    """Links up of a rack, to all directors together."""
    lines: Annotated[int, Field(ge=1, le=4096)]
    """Line cards of a director, which have the links to racks."""
    fabrics: Annotated[int, Field(ge=1, le=4096)]
    """Fabric cards of a director, each linked to all its line cards."""
    directors: Annotated[int, Field(ge=1, le=256)] = 1
    """Director switches."""
    host_links: Annotated[int, Field(ge=1, le=64)] = 1
    """Links of a host, to as many racks one behind the other; each counts as one of `hosts_per_router`."""

    @property
    def hosts(self) -> int:
        """Number of links of hosts."""
        return self.racks * self.hosts_per_router

    @property
    def routers(self) -> int:
        """Number of racks' switches and cards."""
        return self.racks + self.directors * (self.lines + self.fabrics)

    @property
    def most_ports(self) -> int:
        """Ports of the largest router: the switch of a rack, a line card or a fabric card."""
        down = -(-self.racks * (self.uplinks // self.directors) // self.lines)
        return max(self.hosts_per_router + self.uplinks, down + self.fabrics, self.lines)

    def problems(self) -> Iterator[Problem]:
        """Check that the links of a rack go to different line cards, and those of a host to different racks."""
        if self.uplinks % self.directors:
            yield Problem("uplinks", f"must be a multiple of directors={self.directors}, not {self.uplinks}")
        elif self.uplinks // self.directors > self.lines:
            yield Problem(
                "uplinks", f"must be at most directors·lines={self.directors * self.lines}, for the links of a rack go"
                f" to different line cards, not {self.uplinks}",
            )
        elif self.racks * self.uplinks // self.directors < self.lines:
            yield Problem(
                "lines", f"must be at most racks·uplinks/directors={self.racks * self.uplinks // self.directors}, the"
                f" links to a director, not {self.lines}",
            )
        yield from _host_link_problems(self.host_links, "racks", self.racks)


class TierConfig(Section):
    """A tier: units linked with each other; a unit is all routers of the tiers below (in tier 0 a router)."""

    shape: Literal["all_to_all", "ring", "mesh", "torus"]
    """How units are linked."""
    sizes: Annotated[tuple[Annotated[int, Field(ge=1, le=4096)], ...], Field(min_length=1, max_length=6)]
    """Units along each dimension; one number for `all_to_all` and `ring`."""
    through: Literal["first", "each"] = "each"
    """Which routers of a unit have the links of this tier: its first one, or each one that has links of the tier
    below, to the router of the same place in the other unit."""
    gbps: Annotated[float, Field(gt=0, le=1e6)] | None = None
    """Rate of a link (default: `timing.link_gbps`)."""
    latency_ns: Annotated[float, Field(ge=0, le=1e9)] | None = None
    """Latency of a link (default: `timing.cable_ns`)."""

    @property
    def units(self) -> int:
        """Number of units."""
        return math.prod(self.sizes)

    @property
    def links(self) -> int:
        """Most links of a unit."""
        if self.shape == "all_to_all":
            return self.units - 1
        return sum(min(size - 1, 2) for size in self.sizes)

    def problems(self) -> Iterator[Problem]:
        """Check that shapes of one dimension have one size."""
        if self.shape in ("all_to_all", "ring") and len(self.sizes) > 1:
            yield Problem("sizes", f"must be one number for shape={self.shape}, not {len(self.sizes)}")


class TiersConfig(Section):
    """Tiers, one around the other, each with its shape, rate and latency: ExaNeSt's hybrid network."""

    kind: Literal["tiers"]
    """Tiers around each other."""
    tiers: Annotated[tuple[TierConfig, ...], Field(min_length=1, max_length=8)]
    """From the innermost one outwards."""
    hosts_per_router: Annotated[int, Field(ge=1, le=256)] = 1
    """Hosts at every router."""

    @property
    def routers(self) -> int:
        """Number of routers."""
        return math.prod(tier.units for tier in self.tiers)

    @property
    def most_ports(self) -> int:
        """Ports of the first router, which has links of every tier."""
        return self.hosts_per_router + sum(tier.links for tier in self.tiers)


class RandomRegularConfig(Section):
    """Random regular graph: every router has the same number of links, all such graphs are about equally likely."""

    kind: Literal["random_regular"]
    """Connected random regular graph."""
    routers: Annotated[int, Field(ge=2)]
    """Number of routers."""
    degree: Annotated[int, Field(ge=1, le=4096)]
    """Links of every router."""
    hosts_per_router: Annotated[int, Field(ge=1, le=256)] = 1
    """Hosts at every router."""
    seed: Annotated[int, Field(ge=0, le=MOST_SEED)] = 1
    """Of the graph; the seed of the runs is another one."""

    def problems(self) -> Iterator[Problem]:
        """Check that such a graph exists."""
        if self.degree >= self.routers:
            yield Problem("degree", f"must be less than routers={self.routers}, not {self.degree}")
        elif self.routers * self.degree % 2:
            yield Problem("degree", f"must be even for an odd number of routers={self.routers}, not {self.degree}")
        elif self.degree == 1 and self.routers > 2:
            yield Problem("degree", f"must be at least 2 for a connected graph of routers={self.routers}, not 1")


class LayoutRandomConfig(Section):
    """Layout-conscious random graph: random regular on a square floor plan, with links of limited length."""

    kind: Literal["layout_random"]
    """Connected random regular graph on an n × n floor plan without links longer than `length`."""
    n: Annotated[int, Field(ge=2, le=1024)]
    """Routers along each side; router i stands at (i mod n, i div n)."""
    degree: Annotated[int, Field(ge=2, le=256)]
    """Links of every router."""
    length: Annotated[int, Field(ge=1)]
    """Greatest Manhattan length of a link."""
    hosts_per_router: Annotated[int, Field(ge=1, le=256)] = 1
    """Hosts at every router."""
    seed: Annotated[int, Field(ge=0, le=MOST_SEED)] = 1
    """Of the graph; the seed of the runs is another one."""

    def problems(self) -> Iterator[Problem]:
        """Check what a corner of the floor plan can reach, and that the number of link ends is even."""
        side = range(self.n)
        near = sum(1 for x in side for y in side[: max(self.length - x + 1, 0)]) - 1
        if self.degree > near:
            yield Problem(
                "degree",
                f"must be at most {near}, the routers within length={self.length} of a corner, not {self.degree}",
            )
        elif self.n * self.degree % 2:
            yield Problem("degree", f"must be even for an odd n={self.n}, not {self.degree}")


class EdgeListConfig(Section):
    """Any connected graph from a file, routed by tables."""

    kind: Literal["edge_list"]
    """Any connected graph."""
    file: ConfigPath
    """The graph; relative to this configuration file."""
    format: Literal["edges", "anynet", "graphml", "node_link"] | None = None
    """`edges`: two router numbers (or two places x,y) a line, as in Graph Golf; `anynet`: BookSim 2; `graphml`;
    `node_link`: JSON of networkx. By default what the file's suffix says: .anynet, .graphml, .json, else `edges`."""
    hosts_per_router: Annotated[int, Field(ge=1, le=256)] | None = None
    """Hosts at every router, 1 unless given; not for a file that says where its hosts are."""


TopologyConfig = Annotated[
    MeshConfig
    | TorusConfig
    | FatTreeConfig
    | ButterflyConfig
    | DragonflyConfig
    | FullyConnectedConfig
    | HyperXConfig
    | SlimFlyConfig
    | PolarFlyConfig
    | DragonflyPlusConfig
    | CascadeConfig
    | ClosConfig
    | DirectorConfig
    | TiersConfig
    | RandomRegularConfig
    | LayoutRandomConfig
    | EdgeListConfig,
    Field(discriminator="kind"),
]

#: kinds whose switches find their way by tables: the whole address is the key
TABLE_KINDS = (
    "butterfly", "fully_connected", "hyperx", "slim_fly", "polarfly", "dragonfly_plus", "cascade", "clos", "director",
    "tiers", "random_regular", "layout_random", "edge_list",
)  # fmt: skip
