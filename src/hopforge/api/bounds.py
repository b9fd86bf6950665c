"""Bounds of throughput of a network: what `hopforge bounds` computes."""

import os
from pathlib import Path
from typing import Any

from hopforge.api.configuration import Configuration, configuration
from hopforge.api.errors import warn
from hopforge.api.progress import Progress, shown
from hopforge.api.result import Result, called
from hopforge.model.config import Config
from hopforge.sim.bounds.bounds import BoundsReport, find_bounds, summary_rows, table_lines, write_bounds
from hopforge.sim.run.model_runs import Progress as Advance
from hopforge.sim.start.preparation import prepare

__all__ = ["BoundsFound", "bounds"]


class BoundsFound:
    """Bounds of `hopforge bounds`, prepared, then computed, then shown and written."""

    unit = "steps"

    def __init__(self, config: Config) -> None:
        self._config, self._setup = config, prepare("bounds", config)
        self._found: BoundsReport

    @property
    def left_out(self) -> list[str]:
        """What is too large to be computed, and why; known before it begins."""
        return list(self._setup.left_out.values())

    def run(self, progress: Advance) -> None:
        """Compute."""
        self._found = find_bounds(self._config, self._setup, progress)

    def values(self) -> dict[str, Any]:
        """Return every figure by its routing and column: ``valiant.uniform_load``."""
        table = self._found.table
        return {
            f"{routing}.{column}": values[row].item()
            for row, routing in enumerate(table["routing"].tolist())
            for column, values in table.items()
            if column != "routing"
        }

    def rows(self) -> list[tuple[str, str]]:
        """Say the network and what the figures are."""
        return summary_rows(self._found)

    def lines(self) -> list[list[str]]:
        """Return the table of loads and throughputs."""
        return table_lines(self._found)

    def write(self, folder: Path, *, plots: bool = False) -> None:
        """Write tables and metadata."""
        write_bounds(self._found, folder)


def bounds(config: Configuration | str | os.PathLike[str], *, progress: Progress = True) -> Result:
    """Compute loads of channels, worst permutations and ideal throughput, as ``hopforge bounds``.

    Parameters
    ----------
    config : Configuration or str or Path
        Its network and traffic pattern, or its file.
    progress : bool or callable
        A bar on a terminal and in Jupyter, or a function that is called with (done, in all).

    Returns
    -------
    Result
        `table` has a row for each routing; `tables` also ``channels`` and ``worst_permutation``.

    Raises
    ------
    UserError
        The configuration is no good for it.
    """
    with called(configuration(config), "bounds", "bounds") as call:
        found = BoundsFound(call.config)
        for line in found.left_out:
            warn(line)
        with shown(progress, found.unit) as advance:
            found.run(advance)
    return Result(call, found, tables=("bounds",))
