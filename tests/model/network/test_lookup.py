"""Route computation by lookup: the kernel against networks of golden routers with golden engines, cycle by cycle."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopforge.model.config import Config, ConfigError, parse_config
from hopforge.model.lookup.golden.build import SHALLOW_DEPTHS
from hopforge.model.lookup.node_reduction import NodeReduction
from hopforge.model.lookup.tcam import Tcam, TcamRow
from hopforge.model.network.core.lookup_state import COUNTS
from hopforge.model.router import params as router_params
from hopforge.model.router.configured import network_links, network_params
from hopforge.model.router.factor import compile_tables
from hopforge.model.router.flit import PortInputs
from hopforge.model.router.links import End, topology_hosts
from hopforge.model.router.network import EngineSetup, HostModel, NetworkModel, Packet
from hopforge.model.router.program import engine_registers
from hopforge.model.routing import RoutingError
from hopforge.model.topology.spread import flow_place
from hopforge.sim.hits.replay import Replay
from hopforge.sim.run.lookup_measures import lookup_table
from hopforge.sim.run.lookup_routing import SharedAnswers, engine_params, network_rows
from hopforge.sim.run.simulation import Simulation

SENT, TAKEN = 2, 3  # kinds of the simulator's log
TAG_BITS = 16
WIDTH_BITS = 80

#: two paths for each destination, taken in turn
PATHS = (
    "{algorithm: tables, spread: entropy}\ntables: {scheme: k_shortest, lmc: 1, slack: 2, layers: hop_indexed}\n"
    "traffic: {entropy: {per: packet, values: 4}}"
)
NETWORKS = {
    "mesh": ("{kind: mesh, radices: [2, 2]}", "{algorithm: dor}"),
    "ring": ("{kind: torus, radices: [5], hosts_per_router: 2}", "{algorithm: dor}"),
    "torus": ("{kind: torus, radices: [3, 3]}", "{algorithm: dor}"),
    "tree": ("{kind: fat_tree, k: 2, n: 1}", "{algorithm: d_mod_k}"),
    "adaptive tree": ("{kind: fat_tree, k: 2, n: 1}", "{algorithm: nca}"),
    "dragonfly": ("{kind: dragonfly, p: 1, a: 2, h: 1}", "{algorithm: dragonfly_min}"),
    "spread": ("{kind: clos, leaves: 3, middles: 3, hosts_per_router: 2}", "{algorithm: minimal, spread: flow}"),
    "paths": ("{kind: random_regular, routers: 6, degree: 3, hosts_per_router: 2}", PATHS),
    "paths of a ring": ("{kind: torus, radices: [5], hosts_per_router: 1}", PATHS),
    # routers of 72, 92 and, with three links in a group, 131 ports
    "wide": ("{kind: fully_connected, routers: 3, hosts_per_router: 70}", "{algorithm: shortest}"),
    "wide mesh": ("{kind: mesh, radices: [3], hosts_per_router: 90}", "{algorithm: dor}\naddress: {chunk_bits: 8}"),
    "wide groups": ("{kind: fully_connected, routers: 2, hosts_per_router: 128}", "{algorithm: shortest}"),
}
SETS = ("adaptive tree", "spread")


def configure(network: str, router: dict[str, Any], lookup: dict[str, Any]) -> Config:
    topology, routing = NETWORKS[network]
    nested = {"cache": {"entries": 16} | lookup.get("cache", {}), "tcam": lookup.get("tcam", {})}
    nested["lag"] = lookup.get("lag", {})
    lookup = {key: value for key, value in lookup.items() if key not in nested}
    if network in SETS:
        nested["cache"] = nested["cache"] | {"output_kind": "port_set"}

    def flow(values: dict[str, Any]) -> str:
        words = (f"{key}: {str(value).lower()}" for key, value in values.items())
        return "{" + ", ".join(words) + "}"

    return parse_config("\n".join([
        "name: test",
        f"topology: {topology}",
        f"routing: {routing}",
        f"router: {flow({'route_computation': 'lookup'} | router)}",
        f"lookup: {flow(lookup | {key: flow(values) for key, values in nested.items()})}",
    ]))  # fmt: skip


def random_script(hosts: int, packets: int, last: int, longest: int, seed: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    return (
        rng.integers(0, hosts, packets), np.sort(rng.integers(0, last, packets)), rng.integers(0, hosts, packets),
        rng.integers(1, longest + 1, packets),
    )  # fmt: skip


def row_words(rows: Sequence[TcamRow]) -> list[tuple[str, int]]:
    words: list[tuple[str, int]] = []
    for number, row in enumerate(rows):
        words += [("TCAM_VALUE_LO", row.value), ("TCAM_MASK_LO", row.mask), ("TCAM_OUTPUT_LO", row.output)]
        words.append(("TCAM_WRITE", number | row.lag << 16 | 1 << 31))
    return words


def golden_setups(config: Config, run: Simulation) -> list[EngineSetup]:
    params, topology = engine_params(config), run.topology
    reduction = NodeReduction.from_config(config, topology)
    setups = []
    for router, rows in enumerate(network_rows(config, topology, run.plan)):
        words = list(engine_registers(config, params, reduction, router).items())
        tcam = None
        if params.tcam_kind == "external":
            tcam = Tcam.of_rows(rows, width_bits=params.address_bits)
        else:
            words += row_words(rows[: params.tcam_rows])
        if config.lookup.cache.enabled:
            words.append(("CTRL", 1))
        setups.append(EngineSetup(tuple(words), tcam, config.lookup.tcam.latency_cycles, reduction.member))
    return setups


def golden_run(config: Config, run: Simulation, script: Sequence[np.ndarray], cycles: int) -> tuple[Any, list[Any]]:
    """Return the network of golden routers after `cycles` cycles, and its hosts."""
    topology = run.topology
    tables = compile_tables(topology, run.plan, config.router.vcs, config.routing.algorithm)
    params = network_params(
        config, topology, tables, lookup=engine_params(config), width_bits=WIDTH_BITS, tag_bits=TAG_BITS
    )
    network = NetworkModel(params, network_links(config, topology), golden_setups(config, run))
    queues: list[list[Packet]] = [[] for _ in range(topology.hosts)]
    sent: Counter[tuple[int, int]] = Counter()
    for host, created, target, flits in zip(*(column.tolist() for column in script), strict=True):
        address = int(topology.host_address[target])
        if config.lids > 1:  # several-paths.md: g(s, d, N) and the packet's entropy, modulo K
            address = address * 2 + (int(flow_place(host, target, topology.routers, 2)) + sent[host, target] % 4) % 2
            sent[host, target] += 1
        head = address | host << 24 | len(queues[host]) << 48
        queues[host].append(Packet(created, head | flits << 48 + TAG_BITS, flits))
    ends = topology_hosts(topology)
    masks = tables.inject_mask
    assert (masks == (1 << config.router.vcs) - 1).all()
    hosts = [HostModel(params[end.router], queue) for end, queue in zip(ends, queues, strict=True)]
    for cycle in range(cycles):
        visible = network.visible()
        outside: dict[End, PortInputs] = {}
        for model, end in zip(hosts, ends, strict=True):
            outside[end] = model.step(cycle, visible[end.router][end.port])
        network.step(outside)
    return network, hosts


def compare(config: Config, packets: int = 40, last: int = 60, cycles: int = 700, seed: int = 1) -> Simulation:
    """Run both until all is still, or `cycles`; every flit is sent and taken in the same cycle, all counts agree."""
    topology = Simulation(config, 0.1, 1, check=False).topology
    longest = min(3, config.router.buffer_flits)
    script = random_script(topology.hosts, packets, last, longest, seed)
    run = Simulation(config, 0.1, 1, script=script, log_events=100000, check=False)
    done = 0
    while run.state["cycle"] < cycles and (done < packets or run.state.flits_in_flight):
        run.advance(25)
        done = run.state["packets_ejected"] + run.state["packets_dropped"]
    run.advance(25)  # nothing comes after the last packet
    run.check_conservation()
    assert run.state.flits_in_flight == 0, "the run is too short"
    network, hosts = golden_run(config, run, script, int(run.state["cycle"]))
    log = run.state["log"].reshape(-1, 6)[: int(run.state["log_length"])]
    for kind, what in ((SENT, "sent"), (TAKEN, "received")):
        want = [(cycle, at, number, flit) for cycle, k, at, _, number, flit in log.tolist() if k == kind]
        got = []
        for host, model in enumerate(hosts):
            current: dict[int, int] = {}
            for cycle, flit in getattr(model, what):
                if flit.is_head:
                    current[flit.vc] = (flit.data >> 24 & 0xFFFFFF) << 40 | flit.data >> 48 & (1 << TAG_BITS) - 1
                got.append((cycle, host, current[flit.vc], flit.kind))
        assert sorted(got) == sorted(want), what
    assert run.state.lookup is not None
    counts = run.state.lookup.counts
    second = {} if run.state.lookup.second is None else run.state.lookup.second.counts
    ports = run.topology.max_ports
    for router, model in enumerate(network.routers):
        for number, engine in enumerate(model.engines):
            mine = {name: int(counts[name][router * len(model.engines) + number]) for name in COUNTS}
            misses = sum(mine[cause] for cause in ("compulsory", "capacity", "conflict", "unmatched"))
            mine |= {"misses": misses, "lookups": mine["hits"] + mine["merges"] + misses}
            if run.state.lookup.second is not None:
                assert second["hits"][router * len(model.engines) + number] == engine.counters["second_hits"]
            same = ("lookups", "hits", "misses", "merges", "fills", "evictions", "drops")
            assert [mine[name] for name in same] == [engine.counters[name] for name in same], (router, number)
        drops = [output.drops for output in model.visible()]
        assert drops == run.state["input_port"]["drops"][router * ports : (router + 1) * ports].tolist()
    return run


# an engine for each network, and between them every depth, one MSHR, evictions, whole addresses, no cache
CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "one cycle": ("mesh", {"vcs": 2}, {"pipeline_depth": 1}),
    "two cycles": ("ring", {"vcs": 4}, {"pipeline_depth": 2, "mshrs": 2}),
    "one MSHR": ("tree", {"vcs": 4, "speculation": True}, {"mshrs": 1}),
    "evictions": ("dragonfly", {"vcs": 4}, {"pipeline_depth": 4, "cache": {"entries": 2, "ways": 2}}),
    "whole addresses": (
        "torus",
        {"vcs": 2},
        {"reduction": False, "cache": {"entries": 4, "ways": 2, "policy": "fifo"}},
    ),
    "no cache": ("mesh", {"vcs": 2}, {"cache": {"enabled": False}, "tcam": {"latency_cycles": 3}}),
    "port sets": ("adaptive tree", {"vcs": 2, "switching": "vct"}, {"mshrs": 3, "pipeline_depth": 2}),
    "members": ("mesh", {"vcs": 2}, {"lag": {"members": 3, "max_members": 4}, "cache": {"entries": 4, "ways": 2}}),
    "members of whole addresses": (
        "ring",
        {"vcs": 2},
        {"reduction": False, "lag": {"members": 2, "max_members": 2, "hash": "modulo"}},
    ),
    "five cycles": ("ring", {"vcs": 4}, {"pipeline_depth": 5, "cache": {"entries": 2, "ways": 2}}),
    "eight cycles": ("dragonfly", {"vcs": 3}, {"pipeline_depth": 8, "mshrs": 2, "cache": {"entries": 4, "ways": 2}}),
    "a memory stage": (
        "ring",
        {"vcs": 4},
        {"pipeline_depth": 6, "memory_stage": True, "cache": {"entries": 2, "ways": 2}},
    ),
    "two ports an engine": (
        "ring",
        {"vcs": 4},
        {"ports_per_engine": 2, "mshrs": 1, "cache": {"entries": 2, "ways": 2}},
    ),
    "four ports an engine": ("torus", {"vcs": 3}, {"ports_per_engine": 4, "pipeline_depth": 1, "reduction": False}),
    "a deep engine for two ports": ("dragonfly", {"vcs": 3}, {"ports_per_engine": 2, "pipeline_depth": 6}),
    "four ports, port sets": ("adaptive tree", {"vcs": 2}, {"ports_per_engine": 4, "pipeline_depth": 4}),
    "a second level": (
        "ring",
        {"vcs": 4},
        {"reduction": False, "mshrs": 3, "cache": {"entries": 2, "ways": 2, "second_level": "{entries: 8, ways: 2}"}},
    ),
    "a second level of a deep engine": (
        "torus",
        {"vcs": 3},
        {
            "pipeline_depth": 6,
            "ports_per_engine": 2,
            "reduction": False,
            "cache": {"entries": 1, "ways": 1, "second_level": "{entries: 16, policy: plru, latency_cycles: 7}"},
        },
    ),
    "a second level at depth 1, without a cache": (
        "mesh",
        {"vcs": 2},
        {"pipeline_depth": 1, "cache": {"enabled": False, "second_level": "{entries: 4}"}},
    ),
    "spread": ("spread", {"vcs": 2}, {"cache": {"entries": 2, "ways": 2}}),
    "spread, an engine for two ports": ("spread", {"vcs": 2}, {"ports_per_engine": 2, "pipeline_depth": 6}),
    "spread over groups": ("spread", {"vcs": 2}, {"lag": {"members": 2, "max_members": 2}}),
    "spread, look-ahead": ("spread", {"vcs": 2, "lookahead": True}, {"cache": {"entries": 2, "ways": 2}}),
    "paths": ("paths", {"vcs": 6}, {"cache": {"entries": 4, "ways": 2}}),
    "paths, an engine for two ports": ("paths", {"vcs": 6}, {"ports_per_engine": 2, "pipeline_depth": 6}),
    "paths over groups": ("paths of a ring", {"vcs": 4}, {"lag": {"members": 2, "max_members": 2}}),
    "paths, look-ahead": ("paths of a ring", {"lookahead": True, "vcs": 4}, {"cache": {"entries": 2, "ways": 2}}),
    "members by credits": ("adaptive tree", {"vcs": 2}, {"lag": {"members": 2, "max_members": 2}}),
    "look-ahead": ("torus", {"lookahead": True, "vcs": 2}, {"cache": {"entries": 2, "ways": 2}}),
    "look-ahead in one cycle": ("ring", {"lookahead": True, "vcs": 4}, {"pipeline_depth": 1, "mshrs": 2}),
    "look-ahead, free queue": ("mesh", {"lookahead": True, "va": "free_queue"}, {"pipeline_depth": 2, "mshrs": 1}),
    "look-ahead, speculation": (
        "dragonfly",
        {"lookahead": True, "vcs": 3, "speculation": True, "switching": "vct", "link_latency_cycles": 2},
        {"pipeline_depth": 4, "reduction": False, "cache": {"entries": 4, "ways": 2}},
    ),
    "look-ahead, eight cycles": (
        "tree",
        {"lookahead": True, "vcs": 2, "va": "wavefront", "sa": "input_first"},
        {"pipeline_depth": 8, "mshrs": 5},
    ),
    "look-ahead, a second level": (
        "ring",
        {"lookahead": True, "vcs": 2},
        {"reduction": False, "cache": {"entries": 2, "ways": 2, "second_level": "{entries: 8, latency_cycles: 5}"}},
    ),
    "look-ahead, no cache": ("ring", {"lookahead": True, "vcs": 2}, {"cache": {"enabled": False}}),
}


@pytest.mark.parametrize("case", list(CASES))
@pytest.mark.thinned(2)
def test_kernel_equals_golden_network(case: str) -> None:
    network, router, lookup = CASES[case]
    outside = {"tcam": {"kind": "external"} | lookup.get("tcam", {})}
    run = compare(configure(network, router, lookup | outside))
    assert run.state["packets_dropped"] == 0


@pytest.mark.parametrize(("reduction", "lookahead"), [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize("network", ["mesh", "ring"])
def test_destinations_without_a_row_are_drained(network: str, reduction: bool, lookahead: bool) -> None:
    tcam = {"kind": "flops", "rows": 2, "latency_cycles": 4}
    run = compare(configure(network, {"vcs": 2, "lookahead": lookahead}, {"reduction": reduction, "tcam": tcam}))
    counts = run.state.lookup.counts
    assert (
        0 < run.state["packets_dropped"] == counts["drops"].sum() <= counts["unmatched"].sum() + counts["merges"].sum()
    )


#: routers of more than 64 ports, which hardware has not: network → parameters of routers, of engines
WIDE = {
    "wide": ({"vcs": 2}, {"cache": {"entries": 4, "ways": 2}}),
    "wide mesh": ({"vcs": 3, "sa": "input_first"}, {"chunk_bits": "[8]", "mshrs": 2, "pipeline_depth": 2}),
    "wide groups": (
        {"vcs": 2},
        {"ports_per_engine": 4, "pipeline_depth": 6, "lag": {"members": 3, "max_members": 3, "hash": "modulo"}},
    ),
}


@pytest.mark.parametrize(
    "network", ["wide", *(pytest.param(one, marks=pytest.mark.study) for one in ("wide mesh", "wide groups"))]
)
def test_kernel_equals_golden_network_of_wide_routers(network: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(router_params._LIMITS, "ports", (2, 512))  # hardware ends there, not the definition
    router, lookup = WIDE[network]
    run = compare(configure(network, router, lookup | {"tcam": {"kind": "external"}}), packets=80, last=30)
    assert run.topology.max_ports > 64 and run.state["packets_dropped"] == 0


@pytest.mark.parametrize("network", [pytest.param("wide", marks=pytest.mark.study), "wide groups"])
def test_wide_destinations_without_a_row_are_drained(network: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows come from tables of routers, whose masks of ports have more than a word."""
    monkeypatch.setitem(router_params._LIMITS, "ports", (2, 512))
    router, lookup = WIDE[network]
    tcam = {"kind": "flops", "rows": 60, "latency_cycles": 4}
    run = compare(configure(network, router, lookup | {"tcam": tcam}), packets=80, last=30)
    assert 0 < run.state["packets_dropped"] < 150


