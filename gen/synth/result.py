"""Figures of a block."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

__all__ = ["SynthResult", "medians"]


@dataclass(frozen=True, kw_only=True)
class SynthResult:
    """One block with one recipe.

    ``delay_ns``: of the combinational logic by abc; ``sta_ns``: by OpenSTA (clocked blocks: shortest period, flip-flops
    included). ``path``: start, cells, end of the critical path. ``stages_ns``: shortest period by submodule of the
    endpoint (clocked, with OpenSTA). Without a library ``area_um2``, ``delay_ns``, ``sta_ns`` are None and ``levels``
    is set.
    """

    block: str
    recipe: str
    area_um2: float | None = None
    delay_ns: float | None = None
    sta_ns: float | None = None
    levels: int | None = None
    cells: int = 0
    flops: int = 0
    path: tuple[str, ...] = ()
    stages_ns: Mapping[str, float] = dataclasses.field(default_factory=dict)

    @property
    def figure_ns(self) -> float | None:
        """Delay that counts: OpenSTA's if there is one."""
        return self.delay_ns if self.sta_ns is None else self.sta_ns


def medians(results: Sequence[SynthResult]) -> tuple[float, float] | None:
    """Return the medians of area (µm²) and delay (ns), each for itself, over the recipes; None for fewer than two."""
    areas = [result.area_um2 for result in results if result.area_um2 is not None]
    delays = [result.figure_ns for result in results if result.figure_ns is not None]
    return (median(areas), median(delays)) if min(len(areas), len(delays)) > 1 else None
