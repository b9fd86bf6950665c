"""Search for settings of DQN routing that beat star-channel on uniform traffic, and what no routing can beat.

A setting is trained at one load, then measured at load .8 with its weights. Settings are chosen by seeds 1 to 5, with
layers of 32 units in place of 256: a tenth of the time. The best one is told with seeds 6 to 15, which nothing was
chosen by.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from hopforge.model.output.plots import draw_grouped_bars, new_figure, style_axes
from hopforge.sim.reproduce.agents.dqn_runs import ASSUMPTIONS, HOP_CYCLES, SOURCE, torus_config
from hopforge.sim.reproduce.dragonflies.runs import spread
from hopforge.sim.reproduce.registry import Comparison, Options, Point, Reproduction, Row, integer
from hopforge.sim.run.simulation import Simulation

LOAD = 0.8
_TUNED, _TOLD = range(1, 6), range(6, 16)
#: key of a setting → section; what is not listed belongs to `routing.dqn`
_PLACES = {"ratio": "acknowledge", "flits": "acknowledge", "train_load": "", "train": "", "late": "", "learn": "",
           "last_ratio": ""}  # fmt: skip
_NEAR = {"ways": "minimal", "escape": "hop"}
#: in the measured run nothing is learned, so no packet asks for an acknowledge
_SILENT = {**_NEAR, "late": "none", "learn": False, "last_ratio": 0}
#: name → what differs from the document: keys of `routing.dqn`, of `traffic.acknowledge`, and how it is trained
SETTINGS: dict[str, dict[str, Any]] = {
    "document": {},
    "asked again": {"escape": "hop"},
    "nearer": {"ways": "minimal"},
    "nearer, asked again": _NEAR,
    "at most 4 hops, asked again": {"escape": "hop", "max_hops": 4},
    "busy and no room": {**_NEAR, "available": "busy_and_no_room"},
    "rejected without reward": {**_NEAR, "reward_rejected": False},
    "reward is time": {**_NEAR, "reward": "time", "reward_unit_cycles": 770.0},
    "reward is time of hops": {**_NEAR, "reward": "time"},
    "unit of ten hops": {**_NEAR, "reward_unit_cycles": 770.0},
    "next router, γ .99": {**_NEAR, "bootstrap": "next_router"},
    "next router, γ .9": {**_NEAR, "bootstrap": "next_router", "gamma": 0.9},
    "agent per router": {**_NEAR, "agents": "router", "train": 3},
    "one agent": {**_NEAR, "agents": "network"},
    "flits here only": {**_NEAR, "occupancies": "local"},
    "credits only": {**_NEAR, "occupancies": "remote"},
    "no occupancies": {**_NEAR, "occupancies": "none"},
    "raw numbers": {**_NEAR, "observation": "raw"},
    "every 4th acknowledged": {**_NEAR, "ratio": 4},
    "acknowledges of 1 flit": {**_NEAR, "flits": 1},
    "trained at .8": {**_NEAR, "train_load": 0.8},
    "trained at .4": {**_NEAR, "train_load": 0.4},
    "trained three times as long": {**_NEAR, "train": 3},
    "learning rate 1e-4": {**_NEAR, "learning_rate": 1e-4},
    "learning rate 2e-3": {**_NEAR, "learning_rate": 2e-3},
    "no exploration at the end": {**_NEAR, "late": "none"},
    "silent at the end": _SILENT,
    "agent per router, silent at the end": {**_SILENT, "agents": "router", "train": 3},
    "one agent, trained at .8, silent at the end": {**_SILENT, "agents": "network", "train_load": 0.8},
    "no learning at the end": {**_NEAR, "late": "none", "learn": False},
    "replay of 5000": {**_NEAR, "replay": 5000},
}
#: the best of them
BEST = "agent per router, silent at the end"
#: those that are told with seeds that nothing was chosen by
TOLD = ("document", BEST, "one agent, trained at .8, silent at the end", "silent at the end")
#: cycles of a full run, and units of each layer
LENGTHS: Point = {"train": 400_000, "warmup": 50_000, "cycles": 100_000, "width": 32}
#: rivals: algorithm of `dqn_runs`, with acknowledges or without
_RIVALS = {"star-channel": ("star-channel", False), "star-channel with acknowledges": ("star-channel", True),
           "DOR": ("DOR", False)}  # fmt: skip
_BOUND = "no routing can be faster"


def _config(setting: dict[str, Any], sections: dict[str, Any], **more: Any) -> Any:
    dqn = {key: value for key, value in setting.items() if key not in _PLACES}
    acknowledge = {key: value for key, value in setting.items() if _PLACES.get(key) == "acknowledge"}
    traffic = {"include_self": False, "packet_range": (2, 258), "acknowledge": acknowledge}
    return torus_config("DQN", traffic=traffic, dqn={**dqn, **more}, simulation=sections)


def _row(point: Point, run: Simulation, found: Any) -> Row:
    row: Row = {
        **point, "network_latency": found.network_latency, "network_latency_p99": found.network_latency_p99,
        "latency": found.latency, "accepted": found.accepted, "hops": found.hops - 1, "saturated": found.saturated,
    }  # fmt: skip
    if run.agents is not None:
        counts = dict(zip(*run.agents.counters().values(), strict=True))
        left = counts["rejected"] + counts["hop_limit"] + counts["escaped_waiting"]
        row["escapes_per_decision"] = left / max(counts["decisions"], 1)
    return row


def measure_setting(point: Point, setting: dict[str, Any]) -> Row:
    """Train agents, then measure them at load .8 with the weights that they have learned."""
    seed, cycles, width = integer(point, "seed"), integer(point, "cycles"), integer(point, "width")
    setting = {**setting, "first": width, "second": width, "head": width}
    late = {"load": LOAD, "warmup_cycles": integer(point, "warmup"), "min_cycles": cycles, "max_cycles": cycles}
    with tempfile.TemporaryDirectory() as folder:
        weights = Path(folder) / "agents.npz"
        first = Simulation(_config(setting, {}), float(setting.get("train_load", 0.6)), seed)
        first.advance(integer(point, "train") * int(setting.get("train", 1)))
        assert first.agents is not None, "DQN has agents"
        first.agents.keep_weights(weights)
        more = {"weights": weights, "exploration": setting.get("late", "late")}
        if not setting.get("learn", True):
            more["learning_starts"] = 0
        last = {**setting, "ratio": setting["last_ratio"]} if "last_ratio" in setting else setting
        second = Simulation(_config(last, late, **more), LOAD, seed)
    return _row(point, second, second.run())


def _measure_rival(point: Point, algorithm: str, *, acknowledged: bool) -> Row:
    cycles = integer(point, "cycles")
    traffic: dict[str, Any] = {"include_self": False, "packet_range": (2, 258)}
    if acknowledged:
        traffic["acknowledge"] = {}
    late = {"load": LOAD, "warmup_cycles": integer(point, "warmup"), "min_cycles": cycles, "max_cycles": cycles}
    run = Simulation(torus_config(algorithm, traffic=traffic, simulation=late), LOAD, integer(point, "seed"))
    return _row(point, run, run.run())


def least_latency(load: float, seed: int, cycles: int, warmup: int) -> float:
    """Return the mean network latency on the 4×4 torus if packets wait for nothing but the link to their host.

    Every packet leaves as its source queue lets it, takes a minimal way without waiting, and the router of the
    destination sends packets on to the host in the order in which they have come, a flit in a cycle. No routing can do
    without either link of the host.
    """
    generator = np.random.default_rng((seed, 44))
    hosts, mean = 16, 130
    packets: list[tuple[int, int, int, int]] = []  # comes to the last router, sent, length, destination
    for host in range(hosts):
        created = np.flatnonzero(generator.random(warmup + cycles) < load / mean)
        lengths = generator.integers(2, 259, len(created)).tolist()
        others = (host + generator.integers(1, hosts, len(created))) % hosts
        free = 0
        for time, length, there in zip(created.tolist(), lengths, others.tolist(), strict=True):
            sent = max(time, free)
            free = sent + length
            ways = (abs(host % 4 - there % 4), abs(host // 4 - there // 4))
            packets.append((sent + HOP_CYCLES * sum(min(way, 4 - way) for way in ways), sent, length, there))
    waits, latencies = [0] * hosts, []
    for arrived, sent, length, there in sorted(packets):
        begin = max(arrived, waits[there])
        waits[there] = begin + length
        if sent >= warmup:
            latencies.append(begin + length - sent)
    return float(np.mean(latencies))


def _points(options: Options) -> list[Point]:
    if not options.full:
        lengths = {"train": 20_000, "warmup": 5000, "cycles": 10_000, "width": 32}
        names = ["star-channel", _BOUND, "document", "nearer, asked again"]
        return [{"setting": name, "seed": options.seed, **lengths} for name in names]
    tuned = [*_RIVALS, _BOUND, *SETTINGS]
    found = [{"setting": name, "seed": seed, **LENGTHS} for seed in _TUNED for name in tuned]
    told = ["star-channel", _BOUND, *TOLD]
    return found + [{"setting": name, "seed": seed, **LENGTHS} for seed in _TOLD for name in told]


def _measure(point: Point, options: Options) -> list[Row]:
    name = str(point["setting"])
    if name in _RIVALS:
        algorithm, acknowledged = _RIVALS[name]
        return [_measure_rival(point, algorithm, acknowledged=acknowledged)]
    if name == _BOUND:
        least = least_latency(LOAD, integer(point, "seed"), integer(point, "cycles"), integer(point, "warmup"))
        return [{**point, "network_latency": least}]
    return [measure_setting(point, SETTINGS[name])]


def _compare(data: pd.DataFrame, options: Options) -> list[Comparison]:
    """Ratios to star-channel's latency with the same seed: those by which settings are chosen, then those that tell."""
    found = []
    groups = {"": _TUNED, ", other seeds": _TOLD} if options.full else {"": [options.seed]}
    for others, seeds in groups.items():
        part = data[data["seed"].isin(seeds)]
        latencies = part.pivot_table(index="seed", columns="setting", values="network_latency", sort=False)
        for name in latencies:
            ratios = (latencies[name] / latencies["star-channel"]).dropna()
            note = f"{latencies[name].mean():.0f} cycles; {spread(ratios)}"
            words = f"network latency at .8 over star-channel's: {name}{others}"
            found.append(Comparison(words, "", 0.52 if name == "document" else None, float(ratios.mean()), note))
    return found


def _draw(data: pd.DataFrame, options: Options) -> Figure:
    figure, (panel,) = new_figure(width_in=11)
    data = data[data["seed"].isin(_TUNED if options.full else [options.seed])]
    means = data.groupby("setting")["network_latency"].mean().sort_values()
    style_axes(panel, title="4×4 torus, uniform, load .8", x_label="", y_label="network latency (cycles)")
    draw_grouped_bars(panel, groups=[str(name) for name in means.index], series={"mean": means.to_list()})
    panel.tick_params(axis="x", labelrotation=90)
    return figure


REPRODUCTIONS: Sequence[Reproduction] = (
    Reproduction(
        "dqn.search",
        "Settings of DQN routing against star-channel at load .8",
        f"{SOURCE}, 52 % of chapter 4",
        (*ASSUMPTIONS, "trained at load .6, then measured at .8 with ε .02"),
        _points,
        _measure,
        _compare,
        _draw,
        parallel=True,
    ),
)
