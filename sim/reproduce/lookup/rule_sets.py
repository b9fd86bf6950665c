"""Caches before rules in sets: hit rate against ways and hashed bits, area with the memories of the lines."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from hopforge.gen.design.rule_cache_blocks import rule_cache_blocks
from hopforge.gen.synth.area_and_delay import synthesize
from hopforge.gen.synth.cells import read_library
from hopforge.hw.parts.sram import Sram
from hopforge.hw.rules.cube_sets import CubeSets
from hopforge.model.config import parse_config
from hopforge.model.output.plots import Line, draw_grouped_bars, draw_lines, new_figure, style_axes
from hopforge.sim.hits.analytic import forwarding_rate
from hopforge.sim.reproduce.costs.cacti import WAY_45NM
from hopforge.sim.reproduce.lookup.rule_figures import ASSUMED, MIXES, POLICIES, USUAL, measure
from hopforge.sim.reproduce.registry import Comparison, Options, Point, Reproduction, Row, Value, integer

_FULL = "all"
"""A single set that holds every entry, with cubes of any width."""
_WAYS: tuple[Value, ...] = (1, 2, 4, 8, 16, _FULL)
_INDEX_BITS = (12, 16, 20, 24, 28, 32)
_INDEX_WAYS = 4
_RAM_BITS = 96
_RECIPE = "lut-buffered"
_LINES: tuple[tuple[int, int | None], ...] = (
    (64, None), (64, 4), (256, 4), (1024, 1), (1024, 2), (1024, 4), (1024, 8), (1024, 16), (4096, 4), (16_384, 4),
)  # fmt: skip


def _points(key: str, values: Sequence[Value], other: str, others: Sequence[Value]) -> Callable[[Options], list[Point]]:
    return lambda options: [{**USUAL, other: one, key: value} for one in others for value in values]


def _run(point: Point, options: Options) -> list[Row]:
    """Measure a point; `ways` of `_FULL` is a cache without sets, and hashed bits need ways."""
    asked = {key: value for key, value in point.items() if (key, value) != ("ways", _FULL)}
    if "index_bits" in point:
        asked["ways"] = _INDEX_WAYS
    return [{**row, **point} for row in measure(asked, options)]


def _where(key: str, value: object) -> str:
    return f"{key.replace('_', ' ')} {value:,}" if isinstance(value, int) else f"{key.replace('_', ' ')} {value}"


def _compare(key: str, other: str) -> Callable[[pd.DataFrame, Options], list[Comparison]]:
    def compare(data: pd.DataFrame, options: Options) -> list[Comparison]:
        alone = forwarding_rate(miss_ratio=1, cached=False) / 1e6
        found = []
        for row in data.to_dict("records"):
            quantity = f"hit rate, {_where(other, row[other])}, {_where(key, row[key])}, {row['policy']}"
            note = f"{row['forwarding_mpps']:.0f} Mpps; the TCAM alone {alone:.0f}"
            found.append(Comparison(quantity, "%", None, float(row["hit_percent"]), note))
        return found

    return compare


def _draw(key: str, label: str, other: str) -> Callable[[pd.DataFrame, Options], Figure]:
    def draw(data: pd.DataFrame, options: Options) -> Figure:
        names, others = list(dict.fromkeys(data[key])), list(dict.fromkeys(data[other]))
        figure, panels = new_figure(panels=len(others), columns=len(others), width_in=4.6)
        for one, axes in zip(others, panels, strict=True):
            style_axes(axes, title=_where(other, one), x_label=label, y_label="hit rate, %")
            part = data[data[other] == one]
            draw_lines(axes, [
                Line(policy, np.arange(len(names)), part[part["policy"] == policy]["hit_percent"], color)
                for color, policy in enumerate(POLICIES)
            ])  # fmt: skip
            axes.set_xticks(range(len(names)), labels=[str(name) for name in names])
        return figure

    return draw


def memory_um2(memories: Sequence[Sram]) -> float:
    """Area of memories: each bit as large as in CACTI's RAM of as many words, else of the next fewer, or of the least.

    `WAY_45NM` has RAMs of 96 bits: a way of so many entries of a cache of 4 ways.
    """
    bit = {entries // 4: way.area_mm2 * 1e6 / (entries // 4 * _RAM_BITS) for entries, way in WAY_45NM.items()}
    known = [max((words for words in bit if words <= memory.depth), default=min(bit)) for memory in memories]
    return sum(
        memory.depth * memory.width_bits * bit[words] for memory, words in zip(memories, known, strict=True)
    )


def _area_points(options: Options) -> list[Point]:
    return [{"lines": lines, "ways": ways or 0} for lines, ways in _LINES]


def _area(point: Point, options: Options) -> list[Row]:
    library = None if options.liberty is None else read_library(options.liberty)
    ways = integer(point, "ways")
    config = parse_config(
        "name: lines\ntopology: {kind: mesh, radices: [2, 2]}\n"
        f"rule_cache: {{policy: mep, entries: {point['lines']}, rows: 8, address_bits: 32"
        f"{f', ways: {ways}' if ways else ''}}}\n"
    )
    block = rule_cache_blocks(config)["cube_sets" if ways else "cube_lines"]
    lines = block.build()
    memories: list[Sram] = []
    if isinstance(lines, CubeSets):
        memories = [*lines.memories, *([] if lines.lru_memory is None else [lines.lru_memory])]
    recipes = None if library is None else [_RECIPE]
    found = synthesize(replace(block, build=lambda: lines), library, recipes=recipes, timeout_s=1200)[0]
    return [{
        **point, "cells": found.cells, "flops": found.flops, "logic_um2": found.area_um2, "period_ns": found.figure_ns,
        "memory_bits": sum(memory.depth * memory.width_bits for memory in memories), "memory_um2": memory_um2(memories),
    }]  # fmt: skip


def _lines_name(row: Mapping[Hashable, Any]) -> str:
    return f"{row['lines']:,} lines, " + (f"sets of {row['ways']}" if row["ways"] else "fully associative")


def _compare_area(data: pd.DataFrame, options: Options) -> list[Comparison]:
    found = []
    for row in data.to_dict("records"):
        name = _lines_name(row)
        if options.liberty is None:
            found.append(Comparison(f"logic, {name}", "gates", None, float(row["cells"]), "generic gates"))
        else:
            whole = row["logic_um2"] + row["memory_um2"]
            note = f"memories {row['memory_um2']:,.0f} µm² ({row['memory_bits']:,} bits), logic {row['logic_um2']:,.0f}"
            found += [
                Comparison(f"area, {name}", "µm²", None, float(whole), note),
                Comparison(f"period, {name}", "ns", None, float(row["period_ns"]), "of the logic"),
            ]
        found.append(Comparison(f"flip-flops, {name}", "", None, float(row["flops"]), "memories have none"))
    return found


def _draw_area(data: pd.DataFrame, options: Options) -> Figure:
    figure, (axes,) = new_figure(width_in=9.0)
    logic, unit = ("cells", "gates") if options.liberty is None else ("logic_um2", "area (µm²)")
    style_axes(axes, title="Lines of a cache before rules", x_label="", y_label=unit, log_y=True)
    series = {"logic": data[logic].astype(float).tolist()}
    if options.liberty is not None:
        series["memories"] = data["memory_um2"].astype(float).tolist()
    draw_grouped_bars(
        axes, groups=[_lines_name(row).replace(", ", ",\n") for row in data.to_dict("records")], series=series
    )
    return figure


_SOURCE = "seed 004, 7.2.2 (future work), which has no figure"
_SETS = (
    ASSUMED[0], "LRU in each set; 200,000 lookups, 1,000,000 with --full; every hit is compared with the TCAM",
    ASSUMED[-1],
)  # fmt: skip
_HASHED = "hashed: the highest 24 bits, exact all 32; ways all: fully associative, cubes of any width"

REPRODUCTIONS: Sequence[Reproduction] = (
    Reproduction(
        "rules.ways", "Hit rate of rule caches in sets: ways and entries", _SOURCE,
        (*_SETS, _HASHED),
        _points("ways", _WAYS, "entries", (256, 1024, 4096)), _run, _compare("ways", "entries"),
        _draw("ways", "ways", "entries"),
    ),
    Reproduction(
        "rules.ways-zipf", "Hit rate of rule caches in sets: ways and Zipf exponent", _SOURCE, (*_SETS, _HASHED),
        _points("ways", _WAYS, "zipf", (0.6, 1.0, 1.4)), _run, _compare("ways", "zipf"), _draw("ways", "ways", "zipf"),
    ),
    Reproduction(
        "rules.index-bits", "Hit rate of rule caches in sets: hashed bits and mix", _SOURCE,
        (*_SETS, f"1024 entries in sets of {_INDEX_WAYS}"),
        _points("index_bits", _INDEX_BITS, "mix", tuple(MIXES)), _run, _compare("index_bits", "mix"),
        _draw("index_bits", "highest bits that are hashed", "mix"),
    ),
    Reproduction(
        "rules.area", "Area of the lines of a rule cache, with memories", _SOURCE,
        (
            "policy mep, addresses of 32 bits, answers of 8; recipe lut-buffered, flip-flops with clock gates",
            "memories: bits of all ways and of the LRU; each as large as in a RAM of so many words by CACTI 7, 45 nm",
            "CACTI's RAMs have 96 bits a word, one port for reads and writes, 64 words at least; ours one port of each",
            "a cache that is fully associative has its lines in flip-flops: no memories",
        ),
        _area_points, _area, _compare_area, _draw_area, uses=("liberty",), parallel=True,
    ),
)  # fmt: skip
