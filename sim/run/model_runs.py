"""What every router model runs for the commands, and what `hopforge sweep` runs: found by name, loaded when used."""

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from hopforge.model.config import Config
from hopforge.model.topology import Topology
from hopforge.sim.run.jobs import Job
from hopforge.sim.run.kept_results import SweepError, naming_variant
from hopforge.sim.run.router_models import router_model

if TYPE_CHECKING:  # both load pandas
    from hopforge.sim.run.sweep import Sweep
    from hopforge.sim.run.time_series import TimeSeries

Progress = Callable[[int, int], None]
_APP_SWEEP = "hopforge.sim.programs.app_sweep:APP_SWEEP"


class NetRun(Protocol):
    """One run of a network, as `hopforge net` shows it."""

    @property
    def unit(self) -> str:
        """What its progress counts: cycles, packets, messages."""

    @property
    def threads(self) -> str:
        """Say how many threads run it, and why it is one; empty: nothing has to be said."""

    def run(self, progress: Progress) -> None:
        """Simulate."""

    def words(self) -> str:
        """Say what stands beside its progress now: how agents that learn are doing."""

    def values(self) -> dict[str, Any]:
        """Return the only row of its first table: what was measured, by the names of the columns."""

    def rows(self) -> list[tuple[str, str]]:
        """Return what was found: subject and words."""

    def write(self, folder: Path, *, plots: bool = False) -> None:
        """Write tables and metadata, with `plots` also pictures of what the tables hold."""

    def refuse(self) -> None:
        """Raise what is wrong with the run although its results are kept."""


class SeriesRun(Protocol):
    """A run in bins of time, as `hopforge series` shows it."""

    def run(self, progress: Progress, *, channels: bool = False) -> "tuple[TimeSeries, Topology]":
        """Simulate; with `channels` the loads of all channels are kept."""

    def words(self) -> str:
        """As of `NetRun`."""


class ModelRuns(Protocol):
    """What a router model runs.

    Attributes
    ----------
    sweep : Sweep
        For `hopforge sweep`.
    """

    @property
    def sweep(self) -> "Sweep":
        """For `hopforge sweep`."""

    def net(self, config: Config, load: float | None, seed: int | None, threads: int | None = 1) -> NetRun:
        """Make a run ready; load and seed are those of the file unless given; `threads`: None: as many as pay."""

    def series(self, config: Config, load: float, seed: int) -> SeriesRun:
        """Make a run in bins of time ready."""

    def prepare_sweep(self, jobs: Sequence[Job]) -> None:
        """Find mistakes of `hopforge sweep` before its first run."""


def model_runs(config: Config, command: str) -> ModelRuns:
    """Return what the router model of a configuration runs, for a command.

    Raises
    ------
    UserError
        The model cannot run it.
    """
    found: ModelRuns = _load(router_model(config, command).place)
    return found


def _load(place: str) -> Any:
    module, name = place.split(":")
    return getattr(import_module(module), name)


def runs_programs(config: Config) -> bool:
    """Tell whether `hopforge sweep` runs programs: the file or a variant has section `app`."""
    return any("app" in each.model_fields_set for each in (config, *config.variants.values()))


def configured_sweep(config: Config) -> "Sweep":
    """Return what `hopforge sweep` runs: programs, if the file or a variant has section `app`, else its router model.

    Raises
    ------
    SweepError
        Variants whose router models have no sweep in common.
    """
    found: Sweep = _load(_APP_SWEEP) if runs_programs(config) else sweep_runs(config).sweep
    return found


def sweep_runs(config: Config) -> ModelRuns:
    """Return what the router model of all variants runs.

    Raises
    ------
    SweepError
        Variants whose router models have no sweep in common.
    """
    variants = config.variants or {"": config}
    found = {name: model_runs(variant, "sweep") for name, variant in variants.items()}
    first = next(iter(variants))
    for name, variant in variants.items():
        with naming_variant(name):
            if found[name] is not found[first]:
                known = variants[first].router.model
                raise SweepError(f"router.model must be {known} as in other variants, not {variant.router.model}")
    return found[first]
