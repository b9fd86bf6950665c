"""LOREN on networks too large for tables of all pairs: least tables, and delivery and path lengths of sampled pairs."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hopforge.model.config import Config
from hopforge.model.config.simulation import FailedConfig, describe_failed
from hopforge.model.errors import UserError
from hopforge.model.irregular.channels import WorkingSwitches
from hopforge.model.irregular.loren import LorenTables, loren_entry, loren_tables
from hopforge.model.irregular.neighbours import neighbours_of
from hopforge.model.irregular.tables import working_plan
from hopforge.model.kernel.compile import kernel
from hopforge.model.output.results import run_metadata, staged, write_metadata, write_tables
from hopforge.model.topology import Topology
from hopforge.model.topology.failed import failed_switches, survivors, without_failed
from hopforge.model.topology.routing_table import distances

__all__ = ["SampledTables", "large_rows", "sample_loren", "write_large"]

DESTINATIONS, SOURCES = 64, 256
"""Pairs that are followed: to each of so many destinations from so many sources."""


@dataclass(frozen=True, eq=False)
class SampledTables:
    """LOREN's tables of a large network.

    Attributes
    ----------
    topology : Topology
        The switches that work, numbered in their order.
    tables : LorenTables
        All their entries.
    numbers : ndarray, int32[router]
        Number of each in the whole network.
    pairs : DataFrame
        Columns source, destination (by their numbers in the whole network), hops, shortest: sampled pairs, delivered.
    change : list of (str, str)
        What failures changed, for the terminal.
    """

    topology: Topology
    tables: LorenTables
    numbers: NDArray[np.int32]
    pairs: pd.DataFrame
    change: list[tuple[str, str]]


@kernel
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
        Sections `tables`, `failed` and `seed` are used.
    topology : Topology
        The whole network.
    progress : callable, optional
        Called with (destinations done, destinations in all).

    Raises
    ------
    UserError
        As `loren_tables` and `without_failed`; a pair that is not delivered.
    """
    start = time.process_time()
    gone = failed_switches(topology, config.failed)
    left, working = without_failed(topology, config.failed), None
    numbers = np.arange(topology.routers, dtype=np.int32)
    if gone.any():
        left, numbers = survivors(left, gone)
        working = WorkingSwitches(topology.routers, numbers)
    tables = loren_tables(neighbours_of(left), config.tables.t_max, working_plan(working))
    seconds = time.process_time() - start
    generator = np.random.default_rng((config.seed, 6))
    nodes = left.routers
    frames = []
    for number, target in enumerate(generator.choice(nodes, min(DESTINATIONS, nodes), replace=False).tolist()):
        progress(number, DESTINATIONS)
        sources = generator.choice(nodes, min(SOURCES, nodes), replace=False)
        sources = sources[sources != target]
        hops = np.empty(len(sources), np.int64)
        lost = int(_follow(*tables.plan, tables.destination, tables.successor, tables.entries, sources, target, hops))
        if lost >= 0:
            raise UserError(f"from router {numbers[lost]} to router {numbers[target]} packets go in a circle")
        shortest = distances(left, np.array([target]))[0, sources]
        pairs = {"source": numbers[sources], "destination": numbers[target], "hops": hops, "shortest": shortest}
        frames.append(pd.DataFrame(pairs))
    progress(DESTINATIONS, DESTINATIONS)
    change = []
    if not config.failed.none:
        before = loren_tables(neighbours_of(topology), config.tables.t_max)
        change = _change_rows(config.failed, before, tables, numbers, seconds)
    return SampledTables(left, tables, numbers, pd.concat(frames, ignore_index=True), change)


def _all_entries(tables: LorenTables, numbers: NDArray[np.int32]) -> pd.DataFrame:
    """Entries of all routers by their numbers in the whole network."""
    router, place = np.nonzero(tables.destination >= 0)
    return pd.DataFrame(
        {
            "router": numbers[router],
            "destination": numbers[tables.destination[router, place]],
            "next_router": numbers[tables.successor[router, place]],
            "hops": tables.hops[router, place],
        }
    )


def _change_rows(
    failed: FailedConfig, before: LorenTables, after: LorenTables, numbers: NDArray[np.int32], seconds: float
) -> list[tuple[str, str]]:
    nodes = len(before.entries)
    old, new = _all_entries(before, np.arange(nodes, dtype=np.int32)), _all_entries(after, numbers)
    old_key, new_key = (part["router"].to_numpy(np.int64) * nodes + part["destination"] for part in (old, new))
    written = ~np.isin(new_key * nodes + new["next_router"], old_key * nodes + old["next_router"])  # < 2^60: 2^20 nodes
    removed = ~np.isin(old_key, new_key)
    touched = np.union1d(new["router"][written], old["router"][removed])
    return [
        ("failed", describe_failed(failed)),
        (
            "entries changed",
            f"{written.sum():,} written and {removed.sum():,} removed in {len(touched)} of {nodes:,} switches",
        ),
        ("recomputed in", f"{seconds:.3f} s of processor time"),
    ]


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
        *found.change,
    ]


def write_large(config: Config, found: SampledTables, folder: Path) -> None:
    """Write figures, sampled pairs and all entries (Parquet), and metadata; all or nothing."""
    with staged(folder) as scratch:
        summary = pd.DataFrame(large_rows(found), columns=["subject", "value"])
        write_tables(scratch, {"summary": summary, "pairs": found.pairs})
        _all_entries(found.tables, found.numbers).to_parquet(scratch / "entries.parquet", index=False)
        write_metadata(scratch, run_metadata(config))
