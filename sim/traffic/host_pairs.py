"""The pairs of hosts between which the messages of a program go."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopforge.model.kernel.compile import kernel
from hopforge.sim.traffic.placed import PlacedProgram

#: most pairs of hosts that have a place of their own in a table; more are sorted
MOST_PAIRS = 1 << 26


class HostPairs(NamedTuple):
    """Pairs of different hosts, in increasing order.

    Attributes
    ----------
    source, destination : ndarray, int64[pair]
        Hosts.
    number : ndarray, int32[message]
        Pair of each message; -1: both ranks are on one host.
    """

    source: NDArray[np.int64]
    destination: NDArray[np.int64]
    number: NDArray[np.int32]


@kernel
def _mark(source, destination, host, hosts, table):  # type: ignore[no-untyped-def]
    for m in range(len(source)):
        a, b = host[source[m]], host[destination[m]]
        if a != b:
            table[a * hosts + b] = 0


@kernel
def _give(source, destination, host, hosts, table, number):  # type: ignore[no-untyped-def]
    for m in range(len(source)):
        a, b = host[source[m]], host[destination[m]]
        number[m] = table[a * hosts + b] if a != b else -1


def host_pairs(placed: PlacedProgram, hosts: int) -> HostPairs:
    """Give numbers to the pairs of different hosts between which messages go.

    Parameters
    ----------
    placed : PlacedProgram
        Its messages, and the hosts of its ranks.
    hosts : int
        How many there are.
    """
    program = placed.program
    if placed.ends is not None or hosts * hosts > MOST_PAIRS:
        return _sorted_pairs(placed.source_host.astype(np.int64), placed.destination_host, hosts)
    ends, host = (program.source, program.destination), placed.host.astype(np.int64)
    number = np.empty(program.messages, np.int32)
    table = np.full(hosts * hosts, -1, np.int32)
    _mark(*ends, host, hosts, table)
    pairs = np.flatnonzero(table == 0)
    table[pairs] = np.arange(len(pairs))
    _give(*ends, host, hosts, table, number)
    return HostPairs(pairs // hosts, pairs % hosts, number)


def _sorted_pairs(source: NDArray[np.int64], destination: NDArray[np.integer], hosts: int) -> HostPairs:
    number = np.full(len(source), -1, np.int32)
    remote = source != destination
    pairs, found = np.unique((source * hosts + destination)[remote], return_inverse=True)
    number[remote] = found
    return HostPairs(pairs // hosts, pairs % hosts, number)
