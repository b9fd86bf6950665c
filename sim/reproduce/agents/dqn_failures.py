"""DQN routing on a torus that loses links during the run, beside algorithms that find their way by tables."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from hopforge.model.output.plots import draw_grouped_bars, new_figure, style_axes
from hopforge.sim.reproduce.agents.dqn_runs import ASSUMPTIONS, SOURCE, torus_config
from hopforge.sim.reproduce.dragonflies.runs import spread
from hopforge.sim.reproduce.registry import Comparison, Options, Point, Reproduction, Row, integer
from hopforge.sim.run.simulation import Simulation

_LOAD = 0.4
#: links of the 4×4 torus that fail, in this order
_LINKS = ((0, 1), (5, 9), (10, 11), (2, 14))
_WIDTHS = {"first": 32, "second": 32, "head": 32}
#: name → section `routing`; for agents keys of `routing.dqn`
_TABLES: dict[str, dict[str, Any]] = {
    "up*/down*": {"algorithm": "up_down"}, "shortest, up*/down* as escape": {"algorithm": "shortest_escape"},
}  # fmt: skip
_AGENTS: dict[str, dict[str, Any]] = {"DQN": _WIDTHS, "DQN, nearer": {**_WIDTHS, "ways": "minimal", "escape": "hop"}}


def _simulation(point: Point, failing: bool, dqn: dict[str, Any]) -> Simulation:
    name, cycles = str(point["routing"]), integer(point, "cycles")
    times = {"warmup_cycles": integer(point, "warmup"), "min_cycles": cycles, "max_cycles": cycles}
    links = _LINKS[: integer(point, "links")] if failing else ()
    # in the middle of the warm-up, so that all that is measured follows the new tables
    failure = {"cycle": integer(point, "warmup") // 3, "links": links, "detection_cycles": 200}
    failures = (failure,) if links else ()
    traffic = {"include_self": False, "packet_range": (2, 258)}
    simulation = {"load": _LOAD, **times, "failures": failures}
    if name in _TABLES:
        config = torus_config("star-channel", traffic=traffic, simulation=simulation, routing=_TABLES[name])
    else:
        config = torus_config("DQN", traffic=traffic, simulation=simulation, dqn=_AGENTS[name] | dqn)
    return Simulation(config, _LOAD, integer(point, "seed"))


def _measure(point: Point, options: Options) -> list[Row]:
    if str(point["routing"]) in _TABLES:
        return [_row(point, _simulation(point, True, {}))]
    with tempfile.TemporaryDirectory() as folder:
        weights = Path(folder) / "agents.npz"
        first = _simulation(point, False, {})
        first.advance(integer(point, "train"))
        assert first.agents is not None, "DQN has agents"
        first.agents.keep_weights(weights)
        run = _simulation(point, True, {"weights": weights, "exploration": "late"})
    return [_row(point, run)]


def _row(point: Point, run: Simulation) -> Row:
    found = run.run()
    records = [] if run.reconfiguration is None else run.reconfiguration.records
    return {
        **point, "network_latency": found.network_latency, "latency": found.latency, "accepted": found.accepted,
        "hops": found.hops - 1, "saturated": found.saturated, "lost": sum(one.packets_lost for one in records),
        "empty": sum(one.empty_cycle - one.stopped_cycle for one in records),
    }  # fmt: skip


def _points(options: Options) -> list[Point]:
    times = 4 if options.full else 1
    return [
        {
            "links": links, "routing": name, "seed": seed, "warmup": 30_000 * times, "cycles": 40_000 * times,
            "train": 100_000 * times if name in _AGENTS else 0,
        }
        for links in ((0, 1, 2, 4) if options.full else (0, 2))
        for name in (*_TABLES, *_AGENTS)
        for seed in range(options.seed, options.seed + 3)
    ]  # fmt: skip


def _compare(data: pd.DataFrame, options: Options) -> list[Comparison]:
    found = []
    for (links, name), part in data.groupby(["links", "routing"], sort=False):
        note = f"{spread(part['network_latency'])}; accepted {part['accepted'].mean():.3f}, {part['hops'].mean():.2f} "
        note += "hops"
        if links:
            note += f"; empty {part['empty'].mean():.0f} cycles after the hosts stopped, {part['lost'].mean():.1f} lost"
        note += f"; {int(part['saturated'].sum())} of {len(part)} runs saturated" if part["saturated"].any() else ""
        words = f"network latency, {links} links failed, {name}"
        found.append(Comparison(words, "cycles", None, float(part["network_latency"].mean()), note))
    return found


def _draw(data: pd.DataFrame, options: Options) -> Figure:
    figure, (panel,) = new_figure(width_in=9)
    style_axes(panel, title=f"4×4 torus, uniform, load {_LOAD:g}", x_label="", y_label="network latency (cycles)")
    means = data.pivot_table(index="links", columns="routing", values="network_latency", sort=False)
    groups = [f"{links} links failed" for links in means.index]
    draw_grouped_bars(panel, groups=groups, series={str(name): means[name].to_list() for name in means.columns})
    return figure


REPRODUCTIONS: Sequence[Reproduction] = (
    Reproduction(
        "dqn.failures",
        "DQN routing on a torus that loses links",
        f"{SOURCE}, its list of future work",
        (
            *ASSUMPTIONS,
            "links fail in the warm-up; agents of 32 units were trained on the whole torus, and go on to learn",
            "beside them, without acknowledges and with 3 VCs: algorithms that find their way by tables",
        ),
        _points,
        _measure,
        _compare,
        _draw,
        parallel=True,
    ),
)
