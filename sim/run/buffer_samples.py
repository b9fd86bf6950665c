"""How full the input buffers of a network are: samples of a run, and the flits in each router at a moment."""

import numpy as np
from numpy.typing import NDArray

from hopforge.model.network.core.state import NetState
from hopforge.model.output.columns import Columns
from hopforge.sim.queued.build import QueuedState

__all__ = ["BufferSamples", "router_flits"]


def _filled(state: NetState) -> NDArray[np.int64]:
    """Flits (packets, where routers have queues at their outputs) in every input VC."""
    if isinstance(state, QueuedState):
        return state.queues["input_queue"]["length"].astype(np.int64)
    return state["input_vc"]["flits"].astype(np.int64)


def router_flits(state: NetState) -> NDArray[np.int64]:
    """Flits in the input buffers of every router: int64[router]."""
    return _filled(state).reshape(int(state["routers"]), -1).sum(axis=1)


def _places(state: NetState) -> NDArray[np.int64]:
    """Flits that every input VC has places for; 0: nothing leads to it."""
    vcs, hosts = int(state["vcs"]), state["host"]
    here = np.arange(vcs)
    if isinstance(state, QueuedState):
        inputs, depth = len(state.queues["input_queue"]), int(state.queue_record["input_depth"][0])
        found = np.zeros(inputs, np.int64)
        target = state.queues["output_queue"]["target"]
        found[target[(target >= 0) & (target < inputs)]] = depth
        found[(state.queues["nic"]["target"].astype(np.int64)[:, None] + here).reshape(-1)] = depth
        return found
    output = state["output_vc"]
    found = np.zeros(len(state["input_vc"]), np.int64)
    linked = (output["target"] >= 0) & (output["target"] < len(found))
    found[output["target"][linked]] = output["depth"][linked]
    found[(hosts["input_vc"].astype(np.int64)[:, None] + here).reshape(-1)] = np.repeat(hosts["depth"], vcs)
    return found


class BufferSamples:
    """Counts how full every input VC was when a sample of a run ended.

    Parameters
    ----------
    state : NetState
        Of the run.
    """

    def __init__(self, state: NetState) -> None:
        self._state = state
        self.reset()

    def reset(self) -> None:
        """Forget all samples."""
        self.samples = 0
        self._sum = np.zeros(len(_filled(self._state)), np.int64)
        self._most = np.zeros_like(self._sum)

    def note(self) -> None:
        """Take a sample."""
        filled = _filled(self._state)
        self.samples += 1
        self._sum += filled
        np.maximum(self._most, filled, out=self._most)

    def columns(self) -> Columns:
        """Return router, port, vc, flits (mean of the samples), flits_max and places of every input VC in use."""
        places = _places(self._state)
        used = np.flatnonzero(places)
        vcs, ports = int(self._state["vcs"]), int(self._state["ports"])
        return {
            "router": (used // vcs // ports).astype(np.int32),
            "port": (used // vcs % ports).astype(np.int32),
            "vc": (used % vcs).astype(np.int32),
            "flits": self._sum[used] / max(self.samples, 1),
            "flits_max": self._most[used],
            "places": places[used],
        }
