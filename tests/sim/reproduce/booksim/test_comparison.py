"""`hopforge reproduce booksim`: the reference is read right, and a short run of ours agrees with it."""

from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from hopforge.cli import app
from hopforge.sim.reproduce import REPRODUCTIONS, Options, select
from hopforge.sim.reproduce.booksim.comparison import CASES, measure_point, own_reproductions
from hopforge.sim.reproduce.booksim.reference import ReferenceError, load_reference

SHIPPED = load_reference()


def test_every_reference_run_belongs_to_a_case_with_a_configuration() -> None:
    assert SHIPPED.cases == list(CASES)
    for case in CASES:
        config = SHIPPED.config(case)
        assert config.name == case
        assert {config.traffic.packet_flits} == set(SHIPPED.runs.query("config == @case")["packet_size"])
    assert [r.name for r in select(["booksim"], REPRODUCTIONS)] == [f"booksim.{case}" for case in CASES]


def test_means_over_seeds_of_the_runs_that_ended() -> None:
    curve = SHIPPED.curve("mesh8x8_uniform_p1").set_index(["sim_type", "offered_flits"])
    # 39.6356, 39.792, 39.9986 in the file; at 0.45 the run was aborted
    assert curve.loc[("latency", 0.4), "pkt_lat"] == pytest.approx((39.6356 + 39.792 + 39.9986) / 3)
    assert ("latency", 0.45) not in curve.index
    assert ("throughput", 0.95) in curve.index
    # transpose accepts more beyond its knee, because only some hosts cross the crowded channels
    assert SHIPPED.knee("mesh8x8_transpose_p1") == pytest.approx(0.14005)


@pytest.mark.parametrize("case, load", [
    ("mesh8x8_uniform_p1", 0.2), ("mesh8x8_uniform_p4", 0.2), ("mesh8x8_transpose_p1", 0.1),
    ("torus8x8_uniform_p1", 0.3), ("dragonfly72_min_uniform_p1", 0.2),
])  # fmt: skip
def test_latency_and_hops_agree_below_the_knee(case: str, load: float) -> None:
    (row,) = measure_point({"case": case, "kind": "latency", "load": load, "seed": 1}, Options())
    expected = SHIPPED.curve(case).set_index(["sim_type", "offered_flits"]).loc[("latency", load)]
    assert row["latency"] == pytest.approx(expected["pkt_lat"], rel=0.02)
    assert row["accepted"] == pytest.approx(expected["acc_flit_rate"], rel=0.02)
    assert row["hops"] == pytest.approx(expected["hops"], rel=0.01)
    assert row["saturated"] is False


@pytest.mark.parametrize("case, kind, load, theirs", [
    # wait_for_tail_credit = 1, means of three seeds: latency, or accepted flits beyond saturation
    ("mesh8x8_uniform_p1", "latency", 0.15, 31.86),
    ("mesh8x8_uniform_p1", "throughput", 0.95, 0.1649),
    ("mesh8x8_uniform_p4", "throughput", 0.95, 0.3362),
])  # fmt: skip
def test_release_by_credits_is_that_of_the_reference(
    tmp_path: Path, case: str, kind: str, load: float, theirs: float
) -> None:
    packet = 1 if case.endswith("p1") else 4
    header = "config,offered_flits,sim_type,stable,pkt_lat,acc_flit_rate,router_hops,packet_size\n"
    (tmp_path / "runs.csv").write_text(f"{header}{case},{load},{kind},1,{theirs},{theirs},6.25,{packet}\n")
    shipped = (SHIPPED.configs / f"{case}.yml").read_text()
    (tmp_path / f"{case}.yml").write_text(shipped.replace("  vcs: 4\n", "  vcs: 4\n  vc_release: credits\n"))
    options = Options(reference=tmp_path / "runs.csv", configs=tmp_path)
    (row,) = measure_point({"case": case, "kind": kind, "load": load, "seed": 1}, options)
    # one cycle more before the VC is free: latency 170, accepted 0.148 and 0.327
    assert row["latency" if kind == "latency" else "accepted"] == pytest.approx(theirs, rel=0.02)


def test_comparison_pairs_the_same_loads() -> None:
    reproduction = REPRODUCTIONS["booksim.torus8x8_uniform_p1"]
    points = reproduction.points(Options())
    curve = SHIPPED.curve("torus8x8_uniform_p1").set_index(["sim_type", "offered_flits"])
    rows = []
    for point in points:  # as if we had found exactly twice the latency and the same rates
        theirs = curve.loc[(point["kind"], point["load"])]
        rows.append({
            **point, "latency": 2 * theirs["pkt_lat"], "accepted": theirs["acc_flit_rate"], "hops": theirs["hops"],
        })  # fmt: skip
    compared = reproduction.compare(pd.DataFrame(rows), Options())
    deviations = {c.quantity: c.deviation_percent for c in compared}
    assert all(v == pytest.approx(100) for k, v in deviations.items() if k.startswith("latency"))
    assert all(v == pytest.approx(0) for k, v in deviations.items() if not k.startswith("latency"))
    assert len([k for k in deviations if k.startswith("latency")]) == 8


