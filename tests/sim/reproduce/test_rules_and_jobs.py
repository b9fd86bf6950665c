"""`hopforge reproduce rules.*` and `jobs.*`: tables as they are called, figures that are known otherwise."""

import pandas as pd
import pytest

from hopforge.model.workload.jobs import usable_jobs
from hopforge.sim.reproduce import REPRODUCTIONS
from hopforge.sim.reproduce.lookup import rule_figures
from hopforge.sim.reproduce.programs import job_figures, job_interference
from hopforge.sim.reproduce.registry import Options


@pytest.mark.parametrize("mix", rule_figures.MIXES)
def test_tables_are_what_they_are_called(mix: str) -> None:
    rules = rule_figures._table(mix, 1)
    assert len(rules) == rule_figures._RULES
    assert len({(rule.value, rule.mask) for rule in rules}) == len(rules)
    assert all(rule.value & ~rule.mask == 0 for rule in rules)
    assert {rule.priority for rule in rules} == {0, *rule_figures.MIXES[mix]}
    known = {(rule.value, rule.priority) for rule in rules[1:]}
    lengths = sorted(rule_figures.MIXES[mix])
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
    rows = [row for point in points for row in rule_figures.measure(point, Options())]
    table = pd.DataFrame(rows).set_index(["entries", "policy"])["hit_percent"]
    for policy in rule_figures.POLICIES:
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


def test_points_and_networks_of_interference() -> None:
    points = REPRODUCTIONS["jobs.interference"].points(Options())
    assert len(points) == 3 * 4 == len({(point["placement"], point["method"]) for point in points})
    full = REPRODUCTIONS["jobs.interference"].points(Options(full=True))
    assert [sum(point["hosts"] == hosts for point in full) for hosts in (72, 1056)] == [36, 12]
    for hosts, used in ((72, 66), (1056, 1006)):
        config = job_interference.study_config(hosts, "Q-adaptive", "group", 4)
        assert sum(job.ranks for job in config.workload.jobs) == used
        assert config.workload.mtu_bytes == config.traffic.flit_bytes == 128  # a packet is a flit
        assert (config.routing.algorithm, config.router.vcs, config.seed) == ("q_adaptive", 5, 4)


def test_means_of_interference_by_hand() -> None:
    """Alone job a takes 10 µs at best, b 20: (12/10 · 60/20) ** ½, and so on."""
    rows = []
    for method, seed, times in (
        ("MIN", 1, {"a": (12, 10), "b": (60, 30)}), ("VALn", 1, {"a": (18, 15), "b": (20, 20)}),
        ("VALn", 2, {"a": (22, 15), "b": (20, 20)}),
    ):  # fmt: skip
        for job, (makespan, alone) in times.items():
            rows.append({
                "hosts": 72, "placement": "linear", "method": method, "seed": seed, "job": job, "ranks": 2,
                "makespan_us": makespan, "alone_us": alone, "slowdown": makespan / alone,
            })  # fmt: skip
    table = job_interference._means(pd.DataFrame(rows)).set_index("method")
    assert table.loc["MIN", "slowdown"] == pytest.approx((1.2 + 2) / 2)
    assert (table.loc["MIN", "largest"], table.loc["MIN", "of"]) == (2, "b")
    assert table.loc["MIN", "time"] == pytest.approx((1.2 * 3) ** 0.5)
    assert table.loc["MIN", "time_alone"] == pytest.approx((1 * 1.5) ** 0.5)
    assert table.loc["VALn", "slowdown"] == pytest.approx(((18 / 15 + 22 / 15) / 2 + 1) / 2)
    assert table.loc["VALn", "time"] == pytest.approx((2 * 1) ** 0.5)  # 20 of 10, 20 of 20
    found = job_interference._compare(pd.DataFrame(rows), Options())
    assert [each.quantity for each in found[:2]] == [
        "mean slowdown, 72 hosts, linear, MIN", "time of a job, 72 hosts, linear, MIN",
    ]  # fmt: skip
