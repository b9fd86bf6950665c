"""A workload replayed hop by hop through the routing caches of all input ports of a network.

Every switch has a cache at each input port, those to the hosts included. A packet is looked up at the input port of
every switch that it enters, packet after packet in the order of the workload; a miss asks the TCAM and is filled before
the next lookup. Definitions: docs/guides/hit-rates.md.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config import Config
from hopforge.model.config.lookup import SECOND_CONTENTS
from hopforge.model.irregular.table_routes import table_routes
from hopforge.model.lookup.belady import KeyStreams
from hopforge.model.lookup.cache_lines import CacheState, CacheTables
from hopforge.model.lookup.expression_reduction import configured_reduction
from hopforge.model.lookup.key_validity import check_expression
from hopforge.model.lookup.lid_routes import KnownRoutes
from hopforge.model.lookup.node_reduction import MAX_MEMBERS, NodeReduction
from hopforge.model.lookup.params import MEMBER_BITS
from hopforge.model.lookup.reference_stack import ReferenceStacks
from hopforge.model.lookup.routes import Paths, Routes
from hopforge.model.lookup.routing_cache import RoutingCache
from hopforge.model.lookup.two_levels import NINE, CacheLevels
from hopforge.model.topology import Topology
from hopforge.model.topology.parallel_links import links_of_a_pair
from hopforge.sim.hits.cache_inputs import CacheInputs, cache_inputs
from hopforge.sim.hits.kept_lookups import KeptLookups
from hopforge.sim.hits.replay_kernel import lines_of_hops, send_packets
from hopforge.sim.hits.replay_result import COUNTS, ReplayError, ReplayResult
from hopforge.sim.hits.rows_of_hosts import matched_hosts
from hopforge.sim.hits.spread_packets import SpreadPackets
from hopforge.sim.traffic.packet_stream import PacketStream

Hosts: TypeAlias = NDArray[Any]  # whole numbers of any width

PIECE_PACKETS = 1 << 18
MAX_STATE_BYTES = 64 << 30


class Ways(NamedTuple):
    """Lookups of packets; packets between the same hosts share a way.

    Attributes
    ----------
    of_packet : ndarray, int64[packet]
        Way of each packet.
    source, target : ndarray, int64[way]
        Its hosts.
    first : ndarray, int64[way + 1]
        Where the lookups of a way begin in the arrays below.
    router, destination : ndarray [hop]
        Switch, and host that the packet goes to.
    caches, keys, slots : ndarray [hop]
        Cache, key, and number of this (cache, key).
    """

    of_packet: NDArray[np.int64]
    source: NDArray[np.int64]
    target: NDArray[np.int64]
    first: NDArray[np.int64]
    router: NDArray[np.int32]
    destination: NDArray[np.int64]
    caches: NDArray[np.int32]
    keys: NDArray[np.int64]
    slots: NDArray[np.int32]


class _Level:
    """The same kind of cache many times: state of all of them in long arrays."""

    def __init__(self, one: RoutingCache, caches: int) -> None:
        self.tables: CacheTables = one.tables
        self.sets = one.sets
        self.lines = one.entries
        start = one.state.with_fields(outputs=np.empty(0, np.int64))  # every path is known: the lines need not answer
        self.state: CacheState = start.repeated(caches)


def _refuse_many_lines(caches: int, entries: int, key: str) -> None:
    need = 16 * entries * caches
    if need > MAX_STATE_BYTES:
        raise ReplayError(
            f"{key}: {caches} caches of {entries} entries need {need >> 30} GiB of memory,"
            f" more than {MAX_STATE_BYTES >> 30}"
        )


def _link_shift(config: Config, topology: Topology, reduction: NodeReduction) -> int:
    """Bit of a key where the number of the parallel link begins; -1: whole addresses say which, or there are none.

    In a reduced key it stands where the link-aggregation member would, so it takes part in the choice of the set; where
    that is in use or too narrow, and with whole addresses, above the key.
    """
    width, links = config.address.width_bits, links_of_a_pair(topology)
    if reduction.mode == "expression":  # `check_expression` has found that keys say it
        return -1
    if reduction.mode == "arbitrary":
        return width + 4 if config.routing.links == "hash" else -1
    if links == 1:
        return -1
    return width - MEMBER_BITS if links <= MAX_MEMBERS and reduction.members == 1 else width + 4


def _second_levels(inputs: CacheInputs, *, of_switch: bool) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the second level behind each cache, and where the caches of each begin (and all end)."""
    if not of_switch:
        return np.arange(inputs.caches), np.arange(inputs.caches + 1)
    _, start, behind = np.unique(inputs.router, return_index=True, return_inverse=True)  # caches lie switch by switch
    return behind.reshape(-1).astype(np.int64), np.append(start, inputs.caches).astype(np.int64)


