"""Routing tables of an irregular network: what `hopforge route` computes."""

import os
from collections.abc import Iterable, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

from hopforge.api.configuration import Configuration, configuration
from hopforge.api.progress import Progress, shown
from hopforge.api.result import Result, called
from hopforge.model.config import Config
from hopforge.sim.pages.route_large import large_rows, sample_loren, write_large
from hopforge.sim.pages.route_write import quality_table, route_rows, write_route
from hopforge.sim.run.model_runs import Progress as Advance
from hopforge.sim.start.preparation import prepare

__all__ = ["RouteFound", "route"]


class RouteFound:
    """Tables of `hopforge route`, computed, then measured, then shown and written."""

    def __init__(self, config: Config, *, fail: Sequence[str] = (), fail_switch: Sequence[str] = ()) -> None:
        self._routed = prepare("route", config, fail=list(fail), fail_switch=list(fail_switch))
        self._large = self._routed.tables is None
        self.unit = "destinations" if self._large else "traffic patterns"
        self._found: Any = None

    @property
    def config(self) -> Config:
        """With the failures that were given."""
        config: Config = self._routed.config
        return config

    def run(self, progress: Advance) -> None:
        """Measure the tables; of very large networks sampled pairs."""
        if self._large:
            self._found = sample_loren(self.config, self._routed.network, progress)
        else:
            self._found = quality_table(self.config, self._routed.tables, progress)

    def values(self) -> dict[str, Any]:
        """Return the words of `rows`, by their subjects."""
        return dict(self.rows())

    def rows(self) -> list[tuple[str, str]]:
        """Say sizes, path lengths, loads, and what failures changed."""
        if self._large:
            return large_rows(self._found)
        failure = self._routed.failure
        return route_rows(self._routed.tables, self._found) + ([] if failure is None else failure.rows)

    def write(self, folder: Path, *, plots: bool = True, progress: Advance = lambda done, total: None) -> None:
        """Write figures of merit, tables in their formats, pictures and metadata."""
        if self._large:
            write_large(self.config, self._found, folder)
        else:
            write_route(self.config, self._routed.tables, self._found, folder, progress, self._routed.failure)


def route(
    config: Configuration | str | os.PathLike[str],
    *,
    fail: Sequence[str] = (),
    fail_switch: Sequence[str] = (),
    progress: Progress = True,
) -> Result:
    """Compute routing tables and virtual layers of an irregular network, as ``hopforge route``.

    Parameters
    ----------
    config : Configuration or str or Path
        What is routed, or its file; section `tables` names the scheme.
    fail : sequence of str
        Links that have failed: routers ``"3-7"`` or router.port ``"3.2"``.
    fail_switch : sequence of str
        Switches that have failed, by their numbers.
    progress : bool or callable
        A bar on a terminal and in Jupyter, or a function that is called with (done, in all).

    Returns
    -------
    Result
        `table` has a row for each figure, ``tables["routers"]`` and ``tables["channels"]`` one for each of them.

    Raises
    ------
    UserError
        The configuration is no good for it, or the virtual layers cannot be made.
    """
    links, switches = _texts("fail", fail), _texts("fail_switch", fail_switch)
    with called(
        configuration(config), "route", "route", fail=links or None, fail_switch=switches or None
    ) as call:
        found = RouteFound(call.config, fail=links, fail_switch=switches)
        with shown(progress, found.unit) as advance:
            found.run(advance)
    return Result(call, found, tables=("summary",), picture=("load", "path_length", "landmarks"))


def _texts(name: str, given: Sequence[str]) -> list[str]:
    wrong = isinstance(given, str) or not isinstance(given, Iterable)
    several: list[Any] = [] if wrong else list(given)
    if wrong or not all(isinstance(each, str | Integral) and not isinstance(each, bool) for each in several):
        raise TypeError(f"{name} must be a list of texts, not {given!r}")
    return [str(each) for each in several]
