"""How far a cache is from the best that it could do: LRU, Belady's choice and the bound, for every cache of a replay.

Definition: docs/definitions/replacement.md.
"""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hopforge.model.config import Config
from hopforge.model.lookup.belady import BOUNDS, optimal_misses
from hopforge.sim.hits.replay import Replay

__all__ = ["BOUNDS", "add_gap_share", "bounds_of", "bounds_row", "why_no_bounds"]


def why_no_bounds(config: Config, unmatched: int = 0) -> str | None:
    """Say why a replay has no bounds; None if it has.

    Parameters
    ----------
    config : Config
        What is replayed.
    unmatched : int
        Lookups without a TCAM row: where such a packet ends depends on what the cache holds.
    """
    if not config.lookup.cache.enabled:
        return "none, for the cache is off"
    if config.lookup.cache.skewed:
        return "none, for with skewed association no rule is known to be the best"
    if unmatched:
        return "none, for the TCAM lacks rows, and where packets end depends on what the cache holds"
    return None


def bounds_of(replay: Replay, config: Config) -> NDArray[np.int64]:
    """Return the misses of LRU, min and min_bypass in every cache of a replay that kept its lookups, int64[cache, 3].

    Raises
    ------
    UserError
        The lookups do not fit in memory.
    """
    streams, section = replay.kept_streams(), config.lookup.cache
    return optimal_misses(
        streams, replay.set_numbers(streams.keys), ways=section.ways, set_count=section.entries // section.ways
    )


def add_gap_share(table: pd.DataFrame) -> None:
    """Append the share of the gap between LRU and the bound that the policy closes; empty without a gap."""
    gap = (table["lru"] - table["min_bypass"]).astype(float)
    table["gap_share"] = (table["lru"] - table["misses"]) / gap.where(gap > 0)


def bounds_row(totals: dict[str, float]) -> str:
    """Say what the least misses would be, for people."""
    lru, least, bound = (f"{int(totals[name]):,}" for name in BOUNDS)
    if "gap_share" not in totals:
        return f"without help LRU has {lru} misses, the best choice {least} if it always fills, else {bound}"
    if np.isnan(totals["gap_share"]):
        return f"LRU has {lru} misses, and no policy has less"
    share = f"{100 * totals['gap_share']:.3g} % of the gap is closed"
    return f"LRU has {lru} misses, the best choice {least} if it always fills, else {bound}; {share}"
