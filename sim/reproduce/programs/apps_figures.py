"""Relative performance of applications on switches with and without routing caches (seed 004, 4.3.3 and 5.4.3).

Speed is 1/makespan over that of conventional switches with links of 100 Gbps. The paper draws conventional switches and
switches whose caches always hit; here both are measured at every rate of the links, so that what the links give and
what the caches give can be told apart: their factors multiply to the whole.
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import pandas as pd
from matplotlib.figure import Figure

from hopforge.model.config import Config, parse_config
from hopforge.model.config.workload import ProgramWorkload
from hopforge.model.output.plots import PALETTE, new_figure, style_axes
from hopforge.model.topology import build
from hopforge.sim.programs.flow_engine import FlowRun
from hopforge.sim.reproduce.registry import Comparison, Options, Point, Reproduction, Row, pick
from hopforge.sim.traffic.placed import place_program


class _Figure(NamedTuple):
    """A figure of the paper: its network and speed of a node, and what the text says of it."""

    name: str
    title: str
    source: str
    topology: str
    nodes: int
    gflops: float
    programs: tuple[str, ...]
    average: float | None
    data_traffic: float | None = None


_NPB = ("bt", "cg", "dt", "ft", "is", "lu", "mg", "sp")
_MORE = (*_NPB, "mm", "bfs")
_FIGURES = (
    _Figure("apps.fig4.7", "32 switches, random", "figure 4.7, section 4.3.3",
            "{kind: random_regular, routers: 32, degree: 8}", 32, 50_000, _NPB, 2.76),
    _Figure("apps.fig4.8", "256 switches, random", "figure 4.8, section 4.3.3",
            "{kind: random_regular, routers: 256, degree: 8}", 256, 50_000, _NPB, 4.39),
    _Figure("apps.fig5.25", "256 nodes, 4-D torus", "figure 5.25, section 5.4.3",
            "{kind: torus, radices: [4, 4, 4, 4]}", 256, 100, _MORE, 5.07, 15.3),
    _Figure("apps.fig5.26", "256 nodes, dragonfly", "figure 5.26, section 5.4.3",
            "{kind: dragonfly, p: 1, a: 16, h: 15, g: 16}", 256, 100, _MORE, 4.27, 15.7),
    _Figure("apps.fig5.27", "32 nodes, 4-D torus", "figure 5.27, section 5.4.3",
            "{kind: torus, radices: [2, 2, 2, 4]}", 32, 100, _MORE, None),
    _Figure("apps.fig5.28", "32 nodes, dragonfly", "figure 5.28, section 5.4.3",
            "{kind: dragonfly, p: 1, a: 8, h: 3, g: 4}", 32, 100, _MORE, None),
)  # fmt: skip
_BY_NAME = {figure.name: figure for figure in _FIGURES}
_QUICK_ITERATIONS = 2
#: SimGrid's plain model, and its default factors of latency and bandwidth (network/latency-factor, bandwidth-factor)
_MODELS: dict[str, dict[str, float]] = {"CM02": {}, "LV08": {"latency_factor": 13.01, "bandwidth_factor": 0.97}}
_LOOKUPS = ("conventional", "hit")
_TEXT = {"bt": "BT", "cg": "CG", "dt": "DT", "ft": "FT", "is": "IS", "lu": "LU", "mg": "MG", "sp": "SP", "mm": "MM",
         "bfs": "Graph500"}  # fmt: skip


def _rates(options: Options) -> tuple[int, ...]:
    return (100, 200, 400, 800, 1600) if options.full else (100, 1600)


def workload_text(program: str, nodes: int, *, full: bool) -> str:
    """Return section `workload` of a program for a network of `nodes` nodes, one rank at most on each."""
    if program == "mm":
        return f"{{kind: matrix_product, order: 4096, panel: 128, ranks: {nodes}}}"
    if program == "bfs":
        return f"{{kind: bfs, scale: {16 if full else 14}, edge_factor: 16, ranks: {nodes}}}"
    if program == "dt":
        problem, ranks = ("B", 43) if nodes >= 43 else ("A", 21)
        return f"{{kind: npb, benchmark: dt, class: {problem}, graph: BH, ranks: {ranks}}}"
    problem = "A" if program in ("ft", "is") else "B"
    ranks = int(nodes**0.5) ** 2 if program in ("bt", "sp") else nodes
    fewer = "" if full else f", iterations: {_QUICK_ITERATIONS}"
    return f"{{kind: npb, benchmark: {program}, class: {problem}, ranks: {ranks}{fewer}}}"


def _config(figure: _Figure, program: str, options: Options) -> Config:
    return parse_config(
        f"name: apps\nseed: {options.seed}\ntopology: {figure.topology}\n"
        f"workload: {workload_text(program, figure.nodes, full=options.full)}\n"
        "timing: {switch_base_ns: 51, miss_penalty_ns: 10, conventional_switch_ns: 60, cable_ns: 10}\n"
        f"app: {{host_gflops: {figure.gflops}, tcp_window_bytes: null}}\n"
    )


def with_values(config: Config, *, lookup: str, link_gbps: float, miss_penalty_ns: float | None = None) -> Config:
    """Return a configuration with other links and another ``app.lookup``."""
    timing = {"link_gbps": float(link_gbps)}
    if miss_penalty_ns is not None:
        timing["miss_penalty_ns"] = miss_penalty_ns
    return config.model_copy(update={
        "app": config.app.model_copy(update={"lookup": lookup}),
        "timing": config.timing.model_copy(update=timing),
    })


def _points(figure: _Figure, options: Options) -> list[Point]:
    return [{"figure": figure.name, "program": program, "full": options.full} for program in figure.programs]


def _measure(point: Point, options: Options) -> list[Row]:
    figure, program = _BY_NAME[str(point["figure"])], str(point["program"])
    config = _config(figure, program, options)
    topology = build(config.topology, config.address)
    assert isinstance(config.workload, ProgramWorkload)
    placed = place_program(config.workload, topology, options.seed)
    rows: list[Row] = []
    for model, factors in _MODELS.items():
        scaled = config.model_copy(update={"app": config.app.model_copy(update=factors)})
        rates = _rates(options)
        base = 0.0
        for rate in rates if model == "CM02" else (rates[0], rates[-1]):
            for lookup in _LOOKUPS:
                run = FlowRun(with_values(scaled, lookup=lookup, link_gbps=rate), topology, placed)
                ended = run.run()
                assert ended, "programs from their definitions end"
                makespan = float(run.state.rank["finished"].max())
                base = base or makespan
                rows.append({"program": program, "ranks": placed.program.ranks, "model": model, "link_gbps": rate,
                             "lookup": lookup, "makespan_s": makespan, "relative": base / makespan})  # fmt: skip
    return rows


def _factors(data: pd.DataFrame, model: str = "CM02") -> pd.DataFrame:
    """Of each program: gain of links, of caches at the lowest and highest rate, and of all."""
    data = data[data["model"] == model]
    fastest = int(data["link_gbps"].max())
    rows = []
    for program in data["program"].unique():
        def speed(lookup: str, rate: int, program: str = program) -> float:
            return pick(data, "relative", program=program, lookup=lookup, link_gbps=rate)

        rows.append({
            "program": program, "links": speed("conventional", fastest), "caches_slow": speed("hit", 100),
            "caches_fast": speed("hit", fastest) / speed("conventional", fastest), "all": speed("hit", fastest),
        })
    return pd.DataFrame(rows)


def _gain(table: pd.DataFrame, program: str, factor: str = "all") -> float:
    return float(table[factor][program])


def _compare(figure: _Figure, data: pd.DataFrame, options: Options) -> list[Comparison]:
    table = _factors(data).set_index("program")
    mean = table.mean()
    short = "" if options.full else f", {_QUICK_ITERATIONS} iterations"
    said = f"mean of {len(table)} programs{short}"
    found = [
        Comparison("mean gain, 1.6 Tbps with caches over 100 Gbps without", "times", figure.average, mean["all"], said),
        Comparison("of it the links, without caches", "times", None, mean["links"], said),
        Comparison("of it the caches, at 1.6 Tbps", "times", None, mean["caches_fast"],
                   f"{said}; at most 60/51 = 1.18, as a switch delay is", "at most 1.18"),
        Comparison("gain of the caches at 100 Gbps", "times", None, mean["caches_slow"], said),
        Comparison("mean gain with SimGrid's default factors", "times", figure.average,
                   float(_factors(data, "LV08")["all"].mean()), f"{said}; LV08: latency × 13.01, bandwidth × 0.97"),
    ]  # fmt: skip
    if figure.data_traffic is not None:
        found.append(Comparison("gain of DT", "times", figure.data_traffic, _gain(table, "dt"),
                                "black hole, 43 ranks; the paper does not say which graph"))
    if figure.name.startswith("apps.fig4"):
        claims = {"ft": "at least 4.0", "is": "at least 4.0", "bt": "at most 3.0", "lu": "at most 3.0",
                  "sp": "at most 3.0"}  # fmt: skip
        found += [
            Comparison(f"gain of {_TEXT[program]}", "times", None, _gain(table, program), said, claim)
            for program, claim in claims.items()
        ]
    shown = {name.removeprefix("gain of ").lower() for name in (c.quantity for c in found)}
    found += [
        Comparison(f"gain of {_TEXT[program]}", "times", None, _gain(table, program),
                   f"links {_gain(table, program, 'links'):.3f}, caches {_gain(table, program, 'caches_fast'):.3f}")
        for program in map(str, table.index) if _TEXT[program].lower() not in shown
    ]  # fmt: skip
    return found


def _draw(figure: _Figure, data: pd.DataFrame, options: Options) -> Figure:
    drawn, (axes,) = new_figure(width_in=10)
    style_axes(axes, title=f"Relative performance, {figure.title}", x_label="", y_label="speed over 100 Gbps")
    axes.grid(visible=False, axis="x")
    data = data[data["model"] == "CM02"]
    programs = list(figure.programs)
    rates = sorted(data["link_gbps"].unique())
    bars = [(lookup, rate) for rate in rates for lookup in _LOOKUPS]
    width = 0.84 / len(bars)
    for number, (lookup, rate) in enumerate(bars):
        part = data[(data["lookup"] == lookup) & (data["link_gbps"] == rate)].set_index("program")["relative"]
        place = [k - 0.42 + (number + 0.5) * width for k in range(len(programs))]
        color = PALETTE[rates.index(rate) % len(PALETTE)]
        axes.bar(place, part[programs], width * 0.92, color=color, alpha=1.0 if lookup == "hit" else 0.45,
                 label=f"{rate} Gbps, {'routing caches' if lookup == 'hit' else 'conventional'}")  # fmt: skip
    axes.set_xticks(range(len(programs)), labels=[_TEXT[program] for program in programs])
    axes.legend(frameon=False, fontsize=8, ncols=2)
    return drawn


_ASSUMED = (
    "flow engine, SimGrid's model CM02: no cross-traffic, messages of 64 KiB and more wait for their receive",
    "60 ns a conventional switch, 51 ns one that hits, 10 ns a cable (the paper states none); nothing misses",
    "NPB class B, FT and IS class A, from the benchmarks' definitions; BT and SP on 25 of 32 nodes, DT black hole on 43"
    " (class B), on 32 nodes 21 (class A); rank r on node r",
    f"without --full {_QUICK_ITERATIONS} iterations of each benchmark, 100 Gbps and 1.6 Tbps only, Graph500 of scale 14"
    " instead of 16",
)

REPRODUCTIONS: Sequence[Reproduction] = tuple(
    Reproduction(
        name=figure.name,
        title=f"Relative application performance ({figure.title})",
        source=f"Seed 004, {figure.source}",
        assumptions=(*_ASSUMED, f"{figure.gflops:g} Gflop/s a node; network {figure.topology}"),
        points=partial(_points, figure),
        measure=_measure,
        compare=partial(_compare, figure),
        draw=partial(_draw, figure),
        parallel=True,
    )
    for figure in _FIGURES
)
