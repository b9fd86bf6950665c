"""A network as the flow engine sees it: links with a bandwidth, routes with a latency."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config import Config
from hopforge.model.irregular.table_routes import configured_routes
from hopforge.model.kernel.compile import kernel
from hopforge.model.lookup.lid_routes import KnownRoutes
from hopforge.model.topology import Topology
from hopforge.model.topology.tiers import has_speeds, link_gbps, link_ns


@dataclass(frozen=True, eq=False)
class FlowNetwork:
    """Links and the routes between some pairs of hosts.

    Links are numbered: from host h to its router h, from the router to the host hosts + h, then the channels between
    routers in the order of `Topology.channels`.

    Attributes
    ----------
    capacity : ndarray, float64[link]
        Bytes per second.
    route_first : ndarray, int64[route + 1]
        Where the links of a route start.
    route_link : ndarray, int32[...]
        Its links in order.
    latency_s : ndarray, float64[route]
        Of all its cables and switches.
    switches : ndarray, int64[route]
        How many it goes through.
    """

    capacity: NDArray[np.float64]
    route_first: NDArray[np.int64]
    route_link: NDArray[np.int32]
    latency_s: NDArray[np.float64]
    switches: NDArray[np.int64]


def switch_ns(config: Config) -> float:
    """Return the delay of a switch under ``app.lookup``: hit, miss or a conventional switch (section `timing`).

    With ``cache`` the delay of a hit: misses come on top of it.
    """
    timing = config.timing
    return {
        "hit": timing.switch_base_ns,
        "cache": timing.switch_base_ns,
        "miss": timing.switch_base_ns + timing.miss_penalty_ns,
        "conventional": timing.conventional_switch_ns,
    }[config.app.lookup]


@kernel
def _fill_links(first, router, output, number, ports, hosts, destination, link):  # type: ignore[no-untyped-def]
    """Write the links of routes but their first ones; `number`: of the channel at each port of each router."""
    for route in range(len(first) - 1):
        at = first[route] + route + 1  # behind the link of the host
        for hop in range(first[route], first[route + 1] - 1):
            link[at] = 2 * hosts + number[router[hop] * ports + output[hop]]
            at += 1
        link[at] = hosts + destination[route]


def flow_network(
    config: Config,
    topology: Topology,
    sources: NDArray[np.integer],
    destinations: NDArray[np.integer],
    miss: NDArray[np.float64],
    routes: KnownRoutes | None = None,
) -> FlowNetwork:
    """Return all links, and the routes of `hopforge hits` (section `lookup`) between the given pairs of hosts.

    A route through n routers takes n switch delays and n + 1 cables. With ``app.lookup: cache`` each of its input ports
    adds the penalty of a miss times `miss`, float64[router, port]. `routes`: those of the configuration, if they are
    known already.
    """
    paths = (routes or configured_routes(config, topology)).paths(sources, destinations)
    channels = topology.channels()
    hosts, ports = topology.hosts, topology.max_ports
    number = np.full(topology.routers * ports, -1, np.int64)
    number[channels.src_router.astype(np.int64) * ports + channels.src_port] = np.arange(len(channels.src_router))
    lengths = paths.lengths
    first = np.concatenate([[0], np.cumsum(lengths + 1)]).astype(np.int64)
    link = np.empty(int(first[-1]), np.int32)
    _fill_links(paths.first, paths.router, paths.output, number, ports, hosts, np.asarray(destinations), link)
    link[first[:-1]] = sources
    cable = config.timing.cable_ns
    delay = lengths * switch_ns(config) + (lengths + 1) * cable
    if has_speeds(topology):
        last = np.zeros(len(paths.router), np.bool_)
        last[paths.first[1:] - 1] = True  # leaves to the host
        more = np.where(last, 0.0, link_ns(topology, cable)[paths.router, paths.output] - cable)
        delay = delay + np.diff(np.concatenate([[0.0], np.cumsum(more)])[paths.first])
    if config.app.lookup == "cache":
        share = np.concatenate([[0.0], np.cumsum(miss[paths.router, paths.port])])
        delay = delay + config.timing.miss_penalty_ns * np.diff(share[paths.first])
    return FlowNetwork(
        capacity=link_capacity(config, topology),
        route_first=first,
        route_link=link,
        latency_s=delay * 1e-9,
        switches=lengths,
    )


def link_capacity(config: Config, topology: Topology) -> NDArray[np.float64]:
    """Return the bytes per second of all links, float64[link], in the order of `FlowNetwork`."""
    channels, hosts = topology.channels(), topology.hosts
    capacity = np.full(2 * hosts + len(channels.src_router), config.timing.link_gbps * 1e9 / 8)
    if has_speeds(topology):
        gbps = link_gbps(topology, config.timing.link_gbps)
        capacity[2 * hosts :] = gbps[channels.src_router, channels.src_port] * 1e9 / 8
    return capacity
