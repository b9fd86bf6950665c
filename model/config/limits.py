"""Checks between sections: the network against the address, and both against the lookup engine."""

import math
from collections.abc import Iterator
from typing import get_args

from hopforge.model.config.base import Problem
from hopforge.model.config.key_expression import expression_problems
from hopforge.model.config.lookup import (
    KEY_MODE_BITS,
    MAX_WIDTH_BITS,
    POLICIES,
    AddressConfig,
    CacheConfig,
    ChunkBits,
    LookupConfig,
)
from hopforge.model.config.router import RouterConfig
from hopforge.model.config.topology import (
    TABLE_KINDS,
    ButterflyConfig,
    CascadeConfig,
    ClosConfig,
    DirectorConfig,
    DragonflyConfig,
    DragonflyPlusConfig,
    EdgeListConfig,
    FatTreeConfig,
    FullyConnectedConfig,
    HyperXConfig,
    LayoutRandomConfig,
    MeshConfig,
    PolarFlyConfig,
    RandomRegularConfig,
    SlimFlyConfig,
    TiersConfig,
    TopologyConfig,
    TorusConfig,
)
from hopforge.model.config.traffic import AcknowledgeConfig, ReplyConfig, TrafficConfig

AHEAD_ASKERS_MAX = 64
"""Virtual channels of all inputs that the lookup engine of an output serves (look-ahead)."""

PORT_SET_MOST = 64
"""Ports of an answer that is a set: bits of `lookup.cache.output_bits`."""

KEY_KIND_BITS = 6  # link-aggregation member and kind, above the value of a reduced key (docs/architecture.md)


def address_problems(topology: TopologyConfig, address: AddressConfig) -> Iterator[Problem]:
    """Return what of `topology` does not fit the digits of `address`; keys are from the root of the file.

    An edge list is checked when its file is read.
    """
    if isinstance(topology, MeshConfig | TorusConfig):
        for index, radix in enumerate(topology.radices):
            yield from _digit(f"topology.radices[{index}]", radix, address)
        terminal = int(topology.hosts_per_router > 1)
        if terminal:
            yield from _digit("topology.hosts_per_router", topology.hosts_per_router, address)
        yield from _digits("topology.radices", len(topology.radices) + terminal, address)
    elif isinstance(topology, FatTreeConfig):
        yield from _digit("topology.k", topology.k, address)
        yield from _digits("topology.n", topology.n + 1, address)
    elif isinstance(topology, DragonflyConfig):
        yield from _digit("topology.p", topology.p, address)
        yield from _digit("topology.a", topology.a, address)
        yield from _group_digits(topology, address)
    elif not isinstance(topology, EdgeListConfig):
        yield from _host_numbers(topology, address)


def fitting_address(topology: TopologyConfig, address: AddressConfig) -> AddressConfig | None:
    """Return `address`, or the least change of it that `topology` fits; None: no address does."""
    for width in range(address.width_bits, MAX_WIDTH_BITS + 1):
        for chunk in sorted(get_args(ChunkBits), key=lambda bits: abs(bits - address.chunk_bits)):
            fitting = AddressConfig(width_bits=width, chunk_bits=chunk)
            if not any(address_problems(topology, fitting)):
                return fitting
    return None


def key_problems(topology: TopologyConfig, address: AddressConfig, lookup: LookupConfig) -> Iterator[Problem]:
    """Return why addresses and engines do not make keys of this network, and which address would."""
    found = list(address_problems(topology, address))
    if found:
        fitting = fitting_address(topology, address)
        changes = {} if fitting is None else {
            key: value for key, value in fitting if value != getattr(address, key)
        }  # fmt: skip
        cure = " and ".join(f"address.{key}: {value}" for key, value in changes.items())
        words = f"; with {cure} it fits" if cure else f"; no address of at most {MAX_WIDTH_BITS} bits holds it"
        found = [Problem(problem.key, problem.reason + words) for problem in found]
    yield from found
    yield from engine_problems(topology, address, lookup)


