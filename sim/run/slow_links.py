"""Links of the router simulator that are slow for some time (section `degraded`)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config import Config
from hopforge.model.errors import UserError
from hopforge.model.network.core.state import NetState
from hopforge.model.topology import Topology

__all__ = ["Slowing", "slowings"]


@dataclass(frozen=True, eq=False)
class Slowing:
    """New rates of all links.

    Attributes
    ----------
    cycle : int
        From here on; a flit that has begun to leave takes as long as before.
    cycles_per_flit : ndarray, int32[output port]
        Cycles from a flit to the next one.
    """

    cycle: int
    cycles_per_flit: NDArray[np.int32]

    def happen(self, state: NetState) -> None:
        """Give the links these rates."""
        state["output_port"]["cycles_per_flit"] = self.cycles_per_flit


def slowings(state: NetState, topology: Topology, config: Config) -> list[Slowing]:
    """Let links that are slow later be fast in the beginning; return all changes during the run, the first first.

    Parameters
    ----------
    state : NetState
        At cycle 0, all links that become slow are so.
    topology : Topology
        With the rates of slow links.
    config : Config
        Section `degraded`.

    Raises
    ------
    UserError
        Links that fail during the run, too.
    """
    degraded = config.degraded
    if not degraded.timed:
        return []
    if config.simulation.failures:
        raise UserError(f"degraded.{degraded.timed}: cannot be combined with simulation.failures")
    assert topology.rate_share is not None, "links are degraded"
    slow = state["output_port"]["cycles_per_flit"].copy()
    fast = slow.copy()
    share = topology.rate_share.reshape(-1)
    fast[: len(share)] = np.rint(slow[: len(share)] * share)
    found = []
    if degraded.from_cycle:
        found.append(Slowing(degraded.from_cycle, slow))
        state["output_port"]["cycles_per_flit"] = fast
    if degraded.until_cycle is not None:
        found.append(Slowing(degraded.until_cycle, fast))
    return found
