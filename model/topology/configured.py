"""The network of routers that a configuration describes, with its aggregated links."""

import numpy as np
from numpy.typing import NDArray

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


def lid_addresses(config: Config, topology: Topology) -> NDArray[np.int64]:
    """Return the addresses of all hosts, int64[host · lids + path]: address of the host · lids + path.

    Raises
    ------
    TopologyError
        Addresses that do not fit (docs/definitions/several-paths.md).
    """
    lids = config.lids
    bits = int(topology.host_address.max()).bit_length() + lids.bit_length() - 1
    if lids > 1 and bits > config.address.width_bits:
        raise TopologyError(
            "address.width_bits",
            f"must be at least {bits} for {lids} LIDs for each host, not {config.address.width_bits}",
        )
    return (topology.host_address[:, None] * lids + np.arange(lids)).reshape(-1)
