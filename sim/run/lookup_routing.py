"""Routes by lookup: whether a routing algorithm's answers can stand in TCAMs, and the engines that look them up.

A lookup sees the destination only, or its key: what the algorithm answers must follow from that and from the input VC
(docs/guides/route-lookup-in-networks.md).
"""

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config import Config
from hopforge.model.config.limits import narrow_output
from hopforge.model.lookup.expression_reduction import configured_reduction
from hopforge.model.lookup.key_kernel import KIND_BITS
from hopforge.model.lookup.node_reduction import NodeReduction
from hopforge.model.lookup.params import MEMBER_BITS, LookupParams
from hopforge.model.lookup.routing_cache import RoutingCache
from hopforge.model.lookup.tcam import Tcam, TcamRow
from hopforge.model.lookup.two_level_cache import TwoLevelCache
from hopforge.model.network.build import build_net
from hopforge.model.network.core.candidates import PORT_VALUES, candidate_port
from hopforge.model.network.core.layouts import PACKET
from hopforge.model.network.core.state import NetState
from hopforge.model.network.core.user_code import refuse_mistake
from hopforge.model.network.parts.lookup_build import RouteLookup
from hopforge.model.network.settings import RouterParameters, SourceParameters, Tables
from hopforge.model.routing import RoutingError, RoutingPlan
from hopforge.model.routing.contract.unknown_inputs import unknown_inputs
from hopforge.model.topology import Topology
from hopforge.model.topology.configured import lid_addresses

#: outputs of key kinds 0 to 2 (docs/architecture.md)
_KINDS = 3


def refuse_unsuitable(config: Config, plan: RoutingPlan) -> None:
    """Refuse a routing algorithm whose answers depend on more than a destination.

    Raises
    ------
    RoutingError
        Naming the algorithm and the reason.
    """
    algorithm, traffic = config.routing.algorithm, config.traffic
    if config.lids > 1:  # classes with channels of their own have relations that do not know single paths
        ranges = (
            ("traffic.reply.vcs: must be shared, not own,", traffic.reply is not None and traffic.reply.vcs == "own"),
            ("traffic.classes: must have no vcs of their own", any(one.vcs is not None for one in traffic.classes)),
        )
        for limit in (words for words, found in ranges if found):
            raise RoutingError(f"{limit} for lookup engines with tables.scheme=k_shortest")
    reasons = (
        ("draws random numbers", plan.random and not plan.of_paths),
        ("sends packets over a router drawn at the source", plan.uses_via),
        ("learns", plan.memory.size > 1 or plan.feedback is not None),
        (
            "chooses a link by the source (routing.links: hash, routing.spread: flow or entropy)",
            plan.by_source and plan.among is None and not plan.of_paths,
        ),
        ("needs an escape port, which a lookup does not answer", plan.obligation == "escape"),
    )
    declared = [reason for reason, found in reasons if found]
    for reason in (*declared, *unknown_inputs(plan, phase_known=True)):
        raise RoutingError(
            f"router.route_computation must be table for routing.algorithm {algorithm}, not lookup: it {reason}"
        )
    if (plan.among or plan).max_candidates > 1 and config.lookup.cache.output_kind != "port_set":
        raise RoutingError(
            f"lookup.cache.output_kind must be port_set for routing.algorithm {algorithm}, which is adaptive, not "
            f"{config.lookup.cache.output_kind}"
        )


