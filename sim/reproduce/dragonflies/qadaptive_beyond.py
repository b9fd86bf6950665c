"""Beyond seed 001: Q-adaptive and UGAL side by side where links have failed, and under bursts."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from hopforge.model.config.lookup import AddressConfig
from hopforge.model.config.simulation import FailedConfig
from hopforge.model.config.topology import DragonflyConfig
from hopforge.model.output.plots import Line, draw_lines, new_figure, style_axes
from hopforge.model.routing import RoutingError
from hopforge.model.routing.dragonflies.ways import need_links
from hopforge.model.topology import Topology, build
from hopforge.model.topology.failed import FailureError, without_failed
from hopforge.sim.reproduce.dragonflies.runs import ALGORITHMS, ASSUMPTIONS, SHAPES, make_point, measure, spread
from hopforge.sim.reproduce.registry import Comparison, Options, Point, Reproduction, Row, integer, number

_NAMES = ("UGALg", "UGALn", "PAR", "Q-adaptive")
#: shares of the links between groups that are down; mean lengths of bursts in packets
_SHARES, _BURSTS = (0.0, 0.03, 0.06, 0.12), (1.0, 10.0, 100.0, 1000.0)
_FAILURE_LOAD, _BURST_LOAD = 0.6, 0.4
#: tries to find failures that the algorithms can go around
_TRIES = 1000


def draw_failures(topology: Topology, share: float, seed: int) -> list[tuple[int, int]]:
    """Draw links between groups that fail, pairs of routers, so that every two groups keep a way.

    Raises
    ------
    RoutingError, FailureError
        None of many draws leaves one.
    """
    a = int(topology.params["a"])
    channels = topology.channels()
    far = (channels.src_router // a != channels.dst_router // a) & (channels.src_router < channels.dst_router)
    links = np.stack([channels.src_router[far], channels.dst_router[far]], axis=1)
    generator = np.random.default_rng((seed, 17))
    for attempt in range(_TRIES):
        chosen = links[np.sort(generator.choice(len(links), round(share * len(links)), replace=False))]
        pairs = [(int(x), int(y)) for x, y in chosen]
        try:
            need_links(without_failed(topology, FailedConfig(links=tuple(pairs))), "par", around=True)
        except (RoutingError, FailureError):
            if attempt == _TRIES - 1:
                raise
            continue
        break
    return pairs


def _failure_points(options: Options) -> list[Point]:
    return _points(options, "share", _SHARES, _FAILURE_LOAD)


def _burst_points(options: Options) -> list[Point]:
    return _points(options, "burst_packets", _BURSTS, _BURST_LOAD)


def _points(options: Options, key: str, values: Sequence[float], load: float) -> list[Point]:
    hosts, seeds = (1056, 3) if options.full else (72, 2)
    times = {"warmup_us": 400.0, "measure_us": 200.0} if options.full else {"warmup_us": 100.0, "measure_us": 60.0}
    return [
        {**make_point(hosts, algorithm, "UR", load, options.seed + k, times), key: value}
        for value in values
        for algorithm in _NAMES
        for k in range(seeds)
    ]


def _run_failures(point: Point, options: Options) -> list[Row]:
    p, a, h = SHAPES[integer(point, "hosts")]
    topology = build(DragonflyConfig(kind="dragonfly", p=p, a=a, h=h), AddressConfig(chunk_bits=4))
    pairs = draw_failures(topology, number(point, "share"), integer(point, "seed"))
    return [{**row, "links": len(pairs)} for row in measure(point, failed={"links": tuple(pairs)})]


def _run_bursts(point: Point, options: Options) -> list[Row]:
    burst = {"source": "on_off", "burst_cycles": number(point, "burst_packets"), "burst_load": 1.0}
    return measure(point, traffic=burst)


def _compare(data: pd.DataFrame, key: str, say: str) -> list[Comparison]:
    found = []
    for value in data[key].unique():
        part = data[data[key] == value]
        learned = part[part["algorithm"] == "Q-adaptive"]
        for name in _NAMES:
            mine = part[part["algorithm"] == name]
            note = f"{int(part['hosts'].iloc[0])} hosts, UR {float(part['load'].iloc[0])}; {spread(mine['latency'])} ns"
            if name != "Q-adaptive":
                ratio = float(mine["latency"].mean() / learned["latency"].mean())
                tail = float(mine["latency_p99"].mean() / learned["latency_p99"].mean())
                note += f"; over Q-adaptive {ratio:.3g}, 99 % {tail:.3g}"
            note += f"; accepted {float(mine['accepted'].mean()):.3f}"
            ours = float(mine["latency"].mean())
            found.append(Comparison(f"mean latency, {say.format(value)}, {name}", "ns", None, ours, note))
    return found


def _compare_failures(data: pd.DataFrame, options: Options) -> list[Comparison]:
    return _compare(data.assign(percent=100 * data["share"]), "percent", "{:.3g} % of the links between groups down")


def _compare_bursts(data: pd.DataFrame, options: Options) -> list[Comparison]:
    return _compare(data, "burst_packets", "bursts of {:.0f} packets")


def _draw(data: pd.DataFrame, key: str, label: str) -> Figure:
    figure, panels = new_figure(panels=2)
    for axes, column, text in zip(panels, ("latency", "latency_p99"), ("mean", "99th percentile"), strict=True):
        title = f"UR {float(data['load'].iloc[0])}, {int(data['hosts'].iloc[0])} hosts: {text}"
        style_axes(axes, title=title, x_label=label, y_label="latency (µs)", log_x=key == "burst_packets")
        lines = []
        for k, name in enumerate(_NAMES):
            means = data[data["algorithm"] == name].groupby(key)[column].mean() / 1000
            lines.append(Line(name, means.index.to_numpy(), means.to_numpy(), k))
        draw_lines(axes, lines)
    return figure


def _draw_failures(data: pd.DataFrame, options: Options) -> Figure:
    return _draw(data.assign(percent=100 * data["share"]), "percent", "links between groups that are down (%)")


def _draw_bursts(data: pd.DataFrame, options: Options) -> Figure:
    return _draw(data, "burst_packets", "mean length of a burst (packets)")


assert set(_NAMES) <= set(ALGORITHMS)
_SOURCE = "no paper: beyond seed 001"

REPRODUCTIONS: Sequence[Reproduction] = (
    Reproduction(
        "qadaptive.failures",
        "Learned and measured detours, links between groups down",
        _SOURCE,
        (*ASSUMPTIONS, "links that are down are drawn at random, so that every two groups keep a way over one more"),
        _failure_points,
        _run_failures,
        _compare_failures,
        _draw_failures,
        parallel=True,
    ),
    Reproduction(
        "qadaptive.bursts",
        "Learned and measured detours under bursts",
        _SOURCE,
        (*ASSUMPTIONS, "on/off sources: full rate inside a burst, source queues without a limit"),
        _burst_points,
        _run_bursts,
        _compare_bursts,
        _draw_bursts,
        parallel=True,
    ),
)