def graph_shape(topology: TopologyConfig) -> tuple[str, int, int, int] | None:
    """Return (key that decides, routers, links of a router, hosts of a router) of a kind whose hosts are numbered.

    Where routers differ the sum of both is the largest number of ports.

    None for the other kinds and for an edge list.
    """
    if isinstance(topology, ButterflyConfig):
        return "topology.n", topology.routers, topology.most_ports - topology.k, topology.k
    if isinstance(topology, FullyConnectedConfig):
        return "topology.routers", topology.routers, topology.routers - 1, topology.hosts_per_router
    if isinstance(topology, HyperXConfig):
        links = sum(size - 1 for size in topology.sizes)
        return "topology.sizes", math.prod(topology.sizes), links, topology.hosts_per_router
    if isinstance(topology, SlimFlyConfig):
        return "topology.q", 2 * topology.q**2, topology.links_per_router, topology.terminals
    if isinstance(topology, PolarFlyConfig):
        q = topology.q
        return "topology.q", q * q + q + 1, topology.links_per_router, topology.terminals
    if isinstance(topology, DragonflyPlusConfig):
        width = max(topology.hosts_per_router + topology.spines, topology.leaves + topology.h)
        routers = topology.groups * (topology.leaves + topology.spines)
        return "topology.spines", routers, width - topology.hosts_per_router, topology.hosts_per_router
    if isinstance(topology, CascadeConfig):
        return "topology.sizes", topology.groups * topology.size, topology.links_per_router, topology.hosts_per_router
    if isinstance(topology, ClosConfig):
        middle, root = topology.leaves + topology.roots_of_middle, topology.pods * topology.middles
        root //= 1 if topology.uplinks == "all" else topology.middles
        width = max(topology.hosts_per_router + topology.middles, middle, root if topology.roots else 0)
        routers = topology.pods * (topology.leaves + topology.middles) + topology.roots
        return "topology.leaves", routers, width - topology.hosts_per_router, topology.hosts_per_router
    if isinstance(topology, DirectorConfig):
        links = topology.most_ports - topology.hosts_per_router
        return "topology.racks", topology.routers, links, topology.hosts_per_router
    if isinstance(topology, TiersConfig):
        links = topology.most_ports - topology.hosts_per_router
        return "topology.tiers", topology.routers, links, topology.hosts_per_router
    if isinstance(topology, RandomRegularConfig):
        return "topology.routers", topology.routers, topology.degree, topology.hosts_per_router
    if isinstance(topology, LayoutRandomConfig):
        return "topology.n", topology.n**2, topology.degree, topology.hosts_per_router
    return None


def narrow_output(cache: CacheConfig, ports: int) -> Problem | None:
    """Return why the answers of a cache cannot name all ports of a router."""
    if cache.output_kind == "port_set" and ports > PORT_SET_MOST:
        limit = f"must be port with {ports} ports (a set has at most {PORT_SET_MOST})"
        return Problem("lookup.cache.output_kind", f"{limit}, not port_set")
    if cache.output_kind == "port_set" and ports > cache.output_bits:
        text = f"must hold a bit for each of {ports} ports, not {cache.output_bits} bits"
        return Problem("lookup.cache.output_bits", text)
    if cache.output_kind == "port" and ports > 1 << cache.output_bits:
        text = f"must hold the numbers of {ports} ports, not {cache.output_bits} bits"
        return Problem("lookup.cache.output_bits", text)
    return None


