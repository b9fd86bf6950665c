"""Routing tables of a configuration: what is in them, what they cost, and the layers that go with them."""

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config.tables import TablesConfig
from hopforge.model.errors import UserError
from hopforge.model.irregular.channels import ChannelList, channel_list, check_next_hops, hop_counts
from hopforge.model.irregular.landmarks import LandmarkTables, fitting
from hopforge.model.irregular.layers import Layers, assign_layers
from hopforge.model.irregular.loren import LorenTables, loren_next_hops, loren_tables
from hopforge.model.irregular.neighbours import distances, neighbours_of
from hopforge.model.irregular.shortest import shortest_next_hops
from hopforge.model.topology import Topology

__all__ = ["MAX_ROUTERS", "RoutingTables", "build_tables", "read_next_hops"]

MAX_ROUTERS = 8192
"""Most routers for which every pair is computed (next hops alone take 4·routers² bytes)."""


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

    @property
    def table_bits(self) -> int:
        """Bits of the largest table."""
        return int(self.entries.max()) * self.entry_bits


def read_next_hops(path: Path, routers: int) -> NDArray[np.int32]:
    """Read a table of next hops: CSV, a line per router, a number per destination.

    Raises
    ------
    UserError
        With file and line.
    """
    rows: list[list[int]] = []
    try:
        with path.open(encoding="utf-8", newline="") as file:
            for number, row in enumerate(csv.reader(file), start=1):
                if not row:
                    continue
                try:
                    entries = [int(word) for word in row]
                except ValueError:
                    raise UserError(f"{path}:{number}: expected router numbers, not {','.join(row)[:60]!r}") from None
                if len(row) != routers:
                    raise UserError(f"{path}:{number}: must have {routers} numbers, not {len(row)}")
                for entry in entries:
                    if not -1 <= entry < routers:
                        raise UserError(f"{path}:{number}: must be router numbers from 0 to {routers - 1}, not {entry}")
                rows.append(entries)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise UserError(f"cannot read {path}: {reason}") from error
    if len(rows) != routers:
        raise UserError(f"{path}: must have {routers} lines, one per router, not {len(rows)}")
    return np.array(rows, np.int32)


def build_tables(section: TablesConfig, topology: Topology, seed: int) -> RoutingTables:
    """Build tables and their layers, and check both.

    Parameters
    ----------
    section : TablesConfig
        What is wanted.
    topology : Topology
        The network.
    seed : int
        Of random ties and landmarks.

    Raises
    ------
    UserError
        A network too large or not connected, a table size that is too small, a broken file, too many layers.
    """
    if topology.routers > MAX_ROUTERS:
        raise UserError(f"topology: at most {MAX_ROUTERS} routers can have routing tables, not {topology.routers}")
    if topology.routers < 2:
        raise UserError("topology: at least 2 routers are needed for routing tables, not 1")
    neighbours = neighbours_of(topology)
    near = distances(neighbours)
    if (near == 255).any():
        root, lost = map(int, np.argwhere(near == 255)[0])
        raise UserError(f"the network is not connected: router {lost} cannot be reached from router {root}")
    generator = np.random.default_rng((seed, 4))
    number_bits = max(1, (topology.routers - 1).bit_length())
    details: LorenTables | LandmarkTables | None = None
    entries = np.full(topology.routers, topology.routers - 1, np.int64)
    entry_bits = number_bits  # a table with one entry per destination is addressed by it
    if section.scheme == "loren":
        loren = loren_tables(neighbours, section.t_max)
        details, next_hop, entries = loren, loren_next_hops(loren), loren.entries.astype(np.int64)
        entry_bits = loren.entry_bits()
    elif section.scheme in ("cowen", "thorup_zwick"):
        landmark = fitting(neighbours, section.scheme, section.t_max, generator)
        details, next_hop, entries = landmark, landmark.next_hop, landmark.entries
        entry_bits = 2 * number_bits
    elif section.file is not None:
        next_hop = read_next_hops(section.file, topology.routers)
    else:
        next_hop = shortest_next_hops(neighbours, section.ties, generator)
    channels = channel_list(neighbours)
    try:
        next_channel = check_next_hops(next_hop, channels)
    except UserError as error:
        if section.file is None:
            raise
        raise UserError(f"{section.file}: {error}") from error
    return RoutingTables(
        topology,
        neighbours,
        channels,
        next_hop,
        next_channel,
        hop_counts(next_channel, channels),
        near,
        entries,
        entry_bits,
        assign_layers(section.layers, next_channel, neighbours, channels),
        details,
    )
