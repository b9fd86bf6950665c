"""Seed 001, Q-adaptive (HPDC'21): throughput, hops and latencies on dragonflies of 1056 and 2550 hosts."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from hopforge.model.channel_loads import (
    adversarial_rates,
    minimal_loads,
    throughput_bound,
    uniform_rates,
    valiant_loads,
)
from hopforge.model.config import Config
from hopforge.model.config.lookup import AddressConfig
from hopforge.model.config.topology import DragonflyConfig
from hopforge.model.plots import Line, draw_grouped_bars, draw_lines, new_figure, style_axes
from hopforge.model.simulation import Simulation
from hopforge.model.time_series import run_series
from hopforge.model.topology import build
from hopforge.sim.reproduce.registry import Comparison, Options, Point, Reproduction, Row, integer, number

SHAPES = {72: (2, 4, 2), 1056: (4, 8, 4), 2550: (5, 10, 5)}
#: name in the paper → algorithm, virtual channels
ALGORITHMS = {
    "MIN": ("dragonfly_min", 2),
    "VALn": ("valiant_node", 4),
    "UGALg": ("ugal_group", 3),
    "UGALn": ("ugal_node", 4),
    "PAR": ("par", 5),
    "Q-adaptive": ("q_adaptive", 5),
}
_ASSUMPTIONS = (
    "router of docs/router-models.md: single-flit packets of 128 B, 32 ns each on a link, 20 packets per queue",
    "UR: all hosts alike, without the sender; a router decides about a packet when it becomes the first of its queue",
)
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
#: latency at UR 0.8 over that of Q-adaptive: mean, 99th percentile
_RATIOS = {"UGALg": (3.43, 5.92), "UGALn": (2.59, 3.82), "PAR": (5.22, 18.18)}
_BOUNDS: dict[str, tuple[float, float]] = {
    "UR MIN": (1.015, 1.010),
    "ADV MIN": (0.031, 0.020),
    "ADV+1 VALg": (0.484, 0.490),
    "ADV+1 VALn": (0.484, 0.490),
    "ADV+h VALg": (0.194, 0.163),
    "ADV+h VALn": (0.484, 0.490),
}


def study_config(hosts: int, algorithm: str, pattern: str, load: float, warmup_us: float, measure_us: float) -> Config:
    """Return the configuration of one run; `pattern`: UR or ADV+i."""
    p, a, h = SHAPES[hosts]
    name, vcs = ALGORITHMS[algorithm]
    traffic: dict[str, Any] = {"source": "interval", "include_self": False}
    if pattern.startswith("ADV+"):
        traffic |= {"pattern": "adversarial", "shift": int(pattern.removeprefix("ADV+"))}
    return Config.model_validate(
        {
            "name": "study",
            "topology": {"kind": "dragonfly", "p": p, "a": a, "h": h},
            "address": {"chunk_bits": 4},
            "router": {"model": "input_output_queued", "vcs": vcs, "buffer_flits": 20, "output_buffer_flits": 20},
            "routing": {"algorithm": name} | ({"ejection": "class"} if name == "dragonfly_min" else {}),
            "traffic": traffic,
            "simulation": {
                "load": load, "warmup_us": warmup_us, "measure_us": measure_us, "precision": 1e-9, "series_bins": 80,
            },
        }
    )  # fmt: skip


def _run(point: Point, _options: Options) -> list[Row]:
    config = study_config(
        integer(point, "hosts"), str(point["algorithm"]), str(point["pattern"]), number(point, "load"),
        number(point, "warmup_us"), number(point, "measure_us"),
    )  # fmt: skip
    found = Simulation(config, number(point, "load"), integer(point, "seed")).run()
    ns = found.cycle_ns
    return [
        {
            **point, "accepted": found.accepted, "hops": found.hops - 1, "latency": found.latency * ns,
            "latency_p95": found.latency_p95 * ns, "latency_p99": found.latency_p99 * ns,
            "derouted_share": found.derouted_share, "cpu_seconds": found.cpu_seconds,
        }
    ]  # fmt: skip


def _times(algorithm: str, *, full: bool) -> dict[str, float]:
    """Warm-up and measurement in µs; those that learn need longer."""
    if not full:
        return {"warmup_us": 60.0, "measure_us": 40.0}
    return {"warmup_us": 600.0 if algorithm == "Q-adaptive" else 300.0, "measure_us": 200.0}


def _point(hosts: int, algorithm: str, pattern: str, load: float, seed: int, times: dict[str, float]) -> Point:
    return {"hosts": hosts, "algorithm": algorithm, "pattern": pattern, "load": load, "seed": seed, **times}


def _throughput_points(options: Options) -> list[Point]:
    return [
        _point(1056, algorithm, pattern, load, options.seed + k, _times(algorithm, full=options.full))
        for algorithm, pattern, load in _THROUGHPUT
        if options.full or (algorithm, pattern, load) in _QUICK
        for k in range(2 if options.full else 1)
    ]


def _part(data: pd.DataFrame, algorithm: str, pattern: str, load: float) -> pd.DataFrame:
    return data[(data["algorithm"] == algorithm) & (data["pattern"] == pattern) & (data["load"] == load)]


def _spread(values: pd.Series) -> str:
    """Seeds and how far they lie apart."""
    if len(values) == 0:
        return "measured with --full"
    if len(values) == 1:
        return "one seed"
    return f"{len(values)} seeds, ± {float(values.max() - values.min()) / 2:.2g}"


def _compare_throughput(data: pd.DataFrame, options: Options) -> list[Comparison]:
    found = []
    for (algorithm, pattern, load), (paper, check) in _THROUGHPUT.items():
        part = _part(data, algorithm, pattern, load)
        ours = 100 * float(part["accepted"].mean()) if len(part) else None
        note = f"load {load}; {_spread(100 * part['accepted'])}; our earlier model {check}"
        found.append(Comparison(f"{pattern} {algorithm}, throughput", "%", paper, ours, note))
    for (algorithm, pattern, load), paper in _HOPS.items():
        part = _part(data, algorithm, pattern, load)
        ours = float(part["hops"].mean()) if len(part) else None
        found.append(Comparison(f"{pattern} {algorithm}, hops", "", paper, ours, _spread(part["hops"])))
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
    times = {"warmup_us": 600.0, "measure_us": 300.0} if options.full else {"warmup_us": 200.0, "measure_us": 200.0}
    return [
        _point(hosts, algorithm, "UR", 0.8, options.seed + k, times)
        for algorithm in ("MIN", "UGALg", "UGALn", "PAR", "Q-adaptive")
        for k in range(2 if options.full else 1)
    ]


def _compare_latency(data: pd.DataFrame, options: Options) -> list[Comparison]:
    means = data.groupby("algorithm")[["latency", "latency_p99"]].mean()
    hosts = int(data["hosts"].iloc[0])
    note = "2 seeds" if hosts == 1056 else "72 hosts in place of 1056; measured with --full"
    found = []
    for algorithm, papers in _RATIOS.items():
        for paper, key, text in zip(papers, ("latency", "latency_p99"), ("mean", "99 %"), strict=True):
            ratio = float(means[key][algorithm]) / float(means[key]["Q-adaptive"])
            ours = ratio if hosts == 1056 else None
            said = note if hosts == 1056 else f"{note}; here {ratio:.3g}"
            found.append(Comparison(f"{text} latency, {algorithm} over Q-adaptive", "", paper, ours, said))
    for algorithm in ("Q-adaptive", "MIN"):
        for key, text in (("latency", "mean"), ("latency_p99", "99 %")):
            ours = float(means[key][algorithm])
            found.append(Comparison(f"{text} latency, {algorithm}", "ns", None, ours, f"{hosts} hosts, UR 0.8"))
    return found


def _draw_latency(data: pd.DataFrame, options: Options) -> Figure:
    means = data.groupby("algorithm")[["latency", "latency_p95", "latency_p99"]].mean() / 1000
    figure, (axes,) = new_figure()
    style_axes(axes, title=f"Latency at UR 0.8, {int(data['hosts'].iloc[0])} hosts", x_label="", y_label="µs")
    columns = {"mean": "latency", "95 %": "latency_p95", "99 %": "latency_p99"}
    series = {text: means[key].tolist() for text, key in columns.items()}
    draw_grouped_bars(axes, groups=[str(name) for name in means.index], series=series)
    return figure


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
    return [
        {"hosts": hosts, "pattern": pattern, "load": load, "measure_us": total, "seed": options.seed}
        for pattern, load in (("UR", 0.8), ("ADV+1", 0.45 if options.full else 0.35))
    ]


def _series(point: Point, options: Options) -> list[Row]:
    load = number(point, "load")
    config = study_config(
        integer(point, "hosts"), "Q-adaptive", str(point["pattern"]), load, 1.0, number(point, "measure_us")
    )
    found = run_series(Simulation(config, load, integer(point, "seed")), lambda _done, _all: None)
    after = found.converged[0][1]
    return [
        {
            **point, "time": float(row["time"]), "latency": float(row["latency"]), "accepted": float(row["accepted"]),
            "converged_us": None if np.isnan(after) else after,
        }
        for row in found.bins.to_dict("records")
    ]  # fmt: skip


def _compare_series(data: pd.DataFrame, options: Options) -> list[Comparison]:
    found = []
    for pattern in data["pattern"].unique():
        part = data[data["pattern"] == pattern]
        after = part["converged_us"].iloc[0]
        ours = None if after is None or pd.isna(after) else float(after)
        text = f"{int(part['hosts'].iloc[0])} hosts, load {float(part['load'].iloc[0])}"
        if ours is None:
            text += "; did not converge in the run"
        found.append(Comparison(f"convergence, {pattern}", "µs", None, ours, text, claim="within 500 µs"))
    return found


def _draw_series(data: pd.DataFrame, options: Options) -> Figure:
    figure, (axes,) = new_figure()
    style_axes(axes, title="Q-adaptive from an empty network", x_label="time (µs)", y_label="mean latency (ns)")
    lines = []
    for k, pattern in enumerate(data["pattern"].unique()):
        part = data[data["pattern"] == pattern]
        lines.append(Line(str(pattern), part["time"], part["latency"], k, marked=False))
    draw_lines(axes, lines)
    return figure


_SOURCE = "seed 001"

REPRODUCTIONS: Sequence[Reproduction] = (
    Reproduction(
        "qadaptive.fig5",
        "Throughput and hops on the dragonfly of 1056 hosts",
        f"{_SOURCE}, figure 5",
        (
            *_ASSUMPTIONS,
            "60 µs to warm up and 40 µs measured; --full: 300 (Q-adaptive: 600) and 200 µs, two seeds, minutes a run",
        ),
        _throughput_points,
        _run,
        _compare_throughput,
        _draw_throughput,
        parallel=True,
    ),
    Reproduction(
        "qadaptive.fig6",
        "Latency at uniform load 0.8",
        f"{_SOURCE}, figure 6 and section 5.4",
        _ASSUMPTIONS,
        _latency_points,
        _run,
        _compare_latency,
        _draw_latency,
        parallel=True,
    ),
    Reproduction(
        "qadaptive.fig7",
        "How long Q-adaptive learns",
        f"{_SOURCE}, figure 7",
        (*_ASSUMPTIONS, "converged: all later bins within 10 % of the mean latency of the last quarter"),
        _series_points,
        _series,
        _compare_series,
        _draw_series,
        parallel=True,
    ),
    Reproduction(
        "qadaptive.bounds",
        "Throughput that the fullest channel of a dragonfly allows",
        f"{_SOURCE}; spec dragonfly.md",
        ("absolute arrangement of the global links",),
        _bound_points,
        _bound,
        _compare_bounds,
        _draw_bounds,
    ),
)
