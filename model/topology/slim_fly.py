"""Slim Fly networks: McKay-Miller-Širáň graphs of diameter 2."""

import numpy as np

from hopforge.model.config.lookup import AddressConfig
from hopforge.model.config.topology import SlimFlyConfig
from hopforge.model.numbers.galois_field import GaloisField
from hopforge.model.topology.base import Topology
from hopforge.model.topology.graph import Numbers, assemble_graph, equal_hosts
from hopforge.model.topology.limits import check_addresses


def generator_sets(field: GaloisField) -> tuple[Numbers, Numbers]:
    """Return the sets X and X' of GF(q), q = 4w + δ; with each element they hold its negative.

    δ = 1: even and odd powers of a primitive element ξ. δ = 0: ξ⁰, ξ², …, ξ^(q−2) and ξ, ξ³, …, ξ^(q−1). δ = −1: even
    powers below 2w − 1 and odd powers from there on; odd powers up to 2w − 1 and even powers beyond (Hafner 2004;
    Besta and Hoefler 2014).
    """
    q = field.q
    power = np.arange(q - 1)
    if q % 4 == 1:
        return field.powers[power % 2 == 0], field.powers[power % 2 == 1]
    if q % 4 == 0:
        return field.powers[np.arange(0, q - 1, 2)], field.powers[np.arange(1, q, 2) % (q - 1)]
    w = (q + 1) // 4
    x = np.concatenate([np.arange(0, 2 * w - 1, 2), np.arange(2 * w - 1, 4 * w - 2, 2)])
    other = np.concatenate([np.arange(1, 2 * w, 2), np.arange(2 * w, 4 * w - 1, 2)])
    return field.powers[x], field.powers[other % (q - 1)]


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
