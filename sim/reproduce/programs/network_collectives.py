"""Collectives in the network beside the same by hosts: cycles on six networks, area of a unit beside its router."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from hopforge.gen.design.collective_blocks import collective_blocks
from hopforge.gen.synth.area_and_delay import synthesize
from hopforge.gen.synth.cells import read_library
from hopforge.model.config import Config, parse_config
from hopforge.model.config.load import suited
from hopforge.model.output.plots import Line, draw_grouped_bars, draw_lines, new_figure, style_axes
from hopforge.sim.programs.network_collectives import CollectiveRow, prepare_collectives, run_collectives
from hopforge.sim.reproduce.registry import Comparison, Options, Point, Reproduction, Row

_CHIP = (
    "router: {{vcs: 2, buffer_flits: 8}}\ntraffic: {{flit_bytes: 8}}\n"
    "timing: {{link_gbps: 64, switch_base_ns: 3, cable_ns: 1}}\n"
    "collective_plane: {{width_bits: 32, buffer_flits: 8, words: {words}}}\n"
)
_SYSTEM = (
    "router: {{vcs: {vcs}}}\nrouting: {{algorithm: {routing}}}\ntiming: {{link_gbps: 100}}\n"
    "collective_plane: {{width_bits: 64, buffer_flits: 64, words: {words}}}\n"
)
#: name → topology, routing algorithm and virtual channels; on a chip: None
_NETWORKS: dict[str, tuple[str, tuple[str, int] | None]] = {
    "4x4 mesh": ("{kind: mesh, radices: [4, 4]}", None),
    "8x8 mesh": ("{kind: mesh, radices: [8, 8]}", None),
    "16x16 mesh": ("{kind: mesh, radices: [16, 16]}", None),
    "4x4x4 torus": ("{kind: torus, radices: [4, 4, 4]}", ("dor", 2)),
    "fat tree, 64 hosts": ("{kind: fat_tree, k: 4, n: 2}", ("d_mod_k", 1)),
    "dragonfly, 72 hosts": ("{kind: dragonfly, p: 2, a: 4, h: 2}", ("dragonfly_min", 3)),
}
_WORDS = (1, 16, 256)
_MAGIA = "10 to 100"
#: ports of the routers come from the network
_UNITS = {
    "mesh, 2 groups of 4 flits, 32 bits": ("{kind: mesh, radices: [4, 4]}", 2, 4, 32, 2),
    "mesh, 1 group of 4 flits, 32 bits": ("{kind: mesh, radices: [4, 4]}", 1, 4, 32, 2),
    "mesh, 2 groups of 2 flits, 32 bits": ("{kind: mesh, radices: [4, 4]}", 2, 2, 32, 2),
    "mesh, 2 groups of 4 flits, 64 bits": ("{kind: mesh, radices: [4, 4]}", 2, 4, 64, 2),
}
_RECIPE = "lut-fast"


def network_config(name: str) -> Config:
    """Return a network with all its hosts in one group."""
    topology, system = _NETWORKS[name]
    words = list(_WORDS)
    rest = _CHIP.format(words=words) if system is None else (
        _SYSTEM.format(words=words, routing=system[0], vcs=system[1])
    )  # fmt: skip
    return suited(parse_config(f"name: collectives\ntopology: {topology}\n{rest}"), hardware=False, keys=False)


def unit_config(name: str) -> Config:
    """Return a network whose unit and router are synthesized."""
    topology, groups, flits, bits, vcs = _UNITS[name]
    return parse_config(
        f"name: collectives\ntopology: {topology}\n"
        f"router: {{vcs: {vcs}, buffer_flits: 4, flit_bits: 64, flit_buffers: flip_flops}}\n"
        f"collective_plane: {{max_groups: {groups}, buffer_flits: {flits}, width_bits: {bits}}}\n"
    )


def _points(options: Options) -> list[Point]:
    return [{"network": name} for name in _NETWORKS]


def _measure(point: Point, options: Options) -> list[Row]:
    setup = prepare_collectives(network_config(str(point["network"])))
    found = run_collectives(setup).found
    depth = setup.design.trees[0].depth
    return [{**point, "depth": depth, **_plain(row)} for row in found]


def _plain(row: CollectiveRow) -> Row:
    return {
        "hosts": row.hosts, "operation": row.operation, "words": row.words, "bytes": row.bytes, "by": row.by,
        "cycles": row.cycles, "ns": row.ns,
    }  # fmt: skip


def _compare(data: pd.DataFrame, options: Options) -> list[Comparison]:
    found = []
    for (network, operation, size), part in data.groupby(["network", "operation", "words"], sort=False):
        words = int(str(size))
        own = part[part["by"] == "network"].iloc[0]
        others = part[part["by"] != "network"].sort_values("cycles", kind="stable")
        best = others.iloc[0]
        text = ", ".join(f"{row['by']} {row['cycles']:,}" for row in others.to_dict("records"))
        many = {0: "", 1: ", 1 word"}.get(int(str(words)), f", {words} words")
        what = f"{operation}{many}"
        found.append(
            Comparison(
                f"{what}, {network}", "cycles", float(best["cycles"]), float(own["cycles"]),
                f"depth {own['depth']}; by hosts: {text}",
            )
        )  # fmt: skip
        if operation == "barrier" and "mesh" in str(network):
            note = "MAGIA says so of its own, up to 16x16; its cores and network are others"
            found.append(Comparison(f"{what}, {network}, MAGIA", "cycles", None, float(own["cycles"]), note, _MAGIA))
    return found


def _draw(data: pd.DataFrame, options: Options) -> Figure:
    figure, panels = new_figure(panels=2, width_in=5.4)
    names = list(dict.fromkeys(data["network"]))
    for axes, words in zip(panels, (_WORDS[0], _WORDS[-1]), strict=True):
        part = data[(data["operation"] == "allreduce") & (data["words"] == words)]
        title = f"All-reduce, {words} word{'s' * (words > 1)}"
        style_axes(axes, title=title, x_label="", y_label="cycles", log_y=True)
        lines = []
        for color, by in enumerate(dict.fromkeys(part["by"])):
            cycles = part[part["by"] == by].set_index("network")["cycles"].reindex(names)
            lines.append(Line(str(by), list(range(len(names))), cycles.to_numpy(), color))
        draw_lines(axes, lines)
        places = [name.replace(", " if ", " in name else " ", "\n") for name in names]
        axes.set_xticks(range(len(names)), labels=places)
        axes.tick_params(axis="x", labelsize=7)
    return figure


def _area_points(options: Options) -> list[Point]:
    return [{"unit": name} for name in _UNITS]


def _area(point: Point, options: Options) -> list[Row]:
    library = None if options.liberty is None else read_library(options.liberty)
    rows: list[Row] = []
    for name, block in collective_blocks(unit_config(str(point["unit"]))).items():
        if name == "word_combiner" and library is None:
            continue
        best = synthesize(block, library, recipes=None if library is None else [_RECIPE], timeout_s=1200)[0]
        rows.append({
            **point, "block": name, "cells": best.cells, "flops": best.flops, "area_um2": best.area_um2,
            "period_ns": best.figure_ns,
        })  # fmt: skip
    return rows


def _compare_area(data: pd.DataFrame, options: Options) -> list[Comparison]:
    found = []
    for name, part in data.groupby("unit", sort=False):
        unit = part[part["block"] == "collective_unit"].iloc[0]
        router = part[part["block"] == "router"].iloc[0]
        if options.liberty is None:
            for column in ("cells", "flops"):
                what = "gates" if column == "cells" else "flip-flops"
                found.append(Comparison(f"{what}, {name}", what, float(router[column]), float(unit[column]), _NOTE))
            continue
        found.append(Comparison(f"area, {name}", "µm²", float(router["area_um2"]), float(unit["area_um2"]), _NOTE))
        found.append(
            Comparison(f"period, {name}", "ns", float(router["period_ns"]), float(unit["period_ns"]), _NOTE)
        )
        combiner = part[part["block"] == "word_combiner"].iloc[0]
        text = "words of all ports by one operation, between registers that count in the area"
        found.append(Comparison(f"combiner alone, {name}", "µm²", None, float(combiner["area_um2"]), text))
        found.append(Comparison(f"combiner's period, {name}", "ns", None, float(combiner["period_ns"]), text))
    return found


_NOTE = "the router beside it: 5 ports, 2 VCs of 4 flits of 64 bits, flip-flops for buffers as in the unit"


def _draw_area(data: pd.DataFrame, options: Options) -> Figure:
    figure, (axes,) = new_figure(width_in=8.0)
    column = "cells" if options.liberty is None else "area_um2"
    unit = "gates" if options.liberty is None else "area (µm²)"
    style_axes(axes, title="Collective unit and the router beside it", x_label="", y_label=unit)
    names = list(dict.fromkeys(data["unit"]))
    series = {
        block: data[data["block"] == block][column].astype(float).tolist() for block in ("collective_unit", "router")
    }
    draw_grouped_bars(axes, groups=[name.replace(", ", ",\n") for name in names], series=series)
    return figure


REPRODUCTIONS: Sequence[Reproduction] = (
    Reproduction(
        "collectives.cycles",
        "Barrier, broadcast, all-reduce: network and hosts",
        "the definition, docs/definitions/network-collectives.md",
        (
            "all hosts in one group; they begin together, need no time to begin a message or to combine words",
            "meshes: a cycle of 1 ns, links of a cycle; words of 32 bits, flits of 64 bits with 2 VCs of 8 flits",
            "others: flits of 64 bytes at 100 Gb/s, switches of 51 ns, cables of 50 ns; words of 64 bits, 64 flits a "
            "group in the plane",
            "by hosts: the fastest of the algorithms that the last column lists; deviation is (network − hosts)/hosts",
            "one clock for both: the unit's shortest period is longer than the router's (collectives.area)",
        ),
        _points,
        _measure,
        _compare,
        _draw,
        reference="by hosts",
        parallel=True,
    ),
    Reproduction(
        "collectives.area",
        "Area of a collective unit beside its router",
        "the definition, docs/definitions/network-collectives.md",
        ("one recipe of abc, ideal wires; generic gates without --liberty",),
        _area_points,
        _area,
        _compare_area,
        _draw_area,
        uses=("liberty",),
        reference="router",
        parallel=True,
    ),
)
