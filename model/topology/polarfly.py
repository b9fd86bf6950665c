"""PolarFly networks: polarity graphs of projective planes (docs/definitions/topologies.md)."""

import numpy as np

from hopforge.model.config.lookup import AddressConfig
from hopforge.model.config.topology import PolarFlyConfig
from hopforge.model.numbers.galois_field import Elements, GaloisField
from hopforge.model.topology.base import Topology, check_size
from hopforge.model.topology.graph import assemble_graph, equal_hosts
from hopforge.model.topology.limits import check_addresses


def build_polarfly(config: PolarFlyConfig, address: AddressConfig) -> Topology:
    """Build a PolarFly of q² + q + 1 routers.

    Routers are the points (1, y, z), number y·q + z, then (0, 1, z), then (0, 0, 1); elements of GF(q) are numbers as
    in `GaloisField`. Two different points are linked iff their dot product is 0.

    Raises
    ------
    TopologyError
        Too many routers or hosts.
    """
    check_addresses(config, address)
    q = config.q
    routers = q * q + q + 1
    check_size("topology.q", routers, config.links_per_router + config.terminals)
    return assemble_graph(
        polarity_edges(GaloisField(q)),
        name=f"PolarFly q={q}",
        kind="polarfly",
        host_router=equal_hosts(routers, config.terminals),
        params={"q": q, "links_per_router": config.links_per_router, "hosts_per_router": config.terminals},
        key="topology.q",
        routers=routers,
    )


def polarity_edges(field: GaloisField) -> Elements:
    """Return the links of the polarity graph, lower number first: int64[link, 2].

    The neighbours of a point are the q + 1 points of the line of which it is the pole, so none is looked for.
    """
    q = field.q
    points = q * q + q + 1
    number = np.arange(points, dtype=np.int64)
    finite, ideal = number < q * q, number < q * q + q
    a0 = finite.astype(np.int64)
    a1 = np.where(finite, number // q, ideal.astype(np.int64))
    a2 = np.where(ideal, number % q, 1)
    element = np.arange(q, dtype=np.int64)[np.newaxis, :]
    b0, b1, b2 = (part[:, np.newaxis] for part in (a0, a1, a2))
    slope = field.inverse(np.maximum(b2, 1))  # of lines with a2 = 0 it is not used
    intercept = field.inverse(np.maximum(b1, 1))

    def negative_share(value: Elements, divisor: Elements) -> Elements:
        return field.times(field.minus(np.zeros_like(value), value), divisor)

    # (1, y, z) on the line: z follows from y; without a2 one y and every z; without a1 and a2 none
    z_of_y = negative_share(field.plus(b0, field.times(b1, element)), slope)
    y_fixed = negative_share(b0, intercept)
    near = np.where(b2 > 0, element * q + z_of_y, y_fixed * q + element)
    near = np.where((b1 == 0) & (b2 == 0), q * q + element, near)  # the ideal line: (0, 1, z) for every z
    # the last point of the line is ideal
    z_ideal = negative_share(a1, field.inverse(np.maximum(a2, 1)))
    last = np.where(a2 > 0, q * q + z_ideal, q * q + q)
    ends = np.concatenate([near, last[:, np.newaxis]], axis=1)
    pairs = np.stack([np.broadcast_to(number[:, np.newaxis], ends.shape), ends], axis=-1).reshape(-1, 2)
    return pairs[pairs[:, 0] < pairs[:, 1]]
