"""η of the profit: what the weight of the path's length does to sustained load, lifetimes and detours."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from hopforge.model.output.plots import Line, draw_lines, new_figure, style_axes
from hopforge.sim.packet.network import PacketNetwork
from hopforge.sim.packet.saturation import find_saturation
from hopforge.sim.packet.settings import DEFAULT_ETA
from hopforge.sim.packet.simulation import run_packets
from hopforge.sim.reproduce.registry import Comparison, Options, Point, Reproduction, Row, integer, number
from hopforge.sim.reproduce.tori.outflank import ALGORITHMS, PAPER, PATTERNS, cell_config, message_count, search_rows

_K = 8
#: 0: the length of a path does not count; beyond about ten it decides alone
ETAS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 8.0)
#: load at which lifetimes are compared: sustained with every η
LOAD = 0.2
_PATTERNS = ("butterfly_stages", "uniform")
_ANSWERS = "simulator"


def _points(options: Options) -> list[Point]:
    return [
        {
            "answers": answers, "pattern": pattern, "algorithm": algorithm, "eta": eta, "seed": options.seed,
            "messages": message_count(_K, pattern, options),
        }
        for answers in ((_ANSWERS, "definition") if options.full else (_ANSWERS,))
        for pattern in (PATTERNS if options.full else _PATTERNS)
        for algorithm in ("por", "ofr")
        for eta in ETAS
    ]  # fmt: skip


def measure_eta(point: Point, _options: Options) -> list[Row]:
    """Find γ* with one η, a row for each load that was tried; beside it lifetime and detours at load `LOAD`."""
    answers, pattern, algorithm = (str(point[key]) for key in ("answers", "pattern", "algorithm"))
    config = cell_config(pattern, algorithm, _K, answers, integer(point, "messages"), eta=number(point, "eta"))
    seed = integer(point, "seed")
    at_load = run_packets(PacketNetwork(config, LOAD, seed))
    beside = {"lifetime_at_load_ns": at_load.lifetime_ns, "derouted_at_load": at_load.outflanked + at_load.wrapped}
    return [{**row, **beside} for row in search_rows(point, find_saturation(config, seed))]


def _searches(data: pd.DataFrame) -> pd.DataFrame:
    """Keep a row of every search."""
    return data.groupby(["answers", "pattern", "algorithm", "eta"], sort=False).first().reset_index()


def _compare(data: pd.DataFrame, _options: Options) -> list[Comparison]:
    result = []
    for row in _searches(data).to_dict("records"):
        pattern, algorithm, eta = str(row["pattern"]), str(row["algorithm"]), float(row["eta"])
        paper = PAPER[_K][pattern][ALGORITHMS.index(algorithm)] if eta == DEFAULT_ETA[algorithm] else None
        note = (
            f"answers: {row['answers']}; at load {LOAD:g}: lifetime {row['lifetime_at_load_ns']:.0f} ns, "
            f"{row['derouted_at_load']:.1%} on detours"
        )
        name = f"γ*, {PATTERNS[pattern]}, {algorithm.upper()}, η = {eta:g}"
        result.append(Comparison(name, "", paper, float(row["saturation"]), note))
    return result


def _draw(data: pd.DataFrame, _options: Options) -> Figure:
    figure, panels = new_figure(panels=3, width_in=5.0)
    found = _searches(data)
    found = found[found["answers"] == _ANSWERS]
    shown = (
        ("saturation", "Largest sustained load", "γ*"),
        ("lifetime_at_load_ns", f"Lifetime at load {LOAD:g}", "mean lifetime (ns)"),
        ("derouted_at_load", f"Detours at load {LOAD:g}", "share of packets"),
    )
    for axes, (column, title, label) in zip(panels, shown, strict=True):
        style_axes(axes, title=f"{title}, k = {_K}", x_label="η", y_label=label)
        lines = [
            Line(f"{PATTERNS[str(pattern)]}, {str(algorithm).upper()}", part["eta"], part[column], k)
            for k, ((pattern, algorithm), part) in enumerate(found.groupby(["pattern", "algorithm"], sort=False))
        ]
        draw_lines(axes, lines)
    return figure


REPRODUCTIONS: Sequence[Reproduction] = (
    Reproduction(
        "outflank.eta",
        "Sustained load, lifetimes and detours against η, k = 8",
        "not in a paper (seed 003 sets η = 1 for POR and 2 for OFR, remark 3); issue 19",
        (
            "answers of the author's simulator (--full: of the definition, too, and all patterns of table 2)",
            "18 messages (--full: 32) of 96 packets; γ* in steps of 0.05",
        ),
        _points,
        measure_eta,
        _compare,
        _draw,
        parallel=True,
    ),
)
