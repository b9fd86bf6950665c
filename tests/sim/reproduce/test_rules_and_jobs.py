"""`hopforge reproduce rules.*` and `jobs.*`: tables as they are called, figures that are known otherwise."""

import pandas as pd
import pytest

from hopforge.model.workload.jobs import usable_jobs
from hopforge.sim.reproduce import REPRODUCTIONS, job_figures, rule_figures
from hopforge.sim.reproduce.registry import Options


@pytest.mark.parametrize("mix", rule_figures._MIXES)
def test_tables_are_what_they_are_called(mix: str) -> None:
    rules = rule_figures._table(mix, 1)
    assert len(rules) == rule_figures._RULES
    assert len({(rule.value, rule.mask) for rule in rules}) == len(rules)
    assert all(rule.value & ~rule.mask == 0 for rule in rules)
    assert {rule.priority for rule in rules} == {0, *rule_figures._MIXES[mix]}
    known = {(rule.value, rule.priority) for rule in rules[1:]}
    lengths = sorted(rule_figures._MIXES[mix])
    inside = sum(
        any((rule.value & ((1 << 32) - (1 << 32 - bits)), bits) in known for bits in lengths if bits < rule.priority)
        for rule in rules[1:]
    )
    if mix == "all /24":
        assert inside == 0
    if mix == rule_figures._NESTED:
        assert inside > 0.5 * len(rules)


def test_no_lookup_is_wrong_and_more_entries_hit_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule_figures, "_RULES", 512)
    points = [{**point, "entries": size} for point in REPRODUCTIONS["rules.entries"].points(Options())[:1]
              for size in (16, 4096)]  # fmt: skip
    rows = [row for point in points for row in rule_figures._run(point, Options())]
    table = pd.DataFrame(rows).set_index(["entries", "policy"])["hit_percent"]
    for policy in rule_figures._POLICIES:
        assert table[16, policy] < table[4096, policy]
    assert table[4096, "exact"] < table[4096, "host"] <= table[4096, "mep"]


def test_points_of_rules() -> None:
    assert [point["zipf"] for point in REPRODUCTIONS["rules.zipf"].points(Options())] == [0.6, 0.8, 1.0, 1.2, 1.4]
    points = REPRODUCTIONS["rules.updates"].points(Options())
    assert {(point["updates"], point["invalidation"]) for point in points} == {
        (count, how) for count in (10, 100, 1000, 10_000) for how in ("overlap", "flush")
    }


def test_shares_of_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = job_figures._size_rows({"kind": "all"}, Options())
    shares = {row["processors"]: row["less_percent"] for row in rows}
    log = job_figures.draw_log("all", 20_000, 8192, job_figures.np.random.default_rng(1))
    processors = usable_jobs(log, machine_nodes=8192).processors
    for size in (1, 2, 128, 8192):
        assert shares[size] == pytest.approx(100 * (processors < size).mean())
    found = job_figures._compare_sizes(pd.DataFrame([{**row, "kind": kind} for kind in ("all", "batch", "interactive")
                                                     for row in rows]), Options())  # fmt: skip
    assert found[0].paper == 98.0
    assert found[1].bounds == (90.0, float("inf"))


def test_placements_and_day(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [job_figures._wait_rows({"scheduler": "easy", "placement": name}, Options())[0]
            for name in ("linear", "group", "subtree")]  # fmt: skip
    assert rows[0]["mean_wait_s"] == rows[1]["mean_wait_s"] < rows[2]["mean_wait_s"]
    assert all(row["shared_percent"] > 0 for row in rows[:2])
    points = REPRODUCTIONS["jobs.day"].points(Options())
    assert len(points) == 15
