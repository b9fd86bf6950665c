"""How often the lookups of a program miss at every input port: what the routing caches cost its packets."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config import Config
from hopforge.model.config.jobs import JobsWorkload
from hopforge.model.config.workload import ProgramWorkload
from hopforge.model.topology import Topology
from hopforge.sim.hits.replay import Replay, send_all
from hopforge.sim.hits.replay_result import ReplayResult
from hopforge.sim.traffic.placed import PlacedProgram
from hopforge.sim.traffic.program_traffic import packet_size
from hopforge.sim.traffic.workload_packets import program_packets


@dataclass(frozen=True, eq=False)
class CacheUse:
    """What the lookups of a program ask.

    Attributes
    ----------
    miss : ndarray, float64[router, port]
        Share of the lookups of an input port that pay the penalty of a miss.
    miss_share : float
        Share of all lookups that miss.
    tcam_share : float
        Share of all lookups that ask the TCAM: those that miss in both levels.
    cached : bool
        Whether switches have caches at all.
    """

    miss: NDArray[np.float64]
    miss_share: float
    tcam_share: float
    cached: bool


def cache_use(config: Config, topology: Topology, placed: PlacedProgram, caches: Replay | None = None) -> CacheUse:
    """Return the misses of a program under ``app.lookup``; ``cache`` replays its packets (`hopforge hits`).

    A hit in a second level costs ``timing.second_level_ns / tcam_ns`` of a miss. Empty `caches` may be given.

    Raises
    ------
    UserError
        Caches that do not fit in memory, or a TCAM without the rows of the routes.
    """
    shape = topology.peer_router.shape
    kind = config.app.lookup
    if kind != "cache":
        share = 0.0 if kind == "hit" else 1.0
        return CacheUse(np.full(shape, share), share, share, kind != "conventional")
    assert isinstance(config.workload, ProgramWorkload | JobsWorkload), "checked by sim.programs.application"
    workload = config.workload.model_copy(update={"mtu_bytes": packet_size(config)})
    found = send_all(caches or Replay(config, topology), program_packets(workload, placed))
    missed, second = _misses(config, found)
    port = found.inputs.router.astype(np.int64) * shape[1] + found.inputs.port
    lookups = np.bincount(port, found.lookups, shape[0] * shape[1])
    # a hit in the second level takes a part of the time of a miss
    penalties = missed - second * (1.0 - min(1.0, config.timing.second_level_ns / config.timing.tcam_ns))
    paid = np.bincount(port, penalties, shape[0] * shape[1])
    shares = np.divide(paid, lookups, out=np.zeros(len(paid)), where=lookups > 0)
    if config.lookup.ports_per_engine > 1:  # every port pays the share of the cache that it asks
        first = found.inputs.first
        shares = np.where(first >= 0, shares[port[np.maximum(first, 0)]].reshape(shape), 0.0)
    looked_up = max(float(lookups.sum()), 1.0)
    return CacheUse(
        shares.reshape(shape), float(missed.sum()) / looked_up, float((missed - second).sum()) / looked_up,
        config.lookup.cache.enabled,
    )  # fmt: skip


def _misses(config: Config, found: ReplayResult) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Misses of each cache, and those of them that hit in its second level, float64[cache]."""
    missed = (found.lookups - found.hits).astype(np.float64)
    if config.app.caches == "warm":
        missed -= found.compulsory
    return missed, np.minimum(found.second_level_hits, missed)