def engine_problems(topology: TopologyConfig, address: AddressConfig, lookup: LookupConfig) -> Iterator[Problem]:
    """Return what of the lookup engine does not fit the address or the network; keys are from the root of the file."""
    cache = lookup.cache
    key_bits = address.width_bits + KEY_MODE_BITS
    if cache.tag_bits < key_bits:
        yield Problem(
            "lookup.cache.tag_bits",
            f"must be at least address.width_bits + {KEY_MODE_BITS} = {key_bits}, not {cache.tag_bits}",
        )
    narrow = narrow_output(cache, _ports(topology))
    if narrow is not None:
        yield narrow
    if not lookup.reduction:
        return
    if lookup.expression is not None:
        yield from expression_problems(lookup.expression, topology, address.width_bits, address.chunk_bits)
        yield from _chunk_width_problems(address, lookup)
        return
    if topology.kind not in (*TABLE_KINDS, *lookup.functions):
        yield Problem("lookup.functions", f"must contain topology.kind={topology.kind!r}")
    if address.chunk_bits not in lookup.chunk_bits:
        yield Problem("lookup.chunk_bits", f"must contain address.chunk_bits={address.chunk_bits}")
    yield from _chunk_width_problems(address, lookup)
    digits = _deciding_digits(topology)
    if digits > lookup.comparators:
        yield Problem(
            "lookup.comparators", f"must be at least the {digits} digits that decide, not {lookup.comparators}"
        )


def _chunk_width_problems(address: AddressConfig, lookup: LookupConfig) -> Iterator[Problem]:
    widest = max(lookup.chunk_bits)
    if widest > address.width_bits - KEY_KIND_BITS:
        limit = f"address.width_bits - {KEY_KIND_BITS} = {address.width_bits - KEY_KIND_BITS}"
        yield Problem("lookup.chunk_bits", f"must be at most {limit}, not {widest}")


def hardware_problems(address: AddressConfig, lookup: LookupConfig) -> Iterator[Problem]:
    """Return what the functional model can do and the hardware cannot; keys are from the root of the file.

    The hardware can split addresses into chunks of every width of `lookup.chunk_bits`, whether keys are reduced or not.
    """
    if not lookup.reduction:  # else `engine_problems` has said so
        yield from _chunk_width_problems(address, lookup)
    if not lookup.cache.enabled:
        yield Problem("lookup.cache.enabled", "must be true for a lookup engine in hardware, not false")
    caches = {"lookup.cache": lookup.cache, "lookup.cache.second_level": lookup.cache.second_level}
    for key, cache in caches.items():
        if cache is not None and cache.policy not in POLICIES:
            engines = f"must be {', '.join(POLICIES[:-1])} or {POLICIES[-1]} in a lookup engine"
            yield Problem(f"{key}.policy", f"{engines}, not {cache.policy}; `hopforge hits` and `app` take it")
    second = lookup.cache.second_level
    for name, only in (("content", "nine"), ("per", "cache")):
        if second is not None and (given := getattr(second, name)) != only:
            words = f"must be {only} in a lookup engine, not {given}; `hopforge hits` and `app` take it"
            yield Problem(f"lookup.cache.second_level.{name}", words)
    if lookup.cache.skewed and lookup.cache.policy != "random":
        yield Problem(
            "lookup.cache.policy", f"must be random with skewed association in hardware, not {lookup.cache.policy}"
        )


def simulated_ports_problem(topology: TopologyConfig, most: int) -> Problem | None:
    """Return what is wrong if a router of the network has more than `most` ports; None for an edge list."""
    ports = _ports(topology)
    if ports <= most:
        return None
    shape = graph_shape(topology)
    key = "topology" if shape is None else shape[0]
    return Problem(key, f"the network simulator takes at most {most} ports a router, not {ports}")


def _ports(topology: TopologyConfig) -> int:
    if isinstance(topology, MeshConfig | TorusConfig):
        return topology.hosts_per_router + 2 * len(topology.radices)
    if isinstance(topology, FatTreeConfig):
        return 2 * topology.k
    if isinstance(topology, DragonflyConfig):
        return topology.p + topology.a - 1 + topology.h
    shape = graph_shape(topology)
    if shape is not None:
        return shape[2] + shape[3]
    assert isinstance(topology, EdgeListConfig)
    return (topology.hosts_per_router or 1) + 1


def _deciding_digits(topology: TopologyConfig) -> int:
    if isinstance(topology, MeshConfig | TorusConfig):
        return len(topology.radices)
    if isinstance(topology, FatTreeConfig):
        return topology.n + 1
    return 1


