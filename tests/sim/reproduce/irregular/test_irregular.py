"""Reproduced figures of irregular networks: small instances, against their definitions and numbers found otherwise."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from hopforge.sim.pages.route_load import all_to_all_load
from hopforge.sim.reproduce import REPRODUCTIONS, Options, run_reproduction, select
from hopforge.sim.reproduce.irregular import (
    acro,
    loren_entries,
    loren_load,
    loren_paths,
    loren_quality,
    loren_simulated,
)
from hopforge.sim.reproduce.irregular.loren_networks import COMPARED, LABELS, VCS, Case, case_tables, fitting_graph
from hopforge.sim.reproduce.irregular.loren_simulated import interval, layer_flows, load_bounds

FIGURES = [
    *(f"loren.{name}" for name in ("fig3.1", "fig4.3", "fig4.4", "fig4.5", "fig4.6", "fig4.7", "fig4.8", "fig4.9")),
    *(f"loren.{name}" for name in ("fig4.10", "fig4.11", "table4.2", "fig6.1", "fig6.2", "fig6.3", "fig6.4", "fig7.1")),
    *(f"acro.{name}" for name in ("fig5.4", "fig5.5", "fig5.6", "fig6.1")),
]


def part(reproduction, points):
    """A reproduction with only these points."""
    return dataclasses.replace(reproduction, points=lambda options: points)


def values(outcome):
    return {c.quantity: c for c in outcome.comparisons}


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_has_its_name(name):
    (found,) = select([name], REPRODUCTIONS)
    assert name in (found.name, *found.aliases)
    quick, full = found.points(Options()), found.points(Options(full=True))
    assert 0 < len(quick) <= len(full)


def test_least_tables(tmp_path):
    points = [{"scheme": "loren", "nodes": 64, "graph": graph} for graph in range(6)]
    points += [{"scheme": scheme, "nodes": 64, "graph": 0} for scheme in COMPARED[1:]]
    found = values(run_reproduction(part(REPRODUCTIONS["loren.fig4.5"], points), tmp_path, Options()))
    # spec compact-routing.md: 13.9 on average over graphs, which differ by a few entries
    assert found["entries, LOREN, 64 switches"].ours == pytest.approx(13.9, abs=1.5)
    assert found["entries, LOREN, 1048576 switches"].ours is None
    assert found["entries, Cowen, 4096 switches"].paper == 257
    bits = values(run_reproduction(part(REPRODUCTIONS["loren.fig4.6"], points), tmp_path, Options()))
    # two numbers of 6 bits an entry
    assert bits["LOREN, 64 switches"].ours == 12 * found["entries, LOREN, 64 switches"].ours
    assert bits["LOREN, 1048576 switches"].ours is None


def test_table_of_shortest_paths(tmp_path):
    outcome = run_reproduction(REPRODUCTIONS["loren.fig3.1"], tmp_path, Options())
    bits = pd.read_csv(outcome.folder / "data.csv").set_index("nodes")["bits"]
    assert bits[1024] == 10 * 1024
    assert bits[1 << 20] == 20 << 20
    assert values(outcome)["largest of these networks within it"].ours == 4096
    assert loren_entries.shortest_bits(48_000) == 16 * 48_000


def test_path_lengths(tmp_path):
    points = [{"side": 8, "scheme": "shortest", "t_max": 63, "graph": 0}]
    points += [{"side": 8, "scheme": s, "t_max": t, "graph": 0} for t in (5, 18, 32, 63) for s in COMPARED]
    outcome = run_reproduction(part(REPRODUCTIONS["loren.fig4.3"], points), tmp_path, Options())
    data = pd.read_csv(outcome.folder / "data.csv").set_index(["t_max", "scheme"])
    for scheme in COMPARED:
        # degree 4 and other switches one place away: 5 entries are never enough; with all 63 every path is shortest
        assert np.isnan(data["mean"][5, scheme])
        assert data["mean"][63, scheme] == data["mean"][63, "shortest"]
        assert data["longest"][63, scheme] == data["longest"][63, "shortest"]
        assert data["mean"][18, scheme] > data["mean"][63, "shortest"]
    changes = [100 * (data["mean"][t, "loren"] / data["mean"][t, "thorup_zwick"] - 1) for t in (18, 32)]
    change = values(outcome)["mean path of LOREN over Thorup–Zwick, least to 32 entries"]
    assert change.ours == pytest.approx(min(changes))


def test_quality_under_imbalanced_traffic():
    for scheme in COMPARED:
        rows = [
            loren_quality._measure(
                {"side": 8, "t_max": 32, "scheme": scheme, "traffic": traffic, "value": value, "graph": 0,
                 "patterns": 50},
                Options(),
            )[0]
            for traffic, value in loren_quality._TRAFFIC
        ]  # fmt: skip
        by_traffic = {(row["traffic"], row["value"]): row for row in rows}
        # the more of a hot spot the less bandwidth; the nearer the destinations the more of both
        hot = [by_traffic["hotspot", beta]["bandwidth"] for beta in (0.1, 0.3, 0.7)]
        assert 1 > hot[0] > hot[1] > hot[2] > 0
        for measure in ("bandwidth", "efficiency"):
            near = [by_traffic["local", gamma][measure] for gamma in (1.0, 2.0, 3.0)]
            assert 0 < near[0] < near[1] < near[2] < 1


def test_gains_in_quality_are_of_the_named_cases():
    rows = [
        {"side": side, "t_max": t_max, "scheme": scheme, "traffic": traffic, "value": value, "graph": 0,
         "bandwidth": 0.5, "efficiency": 0.5}
        for side, limits in ((8, (18, 32)), (32, (116, 502)))
        for t_max in limits
        for scheme in COMPARED
        for traffic, value in loren_quality._TRAFFIC
    ]  # fmt: skip
    for row in rows:
        if (row["side"], row["t_max"], row["scheme"], row["value"]) == (8, 32, "loren", 3.0):
            row["bandwidth"] = 0.6
    found = {c.quantity: c for c in loren_quality._compare("bandwidth", pd.DataFrame(rows), Options())}
    gain = found["64 switches: most that LOREN gains"]
    assert gain.ours == pytest.approx(20)
    assert gain.paper == 10.2
    assert "local(3), 32 entries" in gain.assumption
    assert found["1024 switches: most that LOREN gains"].ours == pytest.approx(0)


def test_loads_of_tables():
    points = [
        {"side": 8, "t_max": t_max, "scheme": scheme, "graph": graph}
        for t_max in (18, 32)
        for scheme in LABELS
        for graph in range(2)
    ]
    rows = [row for point in points for row in loren_load._load(point, Options())]
    for row in rows:
        # paths per channel and hops are the same sum: 64·63 pairs, 64·4 channels
        assert row["mean"] == pytest.approx(row["hops"] * 64 * 63 / 256, rel=1e-12)
    for graph in range(2):
        least = min(row["hops"] for row in rows if row["graph"] == graph and row["scheme"] == "shortest")
        others = [row["hops"] for row in rows if row["graph"] == graph and row["scheme"] != "shortest"]
        assert len(others) == 6
        assert min(others) >= least


def test_load_of_switches():
    tables = case_tables(Case(8, 18, "loren", 3))
    load = loren_load.switch_load(tables.next_hop, tables.channels)
    # 1000 patterns of 64 paths with hops + 1 switches each
    mean_hops = tables.hops[~np.eye(64, dtype=bool)].mean()
    assert load.sum() == pytest.approx(1000 * 64 * (1 + mean_hops), rel=1e-12)
    assert load.min() >= 2000  # every switch begins and ends one path per pattern
    found = loren_load.landmarks_of_number(tables.shortest, 5, 14, tables.next_hop, 1)
    assert len(found.landmarks) == 5
    assert set(found.landmark_of.tolist()) == set(found.landmarks.tolist())


def test_layers_of_small_graphs():
    rows = [
        row
        for degree in acro._DEGREES[64]
        for row in acro._count({"nodes": 64, "degree": degree, "graph": 0}, Options())
    ]
    assert len(rows) == 15
    for degree in acro._DEGREES[64]:
        layers = {row["method"]: row["layers"] for row in rows if row["degree"] == degree}
        assert layers["acro"] <= layers["lash"]
        assert layers["lash_tor"] <= layers["lash"]


# --- figures 6.1 to 6.4


def test_flows_are_those_of_the_paths():
    tables = case_tables(Case(8, 18, "cowen", 3))
    uniform = layer_flows(tables, "uniform")
    assert uniform.shape == (tables.layers.count, 256)
    np.testing.assert_allclose(64 * uniform.sum(axis=0), all_to_all_load(tables.next_channel, tables.channels))
    expected = np.zeros_like(uniform)
    for source in range(64):
        goal = source % 8 * 8 + source // 8  # transpose
        at, layers = source, tables.layers.of_path(source, goal) if source != goal else []
        for layer in layers:
            channel = tables.next_channel[at, goal]
            expected[layer, channel] += 1
            at = tables.channels.target[channel]
        assert at == goal
    np.testing.assert_array_equal(layer_flows(tables, "transpose"), expected)


def test_bounds_of_the_load():
    flows = np.array([[0.5, 0.25], [0.75, 0.0]])
    # three virtual channels: one for the lower layer, two for the upper; 3 cycles a packet in each
    assert load_bounds(flows, 3) == (1 / 1.25, 1 / (3 * 0.5))
    assert load_bounds(flows, 2) == (1 / 1.25, 1 / (3 * 0.75))


def test_throughput_is_below_the_bounds(monkeypatch):
    monkeypatch.setattr(loren_simulated, "_WARMUP_CYCLES", 1000)
    monkeypatch.setattr(loren_simulated, "_CYCLES", 3000)
    point = {"side": 8, "t_max": 18, "graph": 0, "pattern": "shuffle"}
    rows = {s: loren_simulated._measure({**point, "scheme": s}, Options()) for s in ("loren", "cowen")}
    for scheme, runs in rows.items():
        first, over = runs[0], runs[-1]
        assert first["layers"] <= first["vcs"] == VCS[8]
        bound = min(first["channel_bound"], first["vc_bound"])
        assert 0.5 * bound < first["throughput"] <= 1.03 * bound
        assert not first["saturated"]
        assert first["accepted"] == pytest.approx(first["load"], rel=0.15)
        assert over["saturated"]
        # router.md: 5 cycles a hop between routers; nothing on the way there is faster than an empty network
        tables = case_tables(Case(8, 18, scheme, first["network"]))
        to = (np.arange(64) << 1 | np.arange(64) >> 5) & 63
        assert first["latency"] > 5 * np.where(to == np.arange(64), 0, tables.hops[np.arange(64), to]).mean()
    assert rows["loren"][0]["network"] == rows["cowen"][0]["network"]


def test_bounds_of_many_networks(tmp_path):
    points = [
        {"side": 8, "t_max": t, "scheme": scheme, "graph": graph}
        for t in (18, 32) for scheme in COMPARED for graph in range(2)
    ]  # fmt: skip
    outcome = run_reproduction(part(REPRODUCTIONS["loren.fig6-bounds"], points), tmp_path, Options())
    data = pd.read_csv(outcome.folder / "data.csv").set_index(["t_max", "scheme", "graph", "pattern"])
    assert len(data) == 12 * 4
    # a permutation leaves an integer number of paths on every virtual channel, each good for a third of a flit a cycle
    paths = 1 / (3 * data["bound"].drop("uniform", level="pattern"))
    np.testing.assert_allclose(paths, paths.round(), atol=1e-9)
    bound = data["bound"]
    gains = [100 * (bound[18, "loren", g, "uniform"] / bound[18, "cowen", g, "uniform"] - 1) for g in (0, 1)]
    found = values(outcome)["figure 6.1, 64 switches, 18 entries: LOREN over Cowen"]
    assert found.ours == pytest.approx(np.mean(gains))


def test_networks_are_drawn_until_the_layers_fit():
    first, drawn = fitting_graph(8, 18, 1, 0)
    second, more = fitting_graph(8, 18, 1, 1)
    assert second > first >= 1000
    assert more > drawn >= 1
    for graph in range(1000, second + 1):
        most = max(case_tables(Case(8, 18, scheme, graph)).layers.count for scheme in COMPARED)
        assert (most <= 2) == (graph in (first, second))


def test_interval_of_a_mean():
    mean, half = interval(np.array([1.0, 2.0, 3.0]))
    assert mean == 2
    assert half == pytest.approx(4.30265 / np.sqrt(3), rel=1e-5)  # Student's t, two degrees of freedom, 97.5 %
    assert np.isnan(interval(np.array([1.0]))[1])


def test_gain_is_per_graph():
    rows = [
        {"side": 8, "t_max": t, "scheme": scheme, "graph": graph, "throughput": through, "latency": 30.0,
         "accepted": accepted, "drawn": graph + 1, "layers": 2, "vcs": 2, "channel_bound": 0.3, "vc_bound": 0.1}
        for t in (18, 32)
        for scheme, pair in {"loren": (0.11, 0.24), "cowen": (0.1, 0.2), "thorup_zwick": (0.1, 0.2),
                             "shortest": (0.1, 0.2)}.items()
        for graph, through in enumerate(pair)
        for accepted in (through, through**2)  # two runs each: the first and the one beyond saturation
    ]  # fmt: skip
    found = {c.quantity: c for c in loren_simulated._compare("6.1", pd.DataFrame(rows), Options())}
    gain = found["64 switches, 32 entries: throughput of LOREN over Cowen"]
    assert gain.ours == pytest.approx((10 + 20) / 2)
    assert gain.paper == -6.6
    over = found["64 switches, 32 entries: accepted beyond saturation, LOREN over Cowen"]
    assert over.ours == pytest.approx((21 + 44) / 2)
    missing = found["1024 switches, 116 entries: throughput of LOREN over Cowen"]
    assert (missing.paper, missing.ours) == (67.9, None)


def test_landmarks_decide_the_comparison(tmp_path, monkeypatch):
    monkeypatch.setattr(loren_simulated, "_WARMUP_CYCLES", 1000)
    monkeypatch.setattr(loren_simulated, "_CYCLES", 2000)
    reproduction = REPRODUCTIONS["loren.fig6.1-landmarks"]
    points = [p for p in reproduction.points(Options()) if p["ball"] in (0, 12)]
    data = pd.DataFrame([row for point in points for row in reproduction.measure(point, Options())])
    by_case = data.drop_duplicates(["scheme", "ball", "one_vc"]).set_index(["scheme", "ball", "one_vc"])
    # both have 2 layers here, so "one VC a layer" changes nothing
    for scheme in ("loren", "cowen"):
        assert by_case["throughput"][scheme, 0, True] == by_case["throughput"][scheme, 0, False]
    few, most = by_case.loc[("cowen", 12, True)], by_case.loc[("cowen", 0, True)]
    assert few["landmarks"] < most["landmarks"]
    assert few["deviation"] > 0
    assert few["landmarks"] < few["entries"] < 63
    assert len(reproduction.compare(data, Options())) == 3
    assert reproduction.draw(data, Options()).axes


def test_figures_of_paths_can_be_drawn_with_gaps():
    rows = [
        {"side": 8, "scheme": scheme, "t_max": t, "graph": 0, "mean": None if t == 10 and scheme == "loren" else 4.0,
         "longest": None if t == 10 and scheme == "loren" else 8}
        for scheme in LABELS
        for t in (10, 18, 32, 63)
    ]  # fmt: skip
    data = pd.DataFrame(rows)
    assert list(loren_paths._means(data, "mean")["loren"].dropna().index) == [18, 32, 63]
    assert len(loren_paths._draw(8, data, Options()).axes) == 2
