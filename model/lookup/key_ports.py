"""Which output port a key means: the step from the routing cache's key to a port of an actual switch."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopforge.model.lookup.key_kernel import KIND_BITS
from hopforge.model.lookup.node_reduction import NodeReduction
from hopforge.model.topology import Topology
from hopforge.model.topology.routing_table import shortest_path_ports

NO_PORT = -1


def group_ports(topology: Topology) -> NDArray[np.int32]:
    """Return the port of each dragonfly router that leads towards each other group.

    A router's own global port, the lowest if it has several; else the local port to the lowest router of its group
    that has one.

    Returns
    -------
    ndarray, int32[router, group]
        `NO_PORT` for the own group, and where the groups are not linked.
    """
    p, a, g = (int(topology.params[name]) for name in "pag")
    table = np.full((topology.routers, g), NO_PORT, dtype=np.int32)
    first_global = p + a - 1
    # descending, so that the lowest port has the last word
    for port in reversed(range(first_global, topology.max_ports)):
        linked = np.flatnonzero(topology.peer_router[:, port] >= 0)
        table[linked, topology.peer_router[linked, port] // a] = port
    own = table != NO_PORT
    for router in range(topology.routers):
        group, local = divmod(router, a)
        for other in reversed(range(a)):
            if other != local:
                towards = own[group * a + other] & ~own[router]
                table[router, towards] = p + other - (other > local)
    return table


class NowhereError(ValueError):
    """A key leads nowhere in a network, for instance where a link has failed."""


class KeyPorts:
    """Output ports of keys and of destinations in one network (port numbers: docs/architecture.md).

    With the keys of `reduction` = arbitrary in a regular network, ports follow the network's own key function.

    Parameters
    ----------
    reduction : NodeReduction
        The key function that the switches use.
    topology : Topology
        Their network.

    Raises
    ------
    ValueError
        If the reduction is for another network.

    Examples
    --------
    >>> from hopforge.model.numbers.address import AddressFormat
    >>> from hopforge.model.config.lookup import AddressConfig
    >>> from hopforge.model.config.topology import TorusConfig
    >>> from hopforge.model.topology import build
    >>> torus = build(TorusConfig(kind="torus", radices=(5, 5)), AddressConfig())
    >>> reduction = NodeReduction.of_topology(torus, AddressFormat())
    >>> KeyPorts(reduction, torus).port(router=6, key=reduction.key(6, 0x41))
    4
    """

    def __init__(self, reduction: NodeReduction, topology: Topology) -> None:
        own = NodeReduction.of_topology(
            topology, reduction.address, up_choice=reduction.up_choice, members=reduction.members,
            member_hash=reduction.member_hash, crc=reduction.crc,
        )  # fmt: skip
        if reduction.mode not in ("arbitrary", "expression") and reduction != own:
            raise ValueError(f"reduction must be for the {topology.name}, not {reduction.mode} {reduction.radices}")
        self.reduction = reduction
        self.topology = topology
        self.routing = own
        """The key function of the network itself; arbitrary for an edge list."""
        if own.mode == "arbitrary":
            self._table = shortest_path_ports(topology)
        elif own.mode == "dragonfly":
            self._table = group_ports(topology)

    def ports(self, routers: ArrayLike, keys: ArrayLike) -> NDArray[np.int32]:
        """Return the output ports of keys of `reduction` at switches; both are broadcast.

        Returns
        -------
        ndarray, int32
            Of the broadcast shape.

        Raises
        ------
        ValueError
            If a key leads nowhere in this network.
        """
        number, words = np.broadcast_arrays(np.asarray(routers, np.int64), np.asarray(keys, np.int64))
        if self.reduction.mode == "arbitrary":
            return self.destination_ports(number, words)
        if self.reduction.mode == "expression":
            return self._of_expression(number, words)
        return self._reduced(number, words)

    def destination_ports(self, routers: ArrayLike, destinations: ArrayLike) -> NDArray[np.int32]:
        """Return the output ports of destination addresses at switches: the routing function of the network."""
        number, words = np.broadcast_arrays(np.asarray(routers, np.int64), np.asarray(destinations, np.int64))
        if self.routing.mode != "arbitrary":
            return self._reduced(number, self.routing.keys(number, words))
        if ((words < 0) | (words >= self.topology.hosts)).any():
            outside = words[(words < 0) | (words >= self.topology.hosts)].flat[0]
            raise ValueError(f"address must be less than {self.topology.hosts} hosts, not {int(outside):#x}")
        target = self.topology.host_router[words]
        return np.where(target == number, self.topology.host_port[words], self._table[number, target]).astype(np.int32)

    def port(self, router: int, key: int) -> int:
        """Return the output port of one key, as `ports` does for many."""
        return int(self.ports(router, key))

    def _of_expression(self, routers: NDArray[np.int64], keys: NDArray[np.int64]) -> NDArray[np.int32]:
        """Ports of the destinations that have the keys."""
        port = np.full(keys.shape, NO_PORT, np.int32)
        addresses = self.topology.host_address
        for router in np.unique(routers):
            ports = self.destination_ports(int(router), addresses)
            known = dict(zip(self.reduction.keys(int(router), addresses).tolist(), ports.tolist(), strict=True))
            here = routers == router
            port[here] = [known.get(key, NO_PORT) for key in keys[here].tolist()]
        if (port == NO_PORT).any():
            first = tuple(index[0] for index in np.nonzero(np.atleast_1d(port == NO_PORT)))
            where, what = np.atleast_1d(routers)[first], np.atleast_1d(keys)[first]
            raise NowhereError(f"key {int(what):#x} leads nowhere at router {int(where)} of the {self.topology.name}")
        return port

    def _reduced(self, routers: NDArray[np.int64], keys: NDArray[np.int64]) -> NDArray[np.int32]:
        reduction = self.routing
        value = keys & (1 << reduction.value_bits) - 1
        kind = keys >> reduction.value_bits & (1 << KIND_BITS) - 1
        if reduction.mode == "fat_tree":
            port = np.where(value >= reduction.radices[0], NO_PORT, value + (kind == 1) * reduction.radices[0])
        elif reduction.mode == "dragonfly":
            port = self._dragonfly(routers, kind, value)
        else:
            local = np.where(value < reduction.hosts_per_router, value, NO_PORT)
            port = np.where(kind == 0, local, reduction.hosts_per_router + 2 * value + (kind == 2))
        lost = (port < 0) | (port >= self.topology.max_ports)
        lost |= self._leads_nowhere(routers, np.where(lost, 0, port))
        if lost.any():
            first = tuple(index[0] for index in np.nonzero(np.atleast_1d(lost)))
            where, what = np.atleast_1d(routers)[first], np.atleast_1d(keys)[first]
            raise NowhereError(f"key {int(what):#x} leads nowhere at router {int(where)} of the {self.topology.name}")
        return port.astype(np.int32)

    def _dragonfly(
        self, routers: NDArray[np.int64], kind: NDArray[np.int64], value: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        p, a, g = self.routing.radices
        towards = self._table[routers, np.where((kind == 2) & (value < g), value, routers // a)]
        local = routers % a
        router_port = np.where((value == local) | (value >= a), NO_PORT, p + value - (value > local))
        terminal_port = np.where(value < p, value, NO_PORT)
        return np.where(kind == 2, towards, np.where(kind == 1, router_port, terminal_port))

    def _leads_nowhere(self, routers: NDArray[np.int64], port: NDArray[np.int64]) -> NDArray[np.bool_]:
        topology = self.topology
        return (topology.peer_router[routers, port] < 0) & (topology.host_at[routers, port] < 0)
