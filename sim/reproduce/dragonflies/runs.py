"""Runs of the Q-adaptive paper's dragonflies (seed 001), which several figures share."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.special import stdtrit

from hopforge.model.config import Config
from hopforge.model.output.plots import draw_grouped_bars, new_figure, style_axes
from hopforge.sim.reproduce.registry import Options, Point, Row, integer, number
from hopforge.sim.run.simulation import Simulation
from hopforge.sim.run.time_series import run_series

#: hosts → hosts of a router, routers of a group, global links of a router
SHAPES = {72: (2, 4, 2), 1056: (4, 8, 4), 2550: (5, 10, 5)}
#: hosts → grid of the stencil; the last size is the length of a line of many-to-many
GRIDS = {72: (2, 4, 9), 1056: (4, 8, 33), 2550: (5, 10, 51)}
#: name in the paper → algorithm, virtual channels
ALGORITHMS = {
    "MIN": ("dragonfly_min", 2),
    "VALn": ("valiant_node", 4),
    "UGALg": ("ugal_group", 3),
    "UGALn": ("ugal_node", 4),
    "PAR": ("par", 5),
    "Q-adaptive": ("q_adaptive", 5),
    "Q-routing": ("q_routing", 4),
}
SOURCE = "seed 001"
ASSUMPTIONS = (
    "router of definitions/router-models.md: single-flit packets of 128 B, 32 ns each on a link, 20 packets per queue",
    "UR: all hosts alike, without the sender; a router decides about a packet when it becomes the first of its queue",
)


def pattern_keys(pattern: str, hosts: int) -> dict[str, Any]:
    """Section `traffic` of a pattern.

    UR, ADV+i, stencil, many_to_many, random_neighbours (in rounds); or stencil_rounds, many_to_many_rounds,
    random_neighbours_once.
    """
    if pattern == "UR":
        return {}
    if pattern.startswith("ADV+"):
        return {"pattern": "adversarial", "shift": int(pattern.removeprefix("ADV+"))}
    name = pattern.removesuffix("_rounds").removesuffix("_once")
    own: dict[str, Any] = {
        "stencil": {"grid": GRIDS[hosts]},
        "many_to_many": {"line": GRIDS[hosts][-1]},
        "random_neighbours": {} if pattern.endswith("_once") else {"partners": "each_round"},
    }
    rounds = pattern.endswith("_rounds") or pattern == "random_neighbours"
    return {"pattern": name} | own[name] | ({"source": "rounds"} if rounds else {})


def study_config(
    hosts: int, algorithm: str, pattern: str, load: float, warmup_us: float, measure_us: float, **changes: Any
) -> Config:
    """Return the configuration of one run.

    Parameters
    ----------
    hosts : int
        One of `SHAPES`.
    algorithm, pattern : str
        Of `ALGORITHMS`; see `pattern_keys`.
    load : float
        Share of the injection bandwidth.
    warmup_us, measure_us : float
        Simulated time.
    changes : dict
        Sections to add, or keys to add to sections.
    """
    p, a, h = SHAPES[hosts]
    name, vcs = ALGORITHMS[algorithm]
    sections: dict[str, Any] = {
        "name": "study",
        "topology": {"kind": "dragonfly", "p": p, "a": a, "h": h},
        "address": {"chunk_bits": 4},
        "router": {"model": "input_output_queued", "vcs": vcs, "buffer_flits": 20, "output_buffer_flits": 20},
        "routing": {"algorithm": name} | ({"ejection": "class"} if name == "dragonfly_min" else {}),
        "traffic": {"source": "interval", "include_self": False} | pattern_keys(pattern, hosts),
        "simulation": {
            "load": load, "warmup_us": warmup_us, "measure_us": measure_us, "precision": 1e-9, "series_bins": 80,
        },
    }  # fmt: skip
    for section, keys in changes.items():
        sections[section] = sections.get(section, {}) | keys
    return Config.model_validate(sections)


def make_point(hosts: int, algorithm: str, pattern: str, load: float, seed: int, times: dict[str, float]) -> Point:
    """Return the point that `measure` and `study_config` understand; `times`: warmup_us and measure_us."""
    return {"hosts": hosts, "algorithm": algorithm, "pattern": pattern, "load": load, "seed": seed, **times}


def measure(point: Point, **changes: Any) -> list[Row]:
    """Run a point; latencies in ns, hops between routers."""
    config = study_config(
        integer(point, "hosts"), str(point["algorithm"]), str(point["pattern"]), number(point, "load"),
        number(point, "warmup_us"), number(point, "measure_us"), **changes,
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


def run_point(point: Point, options: Options) -> list[Row]:
    """Measure a point as it stands."""
    return measure(point)


def run_bins(point: Point, load: float, **simulation: Any) -> tuple[list[Row], list[float | None]]:
    """Run from the empty network in bins of time.

    Parameters
    ----------
    point : Point
        hosts, pattern, measure_us, seed; algorithm (Q-adaptive if there is none).
    load : float
        At the beginning.
    simulation : dict
        Keys to add to section `simulation`.

    Returns
    -------
    list of Row
        For each bin: the point, and time (µs), load, latency (ns), accepted; with failures also the packets that they
        cost (lost), and those that hosts kept and sent again (kept).
    list of float
        For each part with one load, and from each failure on: after how many µs the latency converged, None: it did
        not.
    """
    config = study_config(
        integer(point, "hosts"), str(point.get("algorithm", "Q-adaptive")), str(point["pattern"]), load, 1.0,
        number(point, "measure_us"), simulation=simulation,
    )  # fmt: skip
    found = run_series(Simulation(config, load, integer(point, "seed")), lambda _done, _all: None)
    rows: list[Row] = [
        {**point, **{key: float(row[key]) for key in ("time", "load", "latency", "accepted")}}
        for row in found.bins.to_dict("records")
    ]
    if found.failures is not None:
        table = found.failures.table()
        counts = {"lost": int(table["packets_lost"].sum()), "kept": int(table["packets_set_aside"].sum())}
        rows = [{**row, **counts} for row in rows]
    return rows, [None if np.isnan(after) else after for _, after in found.converged]


def draw_latencies(data: pd.DataFrame) -> Figure:
    """Draw mean, 95th and 99th percentile of every algorithm, a panel for each pattern."""
    patterns = list(data["pattern"].unique())
    figure, panels = new_figure(panels=len(patterns))
    for axes, pattern in zip(panels, patterns, strict=True):
        part = data[data["pattern"] == pattern]
        means = part.groupby("algorithm")[["latency", "latency_p95", "latency_p99"]].mean() / 1000
        where = f"load {float(part['load'].iloc[0])}, {int(part['hosts'].iloc[0])} hosts"
        style_axes(axes, title=f"{pattern.replace('_', ' ')}, {where}", x_label="", y_label="latency (µs)")
        columns = {"mean": "latency", "95 %": "latency_p95", "99 %": "latency_p99"}
        series = {text: means[key].tolist() for text, key in columns.items()}
        draw_grouped_bars(axes, groups=[str(name) for name in means.index], series=series)
    return figure


def spread(values: Sequence[float] | pd.Series) -> str:
    """Say how many seeds there are, and the 95 % interval of their mean (Student).

    Examples
    --------
    >>> spread([1.0, 2.0, 3.0])
    '3 seeds, 95 % interval ± 2.5'
    >>> spread([1.0]), spread([])
    ('one seed', 'measured with --full')
    """
    count = len(values)
    if count == 0:
        return "measured with --full"
    if count == 1:
        return "one seed"
    half = float(stdtrit(count - 1, 0.975) * np.std(values, ddof=1) / np.sqrt(count))
    return f"{count} seeds, 95 % interval ± {half:.2g}"
