"""What failures did to a run: rows for the terminal, and tables."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from hopforge.sim.failures.epochs import Epoch
from hopforge.sim.failures.reconfiguration import Reconfiguration

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "SERIES_UNITS", "FailureHistory", "FailureStory", "FailuresFound", "failure_rows", "failure_tables",
    "failures_found",
]  # fmt: skip


class FailureStory(Protocol):
    """What one failure or repair did (`record.FailureRecord`, or that of another router model)."""

    @property
    def cycle(self) -> int:
        """In which it took place."""
        ...

    @property
    def what(self) -> str:
        """Failed or works again."""
        ...

    @property
    def reprogrammed_cycle(self) -> int:
        """In which the new routes were in force; −1: not yet."""
        ...

    @property
    def stages(self) -> list[tuple[str, int]]:
        """What came after it, and in which cycle."""
        ...

    def losses(self) -> list[str]:
        """Say what was lost."""
        ...


class FailureHistory(Protocol):
    """The failures of one run (`Reconfiguration`, or that of another router model)."""

    flit_cycles: int
    cycle_ns: float

    @property
    def records(self) -> Sequence[FailureStory]:
        """Failures and repairs that took place."""
        ...

    @property
    def to_come(self) -> Sequence[Epoch]:
        """Those that did not."""
        ...

    def table(self) -> "pd.DataFrame":
        """One row per failure or repair that took place."""
        ...


@dataclass(frozen=True, eq=False)
class FailuresFound:
    """What failures did to a run that has ended, without the run.

    Attributes
    ----------
    rows : list of (str, str)
        Subject and words for the terminal (`failure_rows`).
    table : DataFrame
        A row per failure or repair that took place.
    """

    rows: list[tuple[str, str]]
    table: "pd.DataFrame"


def failures_found(failures: FailureHistory | None, cycle_ns: float) -> FailuresFound | None:
    """Keep what failures did, where cycles are so long; None: the run has none."""
    if failures is None:
        return None
    return FailuresFound(failure_rows(failures), failures.table().assign(cycle_ns=cycle_ns))


#: units of columns of its table `series` that are others with routers that count cycles
SERIES_UNITS = {"sent": "flits per host and cycle"}


def failure_tables(failures: Reconfiguration) -> "dict[str, pd.DataFrame]":
    """Tables `failures` (a row per failure or repair that took place) and `series` (a row per bin)."""
    return {"failures": failures.table(), "series": failures.series}


def failure_rows(failures: FailureHistory) -> list[tuple[str, str]]:
    """Subject and words for the terminal: one row for each failure and repair."""
    rows = [(_moment(failures, record.cycle), _words(failures, record)) for record in failures.records]
    rows += [(_moment(failures, epoch.cycle), f"not reached: {epoch.what}") for epoch in failures.to_come]
    return rows


def _moment(failures: FailureHistory, cycle: int) -> str:
    """Say a moment of the run: in µs where the file does not count cycles of the simulator."""
    return f"cycle {cycle:,}" if failures.flit_cycles == 1 else f"{cycle * failures.cycle_ns / 1000:.6g} µs"


def _words(failures: FailureHistory, record: FailureStory) -> str:
    words = [record.what, *record.losses()]
    if record.reprogrammed_cycle >= 0:
        to = "in" if failures.flit_cycles == 1 else "at"
        words.append(", ".join(f"{what} {to} {_moment(failures, cycle)}" for what, cycle in record.stages))
    else:
        words.append(f"the run ended before the {record.stages[-1][0]}")
    return "; ".join(words)
