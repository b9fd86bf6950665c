"""Routing tables of a configuration: what is in them, what they cost, and the layers that go with them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config.tables import TablesConfig
from hopforge.model.errors import UserError
from hopforge.model.free_memory import refuse_beyond_memory
from hopforge.model.irregular.channels import (
    ChannelList,
    TableError,
    WorkingSwitches,
    channel_list,
    check_next_hops,
    hop_counts,
    whole_number,
)
from hopforge.model.irregular.files import read_layers, read_next_hops
from hopforge.model.irregular.k_shortest import k_shortest_next_hops
from hopforge.model.irregular.landmarks import LandmarkTables, fitting
from hopforge.model.irregular.lash import path_starts
from hopforge.model.irregular.layers import LayerError, Layers, assign_layers, check_layers, escape_layers, nue_layers
from hopforge.model.irregular.loren import FloorPlan, LorenTables, loren_next_hops, loren_tables
from hopforge.model.irregular.neighbours import distances, neighbours_of
from hopforge.model.irregular.nue import NueTables, nue_tables
from hopforge.model.irregular.path_layers import shared_layers
from hopforge.model.irregular.shortest import shortest_next_hops
from hopforge.model.irregular.up_down import root_node, up_down_next_hops
from hopforge.model.topology import Topology
from hopforge.model.topology.routing_table import refuse_one_way

__all__ = ["MAX_ROUTERS", "RoutingTables", "build_tables", "next_ports", "working_plan"]

#: routers whose paths are all followed, for which there are virtual layers
MAX_ROUTERS = 16384
#: bytes of a pair of routers while tables and layers are made, and of each path of it, hops aside
_PAIR_BYTES, _PATH_BYTES = 20, 20
#: bytes of a hop of a path, by method; of the others 2
_HOP_BYTES = {"hop_indexed": 26}


@dataclass(frozen=True)
class RoutingTables:
    """Tables of all switches, checked: every pair is delivered and no packets can wait for each other in a circle.

    Attributes
    ----------
    topology : Topology
        The network.
    neighbours : ndarray, int32[router, degree]
        As `neighbour_array` gives them.
    channels : ChannelList
        Its channels.
    next_hop, next_channel, hops : ndarray, int32[router, destination]
        Next router, next channel and path length of every pair.
    shortest : ndarray, uint8[router, destination]
        Distances.
    entries : ndarray, int64[router]
        Entries of each table.
    entry_bits : int
        Bits of an entry.
    layers : Layers
        Virtual layers.
    details : LorenTables or LandmarkTables, optional
        The entries, if the scheme has other ones than one per destination.
    others : tuple of RoutingTables
        ``scheme: k_shortest``: the tables of the paths 1, 2, … of every destination; these are those of path 0. The
        layers of all have the same `count`, and were checked together.
    """

    topology: Topology
    neighbours: NDArray[np.int32]
    channels: ChannelList
    next_hop: NDArray[np.int32]
    next_channel: NDArray[np.int32]
    hops: NDArray[np.int32]
    shortest: NDArray[np.uint8]
    entries: NDArray[np.int64]
    entry_bits: int
    layers: Layers
    details: LorenTables | LandmarkTables | None = None
    others: "tuple[RoutingTables, ...]" = ()

    @property
    def all_paths(self) -> "tuple[RoutingTables, ...]":
        """Tables of every path number, these first."""
        return (self, *self.others)

    @property
    def table_bits(self) -> int:
        """Bits of the largest table."""
        return int(self.entries.max()) * self.entry_bits

    @property
    def checked_words(self) -> str:
        """What was found out about the layers, for people."""
        layers = self.layers
        found = "no cycle" if layers.escape is None else "no cycle in layer 0, the escape"
        note = f"; {layers.note}" if layers.note else ""
        return f"{layers.count} ({layers.method}), checked: {found}{note}"


def next_ports(topology: Topology, channels: ChannelList, next_channel: NDArray[np.int32]) -> NDArray[np.int32]:
    """Output ports, int32[router, destination router]: of parallel links the lowest; -1 on the diagonal."""
    peers = topology.peer_router[channels.source] == channels.target[:, None]
    port = np.append(peers.argmax(axis=1), -1).astype(np.int32)
    return port[next_channel]


def _next_hops_of_file(
    path: Path, channels: ChannelList, working: WorkingSwitches | None
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Next hops and next channels of a user's table of the whole network; errors with key, file and line."""
    nodes = len(channels.first) - 1
    read = read_next_hops(path, nodes if working is None else working.routers)
    next_hop = read.next_hop
    if working is not None:
        named = next_hop[np.ix_(working.numbers, working.numbers)]
        next_hop = working.places()[named]
        lost = (named >= 0) & (next_hop < 0) & ~np.eye(nodes, dtype=bool)
        if lost.any():
            u, d = map(int, np.argwhere(lost)[0])
            router, destination = whole_number(u, working), whole_number(d, working)
            raise UserError(
                f"tables.file: {path}:{read.lines[router]}: the entry of router {router} for destination {destination} "
                f"names router {named[u, d]}, which has failed"
            )
    np.fill_diagonal(next_hop, -1)
    try:
        return next_hop, check_next_hops(next_hop, channels, working)
    except TableError as error:
        raise UserError(f"tables.file: {path}:{read.lines[error.router]}: {error}") from error


