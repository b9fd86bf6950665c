"""Paths of packets: every switch looks up its key of the destination and follows it to the next switch.

The keys are those of `model.lookup.node_reduction`; this module knows which port a key stands for in a `Topology`. An
arbitrary graph has no keys and takes shortest-path tables. Of parallel links `routing.links` chooses one.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopforge.model.config.lookup import AddressConfig
from hopforge.model.kernel.array_record import ArrayRecord
from hopforge.model.kernel.compile import inlined, kernel
from hopforge.model.lookup.human_keys import UpChoice
from hopforge.model.lookup.key_kernel import KIND_BITS, KeyTables, reduce_key
from hopforge.model.lookup.node_reduction import NodeReduction
from hopforge.model.lookup.params import MEMBER_BITS
from hopforge.model.numbers.address import AddressFormat
from hopforge.model.topology import Topology
from hopforge.model.topology.parallel_links import (
    LinkRule,
    ParallelPorts,
    group_ports,
    link_number,
    links_of_a_pair,
    parallel_ports,
    refuse_adaptive,
)
from hopforge.model.topology.routing_table import shortest_path_ports


class _RouteTables(ArrayRecord):
    """`Routes` for kernels.

    Attributes
    ----------
    keys : KeyTables
        The reduction.
    own, level : ndarray, int64[router]
        Places of the switches.
    ports : ndarray, int32[router, key or router]
        Output ports.
    host_address, host_router, host_port : ndarray [host]
        Where hosts are.
    links, hashed : int
        Links of a pair of groups; 1: a hash chooses among parallel ones.
    count, parallel : ndarray, int32[router, port], int32[router, port, number]
        Parallel links (`ParallelPorts`).
    """

    keys: KeyTables
    own: NDArray[np.int64]
    level: NDArray[np.int64]
    ports: NDArray[np.int32]
    host_address: NDArray[np.int64]
    host_router: NDArray[np.int32]
    host_port: NDArray[np.int32]
    links: int
    hashed: int
    count: NDArray[np.int32]
    parallel: NDArray[np.int32]


class _Neighbours(ArrayRecord):
    """Where ports lead, and the hosts at them: int32[router, port] of a `Topology`."""

    peer_router: NDArray[np.int32]
    peer_port: NDArray[np.int32]
    host_at: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Paths:
    """Ways through the network, one per (source host, destination host).

    Attributes
    ----------
    first : ndarray, int64[path + 1]
        Where the switches of a path start in the other arrays.
    router, port : ndarray, int32[hop]
        The switch, and the input port at which the packet enters it (a host port at the first one).
    output : ndarray, int32[hop]
        The port at which it leaves.
    """

    first: NDArray[np.int64]
    router: NDArray[np.int32]
    port: NDArray[np.int32]
    output: NDArray[np.int32]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Switches on each path."""
        return np.diff(self.first)


