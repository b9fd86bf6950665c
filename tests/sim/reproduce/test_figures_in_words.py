"""Figures whose papers give formulas, grades or words: `hopforge reproduce` measures what they are about."""

import math

import pandas as pd
import pytest

from hopforge.sim.reproduce import REPRODUCTIONS, Options, select
from hopforge.sim.reproduce.irregular import acro_methods, loren_judged
from hopforge.sim.reproduce.irregular.loren_degree import balanced_degree, mean_by_degree, mean_by_length, stated_degree
from hopforge.sim.reproduce.lookup.conflicts_256 import _config as npb_config
from hopforge.sim.reproduce.lookup.faulty_ring import Ring


def test_mean_hops_by_length_are_those_of_counting_all_pairs() -> None:
    side, length = 5, 3
    places = [(x, y) for x in range(side) for y in range(side)]
    hops = [math.ceil((abs(a - c) + abs(b - d)) / length) for a, b in places for c, d in places if (a, b) != (c, d)]
    assert mean_by_length(side, length) == pytest.approx(sum(hops) / len(hops))
    assert mean_by_length(7, 12) == 1  # the farthest corner is 12 places away


def test_degree_that_suffices() -> None:
    assert stated_degree(10**6, 1000) == pytest.approx(1e6)
    assert stated_degree(256, 4) == pytest.approx(4)  # exp(4 · ln 256 / 16) = 256 ** (1/4)
    # 10 nodes of degree 3: 3 at one hop, 6 at two
    assert mean_by_degree(10, 3) == pytest.approx(15 / 9)
    degree = balanced_degree(16, 4)
    assert mean_by_degree(256, degree) <= mean_by_length(16, 4) < mean_by_degree(256, degree - 1)


def test_drawn_networks_are_no_better_than_both_bounds() -> None:
    figure = REPRODUCTIONS["loren.fig2.4"]
    points = [point for point in figure.points(Options()) if point["length"] in (8, 50, 1000)]
    data = pd.DataFrame([row for point in points for row in figure.measure(point, Options())])
    drawn = data[data["kind"] == "drawn"].iloc[0]
    assert drawn["degree"] == 16
    assert drawn["drawn_hops"] > max(drawn["mean_hops"], drawn["degree_hops"]) > 1
    assert drawn["drawn_hops"] < 1.5 * drawn["mean_hops"]


def test_entries_of_a_faulty_ring() -> None:
    """Ring of 5, link 1-2 down: 0 → 2 and 3 → 1 go to the fault and back; who comes through 0 or 3 does so, too."""
    ring = Ring(5)
    assert len(ring.entries) == 15  # own host, +, - at each switch
    assert ring.delivered(ring.entries) == 20 - 6  # 1→2, 1→3, 0→2 and 2→1, 2→0, 3→1 need the link
    turned, changed = ring.turned()
    assert changed == 2
    # 1 → 2: back to 0, whose + leads to 1 again; 1 → 3: by 0, for which 3 lies on the other side
    assert ring.delivered(turned) == 20 - 4
    assert ring.best() == (16, 2)
    # the line 2-3-4-0-1: pairs whose first link is another one than round the ring
    assert ring.by_address() == (5, 6)


def test_agreement_counts_pairs_of_different_grades() -> None:
    assert loren_judged.agreement("+o-", [1, 2, 3]) == (3, 3)
    assert loren_judged.agreement("++-", [2, 1, 3]) == (2, 2)
    assert loren_judged.agreement("+-", [1, 1]) == (0, 1)


@pytest.mark.study
def test_networks_that_the_thesis_grades() -> None:
    figure, options = REPRODUCTIONS["loren.table7.1"], Options()
    assert select(["loren.fig2.5"], REPRODUCTIONS) == [figure]
    points = {str(point["network"]): point for point in figure.points(options)}
    (torus,) = figure.measure(points["torus, DOR"], options)
    assert torus["hops"] == pytest.approx(8 * 256 / 255)  # 4 in each dimension, without the pairs of a host and itself
    (loren,) = figure.measure(points["LCR, LOREN and ACRO"], options)
    (shortest,) = figure.measure(points["LCR, MIN"], options)
    assert loren["cable"] == shortest["cable"]
    assert loren["entries"] < shortest["entries"]
    assert loren["vcs"] < shortest["vcs"]
    assert loren["hops"] > shortest["hops"]
    data = pd.DataFrame([{**torus, "network": name} for name in points])
    assert [one.ours for one in figure.compare(data, options) if one.unit == "%"] == [0, 0, 0, 0]  # all alike
    figure.draw(data, options)


@pytest.mark.study
def test_methods_of_layers_beside_each_other() -> None:
    figure, options = REPRODUCTIONS["acro.fig3.4"], Options()
    points = [point for point in figure.points(options) if point["nodes"] == 64 and point["graph"] == 0]
    data = pd.DataFrame([row for point in points for row in figure.measure(point, options)])
    layers = data.set_index("method")["layers"]
    assert set(layers.index) == set(acro_methods._LABELS)
    assert layers["acro"] < layers["lash"]
    assert layers["lash_tor"] < layers["lash"]
    compared = figure.compare(data, options)
    assert [one.quantity for one in compared][-1] == "time of LASH version 1 over version 2, 64 switches"
    figure.draw(data, options)


def test_nine_benchmarks_on_256_ranks() -> None:
    figure, full = REPRODUCTIONS["lookup.fig4.6-256"], Options(full=True)
    points = figure.points(full)
    assert len({point["program"] for point in points}) == 9
    assert {point["ranks"] for point in points if point["program"] != "dt"} == {256}
    quick = {str(point["program"]): point for point in figure.points(Options())}
    whole = {str(point["program"]): point for point in points}
    assert npb_config(quick["lu"], 4, full).workload.iterations == 2  # type: ignore[union-attr]
    assert npb_config(whole["lu"], 4, full).workload.iterations is None  # type: ignore[union-attr]
    small = [point for point in figure.points(Options()) if point["program"] in ("dt", "ep")]
    data = pd.DataFrame([row for point in small for row in figure.measure(point, Options())])
    assert (data["hits"] + data["compulsory"] + data["capacity"] + data["conflict"] == data["lookups"]).all()
    # 256 hosts: 256 destinations never fill 2048 entries
    assert (data["capacity"] == 0).all()
    dt = data[(data["program"] == "dt") & (data["network"] == "4x4x4")]
    assert list(dt["ways"]) == [1, 2, 4, 8]
    assert dt["compulsory"].nunique() == 1
    nine = pd.concat([
        data[data["program"] == "dt"].assign(program=str(point["program"])) for point in points[:9]
    ])  # fmt: skip
    compared = {one.quantity: one for one in figure.compare(nine, Options())}
    assert compared["hit rate with compulsory misses, DT, 4-way, 4x4x4"].paper == 95.6
    assert compared["conflict misses, LU, 2-way, 8x8x4"].ours == 0
    figure.draw(nine, Options())
