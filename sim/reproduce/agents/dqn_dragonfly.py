"""DQN routing on a dragonfly beside Q-adaptive, minimal routing and UGAL, on the same routers and the same traffic."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from hopforge.model.config import Config
from hopforge.model.output.plots import draw_grouped_bars, new_figure, style_axes
from hopforge.sim.reproduce.agents.dqn_runs import SOURCE
from hopforge.sim.reproduce.dragonflies.runs import spread
from hopforge.sim.reproduce.registry import Comparison, Options, Point, Reproduction, Row, integer
from hopforge.sim.run.simulation import Simulation

_WIDTHS = {"first": 32, "second": 32, "head": 32}
#: cycles of a hop without load: the unit of rewards
_HOP = 14.0
#: name → algorithm, virtual channels, keys of `routing.dqn`
ROUTINGS: dict[str, tuple[str, int, dict[str, Any]]] = {
    "minimal": ("dragonfly_min", 2, {}),
    "UGALn": ("ugal_node", 4, {}),
    "Q-adaptive": ("q_adaptive", 5, {}),
    "DQN, minimal ways": ("dqn", 3, {"ways": "minimal", "escape": "hop"}),
    "DQN, all ways": ("dqn", 3, {"ways": "all", "escape": "hop"}),
}
#: traffic → keys of section `traffic`, load
CASES: dict[str, tuple[dict[str, Any], float]] = {
    "uniform at 0.4": ({"pattern": "uniform", "include_self": False}, 0.4),
    "ADV+1 at 0.1": ({"pattern": "adversarial", "shift": 1}, 0.1),
    "ADV+1 at 0.25": ({"pattern": "adversarial", "shift": 1}, 0.25),
}
_SHAPE = {"p": 2, "a": 4, "h": 2}


def _config(point: Point, dqn: dict[str, Any], **traffic: Any) -> Config:
    algorithm, vcs, keys = ROUTINGS[str(point["routing"])]
    pattern, load = CASES[str(point["case"])]
    cycles, routing = integer(point, "cycles"), dict[str, Any](algorithm=algorithm)
    if algorithm == "dqn":
        routing["dqn"] = {"agents": "row", "reward_unit_cycles": _HOP, **_WIDTHS, **keys, **dqn}
        traffic = {"acknowledge": {"flits": 1, "ratio": 4}, **traffic}
    return Config.model_validate(
        {
            "name": "dqn",
            "topology": {"kind": "dragonfly", **_SHAPE, "h": integer(point, "h")},
            "router": {"vcs": vcs, "switching": "vct", "buffer_flits": 32, "link_latency_cycles": 10},
            "routing": routing,
            "traffic": {"packet_flits": 8, **pattern, **traffic},
            "simulation": {
                "load": load, "warmup_cycles": integer(point, "warmup"), "min_cycles": cycles, "max_cycles": cycles,
            },
        }
    )  # fmt: skip


def _measure(point: Point, options: Options) -> list[Row]:
    load, seed = CASES[str(point["case"])][1], integer(point, "seed")
    if integer(point, "train") == 0:
        return [_row(point, Simulation(_config(point, {}), load, seed))]
    with tempfile.TemporaryDirectory() as folder:
        weights = Path(folder) / "agents.npz"
        first = Simulation(_config(point, {}), load, seed)
        first.advance(integer(point, "train"))
        assert first.agents is not None, "DQN has agents"
        first.agents.keep_weights(weights)
        run = Simulation(_config(point, {"weights": weights, "exploration": "late"}), load, seed)
    return [_row(point, run)]


def _row(point: Point, run: Simulation) -> Row:
    found = run.run()
    return {
        **point, "latency": found.latency, "network_latency": found.network_latency, "latency_p99": found.latency_p99,
        "accepted": found.accepted, "hops": found.hops - 1, "saturated": found.saturated,
    }  # fmt: skip


def _points(options: Options) -> list[Point]:
    times = 4 if options.full else 1
    return [
        {
            "case": case, "routing": name, "seed": seed, "h": _SHAPE["h"], "warmup": 5000 * times,
            "cycles": 10_000 * times, "train": 30_000 * times if algorithm == "dqn" else 0,
        }
        for case in CASES
        for name, (algorithm, _, _) in ROUTINGS.items()
        for seed in range(options.seed, options.seed + 3)
    ]  # fmt: skip


def _compare(data: pd.DataFrame, options: Options) -> list[Comparison]:
    found = []
    for (case, name), part in data.groupby(["case", "routing"], sort=False):
        note = f"cycles; {spread(part['network_latency'])}; accepted {part['accepted'].mean():.3f}"
        note += f", {part['hops'].mean():.2f} hops"
        note += f"; {int(part['saturated'].sum())} of {len(part)} runs saturated" if part["saturated"].any() else ""
        ours = float(part["network_latency"].mean())
        found.append(Comparison(f"network latency, {case}, {name}", "cycles", None, ours, note))
    return found


def _draw(data: pd.DataFrame, options: Options) -> Figure:
    figure, (panel,) = new_figure(width_in=9)
    style_axes(panel, title="dragonfly of 72 hosts", x_label="", y_label="accepted flits per host and cycle")
    means = data.pivot_table(index="routing", columns="case", values="accepted", sort=False)
    series = {str(name): means.loc[name].reindex(data["case"].unique()).to_list() for name in means.index}
    draw_grouped_bars(panel, groups=[str(case) for case in data["case"].unique()], series=series)
    return figure


REPRODUCTIONS: Sequence[Reproduction] = (
    Reproduction(
        "dqn.dragonfly",
        "DQN routing on a dragonfly beside Q-adaptive",
        f"{SOURCE}, beyond its list of future work",
        (
            "dragonfly p 2, a 4, h 2; input-queued routers, virtual cut-through, 32 flits per VC, links of 10 cycles",
            "packets of 8 flits; all algorithms on the same routers, but with the VCs that their proofs need",
            "DQN: an agent for each group, layers of 32 units, trained under the same traffic, ε .02 while measured; "
            "every 4th packet is acknowledged by a flit for each hop",
        ),
        _points,
        _measure,
        _compare,
        _draw,
        parallel=True,
    ),
)
