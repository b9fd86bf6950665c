"""Bytes that the messages of a program bring to every link, on the routes of engine flow."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from hopforge.model.lookup.lid_routes import KnownRoutes
from hopforge.model.topology import Topology
from hopforge.model.topology.tiers import has_speeds
from hopforge.model.topology.tiers import link_gbps as own_gbps
from hopforge.sim.traffic.placed import PlacedProgram


@dataclass(frozen=True, eq=False)
class LinkBytes:
    """What the links carry.

    Attributes
    ----------
    table : DataFrame
        Of each directed link with traffic, the longest busy first: link (``host 3 to router 1``,
        ``router 1 to router 2`` with its port, …), between_routers, bytes, busy_share of the makespan.
    """

    table: pd.DataFrame

    def hottest(self) -> tuple[str, float] | None:
        """Return name and busy share of the busiest link between routers; None if none carries anything."""
        between = self.table[self.table["between_routers"]]
        return None if between.empty else (str(between["link"].iloc[0]), float(between["busy_share"].iloc[0]))

    def mean_share(self, links: int) -> float:
        """Return the mean busy share of all `links` between routers, those that carry nothing included."""
        between = self.table.loc[self.table["between_routers"], "busy_share"]
        return float(between.sum()) / links if links else 0.0

    def hottest_of_hosts(self) -> float:
        """Return the busy share of the busiest link to or from a host; 0 if none carries anything."""
        return float(self.table.loc[~self.table["between_routers"], "busy_share"].max()) if len(self.table) else 0.0


def link_bytes(
    topology: Topology, placed: PlacedProgram, routes: KnownRoutes, link_gbps: float, makespan_s: float
) -> LinkBytes:
    """Return what each link carries.

    Parameters
    ----------
    topology : Topology
        The network.
    placed : PlacedProgram
        Messages on hosts, of a machine with several links on those that they take.
    routes : KnownRoutes
        Their ways.
    link_gbps : float
        Rate of links that have none of their own (`topology.tiers`).
    makespan_s : float
        How long the program takes.
    """
    source, destination = (ends.astype(np.int64) for ends in (placed.source_host, placed.destination_host))
    remote = source != destination
    pairs, number = np.unique(source[remote] * topology.hosts + destination[remote], return_inverse=True)
    size = np.bincount(number, placed.program.size_bytes[remote].astype(np.float64), len(pairs))
    paths = routes.paths(pairs // topology.hosts, pairs % topology.hosts)
    out = np.zeros((topology.routers, topology.max_ports))
    np.add.at(out, (paths.router, paths.output), np.repeat(size, paths.lengths))
    of_hosts = np.bincount(pairs // topology.hosts, size, topology.hosts)
    rates = own_gbps(topology, link_gbps) if has_speeds(topology) else np.full(out.shape, link_gbps)
    names, between, carried, gbps = [], [], [], []
    for router, port in np.argwhere(out).tolist():
        host = int(topology.host_at[router, port])
        other = f"host {host}" if host >= 0 else f"router {topology.peer_router[router, port]}, port {port}"
        names.append(f"router {router} to {other}")
        between.append(host < 0)
        carried.append(out[router, port])
        gbps.append(link_gbps if host >= 0 else rates[router, port])
    for host in np.flatnonzero(of_hosts).tolist():
        names.append(f"host {host} to router {topology.host_router[host]}")
        between.append(False)
        carried.append(of_hosts[host])
        gbps.append(link_gbps)
    table = pd.DataFrame({"link": names, "between_routers": between, "bytes": np.array(carried).astype(np.int64)})
    seconds = table["bytes"] * 8e-9 / np.array(gbps)
    table["busy_share"] = seconds / makespan_s if makespan_s > 0 else 0.0
    order = np.argsort(-seconds.to_numpy(), kind="stable")
    table = table.iloc[order].reset_index(drop=True)
    return LinkBytes(table)


def link_rows(links: LinkBytes | None) -> list[tuple[str, str]]:
    """Say which links are the busiest: subject and words."""
    hottest = None if links is None else links.hottest()
    if links is None or hottest is None:
        return []
    name, share = hottest
    of_hosts = links.hottest_of_hosts()
    return [("busiest link", f"{name}: busy {share:.1%} of the makespan; of a host at most {of_hosts:.1%}")]
