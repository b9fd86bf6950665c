"""Figures 4.3 and 4.4 of the routing-cache paper: area and latency of the cache of one input port."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from hopforge.hw.cache.tag_select import TagSelect
from hopforge.model.output.plots import Line, draw_lines, draw_paper_points, new_figure, style_axes
from hopforge.sim.hits.analytic import line_rate_gbps
from hopforge.sim.reproduce.costs.cacti import CACHE_45NM, CACHE_NODES_2048, ENTRIES, WAY_45NM
from hopforge.sim.reproduce.costs.gate_cost import block_cost
from hopforge.sim.reproduce.lookup.reduction_cost import library_note, row_value
from hopforge.sim.reproduce.registry import Comparison, Options, Point, Reproduction, Row, integer

_WAYS = 4
_TAG_BITS = 64
_OUTPUT_BITS = 16


def _points(_options: Options) -> list[Point]:
    return [{"entries": entries} for entries in ENTRIES]


def _measure(point: Point, options: Options) -> list[Row]:
    entries = integer(point, "entries")
    way, cache = WAY_45NM[entries], CACHE_45NM[entries]
    logic = block_cost(TagSelect(ways=_WAYS, tag_bits=_TAG_BITS, output_bits=_OUTPUT_BITS), options.liberty)
    area, delay = logic.area_um2, logic.delay_ns
    return [
        {
            "entries": entries,
            "ways_area_mm2": _WAYS * way.area_mm2,
            "way_access_ns": way.access_ns,
            "logic_gates": logic.gates,
            "logic_levels": logic.levels,
            "logic_area_um2": area,
            "logic_delay_ns": delay,
            "area_mm2": None if area is None else _WAYS * way.area_mm2 + area * 1e-6,
            "latency_ns": None if delay is None else way.access_ns + delay,
            "cacti_cache_area_mm2": cache.area_mm2,
            "cacti_cache_access_ns": cache.access_ns,
            "cacti_cache_read_pj": cache.read_energy_pj,
        }
    ]


def _compare_area(data: pd.DataFrame, options: Options) -> list[Comparison]:
    note = f"four CACTI 7 RAM ways of 512 × 96 bits and our tag compare and select ({library_note(options)})"
    cacti = "CACTI 7, itrs-hp, data and tags of its own; the paper: CACTI 6.5"
    ours = row_value(data, "area_mm2", entries=2048)
    logic = row_value(data, "logic_area_um2", entries=2048)
    result = [
        Comparison("area of one port, 2048 entries, ours", "mm²", 0.228, ours, note),
        Comparison("area of one port, 2048 entries, CACTI's cache", "mm²", 0.228, CACHE_45NM[2048].area_mm2, cacti),
        Comparison("area of 64 ports, ours", "mm²", 14.6, None if ours is None else 64 * ours, note),
        Comparison("area of 64 ports, CACTI's cache", "mm²", 14.6, 64 * CACHE_45NM[2048].area_mm2, cacti),
        Comparison("area of one port, 32 nm, CACTI's cache", "mm²", 0.18, CACHE_NODES_2048[32].area_mm2, cacti),
        Comparison("area of one port, 65 nm, CACTI's cache", "mm²", 0.73, CACHE_NODES_2048[65].area_mm2, cacti),
        Comparison("area of our tag compare and select", "µm²", None, logic, library_note(options)),
        Comparison("read energy, CACTI's cache", "nJ", 0.039, CACHE_45NM[2048].read_energy_pj / 1000, cacti),
    ]
    gates = row_value(data, "logic_gates", entries=2048)
    return (
        result
        if options.liberty
        else [*result, Comparison("tag compare and select", "gates", None, gates, "generic two-input gates")]
    )


def _compare_latency(data: pd.DataFrame, options: Options) -> list[Comparison]:
    note = f"access of a 512 × 96 RAM way (CACTI 7) and our tag compare and select ({library_note(options)})"
    cacti = "CACTI 7, itrs-hp; the paper: CACTI 6.5, and it gives the same 0.41 ns for 32 nm (4.2.2) and 45 nm (4.3.1)"
    ours = row_value(data, "latency_ns", entries=2048)
    logic = row_value(data, "logic_delay_ns", entries=2048)
    slower = None if logic is None else max(logic, WAY_45NM[2048].cycle_ns)
    result = [
        Comparison("latency, 2048 entries, ours, not pipelined", "ns", 0.41, ours, note),
        Comparison("latency, 2048 entries, CACTI's cache, 45 nm", "ns", 0.41, CACHE_45NM[2048].access_ns, cacti),
        Comparison("latency, 2048 entries, CACTI's cache, 32 nm", "ns", 0.41, CACHE_NODES_2048[32].access_ns, cacti),
        Comparison(
            "line rate, not pipelined", "Gbps", 1640.0, None if ours is None else line_rate_gbps(lookup_ns=ours), note
        ),
        Comparison(
            "line rate, a stage for the RAM and one for the tags",
            "Gbps",
            1640.0,
            None if slower is None else line_rate_gbps(lookup_ns=slower),
            f"cycle of the RAM or our logic; {note}",
        ),
    ]
    levels = row_value(data, "logic_levels", entries=2048)
    return (
        result
        if options.liberty
        else [*result, Comparison("tag compare and select", "levels", None, levels, "generic two-input gates")]
    )


def _lines(data: pd.DataFrame, ours: str, ram: str, cache: str, has_library: bool) -> list[Line]:
    lines = [
        Line("CACTI's 4-way cache", data["entries"], data[cache], color=1),
        Line("RAM of the ways (CACTI)", data["entries"], data[ram], color=2, dashed=True),
    ]
    if has_library:
        lines.append(Line("ways and our logic", data["entries"], data[ours], color=0))
    return lines


def _draw_area(data: pd.DataFrame, options: Options) -> Figure:
    figure, (axes,) = new_figure(width_in=8.0)
    style_axes(
        axes,
        title="Cache of one input port, 4 ways, 12-byte lines, 45 nm",
        x_label="entries",
        y_label="area (mm²)",
        log_x=True,
        x_ticks=list(ENTRIES),
    )
    draw_paper_points(axes, 2048, 0.228, label="paper", offset=(0, 14))
    draw_lines(axes, _lines(data, "area_mm2", "ways_area_mm2", "cacti_cache_area_mm2", options.liberty is not None))
    return figure


def _draw_latency(data: pd.DataFrame, options: Options) -> Figure:
    figure, (axes,) = new_figure(width_in=8.0)
    style_axes(
        axes,
        title="Cache of one input port, 4 ways, 12-byte lines, 45 nm",
        x_label="entries",
        y_label="access latency (ns)",
        log_x=True,
        x_ticks=list(ENTRIES),
    )
    draw_paper_points(axes, 2048, 0.41, label="paper", offset=(-6, 14))
    axes.set_ylim(0, 0.95)
    draw_lines(axes, _lines(data, "latency_ns", "way_access_ns", "cacti_cache_access_ns", options.liberty is not None))
    return figure


_ASSUMED = (
    "memories are CACTI's (45 nm itrs-hp, 360 K; the table is part of hopforge), logic is synthesised with the library",
    "a line of 12 bytes: 64 tag, 16 output, 16 reserved bits; replacement state and wires between the ways not counted",
)

REPRODUCTIONS: Sequence[Reproduction] = (
    Reproduction(
        "lookup.fig4.3",
        "Area of the cache at an input port",
        "seed 004, figure 4.3, section 4.3.1",
        _ASSUMED,
        _points,
        _measure,
        _compare_area,
        _draw_area,
        uses=("liberty",),
    ),
    Reproduction(
        "lookup.fig4.4",
        "Latency of the cache at an input port",
        "seed 004, figure 4.4, section 4.3.1",
        _ASSUMED,
        _points,
        _measure,
        _compare_latency,
        _draw_latency,
        uses=("liberty",),
    ),
)
