"""Messages of a program as the flow engine needs them: their routes, and when they start."""

import numpy as np
from numpy.typing import NDArray

from hopforge.model.kernel.compile import kernel
from hopforge.model.workload.operations import POST
from hopforge.model.workload.program import Program

#: most pairs of hosts that have a place of their own in a table; more are sorted
MOST_PAIRS = 1 << 26


@kernel
def _mark(source, destination, host, hosts, number):  # type: ignore[no-untyped-def]
    for m in range(len(source)):
        a, b = host[source[m]], host[destination[m]]
        if a != b:
            number[a * hosts + b] = 0


@kernel
def _give(source, destination, host, hosts, number, route):  # type: ignore[no-untyped-def]
    for m in range(len(source)):
        a, b = host[source[m]], host[destination[m]]
        route[m] = number[a * hosts + b] if a != b else -1


def pairs_of(
    program: Program, host: NDArray[np.integer], hosts: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Number the pairs of different hosts between which messages go.

    Parameters
    ----------
    program : Program
        Its messages.
    host : ndarray, int[rank]
        Host of each rank.
    hosts : int
        How many there are.

    Returns
    -------
    pairs : ndarray, int64[pair]
        source host · hosts + destination host, in increasing order.
    number : ndarray, int32[message]
        Pair of each message; -1: both ranks are on one host.
    """
    if hosts * hosts <= MOST_PAIRS:
        number = np.empty(program.messages, np.int32)
        table = np.full(hosts * hosts, -1, np.int32)
        _mark(program.source, program.destination, host, hosts, table)
        pairs = np.flatnonzero(table == 0)
        table[pairs] = np.arange(len(pairs))
        _give(program.source, program.destination, host, hosts, table, number)
        return pairs, number
    return pairs_between(host[program.source], host[program.destination], hosts)


def pairs_between(
    source: NDArray[np.integer], destination: NDArray[np.integer], hosts: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Do what `pairs_of` does with the hosts at both ends of each message, int[message]."""
    number = np.full(len(source), -1, np.int32)
    remote = source != destination
    pairs, found = np.unique((source.astype(np.int64) * hosts + destination)[remote], return_inverse=True)
    number[remote] = found
    return pairs, number


@kernel
def _posted(kind, operand, message):  # type: ignore[no-untyped-def]
    for at in range(len(kind)):
        if kind[at] == POST:
            message[operand[at]].early = False
            message[operand[at]].eager = False


@kernel
def _set(message, number, size, buffered, eager):  # type: ignore[no-untyped-def]
    for m in range(len(message)):
        message[m].route, message[m].slot = number[m], -1
        message[m].early |= size[m] < buffered
        message[m].eager |= size[m] < eager


def set_messages(
    message: NDArray[np.void], program: Program, number: NDArray[np.int32], buffered_bytes: int, eager_bytes: int
) -> None:
    """Set routes of messages, which start as soon as they are sent, and for which no sender waits.

    Nobody knows when a rank that receives from anywhere is ready: what it gets starts at once.
    """
    message["early"] = message["eager"] = True
    _posted(program.kind, program.operand, message)
    _set(message, number, program.size_bytes, buffered_bytes, eager_bytes)


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