class Routes:
    """The routing of a network.

    Parameters
    ----------
    topology : Topology
        The network.
    address : AddressConfig
        Its addresses.
    up_choice : {"d_mod_k", "highest_mismatch"}
        Which way up a fat tree.
    table : ndarray, int32[router, destination router], optional
        Output ports to follow instead of the network's own rules, one of each neighbour's.
    links : str
        ``routing.links``: which of several parallel links.

    Raises
    ------
    TopologyError
        A graph too large for a shortest-path table; ``links: adaptive``.
    """

    def __init__(
        self,
        topology: Topology,
        address: AddressConfig,
        up_choice: UpChoice = "d_mod_k",
        table: NDArray[np.int32] | None = None,
        links: LinkRule = "own_first",
    ) -> None:
        refuse_adaptive(links, "routes that are known beforehand")
        self.topology = topology
        self.links = links
        # keys only tell the ports here: a digit as wide as an address, which no key of a cache holds, is no obstacle
        width = max(address.width_bits, address.chunk_bits + MEMBER_BITS + KIND_BITS)
        digits = AddressFormat(width, address.chunk_bits)
        if table is None:
            self.reduction = NodeReduction.of_topology(topology, digits, up_choice=up_choice)
        else:
            self.reduction = NodeReduction.arbitrary(address=digits)
        if self.reduction.mode == "arbitrary":
            self._table = shortest_path_ports(topology) if table is None else table
            self._own = self._level = np.zeros(topology.routers, np.int64)
            self._parallel = parallel_ports(topology)
        else:
            self._table = key_ports(topology, links)
            self._own, self._level = self.reduction.switches(np.arange(topology.routers))
            self._parallel = ParallelPorts(np.empty((0, 0), np.int32), np.empty((0, 0, 0), np.int32))

    def output_ports(self, routers: ArrayLike, hosts: ArrayLike, sources: ArrayLike = 0) -> NDArray[np.int32]:
        """Port at which packets from hosts `sources` for `hosts` leave `routers` (arrays of one shape).

        Raises
        ------
        ValueError
            If the network has no such router or host.
        """
        self._check("routers", routers, self.topology.routers)
        self._check("sources", sources, self.topology.hosts)
        self._check("hosts", hosts, self.topology.hosts)
        router, source, host = np.broadcast_arrays(routers, sources, hosts)
        result = np.empty(router.shape, np.int32)
        _output_ports(self._arrays, *_flat(router, source, host), result.reshape(-1))
        return result

    def link_keys(self, routers: NDArray[np.int32], sources: ArrayLike, hosts: ArrayLike) -> NDArray[np.int64]:
        """Return what a cache key needs beside the destination's key so that it says which parallel link is meant.

        The number of the link among those to choose from, where the key itself does not tell it: a key of another group
        of a dragonfly, or with ``links: hash`` any. Elsewhere 0.
        """
        router, source, host = np.broadcast_arrays(routers, sources, hosts)
        found = np.zeros(router.shape, np.int64)
        _link_keys(self._arrays, *_flat(router, source, host), found.reshape(-1))
        return found

    def paths(self, sources: ArrayLike, destinations: ArrayLike) -> Paths:
        """Paths from source hosts to destination hosts.

        A host's path to itself enters and leaves its own switch.

        Raises
        ------
        ValueError
            If the network has no such host, or the arrays differ in length.
        """
        source, destination = np.asarray(sources, np.int64), np.asarray(destinations, np.int64)
        topology = self.topology
        self._check("sources", source, topology.hosts)
        self._check("destinations", destination, topology.hosts)
        if source.shape != destination.shape:
            raise ValueError(f"sources must be as many as destinations={destination.shape}, not {source.shape}")
        network = _Neighbours(
            **{name: np.ascontiguousarray(getattr(topology, name)) for name in _Neighbours.names()}
        )
        tables, table = self._arrays, self._port_table(len(source))
        first = np.zeros(len(source) + 1, np.int64)
        none = np.empty(0, np.int32)
        wrong = _walk(tables, table, network, source, destination, first, none, none, none)
        assert wrong < 0, f"the path of pair {wrong} does not end at its host"
        np.cumsum(first, out=first)
        router, port, output = (np.empty(first[-1], np.int32) for _ in range(3))
        _walk(tables, table, network, source, destination, first, router, port, output)
        return Paths(first, router, port, output)

    def _check(self, name: str, numbers: ArrayLike, count: int) -> None:
        """Refuse numbers with which the kernels would read beyond their arrays."""
        found = np.asarray(numbers)
        lowest, highest = found.min(initial=0), found.max(initial=0)
        if lowest < 0 or highest >= count:
            wrong = lowest if lowest < 0 else highest
            raise ValueError(f"{name} must be from 0 to {count - 1} in the {self.topology.name}, not {wrong}")

    def _port_table(self, paths: int) -> NDArray[np.int32]:
        """Return the ports of all switches for all hosts, where that is less than so many paths ask for; else nothing.

        The source of a packet must not decide, as it does where links are parallel.
        """
        topology = self.topology
        single = links_of_a_pair(topology) == 1 and self._parallel.links.max(initial=0) <= 1
        if not single or topology.routers * topology.hosts > paths:
            return np.empty((0, 0), np.int32)
        return self.output_ports(np.arange(topology.routers)[:, np.newaxis], np.arange(topology.hosts))

    @property
    def _arrays(self) -> _RouteTables:
        topology = self.topology
        return _RouteTables(
            keys=self.reduction.tables, links=links_of_a_pair(topology), hashed=int(self.links == "hash"),
            own=np.ascontiguousarray(self._own), level=np.ascontiguousarray(self._level),
            ports=np.ascontiguousarray(self._table), host_address=np.ascontiguousarray(topology.host_address),
            host_router=np.ascontiguousarray(topology.host_router),
            host_port=np.ascontiguousarray(topology.host_port),
            count=np.ascontiguousarray(self._parallel.links), parallel=np.ascontiguousarray(self._parallel.ports),
        )  # fmt: skip


def _flat(*arrays: NDArray[Any]) -> list[NDArray[np.int64]]:
    """Copy arrays into one dimension."""
    return [np.array(array, np.int64).reshape(-1) for array in arrays]


