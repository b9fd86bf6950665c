"""The parts of a design that can be co-simulated: what `hopforge cosim --part` chooses from."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from hopforge.model.config import Config
from hopforge.model.errors import UserError
from hopforge.sim.cosim.collectives import cosim_collectives
from hopforge.sim.cosim.lookup_variants import cosim_engines
from hopforge.sim.cosim.network import cosim_network
from hopforge.sim.cosim.q_table import cosim_q_table
from hopforge.sim.cosim.router import cosim_router
from hopforge.sim.cosim.rule_cache import cosim_rule_cache
from hopforge.sim.cosim.service_host import cosim_service_host
from hopforge.sim.drive.replay import Progress
from hopforge.sim.drive.runner import SimulatorName

__all__ = ["PARTS", "Report", "check_part", "cosim_part"]


class Report(Protocol):
    """What every co-simulation reports."""

    @property
    def passed(self) -> bool:
        """Whether nothing differed."""

    def rows(self) -> Iterable[tuple[str, str]]:
        """Return the report as (subject, words) for a table."""


class Part(NamedTuple):
    """A part.

    Attributes
    ----------
    run : callable
        The co-simulation; it takes the configuration, what all parts take, and `options`.
    options : tuple of str
        What it takes beside.
    """

    run: Callable[..., Report]
    options: tuple[str, ...]


PARTS: dict[str, Part] = {
    "lookup": Part(cosim_engines, ("lookups", "variants", "faults")),
    "router": Part(cosim_router, ("cycles", "variants")),
    "network": Part(cosim_network, ("load", "cycles")),
    "q_table": Part(cosim_q_table, ("cycles",)),
    "service_host": Part(cosim_service_host, ("cycles",)),
    "collectives": Part(cosim_collectives, ("cycles",)),
    "rule_cache": Part(cosim_rule_cache, ("lookups",)),
}
"""Name → part."""


def check_part(part: str) -> None:
    """Refuse an unknown part.

    Raises
    ------
    UserError
        It is not among `PARTS`.
    """
    if part not in PARTS:
        raise UserError(f"--part must be one of {', '.join(PARTS)}, not {part!r}")


def cosim_part(
    part: str,
    config: Config,
    *,
    simulator: SimulatorName | None = None,
    given: Mapping[str, Any] | None = None,
    seed: int | None = None,
    waves: bool = False,
    output: Path,
    progress: Progress | None = None,
) -> Report:
    """Co-simulate a part of the configured design.

    Parameters
    ----------
    part : str
        A name of `PARTS`.
    config, simulator, seed, waves, output, progress
        As in `sim.cosim.lookup.cosim`.
    given : mapping, optional
        Options of this part by their names.

    Raises
    ------
    UserError
        An unknown part, or an option that it does not take.
    """
    check_part(part)
    run, options = PARTS[part]
    for name in given or {}:
        if name not in options:
            raise UserError(f"--{name} is for --part {' or '.join(_with(name))} only, not --part {part}")
    return run(config, simulator=simulator, seed=seed, waves=waves, output=output, progress=progress, **(given or {}))


def _with(option: str) -> list[str]:
    return [name for name, part in PARTS.items() if option in part.options]
