"""One run: reproducible to the bit, conserving, with intervals, percentiles and a warm-up by definition."""

import json
import signal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import stdtrit

from hopforge.model.config import Config, parse_config
from hopforge.model.kernel.histogram import EXACT_BINS, HISTOGRAM_BINS, bin_ends, histogram_bin
from hopforge.model.routing.graphs.graph import distances
from hopforge.sim.run import channel_plot, simulation
from hopforge.sim.run.channel_plot import plot_channels
from hopforge.sim.run.measurement import channel_columns, measurement_rows, write_measurement
from hopforge.sim.run.network_latency import network_words
from hopforge.sim.run.program_run import run_program
from hopforge.sim.run.run_statistics import BATCHES, T_QUANTILES, batch_interval, mser5, percentile
from hopforge.sim.run.simulation import Simulation
from hopforge.sim.run.time_series import run_series, series_rows

MESH = "topology: {kind: mesh, radices: [4, 3]}"
TORUS = "topology: {kind: torus, radices: [5, 4]}"
PAIR_PROGRAM = """\
topology: {kind: mesh, radices: [2]}
traffic: {source: program, flit_bytes: 16}
workload: {kind: collective, operation: alltoall, bytes: 1500000, mtu_bytes: 4096}"""


def config(*lines: str) -> Config:
    return parse_config("\n".join(("name: test", *lines)))


class AlarmError(Exception):
    """What a handler of a signal raises."""


@pytest.mark.parametrize("of_times", ["", "router: {model: input_output_queued}"])
def test_a_signal_between_kernels_is_no_error_of_numba(of_times: str) -> None:
    """One in ten falls into what numba does before each call, which went on without its exception."""
    run = Simulation(config("topology: {kind: mesh, radices: [2]}", *filter(None, [of_times])), 0.1, 1)
    run.advance(10)  # compiled

    def handler(number: int, frame: object) -> None:
        raise AlarmError

    heard = 0
    before = signal.signal(signal.SIGALRM, handler)
    try:
        for k in range(200):
            try:
                signal.setitimer(signal.ITIMER_REAL, 1e-4 + 4e-6 * k)
                for _ in range(400):
                    run.advance(1)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except AlarmError:
                heard += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert heard > 50, "most of them"
    run.check_conservation()


@pytest.mark.parametrize("of_times", ["", "router: {model: input_output_queued}"])
def test_a_signal_is_heard_in_the_middle_of_a_long_advance(of_times: str) -> None:
    run = Simulation(config("topology: {kind: mesh, radices: [2]}", *filter(None, [of_times])), 0.1, 1)
    run.advance(10)  # compiled

    def handler(number: int, frame: object) -> None:
        raise AlarmError

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(AlarmError):
            run.advance(100_000_000)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert 10 < int(run.state["cycle"]) < 50_000_000