def test_answers_too_narrow_for_groups_of_links_are_refused() -> None:
    lag = {"members": 6, "max_members": 6}
    cases = (
        ({"output_bits": 3}, "the numbers of 14 ports, not 3"),
        ({"output_kind": "port_set", "output_bits": 8}, "a bit for each of 14 ports, not 8"),
    )
    for cache, words in cases:
        with pytest.raises(RoutingError, match=words):
            Simulation(configure("ring", {"vcs": 2}, {"lag": lag, "cache": cache}), 0.1, 1)


GEOMETRIES = st.sampled_from([(1, 1), (2, 1), (2, 2), (4, 2), (4, 4), (3, 3), (16, 4)])


@st.composite
def engines(draw: Any) -> tuple[str, dict[str, Any], dict[str, Any], int]:
    entries, ways = draw(GEOMETRIES)
    policies = ["lru", "fifo", "random"] + (["plru"] if ways != 3 else [])
    policy = draw(st.sampled_from(policies))
    kind = draw(st.sampled_from(["external", "flops", "sram"]))
    tcam = {"kind": kind, "latency_cycles": draw(st.integers(2 if kind == "sram" else 1, 12))}
    if kind != "external":
        tcam["rows"] = draw(st.sampled_from([2, 64])) if kind == "flops" else 3  # an SRAM takes 256 cycles a row
    router = {
        "vcs": draw(st.sampled_from([2, 3, 5])),
        "buffer_flits": draw(st.integers(1, 4)),
        "speculation": draw(st.booleans()),
        "vc_release": draw(st.sampled_from(["tail", "credits"])),
        "credit_delay_cycles": draw(st.integers(0, 2)),
        "link_latency_cycles": draw(st.integers(1, 2)),
    }
    members = draw(st.sampled_from([1, 1, 2, 3]))
    depth = draw(st.integers(1, 8))
    lookup = {
        "reduction": draw(st.booleans()),
        "lag": {"members": members, "max_members": max(members, 3), "hash": draw(st.sampled_from(["crc", "modulo"]))},
        "pipeline_depth": depth,
        "memory_stage": depth > SHALLOW_DEPTHS and draw(st.booleans()),
        "mshrs": draw(st.integers(1, 8)),
        "cache": {
            "entries": entries, "ways": ways, "policy": policy, "enabled": draw(st.integers(0, 5)) > 0,
            "skewed": policy == "random" and ways > 1 and draw(st.booleans()),
        },
        "tcam": tcam,
    }  # fmt: skip
    if draw(st.booleans()):
        latency, policy = draw(st.sampled_from([4, 4, 5, 9])), draw(st.sampled_from(["lru", "plru", "fifo", "random"]))
        entries, ways = draw(st.sampled_from([(1, 1), (4, 2), (32, 4)]))
        second = f"{{entries: {entries}, ways: {ways}, policy: {policy}, latency_cycles: {latency}}}"
        lookup["cache"]["second_level"] = second
    names = ["mesh", "ring", "tree", "adaptive tree", "dragonfly", "spread", "paths", "paths of a ring"]
    network = draw(st.sampled_from(names))
    if network.startswith("paths"):
        router["vcs"] = draw(st.sampled_from([6, 7]))
    wide = {"mesh": 5, "paths": 6}  # with three links in a group 13 and 11 ports; an engine serves 64 VCs
    too_many = members == 3 and router["vcs"] >= wide.get(network, 99)
    router["lookahead"] = network != "adaptive tree" and not too_many and draw(st.booleans())
    if not router["speculation"] and draw(st.booleans()):
        router["va"] = "free_queue"
    return network, router, lookup, draw(st.integers(0, 1000))


