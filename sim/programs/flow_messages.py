"""Messages and routes of a program as the flow engine needs them."""

import numpy as np
from numpy.typing import NDArray

from hopforge.model.kernel.compile import kernel
from hopforge.model.workload.operations import POST
from hopforge.model.workload.program import Program
from hopforge.sim.programs.flow_state import IDLE, MESSAGE


@kernel
def _set(number, size, eager, message):  # type: ignore[no-untyped-def]
    for m in range(len(message)):
        message[m].began = message[m].arrived = 0.0
        message[m].route, message[m].phase, message[m].early = number[m], IDLE, True
        message[m].eager = size[m] < eager


@kernel
def _posted(kind, operand, size, buffered, message):  # type: ignore[no-untyped-def]
    for at in range(len(kind)):
        if kind[at] == POST:
            message[operand[at]].early = size[operand[at]] < buffered


def new_messages(
    program: Program, route: NDArray[np.int32], buffered_bytes: int, eager_bytes: int
) -> NDArray[np.void]:
    """Return the messages before they begin: their routes, which start when they are sent, and who waits for them.

    Nobody knows when a rank that receives from anywhere is ready: what it gets starts at once.

    Parameters
    ----------
    program : Program
        Their sizes, and who posts receives.
    route : ndarray, int32[message]
        Their routes (-1: both ranks are on one host).
    buffered_bytes, eager_bytes : int
        Smaller messages start when they are sent, and let the sender go on.

    Returns
    -------
    ndarray
        Records `MESSAGE`.
    """
    message = np.empty(program.messages, MESSAGE)
    _set(route, program.size_bytes, eager_bytes, message)
    _posted(program.kind, program.operand, program.size_bytes, buffered_bytes, message)
    return message


@kernel
def private_routes(first, last, route_link, links):  # type: ignore[no-untyped-def]
    """Tell which routes have no link that another one has, bool[route]."""
    users = np.zeros(links, np.int32)
    for r in range(len(first)):
        for e in range(first[r], last[r]):
            users[route_link[e]] += 1
    private = np.ones(len(first), np.bool_)
    for r in range(len(first)):
        for e in range(first[r], last[r]):
            if users[route_link[e]] > 1:
                private[r] = False
    return private


@kernel
def set_routes(route, first, last, latency, weight, bound, inside, host, route_link, capacity):  # type: ignore[no-untyped-def]
    """Set records of routes from arrays of their fields, and find the narrowest link of each."""
    for r in range(len(route)):
        narrow = route_link[first[r]]
        for e in range(first[r], last[r]):
            if capacity[route_link[e]] < capacity[narrow]:
                narrow = route_link[e]
        route[r].first, route[r].last, route[r].latency = first[r], last[r], latency[r]
        route[r].weight, route[r].bound, route[r].inside = weight[r], bound[r], inside[r]
        route[r].host, route[r].narrow, route[r].alone = host[r], narrow, -1
        route[r].rate = min(capacity[narrow], bound[r])
