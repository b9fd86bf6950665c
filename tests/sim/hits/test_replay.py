"""Counts of the replay against an obvious slow oracle: dictionaries, packet by packet, hop by hop."""

import copy
from collections import Counter, OrderedDict

import numpy as np
import pytest

from hopforge.model.config import load_config, parse_config
from hopforge.model.lookup.human_keys import dragonfly_key, fat_tree_key, mesh_key, torus_key
from hopforge.model.lookup.key_ports import KeyPorts
from hopforge.model.lookup.node_reduction import NodeReduction
from hopforge.model.lookup.routing_cache import RoutingCache
from hopforge.model.lookup.tcam import route_rows
from hopforge.model.numbers.crc import crc_address
from hopforge.model.topology import build
from hopforge.sim.hits.cache_inputs import cache_inputs
from hopforge.sim.hits.prepared import prepare_hits
from hopforge.sim.hits.replay import Replay, replay
from hopforge.sim.hits.replay_result import COUNTS, ReplayError
from hopforge.sim.traffic.forecast import PACKETS_PER_SECOND, forecast
from hopforge.sim.traffic.packet_stream import WorkloadError
from hopforge.sim.traffic.workload_packets import build_workload

NETWORKS = {
    "mesh": "{kind: mesh, radices: [3, 4], hosts_per_router: 2}",
    "torus": "{kind: torus, radices: [4, 3, 2]}",
    "fat_tree": "{kind: fat_tree, k: 2, n: 3}",
    "dragonfly": "{kind: dragonfly, p: 2, a: 4, h: 2, g: 7}",
    "edge_list": "{kind: edge_list, file: net.txt, hosts_per_router: 3}",
}
GRAPH = "0 1\n1 2\n2 3\n3 4\n4 0\n1 3\n4 5\n5 6\n"


def config(folder, network, lookup="", workload="{kind: uniform, packets_per_host: 40}"):
    (folder / "net.txt").write_text(GRAPH)
    text = f"name: t\nseed: 3\ntopology: {NETWORKS[network]}\nlookup: {{{lookup}}}\nworkload: {workload}\n"
    (folder / "t.yml").write_text(text)
    return load_config(folder / "t.yml")


def run(checked):
    topology = build(checked.topology, checked.address)
    workload = build_workload(checked.workload, topology, checked.seed)
    return topology, workload, replay(checked, topology, workload)