def compare_any(drawn: tuple[str, dict[str, Any], dict[str, Any], int]) -> int:
    """Compare as `compare` does; return the packets that arrived or were dropped."""
    network, router, lookup, seed = drawn
    run = compare(configure(network, router, lookup), packets=60, last=40, cycles=4000, seed=seed)
    return int(run.state["packets_ejected"] + run.state["packets_dropped"])


@settings(max_examples=8, deadline=None)
@given(drawn=engines())
def test_any_engine(drawn: tuple[str, dict[str, Any], dict[str, Any], int]) -> None:
    assert compare_any(drawn) == 60


@pytest.mark.study
@settings(max_examples=300, deadline=None)
@given(drawn=engines())
def test_many_engines(drawn: tuple[str, dict[str, Any], dict[str, Any], int]) -> None:
    assert compare_any(drawn) == 60


# Replay: the same counts where packets follow one another.

REPLAYED = {
    "mesh": ("{kind: mesh, radices: [4, 3], hosts_per_router: 2}", "{algorithm: dor}"),
    "torus": ("{kind: torus, radices: [4, 3, 4]}", "{algorithm: dor, ties: key}"),
    "tree": ("{kind: fat_tree, k: 2, n: 2}", "{algorithm: d_mod_k}"),
    "dragonfly": ("{kind: dragonfly, p: 2, a: 4, h: 2}", "{algorithm: dragonfly_min}"),
}


