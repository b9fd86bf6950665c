"""Ways of packets through a network under its configuration, and cache keys where it is routed by tables."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config import Config
from hopforge.model.errors import UserError
from hopforge.model.irregular.failure import linked_tables
from hopforge.model.irregular.landmarks import LandmarkTables
from hopforge.model.irregular.loren import LorenTables, loren_chosen
from hopforge.model.irregular.tables import RoutingTables, next_ports
from hopforge.model.lookup.lid_routes import KnownRoutes, LidRoutes
from hopforge.model.lookup.routes import Routes
from hopforge.model.lookup.spread_routes import SpreadRoutes
from hopforge.model.topology import Topology
from hopforge.model.topology.spread import refuse_spread

__all__ = [
    "TableRoutes", "chosen_entries", "configured_routes", "known_routes", "spread_routes", "table_routes",
]  # fmt: skip


class TableRoutes(NamedTuple):
    """What tables say about packets.

    Attributes
    ----------
    tables : RoutingTables
        Checked tables.
    port : ndarray, int32[router, destination router]
        Output port; -1 on the diagonal.
    asked : ndarray, int64[router, destination router], optional
        Address that caches are asked with in place of the destination's, in switches that are not the destination's;
        None: the destination's own.
    """

    tables: RoutingTables
    port: NDArray[np.int32]
    asked: NDArray[np.int64] | None

    def addresses(self, routers: NDArray[np.int32], hosts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the addresses with which packets for `hosts` ask the caches of `routers`."""
        topology = self.tables.topology
        own = topology.host_address[hosts]
        if self.asked is None:
            return own
        there = topology.host_router[hosts]
        return np.asarray(np.where(there == routers, own, self.asked[routers, there]))


def chosen_entries(tables: RoutingTables) -> NDArray[np.int32]:
    """Destination of the entry that a packet takes, int32[router, destination]; -1 on the diagonal.

    With landmarks: the destination if it is in the table, else its landmark; a landmark reads the next hop in the
    header, so that there the destination counts.
    """
    details, nodes = tables.details, len(tables.next_hop)
    everyone = np.arange(nodes, dtype=np.int32)
    if isinstance(details, LorenTables):
        return loren_chosen(details)
    chosen = np.broadcast_to(everyone, (nodes, nodes)).copy()
    if isinstance(details, LandmarkTables):
        landmark = np.broadcast_to(details.landmark_of[None, :], (nodes, nodes))
        chosen = np.where(details.known | (landmark == everyone[:, None]), chosen, landmark)
    np.fill_diagonal(chosen, -1)
    return chosen.astype(np.int32)


def table_routes(config: Config, topology: Topology) -> TableRoutes:
    """Tables of a configuration with ``routing.algorithm: tables``; switches without links have failed.

    Raises
    ------
    UserError
        As `build_tables`; a switch without hosts, whose number no address stands for.
    """
    tables = linked_tables(config.tables, topology, config.seed)
    port = next_ports(topology, tables.channels, tables.next_channel)
    if config.tables.cache_key == "destination":
        return TableRoutes(tables, port, None)
    first = np.full(topology.routers, -1, np.int64)
    first[topology.host_router[::-1]] = topology.host_address[::-1]
    if (first < 0).any():
        raise UserError(f"tables.cache_key: entry needs a host at every router; router {int(first.argmin())} has none")
    return TableRoutes(tables, port, first[chosen_entries(tables)])


def configured_routes(config: Config, topology: Topology) -> KnownRoutes:
    """Return the routes of programs: `known_routes`, or with ``routing.spread: flow`` one for each pair of hosts.

    Raises
    ------
    UserError
        As `known_routes`, but for ``routing.spread: flow``.
    """
    return spread_routes(config, topology) if config.routing.spread == "flow" else known_routes(config, topology)


def spread_routes(config: Config, topology: Topology) -> SpreadRoutes | LidRoutes:
    """Return the routes of ``routing.spread``: a hash among all shortest ways, or several tables.

    Raises
    ------
    UserError
        Tables that are wrong, too large a network, or an algorithm whose ways queues choose.
    """
    if config.routing.algorithm == "tables":
        tables = linked_tables(config.tables, topology, config.seed)
        ports = [next_ports(topology, one.channels, one.next_channel) for one in tables.all_paths]
        return LidRoutes(topology, [
            Routes(topology, config.address, config.lookup.up_choice, port, config.routing.links) for port in ports
        ])  # fmt: skip
    if config.routing.algorithm != "minimal":
        refuse_spread(config.routing.spread, f"ways of routing.algorithm {config.routing.algorithm} that are known")
    return SpreadRoutes(topology)


def known_routes(config: Config, topology: Topology) -> Routes:
    """Return the routes of `hopforge hits`: those of `tables` (``routing.algorithm: tables``) or the network's own.

    Raises
    ------
    UserError
        As `table_routes`; a graph too large for a shortest-path table; ``links: adaptive``, any ``spread``.
    """
    refuse_spread(config.routing.spread, "routes that are known beforehand")
    table = table_routes(config, topology).port if config.routing.algorithm == "tables" else None
    return Routes(topology, config.address, config.lookup.up_choice, table, config.routing.links)
