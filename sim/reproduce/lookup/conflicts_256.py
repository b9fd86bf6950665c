"""Figure 4.6 of the routing-cache paper (seed 004) at its own size: the NAS benchmarks, class A, on 256 ranks."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from hopforge.model.apps.npb_dt import graph_nodes
from hopforge.model.config import Config, parse_config
from hopforge.model.output.plots import Line, draw_lines, draw_paper_points, new_figure, style_axes
from hopforge.model.topology import build
from hopforge.sim.hits.replay import replay
from hopforge.sim.reproduce.registry import Comparison, Options, Point, Reproduction, Row, integer, pick
from hopforge.sim.traffic.workload_packets import build_workload

_PROGRAMS = ("bt", "cg", "dt", "ep", "ft", "is", "lu", "mg", "sp")
_RANKS, _ENTRIES = 256, 2048
#: network → radices, hosts of a switch, ways: 64 switches as in figure 4.6, and 256 as in the text below it
_NETWORKS: dict[str, tuple[list[int], int, tuple[int, ...]]] = {
    "4x4x4": ([4, 4, 4], 4, (1, 2, 4, 8)),
    "8x8x4": ([8, 8, 4], 1, (2, 4)),
}
#: iterations of the quick variant
_FEW = 2
#: hit rate that the text states, of DT alone (4 ways, compulsory misses included)
_DT_PERCENT = 95.6


def _ranks(program: str) -> int:
    """Ranks of a benchmark: those of the paper; DT runs on the nodes of its graph only."""
    return len(graph_nodes("A", "BH")[0]) if program == "dt" else _RANKS


def _points(options: Options) -> list[Point]:
    return [
        {"network": network, "program": program, "ranks": _ranks(program), "iterations": 0 if options.full else _FEW}
        for network in _NETWORKS
        for program in _PROGRAMS
    ]


def _config(point: Point, ways: int, options: Options) -> Config:
    radices, hosts, _ = _NETWORKS[str(point["network"])]
    short = integer(point, "iterations") and point["program"] not in ("dt", "ep")
    iterations = f", iterations: {point['iterations']}" if short else ""
    return parse_config(
        f"""
name: reproduce
seed: {options.seed}
topology: {{kind: torus, radices: {radices}, hosts_per_router: {hosts}}}
lookup: {{reduction: false, cache: {{entries: {_ENTRIES}, ways: {ways}, policy: lru}}}}
workload: {{kind: npb, benchmark: {point["program"]}, class: A, ranks: {point["ranks"]}{iterations}}}
""",
        source="lookup.fig4.6-256",
    )


def _measure(point: Point, options: Options) -> list[Row]:
    rows: list[Row] = []
    for ways in _NETWORKS[str(point["network"])][2]:
        config = _config(point, ways, options)
        assert config.workload is not None
        topology = build(config.topology, config.address)
        found = replay(config, topology, build_workload(config.workload, topology, config.seed))
        counts = {name: int(getattr(found, name).sum()) for name in ("hits", "compulsory", "capacity", "conflict")}
        lookups = int(found.lookups.sum())
        rows.append({
            **point, "ways": ways, "lookups": lookups, **counts, "hit_percent": 100.0 * counts["hits"] / lookups,
            "conflict_percent": 100.0 * counts["conflict"] / lookups,
        })  # fmt: skip
    return rows


def _compare(data: pd.DataFrame, options: Options) -> list[Comparison]:
    found = []
    for network in _NETWORKS:
        for program in _PROGRAMS:
            part = data[(data["network"] == network) & (data["program"] == program)]
            for ways in (2, 4):
                ours = pick(part, "conflict_percent", ways=ways)
                note = f"{int(part['ranks'].iloc[0])} ranks, {int(part['lookups'].iloc[0]):,} lookups"
                name = f"conflict misses, {program.upper()}, {ways}-way, {network}"
                found.append(Comparison(name, "%", 0.0, ours, note))
        for program in _PROGRAMS:
            part = data[(data["network"] == network) & (data["program"] == program)]
            ours = pick(part, "hit_percent", ways=4)
            note = f"every cache starts empty: {int(part['compulsory'].iloc[0]):,} compulsory misses"
            claim = "" if program == "dt" else "99.7 % to 100 %"
            paper = _DT_PERCENT if program == "dt" and network == "4x4x4" else None
            if int(part["iterations"].iloc[0]):
                note += f"; {_FEW} iterations, so these weigh more than in a whole run (--full)"
            name = f"hit rate with compulsory misses, {program.upper()}, 4-way, {network}"
            found.append(Comparison(name, "%", paper, ours, note, claim if network == "4x4x4" else ""))
    return found


def _draw(data: pd.DataFrame, options: Options) -> Figure:
    figure, panels = new_figure(panels=2, width_in=6.4)
    part = data[data["network"] == "4x4x4"]
    texts = {"conflict_percent": "conflict misses (% of lookups)", "hit_percent": "hits (% of lookups)"}
    for axes, (column, text) in zip(panels, texts.items(), strict=True):
        style_axes(
            axes, title=f"{_ENTRIES} entries, 4×4×4 torus, {_RANKS} ranks of NPB class A", x_label="ways",
            y_label=text, log_x=True, x_ticks=list(_NETWORKS["4x4x4"][2]),
        )  # fmt: skip
        if column == "conflict_percent":
            axes.set_ylim(-0.02, max(1.0, 1.1 * part[column].max()))
            draw_paper_points(axes, [2, 4], [0, 0], label="paper: none", offset=(8, 12))
        lines = []
        for color, program in enumerate(_PROGRAMS):
            one = part[part["program"] == program]
            lines.append(Line(program.upper(), one["ways"], one[column], color=color))
        draw_lines(axes, lines)
    return figure


REPRODUCTIONS: Sequence[Reproduction] = (
    Reproduction(
        "lookup.fig4.6-256",
        "The same on 256 ranks, all nine benchmarks",
        "seed 004, figure 4.6 and the text below it (8×8×4), section 4.3.2.3",
        (
            "our generators of the nine NPB programs, class A, 256 ranks; DT has a rank for each node of its graph, 21",
            "4×4×4 torus with 4 hosts at each switch (how 256 ranks go on it the paper does not say), 8×8×4 with one",
            "one rank a host, linear mapping, dimension order, key = whole address, 2048 entries, LRU, 2 KiB packets",
            f"at most {_FEW} iterations of each; whole programs with --full: 4 minutes of processor time",
        ),
        _points,
        _measure,
        _compare,
        _draw,
        parallel=True,
    ),
)
