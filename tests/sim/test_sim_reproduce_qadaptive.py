"""`hopforge reproduce qadaptive.*`: points, short measurements, comparison and drawing."""

import pandas as pd
import pytest

from hopforge.sim.reproduce import REPRODUCTIONS, Options

NAMES = [name for name in REPRODUCTIONS if name.startswith("qadaptive.")]


def test_full_measures_every_value_of_the_paper() -> None:
    assert NAMES == ["qadaptive.fig5", "qadaptive.fig6", "qadaptive.fig7", "qadaptive.bounds"]
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
