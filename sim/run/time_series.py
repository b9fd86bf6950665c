"""One run from the empty network in bins of time: latency, throughput, hops, link loads, learned times; convergence."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hopforge.model.config import Config
from hopforge.model.output.plots import GREY, Line, draw_lines, new_figure, save_figure, style_axes
from hopforge.model.output.results import Table, run_metadata, staged, write_metadata, write_tables
from hopforge.model.topology import Topology
from hopforge.sim.failures.report import FailureHistory, failure_rows
from hopforge.sim.run.agent_watch import AgentWatch
from hopforge.sim.run.buffer_samples import router_flits
from hopforge.sim.run.link_frames import write_frames
from hopforge.sim.run.rate_time import rate_units
from hopforge.sim.run.run_statistics import bin_middles, figure, percentile
from hopforge.sim.run.series_frames import SeriesFrames
from hopforge.sim.run.series_limits import series_cycles
from hopforge.sim.run.simulation import Simulation

#: convergence: share of the steady latency within which all later bins must be
CONVERGED_SHARE = 0.1
#: the steady latency is the mean over this last share of a part of the run with one load
STEADY_SHARE = 0.25


@dataclass(frozen=True)
class TimeSeries:
    """A run in bins.

    Attributes
    ----------
    bins : DataFrame
        A row per bin: `time` of its end (µs, or cycles), `load` offered, `packets` that arrived, `accepted`, `latency`
        (ns, or cycles) with `latency_p50`, `_p95`, `_p99`, `hops` (routers visited), `derouted_share`,
        `channel_load_mean`, `_max`.
    estimates : DataFrame
        Learned times of the chosen routers: `time`, `router`, `port`, `mean` and `least` over the rows.
    distribution : DataFrame
        Latencies of all packets: `latency` (middle of a bin), `packets`.
    converged : list of (float, float)
        For each load, and from each failure or repair on: when it began, and after what time the latency had converged
        (nan: it did not).
    channels : float[bin, channel]
        Load of each channel between routers, in the order of `Topology.channels`; no bins if they were not wanted.
    failures : Reconfiguration, optional
        What failed during the run.
    agents : AgentWatch, optional
        What learned to route.
    frames : SeriesFrames, optional
        Loads of links and flits in routers over time.
    cycle_time : float
        A cycle as the file counts it, in `time_unit`.
    """

    bins: pd.DataFrame
    estimates: pd.DataFrame
    distribution: pd.DataFrame
    converged: list[tuple[float, float]]
    time_unit: str
    latency_unit: str
    channels: NDArray[np.float64]
    load_unit: str = "of the link rate"
    failures: FailureHistory | None = None
    agents: AgentWatch | None = None
    frames: SeriesFrames | None = None
    cycle_time: float = 1.0


def convergence(latency: NDArray[np.float64]) -> int | None:
    """First bin from which on the latency stays within `CONVERGED_SHARE` of its mean over the last quarter.

    None if that is in the last quarter only, or if some bin has no packet there.

    Examples
    --------
    >>> convergence(np.array([9.0, 5.0, 2.0, 1.0, 1.05, 0.95, 1.0, 1.0]))
    3
    >>> convergence(np.arange(1.0, 9.0)) is None
    True
    """
    count = len(latency)
    last = max(int(count * STEADY_SHARE), 1)
    steady = float(latency[count - last :].mean())
    if not np.isfinite(steady):
        return None
    outside = np.flatnonzero(~(np.abs(latency - steady) <= CONVERGED_SHARE * steady))
    first = int(outside[-1]) + 1 if len(outside) else 0
    return None if first >= count - last else first


def converged_parts(bins: pd.DataFrame, begins: list[int]) -> list[tuple[float, float]]:
    """Say for each part of a run, by its first bin, when it began and after what time its latency had converged.

    A part ends where the next one begins.
    """
    times = np.concatenate([[0.0], bins["time"].to_numpy()])
    found = []
    for begin, end in zip(begins, [*begins[1:], len(bins)], strict=True):
        first = convergence(bins["latency"].to_numpy()[begin:end])
        found.append((float(times[begin]), np.nan if first is None else float(times[begin + first] - times[begin])))
    return found


def run_series(run: Simulation, progress: Callable[[int, int], None], *, channels: bool = False) -> TimeSeries:
    """Simulate from cycle 0 on, bin by bin, with the changes of load of ``simulation.load_steps``.

    Parameters
    ----------
    run : Simulation
        Not yet advanced.
    progress : callable
        Called with (bins done, in all).
    channels : bool
        Keep the load of every channel in every bin.

    Raises
    ------
    TrafficError
        A program as source, a router that does not exist or that has no learned times.
    """
    limits, built, state = run.config.simulation, run.built, run.state
    total = series_cycles(run)
    count, scale = limits.series_bins, built.cycle_ns or 1.0
    unit = 1000.0 if built.cycle_ns else 1.0  # bins in µs
    ends = run.topology.channels()
    between = ends.src_router.astype(np.int64) * run.topology.max_ports + ends.src_port
    loads = np.zeros((count if channels else 0, len(between)))
    frames = SeriesFrames(run.topology, count)
    steps = {step.bin: step.load for step in limits.load_steps}
    if steps:
        run.plan_loads({total * k // count: load for k, load in steps.items()})
    rows, estimates, begins = [], [], [0]
    whole = np.zeros_like(state["histogram"])
    largest = 0
    for k in range(count):
        if k in steps:
            run.set_load(steps[k])
            begins.append(k)
        begin, end = total * k // count, total * (k + 1) // count
        run.reset_measures()
        run.advance(end - begin)
        run.check_conservation()
        if run.agents is not None:
            run.agents.note()
        rate, time = built.flit_cycles / (end - begin), end * scale / unit
        channel = state["output_port"]["flits"][between] * rate if len(between) else np.zeros(1)
        if channels:
            loads[k] = channel[: len(between)]
        rows.append({"time": time, "load": run.load, **_bin_values(run, rate, channel)})
        frames.note(k, time, channel, router_flits(state))
        estimates += _estimates(run, time)
        whole += state["histogram"]
        largest = max(largest, int(state["latency_max"]))
        progress(k + 1, count)
        if run.agents is not None and run.agents.diverged:
            loads, begins = loads[: k + 1], [begin for begin in begins if begin <= k]
            frames.cut(k + 1)
            break
    bins = pd.DataFrame(rows)
    failures = run.reconfiguration
    if failures is not None:
        begins += [record.cycle * count // total for record in failures.records]
    used = np.flatnonzero(whole)
    middle = bin_middles(used, built.bin_cycles) * scale
    return TimeSeries(
        bins,
        pd.DataFrame(estimates, columns=["time", "router", "port", "mean", "least"]),
        pd.DataFrame({"latency": middle, "packets": whole[used]}),
        converged_parts(bins, sorted(set(begins))),
        "µs" if built.cycle_ns else "cycles",
        "ns" if built.cycle_ns else "cycles",
        loads,
        failures=failures,
        agents=run.agents,
        frames=frames,
        cycle_time=built.flit_cycles * scale / unit,
    )


def _bin_values(run: Simulation, rate: float, channel: NDArray[np.float64]) -> dict[str, float]:
    """Return what was measured since `reset_measures`, as the columns of `TimeSeries.bins` behind time and load.

    Parameters
    ----------
    run : Simulation
        At the end of a bin.
    rate : float
        By which flits of the bin become a load.
    channel : ndarray, float64[channel]
        Load of each channel between routers; one 0 where there is none.
    """
    built, state, scale = run.built, run.state, run.built.cycle_ns or 1.0
    packets = int(state["measured"])

    def mean(total: float) -> float:
        return total / packets if packets else np.nan

    p50, p95, p99 = (
        percentile(state["histogram"], share, int(state["latency_max"]), built.bin_cycles) * scale
        for share in (0.5, 0.95, 0.99)
    )
    return {
        "packets": packets, "accepted": float(state.senders["flits_received"].mean()) * rate,
        "latency": mean(int(state["latency_sum"])) * scale, "latency_p50": p50, "latency_p95": p95, "latency_p99": p99,
        "hops": mean(int(state["hops_sum"])), "derouted_share": mean(built.derouted()),
        "channel_load_mean": float(channel.mean()), "channel_load_max": float(channel.max()),
    }  # fmt: skip


def _estimates(run: Simulation, time: float) -> list[tuple[float, int, int, float, float]]:
    if run.plan.estimates is None:
        return []
    first, shape = run.plan.estimates
    table = run.state["memory"][first : first + int(np.prod(shape))].reshape(shape)
    rows = np.ones(shape[:2], bool) if run.plan.asked is None else run.plan.asked
    hosts = run.topology.max_ports - shape[2]
    found = []
    for router in run.config.simulation.series_routers:
        for port in range(shape[2]):
            column = table[router, rows[router], port]
            column = column[np.isfinite(column)]  # the others have no way there
            if len(column):
                found.append((time, router, hosts + port, float(column.mean()), float(column.min())))
    return found


def units_of(series: TimeSeries) -> dict[str, str]:
    """Return the units of the columns that are times: routers with times in ns have others than those with cycles."""
    latencies = ("latency", "latency_p50", "latency_p95", "latency_p99", "mean", "least")
    return {"time": series.time_unit, **dict.fromkeys(latencies, series.latency_unit)}


def series_rows(series: TimeSeries) -> list[tuple[str, str]]:
    """Say what `hopforge series` shows: subject and words."""
    bins, unit = series.bins, series.time_unit
    part = bins[bins["time"] > series.converged[-1][0]]  # after the last change of the load or of the network
    last = _mean_of_packets(part.tail(max(int(len(part) * STEADY_SHARE), 1)))
    rows = [("simulated", f"{bins['time'].iloc[-1]:.6g} {unit} in {len(bins)} bins")]
    for begin, after in series.converged:
        text = "latency did not converge" if np.isnan(after) else f"latency converged after {after:.4g} {unit}"
        load = float(bins["load"][bins["time"] > begin].iloc[0])
        rows.append((f"load {load:.4g} from {begin:.4g} {unit} on", text))
    if series.failures is not None:
        rows += failure_rows(series.failures)
    rows.append(("accepted at the end", f"{last['accepted']:.4g}"))
    latency = f"{figure(last['latency'], '.1f')} {series.latency_unit}, 99 % {figure(last['latency_p99'], '.1f')}"
    rows.append(("latency at the end", latency))
    share = last["derouted_share"]
    detours = "" if np.isnan(share) else f", derouted {100 * share:.2f} %"
    rows.append(("routers visited", f"{figure(last['hops'], '.3f')}{detours}"))
    return rows


def _mean_of_packets(bins: pd.DataFrame) -> pd.Series:
    """Return means over bins of the same length: of what packets have (NaN without any), over the packets of all."""
    found = bins.mean()
    weights = bins["packets"]
    for name in ("latency", "latency_p99", "hops", "derouted_share"):
        there = bins[name].notna() & (weights > 0)
        total = weights[there].sum()
        found[name] = (bins[name] * weights)[there].sum() / total if total else np.nan
    return found


def failure_times(series: TimeSeries) -> list[float]:
    """When something failed or worked again, in the unit of the series."""
    if series.failures is None:
        return []
    scale = series.failures.cycle_ns / 1000 if series.failures.cycle_ns else 1.0
    return [record.cycle * scale for record in series.failures.records]


def plot_series(series: TimeSeries, name: str, path: Path) -> None:
    """Draw latency, throughput, hops and detours (if counted) over time; a line where something fails or works."""
    bins, time = series.bins, f"time ({series.time_unit})"
    wanted: list[tuple[str, str, list[tuple[str, str]]]] = [
        (f"Latency, {name}", f"latency ({series.latency_unit})", [("mean", "latency"), ("99 %", "latency_p99")]),
        ("Throughput", series.load_unit, [("accepted", "accepted"), ("offered", "load")]),
        ("Routers visited", "routers", [("mean", "hops")]),
    ]
    if not bins["derouted_share"].isna().all():
        wanted.append(("Detours", "share of packets", [("derouted", "derouted_share")]))
    figure, panels = new_figure(panels=len(wanted), width_in=4.4)
    for axes, (title, label, columns) in zip(panels, wanted, strict=True):
        style_axes(axes, title=title, x_label=time, y_label=label)
        for moment in failure_times(series):
            axes.axvline(moment, color=GREY, linewidth=0.9, linestyle=":")
        draw_lines(
            axes,
            [
                Line(text, bins["time"], bins[column], k, dashed=text == "offered", marked=False)
                for k, (text, column) in enumerate(columns)
            ],
        )
    save_figure(figure, path)


def plot_estimates(series: TimeSeries, name: str, path: Path) -> None:
    """Draw the learned times of the chosen routers over time: a panel each, a curve per port (mean of its rows)."""
    routers = series.estimates["router"].unique().tolist()
    figure, panels = new_figure(panels=len(routers), width_in=5.2)
    for axes, router in zip(panels, routers, strict=True):
        title = f"Learned times, router {router}, {name}"
        style_axes(axes, title=title, x_label=f"time ({series.time_unit})", y_label=f"mean ({series.latency_unit})")
        here = series.estimates[series.estimates["router"] == router]
        draw_lines(
            axes,
            [
                Line(f"port {port}", part["time"], part["mean"], k, marked=False)
                for k, (port, part) in enumerate(here.groupby("port"))
            ],
        )
    save_figure(figure, path)


def plot_distribution(series: TimeSeries, name: str, path: Path) -> None:
    """Draw the share of packets over their latency, with mean, 95th and 99th percentile."""
    table = series.distribution
    share = table["packets"] / max(int(table["packets"].sum()), 1)
    total = np.cumsum(share.to_numpy())
    figure, (axes,) = new_figure()
    style_axes(
        axes, title=f"Latencies of all packets, {name}", x_label=f"latency ({series.latency_unit})",
        y_label="share of packets up to it",
    )  # fmt: skip
    draw_lines(axes, [Line("packets", table["latency"], total, 0, marked=False)])
    if len(table):
        marks: list[tuple[str, Any]] = [("mean", float((table["latency"] * share).sum()))]
        marks += [
            (f"{round(100 * part)} %", float(table["latency"][min(int(np.searchsorted(total, part)), len(table) - 1)]))
            for part in (0.95, 0.99)
        ]
        for k, (text, at) in enumerate(marks):
            axes.axvline(at, color="#6b6b6b", linewidth=0.8, linestyle=":")
            axes.annotate(text, (at, 0.08 + 0.09 * k), fontsize=8, color="#6b6b6b")
    save_figure(figure, path)


def write_series(
    config: Config,
    series: TimeSeries,
    folder: Path,
    topology: Topology | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
    *,
    seed: int | None = None,
) -> None:
    """Write bins, learned times and distribution (CSV, Parquet), plots (PNG) and metadata (JSON).

    Parameters
    ----------
    config : Config
        Of the run.
    series : TimeSeries
        What was found.
    folder : Path
        For all files.
    topology : Topology, optional
        Draw a picture of its links for every bin, too: ``frames/*.png`` and ``links.gif``.
    progress : callable, optional
        Called with (pictures done, in all).
    seed : int, optional
        Of the run, by default that of the configuration.
    """
    tables: dict[str, Table] = {"series": series.bins, "distribution": series.distribution}
    if len(series.estimates):
        tables["estimates"] = series.estimates
    if series.failures is not None:
        tables["failures"] = series.failures.table()
    if series.agents is not None:
        tables |= series.agents.tables()
    with staged(folder) as scratch:
        write_tables(scratch, tables, rate_units(config, units_of(series)))
        if series.agents is not None:
            series.agents.keep(scratch)
        plot_series(series, config.name, scratch / "series.png")
        plot_distribution(series, config.name, scratch / "distribution.png")
        if len(series.estimates):
            plot_estimates(series, config.name, scratch / "estimates.png")
        if topology is not None:
            texts = [
                f"{config.name}: until {row.time:.4g} {series.time_unit}, offered {row.load:.4g}, accepted "
                f"{row.accepted:.4g}"
                for row in series.bins.itertuples()
            ]
            write_frames(topology, series.channels, texts, scratch, progress)
        metadata = run_metadata(config, seed=seed)
        if series.frames is not None:
            series.frames.write(scratch, rate_units(config))
            metadata["frames"] = series.frames.metadata(series.time_unit, series.cycle_time)
        write_metadata(scratch, metadata)
