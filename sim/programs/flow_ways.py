"""Which route each message of a program takes in the flow engine, and what a route is like for it."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config import Config
from hopforge.model.lookup.lid_routes import KnownRoutes
from hopforge.model.topology import Topology
from hopforge.sim.programs.cache_delays import CacheUse
from hopforge.sim.programs.flow_change import first_rates
from hopforge.sim.programs.flow_messages import private_routes, set_routes
from hopforge.sim.programs.flow_network import FlowNetwork, flow_network
from hopforge.sim.programs.flow_state import ROUTE
from hopforge.sim.traffic.host_pairs import HostPairs, host_pairs
from hopforge.sim.traffic.placed import PlacedProgram

__all__ = ["FlowWays", "buffer_bytes", "flow_ways"]


class FlowWays(NamedTuple):
    """The routes of a program.

    Attributes
    ----------
    pairs : HostPairs
        Between which hosts there is one; the number of a pair is that of its route.
    network : FlowNetwork
        All links, and those of the routes.
    routes : ndarray
        Records `ROUTE`.
    """

    pairs: HostPairs
    network: FlowNetwork
    routes: NDArray[np.void]


def flow_ways(
    config: Config, topology: Topology, placed: PlacedProgram, use: CacheUse, known: KnownRoutes | None
) -> FlowWays:
    """Return the routes of the messages of a program.

    Parameters
    ----------
    config : Config
        Sections `app`, `timing`, `lookup` and `address` are used.
    topology : Topology
        The network.
    placed : PlacedProgram
        The program on its hosts.
    use : CacheUse
        What its lookups find.
    known : Routes, optional
        Those of the configuration, if they are known already.
    """
    pairs = host_pairs(placed, topology.hosts)
    network = flow_network(config, first_rates(config, topology), pairs.source, pairs.destination, use.miss, known)
    return FlowWays(pairs, network, _routes(config, network, pairs.source))


def buffer_bytes(config: Config) -> float:
    """Return the bytes that the buffer of an input port holds."""
    if config.app.buffer_bytes is not None:
        return config.app.buffer_bytes
    return config.router.buffer_flits * config.traffic.flit_bytes


def _routes(config: Config, network: FlowNetwork, host: NDArray[np.int64]) -> NDArray[np.void]:
    """Return records of the routes; `host`: where they begin."""
    app, latency, capacity = config.app, network.latency_s, network.capacity * config.app.bandwidth_factor
    routes = np.zeros(len(host), ROUTE)
    queued = app.injection == "queued"
    first, last = network.route_first[:-1] + queued, network.route_first[1:]
    inside = latency + (network.switches - 1) * buffer_bytes(config) / network.capacity.min()
    bound = np.full(len(host), np.inf)
    if app.tcp_window_bytes is not None and len(host):
        window = app.tcp_window_bytes / (2 * np.maximum(latency, 1e-300))
        bound = np.where(window < capacity.max(), window, np.inf)
    shares = np.where(latency > 0, latency, 1.0) if app.sharing == "latency" else np.ones(len(host))
    set_routes(
        routes, first, last, latency * app.latency_factor, 1 / shares, bound, inside, host, network.route_link, capacity
    )
    # a message that keeps its host is looked at when it leaves that
    if not queued:
        routes["private"] = private_routes(first, last, network.route_link, len(capacity))
    return routes
