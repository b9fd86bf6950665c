"""What a replay counts."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hopforge.model.errors import UserError
from hopforge.sim.hits.cache_inputs import CacheInputs

__all__ = ["COUNTS", "ReplayError", "ReplayResult"]

#: what is counted for each cache, in the order of `ReplayResult`
COUNTS = ("lookups", "hits", "second_level_hits", "compulsory", "capacity", "conflict", "evictions", "unmatched")


class ReplayError(UserError, ValueError):
    """A network whose caches do not fit in memory."""


@dataclass(frozen=True, eq=False)
class ReplayResult:
    """Counts of a replay, one number per cache in each array (int64[cache]).

    Attributes
    ----------
    inputs : CacheInputs
        Where the caches are.
    packets, delivered : int
        Packets that entered the network, and that reached their host (all, unless a TCAM lacks their row).
    lookups, hits : ndarray
        Lookups, and those that hit in the (first-level) cache.
    second_level_hits : ndarray
        First-level misses that hit in the second level.
    compulsory, capacity, conflict : ndarray
        First-level misses by cause; see `model.lookup.reference_stack`.
    evictions : ndarray
        Live lines of the first level that were written over.
    unmatched : ndarray
        Misses for which the TCAM has no row: neither cached nor in one of the three causes; the packet is dropped.
    back_invalidations : int
        Lines that left a first level because an inclusive second level gave up their key.
    """

    inputs: CacheInputs
    packets: int
    delivered: int
    lookups: NDArray[np.int64]
    hits: NDArray[np.int64]
    second_level_hits: NDArray[np.int64]
    compulsory: NDArray[np.int64]
    capacity: NDArray[np.int64]
    conflict: NDArray[np.int64]
    evictions: NDArray[np.int64]
    unmatched: NDArray[np.int64]
    back_invalidations: int = field(default=0, kw_only=True)