def _layers_of_file(
    path: Path, next_channel: NDArray[np.int32], channels: ChannelList, working: WorkingSwitches | None
) -> Layers:
    """Virtual layers of a user's file, checked; errors with key, file and line."""
    read = read_layers(path, path_starts(next_channel, channels), working)
    try:
        check_layers(read.layers, next_channel, channels, working)
    except LayerError as error:
        raise UserError(f"tables.layers_file: {path}:{read.lines[error.pair]}: {error}") from error
    return read.layers


def _layers(
    section: TablesConfig,
    next_channel: NDArray[np.int32],
    neighbours: NDArray[np.int32],
    channels: ChannelList,
    working: WorkingSwitches | None,
) -> Layers:
    if section.layers_file is not None:
        return _layers_of_file(section.layers_file, next_channel, channels, working)
    if section.layers == "escape":
        way_out = up_down_next_hops(neighbours, root_node(neighbours, section.root))
        return escape_layers(next_channel, check_next_hops(way_out, channels), channels)
    try:
        return assign_layers(section.layers, next_channel, neighbours, channels, working, section.max_layers)
    except LayerError as error:  # of `single`; what the other methods find has no cycle
        raise UserError(f"tables.layers: {section.layers}: {error}") from error


def _several(
    section: TablesConfig,
    topology: Topology,
    neighbours: NDArray[np.int32],
    near: NDArray[np.uint8],
    channels: ChannelList,
    step: Callable[[str], None],
    working: WorkingSwitches | None,
) -> RoutingTables:
    """Tables of ``scheme: k_shortest``, one for each path number."""
    next_hops = k_shortest_next_hops(neighbours, near, section.lids, section.slack)
    next_channels = [check_next_hops(next_hop, channels) for next_hop in next_hops]
    step("virtual layers")
    layers = shared_layers(section.layers, next_channels, channels, working)
    entries = np.full(topology.routers, section.lids * (topology.routers - 1), np.int64)
    number_bits = max(1, (topology.routers - 1).bit_length())
    found = [
        RoutingTables(
            topology, neighbours, channels, next_hop, next_channel, hop_counts(next_channel, channels), near, entries,
            number_bits, of_path,
        )
        for next_hop, next_channel, of_path in zip(next_hops, next_channels, layers, strict=True)
    ]  # fmt: skip
    return replace(found[0], others=tuple(found[1:]))


def working_plan(working: WorkingSwitches | None) -> FloorPlan | None:
    """Floor plan of a square network some switches of which have failed; None: the whole, or no square."""
    if working is None:
        return None
    side = round(working.routers**0.5)
    return FloorPlan(side, working.numbers) if side * side == working.routers else None


