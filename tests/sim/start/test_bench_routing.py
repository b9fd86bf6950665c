"""`hopforge bench routing`: what is compared, and the files that it refuses."""

from pathlib import Path
from typing import Any

import pytest

from hopforge.model.errors import UserError
from hopforge.sim.start import bench_routing
from hopforge.sim.start.bench_routing import measure_routing

CONFIGS = Path(__file__).parents[3] / "configs"


def test_ratio_is_the_median_of_pairs_that_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_routing, "CYCLES", 400)
    seconds = {"guarded": [1.2, 1.1, 1.8], "bare": [1.0, 1.0, 0.9]}
    pairs: list[tuple[Any, Any]] = []
    order: list[str] = []

    def pair(*arguments: Any, **named: Any) -> tuple[Any, Any]:
        pairs.append(made(*arguments, **named))
        return pairs[-1]

    def timed(run: Any) -> float:
        name = "guarded" if run is pairs[-1][0] else "bare"
        order.append(name)
        real(run)
        return seconds[name][(len(order) - 1) % 6 // 2]

    made, real = bench_routing._pair, bench_routing._timed
    monkeypatch.setattr(bench_routing, "_pair", pair)
    monkeypatch.setattr(bench_routing, "_timed", timed)
    rows = list(measure_routing(CONFIGS / "west_first.py", 3))
    assert [row["case"] for row in rows] == [
        "west_first.py, after the proof", "west_first.py, routing.check: false",
    ]  # fmt: skip
    assert [row["guard_percent"] for row in rows] == [pytest.approx(20), pytest.approx(20)]
    assert order == ["guarded", "bare", "bare", "guarded", "guarded", "bare"] * 2
    for guarded, bare in pairs:
        assert guarded.plan.unguarded is not None
        assert bare.plan.unguarded is None
        assert (guarded.state["hops_sum"], guarded.state["cycle"]) == (bare.state["hops_sum"], bare.state["cycle"])
        assert guarded.state["hops_sum"] > 1000


def test_what_cannot_be_compared_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"takes a relation that does not learn$"):
        list(measure_routing(CONFIGS / "learned_west_first.py"))
    with pytest.raises(UserError, match=r"no file .*none.py$"):
        list(measure_routing(tmp_path / "none.py"))
    with pytest.raises(ValueError, match=r"^rounds must be at least 2, not 1$"):
        list(measure_routing(CONFIGS / "west_first.py", 1))
