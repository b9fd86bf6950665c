"""Slim Fly networks: McKay-Miller-Širáň graphs of diameter 2."""

import numpy as np

from hopforge.model.config.lookup import AddressConfig
from hopforge.model.config.topology import SlimFlyConfig
from hopforge.model.numbers.galois_field import GaloisField, generator_sets
from hopforge.model.topology.base import Topology
from hopforge.model.topology.graph import assemble_graph, equal_hosts
from hopforge.model.topology.limits import check_addresses


def build_slim_fly(config: SlimFlyConfig, address: AddressConfig) -> Topology:
    """Build a Slim Fly of 2q² routers.

    Router (s, a, b) is number s·q² + a·q + b, elements of GF(q) being numbers as in `GaloisField`.
    (0, x, y) and (0, x, y') are linked iff y − y' ∈ X; (1, m, c) and (1, m, c') iff c − c' ∈ X'; (0, x, y) and
    (1, m, c) iff y = m·x + c.

    Raises
    ------
    TopologyError
        Too many routers or hosts.
    """
    check_addresses(config, address)
    q = config.q
    field = GaloisField(q)
    x_set, other_set = generator_sets(field)
    element = np.arange(q, dtype=np.int64)
    parts = []
    for side, steps in ((0, x_set), (1, other_set)):
        low = np.repeat(element, len(steps))
        high = field.plus(low, np.tile(steps, q))
        inside = low < high
        column = side * q * q + q * element[:, np.newaxis]
        parts.append(np.stack([(column + low[inside]).ravel(), (column + high[inside]).ravel()], axis=1))
    x, m, c = (axis.ravel() for axis in np.meshgrid(element, element, element, indexing="ij"))
    y = field.plus(field.times(m, x), c)
    parts.append(np.stack([x * q + y, q * q + m * q + c], axis=1))
    return assemble_graph(
        np.concatenate(parts),
        name=f"Slim Fly q={q}",
        kind="slim_fly",
        host_router=equal_hosts(2 * q * q, config.terminals),
        params={
            "q": q,
            "delta": config.delta,
            "links_per_router": config.links_per_router,
            "hosts_per_router": config.terminals,
        },
        key="topology.q",
        routers=2 * q * q,
    )
