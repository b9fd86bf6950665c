"""Figures 5.23 and 5.24 and table 6.1 of the routing-cache paper: what node reduction costs in gates."""

from collections.abc import Sequence
from dataclasses import asdict

import pandas as pd
from matplotlib.figure import Figure

from hopforge.hw.keys.node_reduction import NodeReduction
from hopforge.hw.keys.reduction_parameters import ReductionParameters
from hopforge.model.numbers.crc import crc_matrix
from hopforge.model.output.plots import draw_grouped_bars, new_figure, style_axes
from hopforge.sim.hits.analytic import line_rate_gbps
from hopforge.sim.reproduce.costs.gate_cost import block_cost
from hopforge.sim.reproduce.registry import Comparison, Options, Point, Reproduction, Row

ADDRESS_BITS = 24
_GRID = ("mesh", "torus")
_VARIANTS = ("combinational", "two stages")


_TOPOLOGIES = (*_GRID, "fat_tree", "dragonfly")


def _with_members() -> ReductionParameters:
    masks, constant = crc_matrix("CRC-32C", ADDRESS_BITS)
    return ReductionParameters(
        functions=_TOPOLOGIES,
        terminals=False,
        max_members=16,
        lag_hashes=("crc",),
        crc_masks=masks,
        crc_constant=constant,
    )


BLOCKS = {
    "all, 16 links": _with_members(),
    "all topologies": ReductionParameters(functions=_TOPOLOGIES, terminals=False),
    "k-ary n-cubes": ReductionParameters(functions=_GRID, terminals=False),
    "6-cubes only": ReductionParameters(functions=_GRID, chunk_bits=(4,), comparators=6, terminals=False),
    "5-D fat tree": ReductionParameters(functions=("fat_tree",), chunk_bits=(4,), comparators=6),
}
"""Blocks of figures 5.23 and 5.24, without the path for arbitrary topologies, which the paper leaves out too."""

_PAPER_AREA_UM2 = {
    ("6-cubes only", "combinational"): 300.0,
    ("6-cubes only", "two stages"): 352.0,
    ("5-D fat tree", "combinational"): 114.0,
    ("5-D fat tree", "two stages"): 165.0,
}
_PAPER_DELAY_NS = {("6-cubes only", "combinational"): 0.54, ("6-cubes only", "two stages"): 0.47}

NO_LIBERTY = "give --liberty (Nangate 45 nm typical, as the paper) for µm² and ns"
LIBERTY = "{name}, no wires"


def library_note(options: Options) -> str:
    """Say which library the areas and delays come from, or how to get them."""
    return LIBERTY.format(name=options.liberty.name) if options.liberty else NO_LIBERTY


def row_value(data: pd.DataFrame, column: str, **where: str | int) -> float | None:
    """Value of one row; None where it could not be measured."""
    for key, value in where.items():
        data = data[data[key] == value]
    assert len(data) == 1, f"{where} selects {len(data)} rows, not 1"
    value = data[column].iloc[0]
    return None if pd.isna(value) else float(value)


def _trade(data: pd.DataFrame, where: dict[str, str]) -> str:
    """Say what the smallest area costs in delay, and the fastest recipe in area."""
    delay, area = row_value(data, "delay_of_smallest_ns", **where), row_value(data, "area_of_fastest_um2", **where)
    return "" if delay is None or area is None else f"; at {delay:.3f} ns; the fastest recipe takes {area:.0f} µm²"


def _points(_options: Options) -> list[Point]:
    return [{"block": block, "variant": variant} for block in BLOCKS for variant in _VARIANTS]


def _measure(point: Point, options: Options) -> list[Row]:
    parameters = BLOCKS[str(point["block"])]
    component = NodeReduction(parameters, registered=point["variant"] != _VARIANTS[0])
    return [{**point, **asdict(block_cost(component, options.liberty))}]


def _generic_rows(data: pd.DataFrame, column: str, unit: str) -> list[Comparison]:
    return [
        Comparison(f"{row['block']}, {row['variant']}", unit, None, float(row[column]), "generic two-input gates")
        for _, row in data.iterrows()
    ]


