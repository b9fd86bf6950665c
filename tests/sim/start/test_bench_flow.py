"""`hopforge bench flow`: cases in processes of their own, their aims, mistakes."""

import pytest

from hopforge.model.errors import UserError
from hopforge.sim.start import bench_flow
from hopforge.sim.start.bench_flow import CASES, FlowCase, chosen_flows, measure_flows

RING = "{kind: collective, operation: allreduce, bytes: 8000, collectives: {allreduce: ring}}"


def test_a_case_runs_in_a_process_of_its_own() -> None:
    case = FlowCase("small", "{kind: torus, radices: [3, 3]}", RING, limit_s=5, limit_gib=2)
    (row,) = measure_flows([case])
    assert (row["case"], row["limit_s"], row["limit_gib"]) == ("small", 5, 2)
    assert row["messages"] == 9 * 2 * 8
    assert 0 < row["engine_s"] < row["cpu_s"]
    assert row["million_per_s"] == pytest.approx(144e-6 / row["cpu_s"])
    assert row["makespan_s"] > 0
    assert row["peak_mib"] > 50  # at least numpy and numba


def test_a_case_that_fails_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_flow, "_CHILD", 'import sys; sys.exit("a line\\nno memory for {} {}")')
    with pytest.raises(UserError, match=r"^x: no memory for 1 2$"):
        list(measure_flows([FlowCase("x", 1, 2)]))  # type: ignore[arg-type]


def test_the_aims_are_those_of_the_issue() -> None:
    assert {(case.limit_s, case.limit_gib) for case in CASES} == {(None, None), (5, None), (20, 8)}
    assert len(chosen_flows(True)) == len(CASES) == 1 + len(chosen_flows(False))
