"""The router models by name (``router.model``): which commands each can run, and what runs them.

The commands ask here and know no model. To add one, write a `ModelRuns` and name it in `ROUTER_MODELS`; what is behind
a name is loaded when it is used.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from hopforge.model.config import Config
from hopforge.model.errors import UserError
from hopforge.sim.run.kept_results import SweepError, naming_variant
from hopforge.sim.run.sweep import Sweep

if TYPE_CHECKING:
    from hopforge.model.topology import Topology
    from hopforge.sim.run.time_series import TimeSeries

Progress = Callable[[int, int], None]


class NetRun(Protocol):
    """One run of a network, as `hopforge net` shows it."""

    @property
    def unit(self) -> str:
        """What its progress counts: cycles, packets, messages."""

    def run(self, progress: Progress) -> None:
        """Simulate."""

    def rows(self) -> list[tuple[str, str]]:
        """Return what was found: subject and words."""

    def write(self, folder: Path) -> None:
        """Write tables, plots and metadata."""


class ModelRuns(Protocol):
    """What a router model runs.

    Attributes
    ----------
    sweep : Sweep
        For `hopforge sweep`.
    """

    @property
    def sweep(self) -> Sweep:
        """For `hopforge sweep`."""

    def net(self, config: Config, load: float | None, seed: int | None) -> NetRun:
        """Make a run ready; load and seed are those of the file unless given."""

    def series(
        self, config: Config, load: float, seed: int, progress: Progress, *, channels: bool
    ) -> "tuple[TimeSeries, Topology]":
        """Run in bins of time; with `channels` the loads of all channels are kept."""


@dataclass(frozen=True)
class RouterModel:
    """A router model.

    Attributes
    ----------
    name : str
        Value of ``router.model``.
    place : str
        Module and name of its `ModelRuns`.
    able : tuple of str
        Commands that it can run.
    reason : str
        Why it cannot run others.
    """

    name: str
    place: str
    able: tuple[str, ...]
    reason: str = ""

    @property
    def runs(self) -> ModelRuns:
        """What is behind the name."""
        found: ModelRuns = _load(self.place)
        return found


_FLITS = "hopforge.sim.run.flit_runs:FLIT_RUNS"
_ALL = ("net", "series", "sweep", "trace", "app")
ROUTER_MODELS = {
    model.name: model
    for model in (
        RouterModel("input_queued", _FLITS, _ALL),
        RouterModel("input_output_queued", _FLITS, _ALL),
        RouterModel("packet", "hopforge.sim.packet.runs:PACKET_RUNS", ("net", "series", "sweep"), "it has no flits"),
    )
}
_APP_SWEEP = "hopforge.sim.programs.app_sweep:APP_SWEEP"


def _load(place: str) -> Any:
    module, name = place.split(":")
    return getattr(import_module(module), name)


def refuse(model: RouterModel, what: str) -> UserError:
    """Return the mistake of asking a model for what it cannot do."""
    *others, last = model.able
    return UserError(
        f"router.model {model.name} cannot run {what}, because {model.reason}; it runs hopforge {', '.join(others)} "
        f"and {last}"
    )


def router_model(config: Config, command: str) -> RouterModel:
    """Return the router model of a configuration, for a command.

    Raises
    ------
    UserError
        The model cannot run it.
    """
    model = ROUTER_MODELS[config.router.model]
    if command not in model.able:
        raise refuse(model, f"hopforge {command}")
    return model


def configured_sweep(config: Config) -> Sweep:
    """Return what `hopforge sweep` runs: programs, if the file or a variant has section `app`, else its router model.

    Raises
    ------
    SweepError
        Variants whose router models have no sweep in common.
    """
    if any("app" in each.model_fields_set for each in (config, *config.variants.values())):
        programs: Sweep = _load(_APP_SWEEP)
        return programs
    variants = config.variants or {"": config}
    models = {name: router_model(variant, "sweep") for name, variant in variants.items()}
    first = next(iter(models.values()))
    for name, model in models.items():
        with naming_variant(name):
            if model.runs.sweep is not first.runs.sweep:
                raise SweepError(f"router.model must be {first.name} as in other variants, not {model.name}")
    return first.runs.sweep
