"""Figures against formulas worked by hand, files and the commands `hits` and `topology`, and what bad input is told."""

import json
import os
import re
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from hopforge.cli import app, main
from hopforge.model.config import ConfigError, load_config, parse_config
from hopforge.sim.hits.hit_rates import run_hits, summary_rows, write_report

CONFIGS = Path(__file__).parents[3] / "configs"
BASE = """\
name: t
seed: 1
topology: {kind: torus, radices: [4, 4]}
lookup: {reduction: false, cache: {entries: 4, ways: 4}}
workload: {kind: uniform, packets_per_host: 300}
"""


def test_tables_add_up():
    found = run_hits(parse_config(BASE))
    for name in ("lookups", "hits", "compulsory", "capacity", "conflict", "evictions", "misses", "tcam_lookups"):
        total = found.totals[name]
        assert found.ports[name].sum() == found.switches[name].sum() == found.classes[name].sum() == total
    assert found.totals["misses"] == sum(found.totals[name] for name in ("compulsory", "capacity", "conflict"))
    assert found.totals["packets"] == found.totals["delivered"] == 16 * 300
    # every host sends 300 packets into its own switch
    assert found.classes.set_index("port_class").loc["host", "lookups"] == 4800
    assert set(found.classes["port_class"]) == {"host", "dim0+", "dim0-", "dim1+", "dim1-"}


def test_figures_by_hand():
    text = BASE + "timing: {cache_ns: 2, tcam_ns: 40, slot_bytes: 100, switch_base_ns: 10, miss_penalty_ns: 30,\n"
    text += "  conventional_switch_ns: 45, cable_ns: 5}\n"
    t = run_hits(parse_config(text)).totals
    lookups, misses, packets = t["lookups"], t["misses"], t["packets"]
    m = misses / lookups
    assert 0.05 < m < 0.9
    assert t["hit_rate"] == pytest.approx(1 - m)
    assert t["lookup_ns"] == pytest.approx(2 + 40 * m)
    assert t["forwarding_mpps"] == pytest.approx(1000 / max(2, 40 * m))
    assert t["forwarding_gbps"] == pytest.approx(800 / max(2, 40 * m))
    assert t["energy_nj_per_lookup"] == pytest.approx(0.039 + 42 * m)
    # 5 ports at 200 Gbps with slots of 800 bits are 1.25 G lookups a second
    assert t["switch_load_gbps"] == 1000
    assert t["switch_power_w"] == pytest.approx(1.25 * (0.039 + 42 * m) + 5 * 0.013 + 0.036)
    assert t["conventional_switch_power_w"] == pytest.approx(1.25 * 42 + 0.036)
    cables = (lookups + packets) / packets
    assert t["mean_latency_ns"] == pytest.approx((10 * lookups + 30 * misses) / packets + 5 * cables)
    assert t["conventional_mean_latency_ns"] == pytest.approx(45 * lookups / packets + 5 * cables)


def test_figures_with_two_levels():
    text = BASE.replace("ways: 4}}", "ways: 4, second_level: {entries: 8, ways: 8}}}")
    t = run_hits(parse_config(text)).totals
    first, last = t["misses"] / t["lookups"], t["tcam_lookups"] / t["lookups"]
    assert 0 < last < first
    assert t["lookup_ns"] == pytest.approx(1 + 4 * first + 25 * last)
    assert t["forwarding_mpps"] == pytest.approx(1000 / max(1, 4 * first, 25 * last))
    penalty = t["tcam_lookups"] + t["second_level_hits"] * 4 / 25
    cables = t["lookups"] + t["packets"]
    assert t["mean_latency_ns"] == pytest.approx((51 * t["lookups"] + 25 * penalty + 50 * cables) / t["packets"])


def test_without_a_cache_everything_is_conventional():
    t = run_hits(parse_config(BASE.replace("entries: 4,", "enabled: false, entries: 4,"))).totals
    assert t["hit_rate"] == 0
    assert t["lookup_ns"] == t["conventional_lookup_ns"] == 25
    assert t["forwarding_gbps"] == pytest.approx(t["conventional_forwarding_gbps"])
    assert t["energy_nj_per_lookup"] == 42
    assert t["switch_power_w"] == pytest.approx(t["conventional_switch_power_w"])
    assert t["latency_reduction"] == 0


