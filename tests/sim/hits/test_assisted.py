"""Prefetch and refill on networks: golden cases, a plain oracle, and what the command shows and refuses."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import hopforge as hf
from hopforge.cli import app
from hopforge.model.config import parse_config
from hopforge.model.lookup.golden.assisted_cache import run_assisted
from hopforge.model.topology import build
from hopforge.model.topology.port_class import port_classes
from hopforge.sim.hits.assisted import Help, HelpError, messages_ahead, run_assisted_packets
from hopforge.sim.hits.cache_inputs import cache_classes
from hopforge.sim.hits.hit_rates import run_hits, summary_rows
from hopforge.sim.hits.replay import Replay

_PLACES = [folder / "shared" / "beyond" for folder in Path(__file__).parents]
GOLDEN = next((place for place in _PLACES if place.exists()), None)
needs_golden = pytest.mark.skipif(GOLDEN is None, reason="the folder shared is not beside this checkout")
BASE = """\
name: t
topology: {kind: torus, radices: [4, 4]}
lookup: {reduction: false, cache: {entries: 4, ways: 4}}
workload: {kind: collective, operation: alltoall, ranks: 16, bytes: 64, repeat: 3}
"""


def torus(dims, size):
    text = f"name: t\ntopology: {{kind: torus, radices: {list(dims)}}}\n"
    text += f"lookup: {{reduction: false, cache: {{entries: {size}, ways: {size}}}}}\n"
    return parse_config(text)


def alltoall(algorithm, ranks):
    """Sources and destinations of one round, step by step (int[step, rank])."""
    rank = np.arange(ranks)
    steps = [1 << t for t in range(ranks.bit_length()) if 1 << t < ranks] if algorithm == "bruck" else range(1, ranks)
    to = {"pairwise": lambda t: rank ^ t, "neighbour": lambda t: (rank + 1) % ranks}
    targets = np.array([to.get(algorithm, lambda t: (rank + t) % ranks)(t) for t in steps])
    return np.broadcast_to(rank, targets.shape), targets


def run(config, packets, wanted, bounds=False):
    topology = build(config.topology, config.address)
    return run_assisted_packets(Replay(config, topology), config, packets, wanted, bounds=bounds), topology


def plain(source, target):
    """Packets that are messages of their own, with no empty ones."""
    source, target = np.ravel(source), np.ravel(target)
    return source, target, np.full(len(source), -1), np.ones(len(source), bool)


@needs_golden
def test_golden_prefetch_on_networks():
    cases = json.loads((GOLDEN / "prefetch.json").read_text())["network"]
    assert len(cases) == 36
    for case in cases:
        source, target = alltoall(case["algo"], int(np.prod(case["dims"])))
        to = np.full_like(target, -1)
        lead, rounds = case["lead"], case["rounds"]
        if lead:
            to[:-lead] = target[lead:]
        packets = [np.tile(each.ravel(), rounds) for each in (source, target, to)]
        packets.append(np.ones(len(packets[0]), bool))
        found, _ = run(torus(case["dims"], case["size"]), tuple(packets), Help(prefetch=lead or None))
        lookups, misses = found.result.lookups.sum(), (found.result.lookups - found.result.hits).sum()
        reads = found.help["reads"].sum()
        assert (lookups, misses) == (case["lookups"], case["misses"]), case
        assert found.help["issued"].sum() == case["prefetch_lookups"]
        assert reads - misses == case["prefetch_misses"]


@needs_golden
def test_golden_refill_on_networks():
    cases = json.loads((GOLDEN / "mpi_refill.json").read_text())["whole"]
    assert cases
    ways = {
        "lru": Help(), "prefetch": Help(refill=1), "prefetch_soft": Help(refill=1, eject="soft"),
        "prefetch_hard": Help(refill=1, eject="hard"),
    }  # fmt: skip
    for case in cases:
        source, target = alltoall(case["algo"], int(np.prod(case["dims"])))
        packets = plain(np.tile(source, (case["rounds"], 1)), np.tile(target, (case["rounds"], 1)))
        config = torus(case["dims"], case["size"])
        for name, wanted in ways.items():
            found, topology = run(config, packets, wanted, bounds=name == "lru")
            host = np.array(cache_classes(found.result.inputs, port_classes(topology))) == "host"
            misses = found.result.lookups - found.result.hits
            at = case["columns"].index(name)
            assert [misses[host].sum(), misses[~host].sum()] == [case["injection"][at], case["transit"][at]], name
            if found.bounds is not None:
                bound = case["columns"].index("min_bypass")
                assert found.bounds[host, 2].sum() == case["injection"][bound]
                assert found.bounds[~host, 2].sum() == case["transit"][bound]


@needs_golden
def test_golden_misses_on_networks():
    """LRU, FIFO, PLRU and SRRIP, and both best choices, summed over all caches."""
    cases = json.loads((GOLDEN / "alltoall.json").read_text())["cases"]
    assert cases
    for case in cases:
        source, target = alltoall(case["algo"], int(np.prod(case["dims"])))
        packets = plain(np.tile(source, (case["rounds"], 1)), np.tile(target, (case["rounds"], 1)))
        for want in case["misses"]:
            if want["entries"] != want["ways"]:
                continue  # the set is the key modulo their number there
            config = torus(case["dims"], want["entries"])
            found, _ = run(config, packets, Help(), bounds=True)
            assert found.result.lookups.sum() == case["lookups"]
            assert found.bounds.sum(axis=0).tolist() == [want[name] for name in ("lru", "min", "min_bypass")]
            for policy in ("lru", "fifo", "plru", "srrip"):
                cache = config.lookup.cache.model_copy(update={"policy": policy})
                changed = config.model_copy(update={"lookup": config.lookup.model_copy(update={"cache": cache})})
                found, _ = run(changed, packets, Help())
                assert (found.result.lookups - found.result.hits).sum() == want[policy], (case["algo"], want, policy)


@pytest.mark.parametrize(
    "wanted",
    [
        Help(prefetch_cycles=3), Help(prefetch_cycles=5, tcam_cycles=2), Help(refill=1), Help(refill=2, eject="hard"),
        Help(refill=0, eject="soft", tcam_cycles=3),
    ],
)  # fmt: skip
def test_every_cache_is_the_golden_model(wanted):
    config = torus((4, 4), 4)
    source, target = alltoall("pairwise", 16)
    packets = plain(np.tile(source, (2, 1)), np.tile(target, (2, 1)))
    found, topology = run(config, packets, wanted)
    streams = [[] for _ in range(found.result.inputs.caches)]
    paths = Replay(config, topology).routes.paths(packets[0], packets[1])
    for packet in range(len(packets[0])):
        for hop in range(paths.first[packet], paths.first[packet + 1]):
            cache = found.result.inputs.first[paths.router[hop], paths.port[hop]]
            streams[cache].append((int(packets[0][packet]), int(packets[1][packet])))
    for cache, stream in enumerate(streams):
        want = run_assisted(
            stream, size=4, fill=wanted.tcam_cycles, distance=wanted.prefetch_cycles,
            ranks=16 if wanted.refill is not None else 0, lead=wanted.refill or 0, eject=wanted.eject,
        )  # fmt: skip
        assert found.result.hits[cache] == want["hits"]
        names = ("reads", "issued", "redundant", "fills", "useful", "unused", "harmful", "late", "merged", "ejected")
        assert [found.help[name][cache] for name in names] == [want[name] for name in names]


def test_messages():
    source = np.array([0, 1, 0, 0, 1, 0, 0])
    target = np.array([5, 7, 5, 6, 7, 8, 5])
    to, begins = messages_ahead(source, target, 1)
    assert begins.tolist() == [True, True, False, True, False, True, True]
    assert to.tolist() == [-1, -1, 6, 8, -1, 5, -1]
    assert messages_ahead(source, target, 2)[0].tolist() == [-1, -1, 8, 5, -1, -1, -1]
    assert messages_ahead(source, target, 9)[0].tolist() == [-1] * 7


def test_the_command_shows_and_writes_what_python_returns(tmp_path):
    (tmp_path / "c.yml").write_text(BASE)
    words = ["hits", str(tmp_path / "c.yml"), "-o", str(tmp_path / "out"), "--prefetch", "1"]
    done = CliRunner(env={"COLUMNS": "200"}).invoke(app, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert "empty packets" in done.stdout and "coverage" in done.stdout and "without help LRU has" in done.stdout
    ports = pd.read_csv(tmp_path / "out" / "ports.csv")
    assert "gap_share" not in ports and (ports["fills"] == ports["useful"] + ports["unused"]).all()
    result = hf.hits(str(tmp_path / "c.yml"), prefetch=1, progress=False)
    assert result["useful"] == ports["useful"].sum() > 0
    assert result["empty_packets"] < result["packets"]


def test_figures_by_hand():
    t = run_hits(parse_config(BASE), wanted=Help(prefetch=1)).totals
    asked, reads = t["lookups"] + t["issued"], t["reads"]
    assert t["tcam_lookups"] == reads > t["misses"]
    assert t["forwarding_mpps"] == pytest.approx(1e3 / max(asked / t["lookups"], 25 * reads / t["lookups"]))
    assert t["energy_nj_per_lookup"] == pytest.approx((0.039 * asked + 42 * reads) / t["lookups"])
    assert t["lookup_ns"] == pytest.approx(1 + 25 * t["misses"] / t["lookups"])
    packets = 1000 / (84 * 8)  # a nanosecond, at 5 ports of 200 Gbps
    assert t["switch_power_w"] == pytest.approx(
        packets * (0.039 * asked + 42 * reads) / t["lookups"] + 5 * 0.013 + 0.036
    )
    assert t["coverage"] == pytest.approx(t["useful"] / (t["useful"] + t["misses"]))
    rows = dict(summary_rows(run_hits(parse_config(BASE), wanted=Help(refill=1))))
    assert "useful" in rows["prefetched"] and "empty packets" not in rows


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"prefetch": 0}, "--prefetch: must be at least 1, not 0"),
        ({"prefetch": 1, "prefetch_cycles": 4}, "--prefetch: goes a number of messages ahead"),
        ({"refill": -1}, "--refill: must be at least 0, not -1"),
        ({"refill": 0}, "--refill: 0 does nothing without --eject"),
        ({"eject": "soft"}, "--eject: needs the detector of --refill"),
        ({"refill": 1, "eject": "warm"}, "--eject: must be hard or soft, not warm"),
        ({"prefetch": 1, "tcam_cycles": -2}, "--tcam-cycles: must be at least 0, not -2"),
    ],
)
def test_what_makes_no_sense_is_refused(values, words):
    with pytest.raises(HelpError, match=words):
        Help(**values)


@pytest.mark.parametrize(
    ("cache", "words"),
    [
        ("cache: {enabled: false}", "lookup.cache.enabled: must be true with --prefetch"),
        ("cache: {skewed: true, policy: random}", "lookup.cache.skewed: must be false"),
        ("cache: {second_level: {}}", "lookup.cache.second_level: must be null"),
        ("cache: {policy: fifo}", "lookup.cache.policy: must be lru with --eject soft, not fifo"),
        ("tcam: {kind: flops, rows: 3}", "lookup.tcam.rows: must hold all routes"),
    ],
)
def test_caches_that_cannot_be_helped_are_refused(cache, words):
    config = parse_config(BASE.replace("cache: {entries: 4, ways: 4}", cache))
    with pytest.raises(HelpError, match=words):
        run_hits(config, wanted=Help(refill=1, eject="soft"))
