"""`hopforge bench route`: cases in processes of their own, their aims, mistakes, files."""

from pathlib import Path

import pandas as pd
import pytest

from hopforge.model.errors import UserError
from hopforge.sim.start import bench_route
from hopforge.sim.start.bench_results import write_bench
from hopforge.sim.start.bench_route import CASES, RouteCase, chosen_cases, draw_growth, measure_route, time_case


def test_a_case_runs_in_a_process_of_its_own(tmp_path: Path) -> None:
    (row,) = measure_route([RouteCase("acro", 64, 8, limit_s=10)])
    assert row["result"] == 2  # spec compact-routing.md: 2.00 layers on average over 40 graphs
    assert row["cpu_s"] > 0
    assert row["peak_mib"] > 50  # at least numpy and numba
    again = [{**row, "routers": routers} for routers in (64, 256)] + [{**row, "method": "loren", "degree": 4}]
    write_bench(again, tmp_path / "out", clock=bench_route.CLOCK, plot=draw_growth)
    table = pd.read_csv(tmp_path / "out" / "bench.csv")
    assert table["limit_s"].tolist() == [10, 10, 10]
    assert (tmp_path / "out" / "growth.png").stat().st_size > 10_000


def test_tables_are_those_of_the_specification() -> None:
    assert 11 <= time_case("loren", 64, 4)["result"] <= 17  # 13.9 on average over 1000 graphs


def test_a_case_that_fails_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_route, "_CHILD", 'import sys; sys.exit("a line\\nno memory for {} {} {}")')
    with pytest.raises(UserError, match=r"^ACRO, 70 switches of degree 3: no memory for acro 70 3$"):
        list(measure_route([RouteCase("acro", 70, 3)]))


def test_choice_of_cases() -> None:
    assert chosen_cases(True, []) == list(CASES)
    assert {case.method for case in chosen_cases(False, ["lash", "acro"])} == {"lash", "acro"}
    assert not any(case.long for case in chosen_cases(False, []))
    with pytest.raises(UserError, match=r"^--method: must be one of acro, .*, not 'lush'$"):
        chosen_cases(False, ["lush"])


def test_the_aims_are_those_of_the_issue() -> None:
    aims = {(case.method, case.routers, case.degree): case.limit_s for case in CASES if case.limit_s is not None}
    assert aims == {
        ("acro", 1024, 16): 10, ("acro", 4096, 8): 300, ("lash", 1024, 16): 300, ("lash_tor", 1024, 16): 300,
        ("thorup_zwick", 4096, 8): 120, ("loren", 1_048_576, 4): 180,
    }  # fmt: skip
