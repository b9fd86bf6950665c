"""Seed 001, section 2.1: Q-adaptive on groups of other shapes (definitions/learning-on-groups.md)."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from hopforge.model.config import Config
from hopforge.model.output.plots import draw_grouped_bars, new_figure, style_axes
from hopforge.sim.reproduce.dragonflies import runs
from hopforge.sim.reproduce.registry import Comparison, Options, Point, Reproduction, Row, integer, number
from hopforge.sim.run.simulation import Simulation

#: network → section `topology` reduced, and with --full
NETWORKS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "Dragonfly": ({"kind": "dragonfly", "p": 2, "a": 4, "h": 2}, {"kind": "dragonfly", "p": 4, "a": 8, "h": 4}),
    "Megafly": (
        {"kind": "dragonfly_plus", "leaves": 4, "spines": 4, "h": 2, "hosts_per_router": 2},
        {"kind": "dragonfly_plus", "leaves": 8, "spines": 8, "h": 4, "hosts_per_router": 4},
    ),
    "Dragonfly+": (
        {"kind": "dragonfly_plus", "leaves": 4, "spines": 4, "h": 4, "hosts_per_router": 4, "g": 5},
        {"kind": "dragonfly_plus", "leaves": 8, "spines": 8, "h": 8, "hosts_per_router": 8, "g": 17},
    ),
    "Cascade": (
        {"kind": "cascade", "sizes": (3, 2), "links": (2, 3), "h": 2, "hosts_per_router": 2},
        {"kind": "cascade", "sizes": (4, 2), "links": (3, 6), "h": 4, "hosts_per_router": 4},
    ),
}
#: method → section `routing` of a dragonfly with fully connected groups, and of the others
METHODS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "minimal": ({"algorithm": "dragonfly_min"}, {"algorithm": "minimal"}),
    "Valiant": ({"algorithm": "valiant_group"}, {"algorithm": "valiant", "over": "groups"}),
    "UGAL": ({"algorithm": "ugal_group"}, {"algorithm": "ugal", "over": "groups"}),
    "Q-adaptive": ({"algorithm": "q_adaptive"}, {"algorithm": "q_adaptive"}),
}
#: pattern → loads: of the latency, of the throughput
_LOADS = {"UR": (0.8, 1.0), "ADV+1": (0.4, 0.5)}
#: network → virtual channels of each method, as few as it takes (Dragonfly+: as on Megafly)
_VCS = {
    "Dragonfly": {"minimal": 2, "Valiant": 3, "UGAL": 3, "Q-adaptive": 5},
    "Megafly": {"minimal": 1, "Valiant": 3, "UGAL": 3, "Q-adaptive": 2},
    "Dragonfly+": {"minimal": 1, "Valiant": 3, "UGAL": 3, "Q-adaptive": 2},
    "Cascade": {"minimal": 3, "Valiant": 6, "UGAL": 6, "Q-adaptive": 3},
}
#: whether --full → whether the method learns → warm-up and measurement in µs
_TIMES = {False: {False: (60.0, 40.0), True: (400.0, 40.0)}, True: {False: (100.0, 40.0), True: (500.0, 40.0)}}


def _points(options: Options) -> list[Point]:
    seeds = 1 if options.full else 3
    points: list[Point] = []
    for network in NETWORKS:
        for pattern, loads in _LOADS.items():
            for load in loads:
                for method in METHODS:
                    warmup, measure = _TIMES[options.full][method == "Q-adaptive"]
                    point: Point = {"network": network, "method": method, "pattern": pattern, "load": load}
                    times: Point = {"warmup_us": warmup, "measure_us": measure, "large": options.full}
                    points += [{**point, **times, "seed": options.seed + k} for k in range(seeds)]
    return points


def group_config(point: Point) -> Config:
    """Return the configuration of a point."""
    network, method = str(point["network"]), str(point["method"])
    return Config.model_validate({
        "name": "study",
        "topology": NETWORKS[network][bool(point["large"])],
        "router": {
            "model": "input_output_queued", "vcs": _VCS[network][method], "buffer_flits": 20, "output_buffer_flits": 20,
        },
        "routing": METHODS[method][network != "Dragonfly"],
        "traffic": {"source": "interval", "include_self": False} | runs.pattern_keys(str(point["pattern"]), 0),
        "simulation": {
            "load": number(point, "load"), "warmup_us": number(point, "warmup_us"),
            "measure_us": number(point, "measure_us"), "precision": 1e-9,
        },
    })  # fmt: skip


def _run(point: Point, options: Options) -> list[Row]:
    run = Simulation(group_config(point), number(point, "load"), integer(point, "seed"))
    found = run.run()
    return [
        {
            **point, "hosts": run.topology.hosts, "accepted": found.accepted, "hops": found.hops - 1,
            "latency": found.latency * found.cycle_ns, "latency_p99": found.latency_p99 * found.cycle_ns,
            "derouted_share": found.derouted_share, "cpu_seconds": found.cpu_seconds,
        }
    ]  # fmt: skip


def _part(data: pd.DataFrame, network: str, pattern: str, method: str, load: float) -> pd.DataFrame:
    same = (data["network"] == network) & (data["pattern"] == pattern) & (data["method"] == method)
    return data[same & (data["load"] == load)]


def _compare(data: pd.DataFrame, options: Options) -> list[Comparison]:
    found = []
    for pattern, (low, high) in _LOADS.items():
        for network in NETWORKS:
            for method in METHODS:
                part, full = (_part(data, network, pattern, method, load) for load in (low, high))
                if not len(part) or not len(full):
                    continue
                note = f"{int(part['hosts'].iloc[0])} hosts, load {low}: accepted {100 * part['accepted'].mean():.1f} %"
                note += f", {part['hops'].mean():.2f} hops, 99 % {part['latency_p99'].mean():.0f} ns"
                learns = method == "Q-adaptive" and network != "Dragonfly"
                found.append(
                    Comparison(
                        f"{pattern}, {network}, {method}: mean latency", "ns", None, float(part["latency"].mean()),
                        f"{note}; {runs.spread(part['latency'])}",
                        "can also be applied to other Dragonfly variants" if learns else "",
                    )
                )  # fmt: skip
                ours, note = 100 * float(full["accepted"].mean()), f"load {high}; {runs.spread(100 * full['accepted'])}"
                found.append(Comparison(f"{pattern}, {network}, {method}: throughput", "%", None, ours, note))
    return found


def _draw(data: pd.DataFrame, options: Options) -> Figure:
    figure, panels = new_figure(panels=len(_LOADS))
    for axes, (pattern, (_, high)) in zip(panels, _LOADS.items(), strict=True):
        style_axes(axes, title=f"{pattern}, load {high}", x_label="", y_label="accepted of the injection bandwidth")
        here = data[(data["pattern"] == pattern) & (data["load"] == high)]
        means = here.groupby(["method", "network"])["accepted"].mean()
        networks = [name for name in NETWORKS if name in set(here["network"])]
        series = {
            method: [float(means[method, name]) for name in networks] for method in METHODS if method in means.index
        }
        draw_grouped_bars(axes, groups=networks, series=series)
    return figure


REPRODUCTIONS: Sequence[Reproduction] = (
    Reproduction(
        "qadaptive.groups",
        "Q-adaptive on Megafly, Dragonfly+ and Cascade",
        f"{runs.SOURCE}, section 2.1",
        (
            *runs.ASSUMPTIONS,
            "the paper has no figure of these networks: it says that Q-adaptive can be applied to them",
            "rules of definitions/learning-on-groups.md; the dragonfly beside them has those of the paper",
            "each method has as few virtual channels as it takes, as in the paper (Dragonfly+: as on Megafly)",
            "Valiant and UGAL go over groups",
            "Megafly: one link for each pair of groups; Dragonfly+: four; Cascade: grids of 3x2 with 2"
            " and 3 parallel links (--full: 4x2 with 3 and 6), as many hosts as global links of a router",
            "60 µs to warm up, those that learn 400; 40 measured; three seeds",
            "--full: about 1000 hosts, 100 µs to warm up, those that learn 500; one seed",
        ),
        _points,
        _run,
        _compare,
        _draw,
        parallel=True,
    ),
)