@pytest.mark.parametrize(
    ("reduction", "policy", "sharing", "second"),
    [
        (False, "lru", 1, ""),
        (False, "random", 1, ", second_level: {entries: 16, policy: fifo}"),
        (True, "lru", 1, ", second_level: {entries: 4, ways: 2}"),
        (True, "random", 1, ""),
        (False, "lru", 4, ", second_level: {entries: 8, policy: random, latency_cycles: 6}"),
    ],
)
@pytest.mark.parametrize("network", list(REPLAYED))
def test_without_load_the_counts_are_those_of_the_replay(
    network: str, reduction: bool, policy: str, sharing: int, second: str
) -> None:
    topology, routing = REPLAYED[network]
    entries = 2 if reduction else 4
    config = parse_config(
        f"name: test\ntopology: {topology}\nrouting: {routing}\nrouter: {{route_computation: lookup}}\n"
        f"lookup: {{reduction: {str(reduction).lower()}, tcam: {{kind: external}}, ports_per_engine: {sharing}, "
        f"cache: {{entries: {entries}, ways: 2, policy: {policy}{second}}}}}"
    )
    hosts = Simulation(config, 0.1, 1, check=False).topology.hosts
    rng = np.random.default_rng(5)
    packets, apart = 600, 120
    sources, targets = rng.integers(0, hosts, packets), rng.integers(0, hosts, packets)
    script = (sources, np.arange(packets) * apart, targets, np.ones(packets, np.int64))
    run = Simulation(config, 0.1, 1, script=script)
    run.advance(packets * apart + 1000)
    assert run.state["packets_ejected"] == packets
    replay = Replay(config, run.topology)
    replay.send(sources, targets)
    found, want = run.state.lookup.counts, replay.result
    port = want.inputs.router.astype(np.int64) * run.topology.max_ports + want.inputs.port
    number = run.state.lookup.arrays["engine_of"][port]
    for name in ("hits", "compulsory", "capacity", "conflict", "unmatched", "evictions"):
        assert (found[name][number] == getattr(want, name)).all(), name
        assert found[name].sum() == getattr(want, name).sum()
    assert want.capacity.sum() > 0 and want.evictions.sum() > 0
    if second:
        two = run.state.lookup.second
        assert two is not None
        assert (two.counts["hits"][number] == want.second_level_hits).all()
        assert 0 < two.counts["hits"].sum() < run.state.lookup.counts["fills"].sum()
    assert found["merges"].sum() == 0


