"""Routing caches in a network with LOREN's tables: keyed by the destination, or by the entry that a packet takes."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from hopforge.model.config import parse_config
from hopforge.model.output.plots import PALETTE, Line, draw_lines, new_figure, style_axes
from hopforge.model.topology import build
from hopforge.sim.hits.replay import PIECE_PACKETS, Replay
from hopforge.sim.reproduce.lookup.conflicts import trace_file
from hopforge.sim.reproduce.registry import Comparison, Options, Point, Reproduction, Row, pick
from hopforge.sim.traffic.workload_packets import build_workload

_ENTRIES = (4, 8, 16, 32, 64, 128, 256)
#: label, section `tables`
_TABLES = {
    "shortest, destination": "scheme: shortest, layers: lash",
    "LOREN least, entry": "scheme: loren, cache_key: entry",
    "LOREN 18, destination": "scheme: loren, t_max: 18",
    "LOREN 18, entry": "scheme: loren, t_max: 18, cache_key: entry",
    "LOREN 32, entry": "scheme: loren, t_max: 32, cache_key: entry",
}
_COUNTS = ("lookups", "hits", "compulsory", "capacity", "conflict")
_PROGRAMS = ("is.A.64", "cg.A.64")


def _points(options: Options) -> list[Point]:
    programs = [program for program in _PROGRAMS if trace_file(program, options) is not None]
    return [{"workload": workload} for workload in ("uniform", *programs)]


def _measure(point: Point, options: Options) -> list[Row]:
    name = str(point["workload"])
    workload = "kind: uniform, packets_per_host: 2000"
    if name != "uniform":
        workload = f"kind: trace, file: '{trace_file(name, options)}'"
    rows: list[Row] = []
    packets = None
    for label, section in _TABLES.items():
        for entries in _ENTRIES:
            config = parse_config(
                f"name: cache\nseed: {options.seed}\n"
                "topology: {kind: layout_random, n: 8, degree: 4, length: 2, seed: 1}\n"
                f"tables: {{{section}}}\nrouting: {{algorithm: tables}}\n"
                f"lookup: {{cache: {{entries: {entries}, ways: 4}}}}\nworkload: {{{workload}}}\n"
            )
            topology = build(config.topology, config.address)
            if packets is None:
                assert config.workload is not None
                packets = build_workload(config.workload, topology, config.seed).all_packets()
            caches = Replay(config, topology)
            for start in range(0, len(packets[0]), PIECE_PACKETS):
                caches.send(*(part[start : start + PIECE_PACKETS] for part in packets))
            counts = {name: int(getattr(caches.result, name).sum()) for name in _COUNTS}
            rate = counts["hits"] / counts["lookups"]
            rows.append({**point, "tables": label, "entries": entries, "hit_rate": rate, **counts})
    return rows


def _compare(data: pd.DataFrame, options: Options) -> list[Comparison]:
    found = []
    for workload in data["workload"].unique():
        for entries in _ENTRIES[:5]:
            for tables in _TABLES:
                rate = 100 * pick(data, "hit_rate", workload=workload, tables=tables, entries=entries)
                quantity = f"{workload}, {entries} lines, {tables}"
                found.append(Comparison(quantity, "%", None, rate, "hit rate; no paper has measured this"))
    return found


def _draw(data: pd.DataFrame, options: Options) -> Figure:
    workloads = list(data["workload"].unique())
    figure, panels = new_figure(panels=len(workloads))
    for axes, workload in zip(panels, workloads, strict=True):
        style_axes(
            axes, title=f"64 switches, {workload}", x_label="lines of a cache", y_label="hit rate, %", log_x=True,
            x_ticks=list(_ENTRIES),
        )  # fmt: skip
        lines = []
        for color, tables in enumerate(_TABLES):
            part = data[(data["workload"] == workload) & (data["tables"] == tables)].sort_values("entries")
            lines.append(Line(tables, part["entries"], 100 * part["hit_rate"], color=color % len(PALETTE)))
        axes.set_ylim(0, 102)
        draw_lines(axes, lines)
    return figure


REPRODUCTIONS: Sequence[Reproduction] = (
    Reproduction(
        name="loren.cache",
        title="Hit rates of routing caches with LOREN's tables, by key",
        source="not in a paper; issue 4",
        assumptions=(
            "layout-conscious random network of 8×8 switches, degree 4, length 2, a host each",
            "4-way LRU caches at every input port, empty at the start; NPB 3.3.1 class A by --traces, ranks in order",
            "the key is the destination, or the destination of the table's entry that the packet takes",
        ),
        points=_points,
        measure=_measure,
        compare=_compare,
        draw=_draw,
        uses=("traces",),
    ),
)
