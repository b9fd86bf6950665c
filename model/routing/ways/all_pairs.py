"""Ways between all pairs of routers: which ports a packet may take, and how long its way is.

A *way* from a router to a goal is what one of three rules allows (docs/definitions/any-routing.md): all shortest paths,
one shortest path, or that of section `tables`.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.free_memory import refuse_beyond_memory
from hopforge.model.irregular.failure import linked_tables
from hopforge.model.irregular.tables import next_ports
from hopforge.model.routing.contract.plan import RoutingError
from hopforge.model.routing.graphs.graph import shortest_ports
from hopforge.model.topology import Topology
from hopforge.model.topology.groups import GROUPED_KINDS, router_groups
from hopforge.model.topology.routing_table import distances

#: routers of a network whose ways are kept
MAX_ROUTERS = 16384
#: entries of the table of ways (`ways_table`), whose places are entries, too, but for what does not grow with all pairs
_MOST_ENTRIES = (1 << 31) - (1 << 27)
#: pairs of routers whose ways are sought at once
_BLOCK_PAIRS = 1 << 22
#: links of a way: its length is kept in eight bits
MAX_LENGTH = 255
#: kinds on which the lowest port of all shortest ways is that of dimension order
_ORDERED = ("mesh", "torus", "hyperx", "fully_connected")


@dataclass(frozen=True, eq=False)
class Ways:
    """The ways of a network.

    Attributes
    ----------
    ports : ndarray, uint64[router, goal, word]
        Mask of ports that a packet for router `goal` may take, 64 in a word; 0 on the diagonal.
    length : ndarray, int32[router, goal]
        Links to the goal.
    """

    ports: NDArray[np.uint64]
    length: NDArray[np.int32]

    @property
    def most_ports(self) -> int:
        """Largest number of ports that a packet may choose from; 1 without links: the port of its host."""
        return max(1, int(np.bitwise_count(self.ports).sum(axis=2, dtype=np.int64).max()))


def mask_words(topology: Topology) -> int:
    """Return the words of a mask of the ports of a router."""
    return (topology.max_ports + 63) // 64


def find_ways(topology: Topology, rule: str, name: str, options: dict[str, Any]) -> Ways:
    """Return the ways of a network.

    Parameters
    ----------
    topology : Topology
        The network.
    rule : str
        ``all``, ``one`` or ``tables``.
    name : str
        Of the algorithm, for messages.
    options : dict
        Those of `routing_plan`.

    Raises
    ------
    RoutingError
        Too large a network.
    UserError
        One that needs more memory than there is, with both figures.
    """
    words = mask_words(topology)
    most = min(MAX_ROUTERS, math.isqrt(_MOST_ENTRIES // (2 * words + 1)))
    if topology.routers > most:
        of_ports = f" of {topology.max_ports} ports" if most < MAX_ROUTERS else ""
        raise RoutingError(
            f"routing.algorithm {name} keeps the ways of all pairs of at most {most} routers{of_ports}, not "
            f"{topology.routers}"
        )
    refuse_beyond_memory(topology.routers**2 * (28 + 16 * words), f"the ways of all pairs of the {topology.name}")
    found = _of_tables(topology, options) if rule == "tables" else _shortest(topology, rule)
    if found.length.max(initial=0) > MAX_LENGTH:
        raise RoutingError(
            f"routing.algorithm {name} takes ways of at most {MAX_LENGTH} links, not {int(found.length.max())}"
        )
    return found


def _shortest(topology: Topology, rule: str) -> Ways:
    length = distances(topology)
    if rule == "one" and topology.kind not in _ORDERED:
        return Ways(_single(topology, shortest_ports(topology, length)), length)
    ports = _all_shortest(topology, length)
    return Ways(ports if rule == "all" else _lowest(ports), length)


def groups_of(topology: Topology, name: str) -> NDArray[np.int64]:
    """Return the group of every router: int64[router].

    Raises
    ------
    RoutingError
        A network without groups.
    """
    groups = router_groups(topology)
    if groups is not None:
        return groups
    raise RoutingError(
        f"routing.over: groups needs a topology of kind {', '.join(GROUPED_KINDS)} or slim_fly for routing.algorithm "
        f"{name}, not {topology.kind}"
    )


def ways_to_groups(ways: Ways, groups: NDArray[np.int64], homes: NDArray[np.integer[Any]]) -> Ways:
    """Return the ways to the nearest routers with hosts of each group: arrays [router, group]; none inside it."""
    count = int(groups.max()) + 1
    ports = np.zeros((len(groups), count, ways.ports.shape[2]), np.uint64)
    length = np.zeros((len(groups), count), np.int32)
    for group in range(count):
        inside = homes[groups[homes] == group]
        length[:, group] = ways.length[:, inside].min(axis=1)
        nearest = (ways.length[:, inside] == length[:, group][:, None])[:, :, None]
        ports[:, group] = np.bitwise_or.reduce(np.where(nearest, ways.ports[:, inside], np.uint64(0)), axis=1)
        length[groups == group, group] = 0
        ports[groups == group, group] = 0
    return Ways(ports, length)


def _all_shortest(topology: Topology, length: NDArray[np.int32]) -> NDArray[np.uint64]:
    ports = np.zeros((*length.shape, mask_words(topology)), np.uint64)
    rows = max(_BLOCK_PAIRS // topology.routers, 1)
    for port in range(topology.max_ports):
        linked = np.flatnonzero(topology.peer_router[:, port] >= 0)
        for here in np.split(linked, range(rows, len(linked), rows)):
            nearer = length[topology.peer_router[here, port]] == length[here] - 1
            ports[here, :, port >> 6] |= nearer.astype(np.uint64) << np.uint64(port & 63)
    return ports


def _lowest(ports: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Keep the lowest port of each mask."""
    kept = ports & -ports.astype(np.int64).astype(np.uint64)
    for word in range(1, ports.shape[2]):
        kept[:, :, word][(ports[:, :, :word] != 0).any(axis=2)] = 0
    return kept


def _single(topology: Topology, port: NDArray[np.int32]) -> NDArray[np.uint64]:
    ports = np.zeros((*port.shape, mask_words(topology)), np.uint64)
    for word in range(ports.shape[2]):
        inside = (port >> 6) == word  # of -1 it is -1
        ports[:, :, word][inside] = np.uint64(1) << (port[inside] & 63).astype(np.uint64)
    return ports


def _of_tables(topology: Topology, options: dict[str, Any]) -> Ways:
    if "tables" not in options:
        raise RoutingError("routing.ways tables needs section tables")
    if options["tables"].scheme == "k_shortest":
        raise RoutingError("routing.ways tables needs one path for each pair; tables.scheme=k_shortest has several")
    tables = linked_tables(options["tables"], topology, int(options["seed"]))
    port = next_ports(topology, tables.channels, tables.next_channel)
    routers = np.arange(topology.routers)
    following = np.where(port >= 0, topology.peer_router[routers[:, None], np.maximum(port, 0)], routers[:, None])
    length = np.where(np.eye(topology.routers, dtype=bool), 0, -1).astype(np.int32)
    for links in range(1, topology.routers):
        found = (length < 0) & (length[following, routers[None, :]] == links - 1)
        if not found.any():
            break
        length[found] = links
    return Ways(_single(topology, port), length)
