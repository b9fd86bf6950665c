"""Routers of a configured network: their parameters and the links between them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config import Config, TiersConfig
from hopforge.model.config.router import RouterConfig
from hopforge.model.errors import UserError
from hopforge.model.lookup.params import LookupParams
from hopforge.model.network.settings import router_parameters
from hopforge.model.router.links import Link, topology_links
from hopforge.model.router.next_routes import with_next_routes
from hopforge.model.router.params import RouterParams, Rule
from hopforge.model.router.quality import Quality
from hopforge.model.router.tables import RouterTables
from hopforge.model.topology import Topology
from hopforge.model.topology.link_times import in_cycles


def _as_rule(masks: NDArray[np.uint16]) -> Rule:
    return tuple(tuple(tuple(tuple(row) for row in of_port) for of_port in of_class) for of_class in masks.tolist())


def network_links(config: Config, topology: Topology) -> tuple[Link, ...]:
    """Links between the routers, with the latencies of section `router`."""
    latency = np.broadcast_to(
        np.asarray(router_parameters(config, topology).link_latency_cycles), (topology.routers, topology.max_ports)
    )
    return tuple(link._replace(latency_cycles=int(latency[link.source])) for link in topology_links(topology))


#: allocators that hardware lacks, and why
_SIMULATED = {
    "max_size": "its paths take steps", "rr_wavefront": "simulator only", "loa": "simulator only",
    "pim": "it draws at random", "input_first_ports": "simulator only",
}  # fmt: skip


def _check(config: Config) -> None:
    """Refuse values of section `router` that the simulator takes and the hardware does not."""
    router = config.router
    if (cycles := in_cycles(router, "cycles_per_flit")) != 1:
        ratio = "" if router.flit_ns is None else " (flit_ns / cycle_ns)"
        raise UserError(f"router.cycles_per_flit must be 1 in hardware, not {cycles}{ratio}")
    if isinstance(config.topology, TiersConfig) and any(tier.gbps is not None for tier in config.topology.tiers):
        raise UserError("topology.tiers: links have one rate in hardware; remove gbps")
    if router.hold_switch:
        raise UserError("router.hold_switch must be false in hardware, not true")
    if router.allocator_ports != "network":
        raise UserError(f"router.allocator_ports must be network in hardware, not {router.allocator_ports}")
    for key in ("input_speedup", "output_speedup", "internal_speedup", "crossbar_cycles"):
        if (value := getattr(router, key)) != 1:
            raise UserError(f"router.{key} must be 1 in hardware, not {value:g}")
    if router.stage_batches:
        raise UserError("router.stage_batches must be false in hardware, not true")
    for key in ("va", "sa"):
        why = _SIMULATED.get(kind := getattr(router, key))
        if why is not None:
            raise UserError(f"router.{key} must be another allocator in hardware, not {kind} ({why})")
    if router.switching == "saf":
        raise UserError("router.switching must be wormhole or vct in hardware, not saf")
    if isinstance(router.speculation, str):
        raise UserError(f"router.speculation must be false or true in hardware, not {router.speculation}")


def iterations(router: RouterConfig) -> dict[str, int]:
    """Return the iterations of ``va`` and ``sa``: of iSLIP as many as the file says, of other allocators one."""
    counts = {"va": router.va_iterations or router.allocator_iterations, "sa": router.allocator_iterations}
    return {key: count if getattr(router, key) in ("output_first", "islip") else 1 for key, count in counts.items()}


def router_quality(config: Config) -> Quality | None:
    """Return what classes of traffic are due at the switch, None: nothing (`router.qos`)."""
    kind, classes = config.router.qos, config.traffic.classes
    if kind == "none":
        return None
    of_vc = [c for c, each in enumerate(classes) for _ in range(each.vcs or 0)]
    return Quality(
        kind=kind, of_vc=tuple(of_vc), priorities=tuple(each.priority for each in classes),
        weights=tuple(each.weight for each in classes),
    )  # fmt: skip


def network_params(
    config: Config,
    topology: Topology,
    tables: RouterTables,
    *,
    lookup: LookupParams | None = None,
    width_bits: int | None = None,
    tag_bits: int | None = None,
) -> tuple[RouterParams, ...]:
    """Parameters of every router of a network.

    All routers have as many ports as the largest of them. In mode table a destination is a host number, in mode lookup
    (with `lookup`) an address. `width_bits` and `tag_bits` are by default ``router.flit_bits`` and ``router.tag_bits``.

    Raises
    ------
    UserError
        Values of section `router` that the simulator takes and the hardware does not; routes that a lookup cannot give.
    """
    _check(config)
    router = config.router
    given: dict[str, Any] = router.model_dump(
        include={
            "vcs",
            "buffer_flits",
            "switching",
            "arbiter",
            "va_arbiter",
            "speculation",
            "vc_release",
            "credit_delay_cycles",
            "flit_buffers",
        }
    )
    kinds: dict[str, Any] = {
        name: "output_first" if kind == "islip" else kind for name, kind in (("va", router.va), ("sa", router.sa))
    }
    turns = iterations(router)
    full = (1 << router.vcs) - 1
    slow = np.broadcast_to(
        router_parameters(config, topology).cycles_per_flit, (topology.routers, topology.max_ports)
    )
    if lookup is not None:
        _check_output_kind(config, port_sets=tables.port_sets)
    spread = tables.spread and (lookup is None or tables.port_sets)
    entropy = config.traffic.entropy if spread else None
    result = []
    for number in range(topology.routers):
        if lookup is not None:
            tables.lookup_outputs(number)
        escape = lookup is None and bool((tables.escape[number] >= 0).any())
        free = tables.vc_rule[number].shape[0] == 1 and bool((tables.vc_rule[number] == full).all())
        rule = () if free and not escape else _as_rule(tables.vc_rule[number])
        try:
            result.append(
                RouterParams(
                    ports=topology.max_ports,
                    cycles_per_flit=tuple(slow[number].tolist()) if (slow[number] > 1).any() else (),
                    rc="table" if lookup is None else "lookup",
                    rc_cycles=router.rc_cycles if lookup is None else 0,
                    width_bits=router.flit_bits if width_bits is None else width_bits,
                    address_bits=config.address.width_bits,
                    tag_bits=router.tag_bits if tag_bits is None else tag_bits,
                    length_bits=router.length_bits,
                    routes=tables.routes(number) if lookup is None else (),
                    spread_router=number if spread else None,
                    entropy_bits=0 if entropy is None else (entropy.values - 1).bit_length(),
                    vc_rule=rule,
                    escape_rule=_as_rule(tables.escape_rule[number]) if escape else (),
                    lookup=lookup,
                    ports_per_engine=config.lookup.ports_per_engine if lookup is not None else 1,
                    output_kind="port" if lookup is None else config.lookup.cache.output_kind,
                    quality=router_quality(config),
                    protection=None if router.protection == "none" else router.protection,
                    **given,
                    **kinds,
                    va_iterations=turns["va"],
                    sa_iterations=turns["sa"],
                )
            )
        except ValueError as error:
            raise UserError(f"router: {str(error).replace('width_bits', 'flit_bits', 1)}") from error
    return with_next_routes(result, topology) if router.lookahead else tuple(result)


def _check_output_kind(config: Config, *, port_sets: bool) -> None:
    """Refuse answers of lookup engines that are not of the kind of the routes."""
    kind, wanted = config.lookup.cache.output_kind, "port_set" if port_sets else "port"
    if kind != wanted:
        raise UserError(
            f"lookup.cache.output_kind must be {wanted} for routing.algorithm {config.routing.algorithm}, whose routes "
            f"have {'several ports' if port_sets else 'one port'}, not {kind}"
        )
