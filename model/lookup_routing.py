"""Routes by lookup: whether a routing algorithm's answers can stand in TCAMs, and the engines that look them up.

A lookup sees the destination only, or its key: what the algorithm answers must follow from that and from the input VC
(docs/network-simulation.md, The routing cache).
"""

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config import Config
from hopforge.model.lookup_params import LookupParams
from hopforge.model.network.lookup_build import RouteLookup
from hopforge.model.node_reduction import NodeReduction
from hopforge.model.routing import RoutingError, RoutingPlan
from hopforge.model.routing_cache import RoutingCache
from hopforge.model.tcam import Tcam, TcamRow
from hopforge.model.topology import Topology

#: outputs of key kinds 0 to 2 (docs/architecture.md)
_KINDS = 3


def refuse_unsuitable(config: Config, plan: RoutingPlan) -> None:
    """Refuse a routing algorithm whose answers depend on more than a destination.

    Raises
    ------
    RoutingError
        Naming the algorithm and the reason.
    """
    algorithm = config.routing.algorithm
    reasons = (
        ("draws random numbers", plan.random),
        ("sends packets over a router drawn at the source", plan.uses_via),
        ("learns", plan.memory.size > 1),
        ("needs an escape port, which a lookup does not answer", plan.obligation == "escape"),
    )
    for reason, found in reasons:
        if found:
            raise RoutingError(
                f"router.route_computation must be table for routing.algorithm {algorithm}, not lookup: it {reason}"
            )
    if plan.max_candidates > 1 and config.lookup.cache.output_kind != "port_set":
        raise RoutingError(
            f"lookup.cache.output_kind must be port_set for routing.algorithm {algorithm}, which is adaptive, not "
            f"{config.lookup.cache.output_kind}"
        )


def route_lookup(config: Config, topology: Topology, plan: RoutingPlan) -> RouteLookup:
    """Return the lookup engines that sections `lookup` and `address` describe, for every input port of a network.

    Parameters
    ----------
    config : Config
        With ``router.route_computation: lookup``.
    topology : Topology
        Its network.
    plan : RoutingPlan
        Its routing algorithm.

    Raises
    ------
    RoutingError
        An algorithm that cannot be looked up.
    """
    refuse_unsuitable(config, plan)
    enabled = config.lookup.cache.enabled
    reduction = NodeReduction.from_config(config, topology)
    width = _width(topology) if reduction.mode != "arbitrary" else 0
    own, level = reduction.switches(np.arange(topology.routers))
    return RouteLookup(
        params=engine_params(config),
        enabled=enabled,
        tcam_latency_cycles=config.lookup.tcam.latency_cycles,
        keys=reduction.tables,
        own=own,
        level=level,
        address=topology.host_address.astype(np.int64),
        width=width,
        key_row=_key_rows(config, topology, reduction, width),
        row=_rows_present(config, topology, plan),
    )


def engine_params(config: Config) -> LookupParams:
    """Return the parameters of every engine; an engine whose cache is off is one that is not enabled."""
    cache = config.lookup.cache.model_copy(update={"enabled": True})
    lookup = config.lookup.model_copy(update={"cache": cache})
    return LookupParams.from_config(config.model_copy(update={"lookup": lookup}))


def key_numbers(topology: Topology, reduction: NodeReduction, router: int) -> NDArray[np.int64]:
    """Return the numbers of the keys of all hosts at one router, as the kernel counts keys: int64[host]."""
    if reduction.mode == "arbitrary":
        return np.arange(topology.hosts)
    keys = reduction.keys(np.full(topology.hosts, router), topology.host_address)
    value = keys & (1 << reduction.value_bits) - 1
    return (keys >> reduction.value_bits & 3) * _width(topology) + value


def _width(topology: Topology) -> int:
    """Return one more than the largest value of a key."""
    params = topology.params
    if topology.kind in {"mesh", "torus"}:
        return max(int(params["hosts_per_router"]), len(params["radices"]))
    if topology.kind == "fat_tree":
        return int(params["k"])
    return max(int(params[name]) for name in "pag")


def _key_rows(config: Config, topology: Topology, reduction: NodeReduction, width: int) -> NDArray[np.int32]:
    if reduction.mode == "arbitrary":
        payload = topology.host_address.astype(np.int64)
    else:
        kind, value = np.divmod(np.arange(_KINDS * width), width)
        payload = kind << reduction.value_bits | value
    tables = RoutingCache.from_config(config).tables.rows
    row = np.zeros((len(payload), len(tables)), np.uint64)
    for way, of_way in enumerate(tables):
        for byte, of_byte in enumerate(of_way):
            row[:, way] ^= of_byte[payload >> 8 * byte & 255]
    return row.astype(np.int32)


def network_rows(config: Config, topology: Topology, plan: RoutingPlan) -> list[list[TcamRow]]:
    """Return the TCAM contents of every router.

    Raises
    ------
    RoutingError
        A network too large to have its routes listed, or routes that no TCAM can hold.
    """
    # these need `simulation`, which needs this
    from hopforge.model.router_program import tcam_contents  # noqa: PLC0415
    from hopforge.model.router_tables import compile_tables  # noqa: PLC0415

    tables = compile_tables(topology, plan, config.router.vcs, config.routing.algorithm)
    return [tcam_contents(config, topology, tables, router) for router in range(topology.routers)]


def _rows_present(config: Config, topology: Topology, plan: RoutingPlan) -> NDArray[np.uint8] | None:
    """Whether the TCAM of a router has a row for a host: uint8[router, host]; None: all have all.

    As in `hopforge hits` only a TCAM that is built into the router has a limit: it takes the first rows.
    """
    if config.lookup.tcam.kind not in {"flops", "sram"}:
        return None
    limit = config.lookup.tcam.rows
    result = np.ones((topology.routers, topology.hosts), np.uint8)
    for router, rows in enumerate(network_rows(config, topology, plan)):
        if len(rows) > limit:
            tcam = Tcam.of_rows(rows[:limit], width_bits=config.address.width_bits, output_bits=62)
            result[router] = tcam.lookup_many(topology.host_address) >= 0
    return None if result.all() else result
