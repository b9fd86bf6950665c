"""Networks as platform files of SimGrid (format 4.1)."""

from collections.abc import Iterator
from typing import NamedTuple
from xml.sax.saxutils import quoteattr

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config import Config
from hopforge.model.irregular.table_routes import configured_routes
from hopforge.model.topology.base import Topology, TopologyError
from hopforge.model.topology.tiers import has_speeds, link_gbps, link_ns
from hopforge.sim.programs.flow_network import switch_ns

#: most hosts of a platform that lists the route of every pair
MAX_FULL_HOSTS = 1024


class _Channel(NamedTuple):
    """A channel between routers; `further`: not the first one between these two."""

    source: int
    port: int
    target: int
    further: bool

    @property
    def name(self) -> str:
        """As a link of the platform."""
        return f"r{self.source}.{self.port}-r{self.target}" if self.further else f"r{self.source}-r{self.target}"


def simgrid_text(
    topology: Topology, config: Config, *, full: bool = False, hosts: NDArray[np.integer] | None = None, cores: int = 1
) -> str:
    """Return a platform of hosts h0, h1, …, routers r0, r1, … and a link for every channel, in one zone.

    A path through n routers takes n delays of a switch (``app.lookup``) and n + 1 times ``timing.cable_ns``: half of a
    switch belongs to each of its two links. Hosts have the speed ``app.host_gflops``, or 1 Gflop/s.

    Parameters
    ----------
    topology : Topology
        The network.
    config : Config
        Sections `timing` and `app`; for the routes `address`, `lookup`, `routing` and `tables`.
    full : bool
        Routing ``Full``: the route of every pair of hosts, that of `hopforge hits` and `hopforge app`. Else routing
        ``Dijkstra``: one route per channel, of parallel ones the first, and SimGrid finds the shortest paths.
    hosts : ndarray, int[...], optional
        With `full`: routes between these hosts only (default: all).
    cores : int
        Cores of a host, each of that speed.

    Raises
    ------
    TopologyError
        Routes between more than `MAX_FULL_HOSTS` hosts with `full`.
    """
    chosen = np.arange(topology.hosts) if hosts is None else np.unique(hosts)
    if full and len(chosen) > MAX_FULL_HOSTS:
        raise TopologyError(
            "--export", f"simgrid-full writes the routes of at most {MAX_FULL_HOSTS} hosts, not {len(chosen)}"
        )
    channels = [channel for channel in _channels(topology) if full or not channel.further]
    speed = 1.0 if config.app.host_gflops is None else config.app.host_gflops
    more = f' core="{cores}"' if cores > 1 else ""
    lines = ['<?xml version="1.0"?>', '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">']
    lines += [
        '<platform version="4.1">',
        f'<zone id={quoteattr(topology.name)} routing="{"Full" if full else "Dijkstra"}">',
    ]
    lines += [f'<host id="h{host}" speed="{speed:.12g}Gf"{more}/>' for host in range(topology.hosts)]
    lines += [f'<router id="r{router}"/>' for router in range(topology.routers)]
    timing, delay = config.timing, switch_ns(config)
    rest = f'bandwidth="{timing.link_gbps:.12g}Gbps" latency="'
    outer, inner = (f'{rest}{timing.cable_ns + share * delay:.12g}ns"/>' for share in (0.5, 1.0))
    ends = [(f"h{host}", f"r{router}") for host, router in enumerate(topology.host_router.tolist())]
    ends = [way for a, b in ends for way in ((a, b), (b, a))]
    lines += [f'<link id="{a}-{b}" {outer}' for a, b in ends]
    if has_speeds(topology):
        gbps, cable = link_gbps(topology, timing.link_gbps), link_ns(topology, timing.cable_ns)
        for each in channels:
            at = each.source, each.port
            inner = f'bandwidth="{gbps[at]:.12g}Gbps" latency="{cable[at] + delay:.12g}ns"/>'
            lines.append(f'<link id="{each.name}" {inner}')
    else:
        lines += [f'<link id="{channel.name}" {inner}' for channel in channels]
    if full:
        lines += _full_routes(topology, config, chosen, channels)
    else:
        lines += [_route(a, b, [f"{a}-{b}"]) for a, b in ends]
        lines += [_route(f"r{channel.source}", f"r{channel.target}", [channel.name]) for channel in channels]
    return "\n".join([*lines, "</zone>", "</platform>", ""])


def _channels(topology: Topology) -> Iterator[_Channel]:
    channels = topology.channels()
    seen: set[tuple[int, int]] = set()
    parts = (channels.src_router, channels.src_port, channels.dst_router)
    for a, port, b in zip(*(part.tolist() for part in parts), strict=True):
        yield _Channel(a, port, b, (a, b) in seen)
        seen.add((a, b))


def _full_routes(
    topology: Topology, config: Config, hosts: NDArray[np.integer], channels: list[_Channel]
) -> Iterator[str]:
    routes = configured_routes(config, topology)
    leaving = {(channel.source, channel.port): channel.name for channel in channels}
    for source in hosts.tolist():
        paths = routes.paths(np.full(len(hosts), source), hosts)
        hops = list(zip(paths.router.tolist(), paths.output.tolist(), strict=True))
        for index, target in enumerate(hosts.tolist()):
            if source != target:
                path = hops[paths.first[index] : paths.first[index + 1]]
                inside = (leaving[hop] for hop in path[:-1])
                names = [f"h{source}-r{path[0][0]}", *inside, f"r{path[-1][0]}-h{target}"]
                yield _route(f"h{source}", f"h{target}", names)


def _route(source: str, target: str, links: list[str]) -> str:
    inside = "".join(f'<link_ctn id="{name}"/>' for name in links)
    return f'<route src="{source}" dst="{target}" symmetrical="NO">{inside}</route>'
