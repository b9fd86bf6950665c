"""A workload replayed hop by hop through the routing caches of all input ports of a network.

Every switch has a cache at each input port, those to the hosts included. A packet is looked up at the input port of
every switch that it enters, packet after packet in the order of the workload; a miss asks the TCAM and is filled before
the next lookup. Definitions: docs/guides/hit-rates.md.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config import Config
from hopforge.model.config.lookup import SECOND_CONTENTS
from hopforge.model.errors import UserError
from hopforge.model.irregular.switch_tables import switch_tables
from hopforge.model.irregular.table_routes import TableRoutes, table_routes
from hopforge.model.kernel.compile import kernel
from hopforge.model.lookup.belady import KeyStreams
from hopforge.model.lookup.cache_lines import EMPTY, CacheState, CacheTables, hash_row, touch_line
from hopforge.model.lookup.expression_reduction import configured_reduction
from hopforge.model.lookup.key_ports import KeyPorts
from hopforge.model.lookup.key_validity import check_expression
from hopforge.model.lookup.lid_routes import KnownRoutes
from hopforge.model.lookup.node_reduction import MAX_MEMBERS, NodeReduction
from hopforge.model.lookup.params import MEMBER_BITS
from hopforge.model.lookup.reference_stack import CAPACITY, COMPULSORY, ReferenceStacks, reference_lookup
from hopforge.model.lookup.routes import Paths, Routes
from hopforge.model.lookup.routing_cache import RoutingCache
from hopforge.model.lookup.tcam import NO_MATCH, Tcam, TcamRow, prefix_rows, route_rows, table_prefixes
from hopforge.model.lookup.two_levels import NINE, get_line, put_line, put_lines
from hopforge.model.topology import Topology
from hopforge.model.topology.parallel_links import links_of_a_pair, parallel_ports
from hopforge.sim.hits.kept_lookups import KeptLookups
from hopforge.sim.hits.spread_packets import SpreadPackets
from hopforge.sim.traffic.placed import PacketStream

Hosts: TypeAlias = NDArray[Any]  # whole numbers of any width

#: what is counted for each cache, in the order of `ReplayResult`
COUNTS = ("lookups", "hits", "second_level_hits", "compulsory", "capacity", "conflict", "evictions", "unmatched")
_LOOKUPS, _HITS, _SECOND, _COMPULSORY, _CAPACITY, _CONFLICT, _EVICTIONS, _UNMATCHED = range(len(COUNTS))

PIECE_PACKETS = 1 << 18
MAX_STATE_BYTES = 64 << 30


class ReplayError(UserError, ValueError):
    """A network whose caches do not fit in memory."""


@dataclass(frozen=True, eq=False)
class CacheInputs:
    """The caches of a network: one per input port that is in use, and per link-aggregation member of a link.

    With ``lookup.ports_per_engine`` several ports of a switch have one cache.

    Attributes
    ----------
    router, port, member : ndarray, int32[cache]
        Where a cache is; of several ports the first that is in use.
    first : ndarray, int64[router, port]
        Number of the cache of member 0; -1: the port is not in use.
    ports_of_a_switch, caches_of_a_switch : int
        Most ports (and members) in use that a switch has, and most caches.
    """

    router: NDArray[np.int32]
    port: NDArray[np.int32]
    member: NDArray[np.int32]
    first: NDArray[np.int64]
    ports_of_a_switch: int
    caches_of_a_switch: int

    @property
    def caches(self) -> int:
        """How many."""
        return len(self.router)


def cache_inputs(topology: Topology, members: int = 1, ports_per_cache: int = 1) -> CacheInputs:
    """Give the caches of a network numbers, by router, port and member; host ports have one member."""
    count = np.where(topology.peer_router >= 0, members, np.where(topology.host_at >= 0, 1, 0))
    most = int(count.sum(axis=1).max())
    if ports_per_cache > 1:
        return _shared_inputs(count > 0, ports_per_cache, most)
    router, port = (np.repeat(index.reshape(-1), count.reshape(-1)) for index in np.indices(count.shape))
    start = np.cumsum(count.reshape(-1)) - count.reshape(-1)
    member = np.arange(len(router)) - np.repeat(start, count.reshape(-1))
    return CacheInputs(
        router.astype(np.int32), port.astype(np.int32), member.astype(np.int32),
        np.where(count > 0, start.reshape(count.shape), -1), most, most,
    )  # fmt: skip


def _shared_inputs(used: NDArray[np.bool_], ports_per_cache: int, most: int) -> CacheInputs:
    """Give caches of several ports numbers; the last one of a switch serves what is left over."""
    groups = -(-used.shape[1] // ports_per_cache)
    router, port = np.nonzero(used)
    group, start, number = np.unique(router * groups + port // ports_per_cache, return_index=True, return_inverse=True)
    first = np.full(used.shape, -1, np.int64)
    first[router, port] = number
    caches = np.bincount(group // groups)
    return CacheInputs(
        router[start].astype(np.int32), port[start].astype(np.int32), np.zeros(len(group), np.int32), first, most,
        int(caches.max()),
    )  # fmt: skip


def cache_classes(inputs: CacheInputs, of_port: Sequence[Sequence[str]]) -> list[str]:
    """Return the class of the ports of every cache, from those of all ports; several are joined by ``+``."""
    found: list[dict[str, None]] = [{} for _ in range(inputs.caches)]
    for cache, router, port in zip(range(inputs.caches), inputs.router.tolist(), inputs.port.tolist(), strict=True):
        found[cache][of_port[router][port]] = None
    for router, port in np.argwhere(inputs.first >= 0).tolist():
        found[int(inputs.first[router, port])][of_port[router][port]] = None
    return ["+".join(names) for names in found]


@dataclass(frozen=True, eq=False)
class ReplayResult:
    """Counts of a replay, one number per cache in each array (int64[cache]).

    Attributes
    ----------
    inputs : CacheInputs
        Where the caches are.
    packets, delivered : int
        Packets that entered the network, and that reached their host (all, unless a TCAM lacks their row).
    lookups, hits : ndarray
        Lookups, and those that hit in the (first-level) cache.
    second_level_hits : ndarray
        First-level misses that hit in the second level.
    compulsory, capacity, conflict : ndarray
        First-level misses by cause; see `model.lookup.reference_stack`.
    evictions : ndarray
        Live lines of the first level that were written over.
    unmatched : ndarray
        Misses for which the TCAM has no row: neither cached nor in one of the three causes; the packet is dropped.
    back_invalidations : int
        Lines that left a first level because an inclusive second level gave up their key.
    """

    inputs: CacheInputs
    packets: int
    delivered: int
    lookups: NDArray[np.int64]
    hits: NDArray[np.int64]
    second_level_hits: NDArray[np.int64]
    compulsory: NDArray[np.int64]
    capacity: NDArray[np.int64]
    conflict: NDArray[np.int64]
    evictions: NDArray[np.int64]
    unmatched: NDArray[np.int64]
    back_invalidations: int = field(default=0, kw_only=True)


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
        lines = one.entries * caches
        need = 16 * lines
        if need > MAX_STATE_BYTES:
            raise ReplayError(
                f"lookup.cache.entries: {caches} caches of {one.entries} entries need {need >> 30} GiB of memory,"
                f" more than {MAX_STATE_BYTES >> 30}"
            )
        self.tables: CacheTables = one.tables
        self.sets = one.sets
        start = one.state._replace(outputs=np.empty(0, np.int64))  # every path is known, the lines need not answer
        self.state = CacheState(*(np.tile(array, caches) for array in start))


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


def _matched(
    config: Config, topology: Topology, reduction: NodeReduction, routes: Routes, by_tables: TableRoutes | None
) -> NDArray[np.bool_] | None:
    """Whether the TCAM of a switch has a row for a host, bool[router, host]; None: all have all.

    Only a TCAM that is built into the switch has a limit: it takes the first rows of the switch's routes.
    """
    if config.lookup.tcam.kind not in {"flops", "sram"}:
        return None
    rows, width = config.lookup.tcam.rows, config.address.width_bits
    contents_of: Iterable[Sequence[TcamRow]]
    several = links_of_a_pair(topology) > 1
    if routes.reduction.mode == "arbitrary":
        several = parallel_ports(topology).some
    if several and config.routing.links == "hash":
        raise ReplayError(
            "routing.links: must be own_first or destination for a TCAM in the switch (lookup.tcam.kind: "
            f"{config.lookup.tcam.kind}), whose rows do not know the source, not hash"
        )
    if by_tables is not None:
        contents_of = (switch.rows for switch in switch_tables(by_tables.tables, width))
    elif several:
        contents_of = (_address_rows(routes, router, width) for router in range(topology.routers))
    else:
        ports = KeyPorts(reduction, topology)
        contents_of = (route_rows(ports, router, drop_unknown=False) for router in range(topology.routers))
    result = np.ones((topology.routers, topology.hosts), np.bool_)
    for router, contents in enumerate(contents_of):
        if len(contents) > rows:
            tcam = Tcam.of_rows(contents[:rows], width_bits=width)
            result[router] = tcam.lookup_many(topology.host_address) != NO_MATCH
    return None if result.all() else result


def _address_rows(routes: Routes, router: int, width: int) -> list[TcamRow]:
    """Rows of a switch with parallel links, which no row of a group of destinations tells apart."""
    topology = routes.topology
    ports = routes.output_ports(np.full(topology.hosts, router), np.arange(topology.hosts))
    outputs = dict(zip(topology.host_address.tolist(), ports.tolist(), strict=True))
    return prefix_rows(table_prefixes(outputs, width), width)


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
        self._first = _Level(RoutingCache.from_config(config), self.inputs.caches if section.enabled else 1)
        second = section.second_level
        self._two = section.enabled and second is not None
        one = RoutingCache(entries=1, ways=1, address_bits=config.address.width_bits)
        if self._two and second is not None:
            one = RoutingCache(
                entries=second.entries, ways=second.ways, policy=second.policy, crc=section.crc,
                address_bits=config.address.width_bits, random_seed=section.random_seed,
            )  # fmt: skip
        self._content = NINE if second is None else SECOND_CONTENTS.index(second.content)
        of_switch = second is not None and second.per == "switch"
        self._behind, self._ranges = _second_levels(self.inputs, of_switch=of_switch)
        self._second = _Level(one, len(self._ranges) - 1 if self._two else 1)
        self._back = np.zeros(len(self._ranges) - 1, np.int64)
        self._stacks = ReferenceStacks(self.inputs.caches, section.entries if section.enabled else 0)
        if self._spread is not None:
            self._spread.check_rows(config)
            self._matched = None
        else:
            self._matched = _matched(config, topology, self.reduction, one_way, self._by_tables)
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
        one = self._first.tables._replace(ways=1)
        _lines(one, 0, np.zeros(len(keys), np.int32), keys, rows)
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
            _lines(self._first.tables, self._first.sets, caches, keys, lines)
        delivered, lookups = _send(
            self._first.tables, self._first.state, self._second.tables, self._second.state,
            (self.enabled, self._two, self._content, self._first.sets, self._second.sets), self._stacks.arrays,
            self._stacks.entries, of_packet, matched, w.first, caches, keys, w.slots,
            lines, self._now, self._counts, (self._behind, self._ranges), self._back,
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


# Arrays taken from a tuple, and slices, are reference-counted, which costs more than a lookup: the common case, a hit
# in the first level, uses neither, and finds the lines of each hop worked out.


@kernel
def _lines(c, sets, caches, keys, lines):  # type: ignore[no-untyped-def]
    """First line of the set of each hop in the long arrays, or with skewing the line of each way."""
    for hop in range(len(keys)):
        for way in range(lines.shape[1]):
            row = hash_row(c.rows, way, keys[hop] & c.payload_mask)
            lines[hop, way] = (caches[hop] * sets + row) * c.ways + way


@kernel
def _send(  # type: ignore[no-untyped-def]
    c1, s1, c2, s2, levels, stacks, entries, of_packet, matched, first, caches, keys, slots, lines, now, counts,
    behind, back,
):
    """Send packets; return how many were delivered and how many lookups they made."""
    enabled, two, content, sets1, sets2 = levels
    of_cache, ranges = behind
    head, tail, held, newer, older, status = stacks
    tags, order = s1.tags, s1.order
    ways, policy = c1.ways, c1.policy
    skewed = lines.shape[1] > 1
    begin = now
    delivered = 0
    all_match = len(matched) == 1
    for packet in range(len(of_packet)):
        path = of_packet[packet]
        dropped = False
        for hop in range(first[path], first[path + 1]):
            cache, key = caches[hop], keys[hop]
            counts[_LOOKUPS, cache] += 1
            now += 1
            line = -1
            if enabled:
                start = lines[hop, 0]
                for way in range(ways):
                    at = lines[hop, way] if skewed else start + way
                    line = at if tags[at] == key else line
            if line >= 0:
                touch_line(policy, ways, order, line, now)
                counts[_HITS, cache] += 1
                reference_lookup(head, tail, held, newer, older, status, entries, cache, slots[hop])
                continue
            found = two and get_line(c2, sets2, s2, of_cache[cache], key, now)
            counts[_SECOND, cache] += found
            if not (found or all_match or matched[hop]):
                counts[_UNMATCHED, cache] += 1
                dropped = True
                break
            if two:
                gone, taken = put_lines(
                    content, c1, sets1, s1, c2, sets2, s2, ranges, cache, of_cache[cache], key, found, now
                )
                counts[_EVICTIONS, cache] += gone != EMPTY
                back[of_cache[cache]] += taken
            elif enabled:
                counts[_EVICTIONS, cache] += put_line(c1, sets1, s1, cache, key, now) != EMPTY
            cause = reference_lookup(head, tail, held, newer, older, status, entries, cache, slots[hop])
            if cause == COMPULSORY:
                counts[_COMPULSORY, cache] += 1
            elif cause == CAPACITY:
                counts[_CAPACITY, cache] += 1
            else:
                counts[_CONFLICT, cache] += 1
        delivered += not dropped
    return delivered, now - begin