@pytest.mark.parametrize("threads", [1, 2])
def test_slices_of_a_run_are_the_run(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    checked = config("topology: {kind: torus, radices: [8, 8]}", "simulation: {warmup_cycles: 11000, max_cycles: 4000}")
    found = []
    for most in (10**9, 1):
        monkeypatch.setattr(simulation, "SLICE_ROUTER_CYCLES", most)
        run = Simulation(checked, 0.3, 1, threads=threads)
        done: list[int] = []
        row = run.run(done.append).row()
        del row["cpu_seconds"]
        assert done[0] == 10_000 and done[-1] == 15_000  # the bar moves during the warm-up, too
        found.append(row)
    assert found[0] == found[1]


def test_same_seed_same_bits_and_another_seed_differs() -> None:
    checked = config(MESH, "simulation: {min_cycles: 1000, max_cycles: 1000}")
    rows = [Simulation(checked, 0.3, seed).run().row() for seed in (5, 5, 6)]
    for row in rows:
        del row["cpu_seconds"]
    assert rows[0] == rows[1]
    assert rows[0] != rows[2]


def test_pieces_of_a_run_are_the_run() -> None:
    whole, pieces = (Simulation(config(MESH), 0.4, 1) for _ in range(2))
    whole.advance(3000)
    for step in (1, 999, 1500, 500):
        pieces.advance(step)
    assert np.array_equal(whole.state["histogram"], pieces.state["histogram"])


@pytest.mark.parametrize("load", [0.2, 0.95])
def test_a_run_of_a_given_time_ends_with_it_whatever_the_precision(load: float) -> None:
    stops = set()
    for precision in ("0.5", "1.0e-9"):
        times = f"simulation: {{warmup_us: 1, measure_us: 10, precision: {precision}}}"
        found = Simulation(config(MESH, "router: {cycle_ns: 1.0}", times), load, 1).run()
        assert (found.cycles, found.saturated) == (10_000, load > 0.5)
        stops.add(found.stop)
    assert stops == {"measure_us"}


def test_the_measures_agree_with_each_other_and_with_the_load() -> None:
    run = Simulation(config(MESH, "simulation: {precision: 0.01}", "traffic: {packet_flits: 2}"), 0.2, 1)
    found = run.run()
    assert found.stop == "precision"
    assert not found.saturated
    assert found.latency_interval <= 0.01 * found.latency
    assert found.accepted == pytest.approx(0.2, rel=0.03)
    assert found.accepted_worst <= found.accepted
    assert found.latency_median <= found.latency_p95 <= found.latency_p99 <= found.latency_max
    # uniform traffic: every packet crosses `distance` channels with 2 flits
    distance = distances(run.topology)
    channels = int((run.topology.peer_router >= 0).sum())
    assert found.hops == pytest.approx(distance.mean() + 1, rel=0.02)
    assert found.channel_load_mean == pytest.approx(0.2 * 12 * distance.mean() / channels, rel=0.03)
    table = pd.DataFrame(channel_columns(run, found.cycles))
    assert len(table) == channels
    assert table["load"].max() == pytest.approx(found.channel_load_max)


def test_a_saturated_run_says_so_and_accepts_less_than_the_bisection_allows() -> None:
    # 8 routers in a row: 4 · 4 / 8 of the hosts' load crosses each way over the one middle channel, at most 0.5
    run = Simulation(config("topology: {kind: mesh, radices: [8]}", "router: {vcs: 4}"), 0.9, 1)
    found = run.run()
    assert found.stop == "saturated"
    assert found.saturated
    assert 0.35 < found.accepted <= 0.9
    assert found.channel_load_max <= 1.0


def test_intervals_are_batch_means() -> None:
    assert mser5([50.0, 20.0, 5.0, *([1.0, 1.2] * 10)]) == 3
    mean, half = batch_interval([(10, 100), (10, 120)] * 20)
    assert mean == 11.0
    assert half == pytest.approx(0.0, abs=1e-12)
    # equal numbers of packets in 20 batches: the textbook interval of 20 means
    means = np.random.default_rng(1).normal(50, 5, 20)
    mean, half = batch_interval([(1000, 1000 * m) for m in means])  # type: ignore[misc]
    assert mean == pytest.approx(means.mean())
    assert half == pytest.approx(stats.t.ppf(0.975, 19) * means.std(ddof=1) / np.sqrt(20))
    assert np.isnan(batch_interval([(0, 0)] * 20)).all()
    assert batch_interval([(5, 50)]) == (10.0, float("inf"))


def test_quantiles_of_the_interval() -> None:
    assert len(T_QUANTILES) == BATCHES - 1
    assert pytest.approx(stdtrit(np.arange(1, BATCHES), 0.975), rel=1e-13) == T_QUANTILES
    mean, half = batch_interval([(10, 100), (10, 120)])
    assert (mean, half) == (11.0, pytest.approx(stats.t.ppf(0.975, 1) * 1.0))


@pytest.mark.parametrize("share", [0.01, 0.5, 0.95, 0.99, 1.0])
def test_percentiles_are_the_smallest_latency_with_the_share(share: float) -> None:
    values = np.random.default_rng(3).integers(0, 40, 1000)
    expected = float(np.quantile(values, share, method="inverted_cdf"))
    assert percentile(np.bincount(values, minlength=60), share, int(values.max()), 1) == expected


@pytest.mark.parametrize(("first", "unit"), [(0, 1), (65_000, 1), (65_536, 1), (1 << 40, 1), (700_000, 16)])
def test_percentiles_above_the_exact_bins_are_within_one_percent(first: int, unit: int) -> None:
    values = first + np.random.default_rng(3).integers(0, 200_000, 3001)
    bins = np.array([histogram_bin.py_func(int(value) // unit) for value in values])
    for share in (0.5, 0.95, 0.99):
        expected = int(np.quantile(values, share, method="inverted_cdf"))
        found = percentile(np.bincount(bins, minlength=HISTOGRAM_BINS), share, int(values.max()), unit)
        exact = expected < EXACT_BINS and unit == 1
        assert found == expected if exact else abs(found - expected) <= 0.01 * expected


def test_every_value_has_its_bin() -> None:
    values = [v for power in range(63) for v in ((1 << power) - 1, 1 << power, (1 << power) * 3 // 2)] + [2**63 - 1]
    bins = [histogram_bin.py_func(value) for value in values]
    assert (bins == np.sort(bins)).all() and bins[-1] == HISTOGRAM_BINS - 1
    least, largest = bin_ends(bins)
    assert ((least <= np.array(values, float)) & (np.array(values, float) <= largest)).all()
    least, largest = bin_ends(np.arange(HISTOGRAM_BINS - 1000))  # above them neighbours are the same float
    assert (largest[:-1] + 1 == least[1:]).all()


def test_latencies_above_the_exact_bins_are_counted_where_they_belong() -> None:
    run = Simulation(config(PAIR_PROGRAM), 0.1, 1)
    found = run_program(run)
    assert found.latency_max > 1.2 * EXACT_BINS
    assert EXACT_BINS < found.latency_p95 < found.latency_p99 < found.latency_max
    for name, total in (("histogram", "latency_sum"), ("network_histogram", "network_latency_sum")):
        used = np.flatnonzero(run.state[name])
        least, largest = bin_ends(used)
        counts = run.state[name][used]
        assert (least * counts).sum() <= int(run.state[total]) <= (largest * counts).sum()


def test_without_packets_there_is_no_latency() -> None:
    run = Simulation(config(MESH, "simulation: {warmup_cycles: 0, min_cycles: 1000, max_cycles: 1000}"), 0.0, 1)
    found = run.run()
    assert found.packets == 0
    row = found.row()
    names = [name for name in row if ("latency" in name or name == "hops") and not name.endswith("_max")]
    assert len(names) >= 15
    assert all(np.isnan(row[name]) for name in names)
    assert not any("nan" in words for _, words in [*measurement_rows(found), ("", network_words(found))])
    assert np.isnan(percentile(np.zeros(4, np.int64), 0.5, 0, 1))


def test_bins_without_packets_have_no_latency() -> None:
    bins = "simulation: {series_bins: 20, max_cycles: 2000}"
    series = run_series(Simulation(config(MESH, bins), 0.001, 1), lambda done, total: None)
    columns = ["latency", "latency_p50", "latency_p95", "latency_p99", "hops"]
    empty = series.bins[columns].isna()
    assert 2 < empty["latency"].sum() < 18
    assert (empty == empty[["latency"]].to_numpy()).all(axis=None)
    silent = run_series(Simulation(config(MESH, bins), 0.0, 1), lambda done, total: None)
    assert ("latency at the end", "– cycles, 99 % –") in series_rows(silent)


def test_the_end_of_a_series_is_the_mean_of_its_packets_not_of_its_bins() -> None:
    run = Simulation(config(MESH, "simulation: {series_bins: 40, max_cycles: 4000}"), 0.0008, 1)
    series = run_series(run, lambda done, total: None)
    bins, last = series.bins, series.bins.tail(10)
    assert bins["packets"].sum() == series.distribution["packets"].sum()
    total = (series.distribution["latency"] * series.distribution["packets"]).sum()  # exact: no latency is long here
    assert (bins["latency"] * bins["packets"]).sum() == pytest.approx(total)
    some = last[last["packets"] > 0]
    assert len(some) < 10 and some["packets"].nunique() > 1
    mean = np.average(some["latency"], weights=some["packets"])
    assert abs(mean - some["latency"].mean()) > 0.1  # the words tell the two apart
    rows = dict(series_rows(series))
    high = np.average(some["latency_p99"], weights=some["packets"])
    assert rows["latency at the end"] == f"{mean:.1f} cycles, 99 % {high:.1f}"
    assert rows["routers visited"] == f"{np.average(some['hops'], weights=some['packets']):.3f}"
    assert rows["accepted at the end"] == f"{last['accepted'].mean():.4g}"


def test_results_are_written(tmp_path) -> None:
    run = Simulation(config(MESH, "simulation: {min_cycles: 1000, max_cycles: 1000}"), 0.1, 1)
    found = run.run()
    write_measurement(run, found, tmp_path / "out", plots=True)
    table = pd.read_csv(tmp_path / "out" / "measurement.csv")
    assert table["packets"].tolist() == [found.packets]
    assert len(pd.read_parquet(tmp_path / "out" / "channels.parquet")) == 34  # 2 · (3 · 3 + 4 · 2)
    assert json.loads((tmp_path / "out" / "metadata.json").read_text())
    assert (tmp_path / "out" / "channels.png").stat().st_size > 10000


def test_channel_loads_are_drawn_where_they_belong(tmp_path: Path, monkeypatch) -> None:
    drawn = []
    monkeypatch.setattr(channel_plot, "draw_heat_map", lambda _axes, values, **_: drawn.append(np.array(values)))
    run = Simulation(config(TORUS), 0.3, 1)
    run.advance(500)
    table = pd.DataFrame(channel_columns(run, 500))
    plot_channels(run.topology, channel_columns(run, 500), tmp_path / "channels.png")
    for row in table.itertuples():  # port 1 + direction of router x + 5·y
        assert drawn[row.port - 1][row.router // 5, row.router % 5] == row.load
    assert sum(np.nansum(one) for one in drawn) == pytest.approx(table["load"].sum())


def test_channel_loads_of_other_networks_are_drawn_on_the_floor_plan(tmp_path: Path, monkeypatch) -> None:
    drawn = []
    monkeypatch.setattr(channel_plot, "draw_channel_values", lambda _topology, values, **_: drawn.append(list(values)))
    run = Simulation(config("topology: {kind: torus, radices: [3, 3, 3]}"), 0.3, 1)
    run.advance(500)
    table = pd.DataFrame(channel_columns(run, 500))
    plot_channels(run.topology, channel_columns(run, 500), tmp_path / "channels.png")
    assert drawn == [list(table["load"])]
    assert max(drawn[0]) > 0
