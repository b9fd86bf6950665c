"""`hopforge hits --sizes` against a replay of every size."""

import pandas as pd
import pytest
from typer.testing import CliRunner

import hopforge as hf
from hopforge.cli import app
from hopforge.model.config import parse_config
from hopforge.sim.hits.assisted import Help
from hopforge.sim.hits.hit_rates import run_hits
from hopforge.sim.hits.sizes import SizesError

BASE = """\
name: t
seed: 2
topology: {kind: torus, radices: [4, 4]}
lookup: {reduction: false, cache: {entries: 4, ways: 2}}
workload: {kind: uniform, packets_per_host: 100}
"""


def replayed(entries, ways, policy="lru"):
    cache = f"entries: {entries}, ways: {ways}, policy: {policy}"
    return run_hits(parse_config(BASE.replace("entries: 4, ways: 2", cache)), bounds=True).totals


def test_every_row_is_a_replay():
    found = run_hits(parse_config(BASE), bounds=True, sizes=True)
    table = found.sizes
    lru = table[table["policy"] == "lru"]
    assert set(lru["sets"]) == {1, 2, 4, 8, 16}
    assert lru[lru["sets"] == 1]["ways"].tolist() == list(range(1, 16))
    assert (table["lookups"] == found.totals["lookups"]).all()
    for sets, ways in [(1, 1), (1, 3), (1, 15), (2, 2), (4, 1), (8, 2), (16, 1)]:
        want = replayed(sets * ways, ways)
        row = lru[(lru["sets"] == sets) & (lru["ways"] == ways)]
        assert row["misses"].tolist() == [want["misses"]]
        assert row["hit_rate"].tolist() == pytest.approx([want["hit_rate"]])
    last = lru[lru["sets"] == 1].iloc[-1]
    assert last["misses"] == found.totals["compulsory"]
    for sets in (1, 4, 16):
        want = replayed(2 * sets, 2)
        for name in ("min", "min_bypass"):
            rows = table[(table["policy"] == name) & (table["sets"] == sets)]
            assert (rows["misses"].tolist(), rows["ways"].tolist()) == ([want[name]], [2])


@pytest.mark.parametrize("policy", ["fifo", "random", "srrip"])
def test_other_policies_are_replayed(policy):
    text = BASE.replace("ways: 2", f"ways: 2, policy: {policy}")
    table = run_hits(parse_config(text), sizes=True).sizes
    assert set(table["policy"]) == {"lru", policy}
    for sets in (1, 2, 8):
        rows = table[(table["policy"] == policy) & (table["sets"] == sets)]
        assert rows["misses"].tolist() == [replayed(2 * sets, 2, policy)["misses"]]


def test_the_command_shows_and_writes_them(tmp_path):
    (tmp_path / "c.yml").write_text(BASE)
    words = ["hits", str(tmp_path / "c.yml"), "-o", str(tmp_path / "out"), "--sizes"]
    done = CliRunner(env={"COLUMNS": "200"}).invoke(app, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    heading = next(line for line in done.stdout.splitlines() if line.startswith("entries"))
    assert heading.split("  ")[0] == "entries" and "lru, one set" in heading and "min_bypass, 2 ways" in heading
    table = hf.hits(str(tmp_path / "c.yml"), sizes=True, progress=False).tables["sizes"]
    pd.testing.assert_frame_equal(table, pd.read_csv(tmp_path / "out" / "sizes.csv"), check_dtype=False)


def test_every_printed_number_stands_in_the_csv():
    report = run_hits(parse_config(BASE), sizes=True, bounds=True)
    columns = [report.sizes[name] for name in ("policy", "sets", "ways", "misses")]
    table = {(policy, sets, ways): misses for policy, sets, ways, misses in zip(*columns, strict=True)}
    heading, *lines = report.size_lines()
    assert heading == ["entries", "sets", "lru, one set", "lru, 2 ways", "min, 2 ways", "min_bypass, 2 ways"]
    assert [line[:2] for line in lines[:3]] == [["1", "1"], ["2", "1"], ["4", "2"]]
    last = max(ways for policy, sets, ways in table if (policy, sets) == ("lru", 1))
    for line in lines:
        entries, sets = (int(word.replace(",", "")) for word in line[:2])
        assert line[2] == f"{table['lru', 1, min(entries, last)]:,}"
        for name, word in zip(("lru", "min", "min_bypass"), line[3:], strict=True):
            ways = min(2, max(ways for policy, of, ways in table if (policy, of) == (name, sets)))
            assert word == ("" if entries == 1 else f"{table[name, sets, ways]:,}")


@pytest.mark.parametrize(
    ("cache", "words"),
    [
        ("enabled: false", "lookup.cache.enabled: must be true with --sizes"),
        ("skewed: true, policy: random", "lookup.cache.skewed: must be false with --sizes"),
        ("entries: 4}, tcam: {kind: flops, rows: 3", "lookup.tcam.rows: must hold all routes with --sizes, not 3 rows"),
    ],
)
def test_what_has_no_sizes_is_refused(cache, words):
    with pytest.raises(SizesError, match=words):
        run_hits(parse_config(BASE.replace("entries: 4, ways: 2", cache)), sizes=True)


def test_not_with_help():
    with pytest.raises(SizesError, match="--sizes: compares caches without help"):
        run_hits(parse_config(BASE), sizes=True, wanted=Help(refill=1))
