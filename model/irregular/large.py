"""LOREN on networks too large for tables of all pairs: least tables, and delivery and path lengths of sampled pairs."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numba import njit
from numpy.typing import NDArray

from hopforge.model import kernel_cache
from hopforge.model.config import Config
from hopforge.model.errors import UserError
from hopforge.model.irregular import loren
from hopforge.model.irregular.loren import LorenTables, loren_entry, loren_tables
from hopforge.model.irregular.neighbours import neighbours_of
from hopforge.model.results import run_metadata, staged, write_metadata, write_tables
from hopforge.model.topology import Topology

__all__ = ["SampledTables", "large_rows", "sample_loren", "write_large"]

DESTINATIONS, SOURCES = 64, 256
"""Pairs that are followed: to each of so many destinations from so many sources."""


@dataclass(frozen=True, eq=False)
class SampledTables:
    """LOREN's tables of a large network.

    Attributes
    ----------
    topology : Topology
        The network.
    tables : LorenTables
        All entries.
    pairs : DataFrame
        Columns source, destination, hops, shortest: sampled pairs, all delivered.
    """

    topology: Topology
    tables: LorenTables
    pairs: pd.DataFrame


@njit(cache=True)  # type: ignore[misc]
def _hops_from(neighbours, root, distance, queue):  # type: ignore[no-untyped-def]
    distance[:] = -1
    distance[root], queue[0] = 0, root
    head, tail = 0, 1
    while head < tail:
        u = queue[head]
        head += 1
        for k in range(neighbours.shape[1]):
            w = neighbours[u, k]
            if w >= 0 and distance[w] < 0:
                distance[w] = distance[u] + 1
                queue[tail] = w
                tail += 1


@njit(cache=True)  # type: ignore[misc]
def _follow(side, place, destination, successor, entries, sources, target, hops):  # type: ignore[no-untyped-def]
    """Count the hops from every source to `target`; returns a source whose packet does not arrive, or -1."""
    for index in range(len(sources)):
        u, count = sources[index], 0
        while u != target:
            if count == len(entries):
                return sources[index]
            u = successor[u, loren_entry(side, place, destination, entries, u, target)]
            count += 1
        hops[index] = count
    return -1


def sample_loren(
    config: Config, topology: Topology, progress: Callable[[int, int], None] = lambda done, total: None
) -> SampledTables:
    """Build LOREN's tables and follow sampled pairs.

    Parameters
    ----------
    config : Config
        Sections `tables` and `seed` are used.
    topology : Topology
        The network.
    progress : callable, optional
        Called with (destinations done, destinations in all).

    Raises
    ------
    UserError
        As `loren_tables`; a pair that is not delivered.
    """
    neighbours = neighbours_of(topology)
    tables = loren_tables(neighbours, config.tables.t_max)
    generator = np.random.default_rng((config.seed, 6))
    nodes = topology.routers
    distance, queue = np.empty(nodes, np.int32), np.empty(nodes, np.int32)
    frames = []
    for number, target in enumerate(generator.choice(nodes, min(DESTINATIONS, nodes), replace=False).tolist()):
        progress(number, DESTINATIONS)
        sources = generator.choice(nodes, min(SOURCES, nodes), replace=False)
        sources = sources[sources != target]
        hops = np.empty(len(sources), np.int64)
        lost = int(_follow(*tables.plan, tables.destination, tables.successor, tables.entries, sources, target, hops))
        if lost >= 0:
            raise UserError(f"from router {lost} to router {target} packets go in a circle")
        _hops_from(neighbours, target, distance, queue)
        shortest: NDArray[np.int32] = distance[sources]
        frames.append(pd.DataFrame({"source": sources, "destination": target, "hops": hops, "shortest": shortest}))
    progress(DESTINATIONS, DESTINATIONS)
    return SampledTables(topology, tables, pd.concat(frames, ignore_index=True))


def large_rows(found: SampledTables) -> list[tuple[str, str]]:
    """Subject and words for the terminal."""
    tables, pairs = found.tables, found.pairs
    hops, near = pairs["hops"], pairs["shortest"]
    stretch = hops / near
    whole = (len(tables.entries) - 1) * (tables.entry_bits() // 2)
    return [
        ("network", found.topology.name),
        ("entries", f"{tables.entries.max()} at most, {tables.entries.mean():.1f} on average"),
        (
            "bits",
            f"{tables.entry_bits()} an entry, {int(tables.entries.max()) * tables.entry_bits():,} the largest table; "
            f"with an entry per destination {whole:,}",
        ),
        ("delivery", f"{len(pairs):,} sampled pairs followed, all delivered"),
        ("path length", f"{hops.mean():.4g} hops on average, {hops.max()} at most, of these pairs"),
        ("shortest paths", f"{near.mean():.4g} hops on average, {near.max()} at most, of these pairs"),
        ("stretch", f"{stretch.mean():.4g} on average, {stretch.max():.4g} at most, of these pairs"),
        ("virtual layers", "not assigned: too many pairs to check them"),
    ]


def write_large(config: Config, found: SampledTables, folder: Path) -> None:
    """Write figures, sampled pairs and all entries (Parquet), and metadata; all or nothing."""
    tables = found.tables
    router, place = np.nonzero(tables.destination >= 0)
    entries = pd.DataFrame(
        {
            "router": router.astype(np.int32),
            "destination": tables.destination[router, place],
            "next_router": tables.successor[router, place],
            "hops": tables.hops[router, place],
        }
    )
    with staged(folder) as scratch:
        summary = pd.DataFrame(large_rows(found), columns=["subject", "value"])
        write_tables(scratch, {"summary": summary, "pairs": found.pairs})
        entries.to_parquet(scratch / "entries.parquet", index=False)
        write_metadata(scratch, run_metadata(config))


kernel_cache.forget_stale(_follow, loren)
