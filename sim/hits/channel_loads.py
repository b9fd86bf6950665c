"""Exact mean loads of the channels of a dragonfly under a traffic pattern, and the throughput that they allow.

Every host offers 1; the load of a channel is what crosses it then, and the bound is 1 / the largest load (1 at most is
what a channel carries). No simulation: all ways are enumerated with their probabilities.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.kernel.compile import kernel
from hopforge.model.routing.dragonflies.ways import LINKS, P, port_to_host, ways_table
from hopforge.model.topology import Topology

Loads = NDArray[np.float64]


def uniform_rates(topology: Topology) -> Loads:
    """Rates between routers, float64[source, destination], when every host sends to all hosts alike (itself too)."""
    p = int(topology.params["p"])
    return np.full((topology.routers, topology.routers), p / topology.routers)


def adversarial_rates(topology: Topology, shift: int) -> Loads:
    """Rates between routers when every host sends to all hosts of group G + `shift` alike."""
    p, a, g = (int(topology.params[name]) for name in ("p", "a", "g"))
    group = np.arange(topology.routers) // a
    return np.where(group[None, :] == (group[:, None] + shift) % g, p / a, 0.0)


def minimal_loads(topology: Topology, rates: Loads) -> Loads:
    """Load of every output port, float64[router, port], when `rates` go minimal ways."""
    load = np.zeros((topology.routers, topology.max_ports))
    source, goal = np.nonzero(rates)
    flows = np.stack([source, goal], axis=1)
    _walk(ways_table(topology, 1), topology.peer_router, flows, rates[source, goal], load)
    return load


@kernel
def _walk(table: Any, peer: Any, flows: Any, rate: Any, load: Any) -> None:
    """Add every flow (source, destination router) to the ports of its minimal way."""
    hosts = table[P] if table[LINKS] > 1 else 1  # that may go different ways
    for k in range(len(flows) * hosts):
        here, goal = flows[k // hosts, 0], flows[k // hosts, 1]
        number = goal * table[P] + k % hosts
        while here != goal:
            port = port_to_host(table, here, goal * table[P], number)
            load[here, port] += rate[k // hosts] / hosts
            here = peer[here, port]


def valiant_loads(topology: Topology, rates: Loads, *, to_router: bool) -> Loads:
    """Load of every output port with a random intermediate group (VALg) or, with `to_router`, router (VALn).

    The group is neither that of the source nor that of the destination; rates inside a group go direct.
    """
    a, g = int(topology.params["a"]), int(topology.params["g"])
    R = topology.routers
    group = np.arange(R) // a
    inside = group[:, None] == group[None, :]
    direct = np.where(inside, rates, 0.0)
    first, second = np.zeros((R, R)), np.zeros((R, R))
    entrances = _entrances(topology)
    for via in range(g):
        allowed = ~inside & (group[:, None] != via) & (group[None, :] != via)
        part = np.where(allowed, rates, 0.0) / max(g - 2, 1)
        members = np.arange(via * a, (via + 1) * a)
        if to_router:
            first[:, members] += part.sum(axis=1)[:, None] / a
            second[members] += part.sum(axis=0)[None, :] / a
            continue
        for source in range(g):
            if source == via:
                continue
            rows = slice(source * a, (source + 1) * a)
            entrance = int(entrances[source, via])
            first[rows, entrance] += part[rows].sum(axis=1)
            second[entrance] += part[rows].sum(axis=0)
    return minimal_loads(topology, direct + first + second)


def _entrances(topology: Topology) -> NDArray[np.int64]:
    """Router of group `via` at which minimal ways from group `source` come in: int64[source, via].

    One link for each pair of groups.
    """
    a, g = int(topology.params["a"]), int(topology.params["g"])
    found = np.full((g, g), -1, np.int64)
    router, port = np.nonzero(topology.peer_router >= 0)
    peer = topology.peer_router[router, port]
    between = router // a != peer // a
    found[router[between] // a, peer[between] // a] = peer[between]
    return found


def throughput_bound(topology: Topology, load: Loads) -> float:
    """Share of the injection rate at which the first channel between routers is full."""
    return 1.0 / float(load[topology.peer_router >= 0].max())
