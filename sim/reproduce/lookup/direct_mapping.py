"""Figure 5.30 of the routing-cache paper: node reduction without a cache, for 1 to 16 mapping patterns."""

from collections.abc import Sequence
from dataclasses import asdict

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from hopforge.hw.cache.tag_select import TagSelect
from hopforge.hw.keys.direct_mapping import DirectMapping
from hopforge.hw.keys.node_reduction import NodeReduction
from hopforge.hw.keys.reduction_parameters import ReductionParameters
from hopforge.hw.parts.crc_hash import CrcHash
from hopforge.model.numbers.crc import crc_matrix
from hopforge.model.output.plots import Line, draw_lines, new_figure, style_axes
from hopforge.sim.reproduce.costs.cacti import WAY_45NM
from hopforge.sim.reproduce.costs.gate_cost import LARGE_RECIPES, block_cost
from hopforge.sim.reproduce.lookup.reduction_cost import ADDRESS_BITS, library_note, row_value
from hopforge.sim.reproduce.registry import Comparison, Options, Point, Reproduction, Row, integer

_PATTERNS = (1, 2, 4, 8, 16)
_OUTPUT_BITS = 6
_PARAMETERS = ReductionParameters(functions=("mesh", "torus"), chunk_bits=(2, 3, 4), comparators=12, terminals=False)
_SET_BITS = 9
_CACHE_RAM_UM2 = 4 * WAY_45NM[2048].area_mm2 * 1e6


def _points(_options: Options) -> list[Point]:
    without: list[Point] = [{"hardware": "without cache", "patterns": patterns} for patterns in _PATTERNS]
    parts: list[Point] = [{"hardware": part, "patterns": 0} for part in ("reduction", "set index", "tag select")]
    return [*without, *parts]


def _component(point: Point) -> DirectMapping | NodeReduction | CrcHash | TagSelect:
    match point["hardware"]:
        case "without cache":
            return DirectMapping(_PARAMETERS, patterns=integer(point, "patterns"), output_bits=_OUTPUT_BITS)
        case "reduction":
            return NodeReduction(_PARAMETERS)
        case "set index":
            masks, constant = crc_matrix("CRC-32C", ADDRESS_BITS)
            return CrcHash(width_bits=ADDRESS_BITS, masks=masks[:_SET_BITS], constant=constant & ((1 << _SET_BITS) - 1))
        case _:
            return TagSelect(ways=4, tag_bits=64, output_bits=16)


def _measure(point: Point, options: Options) -> list[Row]:
    return [{**point, **asdict(block_cost(_component(point), options.liberty, LARGE_RECIPES))}]


def _column(options: Options) -> tuple[str, str]:
    return ("area_um2", "µm²") if options.liberty else ("gates", "gates")


def _sizes(data: pd.DataFrame, options: Options) -> tuple[list[float], float, float]:
    """Size without cache per number of patterns, of the reduction, and of all logic with a cache."""
    column, _ = _column(options)

    def size(hardware: str, patterns: int) -> float:
        value = row_value(data, column, hardware=hardware, patterns=patterns)
        assert value is not None
        return value

    parts = [size(part, 0) for part in ("reduction", "set index", "tag select")]
    return [size("without cache", patterns) for patterns in _PATTERNS], parts[0], sum(parts)


def _compare(data: pd.DataFrame, options: Options) -> list[Comparison]:
    _, unit = _column(options)
    note = library_note(options)
    without, reduction, with_cache = _sizes(data, options)
    slope, start = np.polyfit(_PATTERNS, without, 1)
    fit = start + slope * np.asarray(_PATTERNS)
    worst = float(np.max(np.abs(fit / without - 1)))
    result = [
        Comparison(f"without cache, {patterns} pattern{'s' if patterns > 1 else ''}", unit, None, value, note)
        for patterns, value in zip(_PATTERNS, without, strict=True)
    ]
    result += [
        Comparison(
            "growth per pattern",
            unit,
            None,
            float(slope),
            f"25 rows of {_OUTPUT_BITS} bits; a straight line with {start:.0f} {unit} for no pattern fits to "
            f"{100 * worst:.1f} %",
            claim="proportional to the number of patterns",
        ),
        Comparison("16 patterns over 1 pattern", "times", None, without[-1] / without[0], note),
        Comparison("with cache, node reduction alone", unit, None, reduction, f"any number of patterns; {note}"),
        Comparison(
            "with cache: reduction, set index, tag select", unit, None, with_cache, f"without the RAM; {note}",
            claim="the cache should work together with the reduction",
        ),
    ]  # fmt: skip
    if options.liberty:
        result.append(
            Comparison(
                "with cache and the RAM of 2048 entries", unit, None, with_cache + _CACHE_RAM_UM2,
                "four CACTI 7 RAM ways, 45 nm: counted so, 16 patterns without a cache are far smaller; the cache also "
                "serves arbitrary topologies",
            )
        )  # fmt: skip
    return result


def _draw(data: pd.DataFrame, options: Options) -> Figure:
    _, unit = _column(options)
    without, reduction, with_cache = _sizes(data, options)
    figure, (axes,) = new_figure(width_in=8.0)
    library = options.liberty.name if options.liberty else "generic gates"
    style_axes(
        axes,
        title=f"Torus reduction of one input port, 24-bit addresses, 64 ports ({library})",
        x_label="mapping patterns",
        y_label=f"area ({unit}, without RAM)" if options.liberty else "gates (without RAM)",
        x_ticks=list(_PATTERNS),
    )
    axes.set_ylim(0, 1.08 * max(*without, with_cache))
    draw_lines(
        axes,
        [
            Line("without cache", _PATTERNS, without, color=1),
            Line("with cache, all logic", _PATTERNS, [with_cache] * len(_PATTERNS), color=0, marked=False),
            Line("reduction alone", _PATTERNS, [reduction] * len(_PATTERNS), color=2, dashed=True, marked=False),
        ],
    )
    return figure


REPRODUCTIONS: Sequence[Reproduction] = (
    Reproduction(
        "lookup.fig5.30",
        "Node reduction without a cache, 1 to 16 mapping patterns",
        "seed 004, figure 5.30, section 5.5",
        (
            "mesh and torus, chunks of 2, 3, 4 bits, 12 comparators",
            "a mapping pattern is a table of registers, written once: 25 logical outputs to one of 64 ports each;"
            " another register chooses the pattern",
            "the paper gives no numbers in its text",
        ),
        _points,
        _measure,
        _compare,
        _draw,
        uses=("liberty",),
    ),
)
