"""What routing tables tell the viewer of a network: paths over each link, entries, and the way of every pair."""

import re

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hopforge.model.config import Config
from hopforge.model.errors import UserError
from hopforge.model.irregular.files import read_next_hops
from hopforge.model.topology import Topology
from hopforge.model.topology.failed import failed_ports
from hopforge.sim.pages.find import ResultSet
from hopforge.sim.pages.network_result import table_columns

__all__ = ["MOST_WAY_BYTES", "busy_links", "link_paths", "next_channels", "way_bytes"]

MOST_WAY_BYTES = 12 << 20
"""Bytes of the ways of pairs that a page holds."""

_NEXT_HOPS = re.compile(r"next_hops(?:_(\d+))?\.csv")
_BETWEEN = r"router (\d+) to router \d+, port (\d+)"


def link_paths(result: ResultSet, config: Config, topology: Topology) -> NDArray[np.float64] | None:
    """Return the paths on each channel in the order of `Topology.channels`; None without that table.

    Of parallel links the tables use the lowest port that works; nan: a link that has failed.

    Raises
    ------
    UserError
        A path between routers without a link that works.
    """
    table = table_columns(result, "channels", ("router", "to_router", "paths"))
    if table is None:
        return None
    found, (source, target) = _lowest(config, topology)
    number = {pair: channel for channel, pair in zip(found.tolist(), zip(source, target, strict=True), strict=True)}
    paths = np.zeros(len(topology.channels().src_router))
    paths[_down(config, topology)] = np.nan
    for router, peer, count in table[["router", "to_router", "paths"]].to_numpy(np.float64).tolist():
        if (router, peer) not in number:
            file = f"{result.folder}/{result.files.get('channels', 'channels')}"
            raise UserError(f"{file}: the {topology.name} has no link from router {router:g} to router {peer:g}")
        paths[number[router, peer]] = count
    return paths


def busy_links(result: ResultSet, topology: Topology) -> NDArray[np.float64] | None:
    """Return the busy share in % of each channel, from the links that a program used; None without that table.

    Raises
    ------
    UserError
        The table names other links than those of the network.
    """
    table = table_columns(result, "links", ("busy_share",))
    if table is None or "link" not in table:
        return None
    ends = topology.channels()
    known = {place: k for k, place in enumerate(zip(ends.src_router.tolist(), ends.src_port.tolist(), strict=True))}
    share = np.zeros(len(known))
    named = table["link"].astype(str).str.extract(_BETWEEN).dropna()
    for row, *place in named.itertuples():
        router, port = map(int, place)  # of any length
        if (router, port) not in known:
            file = f"{result.folder}/{result.files.get('links', 'links')}"
            raise UserError(f"{file}: the {topology.name} has no link at port {port} of router {router}")
        share[known[router, port]] = 100 * table.loc[row, "busy_share"]
    return share


def next_channels(result: ResultSet, config: Config, topology: Topology, notes: list[str]) -> list[NDArray[np.int32]]:
    """Return which channel of its router each destination leaves by, of every path number: int32[router, destination].

    Counted from the router's first channel in the order of `Topology.channels`; −1: none. Empty without such tables,
    and, with a note, where they are too large.

    Raises
    ------
    UserError
        A file that is damaged, or of another network.
    """
    names = sorted((int(named[1] or 0), name) for name in result.headless if (named := _NEXT_HOPS.fullmatch(name)))
    if not names:
        return []
    ends, routers = topology.channels(), topology.routers
    first = np.searchsorted(ends.src_router, np.arange(routers))
    width = way_bytes(topology)
    if width * routers * routers * len(names) > MOST_WAY_BYTES:
        notes.append("Ways of pairs are left out: there are too many.")
        return []
    channel, (source, target) = _lowest(config, topology)
    leads = np.full((routers, routers + 1), -1, np.int32)
    leads[source, target] = channel - first[source]
    found = []
    for _, name in names:
        path = result.headless[name]
        hops = read_next_hops(path, routers, "ways of pairs").next_hop
        rank = leads[np.arange(routers)[:, None], hops]  # −1 is the last column: no way
        wrong = np.argwhere((hops >= 0) & (rank < 0))
        if len(wrong):
            router, destination = wrong[0].tolist()
            raise UserError(
                f"ways of pairs: {path}: the {topology.name} has no link from router {router} to router "
                f"{hops[router, destination]}"
            )
        found.append(rank)
    return found


def way_bytes(topology: Topology) -> int:
    """Return how many bytes the number of a router's channel takes, with one number to spare."""
    return 1 if topology.max_ports < 255 else 2


def _down(config: Config, topology: Topology) -> NDArray[np.bool_]:
    ends = topology.channels()
    return np.asarray(failed_ports(topology, config.failed)[ends.src_router, ends.src_port])


def _lowest(
    config: Config, topology: Topology
) -> tuple[NDArray[np.int64], tuple[NDArray[np.int32], NDArray[np.int32]]]:
    """Return the channel of the lowest port between each two routers, of those that work, and its ends."""
    ends = topology.channels()
    works = np.flatnonzero(~_down(config, topology))
    table = pd.DataFrame({"channel": works, "source": ends.src_router[works], "target": ends.dst_router[works]})
    table = table.drop_duplicates(["source", "target"])
    return table["channel"].to_numpy(), (table["source"].to_numpy(), table["target"].to_numpy())
