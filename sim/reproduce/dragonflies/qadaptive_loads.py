"""Seed 001, Q-adaptive: steps of the load (figure 8), and 2550 hosts with the patterns of HPC programs (figure 9).

`qadaptive.patterns` runs these patterns at other loads, and defined otherwise.
"""

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from hopforge.model.output.plots import Line, draw_lines, new_figure, style_axes
from hopforge.sim.reproduce.dragonflies import runs
from hopforge.sim.reproduce.registry import Comparison, Options, Point, Reproduction, Row

#: pattern → loads of the three parts of the run
_STEPS = {"UR": (0.4, 0.8, 0.4), "ADV+4": (0.2, 0.4, 0.2)}
_BINS = 90
#: pattern → load, and mean latency over that of Q-adaptive in the paper
_SCALE: dict[str, tuple[float, dict[str, float]]] = {
    "UR": (0.8, {"UGALg": 3.24, "UGALn": 2.40, "PAR": 4.67}),
    "ADV+1": (0.45, {"UGALg": 2.33, "UGALn": 12.35, "PAR": 2.35}),
    "stencil": (0.8, {"UGALg": 1.77}),
    "many_to_many": (0.5, {"UGALg": 2.10}),
    "random_neighbours": (0.8, {"UGALn": 1.99}),
}
#: the same patterns otherwise: name for `pattern_keys`, loads
_OTHERWISE: dict[str, tuple[float, ...]] = {
    "stencil": (0.6,),
    "stencil_rounds": (0.8,),
    "many_to_many": (0.6, 0.8),
    "many_to_many_rounds": (0.4,),
    "random_neighbours": (0.6,),
    "random_neighbours_once": (0.4, 0.8),
}
#: pattern → orderings of mean latencies that the paper states: each of the first below each of the second
_ORDERS: dict[str, tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]] = {
    "UR": ((("MIN", "Q-adaptive"), ("UGALn",)), (("UGALn",), ("UGALg",)), (("UGALg",), ("PAR",))),
    "ADV+1": ((("Q-adaptive",), ("UGALg", "PAR")), (("UGALg", "PAR"), ("UGALn",)), (("Q-adaptive",), ("VALn",))),
    "stencil": ((("Q-adaptive",), ("UGALg",)), (("UGALg",), ("UGALn", "PAR", "MIN"))),
    "many_to_many": ((("Q-adaptive",), ("UGALg",)), (("UGALg",), ("UGALn", "PAR", "MIN"))),
    "random_neighbours": ((("MIN",), ("Q-adaptive",)), (("Q-adaptive",), ("UGALn",)), (("UGALn",), ("UGALg", "PAR"))),
}


def _step_points(options: Options) -> list[Point]:
    hosts, total = (1056, 1800.0) if options.full else (72, 450.0)
    return [
        {"hosts": hosts, "pattern": pattern, "measure_us": total, "seed": options.seed} for pattern in _STEPS
    ]  # fmt: skip


