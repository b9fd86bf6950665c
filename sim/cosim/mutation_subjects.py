"""The blocks that are mutated, each with the golden traces of its bench."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from amaranth.hdl import Fragment
from amaranth.lib.wiring import Component

from hopforge.gen.design.configured import NetworkDesign, engine_parameters, network_design
from hopforge.gen.design.service_host import ServiceHostDesign, service_host_design
from hopforge.hw.agents.q_table import QTable
from hopforge.hw.lookup.engine import is_deep
from hopforge.hw.network.network import Network
from hopforge.hw.parts.sliced_counter import slices
from hopforge.hw.router.router import Router
from hopforge.hw.rules.rule_cache import RuleCache
from hopforge.model.config import Config
from hopforge.model.lookup.params import LookupParams
from hopforge.model.lookup.rules.rule_cache_params import RuleCacheParams
from hopforge.model.router.configured import network_links
from hopforge.model.router.links import topology_hosts
from hopforge.model.router.params import RouterParams
from hopforge.model.router.q_table import QTableParams
from hopforge.sim.benches.lookup import observed_replay
from hopforge.sim.benches.network_interface import InterfaceTraffic, disagreeing, network_interface_replay
from hopforge.sim.benches.node_reduction import node_reduction_bench
from hopforge.sim.benches.q_table import QTableTraffic, q_table_replay
from hopforge.sim.benches.routing_cache import routing_cache_bench
from hopforge.sim.benches.rule_cache import RuleCacheTraffic, rule_cache_run
from hopforge.sim.benches.service_host import ServiceTraffic, service_host_replay
from hopforge.sim.cosim.lookup import engine_traffic
from hopforge.sim.cosim.mutation_race import Surroundings, Use
from hopforge.sim.cosim.mutation_report import INTERFACE, Q_TABLE, ROUTER, RULE_CACHE, SERVICE_HOST, BlockName
from hopforge.sim.cosim.observed_engine import OBSERVER, ObservedEngine
from hopforge.sim.cosim.prepared import engine_setup
from hopforge.sim.cosim.router import router_of
from hopforge.sim.drive.held_stimulus import held_stimulus
from hopforge.sim.drive.replay import Replay
from hopforge.sim.drive.router import router_replay
from hopforge.sim.drive.router_stimulus import router_stimulus
from hopforge.sim.drive.router_traffic import RouterTraffic
from hopforge.sim.drive.stimulus import stimulus
from hopforge.sim.drive.stimulus_traffic import Traffic

_USED_CYCLES = 400

COUNT_FROM = 2**32 - 1024
"""What counters begin with after reset, in the netlist and in the golden model: they would need 2^31 events for bits
that are tested in no time when there are ones from the start and zeros after a clearing."""

_ENGINE_COUNT_FROM = 2**32 - 64
"""As `COUNT_FROM`, of a lookup engine by itself: some of its events are rare, and each must carry through all bits."""

_EVENTS = {r"count_\w+_high": COUNT_FROM >> 2}  # of hw.parts.event_counter, whose two lowest bits are apart
_DROPS = {"drops_counted": COUNT_FROM}  # of hw.ports.input_unit; the event is added a cycle later

_CARRIES = 24
"""Traces of a network and of a router in which counters carry into a high bit."""

_RESETS = 16
"""Further resets of an engine in each trace."""


class Subject(NamedTuple):
    """A block to be mutated.

    Attributes
    ----------
    block : str
        Which.
    component : Component
        Fresh.
    replays : list of callable
        Each makes one golden trace.
    used_cycles, used_masks, uses
        See `hopforge.sim.cosim.mutation_race.Surroundings`.
    spared : str
        Modules that other benches test, see `hopforge.gen.mutation.mutate.write_netlist`.
    reset : dict
        Registers that the golden model lets begin elsewhere, see `hopforge.gen.mutation.mutate.write_netlist`.
    counts_from : sequence of int or None
        What the counters begin with in each of `replays`; None, also for those beyond its end: what `reset` says.
    """

    block: BlockName
    component: Component
    replays: list[Callable[[], Replay]]
    used_cycles: int = 0
    spared: str = ""
    reset: dict[str, int] = {}
    used_masks: dict[str, int] = {}
    uses: tuple[Use, ...] = ()
    counts_from: Sequence[int | None] = ()

    @property
    def surroundings(self) -> Surroundings:
        """What is done to the netlist besides the traces."""
        return Surroundings(self.used_cycles, self.used_masks, self.uses)


def subject(config: Config, block: BlockName, seed: int) -> Subject:
    """Return the block of the engine, or the router, that `config` describes, with the traces of its bench."""
    if block == ROUTER:
        return router_subject(router_of(config)[1], seed)
    if block == INTERFACE:
        return interface_subject(network_design(config), seed)
    if block == Q_TABLE:
        return q_table_subject(QTableParams.from_config(config), seed)
    if block == SERVICE_HOST:
        return service_host_subject(service_host_design(config), seed)
    if block == RULE_CACHE:
        return rule_cache_subject(RuleCacheParams.from_config(config), seed)
    params = engine_parameters(config)
    if block == "lookup":
        return engine_subject(config, params, seed)
    bench = node_reduction_bench if block == "node_reduction" else routing_cache_bench
    counts = [400, 4000, 20000]

    def trace(number: int, cycles: int) -> Replay:
        made = bench(params, cycles, np.random.default_rng([seed, number]))
        Fragment.get(made.component, None)  # only its trace is wanted, but Amaranth warns of what is never elaborated
        return made.replay

    made = [lambda number=number, cycles=cycles: trace(number, cycles) for number, cycles in enumerate(counts)]
    return Subject(block, bench(params, 2, np.random.default_rng(seed)).component, made)  # type: ignore[arg-type]


def engine_subject(config: Config, params: LookupParams, seed: int) -> Subject:
    """Return a whole engine with traces of its bench, shortest first.

    It is never enabled before a reset: the memories, which that does not clear, are then as at power-up.
    """
    kinds = [*_engine_traffic(config, params, seed)]
    setup = engine_setup(config, params)
    replays: list[Callable[[], Replay]] = [
        lambda traffic=traffic, begin=() if number else setup: observed_replay(  # type: ignore[misc]
            stimulus(params, traffic, begin)
        )
        for number, traffic in enumerate(kinds)
    ]
    return Subject(
        "lookup", ObservedEngine(params=params), replays, _USED_CYCLES, OBSERVER, _event_counters(params),
        used_masks={"csr_wdata": 0xFFFFFFFE}, uses=_uses(seed),
        counts_from=[None, *(one.count_from for one in kinds[1:])],
    )  # fmt: skip


def _uses(seed: int) -> tuple[Use, ...]:
    """Return resets in the middle of work, of one cycle or two."""
    rng = np.random.default_rng((seed, 17))
    return tuple(
        Use(int(rng.integers(0, 1500)), int(rng.integers(30, 250)), 1 + number % 2) for number in range(_RESETS)
    )


def counts(seed: int, number: int, first: int) -> list[int]:
    """Return what counters begin with in `number` traces: in the first one what the netlist says.

    The others are a few events before a carry into a higher bit of a word that has zeros above it, so that a carry too
    many or too few shows in any bit.
    """
    rng = np.random.default_rng((seed, 18))
    found = [first]
    while len(found) < number:
        carry = int(rng.choice([2, 4, 11, 18, 25])) + int(rng.integers(0, 7))  # anywhere in any slice
        above = int(rng.integers(0, 1 << 32)) & -2 << carry
        found.append((above | (1 << carry)) - 1 - int(rng.integers(0, 12)) & 0xFFFFFFFF)
    return found


def each_carry(seed: int) -> list[int]:
    """Return what counters begin with in as many traces as there are bits that a carry goes into, the lowest apart.

    One to three events lie before each carry; the bit it goes into is 0 and lower ones are 1, so that whatever adds too
    much to a higher bit, or too little, shows.
    """
    rng = np.random.default_rng((seed, 19))
    begins = []
    for carry in range(2, 32):
        above = int(rng.integers(0, 1 << 32)) & -2 << carry
        begins.append((above | 1 << carry) - int(rng.integers(1, 4)) & 0xFFFFFFFF)
    return begins


def router_subject(params: RouterParams, seed: int) -> Subject:
    """Return a router with traces of its bench, shortest first.

    With tables it is not enabled all the time in the second. In the fifth nearly all packets are dropped, and nobody
    clears the counters. The drop counters of the others carry into a high bit.
    """
    traffic = [
        RouterTraffic(cycles=cycles, seed=100 * seed + n, count_from=COUNT_FROM)
        for n, cycles in enumerate((1000, 10_000, 60_000))
    ]
    traffic.append(
        RouterTraffic(
            cycles=60_000, seed=100 * seed + 3, unroutable=0.98, clear_cycles=1 << 30, longest_flits=1,
            count_from=COUNT_FROM,
        )
    )  # fmt: skip
    begins = counts(seed, _CARRIES + 1, COUNT_FROM)[1:]
    traffic += [
        RouterTraffic(
            cycles=3000, seed=100 * seed + 20 + n, unroutable=0.3, clear_cycles=1 << 30, longest_flits=2,
            count_from=begin,
        )
        for n, begin in enumerate(begins)
    ]  # fmt: skip
    replays: list[Callable[[], Replay]] = [
        lambda one=one: router_replay(router_stimulus(params, one))  # type: ignore[misc]
        for one in traffic
    ]
    if params.rc == "table":
        held = RouterTraffic(cycles=3000, seed=100 * seed + 9, count_from=COUNT_FROM)
        replays.insert(1, lambda: router_replay(held_stimulus(params, held)))
    reset = _DROPS if params.rc == "table" else _EVENTS | _DROPS
    told = [None] * (len(replays) - len(begins)) + begins
    return Subject(ROUTER, Router(params=params), replays, _USED_CYCLES, reset=reset, counts_from=told)


def interface_subject(design: NetworkDesign, seed: int) -> Subject:
    """Return what a network adds to its routers, with traces of its bench, shortest first."""
    design = disagreeing(design)
    lengths = [(800, 0.2), (4000, 0.05), (12_000, 0.3), *[(1200, 0.3)] * _CARRIES]
    begins = counts(seed, len(lengths), COUNT_FROM)
    replays: list[Callable[[], Replay]] = [
        partial(
            network_interface_replay, design,
            InterfaceTraffic(cycles=cycles, seed=100 * seed + n, load=load, count_from=begin),
        )
        for n, ((cycles, load), begin) in enumerate(zip(lengths, begins, strict=True))
    ]  # fmt: skip
    component = Network(
        routers=design.params, links=network_links(design.config, design.topology),
        hosts=topology_hosts(design.topology),
    )  # fmt: skip
    return Subject(
        INTERFACE, component, replays, _USED_CYCLES, "router*.router*", _EVENTS | _DROPS,
        counts_from=[None, *begins[1:]],
    )  # fmt: skip


def q_table_subject(params: QTableParams, seed: int) -> Subject:
    """Return a table of Q-adaptive with traces of its bench, shortest first."""
    shapes = [(600, 3, 0.8), (4000, 2, 0.8), (20_000, 8, 0.4), (20_000, 3, 1.0)]
    runs = [
        QTableTraffic(cycles=cycles, seed=100 * seed + n, places=places, queries=share, updates=share)
        for n, (cycles, places, share) in enumerate(shapes)
    ]
    replays: list[Callable[[], Replay]] = [partial(q_table_replay, params, traffic) for traffic in runs]
    return Subject(Q_TABLE, QTable(params=params), replays, _USED_CYCLES)


def service_host_subject(design: ServiceHostDesign, seed: int) -> Subject:
    """Return a service host of acknowledges with traces of its bench, shortest first.

    Its time begins before a carry into its highest bit.
    """
    first = (1 << design.rules.time_bits) - 1024
    shapes: list[tuple[int, dict[str, float]]] = [
        (600, {}), (4000, {"heads": 0.5, "acknowledges": 0.9}), (4000, {"credits": 0.15, "taken": 0.4}),
        (20_000, {"heads": 0.03, "taken": 0.02, "acknowledges": 0.3, "strangers": 0.3}), (20_000, {}),
    ]  # fmt: skip
    hardware = design.build()
    replays: list[Callable[[], Replay]] = [
        partial(
            service_host_replay, hardware,
            ServiceTraffic(cycles=cycles, seed=100 * seed + n, first_cycle=first, **rates),
        )
        for n, (cycles, rates) in enumerate(shapes)
    ]  # fmt: skip
    return Subject(SERVICE_HOST, hardware, replays, _USED_CYCLES, reset={"now": first})


def rule_cache_subject(params: RuleCacheParams, seed: int) -> Subject:
    """Return a rule cache with its TCAM, with traces of its bench, shortest first."""
    shapes = [(300, 0.02), (3000, 0.02), (10_000, 0.005), (10_000, 0.1), (20_000, 0.3)]
    runs = [
        RuleCacheTraffic(lookups=lookups, seed=100 * seed + n, updates=updates)
        for n, (lookups, updates) in enumerate(shapes)
    ]
    replays: list[Callable[[], Replay]] = [lambda one=one: rule_cache_run(params, one).replay for one in runs]  # type: ignore[misc]
    return Subject(RULE_CACHE, RuleCache(params), replays, _USED_CYCLES)


def _event_counters(params: LookupParams) -> dict[str, int]:
    """Return what the registers of an engine's counters begin with."""
    if not is_deep(params):
        return {name: _ENGINE_COUNT_FROM >> 2 for name in _EVENTS}
    return {rf"count_\w+_at{start}": _ENGINE_COUNT_FROM >> start & (1 << end - start) - 1 for start, end in slices()}