@pytest.mark.parametrize("sharing", [2, 4])
def test_counts_of_shared_engines_name_the_ports_that_they_serve(sharing: int) -> None:
    config = configure("mesh", {"vcs": 2}, {"ports_per_engine": sharing})
    run = Simulation(config, 0.2, 1)
    run.advance(300)
    table = lookup_table(run.topology, run.state.lookup)
    topology = run.topology
    used = ((topology.peer_router >= 0) | (topology.host_at >= 0)).sum()
    assert table["ports"].sum() == used
    assert table["ports"].max() <= sharing
    places = set(zip(table["router"], table["port"] // sharing, strict=True))
    assert topology.routers < len(places) == len(table) < used
    assert run.state.lookup.counts["hits"].sum() == table["hits"].sum() > 0


def test_hosts_of_one_key_must_go_the_same_way_from_all_ports_of_an_engine() -> None:
    """What arrives at port 1 goes on through port 2, and the other way round: two caches, or a wrong answer."""
    config = configure("mesh", {"vcs": 2}, {"ports_per_engine": 4})
    run = Simulation(config, 0.1, 1)
    key = np.zeros(1, np.int64)
    for other, fits in ((1, True), (2, False), (5, True)):  # of router 0; port 5 is the first of router 1
        shared = SharedAnswers(config, run.topology, run.plan, keys=1)
        shared.check(0, np.array([1]), key, np.array([[1, 2 | 3 << 16]]))
        told = np.array([[1, (2 if fits else 1) | 1 << 16]])
        if fits:
            shared.check(3, np.array([other]), key, told)
            continue
        with pytest.raises(RoutingError, match=r"must be 1 for this routing, not 4: in router 0 the ports of engine 0"):
            shared.check(3, np.array([other]), key, told)


def test_what_a_sweep_is_told() -> None:
    config = configure("mesh", {"vcs": 2}, {"reduction": False, "cache": {"entries": 2, "ways": 2}})
    run = Simulation(config, 0.2, 1)
    found = run.run()
    table = lookup_table(run.topology, run.state.lookup)
    assert found.lookups == table["lookups"].sum() > 1000
    assert found.hit_rate == table["hits"].sum() / table["lookups"].sum() < 1
    assert (table["lookups"] == table["hits"] + table["merges"] + table["misses"]).all()
    assert found.compulsory == 0, "all keys were seen while it warmed up"
    assert table.groupby("port_class")["lookups"].sum()["host"] == pytest.approx(found.packets, rel=0.01)


@pytest.mark.parametrize(
    ("network", "router", "lookup", "text"),
    [
        ("mesh", "rc_cycles: 2", "", "router.rc_cycles: is for router.route_computation=table only, not lookup"),
        ("mesh", "vcs: 9", "request_tag_bits: 3", "lookup.request_tag_bits: must number router.vcs=9, not 3 bits"),
        (
            "mesh",
            "vcs: 8",
            "request_tag_bits: 4, ports_per_engine: 4",
            "lookup.request_tag_bits: must number router.vcs=8 of lookup.ports_per_engine=4 ports, not 4 bits",
        ),
        ("mesh", "vcs: 2", "ports_per_engine: 3", "lookup.ports_per_engine: must be 1, 2 or 4, not 3"),
        ("mesh", "vcs: 2", "cache: {skewed: true}", "lookup.cache.policy: must be random with skewed association"),
    ],
)
def test_engines_that_do_not_fit_are_refused(network: str, router: str, lookup: str, text: str) -> None:
    topology, _ = NETWORKS[network]
    with pytest.raises(ConfigError, match=re.escape(text)):
        parse_config(
            f"name: test\ntopology: {topology}\nrouter: {{route_computation: lookup, {router}}}\nlookup: {{{lookup}}}"
        )


@pytest.mark.parametrize(
    ("topology", "routing", "lookup", "text"),
    [
        ("torus", "dor, ties: random", "", "table for routing.algorithm dor, not lookup: it draws random numbers"),
        ("mesh", "valiant", "", "not lookup: it sends packets over a router drawn at the source"),
        ("mesh", "star_channel", "", "not lookup: it needs an escape port, which a lookup does not answer"),
        ("tree", "nca", "", "lookup.cache.output_kind must be port_set for routing.algorithm nca, which is adaptive"),
        ("torus", "dor", "", "lookup.reduction must be false for routing.algorithm dor: in router"),
        ("mesh", "up_down", "", "lookup.reduction must be false for routing.algorithm up_down: in router"),
    ],
)
def test_routing_that_cannot_be_looked_up_is_refused(topology: str, routing: str, lookup: str, text: str) -> None:
    kinds = {"torus": "{kind: torus, radices: [4, 4]}", "mesh": "{kind: mesh, radices: [4, 4]}"}
    config = parse_config(
        f"name: test\ntopology: {kinds.get(topology, '{kind: fat_tree, k: 2, n: 1}')}\n"
        f"router: {{route_computation: lookup}}\nrouting: {{algorithm: {routing}}}\nlookup: {{{lookup}}}"
    )
    with pytest.raises(RoutingError, match=re.escape(text)):
        Simulation(config, 0.1, 1)


OWN = """
import numpy as np
from hopforge.model.routing import RoutingPlan, candidate, draw_below, relation

def route(router, in_port, in_vc, packet, net, table, memory, out):
    dx, dy = packet.dst % 3 - router % 3, packet.dst // 3 - router // 3
    first = READS
    if dx == 0 and dy == 0:
        out[0] = candidate(0, 3)
    elif (first and dx != 0) or dy == 0:
        out[0] = candidate(1 if dx > 0 else 2, 2 - first)
    else:
        out[0] = candidate(3 if dy > 0 else 4, 2 - first)
    return 1

def prepare(topology, vcs, options):
    return RoutingPlan(relation(route), np.zeros(1, np.int32))
"""


@pytest.mark.parametrize(
    ("reads", "reason"),
    [
        ("packet.src % 2", "reads packet.src"),
        ("draw_below(net, router, 2)", "draws random numbers"),
        ("1 if memory[0] < 1 else 0", "reads memory"),
        ("packet.dst % 2", ""),
    ],
)
@pytest.mark.parametrize("router", ["route_computation: lookup", "rc_cycles: 1, lookahead: true"])
def test_a_file_whose_answers_depend_on_more_is_refused_whatever_it_declares(
    tmp_path: Path, reads: str, reason: str, router: str
) -> None:
    (tmp_path / "own.py").write_text(OWN.replace("READS", reads))
    text = "name: x\ntopology: {kind: mesh, radices: [3, 3]}\nlookup: {reduction: false}\n"
    text += f"router: {{vcs: 2, {router}}}\nrouting: {{algorithm: file, file: own.py}}\n"
    if "lookahead" in router:
        text = text.replace("lookup: {reduction: false}\n", "")
    config = parse_config(text, folder=tmp_path)
    if not reason:
        assert Simulation(config, 0.1, 1).plan.unguarded is not None
        return
    with pytest.raises(RoutingError, match=reason):
        Simulation(config, 0.1, 1)


@pytest.mark.parametrize(
    ("reads", "reason"),
    [
        ("packet.src % 2", "for packets to host 0 .* it looks at more than destination, phase and input VC"),
        ("packet.src // 20", "it reads packet.src"),  # no two packets differ yet
        ("draw_below(net, router, 2)", "it draws random numbers"),
    ],
)
def test_a_file_whose_answers_depend_on_more_is_no_table(tmp_path: Path, reads: str, reason: str) -> None:
    (tmp_path / "own.py").write_text(OWN.replace("READS", reads))
    text = "name: x\ntopology: {kind: mesh, radices: [3, 3]}\nrouter: {vcs: 2}\n"
    text += "routing: {algorithm: file, file: own.py}\n"
    run = Simulation(parse_config(text, folder=tmp_path), 0.1, 1, check=False)
    with pytest.raises(RoutingError, match=f"cannot be a table of a router: {reason}"):
        compile_tables(run.topology, run.plan, 2, "file")
