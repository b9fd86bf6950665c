"""`hopforge bench net`: what is counted, that both simulators do the same work, and mistakes with the binary."""

import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from hopforge import cli
from hopforge.model.config import parse_config
from hopforge.model.errors import UserError
from hopforge.model.routing.graphs.graph import distances
from hopforge.sim.run.simulation import Simulation
from hopforge.sim.start import bench_net
from hopforge.sim.start.bench_net import CASES, SIZES, measure_net, measure_sizes, prepare, time_booksim, time_ours
from hopforge.sim.start.bench_results import write_bench

SMALL = bench_net.grid_case("mesh", 4, 2, 1, 3000, 100)

FAKE = """#!/bin/sh
grep -q "injection_rate = 0.3; sample_period = 100;" "$1" || exit 1
grep -q "topology = mesh; k = 4; n = 2; routing_function = dor; packet_size = 1;" "$1" || exit 1
i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done
cat <<END
Accepted flit rate average= 0.9
Time taken is 400 cycles
====== Overall Traffic Statistics ======
Accepted flit rate average = 0.25 (1 samples)
Hops average = 3.5 (1 samples)
END
"""


def binary(folder: Path, text: str) -> Path:
    path = folder / "booksim"
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_work_is_flits_times_routers_visited() -> None:
    run = prepare(SMALL)
    seconds, work = time_ours(run, 20000)
    # uniform traffic with the sender included: 16 hosts, load 0.3, mean distance + 1 routers
    assert work == pytest.approx(0.3 * 16 * (distances(run.topology).mean() + 1), rel=0.03)
    assert seconds > 0


def test_a_booksim_run_is_read(tmp_path: Path) -> None:
    seconds, work = time_booksim(binary(tmp_path, FAKE), SMALL, 16)
    assert work == 0.25 * 16 * 3.5
    assert 0 < seconds * 400 < 10


def test_ratio_and_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # (seconds per cycle, flit-hops per cycle): ours does 10, 20, 40 million flit-hops a second, BookSim 1, 2, 1
    ours = iter([(20e-6, 200.0), (10e-6, 200.0), (5e-6, 200.0)])
    theirs = iter([(100e-6, 100.0), (50e-6, 100.0), (100e-6, 100.0)])
    monkeypatch.setattr(bench_net, "time_ours", lambda run, cycles: next(ours))
    monkeypatch.setattr(bench_net, "time_booksim", lambda path, case, hosts: next(theirs))
    (row,) = measure_net([SMALL], binary(tmp_path, FAKE), 3)
    assert row["million_flit_hops_per_s"] == pytest.approx(20)
    assert row["booksim_million_flit_hops_per_s"] == pytest.approx(1)
    assert row["ns_per_flit_hop"] == pytest.approx(50)
    # the runs are paired in the order in which they alternate: 10/1, 20/2, 40/1
    assert (row["ratio_lowest"], row["ratio"], row["ratio_highest"]) == pytest.approx((10, 10, 40))
    write_bench([row], tmp_path / "out", clock="processor time", load=0.3)
    assert pd.read_csv(tmp_path / "out" / "bench.csv")["routers"].tolist() == [16]
    metadata = json.loads((tmp_path / "out" / "metadata.json").read_text())
    assert (metadata["clock"], metadata["load"]) == ("processor time", 0.3)


@pytest.mark.parametrize("text, message", [
    ("#!/bin/sh\nexit 1\n", r"^--booksim: .* printed no 'Time taken is'$"),
    ("not a program", r"^--booksim: .* cannot be run: "),
])  # fmt: skip
def test_a_binary_that_is_no_booksim_is_one_clear_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        list(measure_net([SMALL], binary(tmp_path, text), 1))


def test_repetitions_are_checked() -> None:
    with pytest.raises(ValueError, match=r"^repetitions must be at least 1, not 0$"):
        list(measure_net([SMALL], None, 0))


def test_the_cases_are_those_of_the_documentation() -> None:
    assert [case.name for case in CASES] == [
        "8×8 mesh, 1 flit", "8×8 mesh, 4 flits", "8-ary 3-cube, 1 flit", "dragonfly of 1056 hosts, 5 flits",
    ]  # fmt: skip
    run = Simulation(parse_config(CASES[-1].ours), CASES[-1].load, 1, check=False)
    assert (run.topology.hosts, run.topology.routers, CASES[-1].load) == (1056, 264, 0.5)
    assert [case.name for case in SIZES] == [f"{k}-ary {n}-cube, 1 flit" for k, n in ((4, 3), (8, 3), (16, 3), (16, 4))]


def test_sizes_are_timed_in_turn_and_beside_the_first() -> None:
    small, large = measure_sizes([SMALL, replace(SMALL, ours=SMALL.ours.replace("[4, 4]", "[8, 8]"))], 3)
    assert (small["routers"], large["routers"]) == (16, 64)
    assert small["cost_ratio"] == 1 and large["cost_ratio"] > 0
    assert small["repetitions"] == large["repetitions"] == 3
    with pytest.raises(ValueError, match="repetitions must be at least 1, not 0"):
        measure_sizes([SMALL], 0)


def test_booksim_is_not_run_beside_sizes(tmp_path: Path) -> None:
    result = CliRunner().invoke(
        cli.app, ["bench", "net", "--sizes", "--booksim", str(binary(tmp_path, FAKE)), "-o", str(tmp_path / "out")]
    )
    assert result.exit_code != 0 and "--booksim does not go with --sizes" in str(result.exception)
    assert not (tmp_path / "out").exists()