OWN_RUNS = """config,offered_flits,sim_type,stable,pkt_lat,acc_flit_rate,router_hops,packet_size
tiny,0.05,latency,1,16.1,0.0499,3.5,1
tiny,0.05,latency,1,16.3,0.0501,3.5,1
tiny,0.9,latency,0,,,,1
tiny,0.95,throughput,1,900,0.76,3.5,1
"""
TINY = "name: tiny\ntopology: {kind: mesh, radices: [4, 4]}\nrouter: {va: islip, sa: islip, credit_delay_cycles: 2}\n"


def own_case(folder: Path, runs: str = OWN_RUNS, config: str = TINY) -> list[str]:
    (folder / "runs.csv").write_text(runs)
    (folder / "tiny.yml").write_text(config)
    return ["--reference", str(folder / "runs.csv"), "--configs", str(folder)]


def test_other_runs_are_compared_with_the_configurations_given_for_them(tmp_path: Path) -> None:
    options = own_case(tmp_path)
    done = CliRunner().invoke(app, ["reproduce", "booksim", *options, "-o", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    found = pd.read_csv(tmp_path / "out" / "booksim.tiny" / "comparison.csv").set_index("quantity")
    # BookSim on the 4×4 mesh: 16.04 cycles at 0.037; 0.7667 flits at 0.95
    assert list(found.index) == ["latency at 0.05", "routers visited", "accepted at 0.95", "saturation throughput"]
    assert found.loc["latency at 0.05", "paper"] == pytest.approx(16.2)
    assert found.loc["latency at 0.05", "ours"] == pytest.approx(16.1, rel=0.02)
    assert found.loc["accepted at 0.95", "ours"] == pytest.approx(0.7667, rel=0.03)
    known = own_reproductions(Options(reference=tmp_path / "runs.csv", configs=tmp_path))
    assert list(known) == ["booksim.tiny"]


@pytest.mark.parametrize("runs, config, message", [
    (OWN_RUNS.replace("pkt_lat", "latency"), TINY, r"columns pkt_lat are missing; it needs config, offered_flits"),
    (OWN_RUNS.partition("\n")[0] + "\n", TINY, r"runs\.csv: holds no runs$"),
    (OWN_RUNS.replace("16.3", "fast"), TINY, r"line 3: pkt_lat must be a number from 0 on, not fast$"),
    (OWN_RUNS.replace("16.3", "-16.3"), TINY, r"line 3: pkt_lat must be a number from 0 on, not -16.3$"),
    (OWN_RUNS.replace("throughput", "batch"), TINY, r"line 5: sim_type must be latency or throughput, not batch$"),
    (OWN_RUNS.replace("0.95", "95"), TINY, r"line 5: offered_flits must be in \(0, 1\], not 95\.0$"),
    (OWN_RUNS.replace("tiny", "../tiny"), TINY, r"line 2: config must be a name, not \.\./tiny$"),
    (OWN_RUNS.replace("tiny", "big"), TINY, r"no such file: .*big\.yml, for case big of runs\.csv$"),
    (OWN_RUNS.replace(",1,16", ",0,16").replace(",1,900", ",0,900"), TINY, r"case tiny has no run with stable = 1$"),
    (OWN_RUNS, TINY + "traffic: {packet_flits: 4}\n", r"traffic.packet_flits is 4, packet_size of the reference 1$"),
])  # fmt: skip
def test_runs_and_configurations_that_do_not_fit_are_one_clear_line(
    tmp_path: Path, runs: str, config: str, message: str
) -> None:
    own_case(tmp_path, runs, config)
    with pytest.raises(ReferenceError, match=message):
        load_reference(tmp_path / "runs.csv", tmp_path)
    with pytest.raises(ReferenceError, match=r"^--reference: no such file: .*none\.csv$"):
        load_reference(tmp_path / "none.csv", tmp_path)
    with pytest.raises(ReferenceError, match=r"^--reference: a folder, not a file: "):
        load_reference(tmp_path, tmp_path)


def test_a_case_without_a_configuration_of_ours_needs_a_folder(tmp_path: Path) -> None:
    own_case(tmp_path, OWN_RUNS, TINY)
    with pytest.raises(ReferenceError, match=r"tiny is no case of hopforge; give --configs FOLDER with tiny\.yml$"):
        load_reference(tmp_path / "runs.csv")


def test_a_run_that_was_aborted_needs_no_packet_size(tmp_path: Path) -> None:
    own_case(tmp_path, OWN_RUNS.replace(",0,,,,1", ",0,,,,"))
    reference = load_reference(tmp_path / "runs.csv", tmp_path)
    assert reference.runs["packet_size"].isna().sum() == 1
    assert reference.cases == ["tiny"]
