"""Seed 000, DQN-Routing: a spiking neural network (table 4.1), and how agents learn on it (figures 4.4 and 4.5)."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from hopforge.model.output.plots import Line, draw_grouped_bars, draw_lines, new_figure, style_axes
from hopforge.sim.reproduce.agents.dqn_runs import ASSUMPTIONS, CYCLE_US, SOURCE, spikes_config
from hopforge.sim.reproduce.registry import Comparison, Options, Point, Reproduction, Row, integer, number
from hopforge.sim.run.program_run import ProgramMeasurement, run_program
from hopforge.sim.run.simulation import Simulation

#: Hz → mean, standard deviation, maximum of DOR and of DQN after pre-training, µs
_TABLE = {
    21: ((1.010, 0.508, 3.801), (1.006, 0.491, 4.729)),
    47: ((1.900, 1.487, 7.369), (1.861, 1.421, 8.101)),
    71: ((2.682, 2.429, 10.411), (2.618, 2.333, 11.270)),
    89: ((2.883, 2.678, 11.791), (2.832, 2.597, 12.270)),
    268: ((9.755, 10.511, 45.799), (9.672, 10.368, 41.810)),
    556: ((33.667, 25.985, 110.301), (31.290, 23.670, 124.154)),
}
_COLUMNS = {"mean": "network_latency", "standard deviation": "network_latency_std", "maximum": "network_latency_max"}
_PACKETS = "packets of at most 256 flits of 16 B without header and footer; a barrier after each burst, no time between"


def _table_points(options: Options) -> list[Point]:
    rates, steps = tuple(_TABLE), 400 if options.full else 40
    return [
        {"algorithm": algorithm, "rate_hz": rate, "steps": steps, "seed": options.seed}
        for algorithm in ("DOR", "star-channel", "DQN")
        for rate in rates
    ]


def _row(point: Point, variant: str, found: ProgramMeasurement) -> Row:
    values = {column: float(getattr(found, column)) * CYCLE_US for column in _COLUMNS.values()}
    return {**point, "variant": variant, "packets": found.packets, "makespan": found.makespan * CYCLE_US, **values}


def _table(point: Point, options: Options) -> list[Row]:
    algorithm, rate, steps = str(point["algorithm"]), number(point, "rate_hz"), integer(point, "steps")
    first = Simulation(spikes_config(algorithm, rate, steps), 0.0, integer(point, "seed"))
    rows = [_row(point, algorithm, run_program(first))]
    if first.agents is None:
        return rows
    with tempfile.TemporaryDirectory() as folder:
        weights = Path(folder) / "agents.npz"
        first.agents.keep_weights(weights)
        config = spikes_config(algorithm, rate, steps, exploration="late", weights=weights)
        second = Simulation(config, 0.0, integer(point, "seed"))
    return [*rows, _row(point, "DQN, pre-trained", run_program(second))]


def _compare_table(data: pd.DataFrame, options: Options) -> list[Comparison]:
    found = []
    for row in data.to_dict("records"):
        variant, rate = row["variant"], int(row["rate_hz"])
        papers = dict(zip(("DOR", "DQN, pre-trained"), _TABLE[rate], strict=True))
        note = f"{row['steps']} ms, {row['packets']:,} packets"
        for k, (words, column) in enumerate(_COLUMNS.items()):
            paper = papers[variant][k] if variant in papers else None
            name = f"network latency, {words}, {rate} Hz, {variant}"
            found.append(Comparison(name, "µs", paper, float(row[column]), note))
    for rate in sorted(int(rate) for rate in data["rate_hz"].unique()):
        mean = data[data["rate_hz"] == rate].set_index("variant")["network_latency"]
        of_dor, of_dqn = _TABLE[rate]
        paper = of_dqn[0] / of_dor[0]
        for variant, value in (("DQN, pre-trained", paper), ("DQN", None), ("star-channel", None)):
            ratio = float(mean[variant] / mean["DOR"])
            found.append(Comparison(f"mean, {variant} over DOR, {rate} Hz", "", value, ratio, _PACKETS))
    return found


def _draw_table(data: pd.DataFrame, options: Options) -> Figure:
    figure, (panel,) = new_figure(width_in=11)
    style_axes(panel, title="DPSNN on a 4×4 torus", x_label="rate (Hz)", y_label="mean network latency over DOR's")
    rates = sorted(data["rate_hz"].unique())
    mean = data.pivot_table(index="rate_hz", columns="variant", values="network_latency")
    variants = [name for name in ("star-channel", "DQN", "DQN, pre-trained") if name in mean]
    shares = {name: [float(share) for share in mean[name] / mean["DOR"]] for name in variants}
    draw_grouped_bars(panel, groups=[f"{rate:g}" for rate in rates], series=shares)
    return figure


def _training_points(options: Options) -> list[Point]:
    return [{"rate_hz": 21, "steps": 1600 if options.full else 40, "seed": options.seed}]


def _training(point: Point, options: Options) -> list[Row]:
    run = Simulation(spikes_config("DQN", number(point, "rate_hz"), integer(point, "steps")), 0.0, options.seed)
    run_program(run)
    assert run.agents is not None, "DQN has agents"
    series = pd.DataFrame(run.agents.series())
    return [{**point, **{str(key): value for key, value in row.items()}} for row in series.to_dict("records")]


def _compare_training(data: pd.DataFrame, column: str, words: str) -> list[Comparison]:
    found = []
    last = data[data["cycle"] > 0.9 * data["cycle"].max()]
    for agent, part in last.groupby("agent"):
        note = f"last tenth of {int(data['steps'].iloc[0])} ms; {int(data['decisions'].sum()):,} decisions in all"
        found.append(Comparison(f"{words}, agent {agent}", "", None, float(part[column].mean()), note))
    return found


def _draw_training(data: pd.DataFrame, column: str, words: str) -> Figure:
    figure, (panel,) = new_figure()
    style_axes(panel, title="Four agents, DPSNN at 21 Hz", x_label="time (ms)", y_label=words)
    lines: list[Line] = []
    for agent, part in data.groupby("agent"):
        time_ms = part["cycle"] * CYCLE_US / 1000
        lines.append(Line(f"agent {agent}", time_ms, part[column], len(lines), marked=False))
    draw_lines(panel, lines)
    return figure


def _trained(name: str, column: str, words: str) -> Reproduction:
    return Reproduction(
        f"dqn.{name}",
        f"Training of four agents: {words}",
        f"{SOURCE}, figure {name.removeprefix('fig')}",
        (*ASSUMPTIONS, _PACKETS),
        _training_points,
        _training,
        lambda data, options: _compare_training(data, column, words),
        lambda data, options: _draw_training(data, column, words),
        parallel=True,
    )


REPRODUCTIONS: Sequence[Reproduction] = (
    _trained("fig4.4", "mean_q", "mean Q"),
    _trained("fig4.5", "mean_reward", "mean reward"),
    Reproduction(
        "dqn.table4.1",
        "Latency of DPSNN: DOR, star-channel, DQN",
        f"{SOURCE}, table 4.1",
        (*ASSUMPTIONS, _PACKETS, "pre-trained: the same run again with the weights of the first, ε .02"),
        _table_points,
        _table,
        _compare_table,
        _draw_table,
        parallel=True,
    ),
)