def test_a_second_level_of_caches_that_are_off_changes_nothing():
    off = BASE.replace("entries: 4,", "enabled: false, entries: 4,")
    without = run_hits(parse_config(off))
    for second in ("{entries: 64}", "{entries: 64, per: switch}", "{entries: 4, ways: 2, content: exclusive}"):
        found = run_hits(parse_config(off.replace("enabled: false,", f"enabled: false, second_level: {second},")))
        assert found.totals == without.totals
        assert found.ports.equals(without.ports)
        assert summary_rows(found) == summary_rows(without)


def test_uniform_traffic_hits_as_the_theory_says():
    """Injection ports of a 5x5 torus: 24 equally likely destinations, 8 entries fully associative: P = 8/24."""
    text = BASE.replace("[4, 4]", "[5, 5]").replace("entries: 4, ways: 4", "entries: 8, ways: 8").replace("300", "4000")
    host = run_hits(parse_config(text)).classes.set_index("port_class").loc["host"]
    sigma = (1 / 3 * 2 / 3 / host["lookups"]) ** 0.5
    assert host["hit_rate"] == pytest.approx(8 / 24, abs=6 * sigma + 30 / 4000)


def test_report_files(tmp_path):
    config = parse_config(BASE)
    found = run_hits(config)
    write_report(found, tmp_path / "out")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {
        "ports.csv",
        "ports.parquet",
        "switches.csv",
        "switches.parquet",
        "classes.csv",
        "classes.parquet",
        "metadata.json",
        "hit_rate_by_port_class.png",
        "hit_rate_map.png",
    }
    read = json.loads((tmp_path / "out" / "metadata.json").read_text())
    assert read["totals"]["hits"] == found.totals["hits"]
    assert read["workload"]["packets"] == 4800
    assert parse_config(json.dumps(read["config"])) == config
    ports = pd.read_csv(tmp_path / "out" / "ports.csv")
    assert ports["hits"].sum() == found.totals["hits"]
    write_report(run_hits(config), tmp_path / "again")
    for name in sorted(names - {"metadata.json"}):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "again" / name).read_bytes(), name


def test_a_program_without_a_packet_has_no_rates(tmp_path):
    (tmp_path / "t.txt").write_text("".join(f"{rank} init\n{rank} finalize\n" for rank in range(16)))
    text = BASE.replace("kind: uniform, packets_per_host: 300", "kind: trace, file: t.txt")
    found = run_hits(parse_config(text, folder=tmp_path))
    words = dict(summary_rows(found))
    assert words["lookups"] == "none: nothing was looked up, so there are no rates"
    assert not {"hits", "lookup", "forwarding"} & set(words)
    write_report(found, tmp_path / "out")  # warnings are errors
    assert (tmp_path / "out" / "classes.csv").exists()


def test_summary_never_rounds_up_to_all():
    words = dict(summary_rows(run_hits(load_config(CONFIGS / "hits_fat_tree.yml"))))
    assert "100 %" not in words["hits"]


@pytest.mark.parametrize("name", ["hits_dragonfly", "hits_fat_tree", "hits_edge_list"])
def test_examples_run(name):
    found = run_hits(load_config(CONFIGS / f"{name}.yml"))
    assert found.totals["delivered"] == found.totals["packets"] > 0
    assert np.isfinite(found.totals["hit_rate"])


def test_the_section_workload_is_needed():
    with pytest.raises(ConfigError, match=r"workload: missing; `hopforge hits` needs the section"):
        run_hits(parse_config("name: t\ntopology: {kind: torus, radices: [4]}\n"))


# ---- the commands ---------------------------------------------------------------------------------------------------


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def command(tmp_path, monkeypatch, capfd):
    """Run the command line in this process, in the test's folder."""

    def run(*words):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["hopforge", *words])
        monkeypatch.setenv("COLUMNS", "200")
        with pytest.raises(SystemExit) as left:
            main()
        out, err = capfd.readouterr()
        return Done(int(left.value.code or 0), out, err)

    return run


@pytest.fixture
def refuse(tmp_path, command):
    """Run a command that must fail with exit status 2 and exactly one line, leaving nothing behind."""

    def run(*words):
        before = sorted(str(path) for path in tmp_path.rglob("*"))
        done = command(*words)
        assert done.returncode == 2, done
        assert done.stdout == ""
        assert done.stderr.count("\n") == 1, done.stderr
        assert "Traceback" not in done.stderr
        assert sorted(str(path) for path in tmp_path.rglob("*")) == before
        return done.stderr

    return run


