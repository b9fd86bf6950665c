"""A workload through the routing caches of a network: what `hopforge hits` runs."""

import os
from pathlib import Path
from typing import Any

from hopforge.api.configuration import Configuration, configuration
from hopforge.api.errors import number_within, yes_or_no
from hopforge.api.progress import Progress, shown
from hopforge.api.result import Result, called
from hopforge.model.config import Config
from hopforge.sim.hits.assisted import Help
from hopforge.sim.hits.hit_rates import HitReport, run_hits, summary_rows, write_report
from hopforge.sim.run.model_runs import Progress as Advance
from hopforge.sim.start.preparation import prepare
from hopforge.sim.traffic.forecast import HELPED_PACKETS_PER_SECOND, PACKETS_PER_SECOND, forecast

__all__ = ["HitsFound", "hits"]


class HitsFound:
    """A replay of `hopforge hits`, prepared, then run, then shown and written."""

    unit = "packets"

    def __init__(
        self, config: Config, *, bounds: bool = True, sizes: bool = False, wanted: Help | None = None
    ) -> None:
        self._config, self._setup = config, prepare("hits", config)
        self._options: dict[str, Any] = {"bounds": bounds, "sizes": sizes, "wanted": wanted}
        self._found: HitReport

    def forecast(self) -> str:
        """Say how long it will take, if that is more than a minute."""
        wanted: Help | None = self._options["wanted"]
        helped = wanted is not None and wanted.any
        speed = HELPED_PACKETS_PER_SECOND if helped else PACKETS_PER_SECOND
        return forecast(self._setup.workload.packets, "packets", speed)

    def run(self, progress: Advance) -> None:
        """Replay."""
        self._found = run_hits(self._config, progress, self._setup, **self._options)

    def values(self) -> dict[str, Any]:
        """Return figures of the whole network: counts, rates, latency, energy."""
        return dict(self._found.totals)

    def rows(self) -> list[tuple[str, str]]:
        """Say hits, misses by cause, and what follows."""
        return summary_rows(self._found)

    def lines(self) -> list[list[str]]:
        """Return headings and lines of the misses by size, if they were asked for."""
        return self._found.size_lines()

    def write(self, folder: Path, *, plots: bool = True) -> None:
        """Write tables, plots and metadata."""
        write_report(self._found, folder)


def hits(
    config: Configuration | str | os.PathLike[str], *, bounds: bool = True, sizes: bool = False,
    prefetch: int | None = None, prefetch_cycles: int | None = None, refill: int | None = None,
    eject: str | None = None, tcam_cycles: int = 0, progress: Progress = True,
) -> Result:
    """Replay the workload through a routing cache at every input port, as ``hopforge hits``.

    Parameters
    ----------
    config : Configuration or str or Path
        What is run, or its file; it has a section `workload`.
    bounds : bool
        Also count the misses of LRU and of the best choices that a cache could make.
    sizes : bool
        Also count the misses of caches of other sizes: `tables` then has ``sizes``.
    prefetch, prefetch_cycles : int, optional
        Messages, or cycles of a cache, that an empty packet of the host goes ahead.
    refill : int, optional
        How far ahead a detector at each input reads a sequence of destinations; 0: it only ejects.
    eject : {"hard", "soft"}, optional
        How it ejects the key that a sender has left.
    tcam_cycles : int
        Cycles of a TCAM read, with prefetch or refill.
    progress : bool or callable
        A bar on a terminal and in Jupyter, or a function that is called with (done, in all).

    Returns
    -------
    Result
        `table` has a row for each class of ports; `tables` also ``ports`` and ``switches``.

    Raises
    ------
    UserError
        The configuration is no good for it.
    """
    prefetch = number_within("prefetch", prefetch, 1)
    prefetch_cycles = number_within("prefetch_cycles", prefetch_cycles, 1)
    refill = number_within("refill", refill, 0)
    tcam_cycles = number_within("tcam_cycles", tcam_cycles, 0) or 0
    bounds, sizes = yes_or_no("bounds", bounds), yes_or_no("sizes", sizes)
    with called(
        configuration(config), "hits", "hits", bounds=None if bounds else False, sizes=sizes or None,
        prefetch=prefetch, prefetch_cycles=prefetch_cycles, refill=refill, eject=eject, tcam_cycles=tcam_cycles or None,
    ) as call:  # fmt: skip
        wanted = Help(prefetch, prefetch_cycles, refill, eject, tcam_cycles)
        found = HitsFound(call.config, bounds=bounds, sizes=sizes, wanted=wanted)
        with shown(progress, found.unit) as advance:
            found.run(advance)
    return Result(call, found, tables=("classes",), picture=("hit_rate_by_port_class", "hit_rate_map"))
