"""The time in which rates are counted: a cycle, or where routers are input-output-queued that of a packet on a link."""

from collections.abc import Mapping
from types import MappingProxyType

from hopforge.model.config import Config

__all__ = ["model_rate_time", "rate_time", "rate_units"]

#: units of notes of columns that are rates (`model.output.column_notes`)
_RATES = ("flits per host and cycle", "flits per cycle")


def model_rate_time(model: str | None) -> str:
    """Return ``cycle`` or ``flit_ns`` for a ``router.model``; None: not known."""
    return "flit_ns" if model == "input_output_queued" else "cycle"


def rate_time(config: Config) -> str:
    """Return ``cycle`` or ``flit_ns``."""
    return model_rate_time(config.router.model)


def rate_units(config: Config, columns: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """Return the units of a run that the notes do not have: those of `columns`, and of rates by that of the note.

    Packet routers have no flits: their loads are factors of the load 1, or shares of the time of a link.
    """
    time = rate_time(config)
    others = {} if time == "cycle" else {unit: unit.replace("cycle", time) for unit in _RATES}
    if config.router.model == "packet":
        others = dict.fromkeys(_RATES, "1")
    return {column: others.get(unit, unit) for column, unit in columns.items()} | others
