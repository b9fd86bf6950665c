"""`hopforge rules`: the run, its files, and one line for what it refuses (docs/definitions/rule-caches.md)."""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hopforge import cli
from hopforge.model.lookup.rules.cube_cache import CubeCache, CubeCounts, CubeSettings
from hopforge.model.lookup.rules.cube_kernel import PrefixRules, run_prefixes
from hopforge.model.lookup.rules.cubes import prefix_mask
from hopforge.model.lookup.rules.rule_files import read_rules
from hopforge.model.lookup.rules.rule_table import Rule, RuleTable
from hopforge.sim.hits import rule_caches
from hopforge.sim.hits.rule_settings import RuleCacheError, RuleSettings
from hopforge.sim.hits.rule_traffic import draw_traffic

CONFIGS = Path(__file__).parents[3] / "configs"


def drawn(name, **words):
    file = read_rules(CONFIGS / name)
    options = {"lookups": 2000, "updates": 200, "flows": 500, "zipf": 1.0} | words
    traffic = draw_traffic(file.rules, file.width, len(file.hops), rng=np.random.default_rng(5), **options)
    return file, traffic


@pytest.mark.parametrize("name", ["routes.txt", "acl.csv"])
def test_updates_fit_the_table(name):
    file, traffic = drawn(name)
    table = RuleTable(file.rules, file.width)
    is_prefix = table.is_prefix_table
    for update in traffic.updates:
        table.apply(update)  # raises if a rule is not there, or is there already
    assert table.is_prefix_table == is_prefix == (name == "routes.txt")
    assert {update.kind for update in traffic.updates} == {"add", "del", "mod"}
    assert len(list(traffic.events())) == 2200


def test_flows_follow_zipf():
    _, traffic = drawn("routes.txt", lookups=100_000, flows=4, zipf=1.0)
    counts = sorted(np.unique(traffic.addresses, return_counts=True)[1].tolist(), reverse=True)
    assert np.allclose(counts, 100_000 * 12 / 25 / np.arange(1, 5), rtol=0.05)


def test_the_kernel_has_the_counts_of_the_golden_model():
    file, traffic = drawn("routes.txt")
    rows = np.array([(rule.value, rule.priority, rule.out) for rule in file.rules], np.int64).T.copy()
    rules = PrefixRules(rows[0], rows[1], rows[2].astype(np.int32), file.width)
    for policy in ("exact", "mep"):
        chosen = CubeSettings(policy, 32, "overlap", 4)
        wanted = CubeCache(RuleTable(file.rules, file.width), chosen).run(traffic.events())
        assert run_prefixes(rules, traffic.prefix_events(), chosen) == wanted
        assert wanted.wrong == 0
        assert wanted.invalidated > 0


def run(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["hopforge", "rules", *map(str, words)])
    with pytest.raises(SystemExit) as left:
        cli.main()
    return left.value.code


def test_the_command_writes_tables(tmp_path, monkeypatch, capsys):
    words = ["--size", 8, "--size", 32, "--lookups", 500, "--updates", 20, "--zipf", 0.5, "--zipf", 1]
    policies = ["exact", "megaflow", "cover", "dependent", "static-mixed"]
    words += [word for name in policies for word in ("--policy", name)]
    assert run(monkeypatch, CONFIGS / "acl.csv", *words, "-o", tmp_path / "r") == 0
    assert "0 answers" in capsys.readouterr().out
    found = pd.read_csv(tmp_path / "r" / "rule_caches.csv")
    assert len(found) == 2 * (1 + 2 * len(policies))
    assert (found["hits"] + found["tcam_reads"] == 500).all()
    assert not found["wrong"].any()
    metadata = json.loads((tmp_path / "r" / "metadata.json").read_text())
    assert metadata["seed"] == 1
    assert metadata["totals"]["rules"] == len(read_rules(CONFIGS / "acl.csv").rules)
    assert (tmp_path / "r" / "hit_rate.png").exists()
    assert pd.read_csv(tmp_path / "r" / "lengths.csv")["rules"].sum() == metadata["totals"]["rules"]


