"""What a block costs in gates: the one place where the reproduced figures call synthesis."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from amaranth.lib.wiring import Component

from hopforge.gen.design.blocks import Block
from hopforge.gen.synth.area_and_delay import synthesize
from hopforge.gen.synth.cells import Library, read_library
from hopforge.gen.tools.abc_recipes import RECIPES
from hopforge.gen.verilog.writer import to_rtlil

__all__ = ["LARGE_RECIPES", "BlockCost", "block_cost"]

_SLOWEST_NS = 1.0
"""What the paper allows a stage: area is not bought with more delay than this."""


@dataclass(frozen=True)
class BlockCost:
    """What synthesis found; without a library areas and delays are None, with one ``levels`` is.

    Attributes
    ----------
    gates
        Cells of the library (of the fastest recipe); without a library, generic gates and flip-flops.
    levels
        Gates on the longest path.
    area_um2, delay_of_smallest_ns, smallest_recipe
        Smallest area among the recipes within 1 ns, with its delay.
    delay_ns, area_of_fastest_um2, fastest_recipe
        Shortest delay among the recipes, with its area: longest path between registers or ports, by abc, without wires,
        clock-to-output and setup times.
    """

    gates: int
    levels: int | None
    area_um2: float | None
    delay_of_smallest_ns: float | None
    smallest_recipe: str
    delay_ns: float | None
    area_of_fastest_um2: float | None
    fastest_recipe: str


LARGE_RECIPES = ("fraig-fast", "lut-fast", "area")
"""Recipes for blocks of thousands of flip-flops, with which the others take minutes."""

_measured: dict[tuple[str, Path | None, tuple[str, ...]], BlockCost] = {}
# Figures of one run share blocks (5.23 and 5.24; the tag select of every cache size), and a block takes seconds.


@cache
def _library(path: Path) -> Library:
    return read_library(path)


def block_cost(component: Component, liberty: Path | None, recipes: tuple[str, ...] = tuple(RECIPES)) -> BlockCost:
    """Synthesise a flattened component; with a library try every one of `recipes`.

    The same component (by its RTLIL) is synthesised once per process.

    Raises
    ------
    UserError
        The library can't be read, or synthesis failed.
    """
    key = (to_rtlil(component, "measured"), liberty, recipes)
    if key not in _measured:
        _measured[key] = _synthesised(component, liberty, recipes)
    return _measured[key]


def _synthesised(component: Component, liberty: Path | None, recipes: tuple[str, ...]) -> BlockCost:
    block = Block(name="measured", what="", build=lambda: component)
    results = synthesize(block, None if liberty is None else _library(liberty), recipes=recipes)
    if liberty is None:
        generic = results[0]
        return BlockCost(generic.cells, generic.levels, None, None, generic.recipe, None, None, generic.recipe)
    fastest = min(results, key=lambda r: (r.delay_ns or 0.0, r.area_um2 or 0.0))
    within = [r for r in results if (r.delay_ns or 0.0) <= _SLOWEST_NS] or [fastest]
    smallest = min(within, key=lambda r: (r.area_um2 or 0.0, r.delay_ns or 0.0))
    return BlockCost(
        gates=fastest.cells, levels=None,
        area_um2=smallest.area_um2, delay_of_smallest_ns=smallest.delay_ns, smallest_recipe=smallest.recipe,
        delay_ns=fastest.delay_ns, area_of_fastest_um2=fastest.area_um2, fastest_recipe=fastest.recipe,
    )  # fmt: skip
