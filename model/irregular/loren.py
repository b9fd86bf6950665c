"""LOREN: tables with entries for near nodes, looked up by the nearest destination on the floor plan.

Source: spec compact-routing.md "LOREN"; Kawano's thesis (seed 002), algorithm 1 and section 4.3.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopforge.model.errors import UserError
from hopforge.model.irregular.neighbours import distances
from hopforge.model.kernel.compile import kernel

__all__ = ["FloorPlan", "LorenTables", "loren_chosen", "loren_entry", "loren_next_hops", "loren_path", "loren_tables"]

MAX_NODES_WITH_DISTANT_ENTRIES = 32768
"""Above this many nodes only the tables of least size are built: distant entries need all distances, nodes² bytes."""
_SORTED_AT_ONCE = 256  # nodes: what the order of entries takes is more than the entries themselves


class FloorPlan(NamedTuple):
    """Where nodes stand on an n×n grid; places may be empty.

    Attributes
    ----------
    side : int
        n.
    place : ndarray, int32[node]
        Node i stands at (place[i] mod n, place[i] div n); increasing.
    """

    side: int
    place: NDArray[np.int32]


@dataclass(frozen=True)
class LorenTables:
    """Routing tables of all nodes.

    Attributes
    ----------
    plan : FloorPlan
        Where the nodes stand.
    destination, successor, hops : ndarray, int32[node, entry]
        An entry: destination, next node, distance to the destination in hops. Sorted by (hops, destination);
        unused entries have -1.
    entries : ndarray, int32[node]
        Number of entries.
    least_entries : int
        Smallest ``t_max`` that this network allows.
    """

    plan: FloorPlan
    destination: NDArray[np.int32]
    successor: NDArray[np.int32]
    hops: NDArray[np.int32]
    entries: NDArray[np.int32]
    least_entries: int

    def entry_bits(self) -> int:
        """Bits of one entry: two node numbers, 2·log2 N (section 4.4.2.2)."""
        return 2 * max(1, (self.plan.side**2 - 1).bit_length())


@kernel
def _add(u, v, w, h, destination, successor, hops, entries):  # type: ignore[no-untyped-def]
    """Add an entry unless it is there; False if there is no room."""
    for k in range(entries[u]):
        if destination[u, k] == v:
            return True
    if entries[u] == destination.shape[1]:
        return False
    k = entries[u]
    destination[u, k], successor[u, k], hops[u, k] = v, w, h
    entries[u] = k + 1
    return True


@kernel
def _beside(side, place, node_at, v, found):  # type: ignore[no-untyped-def]
    """Collect the nodes without another one in the rectangle between them and v; returns their number.

    Where no place is empty these are the nodes at distance 1. From any node u there is one of them in the rectangle
    between u and v, nearer to u than v is.
    """
    x, y = place[v] % side, place[v] // side
    count = 0
    for sx in (-1, 1):
        for sy in (-1, 1):
            bound, dx = side, 0  # nodes at bound and above have another one in between
            while bound > 0 and 0 <= x + sx * dx < side:
                dy = 1 if dx == 0 else 0
                while dy < bound and 0 <= y + sy * dy < side:
                    u = node_at[(y + sy * dy) * side + x + sx * dx]
                    if u >= 0:
                        new = True
                        for k in range(count):  # nodes straight ahead are in two quadrants
                            new &= found[k] != u
                        if new:
                            found[count] = u
                            count += 1
                        bound = dy
                        break
                    dy += 1
                dx += 1
    return count


@kernel
def _near_entries(neighbours, side, place, destination, successor, hops, entries):  # type: ignore[no-untyped-def]
    """Take steps 1 and 2; returns -1, or the node whose table is too small, or -2 - a node that cannot be reached."""
    nodes, degree = neighbours.shape
    for u in range(nodes):
        for k in range(degree):
            if neighbours[u, k] >= 0 and not _add(
                u, neighbours[u, k], neighbours[u, k], 1, destination, successor, hops, entries
            ):
                return u
    node_at = np.full(side * side, -1, np.int32)
    for u in range(nodes):
        node_at[place[u]] = u
    stamp = np.full(nodes, -1, np.int32)
    distance = np.zeros(nodes, np.int32)
    queue = np.empty(nodes, np.int32)
    around = np.empty(4 * side, np.int32)
    sources = np.empty(4 * side, np.int32)
    for j in range(nodes):
        wanted = 0
        for a in range(_beside(side, place, node_at, j, around)):
            adjacent = False
            for k in range(degree):
                adjacent |= neighbours[j, k] == around[a]
            if not adjacent:
                sources[wanted] = around[a]
                wanted += 1
        if wanted == 0:
            continue
        # breadth-first from j until all wanted nodes have their distance
        stamp[j], distance[j], queue[0] = j, 0, j
        head, tail, missing = 0, 1, wanted
        while missing > 0:
            if head == tail:
                return -2 - j
            u = queue[head]
            head += 1
            for k in range(degree):
                w = neighbours[u, k]
                if w < 0:
                    break
                if stamp[w] != j:
                    stamp[w], distance[w] = j, distance[u] + 1
                    queue[tail] = w
                    tail += 1
                    for s in range(wanted):
                        if sources[s] == w:
                            missing -= 1
        for s in range(wanted):
            u = sources[s]
            while distance[u] > 1:
                for k in range(degree):
                    w = neighbours[u, k]
                    if stamp[w] == j and distance[w] == distance[u] - 1:
                        break
                if not _add(u, j, w, distance[u], destination, successor, hops, entries):
                    return u
                u = w
    return -1


@kernel
def _tree_successor(neighbours, distance, v, u):  # type: ignore[no-untyped-def]
    """Successor of u in the tree of v: the lowest neighbour that is nearer."""
    for k in range(neighbours.shape[1]):
        w = neighbours[u, k]
        if w >= 0 and distance[v, w] + 1 == distance[v, u]:
            return w
    return -1


@kernel
def _distant_entries(neighbours, distance, t_max, destination, successor, hops, entries):  # type: ignore[no-untyped-def]
    """Step 3: breadth-first over all trees at once, from the neighbours of the roots."""
    nodes, degree = neighbours.shape
    front = np.empty((1 << 16, 2), np.int32)
    count = 0
    for j in range(nodes):
        for k in range(degree):
            i = neighbours[j, k]
            if i < 0:
                break
            if count == len(front):
                front = np.concatenate((front, np.empty_like(front)))
            front[count, 0], front[count, 1] = i, j
            count += 1
    while count > 0:
        behind = np.empty((max(count * 2, 16), 2), np.int32)
        found = 0
        for p in range(count):
            u, v = front[p, 0], front[p, 1]
            w = _tree_successor(neighbours, distance, v, u)
            present = False
            for k in range(entries[u]):
                if destination[u, k] == v:
                    present = True
                    break
            if not present:
                if entries[u] >= t_max:
                    continue
                _add(u, v, w, distance[v, u], destination, successor, hops, entries)
            for k in range(degree):
                x = neighbours[u, k]
                if x < 0:
                    break
                if distance[v, x] == distance[v, u] + 1 and _tree_successor(neighbours, distance, v, x) == u:
                    if found == len(behind):
                        behind = np.concatenate((behind, np.empty_like(behind)))
                    behind[found, 0], behind[found, 1] = x, v
                    found += 1
        front, count = behind, found


def _sorted_entries(
    destination: NDArray[np.int32], successor: NDArray[np.int32], hops: NDArray[np.int32], entries: NDArray[np.int32]
) -> list[NDArray[np.int32]]:
    """Return the three arrays as wide as the longest table, the entries of each node by hops, then by destination."""
    width = int(entries.max())
    arrays = [array[:, :width] for array in (destination, successor, hops)]
    result = [np.empty((len(entries), width), np.int32) for _ in arrays]
    for first in range(0, len(entries), _SORTED_AT_ONCE):
        rows = slice(first, first + _SORTED_AT_ONCE)
        key = arrays[2][rows].astype(np.int64) << 32 | arrays[0][rows]
        key[np.arange(width) >= entries[rows, None]] = np.iinfo(np.int64).max
        order = np.argsort(key, axis=1, kind="stable")
        for array, ordered in zip(arrays, result, strict=True):
            ordered[rows] = np.take_along_axis(array[rows], order, axis=1)
    return result


def _full_plan(nodes: int) -> FloorPlan:
    side = round(nodes**0.5)
    if side * side != nodes:
        raise UserError(
            f"tables.scheme: loren needs an n×n floor plan; the number of routers must be a square, not {nodes}"
        )
    return FloorPlan(side, np.arange(nodes, dtype=np.int32))


def loren_tables(neighbours: NDArray[np.int32], t_max: int | None = None, plan: FloorPlan | None = None) -> LorenTables:
    """Tables of all nodes.

    Parameters
    ----------
    neighbours : ndarray, int32[node, degree]
        As `neighbour_array` gives them.
    t_max : int, optional
        Most entries of a table; None: only the entries that forwarding needs (steps 1 and 2).
    plan : FloorPlan, optional
        Where the nodes stand; by default node i at (i mod n, i div n). Where places are empty, step 2 takes the pairs
        of nodes without another node in the rectangle between them: of a full plan those are the pairs at distance 1,
        and a packet finds a nearer node in every case, which is what the proof of delivery needs.

    Raises
    ------
    UserError
        No square number of nodes, an unconnected network, `t_max` below the need of some node (the message names the
        least that is possible), or more than 32768 nodes with a `t_max`.
    """
    nodes = neighbours.shape[0]
    plan = plan or _full_plan(nodes)
    if t_max is not None and nodes > MAX_NODES_WITH_DISTANT_ENTRIES:
        raise UserError(
            f"LOREN with t_max needs all distances: at most {MAX_NODES_WITH_DISTANT_ENTRIES} routers, not {nodes}"
        )
    capacity = 32
    while True:
        shape = (nodes, capacity)
        destination, successor, hops = (np.full(shape, -1, np.int32) for _ in range(3))
        entries = np.zeros(nodes, np.int32)
        failed = int(_near_entries(neighbours, *plan, destination, successor, hops, entries))
        if failed <= -2:
            raise UserError(
                f"topology: the network is not connected: router {-2 - failed} cannot be reached from all others"
            )
        if failed == -1:
            break
        capacity *= 2
    least = int(entries.max())
    if t_max is not None:
        if t_max < least:
            raise UserError(f"tables.t_max: must be at least {least} for loren on this network, not {t_max}")
        room = min(t_max, nodes)  # no table has an entry for each node
        if room > capacity:
            wider = ((0, 0), (0, room - capacity))
            destination, successor, hops = (
                np.pad(a, wider, constant_values=-1) for a in (destination, successor, hops)
            )
        _distant_entries(neighbours, distances(neighbours), t_max, destination, successor, hops, entries)
    destination, successor, hops = _sorted_entries(destination, successor, hops, entries)
    return LorenTables(plan, destination, successor, hops, entries, least)


@kernel
def loren_entry(side, place, destination, entries, u, v):  # type: ignore[no-untyped-def]
    """Entry of u that a packet for v takes: the first of those nearest to v on the floor plan; -1 if u has none."""
    best, nearest = -1, 1 << 30
    x, y = place[v] % side, place[v] // side
    for k in range(entries[u]):
        there = place[destination[u, k]]
        far = abs(there % side - x) + abs(there // side - y)
        if far < nearest:
            best, nearest = k, far
    return best


@kernel
def _all_next(side, place, destination, successor, entries, table):  # type: ignore[no-untyped-def]
    nodes = len(entries)
    column = np.empty(destination.shape[1], np.int32)
    row = np.empty(destination.shape[1], np.int32)
    for u in range(nodes):
        count = entries[u]
        for k in range(count):
            column[k], row[k] = place[destination[u, k]] % side, place[destination[u, k]] // side
        for v in range(nodes):
            if u == v:
                table[u, v] = -1
                continue
            x, y = place[v] % side, place[v] // side
            best, nearest = 0, 1 << 30
            for k in range(count):
                far = abs(column[k] - x) + abs(row[k] - y)
                if far < nearest:
                    best, nearest = k, far
            table[u, v] = successor[u, best]


def loren_next_hops(tables: LorenTables) -> NDArray[np.int32]:
    """Next node for every pair.

    Returns
    -------
    ndarray, int32[node, destination]
        -1 on the diagonal.
    """
    nodes = len(tables.entries)
    table = np.empty((nodes, nodes), np.int32)
    _all_next(*tables.plan, tables.destination, tables.successor, tables.entries, table)
    return table


@kernel
def _all_chosen(side, place, destination, entries, table):  # type: ignore[no-untyped-def]
    for u in range(len(entries)):
        for v in range(len(entries)):
            k = -1 if u == v else loren_entry(side, place, destination, entries, u, v)
            table[u, v] = -1 if k < 0 else destination[u, k]


def loren_chosen(tables: LorenTables) -> NDArray[np.int32]:
    """Destination of the entry that a packet takes, int32[node, destination]; -1 on the diagonal."""
    nodes = len(tables.entries)
    table = np.empty((nodes, nodes), np.int32)
    _all_chosen(*tables.plan, tables.destination, tables.entries, table)
    return table


def loren_path(tables: LorenTables, source: int, destination: int) -> list[int]:
    """Nodes of the path from `source` to `destination`, both included.

    Raises
    ------
    UserError
        If the tables lead in a circle (they are then not LOREN's).
    """
    path = [source]
    while path[-1] != destination:
        k = int(loren_entry(*tables.plan, tables.destination, tables.entries, path[-1], destination))
        path.append(int(tables.successor[path[-1], k]))
        if len(path) > len(tables.entries):
            raise UserError(f"no path from router {source} to router {destination}: the tables lead in a circle")
    return path
