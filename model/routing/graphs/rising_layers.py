"""The short proof of section `tables`: numbers of channels that rise with every link of every path, layer by layer.

Definition: docs/definitions/short-proof.md (Tables of virtual layers). What the argument needs is read from the table
that routers have, not from what made it.
"""

import numpy as np
from numba import int64, uint64
from numpy.typing import NDArray

from hopforge.model.kernel.bits import trailing_zeros
from hopforge.model.kernel.compile import WITHOUT_COUNTS, kernel
from hopforge.model.routing.contract.channel_order import places_in_order
from hopforge.model.routing.contract.plan import IrregularError
from hopforge.model.topology import Topology

__all__ = ["layer_order"]

#: destinations whose ports are a line of the processor's cache together
_LINE = 16
#: destinations of a call
_PART = 512
#: answers of `_follow`
_NO_WAY, _CIRCLE, _NO_LAYER = -1, -2, -3
_WORDS = {
    _NO_WAY: "router {router} has no way to router {goal}",
    _CIRCLE: "packets from router {router} to router {goal} go in a circle",
    _NO_LAYER: "there is no layer for packets over router {router} to router {goal}",
}


@kernel(**WITHOUT_COUNTS)
def _follow(  # type: ignore[no-untyped-def]
    begin, end, peer_router, peer_port, homes, ports, begins, orders, step, starts, some, open_, queue, layers, follows
):
    """Take the packets of all routers with hosts to destinations from `begin` on; note what their channels wait for.

    `follows` is bool[layer, place, whether the layer changes by `step`], where ``starts[router, port]`` is the place of
    the first port of the router behind. `some`, `open_`, `queue` and `layers` are room for what is known of a
    destination: ports[16, router], routers that lead here and are not done, routers that are, and the layers in which
    packets leave a router. Returns 0, or what is wrong, the router, and the destination.
    """
    R, count = len(homes), follows.shape[0]
    ordered = orders.shape[0] > 0
    alike = begins.shape[0] == 0  # packets begin in the last layer or, where they rise, in the first
    for first in range(begin, end, _LINE):
        last = min(first + _LINE, end)
        for router in range(R):
            for goal in range(first, last):
                some[goal - first, router] = ports[router, goal]
        for goal in range(first, last):
            if not homes[goal]:
                continue
            way = some[goal - first]
            open_[:] = 0
            layers[:] = 0
            for router in range(R):
                if router == goal:
                    continue
                if way[router] >= 0:
                    if way[router] >= peer_router.shape[1] or peer_router[router, way[router]] < 0:
                        return _NO_WAY, router, goal
                    open_[peer_router[router, way[router]]] += 1
                if homes[router]:
                    layer = int64(0) if step > 0 else int64(count - 1)
                    if not alike:
                        layer = int64(begins[router, goal])
                    if not 0 <= layer < count:
                        return _NO_LAYER, router, goal
                    layers[router] |= uint64(1) << uint64(layer)
            tail = 0
            for router in range(R):
                if router != goal and open_[router] == 0:
                    queue[tail] = router
                    tail += 1
            head = 0
            while head < tail:
                router = queue[head]
                head += 1
                port, left = int64(way[router]), layers[router]
                if port < 0:
                    if left != 0:
                        return _NO_WAY, router, goal
                    continue
                following = peer_router[router, port]
                if following == goal:
                    continue
                came, out = peer_port[router, port], int64(way[following])
                while left != 0:
                    layer = int64(trailing_zeros(left))
                    left &= left - uint64(1)
                    if out < 0:
                        return _NO_WAY, following, goal
                    changes = int64(step != 0)
                    if ordered and orders[layer, following, 0, came] > orders[layer, following, 1, out]:
                        changes = 0
                    if not 0 <= layer + changes * step < count:
                        return _NO_LAYER, following, goal
                    layers[following] |= uint64(1) << uint64(layer + changes * step)
                    follows[layer, starts[router, port] + out, changes] = True
                open_[following] -= 1
                if open_[following] == 0:
                    queue[tail] = following
                    tail += 1
            for router in range(R):
                if router != goal and open_[router] > 0 and layers[router] != 0:
                    return _CIRCLE, router, goal
    return 0, 0, 0


def layer_order(
    topology: Topology,
    ports: NDArray[np.int32],
    begins: NDArray[np.int32],
    orders: NDArray[np.int32],
    step: int,
    of_vc: NDArray[np.int64],
) -> tuple[NDArray[np.int64], int, str]:
    """Give all channels numbers so that every link of every path has a higher number than the one before.

    Parameters
    ----------
    topology : Topology
        The network.
    ports : ndarray, int32[router, destination router]
        Next port; −1: no way.
    begins : ndarray, int32[router, destination router]
        Layer in which packets begin. Empty: the last one, or with `step` 1 the first.
    orders : ndarray, int32[layer, router, 0 in | 1 out, port]
        Of channels: the layer stays where that by which a packet came is higher than that of the next; empty: none.
    step : int
        By how much the layer changes from channel to channel.
    of_vc : ndarray, int64[virtual channel]
        Layer of each.

    Returns
    -------
    ndarray, int64[channel]
        Number; −1: to a host, or none.
    int
        One more than the largest.
    str
        For people.

    Raises
    ------
    IrregularError
        A path has no port or no layer, goes in a circle, or channels are in no order.
    """
    R, P, count = topology.routers, topology.max_ports, int(of_vc.max()) + 1
    homes = np.zeros(R, np.bool_)
    homes[topology.host_router] = True
    # only what is there: with all ports of a hub behind each link there would be gigabytes
    behind = np.where(topology.peer_router >= 0, topology.ports[topology.peer_router], 0).reshape(-1)
    starts = np.cumsum(behind, dtype=np.int64) - behind
    follows = np.zeros((count, int(behind.sum()), 2), np.bool_)
    room = np.empty((_LINE, R), np.int32), np.empty(R, np.int32), np.empty(R, np.int32), np.empty(R, np.uint64)
    for first in range(0, R, _PART):  # between two calls Ctrl-C is heard
        code, router, goal = _follow(
            first, min(first + _PART, R), topology.peer_router, topology.peer_port, homes, ports, begins, orders, step,
            starts.reshape(R, P), *room, follows,
        )  # fmt: skip
        if code:
            raise IrregularError(_WORDS[code].format(router=router, goal=goal))
    layer, place, changes = np.unravel_index(np.flatnonzero(follows), follows.shape)
    channel = np.repeat(np.arange(R * P), behind)[place]
    source = layer * (R * P) + channel
    following = topology.peer_router.reshape(-1)[channel] * np.int64(P) + place - starts[channel]
    target = (layer + changes * step) * (R * P) + following
    rank = places_in_order(source, target, count * R * P)
    if rank is None:
        raise IrregularError("channels that follow one another are in no order")
    number = np.moveaxis(rank.reshape(count, R, P)[of_vc], 0, 2)
    number = np.where((topology.peer_router >= 0)[:, :, None], number, -1)
    words = f"{count} virtual layer{'s' if count > 1 else ''}, their channels in an order"
    return number.reshape(-1), int(rank.max()) + 1, words
