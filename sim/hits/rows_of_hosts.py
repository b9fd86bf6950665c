"""Which hosts the TCAM of a switch has a row for."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config import Config
from hopforge.model.irregular.switch_tables import switch_tables
from hopforge.model.irregular.table_routes import TableRoutes
from hopforge.model.lookup.key_ports import KeyPorts
from hopforge.model.lookup.node_reduction import NodeReduction
from hopforge.model.lookup.routes import Routes
from hopforge.model.lookup.tcam import NO_MATCH, Tcam, TcamRow, prefix_rows, route_rows, table_prefixes
from hopforge.model.topology import Topology
from hopforge.model.topology.parallel_links import links_of_a_pair, parallel_ports
from hopforge.sim.hits.replay_result import ReplayError

__all__ = ["matched_hosts"]


def matched_hosts(
    config: Config, topology: Topology, reduction: NodeReduction, routes: Routes, by_tables: TableRoutes | None
) -> NDArray[np.bool_] | None:
    """Whether the TCAM of a switch has a row for a host, bool[router, host]; None: all have all.

    Only a TCAM that is built into the switch has a limit: it takes the first rows of the switch's routes.
    """
    if config.lookup.tcam.kind not in {"flops", "sram"}:
        return None
    rows, width = config.lookup.tcam.rows, config.address.width_bits
    contents_of: Iterable[Sequence[TcamRow]]
    several = links_of_a_pair(topology) > 1
    if routes.reduction.mode == "arbitrary":
        several = parallel_ports(topology).some
    if several and config.routing.links == "hash":
        raise ReplayError(
            "routing.links: must be own_first or destination for a TCAM in the switch (lookup.tcam.kind: "
            f"{config.lookup.tcam.kind}), whose rows do not know the source, not hash"
        )
    if by_tables is not None:
        contents_of = (switch.rows for switch in switch_tables(by_tables.tables, width))
    elif several:
        contents_of = (_address_rows(routes, router, width) for router in range(topology.routers))
    else:
        ports = KeyPorts(reduction, topology)
        contents_of = (route_rows(ports, router, drop_unknown=False) for router in range(topology.routers))
    result = np.ones((topology.routers, topology.hosts), np.bool_)
    for router, contents in enumerate(contents_of):
        if len(contents) > rows:
            tcam = Tcam.of_rows(contents[:rows], width_bits=width)
            result[router] = tcam.lookup_many(topology.host_address) != NO_MATCH
    return None if result.all() else result


def _address_rows(routes: Routes, router: int, width: int) -> list[TcamRow]:
    """Rows of a switch with parallel links, which no row of a group of destinations tells apart."""
    topology = routes.topology
    ports = routes.output_ports(np.full(topology.hosts, router), np.arange(topology.hosts))
    outputs = dict(zip(topology.host_address.tolist(), ports.tolist(), strict=True))
    return prefix_rows(table_prefixes(outputs, width), width)
