"""A network under traffic: what `hopforge net` and `hopforge series` run."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopforge.api.configuration import Configuration, configuration
from hopforge.api.errors import number_within
from hopforge.api.progress import Progress, shown
from hopforge.api.result import Result, called
from hopforge.model.config import Config
from hopforge.model.errors import DivergedError
from hopforge.model.seeds import MOST_SEED
from hopforge.sim.run.model_runs import NetRun
from hopforge.sim.run.model_runs import Progress as Advance
from hopforge.sim.run.model_runs import SeriesRun as Bins
from hopforge.sim.run.run_words import run_rows
from hopforge.sim.start.preparation import prepare

if TYPE_CHECKING:
    from hopforge.sim.run.time_series import TimeSeries

__all__ = ["NetFound", "SeriesFound", "SimulationResult", "series", "simulate"]

_PICTURES = ("channels", "series", "messages", "agents")


class NetFound:
    """A run of `hopforge net`, prepared, then run, then shown and written."""

    def __init__(self, config: Config, *, load: float | None, seed: int | None, threads: int | None = None) -> None:
        self._config = config
        self._run: NetRun = prepare("net", config, load=load, seed=seed, threads=threads)
        self.unit = self._run.unit

    def words(self) -> str:
        """Say how agents are doing, while they run."""
        return self._run.words()

    def run(self, progress: Advance) -> None:
        """Simulate."""
        self._run.run(progress)

    def values(self) -> dict[str, Any]:
        """Return the measurement."""
        return self._run.values()

    def rows(self) -> list[tuple[str, str]]:
        """Say what ran, and what was measured."""
        threads = self._run.threads
        return [*run_rows({"": self._config}), *([("threads", threads)] if threads else []), *self._run.rows()]

    def write(self, folder: Path, *, plots: bool = False) -> None:
        """Write tables and metadata."""
        self._run.write(folder, plots=plots)

    def refuse(self) -> None:
        """Raise what is wrong with the run although its results can be kept."""
        self._run.refuse()


class SeriesFound:
    """A run of `hopforge series`."""

    unit = "bins"

    def __init__(self, config: Config, *, load: float | None, seed: int | None, frames: bool = False) -> None:
        from hopforge.sim.run.link_frames import check_frames  # noqa: PLC0415 - draws

        if frames:
            check_frames(config.simulation.series_bins)
        self._config, self._frames, self._seed = config, frames, seed
        self._run: Bins = prepare("series", config, load=load, seed=seed)
        self._found: TimeSeries

    def words(self) -> str:
        """As of `NetFound`."""
        return self._run.words()

    def run(self, progress: Advance) -> None:
        """Simulate all bins."""
        self._found, self._network = self._run.run(progress, channels=self._frames)

    def values(self) -> dict[str, Any]:
        """Return the last bin."""
        return {str(name): value for name, value in self._found.bins.iloc[-1].to_dict().items()}

    def rows(self) -> list[tuple[str, str]]:
        """Say what ran, and how it converged."""
        from hopforge.sim.run.time_series import series_rows  # noqa: PLC0415 - as above

        return [*run_rows({"": self._config}), *series_rows(self._found)]

    def write(self, folder: Path, *, plots: bool = True, progress: Advance = lambda done, total: None) -> None:
        """Write tables, plots and metadata; with frames also a picture of the links for every bin."""
        from hopforge.sim.run.time_series import write_series  # noqa: PLC0415 - as above

        network = self._network if self._frames else None
        write_series(self._config, self._found, folder, network, progress, seed=self._seed)

    def refuse(self) -> None:
        """Raise what is wrong with the run although its results can be kept."""
        if self._found.agents is not None:
            self._found.agents.raise_if_diverged()


def refuse_with(result: Result, found: NetFound | SeriesFound) -> None:
    """Raise what is wrong with a run; the error carries what the run found."""
    try:
        found.refuse()
    except DivergedError as error:
        error.result = result
        raise


class SimulationResult(Result):
    """What a simulated network did: latencies in cycles, rates in flits per host and cycle.

    With ``router.model: packet`` and with programs other figures are measured: ``result["NAME"]``, `values`.
    """

    def _figure(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(f"this run did not measure {error.args[0]}") from None

    @property
    def latency(self) -> float:
        """Mean from the creation of a packet to the arrival of its tail, in cycles."""
        return float(self._figure("latency"))

    @property
    def latency_interval(self) -> float:
        """Half width of the 95 % interval of the mean latency, in cycles."""
        return float(self._figure("latency_interval"))

    @property
    def accepted(self) -> float:
        """Flits that arrive per host and cycle, the mean over hosts."""
        return float(self._figure("accepted"))

    @property
    def hops(self) -> float:
        """Routers that a packet visits, the mean over packets."""
        return float(self._figure("hops"))

    @property
    def saturated(self) -> bool:
        """Whether the source queues grow: the latency then depends on the length of the run."""
        return bool(self._figure("saturated"))


def simulate(
    config: Configuration | str | os.PathLike[str],
    *,
    load: float | None = None,
    seed: int | None = None,
    threads: int | None = None,
    progress: Progress = True,
) -> SimulationResult:
    """Simulate a network cycle by cycle, at one load or running a program, as ``hopforge net``.

    Parameters
    ----------
    config : Configuration or str or Path
        What is run, or its file.
    load : float, optional
        Offered flits per host and cycle, 0 to 1; by default ``simulation.load``.
    seed : int, optional
        Of traffic and of decisions during the run; by default the file's. Networks and tables that are drawn, such as
        random ties, keep the file's.
    threads : int, optional
        Of the run, by default as many as pay; the results are the same for any number (docs/definitions/threads.md).
    progress : bool or callable
        A bar on a terminal and in Jupyter, or a function that is called with (done, in all).

    Returns
    -------
    SimulationResult
        `table` has one row, the measurement; ``tables["channels"]`` one for each link and direction,
        ``tables["buffers"]`` one for each virtual channel of an input.

    Raises
    ------
    UserError
        The configuration is no good for it.
    DeadlockError
        Network, routing and virtual channels can deadlock.
    DivergedError
        Agents of DQN routing got no numbers; its ``result`` is what was measured until then.
    """
    given = configuration(config)
    load = number_within("load", load, 0.0, 1.0)
    seed = number_within("seed", seed, 0, MOST_SEED)
    threads = number_within("threads", threads, 1)
    with called(given, "net", "simulate", load=load, seed=seed) as call:
        found = NetFound(call.config, load=load, seed=seed, threads=threads)
        with shown(progress, found.unit, found.words) as advance:
            found.run(advance)
        result = SimulationResult(call, found, tables=("measurement", "program"), picture=_PICTURES)
        refuse_with(result, found)
    return result


def series(
    config: Configuration | str | os.PathLike[str],
    *,
    load: float | None = None,
    seed: int | None = None,
    progress: Progress = True,
) -> Result:
    """Simulate a network from empty in bins of time, as ``hopforge series``.

    Parameters
    ----------
    config : Configuration or str or Path
        What is run, or its file; ``simulation.series_bins`` is the number of bins.
    load : float, optional
        Offered flits per host and cycle, 0 to 1; by default ``simulation.load``.
    seed : int, optional
        Of traffic and of decisions during the run; by default the file's.
    progress : bool or callable
        A bar on a terminal and in Jupyter, or a function that is called with (done, in all).

    Returns
    -------
    Result
        `table` has a row for each bin, `values` are those of the last one.

    Raises
    ------
    UserError, DeadlockError, DivergedError
        As of `simulate`.
    """
    given = configuration(config)
    load = number_within("load", load, 0.0, 1.0)
    seed = number_within("seed", seed, 0, MOST_SEED)
    with called(given, "series", "series", load=load, seed=seed) as call:
        found = SeriesFound(call.config, load=load, seed=seed)
        with shown(progress, found.unit, found.words) as advance:
            found.run(advance)
        result = Result(call, found, tables=("series",), picture=("series", "distribution"))
        refuse_with(result, found)
    return result
