"""The network of routers that a configuration describes, with its aggregated links."""

from hopforge.model.config import Config
from hopforge.model.network.build import MAX_PORTS
from hopforge.model.node_reduction import NodeReduction
from hopforge.model.routing.aggregation import aggregated_plan
from hopforge.model.routing.plan import RoutingPlan
from hopforge.model.topology import Topology, TopologyError, build
from hopforge.model.topology.aggregation import aggregate


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


def routing_network(topology: Topology) -> Topology:
    """Return the network that a routing algorithm sees: one link in place of a group."""
    return topology if topology.aggregation is None else topology.aggregation.logical


def over_members(config: Config, topology: Topology, plan: RoutingPlan) -> RoutingPlan:
    """Return the routing of a network from that of `routing_network`, with the members that `lookup.lag` says."""
    if topology.aggregation is None:
        return plan
    reduction = NodeReduction.from_config(config, topology)
    return aggregated_plan(plan, topology, reduction.member_array(topology.host_address))
