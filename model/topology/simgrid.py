"""Networks as platform files of SimGrid (format 4.1)."""

from collections.abc import Iterator
from itertools import pairwise
from xml.sax.saxutils import quoteattr

import numpy as np

from hopforge.model.config import Config
from hopforge.model.flow.network import switch_ns
from hopforge.model.routes import Routes
from hopforge.model.topology.base import Topology, TopologyError

#: most hosts of a platform that lists the route of every pair
MAX_FULL_HOSTS = 1024


def simgrid_text(topology: Topology, config: Config, *, full: bool = False) -> str:
    """Return a platform of hosts h0, h1, …, routers r0, r1, … and a link for every channel, in one zone.

    A path through n routers takes n delays of a switch (``app.lookup``) and n + 1 times ``timing.cable_ns``: half of a
    switch belongs to each of its two links. Hosts have the speed ``app.host_gflops``, or 1 Gflop/s. Of parallel links
    only the first is written; a pair has one route.

    Parameters
    ----------
    topology : Topology
        The network.
    config : Config
        Sections `timing` and `app`; for the routes `address` and `lookup`.
    full : bool
        Routing ``Full``: the route of every pair of hosts, that of `hopforge hits` and `hopforge app`. Else routing
        ``Dijkstra``: one route per channel, and SimGrid finds the shortest paths.

    Raises
    ------
    TopologyError
        More than `MAX_FULL_HOSTS` hosts with `full`.
    """
    if full and topology.hosts > MAX_FULL_HOSTS:
        raise TopologyError(
            "--export", f"simgrid-full writes the routes of at most {MAX_FULL_HOSTS} hosts, not {topology.hosts}"
        )
    channels = list(_channels(topology))
    speed = 1.0 if config.app.host_gflops is None else config.app.host_gflops
    lines = ['<?xml version="1.0"?>', '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">']
    lines += [
        '<platform version="4.1">',
        f'<zone id={quoteattr(topology.name)} routing="{"Full" if full else "Dijkstra"}">',
    ]
    lines += [f'<host id="h{host}" speed="{speed:.12g}Gf"/>' for host in range(topology.hosts)]
    lines += [f'<router id="r{router}"/>' for router in range(topology.routers)]
    timing, delay = config.timing, switch_ns(config)
    rate = f"{timing.link_gbps:.12g}Gbps"
    for name, source, target in channels:
        share = 1.0 if source[0] == target[0] == "r" else 0.5
        latency = timing.cable_ns + share * delay
        lines.append(f'<link id="{name}" bandwidth="{rate}" latency="{latency:.12g}ns"/>')
    if full:
        lines += _full_routes(topology, config)
    else:
        lines += [_route(source, target, [name]) for name, source, target in channels]
    return "\n".join([*lines, "</zone>", "</platform>", ""])


def _channels(topology: Topology) -> Iterator[tuple[str, str, str]]:
    """Yield (name, source, target) of every channel, hosts' ones included, of parallel ones the first."""
    for host, router in enumerate(topology.host_router.tolist()):
        yield f"h{host}-r{router}", f"h{host}", f"r{router}"
        yield f"r{router}-h{host}", f"r{router}", f"h{host}"
    pairs = zip(
        *(array.tolist() for array in (topology.channels().src_router, topology.channels().dst_router)), strict=True
    )
    for a, b in dict.fromkeys(pairs):
        yield f"r{a}-r{b}", f"r{a}", f"r{b}"


def _full_routes(topology: Topology, config: Config) -> Iterator[str]:
    routes, everyone = Routes(topology, config.address, config.lookup.up_choice), np.arange(topology.hosts)
    for source in range(topology.hosts):
        paths = routes.paths(np.full(topology.hosts, source), everyone)
        stops = [f"r{router}" for router in paths.router.tolist()]
        for target in range(topology.hosts):
            if source != target:
                path = [f"h{source}", *stops[paths.first[target] : paths.first[target + 1]], f"h{target}"]
                yield _route(f"h{source}", f"h{target}", [f"{a}-{b}" for a, b in pairwise(path)])


def _route(source: str, target: str, links: list[str]) -> str:
    inside = "".join(f'<link_ctn id="{name}"/>' for name in links)
    return f'<route src="{source}" dst="{target}" symmetrical="NO">{inside}</route>'