def test_a_wrong_answer_of_a_correct_policy_is_an_error_of_ours(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(rule_caches, "run_prefixes", lambda *_: CubeCounts(lookups=10, hits=5, wrong=1))
    words = ["--policy", "exact", "--size", 8, "-o", tmp_path / "r"]
    assert run(monkeypatch, CONFIGS / "routes.txt", *words) == 1
    assert "policy exact with 8 entries gave 1 answers unlike the TCAM's" in capsys.readouterr().err
    assert not (tmp_path / "r").exists()


def test_wrong_answers_of_others_are_shown(tmp_path, monkeypatch, capsys):
    words = ["--policy", "naive", "--size", 8, "--lookups", 500, "--updates", 0, "-o", tmp_path / "r"]
    assert run(monkeypatch, CONFIGS / "routes.txt", *words) == 0
    assert "answers of caches were not the TCAM's" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ({"policies": ("best",)}, "--policy: must be one of exact, host"),
        ({"sizes": (0,)}, "--size: must be 1 to 1048576, not 0"),
        ({"lookups": 0}, "--lookups: must be 1 to 100000000, not 0"),
        ({"updates": -1}, "--updates: must be 0 to 100000, not -1"),
        ({"zipfs": (float("nan"),)}, "--zipf: must be 0 to 10.0, not nan"),
        ({"fill": 0}, "--fill: must be 1 to 1024, not 0"),
        ({"flows": 0}, "--flows: must be 1 to 16777216, not 0"),
        ({"invalidation": "all"}, "--invalidation: must be one of overlap, changed, flush, none, not all"),
        ({"policies": ("mep",)}, "--policy mep: needs a table of prefixes"),
        ({"policies": ("cover",), "invalidation": "none"}, "--policy cover: takes --invalidation overlap or flush"),
        ({"policies": ("cover",), "fill": 2}, "--policy cover: writes at once; takes --fill 1, not 2"),
    ],
)
def test_bad_options(words, text):
    with pytest.raises(RuleCacheError, match=text):
        rule_caches.RuleCaches(CONFIGS / "acl.csv", RuleSettings(**words))


def test_too_many_rules_for_a_graph():
    with pytest.raises(RuleCacheError, match=r"takes at most 16384 rules \(with --overlap-graph 65536\), not 20000"):
        RuleSettings(policies=("cover",)).chosen(20_000, is_prefix=False)
    assert RuleSettings(policies=("cover",), overlap_graph=True).chosen(65_536, is_prefix=False) == ("cover",)


@pytest.mark.study
def test_ten_million_lookups_with_a_hundred_thousand_updates():
    rng = np.random.default_rng(2)
    lengths = rng.choice([8, 12, 16, 18, 20, 22, 24], 600_000, p=[0.01, 0.04, 0.1, 0.1, 0.15, 0.2, 0.4])
    values = rng.integers(0, 1 << 32, len(lengths))
    cubes = {(int(v) & prefix_mask(int(n), 32), int(n)) for v, n in zip(values, lengths, strict=True)}
    rules = [
        Rule(number, value, prefix_mask(length, 32), length, number % 16)
        for number, (value, length) in enumerate(sorted(cubes)[: 1 << 19])
    ]
    traffic = draw_traffic(rules, 32, 16, lookups=10**7, updates=10**5, flows=1 << 16, zipf=1.0, rng=rng)
    columns = np.array([(rule.value, rule.priority, rule.out) for rule in rules], np.int64).T.copy()
    table = PrefixRules(columns[0], columns[1], columns[2].astype(np.int32), 32)
    hits = {}
    for policy in ("exact", "mep"):
        counts = run_prefixes(table, traffic.prefix_events(), CubeSettings(policy, 4096, "overlap", 4))
        assert (counts.lookups, counts.wrong) == (10**7, 0)
        assert counts.invalidated > 0
        hits[policy] = counts.hits
    assert hits["mep"] > hits["exact"]


def test_policies_of_whole_rules_take_ipv6(tmp_path):
    """Half of the rules lie in another one; with room for all the misses are the first packets of rules."""
    lines = [f"2001:db8:{place:x}::/48 {place % 3}" for place in range(20)]
    lines += [f"2001:db8:{place:x}:8000::/49 {place % 5}" for place in range(20)]
    (tmp_path / "six.txt").write_text("hops: 5\n::/0 4\n" + "\n".join(lines) + "\n")
    policies = ("cover", "dependent", "static-cover", "static-dependent", "static-mixed")
    settings = RuleSettings(policies=policies, sizes=(8, 64), lookups=3000, updates=0, flows=300)
    found = rule_caches.RuleCaches(tmp_path / "six.txt", settings)
    found.run(lambda done, total: None)
    table = found.caches.set_index(["policy", "entries"])
    assert found.file.width == 128 and (table["wrong"] == 0).all()
    file, traffic = found.file, found._traffic(1.0)
    rules = RuleTable(file.rules, 128)
    matched = {rules.match(address).id for address, _ in traffic.counted()}
    assert table.loc[("cover", 64), "hits"] == 3000 - len(matched)
    for policy in policies[2:]:
        assert table.loc[(policy, 64), "hits"] == 3000
    for policy in policies:
        assert 0 < table.loc[(policy, 8), "hits"] < table.loc[(policy, 64), "hits"]