def test_hits_from_a_configuration(tmp_path, command):
    (tmp_path / "t.yml").write_text(BASE)
    done = command("hits", "t.yml")
    assert (done.returncode, done.stderr) == (0, "")
    assert "lookups" in done.stdout
    assert (tmp_path / "build" / "t" / "hits" / "ports.csv").exists()


def test_topology_shows_and_exports(tmp_path, command):
    (tmp_path / "t.yml").write_text(BASE)
    done = command("topology", "t.yml", "--export", "edges")
    assert (done.returncode, done.stderr) == (0, "hopforge: hopforge topology does not use workload\n")
    assert "diameter" in done.stdout
    assert len((tmp_path / "build" / "t" / "topology" / "t.edges").read_text().splitlines()) == 1 + 32


def test_an_export_tells_which_links_and_failures_it_leaves_out(tmp_path, command):
    """Three links of two routers, and one that has failed: no file knows of failures, some have one link of a pair."""
    (tmp_path / "net.txt").write_text("0 1\n0 1\n0 1\n1 2\n")
    text = "name: t\ntopology: {kind: edge_list, file: net.txt}\nfailed: {ports: [[0, 1]]}\n"
    (tmp_path / "t.yml").write_text(text)
    for form, links in (("edges", 4), ("simgrid", 2), ("simgrid-full", 4), ("graphml", 4), ("anynet", 2)):
        done = command("topology", "t.yml", "--export", form, "-o", f"{form}.out")
        assert (done.returncode, done.stderr) == (0, "")
        assert "figures and files are of the whole network" in done.stdout
        assert ("2 links parallel to others" in done.stdout) == (links == 2)
        if form.startswith("simgrid"):
            assert (tmp_path / f"{form}.out").read_text().count('<link id="r') == 2 * links + 3  # and those to hosts