def _steps(point: Point, options: Options) -> list[Row]:
    first, *others = _STEPS[str(point["pattern"])]
    steps = tuple({"bin": _BINS // 3 * (k + 1), "load": load} for k, load in enumerate(others))
    rows, converged = runs.run_bins(point, first, series_bins=_BINS, load_steps=steps)
    return [{**row, "converged_us": converged[k * 3 // _BINS]} for k, row in enumerate(rows)]


def _compare_steps(data: pd.DataFrame, options: Options) -> list[Comparison]:
    found = []
    for pattern, loads in _STEPS.items():
        part = data[data["pattern"] == pattern].reset_index(drop=True)
        for k, load in enumerate(loads):
            rows = part.iloc[k * _BINS // 3 : (k + 1) * _BINS // 3]
            after = rows["converged_us"].iloc[0]
            ours = None if after is None or pd.isna(after) else float(after)
            accepted = float(rows["accepted"].tail(10).mean())
            note = f"{int(part['hosts'].iloc[0])} hosts; accepted at the end {accepted:.3f}"
            if ours is None:
                note += "; did not converge in its part"
            before = "the empty network" if k == 0 else f"load {loads[k - 1]}"
            claim = "" if k == 0 else "less than from the empty network"
            found.append(
                Comparison(f"convergence, {pattern}, from {before} to {load}", "µs", None, ours, note, claim=claim)
            )
    return found


def _draw_steps(data: pd.DataFrame, options: Options) -> Figure:
    patterns = list(data["pattern"].unique())
    figure, panels = new_figure(panels=len(patterns))
    for axes, pattern in zip(panels, patterns, strict=True):
        part = data[data["pattern"] == pattern]
        title = f"{pattern}, {int(part['hosts'].iloc[0])} hosts"
        style_axes(axes, title=title, x_label="time (µs)", y_label="share of the injection bandwidth")
        lines = [Line("offered", part["time"], part["load"], 1, dashed=True, marked=False)]
        lines.append(Line("accepted", part["time"], part["accepted"], 0, marked=False))
        draw_lines(axes, lines)
    return figure


def _scale_points(options: Options) -> list[Point]:
    hosts, seeds = (2550, 2) if options.full else (72, 1)
    points = []
    for k in range(seeds):
        for pattern, (load, _) in _SCALE.items():
            for algorithm in ("VALn" if pattern == "ADV+1" else "MIN", "UGALg", "UGALn", "PAR", "Q-adaptive"):
                warmup, measure = _scale_times(pattern, algorithm) if options.full else (100.0, 40.0)
                times = {"warmup_us": warmup, "measure_us": measure}
                points.append(runs.make_point(hosts, algorithm, pattern, load, options.seed + k, times))
    return points


def _scale_times(pattern: str, algorithm: str) -> tuple[float, float]:
    """Warm-up and measurement in µs with 2550 hosts."""
    learns = algorithm == "Q-adaptive"
    if pattern == "ADV+1":
        return (1000.0 if learns else 150.0), 80.0
    return (500.0, 60.0) if learns else (100.0, 40.0)


def _otherwise_points(options: Options) -> list[Point]:
    hosts = 2550 if options.full else 72
    points = []
    for pattern, loads in _OTHERWISE.items():
        for load in loads:
            for algorithm in ("MIN", "UGALg", "UGALn", "PAR", "Q-adaptive"):
                warmup = (300.0 if algorithm == "Q-adaptive" else 100.0) if options.full else 60.0
                times = {"warmup_us": warmup, "measure_us": 40.0}
                points.append(runs.make_point(hosts, algorithm, pattern, load, options.seed, times))
    return points


def _orders(latency: "pd.Series[float]", pattern: str) -> tuple[list[str], str]:
    """Say which orderings of the paper do not hold, and how the algorithms are ordered."""
    wrong = [
        f"{below} ≥ {above}"
        for belows, aboves in _ORDERS[pattern]
        for below in belows
        for above in aboves
        if latency[below] >= latency[above]
    ]
    note = " < ".join(latency.sort_values().index)
    return wrong, note + (f"; against the paper: {', '.join(wrong)}" if wrong else "; as in the paper")


def _compare_otherwise(data: pd.DataFrame, options: Options) -> list[Comparison]:
    found = []
    hosts = int(data["hosts"].iloc[0])
    for pattern, loads in _OTHERWISE.items():
        for load in loads:
            part = data[(data["pattern"] == pattern) & (data["load"] == load)]
            latency = part.groupby("algorithm")["latency"].mean()
            wrong, note = _orders(latency, pattern.removesuffix("_rounds").removesuffix("_once"))
            name = f"{pattern.replace('_', ' ')} at {load}"
            found.append(Comparison(f"orderings that differ, {name}", "", None, len(wrong), f"{hosts} hosts: {note}"))
            for algorithm, value in latency.items():
                mine = part[part["algorithm"] == algorithm].iloc[0]
                note = f"99 % {mine['latency_p99']:.0f} ns; accepted {mine['accepted']:.3f}"
                note += f"; over Q-adaptive {value / latency['Q-adaptive']:.3g}"
                found.append(Comparison(f"mean latency, {name}, {algorithm}", "ns", None, float(value), note))
    return found


def _compare_scale(data: pd.DataFrame, options: Options) -> list[Comparison]:
    found = []
    hosts = int(data["hosts"].iloc[0])
    for pattern, (load, papers) in _SCALE.items():
        part = data[data["pattern"] == pattern]
        latency = part.groupby("algorithm")["latency"].mean()
        for algorithm in [name for name in latency.index if name != "Q-adaptive"]:
            ratio = float(latency[algorithm] / latency["Q-adaptive"])
            note = f"load {load}; {runs.spread(part[part['algorithm'] == algorithm]['latency'])} ns"
            if hosts != 2550:
                note = f"{hosts} hosts in place of 2550: {ratio:.3g}; measured with --full"
            ours = ratio if hosts == 2550 else None
            name = f"mean latency, {pattern}, {algorithm} over Q-adaptive"
            found.append(Comparison(name, "", papers.get(algorithm), ours, note))
        wrong, order = _orders(latency, pattern)
        note = f"{hosts} hosts: {order}"
        claim = "; ".join(f"{', '.join(belows)} below {', '.join(aboves)}" for belows, aboves in _ORDERS[pattern])
        ours = len(wrong) if hosts == 2550 else None
        found.append(Comparison(f"orderings that differ, {pattern}", "", 0, ours, note, claim=claim))
    return found


REPRODUCTIONS: Sequence[Reproduction] = (
    Reproduction(
        "qadaptive.fig8",
        "How Q-adaptive follows steps of the load",
        f"{runs.SOURCE}, figure 8",
        (
            *runs.ASSUMPTIONS,
            "each load for a third of the run; converged: all later bins within 10 % of the mean of the last quarter",
        ),
        _step_points,
        _steps,
        _compare_steps,
        _draw_steps,
        parallel=True,
    ),
    Reproduction(
        "qadaptive.fig9",
        "Latency on 2550 hosts, patterns of HPC programs too",
        f"{runs.SOURCE}, figure 9",
        (
            *runs.ASSUMPTIONS,
            "loads are not stated: UR and ADV+1 as in figure 6, stencil and neighbours 0.8, all-to-all 0.5",
            "random neighbours: 6 to 20 packets at once, each to a host drawn anew, then a pause",
        ),
        _scale_points,
        runs.run_point,
        _compare_scale,
        lambda data, options: runs.draw_latencies(data),
        parallel=True,
    ),
    Reproduction(
        "qadaptive.patterns",
        "Patterns of figure 9 at other loads, defined otherwise",
        f"{runs.SOURCE}, figure 9",
        (
            *runs.ASSUMPTIONS,
            "rounds: a packet for every partner at once, then a pause; once: partners are drawn at the beginning",
        ),
        _otherwise_points,
        runs.run_point,
        _compare_otherwise,
        lambda data, options: runs.draw_latencies(
            data.assign(pattern=data["pattern"] + " " + data["load"].astype(str))
        ),
        parallel=True,
    ),
)
