"""Beyond the paper on DQN-Routing: where does learning earn its cost? Other patterns, larger tori, a mesh on a chip."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from hopforge.model.config import Config
from hopforge.model.output.plots import draw_grouped_bars, new_figure, style_axes
from hopforge.sim.reproduce.agents.dqn_runs import ALGORITHMS, ASSUMPTIONS, SOURCE, torus_config
from hopforge.sim.reproduce.registry import Comparison, Options, Point, Reproduction, Row, integer
from hopforge.sim.run.simulation import Simulation

#: narrow layers: a tenth of the time of the paper's
_WIDTHS = {"first": 32, "second": 32, "head": 32}
#: settings of `routing.dqn`: those of the paper, and what `dqn.search` found
_AGENTS: dict[str, dict[str, Any]] = {"DQN": _WIDTHS, "DQN, nearer": {**_WIDTHS, "ways": "minimal", "escape": "hop"}}
_NAMES = ("DOR", "star-channel", *_AGENTS)
_CHIP = {
    "topology": {"kind": "mesh", "radices": (8, 8)},
    "router": {"vcs": 3, "switching": "vct", "buffer_flits": 20, "link_latency_cycles": 1},
}
#: cycles of a hop of the mesh without load: the unit of its rewards
_CHIP_HOP = 5.0


def _pattern(name: str, load: float, **keys: Any) -> dict[str, Any]:
    return {"traffic": {"pattern": name, **keys}, "load": load}


def _torus(radices: tuple[int, ...], load: float) -> dict[str, Any]:
    return {**_pattern("uniform", load, include_self=False), "topology": {"kind": "torus", "radices": radices}}


#: name → sections that differ from the 4×4 torus of the paper, and the load
SCENES: dict[str, dict[str, Any]] = {
    "uniform": _pattern("uniform", 0.6, include_self=False),
    "hot spot": _pattern("hotspot", 0.25, share=0.15),
    "hot region": _pattern("hotspot", 0.4, share=0.5, targets=(5, 6, 9, 10)),
    "transpose": _pattern("transpose", 0.5),
    "bit complement": _pattern("bit_complement", 0.5),
    "shuffle": _pattern("shuffle", 0.5),
    "tornado": _pattern("tornado", 0.6),
    "8×8 torus": _torus((8, 8), 0.4),
    "4×4×4 torus": _torus((4, 4, 4), 0.4),
    "8×8 mesh on a chip": {
        **_pattern("uniform", 0.3, include_self=False, packet_range=(1, 5)), **_CHIP, "hop": _CHIP_HOP,
    },
}  # fmt: skip
#: beyond 16 routers a cycle holds more decisions
_LARGE = ("8×8 torus", "4×4×4 torus", "8×8 mesh on a chip")


def _config(scene: dict[str, Any], name: str, point: Point, dqn: dict[str, Any]) -> Config:
    cycles = integer(point, "cycles")
    simulation = {"warmup_cycles": integer(point, "warmup"), "min_cycles": cycles, "max_cycles": cycles}
    sections = {key: scene[key] for key in ("topology", "router") if key in scene}
    if "router" in sections:
        sections["router"] = sections["router"] | {"vcs": ALGORITHMS["DQN" if name in _AGENTS else name][1]}
    if "hop" in scene:
        dqn = {"reward_unit_cycles": scene["hop"], **dqn}
    traffic = {"packet_range": (2, 258), **scene["traffic"]}
    algorithm = "DQN" if name in _AGENTS else name
    return torus_config(algorithm, traffic=traffic, dqn=dqn, simulation=simulation, **sections)


def _measure(point: Point, options: Options) -> list[Row]:
    scene, name = SCENES[str(point["scene"])], str(point["routing"])
    load, seed = float(scene["load"]), integer(point, "seed")
    if name not in _AGENTS:
        run = Simulation(_config(scene, name, point, {}), load, seed)
        return [_row(point, run)]
    with tempfile.TemporaryDirectory() as folder:
        weights = Path(folder) / "agents.npz"
        first = Simulation(_config(scene, name, point, _AGENTS[name]), load, seed)
        first.advance(integer(point, "train"))
        assert first.agents is not None, "DQN has agents"
        first.agents.keep_weights(weights)
        late = {**_AGENTS[name], "weights": weights, "exploration": "late"}
        run = Simulation(_config(scene, name, point, late), load, seed)
    return [_row(point, run)]


def _row(point: Point, run: Simulation) -> Row:
    found = run.run()
    return {
        **point, "load": found.load, "network_latency": found.network_latency, "latency": found.latency,
        "network_latency_p99": found.network_latency_p99, "accepted": found.accepted, "hops": found.hops - 1,
        "saturated": found.saturated,
    }  # fmt: skip


def _points(options: Options) -> list[Point]:
    times = 4 if options.full else 1
    return [
        {
            "scene": scene, "routing": name, "seed": seed, "warmup": 20_000 * times, "cycles": 40_000 * times,
            "train": (100_000 if scene in _LARGE else 400_000) * times if name in _AGENTS else 0,
        }
        for scene in SCENES
        for name in _NAMES
        for seed in (range(6, 9) if options.full else (options.seed,))
    ]  # fmt: skip


def _means(data: pd.DataFrame, column: str) -> pd.DataFrame:
    """Mean over seeds by scene and routing, in the order of the scenes."""
    return data.pivot_table(index="scene", columns="routing", values=column).reindex([*SCENES])


def _compare(data: pd.DataFrame, options: Options) -> list[Comparison]:
    latency, accepted, hops = (_means(data, column) for column in ("network_latency", "accepted", "hops"))
    saturated = data.groupby(["scene", "routing"])["saturated"].any()
    found = []
    for scene in SCENES:
        for name in _AGENTS:
            for rival in ("DOR", "star-channel"):
                full = [one for one in (name, rival) if saturated[scene, one]]
                note = f"accepted {accepted[name][scene]:.3f} and {accepted[rival][scene]:.3f}"
                note += f"; {hops[name][scene]:.2f} and {hops[rival][scene]:.2f} hops"
                note += f"; beyond saturation: {', '.join(full)}" if full else ""
                words = f"network latency, {scene} at {SCENES[scene]['load']:g}, {name} over {rival}"
                found.append(Comparison(words, "", None, float(latency[name][scene] / latency[rival][scene]), note))
    return found


def _draw(data: pd.DataFrame, options: Options) -> Figure:
    figure, (panel,) = new_figure(width_in=11)
    style_axes(panel, title="Network latency over star-channel's", x_label="", y_label="ratio")
    latency = _means(data, "network_latency")
    series = {name: (latency[name] / latency["star-channel"]).to_list() for name in ("DOR", *_AGENTS)}
    draw_grouped_bars(panel, groups=list(SCENES), series=series)
    panel.tick_params(axis="x", labelrotation=30)
    return figure


REPRODUCTIONS: Sequence[Reproduction] = (
    Reproduction(
        "dqn.beyond",
        "DQN routing under other patterns and on other networks",
        f"{SOURCE}, its list of future work",
        (
            *ASSUMPTIONS,
            "trained and measured under the same traffic; layers of 32 units",
            "mesh: links of 1 cycle, packets of 1 to 5 flits, 20 flits per VC",
        ),
        _points,
        _measure,
        _compare,
        _draw,
        parallel=True,
    ),
)
