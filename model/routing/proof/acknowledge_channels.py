"""What acknowledges wait for: the channels that the proof of freedom from deadlock gets for them.

docs/definitions/acknowledges.md, "Freedom from deadlock".
"""

import numpy as np
from numpy.typing import NDArray

from hopforge.model.network.core.state import NetState


def acknowledge_edges(state: NetState) -> NDArray[np.int64]:
    """Dependencies of acknowledges: int64[2, edge], a channel between routers, and the service channel behind it.

    Nothing enters the channel by which a service port sends, and what comes out of a service channel is always taken.
    """
    if not int(state["acks"]):
        return np.zeros((2, 0), np.int64)
    vcs, ports = int(state["vcs"]), int(state["ports"])
    target = state["output_vc"]["target"].astype(np.int64)
    used = (int(state["ack_mask"]) >> state["output_vc"]["vc"].astype(np.int64)) & 1
    channel = np.flatnonzero((used == 1) & (target >= 0) & (target < int(state["input_vcs"])))
    router = target[channel] // (ports * vcs)
    service = (router * ports + ports - 1) * vcs
    return np.array([np.repeat(channel, vcs), (service[:, None] + np.arange(vcs)).reshape(-1)])
