"""Beyond seed 001: Q-adaptive and UGAL side by side when links between groups fail in the middle of a run."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from hopforge.model.config.lookup import AddressConfig
from hopforge.model.config.topology import DragonflyConfig
from hopforge.model.output.plots import GREY, Line, draw_lines, new_figure, style_axes
from hopforge.model.topology import build
from hopforge.sim.reproduce.dragonflies import runs
from hopforge.sim.reproduce.dragonflies.qadaptive_beyond import draw_failures
from hopforge.sim.reproduce.registry import Comparison, Options, Point, Reproduction, Row, integer, number

_NAMES = ("UGALg", "UGALn", "PAR", "Q-adaptive")
#: pattern → load with 72 hosts, with 1056; share of the links between groups that fail
_CASES: dict[str, tuple[float, float, float]] = {"UR": (0.6, 0.6, 0.12), "ADV+1": (0.25, 0.35, 0.06)}
#: bins of a run; the failure comes at the beginning of that one
_BINS, _FAILED_BIN = 120, 60
#: µs until the hosts stop, and from then until the new tables are in force
_DETECTION_US, _REPROGRAM_US = 1.0, 2.0


def _points(options: Options) -> list[Point]:
    hosts, seeds, total = (1056, 3, 900.0) if options.full else (72, 5, 300.0)
    return [
        {
            "hosts": hosts, "algorithm": algorithm, "pattern": pattern, "load": loads[options.full],
            "share": loads[2], "measure_us": total, "seed": options.seed + k,
        }
        for pattern, loads in _CASES.items()
        for algorithm in _NAMES
        for k in range(seeds)
    ]  # fmt: skip


def _run(point: Point, options: Options) -> list[Row]:
    p, a, h = runs.SHAPES[integer(point, "hosts")]
    topology = build(DragonflyConfig(kind="dragonfly", p=p, a=a, h=h), AddressConfig(chunk_bits=4))
    links = draw_failures(topology, number(point, "share"), integer(point, "seed"))
    flits_of = 1000 / 32.0  # packet times in a µs
    failure = {
        "cycle": round(number(point, "measure_us") * _FAILED_BIN / _BINS * flits_of), "links": tuple(links),
        "detection_cycles": round(_DETECTION_US * flits_of), "reprogram_cycles": round(_REPROGRAM_US * flits_of),
    }  # fmt: skip
    rows, _ = runs.run_bins(point, number(point, "load"), series_bins=_BINS, failures=(failure,))
    return [{**row, "links": len(links)} for row in rows]


def settled_us(times: NDArray[np.float64], latency: NDArray[np.float64]) -> float | None:
    """Say how long after the failure the latency is where it stays.

    That is at the end of the first of two bins in a row that are within 10 % of the mean over the last quarter of the
    run; None: there are none before this quarter.

    Parameters
    ----------
    times : ndarray, float64[bin]
        Ends of the bins (µs).
    latency : ndarray, float64[bin]
        Mean in each.
    """
    last = _BINS // 4
    steady = float(np.mean(latency[-last:]))
    near = np.abs(latency - steady) <= 0.1 * steady
    for k in range(_FAILED_BIN, _BINS - last):
        if near[k] and near[k + 1]:
            return float(times[k] - times[_FAILED_BIN - 1])
    return None


def _compare(data: pd.DataFrame, options: Options) -> list[Comparison]:
    found = []
    for pattern in data["pattern"].unique():
        for name in _NAMES:
            part = data[(data["pattern"] == pattern) & (data["algorithm"] == name)]
            by_seed = part.groupby("seed")
            after = by_seed.apply(lambda one: settled_us(one["time"].to_numpy(), one["latency"].to_numpy()))
            times = after.dropna().astype(float)
            before, now = (
                by_seed["latency"].apply(lambda one, first=first: float(one.iloc[first : first + 15].mean()))
                for first in (_FAILED_BIN - 15, _BINS - 15)
            )
            first = part.iloc[0]
            middle = float(first["measure_us"]) * _FAILED_BIN / _BINS
            where = f"{first['hosts']} hosts, load {first['load']}, {first['links']} links fail"
            lost = f"{part['lost'].mean():.0f} packets lost, {part['kept'].mean():.0f} sent again"
            text = f"{where}; {lost}" + (f"; {runs.spread(times)}" if len(times) else "")
            text += f"; {part[part['time'] > middle]['latency'].max():.0f} ns in the worst bin"
            if len(times) < len(after):
                text += f"; {len(after) - len(times)} of {len(after)} runs did not settle"
            ours = float(times.mean()) if len(times) else None
            found.append(Comparison(f"latency settles after the failure, {pattern}, {name}", "µs", None, ours, text))
            change = float(now.mean() / before.mean())
            text = f"{where}; {before.mean():.0f} ns before, {now.mean():.0f} at the end"
            found.append(Comparison(f"latency after over before, {pattern}, {name}", "", None, change, text))
    return found


def _draw(data: pd.DataFrame, options: Options) -> Figure:
    patterns = list(data["pattern"].unique())
    figure, panels = new_figure(panels=len(patterns))
    for axes, pattern in zip(panels, patterns, strict=True):
        part = data[data["pattern"] == pattern]
        title = f"{pattern}, {int(part['hosts'].iloc[0])} hosts, load {float(part['load'].iloc[0])}"
        style_axes(axes, title=title, x_label="time (µs)", y_label="mean latency (ns)", log_y=True)
        axes.axvline(float(part["measure_us"].iloc[0]) * _FAILED_BIN / _BINS, color=GREY, linewidth=0.9, linestyle=":")
        lines = []
        for k, name in enumerate(_NAMES):
            means = part[part["algorithm"] == name].groupby("time")["latency"].mean()
            lines.append(Line(name, means.index.to_numpy(), means.to_numpy(), k, marked=False))
        draw_lines(axes, lines)
    return figure


REPRODUCTIONS: Sequence[Reproduction] = (
    Reproduction(
        "qadaptive.outage",
        "Learned and measured detours, links that fail in a run",
        "no paper: beyond seed 001",
        (
            *runs.ASSUMPTIONS,
            "links are drawn at random, so that every two groups keep a way over one more",
            f"hosts stop {_DETECTION_US} µs after the failure; tables {_REPROGRAM_US} µs later, or when it is empty",
            "settled: two bins in a row within 10 % of the mean latency of the last quarter of the run",
        ),
        _points,
        _run,
        _compare,
        _draw,
        parallel=True,
    ),
)