def _host_numbers(topology: TopologyConfig, address: AddressConfig) -> Iterator[Problem]:
    shape = graph_shape(topology)
    assert shape is not None
    key, routers, _, terminals = shape
    hosts = routers * terminals
    if isinstance(topology, DragonflyPlusConfig | ClosConfig | DirectorConfig):
        hosts = topology.hosts
    if hosts > 1 << address.width_bits:
        yield Problem(
            key,
            f"{hosts} hosts are more than the {1 << address.width_bits} addresses of"
            f" address.width_bits={address.width_bits}",
        )


def group_problems(topology: TopologyConfig) -> Iterator[Problem]:
    """Return whether a dragonfly has more groups than links can reach; keys are from the root of the file."""
    if isinstance(topology, DragonflyConfig) and topology.groups > (most := topology.a * topology.h + 1):
        yield Problem("topology.g", f"{topology.groups} groups are more than the a*h + 1 = {most} that can be linked")


def _group_digits(topology: DragonflyConfig, address: AddressConfig) -> Iterator[Problem]:
    if address.width_bits <= 2 * address.chunk_bits:
        limit = f"half of address.width_bits={address.width_bits}"
        yield Problem("address.chunk_bits", f"must be less than {limit} for a dragonfly, not {address.chunk_bits}")
        return
    group_bits = min(address.width_bits - 2 * address.chunk_bits, address.width_bits - KEY_KIND_BITS)
    if topology.groups > 1 << group_bits:
        yield Problem(
            "topology.g",
            f"{topology.groups} groups are more than the {1 << group_bits} values of the {group_bits} group bits"
            f" (address.width_bits={address.width_bits}, address.chunk_bits={address.chunk_bits})",
        )


def _digit(key: str, values: int, address: AddressConfig) -> Iterator[Problem]:
    if values > 1 << address.chunk_bits:
        yield Problem(
            key,
            f"{values} is more than the {1 << address.chunk_bits} values of a chunk of"
            f" address.chunk_bits={address.chunk_bits}",
        )


def _digits(key: str, digits: int, address: AddressConfig) -> Iterator[Problem]:
    need = digits * address.chunk_bits
    if need > address.width_bits:
        yield Problem(
            key,
            f"{digits} digits of address.chunk_bits={address.chunk_bits} need {need} bits,"
            f" more than address.width_bits={address.width_bits}",
        )


def asker_bits(vcs: int, ports: int) -> int:
    """Return the bits of a tag that names a VC and, if several ports share an engine, its port."""
    return (vcs - 1).bit_length() + (ports - 1).bit_length()


def router_model_problems(router: RouterConfig, traffic: TrafficConfig) -> Iterator[Problem]:
    """Return what of the traffic the router model cannot carry; keys are from the root of the file."""
    if traffic.reply is not None:
        yield from _reply_problems(router, traffic.reply)
    if traffic.acknowledge is not None:
        yield from _acknowledge_problems(router, traffic.acknowledge)
    if router.model == "input_output_queued":
        if traffic.source != "program" and traffic.longest_flits() != 1:
            yield Problem(
                "traffic.packet_flits",
                f"packets must have 1 flit with router.model=input_output_queued, not {traffic.longest_flits()}",
            )
    elif router.model == "packet":
        if traffic.source not in ("bernoulli", "program"):
            others = "input_output_queued" if traffic.source in ("interval", "rounds") else "the other models"
            yield Problem(
                "traffic.source",
                f"must be bernoulli or program with router.model=packet, not {traffic.source}, which is for {others}",
            )
        elif traffic.longest_flits() != 1:
            yield Problem(
                "traffic.packet_flits",
                f"must be 1 with router.model=packet (packet.packet_bytes is the size), not {traffic.longest_flits()}",
            )
    elif traffic.source in ("interval", "rounds"):
        yield Problem("traffic.source", f"{traffic.source} needs router.model=input_output_queued, not {router.model}")


