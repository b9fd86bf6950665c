"""Misses by size: LRU for every size and every number of ways, other policies for every number of sets.

The workload is read once. Definition: docs/definitions/replacement.md.
"""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hopforge.model.config import Config
from hopforge.model.config.lookup import REPLAYED_POLICIES
from hopforge.model.errors import UserError
from hopforge.model.lookup.assisted_cache import ASSISTED, Operations, run_operations
from hopforge.model.lookup.belady import BOUNDS, KeyStreams, optimal_misses
from hopforge.model.lookup.stack_distances import group_by_set, stack_distances
from hopforge.model.numbers.crc import crc_addresses, crc_spec
from hopforge.sim.hits.replay import Replay

__all__ = ["SizesError", "check_sizes", "size_lines", "size_words", "sizes_of"]

MOST_SETS = 1 << 25  # of all caches together


class SizesError(UserError, ValueError):
    """A configuration whose sizes cannot be compared."""


def check_sizes(config: Config, lacks_rows: bool, *, helped: bool) -> None:
    """Refuse what has no curve of sizes.

    Raises
    ------
    SizesError
        Naming the key.
    """
    cache = config.lookup.cache
    if helped:
        raise SizesError("--sizes: compares caches without help; not with --prefetch, --refill or --tcam-cycles")
    if not cache.enabled:
        raise SizesError("lookup.cache.enabled: must be true with --sizes, not false")
    if cache.skewed:
        raise SizesError("lookup.cache.skewed: must be false with --sizes, not true")
    if cache.second_level is not None and cache.second_level.content == "inclusive":
        raise SizesError("lookup.cache.second_level.content: must be nine or exclusive with --sizes, not inclusive")
    if lacks_rows:
        raise SizesError(f"lookup.tcam.rows: must hold all routes with --sizes, not {config.lookup.tcam.rows} rows")


def sizes_of(replay: Replay, config: Config, *, bounds: bool) -> pd.DataFrame:
    """Return the misses of all caches together by policy, sets and ways, from the lookups that a replay kept."""
    streams, section = replay.kept_streams(), config.lookup.cache
    width = config.address.width_bits
    payload = streams.keys & ((1 << width) - 1)
    index = crc_addresses(section.crc, payload, width).astype(np.int64)
    parts, bits = [], 0
    most_bits, largest = crc_spec(section.crc).width, 1
    while True:
        sets = 1 << bits
        rows = index & (sets - 1)
        misses = stack_distances(group_by_set(streams, rows, sets)).misses()
        ways = np.arange(1, len(misses)) if len(misses) > 1 else np.array([1])
        parts.append(_part("lru", sets, ways, misses[ways] if len(misses) > 1 else misses))
        rest = _others(streams, rows, sets, config, bounds=bounds)
        parts += [_part(name, sets, np.array([section.ways]), np.array([count])) for name, count in rest.items()]
        largest = max(largest, len(misses) - 1)
        if sets >= largest or bits == most_bits or 2 * sets * replay.inputs.caches > MOST_SETS:
            break
        bits += 1
    table = pd.concat(parts, ignore_index=True)
    table.insert(4, "lookups", len(streams.numbers))
    table["hit_rate"] = 1 - table["misses"] / max(len(streams.numbers), 1)
    return table


def _part(policy: str, sets: int, ways: NDArray[np.int64], misses: NDArray[np.int64]) -> pd.DataFrame:
    return pd.DataFrame({"policy": policy, "sets": sets, "ways": ways, "entries": sets * ways, "misses": misses})


def _others(
    streams: KeyStreams, rows: NDArray[np.int64], sets: int, config: Config, *, bounds: bool
) -> dict[str, int]:
    """Return the misses of what no pass over all sizes gives: the configured policy, the best choices."""
    section = config.lookup.cache
    found: dict[str, int] = {}
    if section.policy != "lru":
        none = np.full(len(streams.numbers), -1, np.int32)
        o = Operations(
            streams.starts, np.zeros(len(none), np.int64), streams.numbers, np.zeros(len(none), np.bool_), none, none
        )
        counts = run_operations(
            o, rows, set_count=sets, ways=section.ways, policy=REPLAYED_POLICIES.index(section.policy),
            seed=section.random_seed,
        )  # fmt: skip
        found[section.policy] = int(counts[:, ASSISTED.index("misses")].sum())
    if bounds:
        least = optimal_misses(streams, rows, ways=section.ways, set_count=sets).sum(axis=0)
        found |= {name: int(count) for name, count in zip(BOUNDS, least, strict=True) if name != "lru"}
    return found


def size_lines(table: pd.DataFrame, ways: int) -> list[list[str]]:
    """Return headings and lines of misses by size: of one set for LRU, and with the configured ways.

    Sizes are 1, 2, 4 … lines, and with more than `ways` the configured ways times 1, 2, 4 … sets.
    """
    lru = table[table["policy"] == "lru"]
    whole = lru[lru["sets"] == 1].set_index("ways")["misses"]
    others = [name for name in table["policy"].unique() if name != "lru"]
    lines = [["entries", "sets", "lru, one set", *(f"{name}, {ways} ways" for name in ("lru", *others))]]
    for entries in (1 << bits for bits in range((ways - 1).bit_length())):
        small = whole[min(entries, whole.index.max())]
        lines.append([f"{entries:,}", "1", f"{small:,}", *("" for _ in ("lru", *others))])
    for sets in sorted(set(lru["sets"].tolist())):
        entries = sets * ways
        here = lru[lru["sets"] == sets].set_index("ways")["misses"]
        small, same = whole[min(entries, whole.index.max())], here[min(ways, here.index.max())]
        line = [f"{entries:,}", f"{sets:,}", f"{small:,}", f"{same:,}"]
        for name in others:
            line.append(f"{table[(table['policy'] == name) & (table['sets'] == sets)]['misses'].iloc[0]:,}")
        lines.append(line)
    return lines


def size_words(ways: int) -> str:
    """Return what `size_lines` shows, in a line."""
    return (
        f"misses of all caches together, each of so many entries: one set (fully associative), or sets of {ways} ways; "
        "sizes.csv has lru for all ways, too"
    )
