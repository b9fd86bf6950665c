"""Two results side by side: intervals beside scipy's test, verdicts, what is refused, and the command itself."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from typer.testing import CliRunner

import hopforge as hf
from hopforge import cli
from hopforge.model.errors import UserError
from hopforge.model.output.results import write_tables
from hopforge.sim.pages import compare_write
from hopforge.sim.pages.compare import Comparison, Subject, compare_results

NET = """\
name: small
topology: {kind: mesh, radices: [3, 2]}
router: {vcs: 2, buffer_flits: 4}
simulation: {warmup_cycles: 200, min_cycles: 1000, max_cycles: 2000, loads: [0.1, 0.2], seeds: 2}
"""


def subject(name: str, runs: pd.DataFrame, **config: object) -> Subject:
    return Subject(name, {"runs": runs}, config)


def runs(latency: list[float], load: float = 0.1, **more: object) -> pd.DataFrame:
    table = pd.DataFrame({"variant": None, "load": load, "seed": range(1, len(latency) + 1), "latency": latency})
    return table.assign(latency_interval=1.0, saturated=False, **more)


def row(found: Comparison, figure: str = "latency") -> pd.Series:
    (each,) = (one for _, one in found.table.iterrows() if one["figure"] == figure)
    return each


@pytest.mark.parametrize("seed", range(8))
def test_seeds_are_compared_as_welch_does(seed: int) -> None:
    rng = np.random.default_rng(seed)
    first, second = rng.normal(20, 1, 5), rng.normal(20 + 0.4 * seed, 3, 9)
    found = row(compare_results(subject("a", runs(list(first))), subject("b", runs(list(second)))))
    test = stats.ttest_ind(second, first, equal_var=False)
    interval = test.confidence_interval(0.95)
    assert found["difference"] == pytest.approx(second.mean() - first.mean())
    assert found["interval"] == pytest.approx((interval.high - interval.low) / 2)
    assert found["verdict"] == ("differs" if test.pvalue < 0.05 else "not told apart")


def test_large_figures_are_shown_without_exponents() -> None:
    found = compare_results(subject("a", runs([787510.0, 787520.0])), subject("b", runs([20.0, 99999.0])))
    (line,) = (line for line in compare_write.comparison_lines(found) if "latency" in line)
    assert line[1:5] == ["787,515", "50010", "−737,506", "−93.65"]


def test_single_runs_are_compared_by_their_own_intervals() -> None:
    one = compare_results(subject("a", runs([20.0])), subject("b", runs([21.3])))
    two = compare_results(subject("a", runs([20.0])), subject("b", runs([21.5])))
    # 20 batches each: both intervals have half width 1, that of the difference t(38)/t(19) · √2
    half = np.sqrt(2) * stats.t.ppf(0.975, 38) / stats.t.ppf(0.975, 19)
    assert row(one)["interval"] == pytest.approx(half)
    assert 1.3 < half < 1.5
    assert (row(one)["verdict"], row(two)["verdict"]) == ("not told apart", "differs")


def test_verdicts_without_an_interval() -> None:
    ours = runs([20.0], accepted=0.1, hops=3.0, lookups=0, hit_rate=0.0)
    theirs = runs([20.0], accepted=0.2, hops=3.0, lookups=0, hit_rate=0.0)
    found = compare_results(subject("a", ours), subject("b", theirs))
    verdicts = [row(found, name)["verdict"] for name in ("latency", "accepted", "hops")]
    assert verdicts == ["equal", "no interval", "equal"]
    assert "hit_rate" not in set(found.table["figure"])  # no lookups at all
    full = compare_results(subject("a", ours), subject("b", theirs.assign(saturated=True, latency=300.0)))
    assert row(full)["verdict"] == "saturated"
    assert row(full, "accepted")["verdict"] == "no interval"


def test_rates_in_units_of_the_load_1_are_not_subtracted_from_flits() -> None:
    """Packet routers count `accepted` so; it is the same figure between two of them."""
    flits, packets = runs([20.0], accepted=0.2, hops=3.0), runs([np.nan], accepted=0.3, hops=4.0, lifetime_ns=5.0)
    for pair in ((flits, packets), (packets, flits)):
        found = compare_results(subject("a", pair[0]), subject("b", pair[1]))
        assert row(found, "accepted")["verdict"] == "other units"
        assert np.isnan(row(found, "accepted")[["difference", "difference_percent", "interval"]].astype(float)).all()
        assert abs(row(found, "hops")["difference"]) == 1.0
    same = compare_results(subject("a", packets), subject("b", packets.assign(accepted=0.4)))
    assert row(same, "accepted")["difference"] == pytest.approx(0.1)


def test_what_one_result_does_not_have_is_said_and_is_not_zero() -> None:
    ours = runs([20.0, np.nan], lookups=0, hit_rate=0.0, message_latency=np.nan)  # a run in which nothing arrived
    theirs = runs([21.0, 22.0], lookups=9, hit_rate=0.9, lifetime_ns=5.0)
    found = compare_results(subject("a", ours), subject("b", theirs))
    assert row(found)["first"] == 20.0 and row(found)["second"] == 21.5
    for name, value in (("hit_rate", 0.9), ("lifetime_ns", 5.0)):
        assert row(found, name)["verdict"] == "only in second"
        assert row(found, name)["second"] == value
        assert np.isnan(row(found, name)[["first", "difference", "difference_percent", "interval"]].astype(float)).all()
    back = compare_results(subject("b", theirs), subject("a", ours))
    assert row(back, "hit_rate")["verdict"] == "only in first"
    assert "message_latency" not in set(found.table["figure"])  # in neither
    with pytest.raises(UserError, match=r"no figure of runs is a number in both$"):
        compare_results(subject("a", runs([np.nan], hops=3.0)), subject("b", runs([20.0])))


@pytest.mark.parametrize(("ours", "theirs", "verdict"), [
    (0.0, 0.4, "other cycles"), (0.4, 0.5, "other cycles"), (0.4, 0.4, "no interval"), (0.0, 0.0, "no interval"),
])  # fmt: skip
def test_cycles_of_different_length_are_not_subtracted(ours: float, theirs: float, verdict: str) -> None:
    a, b = (runs([20.0], hops=3.0 * k, network_latency=9.0 * k, cycle_ns=c) for k, c in ((1, ours), (2, theirs)))
    found = compare_results(subject("a", a), subject("b", b))
    assert row(found, "network_latency")["verdict"] == verdict
    assert np.isnan(row(found, "network_latency")["difference"]) == (verdict == "other cycles")
    assert row(found, "hops")["verdict"] == "no interval"
    assert row(found, "hops")["difference"] == 3.0


def test_lifetimes_of_packet_routers_that_do_not_keep_up_depend_on_the_length_of_the_run() -> None:
    a, b = (runs([20.0], lifetime_ns=9.0 * k, sustained=k == 1).drop(columns="saturated") for k in (1, 2))
    assert row(compare_results(subject("a", a), subject("b", b)), "lifetime_ns")["verdict"] == "saturated"
    assert row(compare_results(subject("a", a), subject("b", a)), "lifetime_ns")["verdict"] == "equal"


def test_files_without_variants_match_whatever_they_are_called() -> None:
    a, b = (runs([20.0 + k]).assign(variant=name) for k, name in enumerate(("one", "two")))
    assert row(compare_results(subject("a", a), subject("b", b)))["difference"] == 1.0


@pytest.mark.parametrize("other", ["a.csv", "a.parquet", "b.csv"])
def test_tables_that_exist_only_as_csv_are_compared(tmp_path: Path, other: str) -> None:
    """An empty column of CSV is read as numbers that are not there."""
    table = runs([20.0, 21.0]).assign(program=None)
    table.to_csv(tmp_path / "a.csv", index=False)
    table.to_parquet(tmp_path / "a.parquet")
    table.assign(variant="small").to_csv(tmp_path / "b.csv", index=False)
    first, second = (
        pd.read_csv(tmp_path / name) if name.endswith("csv") else pd.read_parquet(tmp_path / name)
        for name in ("a.csv", other)
    )
    found = compare_results(subject("a", first), subject("b", second))
    assert row(found)["verdict"] == "equal" and not found.left_out


def test_variants_with_programs_and_with_loads_are_compared_and_written(tmp_path: Path) -> None:
    """A program has no load: its rows have none, and the table is written all the same."""
    table = pd.concat([runs([20.0]), runs([21.0], 0.2), runs([np.nan], np.nan, makespan_s=1.0)])
    table = table.assign(variant=["low", "high", "program"])
    found = compare_results(subject("a", table), subject("b", table))
    assert not found.left_out and len(found.table) == 3
    compare_write.write_comparison(found, tmp_path)
    written = pd.read_parquet(tmp_path / "comparison.parquet").set_index("variant")
    assert written["load"].fillna(-1).to_dict() == {"low": 0.1, "high": 0.2, "program": -1}
    assert set(written["verdict"]) == {"equal"}


@pytest.mark.parametrize(
    ("models", "label"),
    [
        ((None, "input_queued"), "accepted (flits per host and cycle)"),
        (("input_output_queued", "input_output_queued"), "accepted (flits per host and flit_ns)"),
        (("input_queued", "input_output_queued"), "accepted (flits per host and cycle or flit_ns)"),
    ],
)
def test_rates_are_drawn_per_the_time_in_which_they_are_counted(
    models: tuple[str | None, str], label: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels: list[str] = []
    monkeypatch.setattr(compare_write, "style_axes", lambda axes, **words: labels.append(words["y_label"]))
    table = pd.concat([runs([20.0], load).assign(accepted=load) for load in (0.1, 0.2)])
    first, second = (subject(str(k), table, **({} if m is None else {"router": {"model": m}}))
                     for k, m in enumerate(models))  # fmt: skip
    compare_write.write_comparison(compare_results(first, second), tmp_path)
    assert labels == ["mean latency (cycles)", label]


def test_rows_are_matched_by_variant_and_load() -> None:
    ours = pd.concat([runs([20.0], 0.1), runs([30.0], 0.2)])
    theirs = pd.concat([runs([31.0], 0.2), runs([90.0], 0.3)])
    found = compare_results(subject("a", ours, x=1, y={"z": [1]}), subject("b", theirs, x=2, y={"z": [1]}))
    assert list(found.table["load"]) == [0.2] and row(found)["difference"] == pytest.approx(1)
    assert found.left_out == ["load 0.1", "load 0.3"]
    assert found.changed == {"x": (1, 2)}


def test_results_that_cannot_be_compared_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^a and b: no row of runs in common \(load 0.1; load 0.2\)$"):
        compare_results(subject("a", runs([1.0])), subject("b", runs([1.0], 0.2)))
    with pytest.raises(UserError, match=r"^a has runs, b has classes: no figures in common to compare$"):
        hits = Subject("b", {"classes": pd.DataFrame({"port_class": ["x"], "hit_rate": [1.0]})}, {})
        compare_results(subject("a", runs([1.0])), hits)
    with pytest.raises(UserError, match=r"^b: column latency of runs holds what is no number$"):
        compare_results(subject("a", runs([1.0])), subject("b", runs([1.0]).assign(latency="abc")))
    with pytest.raises(UserError, match=r"^a and b: no figure of runs is a number in both$"):
        compare_results(subject("a", runs([1.0])), subject("b", runs([1.0]).assign(latency=None)))
    with pytest.raises(UserError, match="no result of net, sweep, app or hits in it"):
        hf.compare(tmp_path, tmp_path)
    with pytest.raises(UserError, match="no such folder"):
        hf.compare(tmp_path / "none", tmp_path)
    with pytest.raises(TypeError, match="first must be a Result or a folder, not int"):
        hf.compare(3, tmp_path)  # type: ignore[arg-type]


def test_the_command_and_python_say_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    config = hf.loads(NET)
    results = [hf.sweep(each, workers=1, progress=False) for each in (config, config.replace("router.vcs", 4))]
    for name, result in zip("ab", results, strict=True):
        result.write(tmp_path / "all" / name)
    found = hf.compare(*results)
    assert found.changed == {"router.vcs": (2, 4)} and found.plot().png.startswith(b"\x89PNG")
    assert {"figure", "first", "second", "difference", "interval", "verdict"} <= set(found.table)
    assert list(found.table["load"].unique()) == [0.1, 0.2]
    assert "router.vcs" in found._repr_html_() and "differs" in repr(found) + "differs"
    pd.testing.assert_frame_equal(found.table, hf.compare("all/a", "all/b").table, check_dtype=False)

    done = CliRunner().invoke(cli.app, ["compare", "all/a", "all/b"])
    assert done.exit_code == 0, done.output
    assert "router.vcs" in done.output and "2 → 4" in done.output
    folder = tmp_path / "build" / "compare"
    assert {path.name for path in folder.iterdir()} == {
        "comparison.csv", "comparison.parquet", "comparison.png", "metadata.json",
    }  # fmt: skip
    pd.testing.assert_frame_equal(pd.read_parquet(folder / "comparison.parquet"), found.table, check_dtype=False)
    assert json.loads((folder / "metadata.json").read_text())["changed"] == {"router.vcs": [2, 4]}

    several = CliRunner().invoke(cli.app, ["compare", "all", "all/b"])
    assert isinstance(several.exception, UserError)
    assert "holds 2 results; name one of all/a, all/b" in str(several.exception)


def test_names_are_words_in_csv_too(tmp_path: Path) -> None:
    """A folder that has lost its Parquet files (mail, git) compares as before; no two variants become one."""
    names = ["nan", "null", "NA", "None", "1", "01", "1e1", "10", "true", "été"]
    rows = pd.concat([runs([20.0 + k, 21.0 + k]).assign(variant=name) for k, name in enumerate(names)])
    whole, text = tmp_path / "whole", tmp_path / "text"
    for folder in (whole, text):
        folder.mkdir()
        write_tables(folder, {"runs": rows.reset_index(drop=True)})
        (folder / "metadata.json").write_text(json.dumps({"command": ["hopforge", "sweep", "x.yml"]}))
    (text / "runs.parquet").unlink()
    for first in (whole, text):
        found = hf.compare(first, text)
        assert list(found.table["variant"].unique()) == names
        assert set(found.table["verdict"]) == {"equal"}


@pytest.mark.parametrize("place", ["a", "b", "./c/../b"])
def test_a_comparison_does_not_overwrite_what_it_compares(tmp_path: Path, place: str) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        runs([20.0, 21.0]).to_parquet(tmp_path / name / "runs.parquet")
        (tmp_path / name / "metadata.json").write_text(json.dumps({"command": ["hopforge", "sweep", f"{name}.yml"]}))
    (tmp_path / "c").mkdir()
    run = CliRunner().invoke(cli.app, [
        "compare", str(tmp_path / "a"), str(tmp_path / "b"), "-o", f"{tmp_path}/{place}",
    ])  # fmt: skip
    assert isinstance(run.exception, UserError), run.output
    assert str(run.exception).endswith(": is a result that is compared, and is not overwritten; name another folder")
    for name in ("a", "b"):
        assert sorted(path.name for path in (tmp_path / name).iterdir()) == ["metadata.json", "runs.parquet"]
        assert json.loads((tmp_path / name / "metadata.json").read_text())["command"][2] == f"{name}.yml"


def test_one_load_has_no_curve() -> None:
    config = hf.loads(NET)
    found = hf.compare(*(hf.simulate(config, load=0.1, seed=seed, progress=False) for seed in (1, 2)))
    assert found.changed == {}
    with pytest.raises(UserError, match="this result has no picture"):
        found.plot()


def test_equal_means_of_several_seeds_are_not_taken_for_exact() -> None:
    """Two seeds that agree by chance: each result has the interval of its runs, as a single run has."""
    found = compare_results(subject("a", runs([20.0, 20.0])), subject("b", runs([20.5, 20.5])))
    single = compare_results(subject("a", runs([20.0])), subject("b", runs([20.5])))
    assert row(found)["interval"] == pytest.approx(row(single)["interval"])
    assert row(found)["interval"] > 0.5
    assert row(found)["verdict"] == "not told apart"
