"""The packets of section `traffic` as a list, drawn ahead of the run.

Every host has a random stream of its own and draws creation time, destination and length of its packets in order, so a
run with the list is the run with the traffic.
"""

from collections.abc import Callable

import numpy as np
from numba import int64, types
from numpy.typing import NDArray

from hopforge.model.kernel.compile import entry
from hopforge.model.kernel.memory import int32s
from hopforge.model.network.core.hooks import LOST, call_hook
from hopforge.model.network.core.net_record import NET_RECORD, PATTERN_SIGNATURE, Net
from hopforge.model.network.core.records import class_source_at, host_at, packet_at
from hopforge.model.network.core.sources import create_packet
from hopforge.model.network.core.user_code import refuse_mistake
from hopforge.model.network.parts.class_sources import make_packet
from hopforge.model.network.settings import Script
from hopforge.sim.run.simulation import Simulation
from hopforge.sim.traffic import TrafficError

__all__ = ["draw_class_packets", "draw_packets"]


_I1 = types.Array(types.int64, 1, "C")


@entry(int64(types.FunctionType(PATTERN_SIGNATURE), NET_RECORD, int64, _I1, _I1, _I1, _I1))
def _draw(
    pattern: Callable[..., int],
    net: Net,
    cycles: int,
    host: NDArray[np.int64],
    time: NDArray[np.int64],
    destination: NDArray[np.int64],
    length: NDArray[np.int64],
) -> int:
    """Fill the four columns with all packets before `cycles`, as far as there is room; returns their number."""
    count = 0
    for h in range(net.hosts):
        while host_at(net, h).next_time < cycles:
            create_packet(net, pattern, h)
            p = int64(host_at(net, h).packet)
            host_at(net, h).packet = -1
            if net.messages != 0:
                call_hook(net.messages, net, LOST, p, cycles)
            int32s(net.free_packet)[net.free_packets] = p
            net.free_packets += 1
            if count < len(host):
                packet = packet_at(net, p)
                host[count], time[count] = h, packet.created
                destination[count], length[count] = packet.dst, packet.length
            count += 1
    return count


@entry(int64(NET_RECORD, int64, _I1, _I1, _I1, _I1, _I1))
def _draw_classes(
    net: Net,
    cycles: int,
    host: NDArray[np.int64],
    time: NDArray[np.int64],
    destination: NDArray[np.int64],
    length: NDArray[np.int64],
    number: NDArray[np.int64],
) -> int:
    """As `_draw`, of classes of traffic; fills the number of the class, too."""
    count = 0
    for h in range(net.hosts):
        for c in range(net.traffic_classes):
            while class_source_at(net, h, c).next_time < cycles:
                p = make_packet(net, h, c)
                class_source_at(net, h, c).packet = -1
                int32s(net.free_packet)[net.free_packets] = p
                net.free_packets += 1
                if count < len(host):
                    packet = packet_at(net, p)
                    host[count], time[count], number[count] = h, packet.created, c
                    destination[count], length[count] = packet.dst, packet.length
                count += 1
    return count


def draw_class_packets(run: Simulation, cycles: int) -> tuple[Script, NDArray[np.int64]]:
    """List the packets that the hosts create in the first `cycles` cycles, with classes of traffic.

    Parameters
    ----------
    run : Simulation
        At cycle 0; its streams are used up, so that it cannot be run afterwards.
    cycles : int
        How long packets are created.

    Returns
    -------
    Script
        Host, time, destination and length of every packet, by host, class and time.
    ndarray
        Class of each.
    """
    if run.classes is None or int(run.state["cycle"]) or int(run.state["packets_created"]):
        raise ValueError("run must be of classes of traffic, and at cycle 0")
    room = int(run.topology.hosts * cycles * len(run.classes.names))
    columns = [np.zeros(room, np.int64) for _ in range(5)]
    count = _draw_classes(run.state.record[0], cycles, *columns)
    host, time, destination, length, number = (column[:count] for column in columns)
    return (host, time, destination, length), number


def draw_packets(run: Simulation, cycles: int) -> Script:
    """List the packets that the hosts create in the first `cycles` cycles.

    Parameters
    ----------
    run : Simulation
        At cycle 0, not of a program; its streams are used up, so that it cannot be run afterwards.
    cycles : int
        How long packets are created.

    Returns
    -------
    Script
        Host, time, destination and length of every packet, by host and time.
    """
    if int(run.state["cycle"]) or int(run.state["packets_created"]):
        raise ValueError("run must be at cycle 0")
    if run.placed is not None:
        raise TrafficError("traffic.source must be bernoulli or on_off, not program: what it sends depends on the run")
    if run.classes is not None:
        raise ValueError("packets of classes of traffic are drawn by draw_class_packets")
    room = int(run.topology.hosts * cycles)
    columns = [np.zeros(room, np.int64) for _ in range(4)]
    count = _draw(run.traffic.pattern, run.state.record[0], cycles, *columns)
    refuse_mistake(run.state.record[0])
    host, time, destination, length = (column[:count] for column in columns)
    return host, time, destination, length
