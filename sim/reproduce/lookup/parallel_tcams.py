"""Figures 3.2 and 3.3 of the routing-cache paper: TCAMs that are searched in turns, beside the cache."""

import math
from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from hopforge.hw.lookup.parallel_tcams import ParallelTcams
from hopforge.model.config.energy import EnergyConfig
from hopforge.model.lookup.cache_line import LINE_BYTES
from hopforge.model.output.plots import Line, draw_lines, draw_paper_points, new_figure, style_axes
from hopforge.sim.hits.analytic import LOOKUP_POWERS, line_rate_gbps, lookup_energy, packet_rate
from hopforge.sim.reproduce.costs.gate_cost import block_cost
from hopforge.sim.reproduce.lookup.reduction_cost import library_note, row_value
from hopforge.sim.reproduce.registry import Comparison, Options, Point, Reproduction, Row, integer

_TCAMS = (1, 2, 4, 6, 8, 10, 16, 25, 40, 63)
_SEARCH_NS = (4, 25)
_CACHE_NS, _CACHE_GBPS = 0.41, 1640.0
_ROWS = 64
_MISS = 0.01
_RECIPES = ("lut-fast",)
_OUTSIDE = 25  # ns: a TCAM with a chip of its own has no area here


def _points(_options: Options) -> list[Point]:
    return [{"tcams": tcams, "search_ns": search} for search in _SEARCH_NS for tcams in _TCAMS]


def _cache_area_um2() -> float:
    """Area of the lookup engine of a port and its cache of 2048 lines."""
    energy = EnergyConfig()
    return energy.engine_um2 + 2048 * LINE_BYTES * energy.cache_um2_per_byte


def _measure(point: Point, options: Options) -> list[Row]:
    tcams, search = integer(point, "tcams"), integer(point, "search_ns")
    logic = block_cost(ParallelTcams(tcams=tcams), options.liberty, recipes=_RECIPES)
    rate = line_rate_gbps(lookup_ns=search / tcams)
    rows = 0.0 if search >= _OUTSIDE else tcams * _ROWS * EnergyConfig().tcam_um2_per_row
    packets = packet_rate(load_gbps=rate)
    static = (tcams - 1) * LOOKUP_POWERS.tcam_power_mw * 1e-3
    without = lookup_energy(packets_per_second=packets, miss_ratio=1.0, cached=False) + static
    cached = lookup_energy(packets_per_second=packets, miss_ratio=_MISS, ports=1)
    return [
        {
            "tcams": tcams,
            "search_ns": search,
            "forwarding_mpps": packets / 1e6,
            "line_rate_gbps": rate,
            "dispatcher_gates": logic.gates,
            "dispatcher_um2": logic.area_um2,
            "tcams_um2": rows,
            "area_mm2": None if logic.area_um2 is None else (logic.area_um2 + rows) * 1e-6,
            "power_w": without,
            "energy_nj": without / packets * 1e9,
            "cache_power_w": cached,
            "cache_energy_nj": cached / packets * 1e9,
            "cache_area_mm2": _cache_area_um2() * 1e-6,
        }
    ]


def _compare(data: pd.DataFrame, options: Options) -> list[Comparison]:
    turns = "TCAMs in turns: K / t lookups a second"
    small = "cache at the same rate, 1 % of lookups ask one TCAM; 42 nJ a search, 0.039 nJ a hit"
    gates = "gates" if options.liberty is None else "µm²"
    column = "dispatcher_gates" if options.liberty is None else "dispatcher_um2"
    found = [
        Comparison("line rate, 1 TCAM of 4 ns", "Gbps", 168.0, _at(data, "line_rate_gbps", 1, 4), turns),
        Comparison("forwarding, 1 TCAM of 25 ns", "Mpps", 40.0, _at(data, "forwarding_mpps", 1, 25), turns),
        Comparison("line rate of 6 Bpps (Tofino2)", "Tbps", 4.0, line_rate_gbps(lookup_ns=1 / 6) / 1e3, "84 bytes"),
        Comparison("line rate, 6 TCAMs of 4 ns (figure 3.3)", "Gbps", None, _at(data, "line_rate_gbps", 6, 4), turns),
    ]
    for search in _SEARCH_NS:
        need = math.ceil(search / _CACHE_NS)
        note = f"rate of a cache of {_CACHE_NS} ns, {_CACHE_GBPS:.0f} Gbps in the paper"
        found.append(Comparison(f"TCAMs of {search} ns as fast as the cache", "TCAMs", None, need, note))
    for tcams in (6, 10):
        found += [
            Comparison(f"power, {tcams} TCAMs of 4 ns", "W", None, _at(data, "power_w", tcams, 4), turns),
            Comparison(f"power, cache of that rate ({tcams})", "W", None, _at(data, "cache_power_w", tcams, 4), small),
        ]
    found += [
        Comparison(f"dispatcher of {tcams} TCAMs", gates, None, _at(data, column, tcams, 4), library_note(options))
        for tcams in (1, 6, 10, 63)
    ]
    if options.liberty is not None:
        note = f"{_ROWS} rows each, 659 µm² a row (own synthesis); {library_note(options)}"
        found += [
            Comparison(f"area, {tcams} TCAMs of 4 ns", "mm²", None, _at(data, "area_mm2", tcams, 4), note)
            for tcams in (1, 6, 10)
        ]
    cache = "engine 22 901 µm² (own synthesis) and 2048 lines (CACTI 7); its one TCAM is not counted"
    found.append(Comparison("area, engine and cache of a port", "mm²", None, _cache_area_um2() * 1e-6, cache))
    return found


def _at(data: pd.DataFrame, column: str, tcams: int, search: int) -> float | None:
    return row_value(data, column, tcams=tcams, search_ns=search)


def _draw(data: pd.DataFrame, _options: Options) -> Figure:
    figure, (axes,) = new_figure(width_in=8.0)
    style_axes(
        axes, title="TCAMs searched in turns, packets of 84 bytes", x_label="TCAMs", y_label="line rate (Gbps)",
        log_x=True, x_ticks=[1, 2, 4, 6, 10, 25, 63],
    )  # fmt: skip
    axes.axhline(_CACHE_GBPS, linestyle=":", color="0.4")
    axes.annotate("cache, 0.41 ns", (1, _CACHE_GBPS), (1.05, _CACHE_GBPS * 1.03))
    draw_paper_points(axes, 1, 168.0, label="paper", offset=(4, 14))
    lines = []
    for color, search in enumerate(_SEARCH_NS):
        part = data[data["search_ns"] == search]
        lines.append(Line(f"{search} ns a search", part["tcams"], part["line_rate_gbps"], color=color))
    draw_lines(axes, lines)
    return figure


REPRODUCTIONS: Sequence[Reproduction] = (
    Reproduction(
        "lookup.fig3.3",
        "TCAMs searched in parallel, beside the cache",
        "seed 004, figures 3.2 and 3.3",
        (
            "every TCAM holds all rows and searches for one request at a time; request n goes to TCAM n mod K",
            "the paper's figures show the structure (six tables) and no values; those beside ours are from its text",
            "power by eq. 4.5, one port, 36 mW for each TCAM; a TCAM of 25 ns is a chip outside, without area here",
        ),
        _points,
        _measure,
        _compare,
        _draw,
        uses=("liberty",),
    ),
)
