"""Where the caches of a network are: at each input port in use, for each member of a link, or of several ports."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hopforge.model.topology import Topology

__all__ = ["CacheInputs", "cache_classes", "cache_inputs"]


@dataclass(frozen=True, eq=False)
class CacheInputs:
    """The caches of a network: one per input port that is in use, and per link-aggregation member of a link.

    With ``lookup.ports_per_engine`` several ports of a switch have one cache.

    Attributes
    ----------
    router, port, member : ndarray, int32[cache]
        Where a cache is; of several ports the first that is in use.
    first : ndarray, int64[router, port]
        Number of the cache of member 0; -1: the port is not in use.
    ports_of_a_switch, caches_of_a_switch : int
        Most ports (and members) in use that a switch has, and most caches.
    """

    router: NDArray[np.int32]
    port: NDArray[np.int32]
    member: NDArray[np.int32]
    first: NDArray[np.int64]
    ports_of_a_switch: int
    caches_of_a_switch: int

    @property
    def caches(self) -> int:
        """How many."""
        return len(self.router)


def cache_inputs(topology: Topology, members: int = 1, ports_per_cache: int = 1) -> CacheInputs:
    """Give the caches of a network numbers, by router, port and member; host ports have one member."""
    count = np.where(topology.peer_router >= 0, members, np.where(topology.host_at >= 0, 1, 0))
    most = int(count.sum(axis=1).max())
    if ports_per_cache > 1:
        return _shared_inputs(count > 0, ports_per_cache, most)
    router, port = (np.repeat(index.reshape(-1), count.reshape(-1)) for index in np.indices(count.shape))
    start = np.cumsum(count.reshape(-1)) - count.reshape(-1)
    member = np.arange(len(router)) - np.repeat(start, count.reshape(-1))
    return CacheInputs(
        router.astype(np.int32), port.astype(np.int32), member.astype(np.int32),
        np.where(count > 0, start.reshape(count.shape), -1), most, most,
    )  # fmt: skip


def _shared_inputs(used: NDArray[np.bool_], ports_per_cache: int, most: int) -> CacheInputs:
    """Give caches of several ports numbers; the last one of a switch serves what is left over."""
    groups = -(-used.shape[1] // ports_per_cache)
    router, port = np.nonzero(used)
    group, start, number = np.unique(router * groups + port // ports_per_cache, return_index=True, return_inverse=True)
    first = np.full(used.shape, -1, np.int64)
    first[router, port] = number
    caches = np.bincount(group // groups)
    return CacheInputs(
        router[start].astype(np.int32), port[start].astype(np.int32), np.zeros(len(group), np.int32), first, most,
        int(caches.max()),
    )  # fmt: skip


def cache_classes(inputs: CacheInputs, of_port: Sequence[Sequence[str]]) -> list[str]:
    """Return the class of the ports of every cache, from those of all ports; several are joined by ``+``."""
    found: list[dict[str, None]] = [{} for _ in range(inputs.caches)]
    for cache, router, port in zip(range(inputs.caches), inputs.router.tolist(), inputs.port.tolist(), strict=True):
        found[cache][of_port[router][port]] = None
    for router, port in np.argwhere(inputs.first >= 0).tolist():
        found[int(inputs.first[router, port])][of_port[router][port]] = None
    return ["+".join(names) for names in found]
