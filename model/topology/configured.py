"""The network of routers that a configuration describes, with its aggregated links."""

from hopforge.model.config import Config
from hopforge.model.topology import Topology, TopologyError, build
from hopforge.model.topology.aggregation import aggregate
from hopforge.model.topology.limits import MAX_PORTS


def configured_network(config: Config) -> Topology:
    """Build section `topology`."""
    return build(config.topology, config.address)


def network_topology(config: Config) -> Topology:
    """Build section `topology`; with lookup engines every link between routers is ``lookup.lag.members`` links.

    Raises
    ------
    TopologyError
        A network that cannot be built, or whose routers then have too many ports.
    """
    topology = build(config.topology, config.address)
    if config.router.route_computation == "table" or (members := config.lookup.lag.members) == 1:
        return topology
    found = aggregate(topology, members)
    if found.max_ports > MAX_PORTS:
        raise TopologyError(
            "lookup.lag.members",
            f"{members} links in a group give routers of the {topology.name} {found.max_ports} ports, more than "
            f"{MAX_PORTS}",
        )
    return found
