"""The network of routers that a configuration describes, with its aggregated links."""

from hopforge.model.config import Config
from hopforge.model.topology import Topology, TopologyError, build
from hopforge.model.topology.aggregation import aggregate
from hopforge.model.topology.limits import MAX_PORTS


def network_topology(config: Config) -> Topology:
    """Build section `topology`; with lookup engines every link between routers is ``lookup.lag.members`` links.

    Raises
    ------
    TopologyError
        A network that cannot be built, or whose routers then have too many ports.
    """
    topology = build(config.topology, config.address)
    members = config.lookup.lag.members
    if members == 1 or config.router.route_computation == "table":
        return topology
    found = aggregate(topology, members)
    if found.max_ports > MAX_PORTS:
        raise TopologyError(
            "lookup.lag.members",
            f"{members} links in a group give routers of the {topology.name} {found.max_ports} ports, more than "
            f"{MAX_PORTS}",
        )
    return found