def _compare_area(data: pd.DataFrame, options: Options) -> list[Comparison]:
    note = library_note(options)
    result = []
    for block in BLOCKS:
        for variant in _VARIANTS:
            paper = _PAPER_AREA_UM2.get((block, variant))
            claim = "about four times 300 µm²" if block.startswith("all") and variant == _VARIANTS[0] else ""
            ours = row_value(data, "area_um2", block=block, variant=variant)
            where = {"block": block, "variant": variant}
            result.append(
                Comparison(f"area, {block}, {variant}", "µm²", paper, ours, note + _trade(data, where), claim)
            )
    column = "gates" if options.liberty is None else "area_um2"
    shares = [
        row_value(data, column, block=block, variant="combinational") for block in ("all topologies", "k-ary n-cubes")
    ]
    assert shares[0] is not None and shares[1] is not None
    result.append(
        Comparison(
            "share of k-ary n-cubes in all topologies", "%", 85.0, 100.0 * shares[1] / shares[0],
            "ours contains dragonfly with a comparison of its own; the paper reuses the fat tree's, which misroutes",
        )
    )  # fmt: skip
    return result if options.liberty else [*result, *_generic_rows(data, "gates", "gates")]


def _compare_delay(data: pd.DataFrame, options: Options) -> list[Comparison]:
    note = library_note(options)
    result = []
    for block in BLOCKS:
        for variant in _VARIANTS:
            paper = _PAPER_DELAY_NS.get((block, variant))
            claim = "less than 1 ns" if block.startswith("all") and variant == _VARIANTS[0] else ""
            ours = row_value(data, "delay_ns", block=block, variant=variant)
            result.append(Comparison(f"delay, {block}, {variant}", "ns", paper, ours, note, claim))
    stage = row_value(data, "delay_ns", block="all, 16 links", variant="two stages")
    result.append(
        Comparison(
            "slowest stage, all topologies and 16 links, pipelined",
            "ns",
            0.72,
            stage,
            f"paper: three stages with the cache; ours: two stages of reduction; {note}",
        )
    )
    rate = None if stage is None else line_rate_gbps(lookup_ns=stage)
    result.append(
        Comparison(
            "line rate of that stage, 84-byte slots",
            "Gbps",
            933.0,
            rate,
            f"upper bound: the engine's slowest stage decides (hopforge synth); {note}",
        )
    )
    return result if options.liberty else [*result, *_generic_rows(data, "levels", "levels")]


def _draw(
    data: pd.DataFrame,
    options: Options,
    *,
    column: str,
    generic: str,
    paper: dict[tuple[str, str], float],
    title: str,
    unit: str,
) -> Figure:
    figure, (axes,) = new_figure(width_in=9.0)
    blocks = list(BLOCKS)
    series: dict[str, list[float | None]] = {}
    for variant in _VARIANTS:
        if options.liberty:
            series[f"paper, {variant}"] = [paper.get((block, variant)) for block in blocks]
            series[f"ours, {variant}"] = [row_value(data, column, block=b, variant=variant) for b in blocks]
        else:
            series[f"ours, {variant}"] = [row_value(data, generic, block=b, variant=variant) for b in blocks]
    library = options.liberty.name if options.liberty else "generic gates"
    style_axes(
        axes, title=f"{title}, 24-bit addresses ({library})", x_label="", y_label=unit if options.liberty else generic
    )
    draw_grouped_bars(axes, groups=blocks, series=series)
    return figure


def _draw_area(data: pd.DataFrame, options: Options) -> Figure:
    return _draw(
        data,
        options,
        column="area_um2",
        generic="gates",
        paper=_PAPER_AREA_UM2,
        title="Node reduction of one input port: area",
        unit="area (µm²)",
    )


def _draw_delay(data: pd.DataFrame, options: Options) -> Figure:
    return _draw(
        data,
        options,
        column="delay_ns",
        generic="levels",
        paper=_PAPER_DELAY_NS,
        title="Node reduction of one input port: longest path",
        unit="delay of the slowest stage (ns)",
    )


# --- table 6.1, figures 6.1 and 6.2

_TABLE_6_1 = {
    "12 comparators, chunks of 2, 3, 4 bits": ReductionParameters(
        functions=_GRID, chunk_bits=(2, 3, 4), comparators=12, terminals=False
    ),
    "6 comparators, chunks of 4 bits": ReductionParameters(
        functions=_GRID, chunk_bits=(4,), comparators=6, terminals=False
    ),
    "6 comparators, chunks of 2, 3, 4 bits": ReductionParameters(
        functions=_GRID, chunk_bits=(2, 3, 4), comparators=6, terminals=False
    ),
}
_NETWORKS_6_1 = {"4-ary 12-cube": (2, 12), "8-ary 8-cube": (3, 8), "16-ary 6-cube": (4, 6)}