def _engine_traffic(config: Config, params: LookupParams, seed: int) -> Iterator[Traffic]:
    """Yield traffic of different kinds, shortest first."""
    network = engine_traffic(config, 1000, seed).addresses
    # near the own address every key function and digit counts; many lookups between two changes of the configuration
    shapes = [(12, 48, 2000), (30, params.entries, 100), (60, 2 * params.entries, 300), (20, params.entries, 60)]
    begin = iter(counts(seed, 32, _ENGINE_COUNT_FROM))
    yield Traffic(
        lookups=600, seed=seed, quiet_cycles=15, pool=3 * params.entries, addresses=network, count_from=next(begin),
        thorough=True,
    )  # fmt: skip
    for number, (quiet, pool, often) in enumerate(3 * shapes):
        yield Traffic(
            lookups=4000, seed=seed + 10 + number, quiet_cycles=quiet, pool=pool, pool_lookups=often, locality=1.0,
            centres=2, count_from=next(begin), thorough=True,
        )  # fmt: skip
    yield Traffic(
        lookups=2000, seed=seed + 1, quiet_cycles=4, pool=64, locality=1.0, link_failures=0.004, count_from=next(begin),
        thorough=True,
    )  # fmt: skip
    # as many invalidations, flushes and equal keys on their way as there can be
    for number, (quiet, pool) in enumerate([(2, 4), (3, 6), (6, 12), (10, 3), (25, 5), (5, 24)]):
        yield Traffic(
            lookups=12_000, seed=seed + 40 + number, quiet_cycles=quiet, pool=pool, pool_lookups=400, locality=1.0,
            centres=1, link_failures=0.002, count_from=next(begin), thorough=True,
        )  # fmt: skip
    # in the last two the cache is full of one set-up's keys before the next one comes: where they lie decides, too
    shapes_of_switching = [(12, 16), (30, 2 * params.entries), (250, 2 * params.entries), (600, params.entries + 4)]
    for number, (quiet, pool) in enumerate(shapes_of_switching):
        yield Traffic(
            lookups=30_000, seed=seed + 50 + number, quiet_cycles=quiet, pool=pool, pool_lookups=150, locality=1.0,
            centres=3, count_from=next(begin), switching=True, thorough=True,
        )  # fmt: skip
    # rare events, too, are counted over a carry into each bit, and then read
    for number, count_from in enumerate(each_carry(seed)):
        yield Traffic(
            lookups=700, seed=seed + 60 + number, quiet_cycles=8, pool=(12, 2 * params.entries)[number % 2],
            pool_lookups=100, locality=1.0, centres=1, count_from=count_from, counting=True, thorough=True,
        )  # fmt: skip