TRACE = "workload: {kind: trace, file: trace}\n"
BAD = {
    "missing rank": (BASE.splitlines(), r"trace: rank 1 is missing; the highest rank is 2", ["0 init", None, "2 init"]),
    "malformed line": (
        BASE.splitlines(),
        r"trace/rank-1.txt:2: send needs 3 to 4 arguments",
        ["0 init\n0 send 1 0", "1 init"],
    ),
    "unknown action": (BASE.splitlines(), r"trace/rank-2.txt:1: unknown action 'innit'", ["0 init", "1 innit"]),
    "lost message": (
        BASE.splitlines(),
        r"trace/rank-1.txt:2: rank 0 waits for a message",
        ["0 init\n0 recv 1 0 5", "1 init"],
    ),
    "too many ranks": (BASE.splitlines(), r"17 ranks are more than the 16 hosts", [f"{r} init" for r in range(17)]),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_traces(tmp_path, case, refuse):
    lines, message, ranks = BAD[case]
    (tmp_path / "t.yml").write_text("\n".join(lines[:4]) + "\n" + TRACE)
    (tmp_path / "trace").mkdir()
    for rank, text in enumerate(ranks):
        if text is not None:
            (tmp_path / "trace" / f"rank-{rank + 1}.txt").write_text(text + "\n")
    assert re.search(message, refuse("hits", "t.yml"))


@pytest.mark.parametrize(("old", "new", "words"), [
    ("ways: 4", "ways: 3", ["t.yml:4", "lookup.cache.ways", "must divide entries=4, not 3"]),
    ("radices: [4, 4]", "radices: [4, 20]", ["t.yml:3", "topology.radices[1]", "20", "16 values"]),
    ("kind: uniform", "kind: permutation, permutation: transposed", ["t.yml:5", "permutation"]),
    ("{kind: torus, radices: [4, 4]}", "{kind: edge_list, file: net.txt}", ["net.txt", "disconnected"]),
    ("{kind: torus, radices: [4, 4]}", "{kind: edge_list, file: no.txt}", ["no.txt", "No such file"]),
    ("radices: [4, 4]", "radices: [3, 3]", ["workload.permutation: shuffle needs a power of two of hosts, not 9"]),
])  # fmt: skip
def test_bad_configurations(tmp_path, old, new, words, refuse):
    text = BASE.replace(old, new)
    if "shuffle" in words[0]:
        text = text.replace("kind: uniform", "kind: permutation, permutation: shuffle")
    (tmp_path / "t.yml").write_text(text)
    (tmp_path / "net.txt").write_text("0 1\n2 3\n")
    told = refuse("hits", "t.yml")
    for word in words:
        assert word in told


def test_unwritable_folder(tmp_path, refuse):
    (tmp_path / "t.yml").write_text(BASE)
    (tmp_path / "file").write_text("in the way")
    told = refuse("hits", "t.yml", "-o", "file/out")
    assert "file/out: cannot write results: Not a directory" in told


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_read_only_folder(tmp_path, refuse):
    (tmp_path / "t.yml").write_text(BASE)
    (tmp_path / "fixed").mkdir(mode=0o555)
    assert "fixed: cannot write results: Permission denied" in refuse("hits", "t.yml", "-o", "fixed")


def test_bad_export(tmp_path, refuse):
    (tmp_path / "t.yml").write_text(BASE)
    told = refuse("topology", "t.yml", "--export", "dot")
    formats = "graphml, anynet, edges, simgrid, simgrid-full, sst, ns3, png"
    assert f"--export: the format must be one of {formats}, not 'dot'" in told


POLICIES = ["fifo", "plru", "random"]


@pytest.mark.parametrize(
    "network",
    [
        "topology: {kind: torus, radices: [4, 4]}\nlookup: {reduction: false, cache: {entries: 8, ways: 2}}\n",
        "topology: {kind: torus, radices: [3, 3]}\nlookup: {lag: {members: 2, max_members: 2}, reduction: false,"
        " cache: {entries: 2, ways: 2}}\n",
        "topology: {kind: fat_tree, k: 2, n: 3}\nlookup: {ports_per_engine: 2, cache: {entries: 2, ways: 1}}\n",
        "topology: {kind: dragonfly, p: 2, a: 4, h: 2}\nlookup: {cache: {entries: 4, ways: 2, second_level: {}}}\n",
    ],
)
def test_lru_of_the_bounds_is_the_replay_in_every_cache(network):
    text = f"name: t\n{network}workload: {{kind: uniform, packets_per_host: 60}}\n"
    found = run_hits(parse_config(text), bounds=True)
    ports = found.ports
    assert ports["lru"].tolist() == ports["misses"].tolist()
    assert (ports["min_bypass"] <= ports["min"]).all() and (ports["min"] <= ports["lru"]).all()
    assert 0 < found.totals["min_bypass"] < found.totals["lru"]
    assert (found.ports["min_bypass"] >= found.ports["compulsory"]).all()
    for name in ("lru", "min", "min_bypass"):
        assert found.classes[name].sum() == found.switches[name].sum() == found.totals[name]
    assert set(ports["gap_share"].dropna()) == {0.0}


@pytest.mark.parametrize("policy", POLICIES)
def test_policies_lie_above_the_bound_and_say_how_far(policy):
    found = run_hits(parse_config(BASE.replace("ways: 4", f"ways: 4, policy: {policy}")), bounds=True)
    t = found.totals
    assert (found.ports["min"] <= found.ports["misses"]).all()
    assert t["gap_share"] == pytest.approx((t["lru"] - t["misses"]) / (t["lru"] - t["min_bypass"]))
    assert dict(summary_rows(found))["bounds"].startswith(f"LRU has {t['lru']:,} misses, the best choice {t['min']:,}")


@pytest.mark.parametrize(
    ("cache", "words"),
    [
        ("enabled: false, entries: 4", "none, for the cache is off"),
        ("skewed: true, policy: random, entries: 4", "none, for with skewed association"),
        ("entries: 4, ways: 4}, tcam: {kind: flops, rows: 3", "none, for the TCAM lacks rows"),
    ],
)
def test_where_there_is_no_bound_the_reason_is_said(cache, words):
    found = run_hits(parse_config(BASE.replace("entries: 4, ways: 4", cache)), bounds=True)
    assert dict(summary_rows(found))["bounds"].startswith(words)
    assert "min_bypass" not in found.ports.columns and "gap_share" not in found.totals


def test_bounds_can_be_left_out(tmp_path):
    (tmp_path / "c.yml").write_text(BASE)
    for options, there in (([], True), (["--no-bounds"], False)):
        words = ["hits", str(tmp_path / "c.yml"), "-o", str(tmp_path / "out"), *options]
        assert CliRunner().invoke(app, words, catch_exceptions=False).exit_code == 0
        assert ("gap_share" in pd.read_csv(tmp_path / "out" / "ports.csv").columns) is there