class Replay:
    """Caches of a network that packets can be sent through.

    Parameters
    ----------
    config : Config
        Sections `address` and `lookup` are used; with ``routing.algorithm: tables`` also `tables` and `seed`.
    topology : Topology
        The network of the configuration.

    Raises
    ------
    ReplayError
        The caches do not fit in memory.
    UserError
        Tables that are wrong (`build_tables`).
    """

    def __init__(self, config: Config, topology: Topology) -> None:
        section = config.lookup.cache
        self.topology = topology
        self._by_tables = table_routes(config, topology) if config.routing.algorithm == "tables" else None
        table = None if self._by_tables is None else self._by_tables.port
        one_way = Routes(topology, config.address, config.lookup.up_choice, table, config.routing.links)
        self.routes: KnownRoutes = one_way
        self._one_way = one_way
        self._spread: SpreadPackets | None = None
        if config.routing.spread is not None:  # a line belongs to a destination, whatever ways lead there
            self._spread = SpreadPackets(config, topology)
            self.routes = self._spread.routes
            config = config.model_copy(update={"lookup": config.lookup.model_copy(update={"reduction": False})})
        if self._by_tables is not None and config.lookup.expression is not None:
            if self._by_tables.asked is not None:
                raise ReplayError(
                    "tables.cache_key: must be destination for keys by an expression, not "
                    f"{config.tables.cache_key}: the expression is one of the destination"
                )
        elif self._by_tables is not None:  # the keys of a regular network would not follow the tables
            config = config.model_copy(update={"lookup": config.lookup.model_copy(update={"reduction": False})})
        self.reduction = configured_reduction(config, topology)
        check_expression(config, self.reduction, one_way)
        members, sharing = config.lookup.lag.members, config.lookup.ports_per_engine
        if members > 1 and sharing > 1:
            raise ReplayError(
                f"lookup.ports_per_engine: must be 1 for the replay of bundled links (lookup.lag.members: {members}), "
                f"not {sharing}"
            )
        self.inputs = cache_inputs(topology, members, sharing)
        self._link_shift = -1 if self._spread is not None else _link_shift(config, topology, self.reduction)
        self.enabled = section.enabled
        caches = self.inputs.caches if section.enabled else 1
        _refuse_many_lines(caches, section.entries, "lookup.cache.entries")
        self._first = _Level(RoutingCache.from_config(config), caches)
        second = section.second_level
        self._two = section.enabled and second is not None
        of_switch = second is not None and second.per == "switch"
        behind, ranges = _second_levels(self.inputs, of_switch=of_switch)
        one = RoutingCache(entries=1, ways=1, address_bits=config.address.width_bits)
        if self._two and second is not None:
            _refuse_many_lines(len(ranges) - 1, second.entries, "lookup.cache.second_level.entries")
            one = RoutingCache(
                entries=second.entries, ways=second.ways, policy=second.policy, crc=section.crc,
                address_bits=config.address.width_bits, random_seed=section.random_seed,
            )  # fmt: skip
        last = _Level(one, len(ranges) - 1 if self._two else 1)
        self._levels = CacheLevels(
            tables1=self._first.tables, tables2=last.tables, state1=self._first.state, state2=last.state,
            lines1=self._first.lines, lines2=last.lines, behind=np.ascontiguousarray(behind),
            caches=np.ascontiguousarray(ranges),
            content=NINE if second is None else SECOND_CONTENTS.index(second.content),
        )  # fmt: skip
        self._back = np.zeros(len(ranges) - 1, np.int64)
        self._stacks = ReferenceStacks(self.inputs.caches, section.entries if section.enabled else 0)
        if self._spread is not None:
            self._spread.check_rows(config)
            self._matched = None
        else:
            self._matched = matched_hosts(config, topology, self.reduction, one_way, self._by_tables)
        self._counts = np.zeros((len(COUNTS), self.inputs.caches), np.int64)
        alone: NDArray[np.bool_] = np.asarray((topology.peer_router < 0).all(axis=1))
        self._silent = alone[topology.host_router] if alone.any() and topology.routers > 1 else None
        self._now = 0
        self.kept: KeptLookups | None = None
        self.packets = 0
        self.delivered = 0

    def keep_lookups(self) -> None:
        """Keep the lookups from now on, for what needs the future of each (`kept_streams`)."""
        self.kept = KeptLookups(self.inputs.caches)

    def kept_streams(self) -> KeyStreams:
        """Return the lookups of each cache since `keep_lookups`, as if every packet had arrived.

        Raises
        ------
        UserError
            They do not fit in memory.
        """
        assert self.kept is not None, "nothing was kept"
        return self.kept.streams(self.slot_keys())

    def set_numbers(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the set of each key in a first-level cache that is not skewed."""
        rows = np.empty((len(keys), 1), np.int64)
        one = self._first.tables.with_fields(ways=1)
        lines_of_hops(one, 0, np.zeros(len(keys), np.int32), keys, rows)
        return rows.reshape(-1)

    def that_work(self, sources: Hosts, destinations: Hosts) -> tuple[Hosts, Hosts]:
        """Leave out packets from and to hosts of switches without a link, which have failed."""
        if self._silent is None:
            return sources, destinations
        working = ~(self._silent[sources] | self._silent[destinations])
        return sources[working], destinations[working]

    def ways(self, sources: Hosts, destinations: Hosts) -> Ways:
        """Return the lookups of packets from source hosts to destination hosts (int[packet]), each asked for once."""
        hosts = self.topology.hosts
        label = np.asarray(sources, np.int64) * hosts + destinations
        turn: NDArray[np.int64] | int = 0
        if self._spread is None or not self._spread.by_packet:
            pair, of_packet = np.unique(label, return_inverse=True)
        else:
            both = np.stack([label, self._spread.next_entropies(label)], axis=1)
            found, of_packet = np.unique(both, axis=0, return_inverse=True)
            pair, turn = found[:, 0], found[:, 1]
        source, target = pair // hosts, pair % hosts
        if isinstance(self.routes, Routes):
            paths = self.routes.paths(source, target)
        else:
            paths = self.routes.paths(source, target, turn)
            turn = np.repeat(np.broadcast_to(turn, pair.shape), paths.lengths)
        per_hop = np.repeat(target, paths.lengths)
        keys = self._keys(paths.router, np.repeat(source, paths.lengths), per_hop, turn)
        caches = self._caches(paths, self.topology.host_address[per_hop])
        slots = self._stacks.slots_of(caches, keys)
        return Ways(of_packet.reshape(-1), source, target, paths.first, paths.router, per_hop, caches, keys, slots)

    def _keys(self, routers: Hosts, sources: Hosts, targets: Hosts, entropy: Hosts | int = 0) -> NDArray[np.int64]:
        """Return what switches ask their caches with, for packets between hosts."""
        if self._by_tables is None:
            asked = self.topology.host_address[targets]
        else:
            asked = self._by_tables.addresses(routers, targets)
        keys = self.reduction.keys(routers, asked)
        if self._spread is not None:
            return self._spread.keys(keys, sources, targets, entropy)
        if self._link_shift >= 0:
            keys |= self._one_way.link_keys(routers, sources, targets) << self._link_shift
        return keys

    @property
    def changes_address(self) -> bool:
        """Whether packets of a pair of hosts have one address of the destination after the other."""
        return self._spread is not None and self._spread.by_packet and self._spread.lids > 1

    def slots_towards(self, caches: NDArray[np.int64], sources: Hosts, targets: Hosts) -> NDArray[np.int32]:
        """Return the slots of the keys that packets between hosts would have in caches."""
        keys = self._keys(self.inputs.router[caches], sources, targets)
        return self._stacks.slots_of(caches.astype(np.int32), keys)

    @property
    def lacks_rows(self) -> bool:
        """Whether a TCAM in a switch has no row for some host."""
        return self._matched is not None

    def slot_keys(self) -> NDArray[np.int64]:
        """Return the key of each slot, int64[slot]."""
        return self._stacks.slot_keys()

    def send(self, sources: Hosts, destinations: Hosts) -> None:
        """Send packets from source hosts to destination hosts (int[packet]), one after the other.

        Those from and to hosts of switches without a link, which have failed, are left out.
        """
        w = self.ways(*self.that_work(sources, destinations))
        of_packet, caches, keys = w.of_packet, w.caches, w.keys
        if self.kept is not None:
            self.kept.add(of_packet, w.first, caches, w.slots)
        matched = np.ones(1, np.bool_) if self._matched is None else self._matched[w.router, w.destination]
        lines = np.empty((len(keys), len(self._first.tables.rows)), np.int64)
        if self.enabled:
            lines_of_hops(self._first.tables, self._first.sets, caches, keys, lines)
        delivered, lookups = send_packets(
            self._levels, self.enabled, self._two, self._stacks.arrays, self._stacks.entries, of_packet, matched,
            w.first, caches, keys, w.slots, lines, self._now, self._counts, self._back,
        )  # fmt: skip
        self._now += lookups
        self.packets += len(of_packet)
        self.delivered += delivered

    def _caches(self, paths: Paths, address: NDArray[np.int64]) -> NDArray[np.int32]:
        first = self.inputs.first[paths.router, paths.port]
        if self.reduction.members == 1:
            return first.astype(np.int32)
        linked = self.topology.peer_router[paths.router, paths.port] >= 0
        return (first + np.where(linked, self.reduction.member_array(address), 0)).astype(np.int32)

    @property
    def result(self) -> ReplayResult:
        """Counts up to now."""
        found = ReplayResult(self.inputs, self.packets, self.delivered, *(row.copy() for row in self._counts))
        return replace(found, back_invalidations=int(self._back.sum()))


def replay(
    config: Config, topology: Topology, workload: PacketStream, progress: Callable[[int, int], None] | None = None
) -> ReplayResult:
    """Send all packets of a workload through caches that are empty at the start.

    Parameters
    ----------
    config : Config
        Sections `address` and `lookup` are used.
    topology : Topology
        The network of the configuration.
    workload : PacketStream
        The packets.
    progress : callable, optional
        Called with (packets done, packets in all) after every piece.

    Raises
    ------
    ReplayError
        The caches do not fit in memory.
    """
    return send_all(Replay(config, topology), workload, progress)


def send_all(
    network: Replay, workload: PacketStream, progress: Callable[[int, int], None] | None = None
) -> ReplayResult:
    """Send all packets of a workload; `progress` is called with (packets done, packets in all) after every piece."""
    for sources, destinations in workload.chunks():
        for start in range(0, len(sources), PIECE_PACKETS):
            network.send(sources[start : start + PIECE_PACKETS], destinations[start : start + PIECE_PACKETS])
            if progress is not None:
                progress(network.packets, workload.packets)
    return network.result


