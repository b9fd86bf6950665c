"""Any connected graph, read from a text file with two router numbers a line."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config.lookup import AddressConfig
from hopforge.model.config.topology import EdgeListConfig
from hopforge.model.topology.base import MAX_ROUTERS, Topology, TopologyError, assemble, check_size
from hopforge.model.topology.limits import check_host_numbers


def read_edges(path: Path) -> tuple[tuple[int, int], ...]:
    """Read the edges of `path`: two router numbers a line; blank lines and what follows ``#`` are ignored.

    Returns
    -------
    tuple of (int, int)
        In the order of the file, each with the smaller number first.

    Raises
    ------
    TopologyError
        Unreadable file, malformed line, self-loop, duplicate (each with file and line), or no edge at all.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise TopologyError("topology.file", f"cannot read {path}: {reason}") from error
    seen: dict[tuple[int, int], int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split("#", 1)[0].split()
        if not words:
            continue
        where = f"{path}:{number}"
        if len(words) != 2 or not all(word.isascii() and word.isdigit() for word in words):
            raise TopologyError(where, f"expected two router numbers, not {line.strip()!r}")
        low, high = sorted(map(int, words))
        if high >= MAX_ROUTERS:
            raise TopologyError(where, f"router number {high} is beyond the largest, {MAX_ROUTERS - 1}")
        if low == high:
            raise TopologyError(where, f"router {low} is linked to itself")
        if (low, high) in seen:
            raise TopologyError(where, f"link {low} {high} is already on line {seen[low, high]}")
        seen[low, high] = number
    if not seen:
        raise TopologyError(str(path), "holds no link")
    return tuple(seen)


def build_edge_list(config: EdgeListConfig, address: AddressConfig, folder: Path = Path()) -> Topology:
    """Build the graph of an edge list; a relative file name is taken from `folder`.

    Routers are numbered as in the file, from 0 to the largest number. Ports: hosts ``[0, c)``, then the neighbours in
    increasing number. The address of a host is its number, router·c + terminal.

    Raises
    ------
    TopologyError
        A bad file (see `read_edges`), a disconnected graph (naming a pair without a path), or too many hosts.
    """
    path = folder / config.file
    edges = np.array(read_edges(path), dtype=np.int64)
    terminals, routers = config.hosts_per_router, int(edges.max()) + 1
    check_host_numbers("topology.file", routers * terminals, address)
    source = np.concatenate([edges[:, 0], edges[:, 1]])
    target = np.concatenate([edges[:, 1], edges[:, 0]])
    order = np.lexsort((target, source))
    source, target = source[order], target[order]
    degree = np.bincount(source, minlength=routers)
    first = np.concatenate([[0], np.cumsum(degree)])
    check_size("topology.file", routers, terminals + int(degree.max()))
    _check_connected(path, first, target)
    port = terminals + np.arange(len(source)) - first[source]
    peer_router = np.full((routers, terminals + int(degree.max())), -1, dtype=np.int32)
    peer_port = np.full_like(peer_router, -1)
    peer_router[source, port] = target
    # the reverse channel of (s, t) sits where (t, s) was sorted
    back = np.searchsorted(source * routers + target, target * routers + source)
    peer_port[source, port] = port[back]
    host = np.arange(routers * terminals, dtype=np.int64)
    return assemble(
        name=f"graph {config.file.name}", kind="edge_list", peer_router=peer_router, peer_port=peer_port,
        host_router=host // terminals, host_port=host % terminals, host_address=host, ports=terminals + degree,
        params={"file": config.file.name, "links": len(edges), "hosts_per_router": terminals},
    )


def _check_connected(path: Path, first: NDArray[np.int64], target: NDArray[np.int64]) -> None:
    reached = np.zeros(len(first) - 1, dtype=bool)
    reached[0] = True
    frontier = np.array([0])
    while len(frontier):
        ends = np.concatenate([target[first[router]:first[router + 1]] for router in frontier])
        frontier = np.unique(ends[~reached[ends]])
        reached[frontier] = True
    if not reached.all():
        lost = int(np.argmin(reached))
        raise TopologyError(str(path), f"the graph is disconnected: no path from router 0 to router {lost}")
