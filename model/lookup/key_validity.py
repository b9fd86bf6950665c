"""Destinations that share a key at a router must leave it by the same port (docs/definitions/key-expressions.md)."""

import numpy as np

from hopforge.model.config import Config
from hopforge.model.errors import UserError
from hopforge.model.kernel.compile import kernel
from hopforge.model.lookup.node_reduction import NodeReduction
from hopforge.model.lookup.routes import Routes

__all__ = ["check_expression", "wrong_key"]

_WIDEST = 22
"""Bits of keys that are marked in a table; wider ones are sorted."""


def wrong_key(config: Config, router: int, hosts: tuple[int, int], key: int, ports: tuple[object, object]) -> UserError:
    """Return the error for two destinations that share a key and take different ports."""
    section = config.lookup.expression
    name = "lookup.reduction" if section is None else f"lookup.reduction.{section.key}"
    return UserError(
        f"{name}: in router {router} hosts {hosts[0]} and {hosts[1]} have the same key {key:#x}, and leave by ports "
        f"{ports[0]} and {ports[1]}"
    )


def check_expression(config: Config, reduction: NodeReduction, routes: Routes) -> None:
    """Check the keys of an expression against the ways of a network: every destination at every router.

    Parameters
    ----------
    config : Config
        The whole file; without an expression nothing is checked.
    reduction : NodeReduction
        Its key function.
    routes : Routes
        The ways of its packets.

    Raises
    ------
    UserError
        Naming router, destinations, key and ports; or routes that do not follow from the destination alone.
    """
    section = config.lookup.expression
    if section is None or reduction.mode != "expression":
        return
    name = f"lookup.reduction.{section.key}"
    if routes.links == "hash":
        raise UserError(f"{name}: keys know nothing of the source, which routing.links: hash takes links by")
    topology = routes.topology
    hosts = np.arange(topology.hosts)
    mask = (1 << reduction.address.width_bits - 4) - 1
    first = np.zeros(0, np.int64)
    stamp = np.zeros(0, np.int64)
    attached = np.zeros(topology.routers, np.bool_)
    attached[topology.host_router] = True
    working = np.asarray((topology.peer_router >= 0).any(axis=1)) | attached
    for router in np.flatnonzero(working).tolist():
        keys = reduction.keys(router, topology.host_address)
        ports = routes.output_ports(np.full(len(hosts), router), hosts)
        values = keys & mask
        highest = int(values.max(initial=0))
        if highest >> _WIDEST:
            _, values = np.unique(values, return_inverse=True)
            highest = len(hosts)
        if highest >= len(first):
            first, stamp = np.zeros(2 * highest + 1, np.int64), np.full(2 * highest + 1, -1, np.int64)
        pair = _conflict(values.reshape(-1), ports, first, stamp, router)
        if pair[0] >= 0:
            a, b = int(pair[0]), int(pair[1])
            raise wrong_key(config, router, (a, b), int(keys[b]), (int(ports[a]), int(ports[b])))


@kernel
def _conflict(values, ports, first, stamp, router):  # type: ignore[no-untyped-def]
    """Return two hosts with one value and two ports, or (-1, -1)."""
    for host in range(len(values)):
        value = values[host]
        if ports[host] < 0:
            continue
        if stamp[value] != router:
            stamp[value], first[value] = router, host
        elif ports[first[value]] != ports[host]:
            return first[value], host
    return -1, -1


