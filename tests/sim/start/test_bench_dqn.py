import pytest

from hopforge.sim.start import bench, bench_dqn


def test_every_case_has_an_aim_and_does_its_work(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("INFERENCES", "TRAININGS", "DECISIONS"):
        monkeypatch.setattr(bench_dqn, name, 40)
    monkeypatch.setattr(bench, "YARDSTICK_STEPS", 1 << 16)
    rows = list(bench.measure(bench_dqn.dqn_cases(), 1))
    assert [row["case"] for row in rows] == list(bench_dqn.AIMS)
    assert all(row["work"] == 40 and row["million_per_s"] > 0 for row in rows)
