"""How often the packets and flits of a program visit a switch."""

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config import Config
from hopforge.model.config.jobs import JobsWorkload
from hopforge.model.config.workload import ProgramWorkload
from hopforge.model.lookup.lid_routes import KnownRoutes
from hopforge.model.topology import Topology
from hopforge.sim.traffic.host_pairs import HostPairs, host_pairs
from hopforge.sim.traffic.placed import PlacedProgram

#: messages that are counted together: more would need memory that is new
_CHUNK = 1 << 16


def switch_visits(
    config: Config, topology: Topology, placed: PlacedProgram, routes: KnownRoutes,
    pairs: HostPairs | None = None,
) -> tuple[int, int]:
    """Return visits of packets and of flits on `routes`.

    Packets have `packet_size`, flits `traffic.flit_bytes`; a message of 0 bytes is one flit. In switches of packets
    what is left of a message fills a whole packet. `pairs`: those of its messages, if they are known already.
    """
    assert isinstance(config.workload, ProgramWorkload | JobsWorkload), "checked by sim.programs.application"
    if pairs is None:
        pairs = host_pairs(placed, topology.hosts)
    switches = routes.paths(pairs.source, pairs.destination).lengths
    mtu, flit = packet_size(config), config.traffic.flit_bytes
    packets, flits = 0, 0
    for start in range(0, placed.program.messages, _CHUNK):
        number, size = pairs.number[start : start + _CHUNK], placed.program.size_bytes[start : start + _CHUNK]
        remote = number >= 0
        visits = switches[number[remote]]
        if (size == size[0]).all():  # as in most collectives: divisions are slow
            size, visits = size[:1], visits.sum(keepdims=True)
        else:
            size = size[remote]
        each = cut(size, mtu, flit)
        packets, flits = packets + int((each[0] * visits).sum()), flits + int((each[1] * visits).sum())
    if config.router.model == "packet":
        flits = packets * -(-mtu // flit)
    return packets, flits


def packet_size(config: Config) -> int:
    """Return the most bytes of a packet of a program."""
    assert isinstance(config.workload, ProgramWorkload | JobsWorkload), "checked by sim.programs.application"
    return config.packet.packet_bytes if config.router.model == "packet" else config.workload.mtu_bytes


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
