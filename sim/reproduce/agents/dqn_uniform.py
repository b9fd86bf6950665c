"""Seed 000, DQN-Routing: uniform traffic at all loads (figures 4.6 and 4.7)."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from hopforge.model.output.plots import Line, draw_lines, new_figure, style_axes
from hopforge.sim.reproduce.agents.dqn_runs import ALGORITHMS, ASSUMPTIONS, SOURCE, torus_config
from hopforge.sim.reproduce.registry import Comparison, Options, Point, Reproduction, Row, integer, number
from hopforge.sim.run.simulation import Simulation

_LOADS = (0.2, 0.4, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9)
_REDUCED = (0.6, 0.8)
#: seeds that nothing was tuned on
_SEEDS = (6, 7, 8)
_FULL_SEEDS = "--full runs seeds 6, 7 and 8, whatever --seed says"
#: load from which on each is beyond saturation in the document: between the two, in %
_SATURATION = {"DOR": (70, 80), "star-channel": (80, 85), "DQN": (85, 90)}
#: share of the load that is accepted below saturation
_KEPT = 0.98


def _points(options: Options) -> list[Point]:
    loads, seeds = (_LOADS, _SEEDS) if options.full else (_REDUCED, (options.seed,))
    return [
        {
            "algorithm": algorithm, "load": load, "seed": seed,
            "warmup": (1_000_000 if algorithm == "DQN" else 200_000) if options.full else 30_000,
            "cycles": 300_000 if options.full else 20_000,
        }
        for algorithm in ALGORITHMS
        for load in loads
        for seed in seeds
    ]  # fmt: skip


def _measure(point: Point, options: Options) -> list[Row]:
    load, cycles = number(point, "load"), integer(point, "cycles")
    config = torus_config(
        str(point["algorithm"]),
        traffic={"include_self": False, "packet_range": (2, 258)},
        simulation={
            "load": load, "warmup_cycles": integer(point, "warmup"), "min_cycles": cycles, "max_cycles": cycles,
        },
    )  # fmt: skip
    run = Simulation(config, load, integer(point, "seed"))
    found = run.run()
    return [
        {
            **point, "accepted": found.accepted, "latency": found.latency, "network_latency": found.network_latency,
            "network_latency_std": found.network_latency_std, "network_latency_p99": found.network_latency_p99,
            "hops": found.hops - 1, "saturated": found.saturated,
        }
    ]  # fmt: skip


def _means(data: pd.DataFrame) -> pd.DataFrame:
    """One row per algorithm and load: means over seeds."""
    columns = ["accepted", "latency", "network_latency", "network_latency_std", "network_latency_p99", "hops"]
    return data.groupby(["algorithm", "load"], sort=True)[columns].mean().reset_index()


def _told(data: pd.DataFrame) -> str:
    cycles = f"{int(data['cycles'].iloc[0]):,} cycles after {int(data['warmup'].max()):,}"
    return f"{cycles} of learning; seeds {', '.join(map(str, sorted(data['seed'].unique())))}"


def _compare_latency(data: pd.DataFrame, options: Options) -> list[Comparison]:
    means = _means(data)
    found = []
    at = means[means["load"] == 0.8].set_index("algorithm")
    for rival, paper in (("star-channel", 0.52), ("DOR", 0.26)):
        note = _told(data) + (
            "; DOR is beyond saturation: its latency grows with the run" if rival == "DOR" else ""
        )  # fmt: skip
        for column, words in (("network_latency", "network latency"), ("latency", "latency with the host's queue")):
            ratio = float(at[column]["DQN"] / at[column][rival])
            paper_value = paper if column == "network_latency" else None
            found.append(Comparison(f"{words} at load .8, DQN over {rival}", "", paper_value, ratio, note))
    for row in means.to_dict("records"):
        name = f"network latency, {row['algorithm']}, load {row['load']:g}"
        note = f"standard deviation {row['network_latency_std']:.0f}, 99 % {row['network_latency_p99']:.0f}"
        note += f"; {row['hops']:.3f} hops; accepted {row['accepted']:.3f}"
        found.append(Comparison(name, "cycles", None, float(row["network_latency"]), note))
    return found


def _compare_accepted(data: pd.DataFrame, options: Options) -> list[Comparison]:
    means = _means(data)
    found = []
    for algorithm, (low, high) in _SATURATION.items():
        part = means[means["algorithm"] == algorithm]
        last, first = _bracket(part)
        loads = ", ".join(f"{row['load']:g}: {row['accepted']:.3f}" for row in part.to_dict("records"))
        note = f"saturates between {last:g} and {first:g} % ({_KEPT:.0%} of a load below are accepted); "
        note += f"accepted at {loads}"
        ours = None
        if options.full:  # the reduced run knows two loads, between which every range of the document lies
            ours = min(max(float(low), last), first)  # of our range, what is nearest to the document's
            note = f"the point of our range that is nearest to the document's; {note}"
        claim = f"{low} to {high}"
        found.append(Comparison(f"load at which it saturates, {algorithm}", "%", None, ours, note, claim=claim))
    return found


def _bracket(part: pd.DataFrame) -> tuple[float, float]:
    """Return the last load in % before the first that is lost, and this one; 0 or 100 where none was measured."""
    loads = part.sort_values("load")
    lost = loads[loads["accepted"] < _KEPT * loads["load"]]["load"]
    first = float(lost.min()) if len(lost) else 1.0
    kept = loads[loads["load"] < first]["load"] if len(lost) else loads["load"]
    return 100 * (float(kept.max()) if len(kept) else 0.0), 100 * first


def _draw(data: pd.DataFrame, column: str, label: str, *, only_kept: bool) -> Figure:
    means = _means(data)
    figure, (panel,) = new_figure()
    style_axes(panel, title="4×4 torus, uniform traffic", x_label="load (flits per host and cycle)", y_label=label)
    lines = []
    for k, algorithm in enumerate(ALGORITHMS):
        part = means[means["algorithm"] == algorithm]
        if only_kept:
            part = part[part["accepted"] >= 0.9 * part["load"]]
        lines.append(Line(algorithm, part["load"], part[column], k))
    draw_lines(panel, lines)
    return figure


REPRODUCTIONS: Sequence[Reproduction] = (
    Reproduction(
        "dqn.fig4.6",
        "Latency of DQN-Routing, uniform traffic",
        f"{SOURCE}, figure 4.6",
        (*ASSUMPTIONS, _FULL_SEEDS, "nothing was tuned; DQN has learned from the start of the run"),
        _points,
        _measure,
        _compare_latency,
        lambda data, options: _draw(data, "network_latency", "network latency (cycles)", only_kept=True),
        parallel=True,
    ),
    Reproduction(
        "dqn.fig4.7",
        "Accepted traffic of DQN-Routing, uniform",
        f"{SOURCE}, figure 4.7",
        (*ASSUMPTIONS, _FULL_SEEDS),
        _points,
        _measure,
        _compare_accepted,
        lambda data, options: _draw(data, "accepted", "accepted (flits per host and cycle)", only_kept=False),
        parallel=True,
    ),
)
