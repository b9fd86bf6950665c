"""How often the packets and flits of a program visit a switch."""

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config import Config
from hopforge.model.config.workload import ProgramWorkload
from hopforge.model.lookup.routes import Routes
from hopforge.model.lookup.spread_routes import SpreadRoutes
from hopforge.model.topology import Topology
from hopforge.sim.traffic.placed import PlacedProgram


def switch_visits(
    config: Config, topology: Topology, placed: PlacedProgram, routes: Routes | SpreadRoutes
) -> tuple[int, int]:
    """Return visits of packets and of flits on `routes`.

    Packets have `workload.mtu_bytes`, flits `traffic.flit_bytes`; a message of 0 bytes is one flit.
    """
    assert isinstance(config.workload, ProgramWorkload), "checked by sim.programs.application"
    source, destination = placed.source_host.astype(np.int64), placed.destination_host.astype(np.int64)
    remote = source != destination
    pairs, number = np.unique(source[remote] * topology.hosts + destination[remote], return_inverse=True)
    switches = routes.paths(pairs // topology.hosts, pairs % topology.hosts).lengths[number]
    packets, flits = cut(placed.program.size_bytes[remote], config.workload.mtu_bytes, config.traffic.flit_bytes)
    return int((packets * switches).sum()), int((flits * switches).sum())


def cut(
    size_bytes: NDArray[np.int64], mtu_bytes: int, flit_bytes: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return packets and flits of messages, int64[message].

    >>> cut(np.array([0, 100, 4100]), 2048, 64)
    (array([1, 1, 3]), array([ 1,  2, 65]))
    """
    packets = np.maximum(1, -(-size_bytes // mtu_bytes))
    rest = size_bytes - (packets - 1) * mtu_bytes
    flits = (packets - 1) * -(-mtu_bytes // flit_bytes) + np.maximum(1, -(-rest // flit_bytes))
    return packets, flits
