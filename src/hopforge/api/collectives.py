"""Barrier, broadcast and all-reduce in the network: what `hopforge collectives` times."""

import os
from pathlib import Path
from typing import Any

from hopforge.api.configuration import Configuration, configuration
from hopforge.api.progress import Progress, shown
from hopforge.api.result import Result, called
from hopforge.sim.programs.network_collectives import CollectiveRun, run_collectives
from hopforge.sim.start.preparation import prepare

__all__ = ["collectives"]


class _CollectivesFound:
    def __init__(self, found: CollectiveRun) -> None:
        self._found = found

    def values(self) -> dict[str, Any]:
        """Return the cycles by group, operation, words and who does it: ``0.barrier.0.network``."""
        return {f"{row.group}.{row.operation}.{row.words}.{row.by}": row.cycles for row in self._found.found}

    def rows(self) -> list[tuple[str, str]]:
        """Say what was compared."""
        return list(self._found.rows())

    def write(self, folder: Path, *, plots: bool = False) -> None:
        """Write the table and the metadata; nothing is drawn."""
        self._found.write(folder)


def collectives(config: Configuration | str | os.PathLike[str], *, progress: Progress = True) -> Result:
    """Time barrier, broadcast and all-reduce in the network, beside the same by hosts, as ``hopforge collectives``.

    Parameters
    ----------
    config : Configuration or str or Path
        What is run, or its file; section `collective_plane` says which groups and words.
    progress : bool or callable
        A bar on a terminal and in Jupyter, or a function that is called with (done, in all).

    Returns
    -------
    Result
        `table` has a row for each group, operation, number of words, and way to do it.

    Raises
    ------
    UserError
        The configuration is no good for it.
    """
    with called(configuration(config), "collectives", "collectives") as call:
        setup = prepare("collectives", call.config)
        with shown(progress, "operations") as advance:
            found = run_collectives(setup, advance)
    return Result(call, _CollectivesFound(found), tables=("collectives",))
