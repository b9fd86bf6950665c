"""DQN-Routing with what its hardware does: decisions that take time, and networks in whole numbers."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from hopforge.model.dqn.agents import Q
from hopforge.model.network.parts.trail_tables import trail_counts
from hopforge.model.output.plots import Line, draw_lines, new_figure, style_axes
from hopforge.sim.reproduce.agents.dqn_runs import ASSUMPTIONS, SOURCE, torus_config
from hopforge.sim.reproduce.registry import Comparison, Options, Point, Reproduction, Row, integer
from hopforge.sim.run.simulation import Simulation

#: units of each hidden layer: the document's network, and three smaller ones
_WIDTHS = (256, 64, 32, 16)
_DELAYS = (20, 80, 320)
#: blocks of an agent that decide in turn: it has one router of the row for each of four
_BLOCKS = (1, 4)
_LOAD = 0.6
_LOADS = (0.2, 0.6, 0.8)
_PACKET_FLITS = 130
_HOSTS = 16
#: routers at which an agent decides about a packet, about
_HOPS = 2.1
#: numbers of the decisions → keys of `routing.dqn`
_NUMBERS: dict[str, dict[str, Any]] = {
    "float": {}, "int8": {"inference": "int8"},
    "int8, activations of 9 bits": {"inference": "int8", "activation_bits": 9},
    "int8, activations of 12 bits": {"inference": "int8", "activation_bits": 12},
}  # fmt: skip


def _run(algorithm: str, point: Point, dqn: dict[str, Any], *, cycles: int, warmup: int, load: float) -> Simulation:
    config = torus_config(
        algorithm,
        traffic={"include_self": False, "packet_range": (2, 258)},
        dqn=dqn,
        simulation={"load": load, "warmup_cycles": warmup, "min_cycles": cycles, "max_cycles": cycles},
    )
    return Simulation(config, load, integer(point, "seed"))


def _network(width: int) -> dict[str, int]:
    return {"first": width, "second": width, "head": width}


def _measured(run: Simulation) -> Row:
    found, counts = run.run(), trail_counts(run.state) if run.agents is not None else {}
    decisions = counts.get("decisions", 0)
    asked = decisions + counts.get("agent_queue_full", 0)
    return {
        "accepted": found.accepted, "latency": found.latency, "network_latency": found.network_latency,
        "saturated": found.saturated, "decisions": decisions,
        "queue_full": counts.get("agent_queue_full", 0) / asked if asked else 0.0,
        "wait": counts.get("decision_wait", 0) / decisions if decisions else 0.0,
    }  # fmt: skip


def _delay_points(options: Options) -> list[Point]:
    length = {
        "warmup": 200_000 if options.full else 30_000, "cycles": 60_000 if options.full else 15_000,
    }  # fmt: skip
    seeds = (6,) if options.full else (options.seed,)
    points: list[Point] = []
    for seed in seeds:
        points += [{"algorithm": name, "seed": seed, **length} for name in ("DOR", "star-channel")]
        for width in _WIDTHS if options.full else (16,):
            cases = [(delay, blocks) for delay in (_DELAYS if options.full else (80,)) for blocks in _BLOCKS]
            for delay, blocks in [(0, 1), *cases]:
                points.append({
                    "algorithm": "DQN", "seed": seed, "width": width, "delay": delay, "blocks": blocks, **length
                })  # fmt: skip
    return points


def _measure_delay(point: Point, options: Options) -> list[Row]:
    name, dqn = str(point["algorithm"]), {}
    if name == "DQN":
        delay = integer(point, "delay")
        dqn = _network(integer(point, "width")) | {"decision_cycles": delay}
        if delay:
            dqn["decision_interval"] = -(-delay // integer(point, "blocks"))
    cycles, warmup = integer(point, "cycles"), integer(point, "warmup")
    return [{**point, **_measured(_run(name, point, dqn, cycles=cycles, warmup=warmup, load=_LOAD))}]


def _variant(row: dict[Any, Any]) -> str:
    if row["algorithm"] != "DQN":
        return str(row["algorithm"])
    blocks = "" if row["delay"] == 0 else f", {row['blocks']:g} block{'s' if row['blocks'] > 1 else ''}"
    return f"hidden layers of {row['width']:g}, decision {row['delay']:g} cycles{blocks}"


def _means(data: pd.DataFrame) -> pd.DataFrame:
    named = data.assign(variant=[_variant(row) for row in data.to_dict("records")])
    columns = ["network_latency", "latency", "accepted", "queue_full", "wait", "decisions"]
    return named.groupby("variant", sort=False)[columns].mean()


def _compare_delay(data: pd.DataFrame, options: Options) -> list[Comparison]:
    seeds = ", ".join(map(str, sorted(data["seed"].unique())))
    told = f"load {_LOAD:g}, {int(data['cycles'].max()):,} cycles after {int(data['warmup'].max()):,}; seeds {seeds}"
    return [
        Comparison(
            f"network latency, {variant}", "cycles", None, float(row["network_latency"]),
            f"{told}; mean {row['latency']:.0f}, accepted {row['accepted']:.3f}; {row['queue_full']:.1%} of the "
            f"packets found the agent's queue full, the others waited {row['wait']:.0f} cycles in it",
        )
        for variant, row in _means(data).to_dict("index").items()
    ]  # fmt: skip


def _draw_delay(data: pd.DataFrame, options: Options) -> Figure:
    figure, (panel,) = new_figure()
    title = f"4×4 torus, uniform traffic, load {_LOAD:g}"
    style_axes(panel, title=title, x_label="cycles of a decision", y_label="network latency (cycles)")
    mean = data[data["algorithm"] == "DQN"].groupby(["width", "blocks", "delay"])["network_latency"].mean()
    lines: list[Line] = []
    for width in sorted(data["width"].dropna().unique(), reverse=True):
        for blocks in _BLOCKS:
            part = mean[width][blocks] if blocks in mean[width].index.get_level_values(0) else mean[width][1]
            part = pd.concat([mean[width][1].loc[[0]], part[part.index > 0]])
            lines.append(Line(f"{width:g} units, blocks: {blocks}", part.index, part, len(lines)))
    draw_lines(panel, lines)
    return figure


def _int8_points(options: Options) -> list[Point]:
    return [
        {
            "width": width, "seed": 6, "learning": 200_000 if options.full else 40_000,
            "decisions": 100_000 if options.full else 1500, "loads": len(_LOADS) if options.full else 1,
        }
        for width in (_WIDTHS if options.full else (16,))
    ]  # fmt: skip


def _measure_int8(point: Point, options: Options) -> list[Row]:
    width = _network(integer(point, "width"))
    first = _run("DQN", {**point, "seed": 1}, width, cycles=integer(point, "learning"), warmup=0, load=_LOAD)
    first.run()
    assert first.agents is not None
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        weights = Path(folder) / "agents.npz"
        first.agents.keep_weights(weights)
        for load in sorted(_LOADS, key=lambda load: load != _LOAD)[: integer(point, "loads")]:
            cycles = int(1.1 * integer(point, "decisions") * _PACKET_FLITS / (load * _HOSTS * _HOPS))
            for numbers, keys in _NUMBERS.items():
                dqn = {"weights": weights, "learning_starts": 0, "exploration": "none", **keys}
                run = _run("DQN", point, width | dqn, cycles=cycles, warmup=10_000, load=load)
                rows.append({**point, "load": load, "inference": numbers, **_measured(run), **_agreement(run)})
    return rows


def _agreement(run: Simulation) -> Row:
    """Mean Q of what was done; in whole numbers, how often floats say the same, and what is lost."""
    counts, state = trail_counts(run.state), run.state.agents
    assert state is not None
    decisions = max(counts["decisions"], 1)
    return {
        "mean_q": float(state.agents.sums[:, Q].sum()) / decisions, "agreed": counts["int8_agreed"] / decisions,
        "lost_q": state.int8_loss / decisions,
    }  # fmt: skip


def _compare_int8(data: pd.DataFrame, options: Options) -> list[Comparison]:
    found = []
    for (width, load), part in data.groupby(["width", "load"], sort=False):
        of = part.set_index("inference")
        name = f"{width} units, load {load:g}"
        for numbers, row in of.to_dict("index").items():
            told = f"agents of {width} units that learned at load {_LOAD:g}, seed 1; {row['decisions']:,} decisions of "
            told += f"seed {int(row['seed'])}"
            if numbers != "float":
                note = f"{told}; mean loss {row['lost_q']:.2g} of a mean Q of {row['mean_q']:.3f}"
                words = f"decisions as float on {numbers}, {name}"
                found.append(Comparison(words, "%", None, 100 * row["agreed"], note, claim="at least 99"))
            latency = float(row["network_latency"])
            found.append(Comparison(f"network latency on {numbers}, {name}", "cycles", None, latency, told))
    return found


def _draw_int8(data: pd.DataFrame, options: Options) -> Figure:
    figure, (panel,) = new_figure()
    style_axes(panel, title="decisions in whole numbers", x_label="load", y_label="not as float (%)")
    part = data[data["inference"] != "float"].sort_values("load", kind="stable")
    lines = [
        Line(f"{width} units, {numbers}", of["load"], 100 * (1 - of["agreed"]), k)
        for k, ((width, numbers), of) in enumerate(part.groupby(["width", "inference"], sort=False))
    ]
    draw_lines(panel, lines)
    return figure


REPRODUCTIONS: Sequence[Reproduction] = (
    Reproduction(
        "dqn.decision_delay",
        "Latency against the delay of a decision",
        f"{SOURCE}, chapter 3 leaves it open",
        (*ASSUMPTIONS, "agents learn from the start of the run, with the delay; a queue of 16 packets for each agent"),
        _delay_points,
        _measure_delay,
        _compare_delay,
        _draw_delay,
        parallel=True,
    ),
    Reproduction(
        "dqn.int8",
        "Decisions in whole numbers",
        f"{SOURCE}, chapter 3 leaves it open",
        (*ASSUMPTIONS, "agents learn no more and try nothing; the float network says what int8 loses"),
        _int8_points,
        _measure_int8,
        _compare_int8,
        _draw_int8,
        parallel=True,
    ),
)
