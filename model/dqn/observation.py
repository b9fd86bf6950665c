"""What an agent sees of a packet at a router, and how far the packet still has to go on a grid."""

from typing import Any

from hopforge.model.dqn.dense import compiled

__all__ = ["distance", "minimal_actions", "observe"]


@compiled
def distance(radices: Any, wraps: bool, here: Any, there: Any) -> int:
    """Return the least number of hops between two routers, given by their coordinates."""
    hops = 0
    for d in range(len(radices)):
        way = abs(here[d] - there[d])
        hops += min(way, radices[d] - way) if wraps else way
    return hops


@compiled
def minimal_actions(radices: Any, wraps: bool, here: Any, there: Any) -> int:
    """Mask of the actions (X−, X+, Y−, …) that bring a packet nearer; on a ring both directions of a tie."""
    mask = 0
    for d in range(len(radices)):
        ahead = there[d] - here[d]
        if ahead == 0:
            continue
        if wraps:
            ahead = ahead if ahead > 0 else ahead + radices[d]
            up, down = 2 * ahead <= radices[d], 2 * ahead >= radices[d]
        else:
            up, down = ahead > 0, ahead < 0
        mask |= (down | (up << 1)) << (2 * d)
    return mask


@compiled
def observe(
    radices: Any, here: Any, there: Any, payload: int, local: Any, remote: Any, scales: Any, observation: Any
) -> None:
    """Fill in the 2n + 1 + 2m inputs of a router's agent; on a grid it has m = 2n ports.

    Parameters
    ----------
    radices, here, there : int[n]
        Of the network; coordinates of the router and of the packet's destination.
    payload : int
        Flits between header and footer.
    local, remote : int[m]
        Flits that wait here for the adaptive channel of each port (X−, X+, Y−, …), and in the buffer behind it.
    scales : float64[3]
        Payload, local and remote flits that count as 1; a first of 0: numbers as they are.
    observation : float[2n + 1 + 2m]
        Gets x, y, …, xd, yd, …, payload, local, remote.
    """
    n = len(radices)
    scaled = scales[0] > 0
    for d in range(n):
        most = max(radices[d] - 1, 1) if scaled else 1
        observation[d] = here[d] / most
        observation[n + d] = there[d] / most
    observation[2 * n] = payload / scales[0] if scaled else payload
    first, ports = 2 * n + 1, len(local)
    for port in range(ports):
        observation[first + port] = local[port] / scales[1] if scaled else local[port]
        observation[first + ports + port] = remote[port] / scales[2] if scaled else remote[port]