def build_tables(
    section: TablesConfig,
    topology: Topology,
    seed: int,
    step: Callable[[str], None] = lambda _: None,
    working: WorkingSwitches | None = None,
) -> RoutingTables:
    """Build tables and their layers, and check both.

    Parameters
    ----------
    section : TablesConfig
        What is wanted.
    topology : Topology
        The network.
    seed : int
        Of random ties and landmarks.
    step : callable, optional
        Called with the name of each step when it begins: distances, tables, virtual layers.
    working : WorkingSwitches, optional
        Which switches of a larger network the routers are: for files, floor plan and errors.

    Raises
    ------
    UserError
        A network too large or not connected, a table size that is too small, a broken file, too many layers.
    """
    _refuse_size(topology, section.lids if section.scheme == "k_shortest" else 1)
    step("distances")
    neighbours = neighbours_of(topology)
    near = distances(neighbours)
    if (near == 255).any():
        root, lost = map(int, np.argwhere(near == 255)[0])
        raise UserError(f"topology: the network is not connected: router {lost} cannot be reached from router {root}")
    step("tables")
    channels = channel_list(neighbours)
    if section.scheme == "k_shortest":
        return _several(section, topology, neighbours, near, channels, step, working)
    nue = nue_tables(near, channels, section.max_layers or 1) if section.scheme == "nue" else None
    details = _compact_tables(section, neighbours, seed, working)
    if section.file is not None:
        next_hop, next_channel = _next_hops_of_file(section.file, channels, working)
    else:
        next_hop = _next_hops(section, neighbours, seed, nue or details)
        next_channel = check_next_hops(next_hop, channels)
    hops = hop_counts(next_channel, channels)
    need = _HOP_BYTES.get(section.layers, 2) * int(hops.sum(dtype=np.int64))
    refuse_beyond_memory(need, f"the layers of the hops of all paths of the {topology.name}")
    step("virtual layers")
    if nue is None:
        layers = _layers(section, next_channel, neighbours, channels, working)
    else:
        layers = nue_layers(nue, next_channel, channels, working)
    return RoutingTables(
        topology, neighbours, channels, next_hop, next_channel, hops, near, *_cost(topology.routers, details), layers,
        details,
    )  # fmt: skip


def _refuse_size(topology: Topology, paths: int) -> None:
    refuse_one_way(topology)
    if topology.routers > MAX_ROUTERS:
        raise UserError(
            f"topology: at most {MAX_ROUTERS} routers can have routing tables, not {topology.routers}: every pair is "
            "followed (hopforge route with tables.scheme=loren goes further, without virtual layers)"
        )
    need = (_PAIR_BYTES + _PATH_BYTES * paths) * topology.routers**2
    refuse_beyond_memory(need, f"the routing tables of the {topology.name}")
    if topology.routers < 2:
        raise UserError("topology: at least 2 routers are needed for routing tables, not 1")


def _compact_tables(
    section: TablesConfig, neighbours: NDArray[np.int32], seed: int, working: WorkingSwitches | None
) -> LorenTables | LandmarkTables | None:
    """Tables with fewer entries than destinations; None: the scheme has one for each."""
    if section.scheme == "loren":
        return loren_tables(neighbours, section.t_max, working_plan(working))
    if section.scheme in ("cowen", "thorup_zwick"):
        return fitting(neighbours, section.scheme, section.t_max, _generator(seed))
    return None


def _next_hops(
    section: TablesConfig,
    neighbours: NDArray[np.int32],
    seed: int,
    made: NueTables | LorenTables | LandmarkTables | None,
) -> NDArray[np.int32]:
    """Next hops, int32[router, destination], of a scheme; `made`: what it has made them from."""
    if isinstance(made, LorenTables):
        return loren_next_hops(made)
    if made is not None:
        return made.next_hop
    if section.scheme == "up_down":
        return up_down_next_hops(neighbours, root_node(neighbours, section.root))
    return shortest_next_hops(neighbours, section.ties, _generator(seed))


def _generator(seed: int) -> np.random.Generator:
    return np.random.default_rng((seed, 4))


def _cost(routers: int, details: LorenTables | LandmarkTables | None) -> tuple[NDArray[np.int64], int]:
    """Entries of each table, int64[router], and bits of an entry."""
    number_bits = max(1, (routers - 1).bit_length())
    if isinstance(details, LorenTables):
        return details.entries.astype(np.int64), details.entry_bits()
    if details is not None:
        return details.entries, 2 * number_bits
    return np.full(routers, routers - 1, np.int64), number_bits  # one per destination is addressed by it