def human(topology, router, address):
    """Key of the definition; the output port is worked out from the port numbers of the documentation."""

    def digits(word, count):
        return [word >> 4 * i & 15 for i in range(count)]

    params = topology.params
    if topology.kind in ("mesh", "torus"):
        radices, c = params["radices"], params["hosts_per_router"]
        own, rest = [], router
        for radix in radices:
            own.append(rest % radix)
            rest //= radix
        d = digits(address, len(radices) + 1)
        key = mesh_key(own, d) if topology.kind == "mesh" else torus_key(own, d, radices)
        if key == ("L",):
            return ("L", d[-1]), d[-1] if c > 1 else 0
        return key, c + 2 * key[1] + (key[2] == "-")
    if topology.kind == "fat_tree":
        k, n = params["k"], params["n"]
        level, rest = divmod(router, k**n)
        key = fat_tree_key(level, [rest // k**i % k for i in range(n)], digits(address, n + 1))
        return key, key[1] + k * (key[0] == "U")
    p, a = params["p"], params["a"]
    group, local = divmod(router, a)
    key = dragonfly_key((local, group), (address & 15, address >> 4 & 15, address >> 8))
    if key[0] == "T":
        return key, key[1]
    if key[0] == "R":
        return key, p + key[1] - (key[1] > local)
    for candidate in [local, *range(a)]:  # its own link, else the first router of the group that has one
        for port in range(p + a - 1, topology.max_ports):
            peer = topology.peer_router[group * a + candidate, port]
            if peer >= 0 and peer // a == key[1]:
                return key, port if candidate == local else p + candidate - (candidate > local)
    raise AssertionError


class FullyAssociative:
    """LRU or FIFO of any number of keys."""

    def __init__(self, entries, fifo=False):
        self.entries, self.fifo, self.lines = entries, fifo, OrderedDict()

    def get(self, key):
        if key in self.lines and not self.fifo:
            self.lines.move_to_end(key)
        return key in self.lines

    def put(self, key):
        evict = len(self.lines) == self.entries
        if evict:
            self.lines.popitem(last=False)
        self.lines[key] = None
        return evict


class Golden:
    """One cache at a time by its own methods."""

    def __init__(self, checked):
        self.template = RoutingCache.from_config(checked)

    def __call__(self):
        cache = copy.copy(self.template)
        cache.state = cache.state.repeated(1)
        cache.counters = dict(cache.counters)
        return Golden.One(cache)

    class One:
        def __init__(self, cache):
            self.cache = cache

        def get(self, key):
            return self.cache.lookup(key) is not None

        def put(self, key):
            return self.cache.fill(key, 0) is not None


def oracle(checked, topology, workload, make, *, encoded=False, second=None, members=1, rows=None):
    """Counts per (router, port, member)."""
    lookup = checked.lookup
    reduction = NodeReduction.from_config(checked, topology)
    levels = {}
    rows_of = {}
    counts = {name: Counter() for name in COUNTS}
    delivered = 0
    for source, target in zip(*(array.tolist() for array in workload.all_packets()), strict=True):
        address = int(topology.host_address[target])
        router, port = int(topology.host_router[source]), int(topology.host_port[source])
        while True:
            if topology.kind == "edge_list":
                key, output = ("A", address), None
            else:
                key, output = human(topology, router, address)
            member = crc_address("CRC-32C", address) % members if lookup.lag.hash == "crc" else address % members
            key = ("A", address) if not lookup.reduction or topology.kind == "edge_list" else (*key, member)
            if encoded:
                key = reduction.key(router, address)
            at = router, port, member if topology.peer_router[router, port] >= 0 else 0
            one, two, full, seen = levels.setdefault(
                at, (make(), second and second(), FullyAssociative(lookup.cache.entries), set())
            )
            counts["lookups"][at] += 1
            hit = one.get(key)
            ideal = full.get(key)
            if not hit:
                deep = two.get(key) if two else False
                counts["second_level_hits"][at] += deep
                if not deep and rows is not None and not matches(rows_of, topology, reduction, router, address, rows):
                    counts["unmatched"][at] += 1
                    break
                if two and not deep:
                    two.put(key)
                counts["evictions"][at] += one.put(key)
                cause = "compulsory" if key not in seen else "conflict" if ideal else "capacity"
                counts[cause][at] += 1
            else:
                counts["hits"][at] += 1
            if not ideal:
                full.put(key)
            seen.add(key)
            if output is None:
                output = int(PATHS[topology.name].output_ports([router], [target])[0])
            following = int(topology.peer_router[router, output])
            if following < 0:
                assert topology.host_at[router, output] == target
                delivered += 1
                break
            router, port = following, int(topology.peer_port[router, output])
    return counts, delivered


PATHS = {}


def matches(rows_of, topology, reduction, router, address, rows):
    if router not in rows_of:
        rows_of[router] = route_rows(KeyPorts(reduction, topology), router, drop_unknown=False)[:rows]
    return any(row.matches(address) for row in rows_of[router])


def check(checked, result, topology, counts, delivered):
    inputs = result.inputs
    places = list(zip(inputs.router.tolist(), inputs.port.tolist(), inputs.member.tolist(), strict=True))
    for name in COUNTS:
        got = getattr(result, name).tolist()
        assert got == [counts[name][place] for place in places], name
    assert result.delivered == delivered
    misses = result.compulsory + result.capacity + result.conflict + result.unmatched
    assert np.array_equal(result.lookups, result.hits + misses)


def compare(folder, network, lookup, make=None, **rest):
    checked = config(folder, network, lookup)
    topology, workload, result = run(checked)
    PATHS[topology.name] = Replay(checked, topology).routes
    counts, delivered = oracle(checked, topology, workload, make or Golden(checked), **rest)
    check(checked, result, topology, counts, delivered)
    return result


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("reduction", ["true", "false"])
@pytest.mark.parametrize("entries", [1, pytest.param(4, marks=pytest.mark.study), 8])
@pytest.mark.parametrize("policy", ["lru", "fifo"])
@pytest.mark.thinned(2)
def test_fully_associative_caches_against_dictionaries(tmp_path, network, reduction, entries, policy):
    result = compare(
        tmp_path, network, f"reduction: {reduction}, cache: {{entries: {entries}, ways: {entries}, policy: {policy}}}",
        lambda: FullyAssociative(entries, policy == "fifo"),
    )  # fmt: skip
    if policy == "lru":
        assert not result.conflict.any()


@pytest.mark.parametrize("network", ["torus", "dragonfly", "edge_list"])
@pytest.mark.parametrize(
    "cache",
    [
        "entries: 8, ways: 1", "entries: 8, ways: 2, policy: lru", "entries: 16, ways: 4, policy: plru",
        "entries: 8, ways: 2, policy: fifo", "entries: 8, ways: 4, policy: random", "entries: 12, ways: 3, policy: lru",
        "entries: 16, ways: 4, policy: random, skewed: true", "entries: 16, ways: 4, policy: lru, skewed: true",
        "entries: 8, ways: 2, crc: CRC-24/BLE",
    ],
)  # fmt: skip
@pytest.mark.thinned(3)
def test_every_geometry_and_policy_against_the_golden_cache(tmp_path, network, cache):
    result = compare(tmp_path, network, f"reduction: false, cache: {{{cache}}}", encoded=True)
    assert result.evictions.any()


@pytest.mark.parametrize("network", ["torus", "fat_tree"])
@pytest.mark.parametrize("choice", ["crc", "modulo"])
def test_link_aggregation(tmp_path, network, choice):
    lookup = f"lag: {{max_members: 4, members: 3, hash: {choice}}}, cache: {{entries: 2, ways: 2}}"
    result = compare(tmp_path, network, lookup, lambda: FullyAssociative(2), members=3)
    assert result.inputs.member.max() == 2
    assert (result.lookups[result.inputs.member == 2] > 0).any()


@pytest.mark.parametrize("network", ["torus", "edge_list"])
def test_second_level(tmp_path, network):
    lookup = "reduction: false, cache: {entries: 2, ways: 2, second_level: {entries: 8, ways: 8, policy: fifo}}"
    result = compare(
        tmp_path, network, lookup, lambda: FullyAssociative(2), second=lambda: FullyAssociative(8, fifo=True)
    )
    assert result.second_level_hits.any()


@pytest.mark.parametrize("reduction", ["true", "false"])
@pytest.mark.parametrize("network", ["torus", "edge_list"])
def test_a_built_in_tcam_that_is_too_small_drops(tmp_path, network, reduction):
    lookup = f"reduction: {reduction}, tcam: {{kind: flops, rows: 5}}, cache: {{entries: 4, ways: 4}}"
    result = compare(tmp_path, network, lookup, lambda: FullyAssociative(4), rows=5)
    assert result.unmatched.sum() == result.packets - result.delivered > 0
    for tcam in ("kind: external, rows: 5", "kind: sram, rows: 64"):
        whole = config(tmp_path, network, f"tcam: {{{tcam}}}")
        assert not run(whole)[2].unmatched.any()


def test_without_a_cache_everything_misses(tmp_path):
    class Nothing:
        def get(self, key):
            return False

        def put(self, key):
            return False

    checked = config(tmp_path, "torus", "cache: {enabled: false, entries: 4, ways: 4}")
    topology, workload, result = run(checked)
    counts, delivered = oracle(checked, topology, workload, Nothing)
    assert result.lookups.sum() == sum(counts["lookups"].values())
    assert not result.hits.any()
    assert not result.evictions.any()
    assert result.compulsory.sum() == sum(counts["compulsory"].values())
    assert (result.compulsory + result.capacity).sum() == result.lookups.sum()
    assert result.delivered == delivered


def test_pieces_make_no_difference(tmp_path):
    checked = config(tmp_path, "dragonfly", "reduction: false, cache: {entries: 8, ways: 2, policy: random}")
    topology, workload, result = run(checked)
    source, target = workload.all_packets()
    network = Replay(checked, topology)
    for start in range(0, len(source), 777):
        network.send(source[start : start + 777], target[start : start + 777])
    for name in COUNTS:
        assert np.array_equal(getattr(network.result, name), getattr(result, name))
    assert (network.result.packets, network.result.delivered) == (result.packets, result.delivered)


def test_progress_is_told(tmp_path):
    checked = config(tmp_path, "torus")
    topology = build(checked.topology, checked.address)
    workload = build_workload(checked.workload, topology, 1)
    told = []
    replay(checked, topology, workload, lambda done, total: told.append((done, total)))
    assert told[-1] == (workload.packets, workload.packets)


def test_inputs_are_the_ports_in_use(tmp_path):
    topology = build(config(tmp_path, "mesh").topology, config(tmp_path, "mesh").address)
    inputs = cache_inputs(topology, members=3)
    assert inputs.caches == 24 + 3 * 34  # hosts, and both directions of 3·3 + 2·4 = 17 links
    assert inputs.ports_of_a_switch == 2 + 4 * 3
    for number in range(inputs.caches):
        router, port, member = inputs.router[number], inputs.port[number], inputs.member[number]
        assert inputs.first[router, port] + member == number
    assert (inputs.first[(topology.peer_router < 0) & (topology.host_at < 0)] == -1).all()


def test_caches_that_do_not_fit_in_memory_are_refused(tmp_path):
    topology = "{kind: torus, radices: [3, 3]}"  # 9 switches of 5 ports
    cache = "{entries: 16, ways: 4%s}"
    for key, said in (
        (cache.replace("16", str(1 << 31)) % "", "lookup.cache.entries: 45 caches of 2147483648 entries need 1440 GiB"),
        (
            cache % f", second_level: {{entries: {1 << 31}, ways: 4}}",
            "lookup.cache.second_level.entries: 45 caches of 2147483648 entries need 1440 GiB",
        ),
        (
            cache % f", second_level: {{entries: {1 << 31}, ways: 4, per: switch}}",
            "lookup.cache.second_level.entries: 9 caches of 2147483648 entries need 288 GiB",
        ),
    ):
        checked = parse_config(f"name: x\ntopology: {topology}\nlookup: {{cache: {key}}}\n")
        with pytest.raises(ReplayError, match=said + r" of memory, more than 64$"):
            Replay(checked, build(checked.topology, checked.address))


@pytest.mark.parametrize("keys", ["kind: uniform, packets_per_host", "kind: all_to_all, rounds"])
def test_a_replay_without_an_end_is_refused_before_it_begins(keys: str) -> None:
    text = "name: x\ntopology: {kind: mesh, radices: [3, 3]}\nworkload: {%s: %s}\n"
    key = keys.rsplit(" ", 1)[1]
    with pytest.raises(WorkloadError, match=rf"workload.{key}: the hosts send [\d,]+ packets, .* would take about \d"):
        prepare_hits(parse_config(text % (keys, 10**15)))
    assert prepare_hits(parse_config(text % (keys, 10**10))).workload.packets >= 9 * 10**10
    words = forecast(900_000_000, "packets", PACKETS_PER_SECOND)
    assert words == "900,000,000 packets: about 5 minutes of processor time"
