"""Parts of a network that are simulated one after the other for a window of cycles.

What leaves a part cannot arrive elsewhere before a link's flight is over. So a part may run as many cycles ahead as
the links between parts are long, and all that it touches stays near the processor meanwhile; results are those of all
parts in step, to the bit. On a dragonfly parts are groups.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopforge.model.topology import Topology

#: a part gets at least so many queues: smaller ones cost more than they save
PART_QUEUES = 600


class Parts(NamedTuple):
    """How routers and hosts are divided.

    Attributes
    ----------
    first_router, first_host : ndarray, int64[parts + 1]
        Where each part begins.
    far_cycles : int
        Links of this flight time or more may lead to other parts (0: no link does).
    """

    first_router: NDArray[np.int64]
    first_host: NDArray[np.int64]
    far_cycles: int

    def __len__(self) -> int:
        return len(self.first_router) - 1

    @property
    def of_router(self) -> NDArray[np.int64]:
        """Part of every router."""
        return np.repeat(np.arange(len(self)), np.diff(self.first_router))


def find_parts(topology: Topology, flight: NDArray[np.int64], queues: int, least: int = PART_QUEUES) -> Parts:
    """Divide a network along its longest links.

    Parameters
    ----------
    topology : Topology
        The network.
    flight : ndarray, int64[router, port]
        Cycles on the link at an output port.
    queues : int
        Input queues of a router.
    least : int
        Queues of a part, but of the last one.

    Returns
    -------
    Parts
        One part if there is no division of which each part is a range of routers and of hosts.
    """
    R, H = topology.routers, topology.hosts
    whole = Parts(np.array([0, R]), np.array([0, H]), 0)
    here, port = np.nonzero(topology.peer_router >= 0)
    there, cycles = topology.peer_router[here, port].astype(np.int64), flight[here, port]
    if not len(here) or bool((np.diff(topology.host_router) < 0).any()):
        return whole
    far = int(cycles.max())
    if topology.hosts and int(flight[topology.host_router, topology.host_port].max()) >= far:
        return whole  # of equally long links those of hosts come last, whose part comes first
    # a cut before router r is free if no shorter link joins the routers below r with the others
    cut = np.zeros(R + 1, np.int64)
    near = cycles < far
    np.add.at(cut, np.minimum(here, there)[near] + 1, 1)
    np.add.at(cut, np.maximum(here, there)[near] + 1, -1)
    free = np.flatnonzero(np.cumsum(cut) == 0)
    first = [0]
    for r in free[(free > 0) & (free < R)].tolist():
        if (r - first[-1]) * queues >= least:
            first.append(r)
    starts = np.array([*first, R])
    if len(starts) == 2:
        return whole
    return Parts(starts, np.searchsorted(topology.host_router, starts), far)
