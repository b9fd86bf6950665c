"""`hopforge reproduce qadaptive.*`: points, short measurements, comparison and drawing."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import hopforge.sim.reproduce.qadaptive_cost as cost
from hopforge.gen.synth_power import energy_of
from hopforge.sim.reproduce import REPRODUCTIONS, Options

NAMES = [name for name in REPRODUCTIONS if name.startswith("qadaptive.")]


def test_full_measures_every_value_of_the_paper() -> None:
    assert NAMES == ["qadaptive.fig5", "qadaptive.fig6", "qadaptive.fig7", "qadaptive.bounds", "qadaptive.cost"]
    full = REPRODUCTIONS["qadaptive.fig5"].points(Options(full=True, seed=7))
    assert {point["hosts"] for point in full} == {1056}
    assert {point["seed"] for point in full} == {7, 8}
    assert len(full) == 24
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
        assert [one.ours for one in compared if "over" in one.quantity] == [None] * 6  # values of 1056 hosts only
        latency = {one.quantity: one.ours for one in compared}
        assert latency["mean latency, MIN"] == pytest.approx(550, abs=150)
    else:
        assert data.groupby("pattern")["accepted"].last()["UR"] == pytest.approx(0.8, abs=0.05)


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
