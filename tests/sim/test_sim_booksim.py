"""`hopforge reproduce booksim`: the reference is read right, and a short run of ours agrees with it."""

import pandas as pd
import pytest

from hopforge.sim.reproduce import REPRODUCTIONS, Options, select
from hopforge.sim.reproduce.booksim import CASES, case_config, knee, measure_point, reference, reference_curve


def test_every_reference_run_belongs_to_a_case_with_a_configuration() -> None:
    assert set(reference()["config"]) == set(CASES)
    for case in CASES:
        config = case_config(case)
        assert config.name == case
        assert {config.traffic.packet_flits} == set(reference().query("config == @case")["packet_size"])
    assert [r.name for r in select(["booksim"], REPRODUCTIONS)] == [f"booksim.{case}" for case in CASES]


def test_means_over_seeds_of_the_runs_that_ended() -> None:
    curve = reference_curve("mesh8x8_uniform_p1").set_index(["sim_type", "offered_flits"])
    # 39.6356, 39.792, 39.9986 in the file; at 0.45 the run was aborted
    assert curve.loc[("latency", 0.4), "pkt_lat"] == pytest.approx((39.6356 + 39.792 + 39.9986) / 3)
    assert ("latency", 0.45) not in curve.index
    assert ("throughput", 0.95) in curve.index
    # transpose accepts more beyond its knee, because only some hosts cross the crowded channels
    assert knee("mesh8x8_transpose_p1") == pytest.approx(0.14005)


@pytest.mark.parametrize("case, load", [
    ("mesh8x8_uniform_p1", 0.2), ("mesh8x8_uniform_p4", 0.2), ("mesh8x8_transpose_p1", 0.1),
    ("torus8x8_uniform_p1", 0.3), ("dragonfly72_min_uniform_p1", 0.2),
])  # fmt: skip
def test_latency_and_hops_agree_below_the_knee(case: str, load: float) -> None:
    (row,) = measure_point({"case": case, "kind": "latency", "load": load, "seed": 1}, Options())
    expected = reference_curve(case).set_index(["sim_type", "offered_flits"]).loc[("latency", load)]
    assert row["latency"] == pytest.approx(expected["pkt_lat"], rel=0.02)
    assert row["accepted"] == pytest.approx(expected["acc_flit_rate"], rel=0.02)
    assert row["hops"] == pytest.approx(expected["hops"], rel=0.01)
    assert row["saturated"] is False


def test_comparison_pairs_the_same_loads() -> None:
    reproduction = REPRODUCTIONS["booksim.torus8x8_uniform_p1"]
    points = reproduction.points(Options())
    curve = reference_curve("torus8x8_uniform_p1").set_index(["sim_type", "offered_flits"])
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