def key_ports(topology: Topology, links: LinkRule = "own_first") -> NDArray[np.int32]:
    """Port that each key of a regular network stands for.

    Returns
    -------
    ndarray, int32[router, kind · width + value]
        With kind and value as in docs/architecture.md; -1: no such port. In a dragonfly value · l + number mod l with l
        links of a pair of groups, for kind 2.
    """
    params, routers = topology.params, topology.routers
    if topology.kind in ("mesh", "torus"):
        terminals, dims = params["hosts_per_router"], len(params["radices"])
        width = max(terminals, dims)
        table = np.full((routers, 3 * width), -1, np.int32)
        table[:, :terminals] = np.arange(terminals)
        table[:, width:width + dims] = terminals + 2 * np.arange(dims)
        table[:, 2 * width:2 * width + dims] = terminals + 2 * np.arange(dims) + 1
        return table
    if topology.kind == "fat_tree":
        k = params["k"]
        table = np.full((routers, 3 * k), -1, np.int32)
        table[:, k:2 * k] = np.where(topology.ports[:, np.newaxis] > k, k + np.arange(k), -1)
        table[:, 2 * k:] = np.arange(k)
        return table
    p, a, g = params["p"], params["a"], params["g"]
    towards = group_ports(topology, links)
    width = max(p, a, g)
    table = np.full((routers, (2 + towards.shape[2]) * width), -1, np.int32)
    table[:, :p] = np.arange(p)
    local = np.arange(routers) % a
    for other in range(a):
        here = local != other
        table[here, width + other] = p + other - (other > local[here])
    table[:, 2 * width:2 * width + g * towards.shape[2]] = towards.reshape(routers, -1)
    return table


_VALUE_SHIFT = MEMBER_BITS + KIND_BITS
_KIND_MASK = (1 << KIND_BITS) - 1


@inlined
def _output(t, router, source, host):  # type: ignore[no-untyped-def]
    keys, table, host_router, count, hashed = t.keys, t.ports, t.host_router, t.count, t.hashed
    if keys.mode == 0:
        if router == host_router[host]:
            return t.host_port[host]
        port = table[router, host_router[host]]
        if port >= 0 and count[router, port] > 1:
            port = t.parallel[router, port, link_number(source, host, hashed) % count[router, port]]
        return port
    key = reduce_key(keys, t.own[router], t.level[router], t.host_address[host])
    shift = keys.address_bits - _VALUE_SHIFT
    kind, value, width = (key >> shift) & _KIND_MASK, key & ((1 << shift) - 1), table.shape[1] // (2 + t.links)
    if t.links > 1 and kind == 2:
        value = value * t.links + link_number(source, host, hashed) % t.links
    return table[router, kind * width + value]


@kernel
def _output_ports(t, router, source, host, result):  # type: ignore[no-untyped-def]
    for index in range(len(router)):
        result[index] = _output(t, router[index], source[index], host[index])


@kernel
def _link_keys(t, router, source, host, result):  # type: ignore[no-untyped-def]
    keys, table, host_router = t.keys, t.ports, t.host_router
    shift = keys.address_bits - _VALUE_SHIFT
    for index in range(len(router)):
        here, goal = router[index], host[index]
        many = 1
        if keys.mode == 0:
            port = table[here, host_router[goal]]
            if t.hashed and here != host_router[goal] and port >= 0:
                many = t.count[here, port]
        elif t.links > 1:
            key = reduce_key(keys, t.own[here], t.level[here], t.host_address[goal])
            if (key >> shift) & _KIND_MASK == 2:
                many = t.links
        result[index] = link_number(source[index], goal, t.hashed) % many


@kernel
def _walk(t, table, network, source, destination, first, router, port, output):  # type: ignore[no-untyped-def]
    """Without room in `router`: count the hops of path i into ``first[i + 1]``; with room: fill. -1, or a bad path."""
    peer_router, peer_port, host_at = network.peer_router, network.peer_port, network.host_at
    host_router, host_port = t.host_router, t.host_port
    fill = len(router) > 0
    for index in range(len(source)):
        here = host_router[source[index]]
        entry = host_port[source[index]]
        hop = 0
        while True:
            if len(table) > 0:
                leave = table[here, destination[index]]
            else:
                leave = _output(t, here, source[index], destination[index])
            if leave < 0 or hop > peer_router.shape[0]:
                return index
            if fill:
                at = first[index] + hop
                router[at], port[at], output[at] = here, entry, leave
            hop += 1
            following = peer_router[here, leave]
            if following < 0:
                if host_at[here, leave] != destination[index]:
                    return index
                break
            entry = peer_port[here, leave]
            here = following
        if not fill:
            first[index + 1] = hop
    return -1
