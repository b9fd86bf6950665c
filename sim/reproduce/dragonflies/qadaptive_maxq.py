"""Seed 001, section 2.3.2: Q-routing on a dragonfly, minimal after maxQ routers."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from hopforge.model.output.plots import Line, draw_lines, new_figure, style_axes
from hopforge.sim.reproduce.dragonflies import runs
from hopforge.sim.reproduce.registry import Comparison, Options, Point, Reproduction, Row, integer

#: values of maxQ
_MOST = (1, 2, 3, 5, 8, 12)
#: hosts → pattern → load; the second ADV has the shift h, whose ways share one link in each intermediate group
_CASES = {
    72: {"UR": 0.8, "ADV+1": 0.45, "ADV+2": 0.45},
    1056: {"UR": 0.8, "ADV+1": 0.4, "ADV+4": 0.4},
}
_TIMES = {72: {"warmup_us": 150.0, "measure_us": 100.0}, 1056: {"warmup_us": 150.0, "measure_us": 50.0}}


def _points(options: Options) -> list[Point]:
    hosts, seeds = (1056, 1) if options.full else (72, 3)
    return [
        {**runs.make_point(hosts, "Q-routing", pattern, load, options.seed + k, _TIMES[hosts]), "max_q": most}
        for pattern, load in _CASES[hosts].items()
        for most in _MOST
        for k in range(seeds)
    ]


def _run(point: Point, options: Options) -> list[Row]:
    most = integer(point, "max_q")
    # the VCs are those of the hops: maxQ, then the three of a minimal way
    return runs.measure(point, routing={"max_q": most}, router={"vcs": most + 3})


def _means(data: pd.DataFrame, pattern: str) -> pd.Series:
    return data[data["pattern"] == pattern].groupby("max_q")["accepted"].mean()


def _compare(data: pd.DataFrame, options: Options) -> list[Comparison]:
    uniform, near, far = data["pattern"].unique()
    found = []
    means = {pattern: _means(data, pattern) for pattern in (uniform, near, far)}
    text = "; ".join(f"{pattern}: best at maxQ {means[pattern].idxmax()}" for pattern in means)
    best = float(_MOST[int(means[near].argmax())] - _MOST[int(means[uniform].argmax())])
    found.append(
        Comparison("best maxQ of ADV+1 less that of UR", "", None, best, text, "UR small, ADV+i larger values")
    )
    worst = means[near] - means[far]
    kept = f"{int((worst > 0).sum())} of {len(worst)} values"
    found.append(
        Comparison(
            f"values of maxQ at which {far} accepts less than {near}", "%", 100.0, 100.0 * float((worst > 0).mean()),
            f"{kept}; accepted traffic", "",
        )
    )  # fmt: skip
    drop = 100 * (1 - float(means[uniform].iloc[-1] / means[uniform].iloc[0]))
    found.append(
        Comparison(
            f"throughput lost from maxQ {_MOST[0]} to {_MOST[-1]}, UR", "%", None, drop, "accepted traffic",
            "large maxQ: large latency, low throughput",
        )
    )  # fmt: skip
    for pattern in means:
        part = data[data["pattern"] == pattern]
        for most in _MOST:
            one = part[part["max_q"] == most]
            note = (
                f"{int(one['hosts'].iloc[0])} hosts, load {float(one['load'].iloc[0])}; {one['latency'].mean():.0f} ns"
            )
            note += f", {one['hops'].mean():.2f} hops; {runs.spread(100 * one['accepted'])}"
            ours = 100 * float(one["accepted"].mean())
            found.append(Comparison(f"throughput, {pattern}, maxQ {most}", "%", None, ours, note))
    return found


def _draw(data: pd.DataFrame, options: Options) -> Figure:
    figure, panels = new_figure(panels=2)
    texts = {"accepted": "accepted of the injection bandwidth", "latency": "mean latency (ns)"}
    for axes, (column, text) in zip(panels, texts.items(), strict=True):
        title = f"Q-routing, {int(data['hosts'].iloc[0])} hosts"
        style_axes(axes, title=title, x_label="maxQ", y_label=text, log_y=column == "latency", x_ticks=list(_MOST))
        lines = []
        for k, pattern in enumerate(data["pattern"].unique()):
            part = data[data["pattern"] == pattern]
            means = part.groupby("max_q")[column].mean()
            name = f"{pattern}, load {float(part['load'].iloc[0])}"
            lines.append(Line(name, means.index.to_numpy(), means.to_numpy(), k))
        draw_lines(axes, lines)
    return figure


REPRODUCTIONS: Sequence[Reproduction] = (
    Reproduction(
        "qadaptive.maxq",
        "Q-routing that goes minimal after maxQ routers",
        f"{runs.SOURCE}, section 2.3.2",
        (
            *runs.ASSUMPTIONS,
            "maxQ + 3 virtual channels, one for each hop; learning rate and exploration are the defaults of Q-routing",
            "72 hosts, three seeds: ADV+2 there is what ADV+4 is on 1056, ways of two groups meet on one link inside",
            "--full: 1056 hosts, 150 µs to warm up and 50 measured, one seed",
        ),
        _points,
        _run,
        _compare,
        _draw,
        parallel=True,
    ),
)