def ahead_problems(
    router: RouterConfig, topology: TopologyConfig, lookup: LookupConfig, spread: str | None
) -> Iterator[Problem]:
    """Return why lookup engines cannot answer for the next router (`router.lookahead`); keys are from the root."""
    if router.route_computation == "table" or not router.lookahead or router.model != "input_queued":
        return
    if lookup.ports_per_engine > 1:
        yield Problem("lookup.ports_per_engine", f"must be 1 with router.lookahead, not {lookup.ports_per_engine}")
    if lookup.cache.output_kind != "port" and spread not in ("flow", "entropy"):
        yield Problem(
            "lookup.cache.output_kind",
            f"must be port with router.lookahead (the next router is known before allocation), or routing.spread flow "
            f"or entropy, not {lookup.cache.output_kind}",
        )
    ports = _ports(topology)
    askers = ports * router.vcs
    if askers > AHEAD_ASKERS_MAX:
        yield Problem(
            "router.lookahead",
            f"lookup engines of outputs serve at most {AHEAD_ASKERS_MAX} virtual channels, not "
            f"{ports} ports · {router.vcs} = {askers}",
        )
    elif asker_bits(askers, 1) > lookup.request_tag_bits:
        yield Problem(
            "lookup.request_tag_bits",
            f"must number {ports} ports · router.vcs={router.vcs} = {askers} with router.lookahead, not "
            f"{lookup.request_tag_bits} bits",
        )


def _reply_problems(router: RouterConfig, reply: ReplyConfig) -> Iterator[Problem]:
    """Return why hosts cannot send replies."""
    if router.model != "input_queued":
        yield Problem("traffic.reply", f"needs router.model=input_queued, not {router.model}")
    if reply.vcs == "own" and router.vcs % 2:
        yield Problem("router.vcs", f"must be even for traffic.reply.vcs=own (a half for each class), not {router.vcs}")


def _acknowledge_problems(router: RouterConfig, acknowledge: AcknowledgeConfig) -> Iterator[Problem]:
    """Return why routers cannot acknowledge packets."""
    if router.model != "input_queued":
        yield Problem("traffic.acknowledge", f"needs router.model=input_queued, not {router.model}")
    elif router.route_computation != "table":
        yield Problem("traffic.acknowledge", f"needs router.route_computation=table, not {router.route_computation}")
    if acknowledge.vcs == "own" and router.vcs < 2:
        yield Problem("router.vcs", f"must be at least 2 for traffic.acknowledge.vcs=own, not {router.vcs}")
    if router.switching != "wormhole" and acknowledge.flits > router.buffer_flits:
        yield Problem(
            "traffic.acknowledge.flits",
            f"must be at most router.buffer_flits={router.buffer_flits} with router.switching={router.switching}, "
            f"not {acknowledge.flits}",
        )


def route_computation_problems(router: RouterConfig, address: AddressConfig, lookup: LookupConfig) -> Iterator[Problem]:
    """Return what of the lookup engine does not fit the router; keys are from the root of the file.

    A cache that is off is an engine that is not enabled: every lookup asks the TCAM.
    """
    if router.route_computation == "table":
        return
    if router.rc_cycles:
        yield Problem(
            "router.rc_cycles",
            f"is for router.route_computation=table only, not lookup (a hit takes "
            f"lookup.pipeline_depth + {1 + lookup.memory_stage} = "
            f"{lookup.hit_cycles + 1} cycles)",
        )
    tag_bits = asker_bits(router.vcs, lookup.ports_per_engine)
    if tag_bits > lookup.request_tag_bits:
        whose = f" of lookup.ports_per_engine={lookup.ports_per_engine} ports" if lookup.ports_per_engine > 1 else ""
        yield Problem(
            "lookup.request_tag_bits",
            f"must number router.vcs={router.vcs}{whose}, not {lookup.request_tag_bits} bits",
        )
    cache = lookup.cache.model_copy(update={"enabled": True})
    yield from hardware_problems(address, lookup.model_copy(update={"cache": cache}))
