"""Connected random regular graphs, without and with a limit to the length of links on a square floor plan."""

from typing import Any

import numpy as np
from numpy.random import Generator

from hopforge.model.config.lookup import AddressConfig
from hopforge.model.config.topology import LayoutRandomConfig, RandomRegularConfig
from hopforge.model.kernel.compile import kernel
from hopforge.model.topology.base import Topology, TopologyError, check_size
from hopforge.model.topology.graph import Numbers, assemble_graph, components, equal_hosts
from hopforge.model.topology.limits import check_addresses

#: graphs that are drawn until one is connected
MAX_TRIES = 200
#: switches tried per link to mix a graph of limited length
SWITCHES_PER_LINK = 20
#: steps per link end after which no graph of limited length is expected to be found
REPAIRS_PER_END = 1000


def build_random_regular(config: RandomRegularConfig, address: AddressConfig) -> Topology:
    """Build a connected random regular graph; equal sections give equal graphs.

    Raises
    ------
    TopologyError
        Too large, or none of `MAX_TRIES` graphs was connected.
    """
    check_addresses(config, address)
    check_size("topology.routers", config.routers, config.degree + config.hosts_per_router)
    generator = np.random.default_rng((config.seed, config.routers, config.degree))
    edges = _connected(
        lambda: random_regular_edges(config.routers, config.degree, generator), config.routers, "topology.degree"
    )
    return assemble_graph(
        edges,
        name=f"random regular graph of {config.routers} routers, degree {config.degree}, seed {config.seed}",
        kind="random_regular",
        host_router=equal_hosts(config.routers, config.hosts_per_router),
        params={
            "routers": config.routers,
            "degree": config.degree,
            "seed": config.seed,
            "hosts_per_router": config.hosts_per_router,
        },
        key="topology.degree",
        routers=config.routers,
    )