def route_lookup(config: Config, topology: Topology, plan: RoutingPlan) -> RouteLookup:
    """Return the lookup engines that sections `lookup` and `address` describe.

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
    _refuse_narrow_output(config, topology)
    enabled = config.lookup.cache.enabled
    numbers = KeyNumbers(topology, configured_reduction(config, topology), lid_addresses(config, topology))
    two = TwoLevelCache.from_config(config)
    return RouteLookup(
        params=engine_params(config),
        enabled=enabled,
        tcam_latency_cycles=config.lookup.tcam.latency_cycles,
        hosts=topology.hosts,
        key=numbers.table,
        key_row=_key_rows(RoutingCache.from_config(config), numbers.payloads),
        row=_rows_present(config, topology, plan),
        ports_per_engine=config.lookup.ports_per_engine,
        second_row=None if two is None else _key_rows(two.second, numbers.payloads)[:, 0],
        next_router=topology.peer_router if config.router.lookahead else None,
        paths=config.lids,
        layers=plan.phases // config.lids,
    )


def _refuse_narrow_output(config: Config, topology: Topology) -> None:
    """Refuse answers that cannot name all ports: `model.config` knows neither groups of links nor graphs of files."""
    narrow = narrow_output(config.lookup.cache, topology.max_ports)
    if narrow is not None:
        raise RoutingError(f"{narrow.key} {narrow.reason}")


def check_keys(config: Config, topology: Topology, plan: RoutingPlan, state: NetState) -> None:
    """Check that what packets are told in an input VC follows from the keys of their destinations.

    Every state that packets can reach is evaluated. All destinations of a key must have the same candidates in an input
    VC, or a cached answer would be wrong for some of them.

    Parameters
    ----------
    config : Config
        The network.
    topology : Topology
        Its routers.
    plan : RoutingPlan
        The routing algorithm.
    state : NetState
        Of the same network.

    Raises
    ------
    RoutingError
        Naming a router, input port, VC and two destinations.
    """
    from hopforge.model.router.walk import walk_packets  # noqa: PLC0415 (it needs `simulation`, which needs this)

    if plan.among is not None or plan.of_paths:
        for part in plan.of_paths or (plan.among,):  # a row has all ports of which a router takes one, or is of a path
            assert part is not None
            tables = Tables(routing=part.table, max_candidates=part.max_candidates, inject_mask=part.inject_mask)
            net = build_net(topology, RouterParameters(vcs=config.router.vcs), SourceParameters(), tables, seed=1)
            check_keys(config, topology, part, net)
        return
    reduction = configured_reduction(config, topology)
    vcs, phases = config.router.vcs, plan.phases
    inputs = topology.routers * topology.max_ports * vcs
    router = np.arange(inputs) // (topology.max_ports * vcs)
    states = inputs * phases
    count, stack = np.empty(states, np.int64), np.empty(states, np.int64)
    answer = np.zeros((states, plan.max_candidates), np.int64)
    packet = np.zeros(1, PACKET)[0]
    numbers = KeyNumbers(topology, reduction, topology.host_address)
    keys = 1 if numbers.table is None else len(numbers.payloads)
    # first answer to each (input VC, key) and its host; whole addresses are keys of one host each
    known = np.full((inputs * keys, 2 + plan.max_candidates), -1, np.int64)
    by_engine = SharedAnswers(config, topology, plan, keys) if numbers.table is not None else None
    for host in range(topology.hosts):
        if numbers.table is None:
            known[:, 0] = -1
            key = np.zeros(topology.routers, np.int64)
        else:
            key = numbers.table[:, host].astype(np.int64)
        count[:] = -1
        walk_packets(plan.route, state.record[0], packet, host, phases, 0, count, answer, stack)
        refuse_mistake(state.record[0])
        reached = np.flatnonzero(count >= 0)
        n = reached // phases
        row = n * keys + key[router[n]]
        columns = np.arange(plan.max_candidates) < count[reached, None]
        told = np.column_stack([count[reached], np.where(columns, answer[reached], 0)])
        if by_engine is not None:
            by_engine.check(host, n // vcs, key[router[n]], told)
        new = known[row, 0] < 0
        known[row[new], 0] = host
        known[row[new], 1:] = told[new]
        wrong = np.flatnonzero((known[row, 1:] != told).any(axis=1))
        if len(wrong):
            k = int(wrong[0])
            pair = int(known[row[k], 0]), host
            raise _different_answers(config, topology, reduction, int(n[k]), pair, (known[row[k], 1:], told[k]))


def _different_answers(
    config: Config,
    topology: Topology,
    reduction: NodeReduction,
    place: int,
    pair: tuple[int, int],
    told: tuple[NDArray[np.int64], NDArray[np.int64]],
) -> RoutingError:
    """Return what is wrong where a key is answered in two ways.

    Parameters
    ----------
    config, topology, reduction
        The network and its keys.
    place : int
        Input VC, numbered through the network.
    pair : (int, int)
        The hosts that have this key; one host twice: its packets are told different things.
    told : two of int64[1 + candidates]
        Number of candidates and the candidates, for each of the pair.
    """
    (router, port), vc = divmod(place // config.router.vcs, topology.max_ports), place % config.router.vcs
    at = f"router {router}, input port {port}, VC {vc}"
    first, host = pair
    if first == host:
        return RoutingError(
            f"router.route_computation must be table for routing.algorithm {config.routing.algorithm}, not "
            f"lookup: packets to host {host} are told different things in {at}"
        )
    if config.lookup.expression is not None:
        shared = int(reduction.keys(router, topology.host_address[host]))
        answers = [words[1 : 1 + words[0]].tolist() for words in told]
        return RoutingError(_different(config, at, pair, shared, answers))
    return RoutingError(
        f"lookup.reduction must be false for routing.algorithm {config.routing.algorithm}: in {at} hosts "
        f"{first} and {host} have the same key and different routes{_key_hint(config)}"
    )


class SharedAnswers:
    """What all input ports of an engine are told for each key, as far as it stands in a row: the output ports.

    Parameters
    ----------
    config, topology, plan
        The network.
    keys : int
        Number of keys.
    """

    def __init__(self, config: Config, topology: Topology, plan: RoutingPlan, keys: int) -> None:
        self.sharing, self.ports, self.keys = config.lookup.ports_per_engine, topology.max_ports, keys
        self.of_router = -(-topology.max_ports // self.sharing)
        engines = topology.routers * self.of_router if self.sharing > 1 else 0
        self.known = np.full((engines * keys, 2 + plan.max_candidates), -1, np.int64)  # host, number, ports in order

    def check(self, host: int, port: NDArray[np.int64], key: NDArray[np.int64], told: NDArray[np.int64]) -> None:
        """Note what input ports (numbered through the network) are told; two hosts of a key must agree.

        Raises
        ------
        RoutingError
            Naming router, engine, key and both hosts.
        """
        if self.sharing == 1:
            return
        router, local = np.divmod(port, self.ports)
        row = (router * self.of_router + local // self.sharing) * self.keys + key
        columns = np.arange(told.shape[1] - 1) < told[:, :1]
        answers = np.column_stack(
            [told[:, 0], np.sort(np.where(columns, candidate_port.py_func(told[:, 1:]), PORT_VALUES), axis=1)]
        )
        new = self.known[row, 0] < 0
        self.known[row[new], 0] = host
        self.known[row[new], 1:] = answers[new]
        wrong = np.flatnonzero((self.known[row, 1:] != answers).any(axis=1))
        if len(wrong):
            at = wrong[0]
            first = int(self.known[row[at], 0])
            engine = int(local[at]) // self.sharing
            raise RoutingError(
                f"lookup.ports_per_engine must be 1 for this routing, not {self.sharing}: in router {router[at]} the "
                f"ports of engine {engine} send hosts {first} and {host}, which have the same key, different ways"
            )


def _different(config: Config, at: str, hosts: tuple[int, int], key: int, told: list[list[int]]) -> str:
    """Say that two destinations with the same key of an expression leave in different ways."""
    assert config.lookup.expression is not None
    ports = ["/".join(str(candidate_port.py_func(packed)) for packed in candidates) for candidates in told]
    ways = f"ports {ports[0]} and {ports[1]}"
    if ports[0] == ports[1]:
        ways = f"port {ports[0]}, in different VCs"
    return (
        f"lookup.reduction.{config.lookup.expression.key}: in {at} hosts {hosts[0]} and {hosts[1]} have the same key "
        f"{key:#x}, and routing.algorithm {config.routing.algorithm} sends them to {ways}"
    )


def _key_hint(config: Config) -> str:
    if config.topology.kind == "dragonfly":
        return " (a key does not say which of several links between two groups: routing.links)"
    if config.topology.kind != "torus" or config.routing.algorithm != "dor":
        return ""
    return " (node reduction breaks ties as routing.ties: key does)"


def engine_params(config: Config) -> LookupParams:
    """Return the parameters of every engine; an engine whose cache is off is one that is not enabled."""
    cache = config.lookup.cache.model_copy(update={"enabled": True})
    lookup = config.lookup.model_copy(update={"cache": cache})
    return LookupParams.from_config(config.model_copy(update={"lookup": lookup}))


class KeyNumbers:
    """Numbers from 0 for the keys that a network can have, so that kernels can count them.

    Parameters
    ----------
    topology : Topology
        The network.
    reduction : NodeReduction
        Its key function.
    addresses : ndarray, int64[address]
        Whole addresses; with key functions those of the hosts.

    Attributes
    ----------
    table : ndarray, int32[router, host], optional
        Number of the key of every host at every router; None: whole addresses, a key is the number of its address.
    payloads : ndarray, int64[key]
        Payload of each key.
    """

    def __init__(self, topology: Topology, reduction: NodeReduction, addresses: NDArray[np.int64]) -> None:
        self.table: NDArray[np.int32] | None = None
        if reduction.mode == "arbitrary":
            self.payloads = addresses
        elif reduction.mode == "expression":
            self._of_expression(topology, reduction)
        else:
            self._of_kinds(topology, reduction)

    def _of_kinds(self, topology: Topology, reduction: NodeReduction) -> None:
        """By member, kind and value."""
        width = _width(topology)
        above, value = np.divmod(np.arange(reduction.members * _KINDS * width), width)
        member, kind = np.divmod(above, _KINDS)
        self.payloads = (member << KIND_BITS | kind) << reduction.value_bits | value
        table = self.table = np.empty((topology.routers, topology.hosts), np.int32)
        for router in range(topology.routers):
            keys = reduction.keys(np.full(topology.hosts, router), topology.host_address)
            payload = keys & (1 << reduction.value_bits + KIND_BITS + MEMBER_BITS) - 1
            above, value = np.divmod(payload, 1 << reduction.value_bits)
            member, kind = np.divmod(above, 1 << KIND_BITS)
            table[router] = (member * _KINDS + kind) * width + value

    def _of_expression(self, topology: Topology, reduction: NodeReduction) -> None:
        """In increasing order."""
        payloads = np.empty((topology.routers, topology.hosts), np.int64)
        for router in range(topology.routers):
            payloads[router] = reduction.keys(router, topology.host_address)
        payloads &= (1 << reduction.address.width_bits) - 1
        self.payloads, number = np.unique(payloads, return_inverse=True)
        self.table = number.reshape(payloads.shape).astype(np.int32)


def _width(topology: Topology) -> int:
    """Return one more than the largest value of a key."""
    params = topology.params
    if topology.kind in {"mesh", "torus"}:
        return max(int(params["hosts_per_router"]), len(params["radices"]))
    if topology.kind == "fat_tree":
        return int(params["k"])
    return max(int(params[name]) for name in "pag")


def _key_rows(cache: RoutingCache, payload: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return the row of each key in each way of a cache: int32[key, way]."""
    tables = cache.tables.rows
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
    from hopforge.model.router.factor import compile_tables  # noqa: PLC0415
    from hopforge.model.router.program import tcam_contents  # noqa: PLC0415

    tables = compile_tables(topology, plan, config.router.vcs, config.routing.algorithm)
    return [tcam_contents(config, topology, tables, router) for router in range(topology.routers)]


def _rows_present(config: Config, topology: Topology, plan: RoutingPlan) -> NDArray[np.uint8] | None:
    """Whether the TCAM of a router has a row for an address: uint8[router, address]; None: all have all.

    As in `hopforge hits` only a TCAM that is built into the router has a limit: it takes the first rows.
    """
    if config.lookup.tcam.kind not in {"flops", "sram"}:
        return None
    limit = config.lookup.tcam.rows
    known = lid_addresses(config, topology)
    result = np.ones((topology.routers, len(known)), np.uint8)
    for router, rows in enumerate(network_rows(config, topology, plan)):
        if len(rows) > limit:
            tcam = Tcam.of_rows(rows[:limit], width_bits=config.address.width_bits, output_bits=62)
            result[router] = tcam.lookup_many(known) >= 0
    return None if result.all() else result
