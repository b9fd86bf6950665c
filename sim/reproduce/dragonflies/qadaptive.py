"""Seed 001, Q-adaptive (HPDC'21): throughput, hops and latencies on dragonflies of 1056 and 2550 hosts."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from hopforge.model.config.lookup import AddressConfig
from hopforge.model.config.topology import DragonflyConfig
from hopforge.model.output.plots import Line, draw_grouped_bars, draw_lines, new_figure, style_axes
from hopforge.model.topology import build
from hopforge.sim.hits.channel_loads import (
    adversarial_rates,
    minimal_loads,
    throughput_bound,
    uniform_rates,
    valiant_loads,
)
from hopforge.sim.reproduce.dragonflies.runs import (
    ASSUMPTIONS,
    SHAPES,
    SOURCE,
    draw_latencies,
    make_point,
    run_bins,
    run_point,
    spread,
)
from hopforge.sim.reproduce.registry import Comparison, Options, Point, Reproduction, Row, integer, number

#: runs of each point with --full
SEEDS = 3
#: (algorithm, pattern, load): throughput of the paper in % and of our independent earlier check
_THROUGHPUT: dict[tuple[str, str, float], tuple[float, float]] = {
    ("MIN", "UR", 1.0): (91.54, 92.25),
    ("Q-adaptive", "UR", 1.0): (88.25, 87.40),
    ("UGALg", "UR", 1.0): (81.65, 81.22),
    ("UGALn", "UR", 1.0): (77.74, 76.93),
    ("PAR", "UR", 1.0): (79.93, 78.89),
    ("Q-adaptive", "ADV+1", 0.5): (48.20, 48.32),
    ("VALn", "ADV+1", 0.5): (45.2, 44.97),
    ("UGALg", "ADV+1", 0.5): (43.05, 43.41),
    ("PAR", "ADV+1", 0.5): (45.11, 44.80),
    ("UGALn", "ADV+1", 0.4): (40.00, 40.0),
    ("Q-adaptive", "ADV+4", 0.5): (44.93, 45.47),
    ("VALn", "ADV+4", 0.5): (46.62, 46.59),
}
_HOPS = {("Q-adaptive", "ADV+1", 0.5): 3.06, ("Q-adaptive", "ADV+4", 0.5): 4.27}
#: what the default measures of them, in seconds of processor time each
_QUICK = {("MIN", "UR", 1.0), ("UGALg", "ADV+1", 0.5), ("VALn", "ADV+4", 0.5)}
#: pattern, load: latency over that of Q-adaptive by algorithm: mean (None: not in the paper), 99th percentile
_RATIOS: dict[tuple[str, float], dict[str, tuple[float | None, float]]] = {
    ("UR", 0.8): {"UGALg": (3.43, 5.92), "UGALn": (2.59, 3.82), "PAR": (5.22, 18.18)},
    ("ADV+1", 0.45): {"UGALg": (None, 3.12), "UGALn": (None, 12.95)},
    ("ADV+4", 0.45): {"UGALg": (None, 8.83), "UGALn": (None, 6.89)},
}
_BOUNDS: dict[str, tuple[float, float]] = {
    "UR MIN": (1.015, 1.010),
    "ADV MIN": (0.031, 0.020),
    "ADV+1 VALg": (0.484, 0.490),
    "ADV+1 VALn": (0.484, 0.490),
    "ADV+h VALg": (0.194, 0.163),
    "ADV+h VALn": (0.484, 0.490),
}


def _times(algorithm: str, *, full: bool) -> dict[str, float]:
    """Warm-up and measurement in µs; those that learn need longer."""
    if not full:
        return {"warmup_us": 60.0, "measure_us": 40.0}
    return {"warmup_us": 600.0 if algorithm == "Q-adaptive" else 250.0, "measure_us": 100.0}


def _throughput_points(options: Options) -> list[Point]:
    return [
        make_point(1056, algorithm, pattern, load, options.seed + k, _times(algorithm, full=options.full))
        for algorithm, pattern, load in _THROUGHPUT
        if options.full or (algorithm, pattern, load) in _QUICK
        for k in range(SEEDS if options.full else 1)
    ]


def _part(data: pd.DataFrame, algorithm: str, pattern: str, load: float) -> pd.DataFrame:
    return data[(data["algorithm"] == algorithm) & (data["pattern"] == pattern) & (data["load"] == load)]


def _compare_throughput(data: pd.DataFrame, options: Options) -> list[Comparison]:
    found = []
    for (algorithm, pattern, load), (paper, check) in _THROUGHPUT.items():
        part = _part(data, algorithm, pattern, load)
        ours = 100 * float(part["accepted"].mean()) if len(part) else None
        note = f"load {load}; {spread(100 * part['accepted'])}; our earlier model {check}"
        found.append(Comparison(f"{pattern} {algorithm}, throughput", "%", paper, ours, note))
    for (algorithm, pattern, load), paper in _HOPS.items():
        part = _part(data, algorithm, pattern, load)
        ours = float(part["hops"].mean()) if len(part) else None
        found.append(Comparison(f"{pattern} {algorithm}, hops", "", paper, ours, spread(part["hops"])))
    learned, drawn = (_part(data, algorithm, "ADV+1", 0.5) for algorithm in ("Q-adaptive", "VALn"))
    if len(learned) and len(drawn):
        ours = float(drawn["hops"].mean() / learned["hops"].mean())
        found.append(Comparison("ADV+1, hops of VALn over those of Q-adaptive", "", 1.80, ours, spread(drawn["hops"])))
    return found


def _draw_throughput(data: pd.DataFrame, options: Options) -> Figure:
    figure, (axes,) = new_figure(width_in=8.0)
    style_axes(axes, title="Throughput, 1056 hosts", x_label="", y_label="% of the injection bandwidth")
    keys = [key for key in _THROUGHPUT if len(_part(data, *key))]
    groups = [f"{pattern}\n{algorithm}" for algorithm, pattern, _ in keys]
    ours = [100 * float(_part(data, *key)["accepted"].mean()) for key in keys]
    draw_grouped_bars(axes, groups=groups, series={"paper": [_THROUGHPUT[key][0] for key in keys], "ours": ours})
    return figure


def _latency_points(options: Options) -> list[Point]:
    hosts = 1056 if options.full else 72
    quick = {"warmup_us": 200.0, "measure_us": 200.0}
    return [
        make_point(
            hosts, algorithm, pattern, load, options.seed + k, _times(algorithm, full=True) if options.full else quick
        )
        for pattern, load in _RATIOS
        if options.full or pattern == "UR"
        for algorithm in ("MIN" if pattern == "UR" else "VALn", "UGALg", "UGALn", "PAR", "Q-adaptive")
        for k in range(SEEDS if options.full else 1)
    ]


def _compare_latency(data: pd.DataFrame, options: Options) -> list[Comparison]:
    hosts = int(data["hosts"].iloc[0])
    found = []
    for (pattern, load), papers in _RATIOS.items():
        part = data[data["pattern"] == pattern]
        means = part.groupby("algorithm")[["latency", "latency_p99"]].mean()
        for algorithm, pair in papers.items():
            for paper, key, text in zip(pair, ("latency", "latency_p99"), ("mean", "99 %"), strict=True):
                ours, note = None, "measured with --full"
                if len(part):
                    ratio = float(means[key][algorithm]) / float(means[key]["Q-adaptive"])
                    ours = ratio if hosts == 1056 else None
                    note = spread(part[part["algorithm"] == algorithm][key]) + " ns"
                    if hosts != 1056:
                        note = f"72 hosts in place of 1056: {ratio:.3g}; measured with --full"
                name = f"{text} latency at {pattern} {load}, {algorithm} over Q-adaptive"
                found.append(Comparison(name, "", paper, ours, note))
        for algorithm in ("Q-adaptive", "MIN", "VALn"):
            for key, text in (("latency", "mean"), ("latency_p99", "99 %")):
                values = part[part["algorithm"] == algorithm][key]
                if len(values):
                    note = f"{hosts} hosts; {spread(values)}"
                    ours = float(values.mean())
                    found.append(Comparison(f"{text} latency at {pattern} {load}, {algorithm}", "ns", None, ours, note))
    return found


def _bound_points(options: Options) -> list[Point]:
    return [{"hosts": hosts, "case": case} for hosts in (1056, 2550) for case in _BOUNDS]


def _bound(point: Point, options: Options) -> list[Row]:
    p, a, h = SHAPES[integer(point, "hosts")]
    topology = build(DragonflyConfig(kind="dragonfly", p=p, a=a, h=h), AddressConfig(chunk_bits=4))
    pattern, routing = str(point["case"]).split()
    rates = uniform_rates(topology) if pattern == "UR" else adversarial_rates(topology, h if pattern == "ADV+h" else 1)
    if routing == "MIN":
        load = minimal_loads(topology, rates)
    else:
        load = valiant_loads(topology, rates, to_router=routing == "VALn")
    return [{**point, "bound": throughput_bound(topology, load)}]


def _compare_bounds(data: pd.DataFrame, options: Options) -> list[Comparison]:
    return [
        Comparison(
            f"{case}, {hosts} hosts", "", _BOUNDS[case][k],
            float(data[(data["hosts"] == hosts) & (data["case"] == case)]["bound"].iloc[0]),
            "exact: all ways with their probabilities",
        )
        for k, hosts in enumerate((1056, 2550))
        for case in _BOUNDS
    ]  # fmt: skip


def _draw_bounds(data: pd.DataFrame, options: Options) -> Figure:
    figure, (axes,) = new_figure(width_in=7.0)
    style_axes(axes, title="Throughput that the fullest channel allows", x_label="", y_label="of the injection rate")
    part = data[data["hosts"] == 1056].set_index("case")["bound"]
    ours = [float(part[case]) for case in _BOUNDS]
    draw_grouped_bars(
        axes, groups=list(_BOUNDS), series={"paper": [pair[0] for pair in _BOUNDS.values()], "ours": ours}
    )
    return figure


def _series_points(options: Options) -> list[Point]:
    hosts, total = (1056, 900.0) if options.full else (72, 400.0)
    high = 0.45 if options.full else 0.35
    return [
        {"hosts": hosts, "pattern": pattern, "load": load, "measure_us": total, "seed": options.seed + k}
        for pattern, load in (("UR", 0.8), ("ADV+1", high), ("ADV+4", high))
        if options.full or pattern != "ADV+4"
        for k in range(SEEDS if options.full else 1)
    ]


def _series(point: Point, options: Options) -> list[Row]:
    rows, (after,) = run_bins(point, number(point, "load"))
    return [{**row, "converged_us": after} for row in rows]


def _compare_series(data: pd.DataFrame, options: Options) -> list[Comparison]:
    found = []
    for pattern in data["pattern"].unique():
        part = data[data["pattern"] == pattern]
        after = part.groupby("seed")["converged_us"].first()
        times = after.dropna().astype(float)
        text = f"{int(part['hosts'].iloc[0])} hosts, load {float(part['load'].iloc[0])}"
        text += f"; {spread(times)}" if len(times) else ""
        if len(times) < len(after):
            text += f"; {len(after) - len(times)} of {len(after)} runs did not converge"
        ours = float(times.mean()) if len(times) else None
        found.append(Comparison(f"convergence, {pattern}", "µs", None, ours, text, claim="within 500 µs"))
    return found


def _draw_series(data: pd.DataFrame, options: Options) -> Figure:
    figure, (axes,) = new_figure()
    style_axes(axes, title="Q-adaptive from an empty network", x_label="time (µs)", y_label="mean latency (ns)")
    lines = []
    for k, pattern in enumerate(data["pattern"].unique()):
        means = data[data["pattern"] == pattern].groupby("time")["latency"].mean()
        lines.append(Line(str(pattern), means.index.to_numpy(), means.to_numpy(), k, marked=False))
    draw_lines(axes, lines)
    return figure


REPRODUCTIONS: Sequence[Reproduction] = (
    Reproduction(
        "qadaptive.fig5",
        "Throughput and hops on the dragonfly of 1056 hosts",
        f"{SOURCE}, figure 5",
        (
            *ASSUMPTIONS,
            "60 µs to warm up and 40 µs measured; --full: 250 (Q-adaptive: 600) and 100 µs, three seeds",
        ),
        _throughput_points,
        run_point,
        _compare_throughput,
        _draw_throughput,
        parallel=True,
    ),
    Reproduction(
        "qadaptive.fig6",
        "Mean and tail latency under uniform and adversarial load",
        f"{SOURCE}, figure 6 and section 5.4",
        ASSUMPTIONS,
        _latency_points,
        run_point,
        _compare_latency,
        lambda data, options: draw_latencies(data),
        parallel=True,
    ),
    Reproduction(
        "qadaptive.fig7",
        "How long Q-adaptive learns",
        f"{SOURCE}, figure 7",
        (*ASSUMPTIONS, "converged: all later bins within 10 % of the mean latency of the last quarter"),
        _series_points,
        _series,
        _compare_series,
        _draw_series,
        parallel=True,
    ),
    Reproduction(
        "qadaptive.bounds",
        "Throughput that the fullest channel of a dragonfly allows",
        f"{SOURCE}; spec dragonfly.md",
        ("absolute arrangement of the global links",),
        _bound_points,
        _bound,
        _compare_bounds,
        _draw_bounds,
    ),
)
