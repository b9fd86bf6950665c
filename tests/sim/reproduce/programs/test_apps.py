"""Figures of applications: workloads that exist, gains that multiply, caches between hits and misses, equal engines."""

import shutil

import pandas as pd
import pytest

from hopforge.model.config import parse_config
from hopforge.sim.reproduce import REPRODUCTIONS, Options
from hopforge.sim.reproduce.programs.apps_engines import calculated_s
from hopforge.sim.reproduce.programs.apps_figures import workload_text

FIGURES = [name for name in REPRODUCTIONS if name.startswith("apps.fig")]


def test_every_program_of_every_figure_is_a_configuration():
    assert len(FIGURES) == 6
    for full in (False, True):
        points = [point for name in FIGURES for point in REPRODUCTIONS[name].points(Options(full=full))]
        assert len({(point["figure"], point["program"]) for point in points}) == len(points) == 2 * 8 + 4 * 10
        for point in points:
            for nodes in (32, 256):
                text = workload_text(str(point["program"]), nodes, full=full)
                config = parse_config(f"name: x\ntopology: {{kind: torus, radices: [16, 16]}}\nworkload: {text}\n")
                assert 1 < config.workload.ranks <= nodes


def test_a_measured_figure():
    """DT on the small torus: speeds follow from makespans, and what is drawn and compared from speeds."""
    figure = REPRODUCTIONS["apps.fig5.27"]
    (point,) = [point for point in figure.points(Options()) if point["program"] == "dt"]
    rows = pd.DataFrame(figure.measure(point, Options()))
    assert len(rows) == 8  # two models, two rates, with caches and without
    for _, part in rows.groupby("model"):
        speed = part.set_index(["link_gbps", "lookup"])
        assert speed.loc[(100, "conventional"), "relative"] == 1
        for rate in (100, 1600):
            gain = speed.loc[(rate, "hit"), "relative"] / speed.loc[(rate, "conventional"), "relative"]
            assert 1 < gain < 60 / 51
        assert 1 < speed.loc[(1600, "conventional"), "relative"] < 16
    compared = {each.quantity: each.ours for each in figure.compare(rows, Options())}
    whole = compared["mean gain, 1.6 Tbps with caches over 100 Gbps without"]
    parts = ("of it the links, without caches", "of it the caches, at 1.6 Tbps")
    assert whole == pytest.approx(compared[parts[0]] * compared[parts[1]])
    assert whole == compared["gain of DT"]


@pytest.mark.parametrize("place", ["linear", "random"])
def test_a_point_of_the_study(place):
    study = REPRODUCTIONS["apps.study"]
    (point,) = [
        point for point in study.points(Options())
        if (point["program"], point["ranks"], point["place"]) == ("alltoall", 32, place)
    ]
    rows = pd.DataFrame(study.measure(point, Options()))
    gain = rows.set_index(["lookup", "penalty", "link_gbps"])["gain"]
    for rate in (100, 1600):
        assert gain["conventional", "", rate] == 1
        assert 1 < gain["hit", "", rate] <= 60 / 51 + 1e-9
        for cache in ("cache, node reduction", "cache, whole addresses"):
            assert gain[cache, "76 ns on a miss", rate] < gain[cache, "61 ns on a miss", rate] < gain["hit", "", rate]
    missed = rows.groupby("lookup")["miss_share"].first()
    # one all-to-all: whole addresses miss once for each destination of an input, keys once for each output
    assert 0 < missed["cache, node reduction"] < missed["cache, whole addresses"] < 1


def test_the_study_compares_its_largest_jobs():
    study = REPRODUCTIONS["apps.study"]
    points = study.points(Options())
    assert {point["ranks"] for point in points} == {32, 64, 256}
    lookups = [("conventional", ""), ("hit", "")] + [
        (cache, penalty)
        for cache in ("cache, node reduction", "cache, whole addresses", "small cache, whole addresses")
        for penalty in ("61 ns on a miss", "76 ns on a miss")
    ]
    rows = pd.DataFrame(
        {**point, "link_gbps": rate, "lookup": lookup, "penalty": penalty, "miss_share": 0.25,
         "makespan_s": point["ranks"] / rate, "gain": 1 + point["ranks"] / 1000 + k / 100 + rate / 1e5}
        for point in points for rate in (100, 1600) for k, (lookup, penalty) in enumerate(lookups)
    )  # fmt: skip
    compared = {each.quantity: each for each in study.compare(rows, Options())}
    assert len(compared) == 2 * 3 * (1 + 3) + 2
    assert compared["MG, scattered: gain if nothing misses"].ours == pytest.approx(1 + 0.256 + 0.01 + 0.016)
    cache = compared["All-to-all, contiguous: gain, cache, whole addresses, 61 ns on a miss"]
    assert cache.ours == pytest.approx(1 + 0.256 + 0.04 + 0.016)
    assert cache.assumption == "25.00 % of the lookups miss; 1.322 with 76 ns"
    assert compared["MG, contiguous: gain of 1600 Gbps over 100 Gbps"].ours == 16
    assert len(study.draw(rows, Options()).axes) == 4


def test_engines_beside_each_other():
    """Exchanges take what one calculates in every engine that is there, programs as long in routers as in flows."""
    figure = REPRODUCTIONS["apps.engines"]
    points = figure.points(Options())
    exchanges = [point for point in points if point["network"] == "one switch"]
    assert [point["program"] for point in exchanges] == ["ping-pong", "ring", "all-to-all"]
    assert {(point["program"], point["network"]) for point in points if point not in exchanges} == {
        (program, network) for program in ("is", "cg", "mg", "ft") for network in ("4×4×4 torus", "dragonfly")
    }
    small = [
        {"network": network, "program": program, "class": "S", "ranks": ranks, "start": start, "simgrid": False}
        for network, program, ranks, start in (("4×4×4 torus", "is", 16, "received"), ("dragonfly", "mg", 8, "sent"))
    ]
    installed = shutil.which("smpirun") is not None
    rows = pd.DataFrame(row for point in (*exchanges, *small) for row in figure.measure(point, Options()))
    known = rows[rows["network"] == "one switch"].set_index("program")
    # 50 016 bytes at 1 GB/s, a switch of 51 ns, two cables of 50 ns
    assert calculated_s("ping-pong") == pytest.approx(4 * 50.167e-6)
    for program, steps in (("ping-pong", 4), ("ring", 14), ("all-to-all", 7)):
        for engine in ("flow", "packet", *(["simgrid"] if installed else [])):
            assert known[f"{engine}_s"][program] == pytest.approx(steps * 50.167e-6, rel=0.01)
    programs = rows[rows["network"] != "one switch"]
    assert programs["packet_over_flow"].tolist() == pytest.approx([1, 1], abs=0.10)
    compared = {each.quantity: each for each in figure.compare(rows, Options())}
    assert len(compared) == 3 * (2 + installed) + 2
    beside = compared["IS, 4×4×4 torus: packet"]
    assert beside.paper == 1e3 * programs["flow_s"].iloc[0]
    assert beside.deviation_percent == pytest.approx(programs["deviation_percent"].iloc[0])
    assert "MG, dragonfly, messages one after the other: packet" in compared


def test_full_engines_also_send_at_once():
    points = REPRODUCTIONS["apps.engines"].points(Options(full=True))
    assert [point.get("start") for point in points] == [None] * 3 + ["received"] * 8 + ["sent"] * 8
    assert not any(point["simgrid"] for point in points if point.get("start") == "sent")
