"""`hopforge reproduce qadaptive.*`: points, short measurements, comparison and drawing."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import hopforge.sim.reproduce.dragonflies.qadaptive_cost as cost
from hopforge.gen.synth.power import energy_of
from hopforge.model.config.lookup import AddressConfig
from hopforge.model.config.topology import DragonflyConfig
from hopforge.model.routing import RoutingError
from hopforge.model.topology import build
from hopforge.sim.reproduce import REPRODUCTIONS, Options
from hopforge.sim.reproduce.dragonflies.qadaptive_beyond import draw_failures
from hopforge.sim.reproduce.dragonflies.qadaptive_groups import group_config
from hopforge.sim.reproduce.dragonflies.qadaptive_outage import settled_us

NAMES = [name for name in REPRODUCTIONS if name.startswith("qadaptive.")]


def test_full_measures_every_value_of_the_paper() -> None:
    figures = [f"qadaptive.fig{k}" for k in (5, 6, 7)]
    beyond = ["qadaptive.failures", "qadaptive.bursts", "qadaptive.outage"]
    loads = ["qadaptive.fig8", "qadaptive.fig9", "qadaptive.patterns", "qadaptive.maxq", "qadaptive.groups"]
    assert [*figures, "qadaptive.bounds", "qadaptive.cost", *loads, *beyond] == NAMES
    full = REPRODUCTIONS["qadaptive.fig5"].points(Options(full=True, seed=7))
    assert {point["hosts"] for point in full} == {1056}
    assert {point["seed"] for point in full} == {7, 8, 9}
    assert len(full) == 36
    assert {point["hosts"] for point in REPRODUCTIONS["qadaptive.fig9"].points(Options(full=True))} == {2550}
    quick = REPRODUCTIONS["qadaptive.fig5"].points(Options())
    assert 0 < len(quick) < 5


@pytest.mark.parametrize("name", ["qadaptive.fig5", "qadaptive.fig6", "qadaptive.fig7"])
def test_short_runs_are_compared_and_drawn(name: str) -> None:
    reproduction, options = REPRODUCTIONS[name], Options()
    short = {"hosts": 72, "warmup_us": 10.0, "measure_us": 16.0}
    rows = []
    for point in reproduction.points(options):
        rows += reproduction.measure({**point, **{key: short[key] for key in short if key in point}}, options)
    data = pd.DataFrame(rows)
    compared = reproduction.compare(data, options)
    reproduction.draw(data, options)
    if name == "qadaptive.fig5":
        ours = {one.quantity: one.ours for one in compared}
        assert ours["UR MIN, throughput"] == pytest.approx(95, abs=6)  # 72 hosts: less contention than 1056
        assert ours["UR PAR, throughput"] is None
    elif name == "qadaptive.fig6":
        assert [one.ours for one in compared if "over" in one.quantity] == [None] * 14  # values of 1056 hosts only
        latency = {one.quantity: one.ours for one in compared}
        assert latency["mean latency at UR 0.8, MIN"] == pytest.approx(550, abs=150)
    else:
        assert data.groupby("pattern")["accepted"].last()["UR"] == pytest.approx(0.8, abs=0.05)


def test_values_of_maxq_are_compared_and_drawn() -> None:
    reproduction, options = REPRODUCTIONS["qadaptive.maxq"], Options()
    assert {point["pattern"] for point in reproduction.points(Options(full=True))} == {"UR", "ADV+1", "ADV+4"}
    rows = []
    for point in reproduction.points(options):
        if point["seed"] == 1 and point["max_q"] in (1, 12):
            rows += reproduction.measure({**point, "warmup_us": 10.0, "measure_us": 16.0}, options)
    data = pd.DataFrame(rows)
    assert (data["hops"] <= data["max_q"] + 3).all()
    spread = data.groupby("max_q")["hops"].mean()
    assert spread[1] < spread[12]
    every = pd.concat([data[data["max_q"] == 1].assign(max_q=most) for most in (1, 2, 3, 5, 8, 12)])
    every.loc[every["pattern"] == "ADV+2", "accepted"] = 0.1
    compared = {one.quantity: one.ours for one in reproduction.compare(every, options)}
    assert compared["values of maxQ at which ADV+2 accepts less than ADV+1"] == 100
    assert compared["throughput lost from maxQ 1 to 12, UR"] == 0
    reproduction.draw(every, options)


def test_costs_are_those_of_the_tables() -> None:
    """Sizes of the paper: 128 × 11 instead of 264 × 11, 250 × 14 instead of 510 × 14."""
    found = {hosts: cost.table_sizes(hosts, 16) for hosts in (1056, 2550)}
    assert [found[1056][key] for key in ("rows_one", "rows_two", "columns")] == [264, 128, 11]
    assert [found[2550][key] for key in ("rows_one", "rows_two", "columns")] == [510, 250, 14]
    assert (found[1056]["bits_two"], found[1056]["note_two"]) == (128 * 11 * 16, 8 + 16)
    # minimal ways under adversarial traffic: local, global, local with (a - 1)/a each; notes for the first two
    assert cost.notes_per_packet(1056, "ADV+1", 1 + 2 * 7 / 8) == pytest.approx(1 + 7 / 8)
    # all hosts in their own group: no note for the one link
    assert cost.notes_per_packet(72, "UR", 6 / 71 + 64 / 71 * (1 + 2 * 3 / 4)) == pytest.approx(64 / 71 * 1.75)


def test_tables_of_all_widths_begin_with_the_times_without_load() -> None:
    found = {bits: cost.table_params(1056, bits) for bits in cost.WIDTHS}
    assert [(found[bits].near, found[bits].far) for bits in (16, 12, 8)] == [(4800, 5280), (300, 330), (19, 21)]
    assert found[16].table_bits == 128 * 11 * 16


def test_costs_are_compared_and_drawn() -> None:
    reproduction, options = REPRODUCTIONS["qadaptive.cost"], Options()
    points = list(reproduction.points(options))
    assert {point["what"] for point in points} == {"size", "notes"}
    assert {p["what"] for p in reproduction.points(Options(liberty=Path("x.lib")))} == {"size", "notes", "gates"}

    def measured(point: Any) -> list[Any]:
        if point["what"] == "notes":
            point = point | {"warmup_us": 10.0, "measure_us": 16.0}
        return list(reproduction.measure(point, options))

    rows = [row for point in points for row in measured(point)]
    rows.append(
        {"what": "gates", "hosts": 1056, "value_bits": 16, "area_um2": 9000.0, "period_ns": 1.3, "flops": 360,
         "energy_pj": None, "memory_um2": 2e4, "memory_pj": 15.0}
    )  # fmt: skip
    data = pd.DataFrame(rows)
    ours = {one.quantity: one for one in reproduction.compare(data, options)}
    reproduction.draw(data, options)
    assert ours["saved by two levels, 1056 hosts"].ours == pytest.approx(51.5, abs=0.1)
    assert ours["saved by two levels, 1056 hosts"].paper == 50
    assert 0.9 < (ours["notes per packet, UR 0.8, 72 hosts"].ours or 0) < 3
    assert ours["logic in a cycle, 1056 hosts, 16 bits"].ours is None


def test_power_report() -> None:
    report = (
        "Combinational  5.21e-02 3.19e-02 1.83e-04 8.42e-02 78.5%\nTotal  7.37e-02 3.33e-02 2.25e-04 1.07e-01 100%\n"
    )
    assert energy_of(report, 2.0) == pytest.approx(214)
    assert energy_of("Error: no such file", 2.0) is None


def test_steps_of_the_load_are_followed() -> None:
    reproduction, options = REPRODUCTIONS["qadaptive.fig8"], Options()
    rows = []
    for point in reproduction.points(options):
        rows += reproduction.measure({**point, "measure_us": 90.0}, options)
    data = pd.DataFrame(rows)
    reproduction.draw(data, options)
    uniform = data[data["pattern"] == "UR"].reset_index(drop=True)
    assert uniform["load"].tolist() == [0.4] * 30 + [0.8] * 30 + [0.4] * 30
    parts = [float(uniform["accepted"][30 * k + 15 : 30 * k + 30].mean()) for k in range(3)]
    assert parts == pytest.approx([0.4, 0.8, 0.4], abs=0.05)
    assert [one.claim for one in reproduction.compare(data, options)] == [
        "",
        *["less than from the empty network"] * 2,
    ] * 2


def test_orderings_of_the_paper_are_judged() -> None:
    reproduction, options = REPRODUCTIONS["qadaptive.fig9"], Options(full=True)
    points = [point for point in reproduction.points(options) if point["seed"] == 1]
    rank = ["MIN", "Q-adaptive", "UGALn", "UGALg", "PAR", "VALn"]
    adversarial = ["Q-adaptive", "UGALg", "PAR", "UGALn", "VALn"]

    def latency(pattern: str, algorithm: str) -> float:
        if pattern == "ADV+1":
            return 100.0 * (1 + adversarial.index(algorithm))
        if pattern in ("stencil", "many_to_many"):
            return {"Q-adaptive": 100.0, "UGALg": 200.0}.get(algorithm, 300.0)
        return 100.0 * (1 + rank.index(algorithm))

    rows = [{**p, "latency": latency(str(p["pattern"]), str(p["algorithm"]))} for p in points]
    data = pd.DataFrame(rows).assign(latency_p95=1.0, latency_p99=2.0)
    compared = {one.quantity: one for one in reproduction.compare(data, options)}
    assert [one.ours for name, one in compared.items() if name.startswith("orderings")] == [0] * 5
    assert compared["mean latency, UR, PAR over Q-adaptive"].ours == 2.5
    data.loc[(data["pattern"] == "UR") & (data["algorithm"] == "PAR"), "latency"] = 350.0
    wrong = {one.quantity: one for one in reproduction.compare(data, options)}["orderings that differ, UR"]
    assert wrong.ours == 1
    assert "against the paper: UGALg ≥ PAR" in wrong.assumption
    reproduction.draw(data, options)


@pytest.mark.parametrize("name", ["qadaptive.fig9", "qadaptive.patterns"])
def test_patterns_of_programs_run_on_the_small_dragonfly(name: str) -> None:
    reproduction, options = REPRODUCTIONS[name], Options()
    points = [p for p in reproduction.points(options) if p["pattern"] not in ("UR", "ADV+1")]
    assert len(points) == {"qadaptive.fig9": 3, "qadaptive.patterns": 8}[name] * 5
    rows = [
        row
        for point in points
        if point["algorithm"] == "Q-adaptive"
        for row in reproduction.measure({**point, "warmup_us": 5.0, "measure_us": 8.0}, options)
    ]
    for row in rows:
        assert 60 < float(row["latency"] or 0) < 10_000  # two links to hosts: 60 ns
        assert float(row["accepted"] or 0) > 0.3
    if name == "qadaptive.patterns":  # the other algorithms as Q-adaptive, only slower
        names = sorted({str(point["algorithm"]) for point in points})
        data = pd.DataFrame(
            [{**row, "algorithm": a, "latency": float(row["latency"] or 0) + k}
             for row in rows for k, a in enumerate(names)]
        )
        judged = [one.ours for one in reproduction.compare(data, options) if one.quantity.startswith("orderings")]
        assert len(judged) == 8 and min(float(x or 0) for x in judged) > 0  # MIN, PAR, Q-adaptive, UGALg, UGALn
        reproduction.draw(data, options)


def test_the_network_settles_after_links_have_failed() -> None:
    reproduction, options = REPRODUCTIONS["qadaptive.outage"], Options()
    rows = []
    for point in reproduction.points(options):
        if point["seed"] == 1 and point["pattern"] == "UR":
            rows += reproduction.measure({**point, "measure_us": 60.0}, options)
    data = pd.DataFrame(rows)
    reproduction.draw(data, options)
    assert len(data) == 4 * 120 and set(data["links"]) == {4}
    assert (data["lost"] > 0).all() and (data["kept"] > 0).all()
    ours = {one.quantity: one.ours for one in reproduction.compare(data, options)}
    assert len(ours) == 8
    # fewer links: longer queues, but for Q-adaptive less than for UGAL, which sees the first hop only
    after = {name: float(ours[f"latency after over before, UR, {name}"] or 0) for name in ("UGALg", "Q-adaptive")}
    assert 1 < after["Q-adaptive"] < after["UGALg"]


def test_settled_is_where_the_latency_stays() -> None:
    times, latency = np.arange(1.0, 121.0), np.full(120, 100.0)
    assert settled_us(times, latency) == 1
    latency[60:66] = 500
    latency[63] = 100  # one bin alone
    assert settled_us(times, latency) == 7
    assert settled_us(times, times) is None


@pytest.mark.parametrize(("name", "key", "value"), [
    ("qadaptive.failures", "share", 0.12),
    ("qadaptive.bursts", "burst_packets", 10.0),
])  # fmt: skip
def test_beyond_the_paper(name: str, key: str, value: float) -> None:
    reproduction, options = REPRODUCTIONS[name], Options()
    points = [point for point in reproduction.points(options) if point["seed"] == 1 and point[key] == value]
    rows = [reproduction.measure({**point, "warmup_us": 10.0, "measure_us": 16.0}, options)[0] for point in points]
    data = pd.DataFrame(rows)
    assert len(data) == 4
    assert data["accepted"].to_numpy() == pytest.approx(data["load"].to_numpy(), rel=0.1)
    compared = reproduction.compare(data, options)
    assert len(compared) == 4
    reproduction.draw(data, options)
    if name == "qadaptive.failures":
        assert data["links"].tolist() == [4] * 4  # of 36 between nine groups


def test_drawn_failures_leave_every_two_groups_a_way() -> None:
    topology = build(DragonflyConfig(kind="dragonfly", p=1, a=2, h=1), AddressConfig(chunk_bits=4))  # three groups
    first = draw_failures(topology, 0.34, 1)
    assert len(first) == 1
    assert first == draw_failures(topology, 0.34, 1)
    assert first[0][0] // 2 != first[0][1] // 2
    with pytest.raises((RoutingError, ValueError)):
        draw_failures(topology, 1.0, 1)
    assert draw_failures(topology, 0.0, 1) == []


def test_groups_of_other_shapes_are_compared_and_drawn() -> None:
    reproduction, options = REPRODUCTIONS["qadaptive.groups"], Options()
    points = reproduction.points(options)
    assert len(points) == len({tuple(point.items()) for point in points}) == 4 * 4 * 4 * 3
    hosts = {}
    for network in ("Dragonfly", "Megafly", "Dragonfly+", "Cascade"):
        for full in (False, True):
            config = group_config({**points[0], "network": network, "large": full})
            hosts[network, full] = build(config.topology, config.address).hosts
    assert all(72 <= hosts[network, full] <= 200 or full for network, full in hosts)
    assert [hosts[network, True] for network, full in hosts if full] == [1056, 1056, 1088, 1056]
    rows = []
    for point in points:
        wanted = (point["method"], point["seed"], point["pattern"], point["load"]) == ("Q-adaptive", 1, "UR", 0.8)
        if wanted and point["network"] in ("Megafly", "Cascade"):
            rows += reproduction.measure({**point, "warmup_us": 5.0, "measure_us": 8.0}, options)
    assert len(rows) == 2
    assert all(2.0 < row["hops"] < 4.0 and row["accepted"] == pytest.approx(0.8, abs=0.08) for row in rows)
    every = [
        {**rows[0], **{key: point[key] for key in ("network", "method", "pattern", "load", "seed")}} for point in points
    ]
    data = pd.DataFrame(every)
    data.loc[data["network"] == "Cascade", "accepted"] = 0.25
    compared = {one.quantity: one for one in reproduction.compare(data, options)}
    assert len(compared) == 2 * 4 * 4 * 2
    assert compared["ADV+1, Cascade, UGAL: throughput"].ours == 25
    assert {one.paper for one in compared.values()} == {None}  # the paper has no figure of them
    assert "other Dragonfly variants" in compared["UR, Megafly, Q-adaptive: mean latency"].claim
    assert compared["UR, Dragonfly, Q-adaptive: mean latency"].claim == ""
    reproduction.draw(data, options)
