"""Networks of tiers, one around the other, each with its own links (docs/definitions/topologies.md)."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config.lookup import AddressConfig
from hopforge.model.config.topology import TierConfig, TiersConfig
from hopforge.model.errors import UserError
from hopforge.model.topology.base import Topology, check_size
from hopforge.model.topology.graph import Numbers, assemble_graph, equal_hosts
from hopforge.model.topology.limits import check_addresses


def build_tiers(config: TiersConfig, address: AddressConfig) -> Topology:
    """Build a network of tiers: a unit of a tier is all routers of the tiers below, tier 0 counts fastest.

    Raises
    ------
    TopologyError
        Too many routers, ports or hosts.
    """
    check_addresses(config, address)
    check_size("topology.tiers", config.routers, config.most_ports)
    edges: list[Numbers] = []
    gateways, size = np.zeros(1, np.int64), 1  # routers of a unit with the links of the tier, and its routers
    for tier in config.tiers:
        if tier.through == "first":
            gateways = gateways[:1]
        pairs = _pairs(tier)
        inside = (pairs[:, None, :] * size + gateways[None, :, None]).reshape(-1, 2)
        units = np.arange(config.routers // (size * tier.units), dtype=np.int64) * size * tier.units
        edges.append((units[:, None, None] + inside[None]).reshape(-1, 2))
        # all routers with links of this tier carry those of the next one, unless it goes through the first
        gateways = (np.arange(tier.units)[:, None] * size + gateways[None]).ravel()
        size *= tier.units
    sizes = "·".join(str(tier.units) for tier in config.tiers)
    return assemble_graph(
        np.concatenate(edges),
        name=f"{len(config.tiers)} tiers of {sizes} routers",
        kind="tiers",
        host_router=equal_hosts(config.routers, config.hosts_per_router),
        params={
            "units": tuple(tier.units for tier in config.tiers),
            "gbps": tuple(tier.gbps for tier in config.tiers),
            "latency_ns": tuple(tier.latency_ns for tier in config.tiers),
            "hosts_per_router": config.hosts_per_router,
        },
        key="topology.tiers",
        routers=config.routers,
    )  # fmt: skip


def _pairs(tier: TierConfig) -> Numbers:
    """Return the links between units of a tier, int64[link, 2]."""
    units = np.arange(tier.units, dtype=np.int64)
    if tier.shape == "all_to_all":
        first, second = np.triu_indices(tier.units, 1)
        return np.stack([first, second], axis=1).astype(np.int64)
    found, stride = [np.empty((0, 2), np.int64)], 1
    for radix in tier.sizes:
        place = units // stride % radix
        # a ring of two is one link
        linked = place < radix - 1 if tier.shape == "mesh" or radix == 2 else np.ones(len(units), np.bool_)
        beside = units + np.where(place < radix - 1, stride, stride * (1 - radix))
        if radix > 1:
            found.append(np.stack([units, beside], axis=1)[linked])
        stride *= radix
    return np.concatenate(found)


def link_tiers(topology: Topology) -> NDArray[np.int64]:
    """Return the tier of the link at each port, int64[router, port]; -1: no link to a router."""
    router = np.arange(topology.routers, dtype=np.int64)[:, None]
    peer = topology.peer_router
    tier, size = np.full(peer.shape, -1, np.int64), 1
    for number, units in enumerate(topology.params["units"]):
        differ = router // size % units != np.maximum(peer, 0) // size % units
        tier[(peer >= 0) & differ] = number
        size *= units
    return tier


def has_speeds(topology: Topology) -> bool:
    """Whether links have rates or latencies of their own: tiers, or links that are degraded."""
    return topology.rate_share is not None or (
        topology.kind == "tiers"
        and any(value is not None for key in ("gbps", "latency_ns") for value in topology.params[key])
    )


def _of_tiers(topology: Topology, key: str, default: float) -> NDArray[np.float64]:
    if topology.kind != "tiers":
        return np.full(topology.peer_router.shape, default)
    values: Sequence[float | None] = topology.params[key]
    each = np.array([default if value is None else value for value in values] + [default])  # the last one: hosts
    found: NDArray[np.float64] = each[link_tiers(topology)]
    return found


def link_gbps(topology: Topology, default: float) -> NDArray[np.float64]:
    """Return the rate of the link at each port, float64[router, port]; `default` where its tier has none.

    Of a degraded link what is left of that.
    """
    found = _of_tiers(topology, "gbps", default)
    return found if topology.rate_share is None else found * topology.rate_share


def link_ns(topology: Topology, default: float) -> NDArray[np.float64]:
    """Return the latency of the link at each port, float64[router, port]; `default` where its tier has none."""
    return _of_tiers(topology, "latency_ns", default)


def cycles_per_flit(topology: Topology, fastest_gbps: float) -> NDArray[np.int64]:
    """Return how many cycles a flit takes on the link at each port, int64[router, port]; one at `fastest_gbps`.

    Raises
    ------
    UserError
        A rate that does not divide `fastest_gbps`.
    """
    for number, gbps in enumerate(topology.params["gbps"] if topology.kind == "tiers" else ()):
        times = 1.0 if gbps is None else fastest_gbps / gbps
        if times < 1 - 1e-9 or not math.isclose(times, round(times), rel_tol=1e-9):
            raise UserError(
                f"topology.tiers[{number}].gbps: must be timing.link_gbps={fastest_gbps:g} or that divided by a whole"
                f" number, for the simulator counts whole cycles of a flit, not {gbps:g}"
            )
    exact = fastest_gbps / link_gbps(topology, fastest_gbps)
    found = np.rint(exact)
    if topology.rate_share is not None and not np.allclose(found, exact, rtol=1e-9, atol=0):
        raise UserError(
            "degraded.factor: must be 1 divided by a whole number, for the simulator counts whole cycles of a flit, "
            f"not {topology.rate_share.min():g} (app.engine: flow takes any)"
        )
    return found.astype(np.int64)


def refuse_speeds(topology: Topology, what: str) -> None:
    """Refuse degraded links, and tiers with rates or latencies of their own.

    Raises
    ------
    UserError
        Naming what takes all links as alike.
    """
    if topology.rate_share is not None:
        raise UserError(f"degraded: {what} takes all links as alike")
    if has_speeds(topology):
        raise UserError(f"topology.tiers: {what} takes all links as alike; remove gbps and latency_ns")
