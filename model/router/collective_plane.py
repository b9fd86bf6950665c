"""The collective plane of a configured network: units, links, hosts and the trees of its groups."""

from dataclasses import dataclass

from hopforge.model.config import Config
from hopforge.model.errors import UserError
from hopforge.model.router.collective_network import CollectiveNetwork
from hopforge.model.router.collective_params import PlaneParams
from hopforge.model.router.collective_trees import Tree, group_tree
from hopforge.model.router.configured import network_links
from hopforge.model.router.links import End, Link, topology_hosts
from hopforge.model.topology import Topology
from hopforge.model.topology.configured import configured_network
from hopforge.model.topology.failed import without_failed

__all__ = ["PlaneDesign", "configured_plane"]


@dataclass(frozen=True, kw_only=True)
class PlaneDesign:
    """A plane and its groups.

    Parameters
    ----------
    network : str
        One line for people.
    params : PlaneParams
        Of all units.
    ports : tuple of int
        Ports of each unit.
    links : tuple of Link
        Between units, with their latencies.
    hosts : tuple of End
        The port of each host.
    trees : tuple of Tree
        Of each group.

    Raises
    ------
    ValueError
        More trees than groups.
    """

    network: str
    params: PlaneParams
    ports: tuple[int, ...]
    links: tuple[Link, ...]
    hosts: tuple[End, ...]
    trees: tuple[Tree, ...]

    def __post_init__(self) -> None:
        if len(self.trees) > self.params.groups:
            raise ValueError(f"trees must be at most groups={self.params.groups}, not {len(self.trees)}")

    def golden(self, host_cycles: int = 1) -> CollectiveNetwork:
        """Return the golden model, with so long links to hosts; its trees are not written."""
        return CollectiveNetwork(self.params, self.ports, self.links, self.hosts, host_cycles)

    @property
    def writes(self) -> list[tuple[int, int, int, int]]:
        """What software writes before the groups can be used: unit, group, children, parent."""
        return [(w.router, g, w.children, w.parent) for g, tree in enumerate(self.trees) for w in tree.writes]


def configured_plane(config: Config) -> PlaneDesign:
    """Return the plane of a configuration, without what has failed.

    Raises
    ------
    UserError
        A network that cannot be built or falls apart, hosts or routers that do not exist, members that cannot be
        reached.
    """
    topology = without_failed(configured_network(config), config.failed)
    return PlaneDesign(
        network=topology.name, params=PlaneParams.from_config(config), ports=tuple(map(int, topology.ports)),
        links=network_links(config, topology), hosts=topology_hosts(topology), trees=_trees(config, topology),
    )  # fmt: skip


def _trees(config: Config, topology: Topology) -> tuple[Tree, ...]:
    trees = []
    for number, group in enumerate(config.collective_plane.groups):
        key = f"collective_plane.groups[{number}]"
        hosts = tuple(range(topology.hosts)) if group.hosts is None else tuple(sorted(group.hosts))
        for name, what, given, count in (
            ("hosts", "host", hosts[-1], topology.hosts), ("root", "router", group.root or 0, topology.routers),
        ):  # fmt: skip
            if given >= count:
                there = f"the {topology.name} has {what}s 0 to {count - 1}"
                raise UserError(f"{key}.{name}: {what} {given} does not exist; {there}")
        trees.append(group_tree(topology, hosts, group.root, key=key))
    return tuple(trees)