def _supported(parameters: ReductionParameters) -> list[str]:
    return [
        name
        for name, (chunk, dimensions) in _NETWORKS_6_1.items()
        if chunk in parameters.chunk_bits and parameters.digits(chunk) >= dimensions
    ]


def _points_6_1(_options: Options) -> list[Point]:
    return [{"hardware": name} for name in _TABLE_6_1]


def _measure_6_1(point: Point, options: Options) -> list[Row]:
    parameters = _TABLE_6_1[str(point["hardware"])]
    cost = block_cost(NodeReduction(parameters), options.liberty)
    return [{**point, **asdict(cost), "networks": ", ".join(_supported(parameters))}]


def _compare_6_1(data: pd.DataFrame, options: Options) -> list[Comparison]:
    general, special, _ = _TABLE_6_1
    result = [
        Comparison(
            f"networks of table 6.1 supported, {name}",
            "",
            {general: 3.0, special: 1.0}.get(name),
            float(len(_supported(parameters))),
            ", ".join(_supported(parameters)) or "none at full size",
        )
        for name, parameters in _TABLE_6_1.items()
    ]
    columns = (
        (("area_um2", "area", "µm²"), ("delay_ns", "delay", "ns"))
        if options.liberty
        else (("gates", "gates", "gates"), ("levels", "levels", "levels"))
    )
    note = library_note(options)
    for column, what, unit in columns:
        values = {name: row_value(data, column, hardware=name) for name in _TABLE_6_1}
        result += [Comparison(f"{what}, {name}", unit, None, value, note) for name, value in values.items()]
        many, few = values[general], values[special]
        assert many is not None and few is not None
        result.append(
            Comparison(
                f"{what} of figure 6.2 over figure 6.1",
                "%",
                None,
                100.0 * few / many,
                note,
                claim="smaller area and lower latency",
            )
        )
    return result


def _draw_6_1(data: pd.DataFrame, options: Options) -> Figure:
    figure, panels = new_figure(panels=2, width_in=5.2)
    names = [name.replace(", ", ",\n", 1) for name in _TABLE_6_1]
    library = options.liberty.name if options.liberty else "generic gates"
    kinds = (
        (("area_um2", "area (µm²)"), ("delay_ns", "delay (ns)"))
        if options.liberty
        else (("gates", "gates"), ("levels", "levels"))
    )
    for axes, (column, label) in zip(panels, kinds, strict=True):
        style_axes(axes, title=f"Torus reduction, 24-bit addresses ({library})", x_label="", y_label=label)
        values = [row_value(data, column, hardware=name) for name in _TABLE_6_1]
        draw_grouped_bars(axes, groups=names, series={"ours": values})
        axes.tick_params(axis="x", labelsize=8)
        legend = axes.get_legend()
        if legend is not None:
            legend.remove()
    return figure


_SHARED = (
    "area and delay of the logic from the destination to the key; what follows from the switch's own address and the "
    "radices lies in registers that are set once (their setup logic is not counted)",
    "the paper: Synopsys Design Compiler; ours: yosys and abc, the same Nangate 45 nm cells when given",
    "area: the smallest of several recipes that stay within 1 ns; delay: the fastest recipe, without clock-to-output "
    "and setup times",
)

_ALL = (
    "all: mesh, torus, fat tree, dragonfly; chunks of 2, 3, 4, 6, 8 bits; 12 comparators",
    "16 links: CRC-32C of the address modulo any number of members from 1 to 16; the paper does not say how its CRC "
    "becomes a member, and a modulus of 16 would cost nothing",
)

REPRODUCTIONS: Sequence[Reproduction] = (
    Reproduction(
        "lookup.fig5.23",
        "Area of node reduction at an input port",
        "seed 004, figure 5.23, section 5.4.2",
        (
            *_SHARED,
            *_ALL,
        ),
        _points,
        _measure,
        _compare_area,
        _draw_area,
        uses=("liberty",),
    ),
    Reproduction(
        "lookup.fig5.24",
        "Delay of node reduction at an input port",
        "seed 004, figure 5.24, section 5.4.2",
        (*_SHARED, *_ALL),
        _points,
        _measure,
        _compare_delay,
        _draw_delay,
        uses=("liberty",),
    ),
    Reproduction(
        "lookup.table6.1",
        "12 against 6 comparators",
        "seed 004, table 6.1, figures 6.1 and 6.2, section 6.2",
        _SHARED,
        _points_6_1,
        _measure_6_1,
        _compare_6_1,
        _draw_6_1,
        uses=("liberty",),
        aliases=("lookup.fig6.1", "lookup.fig6.2"),
    ),
)