def build_layout_random(config: LayoutRandomConfig, address: AddressConfig) -> Topology:
    """Build a layout-conscious random graph (spec/compact-routing.md); equal sections give equal graphs.

    Raises
    ------
    TopologyError
        Too large, no graph found with links so short, or none of `MAX_TRIES` graphs was connected.
    """
    check_addresses(config, address)
    n, routers = config.n, config.n**2
    check_size("topology.n", routers, config.degree + config.hosts_per_router)
    generator = np.random.default_rng((config.seed, n, config.degree, config.length))
    edges = _connected(
        lambda: layout_random_edges(n, config.degree, config.length, generator), routers, "topology.length"
    )
    number = np.arange(routers)
    return assemble_graph(
        edges,
        name=f"layout-conscious random graph {n}x{n}, degree {config.degree}, length {config.length}, "
        f"seed {config.seed}",
        kind="layout_random",
        host_router=equal_hosts(routers, config.hosts_per_router),
        params={
            "n": n,
            "degree": config.degree,
            "length": config.length,
            "seed": config.seed,
            "hosts_per_router": config.hosts_per_router,
        },
        key="topology.length",
        routers=routers,
        position=np.stack([number % n, number // n], axis=1).astype(np.float64),
    )


def _connected(draw: Any, routers: int, key: str) -> Numbers:
    for _ in range(MAX_TRIES):
        edges: Numbers = draw()
        if components(edges, routers)[0] == 1:
            return edges
    raise TopologyError(key, f"none of {MAX_TRIES} random graphs was connected")


def random_regular_edges(routers: int, degree: int, generator: Generator) -> Numbers:
    """Draw a simple random regular graph, connected or not (Steger and Wormald 1999).

    Link ends are paired at random; pairs that would make a loop or a second link go back and are paired again. The
    distribution is asymptotically uniform.

    Returns
    -------
    ndarray, int64[link, 2]
        The smaller number first, sorted.
    """
    while True:
        ends = np.repeat(np.arange(routers, dtype=np.int64), degree)
        found = np.zeros(0, np.int64)
        while len(ends):
            pairs = np.sort(generator.permutation(ends).reshape(-1, 2), axis=1)
            code = pairs[:, 0] * routers + pairs[:, 1]
            once = np.zeros(len(code), bool)
            once[np.unique(code, return_index=True)[1]] = True
            good = once & (pairs[:, 0] != pairs[:, 1]) & ~np.isin(code, found)
            found = np.concatenate([found, code[good]])
            ends = pairs[~good].ravel()
            if not good.any() and not _can_go_on(np.unique(ends), found, routers):
                break  # only loops and second links are left: begin again
        if not len(ends):
            found.sort()
            return np.stack([found // routers, found % routers], axis=1)


def _can_go_on(left: Numbers, found: Numbers, routers: int) -> bool:
    """Return whether two of the routers `left` are not linked yet."""
    a, b = np.triu_indices(len(left), 1)
    return bool((~np.isin(left[a] * routers + left[b], found)).any())


def layout_random_edges(n: int, degree: int, length: int, generator: Generator) -> Numbers:
    """Draw a simple random regular graph on an n × n grid without links of a Manhattan length above `length`.

    Link ends are joined at random to ends within reach; a router whose neighbourhood has none left takes the place of
    one end of a random link there. Then random switches (two links exchange ends where degree, simplicity and length
    allow it) mix the graph: every graph is as likely to be changed into another as the other way round.

    Returns
    -------
    ndarray, int64[link, 2]
        The smaller number first, sorted.

    Raises
    ------
    TopologyError
        Nothing found.
    """
    routers = n * n
    peers = np.full((routers, degree), -1, np.int32)
    count = np.zeros(routers, np.int64)
    side = np.arange(-min(length, n - 1), min(length, n - 1) + 1)
    dx, dy = np.meshgrid(side, side)
    near = (np.abs(dx) + np.abs(dy) <= length) & ((dx != 0) | (dy != 0))
    steps = np.stack([dx[near], dy[near]], axis=1).astype(np.int64)
    waiting = generator.permutation(np.repeat(np.arange(routers, dtype=np.int64), degree))
    budget = REPAIRS_PER_END * len(waiting)
    block = min(max(4 * len(waiting), 4096), 1 << 22)
    done = 0
    stack = np.empty(2 * len(waiting) + 2, np.int64)
    stack[: len(waiting)] = waiting
    left = len(waiting)
    while left > 0 and done < budget:
        left = _join(n, steps, peers, count, stack, left, generator.integers(0, 1 << 62, block))
        done += block
    if left > 0:
        raise TopologyError(
            "topology.length", f"no graph of degree {degree} found on {n}x{n} routers with links up to length {length}"
        )
    a = np.repeat(np.arange(routers, dtype=np.int64), degree)
    b = peers.ravel().astype(np.int64)
    edges = np.stack([a, b], axis=1)[a < b]
    for _ in range(0, SWITCHES_PER_LINK * len(edges), block):
        _switch(n, length, peers, edges, generator.integers(0, 1 << 62, 2 * min(block, SWITCHES_PER_LINK * len(edges))))
    edges.sort(axis=1)
    return edges[np.lexsort((edges[:, 1], edges[:, 0]))]


@kernel
def _linked(peers, a, b):  # type: ignore[no-untyped-def]
    found = False
    for k in range(peers.shape[1]):
        found |= peers[a, k] == b
    return found


@kernel
def _replace(peers, a, old, new):  # type: ignore[no-untyped-def]
    for k in range(peers.shape[1]):
        if peers[a, k] == old:
            peers[a, k] = new
            return


@kernel
def _join(n, steps, peers, count, stack, left, draws):  # type: ignore[no-untyped-def]
    """Join the free link ends ``stack[:left]``, two random numbers a step; returns how many are left."""
    degree, reach = peers.shape[1], len(steps)
    for k in range(0, len(draws) - 1, 2):
        while left > 0 and count[stack[left - 1]] == degree:
            left -= 1  # this end was taken from the other side
        if left == 0:
            return 0
        u = stack[left - 1]
        start = draws[k] % reach
        v = -1
        for j in range(reach):
            s = start + j if start + j < reach else start + j - reach
            x, y = u % n + steps[s, 0], u // n + steps[s, 1]
            if 0 <= x < n and 0 <= y < n:
                w = y * n + x
                if count[w] < degree and not _linked(peers, u, w):
                    v = w
                    break
        if v >= 0:
            peers[u, count[u]] = v
            peers[v, count[v]] = u
            count[u] += 1
            count[v] += 1
            left -= 1
            continue
        # nobody near has a free end: take one end of a link of a random router within reach
        s = start
        x, y = u % n + steps[s, 0], u // n + steps[s, 1]
        if not (0 <= x < n and 0 <= y < n):
            continue
        v = y * n + x
        if _linked(peers, u, v):
            continue
        w = peers[v, draws[k + 1] % degree]
        if w == u:
            continue
        _replace(peers, v, w, u)
        for j in range(degree):
            if peers[w, j] == v:
                count[w] -= 1
                peers[w, j] = peers[w, count[w]]
                peers[w, count[w]] = -1
                break
        peers[u, count[u]] = v
        count[u] += 1
        stack[left - 1] = w
    return left


@kernel
def _switch(n, length, peers, edges, draws):  # type: ignore[no-untyped-def]
    """Try one switch per two random numbers: a-b, c-d become a-c, b-d or a-d, b-c."""
    for k in range(0, len(draws) - 1, 2):
        e, f = draws[k] % len(edges), draws[k + 1] % len(edges)
        if e == f:
            continue
        a, b = edges[e]
        c, d = edges[f]
        if (draws[k] >> 60) & 1:
            c, d = d, c
        if a in (c, d) or b in (c, d):
            continue
        if abs(a % n - c % n) + abs(a // n - c // n) > length or abs(b % n - d % n) + abs(b // n - d // n) > length:
            continue
        if _linked(peers, a, c) or _linked(peers, b, d):
            continue
        _replace(peers, a, b, c)
        _replace(peers, b, a, d)
        _replace(peers, c, d, a)
        _replace(peers, d, c, b)
        edges[e, 0], edges[e, 1] = a, c
        edges[f, 0], edges[f, 1] = b, d
