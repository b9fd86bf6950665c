"""Two results side by side: what was changed, how much each figure differs, and whether the runs can tell that apart.

A figure of one run has the standard error of its batch means (`latency_interval` of `measurement` and `runs`: 20
batches, Student's t). A figure of several seeds has that of their means. Two figures differ if the 95 % interval of
their difference leaves out 0 (Welch 1947: unequal variances).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from hopforge.model.errors import UserError
from hopforge.model.output.column_notes import column_notes
from hopforge.sim.pages.find import find_results

__all__ = ["Comparison", "Subject", "compare_results", "subject_at"]

#: batches of a run's interval (docs/definitions/measures.md)
_BATCHES = 20
_LEVEL = 0.975
_MOST_NAMED = 6
_LONGEST_NAME = 80


class _Kind(NamedTuple):
    """How a table is compared: what names its rows, which figures it has, and which of them has an interval."""

    names: tuple[str, ...]
    figures: tuple[str, ...]
    interval_of: str = ""


_NETWORK = (
    "latency", "latency_median", "latency_p99", "network_latency", "hops", "accepted", "accepted_worst",
    "channel_load_max", "hit_rate", "message_latency", "request_latency", "reply_latency", "round_trip_latency",
)  # fmt: skip
_PACKET = ("lifetime_ns", "lifetime_p99_ns", "link_load", "outflanked", "wrapped", "refused")
_PROGRAM = ("makespan", "makespan_s", "message_latency_s", "waiting_share", "computing_share", "miss_share", "energy_j")
#: tables in which results are looked for, the first that both have is compared
_KINDS: dict[str, _Kind] = {
    "runs": _Kind(("variant", "program", "engine", "load"), (*_NETWORK, *_PACKET, *_PROGRAM), "latency"),
    "measurement": _Kind(("load",), (*_NETWORK, *_PACKET), "latency"),
    "program": _Kind(("program",), (*_PROGRAM, *_NETWORK)),
    "app": _Kind(("program", "engine"), _PROGRAM),
    "classes": _Kind(("port_class",), ("lookups", "hit_rate", "compulsory", "capacity", "conflict")),
}


@dataclass(frozen=True)
class Subject:
    """One of the two results: how it is called, its tables, the configuration that it ran with, and where it lies."""

    name: str
    tables: Mapping[str, pd.DataFrame]
    config: Mapping[str, Any]
    folder: Path | None = None


@dataclass(frozen=True)
class Comparison:
    """What came out.

    Attributes
    ----------
    first, second : Subject
        What was compared.
    changed : dict
        Key with dots → its two values, of all that differ.
    table : DataFrame
        A row for each figure: columns that name it, ``figure``, ``first``, ``second``, ``difference`` (second − first),
        ``difference_percent`` of the first, ``interval`` (half width of the 95 % interval of the difference; empty if
        the runs give none), ``verdict``. A value that a result does not have is NaN, and with it the difference.
    left_out : list of str
        Rows that only one of both has.
    """

    first: Subject
    second: Subject
    changed: dict[str, tuple[Any, Any]]
    table: pd.DataFrame
    left_out: list[str]


def subject_at(folder: Path) -> Subject:
    """Read the result in a folder.

    Raises
    ------
    UserError
        No result that can be compared is there, or several.
    """
    found = find_results(folder)
    known = [each for each in found.sets if _table_of(each.tables)]
    chosen = [each for each in known if each.folder == "."] or known
    if not chosen:
        why = f"; {found.problems[0]}" if found.problems else ""
        raise UserError(f"{folder}: no result of net, sweep, app or hits in it{why}")
    if len(chosen) > 1:
        names = ", ".join(str(folder / each.folder) for each in chosen[:_MOST_NAMED])
        raise UserError(f"{folder}: holds {len(chosen)} results; name one of {names}")
    (result,) = chosen
    place = folder if result.folder == "." else folder / result.folder
    return Subject(str(place), result.tables, result.config, place)


def _table_of(*tables: Mapping[str, pd.DataFrame]) -> str:
    """Return the first table of `_KINDS` that all have, with at least one of its figures."""
    for name, kind in _KINDS.items():
        if all(name in each and set(kind.figures) & set(map(str, each[name].columns)) for each in tables):
            return name
    return ""


def compare_results(first: Subject, second: Subject) -> Comparison:
    """Compare the figures of two results.

    Raises
    ------
    UserError
        They have no table, or no row of it, in common.
    """
    name, called = _table_of(first.tables, second.tables), _called_briefly(first, second)
    if not name:
        kinds = [_table_of(each.tables) or "nothing" for each in (first, second)]
        raise UserError(f"{called[0]} has {kinds[0]}, {called[1]} has {kinds[1]}: no figures in common to compare")
    kind = _KINDS[name]
    ours, theirs = (_numbers(each, name, kind) for each in (first, second))
    names = [each for each in kind.names if each in ours and each in theirs]
    if "variant" in names and ours["variant"].nunique(dropna=False) == theirs["variant"].nunique(dropna=False) == 1:
        names.remove("variant")  # the name of a file without variants: there is nothing to match
    groups = [_groups(table, names) for table in (ours, theirs)]
    both = [key for key in groups[0] if key in groups[1]]
    if not both:
        known = "; ".join(", ".join(_called(names, key) for key in list(group)[:_MOST_NAMED]) for group in groups)
        raise UserError(f"{' and '.join(called)}: no row of {name} in common ({known})")
    rows = [row for key in both for row in _rows(name, names, key, groups[0][key], groups[1][key])]
    if not any(np.isfinite(row["first"]) and np.isfinite(row["second"]) for row in rows):
        raise UserError(f"{' and '.join(called)}: no figure of {name} is a number in both")
    alone = [_called(names, key) for a, b in (groups, groups[::-1]) for key in a if key not in b]
    return Comparison(first, second, _changed(first.config, second.config), pd.DataFrame(rows), alone)


def _called_briefly(*subjects: Subject) -> list[str]:
    """Return the names for an error: a result of Python has the expression that made it, which can be long."""
    order = ("the first result", "the second result")
    given = [each.name for each in subjects]
    return [name if len(name) <= _LONGEST_NAME else words for name, words in zip(given, order, strict=True)]


def _numbers(subject: Subject, name: str, kind: _Kind) -> pd.DataFrame:
    """Return a table whose figures are numbers; what is not there is NaN, such as the hit rate of no lookups."""
    table = subject.tables[name]
    found: dict[str, Any] = {}
    for figure in (*kind.figures, f"{kind.interval_of}_interval"):
        if figure in table:
            try:
                found[figure] = table[figure].to_numpy(float)
            except (TypeError, ValueError):
                raise UserError(f"{subject.name}: column {figure} of {name} holds what is no number") from None
    if "hit_rate" in found and "lookups" in table:
        found["hit_rate"] = np.where(table["lookups"].to_numpy() > 0, found["hit_rate"], np.nan)
    return table.assign(**found)


def _groups(table: pd.DataFrame, names: Sequence[str]) -> dict[tuple[Any, ...], pd.DataFrame]:
    if not names:
        return {(): table}
    # NaN equals nothing; a CSV file whose column is empty has it there, and a program has no load
    filled = table.assign(**{name: table[name].astype(object).where(table[name].notna(), "") for name in names})
    return {key: rows for key, rows in filled.groupby(list(names), sort=False)}


def _called(names: Sequence[str], key: Sequence[Any]) -> str:
    shown = [f"{name} {value}" for name, value in zip(names, key, strict=True) if value != ""]
    return " ".join(shown) or "the run"


class _Figure(NamedTuple):
    mean: float
    error: float
    freedom: float


_NOT_THERE = _Figure(np.nan, np.nan, _BATCHES - 1)


def _figure(rows: pd.DataFrame, name: str, interval: str) -> _Figure:
    """Return mean, standard error (NaN: not known) and its degrees of freedom, of the runs that have the figure."""
    if name not in rows or not len(rows := rows[np.isfinite(rows[name].to_numpy(float))]):
        return _NOT_THERE
    values = rows[name].to_numpy(float)
    mean = float(values.mean())
    # equal values do not say how far they spread, but each run has an interval of its own
    if len(values) > 1 and not (interval in rows and len(np.unique(values)) == 1):
        return _Figure(mean, float(values.std(ddof=1) / np.sqrt(len(values))), len(values) - 1)
    half = float(rows[interval].mean()) if interval in rows else np.nan
    return _Figure(mean, half / float(stdtrit(_BATCHES - 1, _LEVEL)), _BATCHES - 1)


def _rows(
    table: str, names: Sequence[str], key: Sequence[Any], ours: pd.DataFrame, theirs: pd.DataFrame
) -> Iterator[dict[str, Any]]:
    kind = _KINDS[table]
    full = _saturated(ours) or _saturated(theirs)
    cycles = {name for name, note in column_notes(table, kind.figures).items() if note.unit == "cycles"}
    other_cycles = _cycle_ns(ours) != _cycle_ns(theirs)
    for name in kind.figures:
        interval = f"{name}_interval" if name == kind.interval_of else ""
        a, b = (_figure(rows, name, interval) for rows in (ours, theirs))
        if np.isnan(a.mean) and np.isnan(b.mean):
            continue
        other = _other_units(name, ours, theirs) or ("other cycles" if other_cycles and name in cycles else "")
        comparable = not other
        half = _half_width(a, b) if comparable else np.nan
        difference = b.mean - a.mean if comparable else np.nan
        yield {
            **{each: np.nan if each == "load" and value == "" else value
               for each, value in zip(names, key, strict=True)},
            "figure": name, "first": a.mean, "second": b.mean,
            "difference": difference,
            "difference_percent": 100 * difference / a.mean if a.mean else np.nan,
            "interval": half,
            "verdict": _alone(a, b) or (
                other or _verdict(difference, half, saturated=full and _is_time(name))
            ),
        }  # fmt: skip


def _other_units(figure: str, ours: pd.DataFrame, theirs: pd.DataFrame) -> str:
    """Return ``other units`` for rates of which those of packet routers count in units of their load 1."""
    in_units_of_load = ["lifetime_ns" in rows for rows in (ours, theirs)]
    return "other units" if figure == "accepted" and in_units_of_load[0] != in_units_of_load[1] else ""


def _saturated(rows: pd.DataFrame) -> bool:
    """Return whether sources did not keep up in some run; packet routers say it the other way round."""
    if "sustained" in rows:
        return not bool(rows["sustained"].all())
    return "saturated" in rows and bool(rows["saturated"].any())


def _is_time(figure: str) -> bool:
    """Tell whether it grows with the length of a saturated run."""
    return "latency" in figure or "lifetime" in figure


def _cycle_ns(rows: pd.DataFrame) -> float:
    """Return the length of a cycle; 0: not set."""
    return float(rows["cycle_ns"].iloc[0]) if "cycle_ns" in rows else 0.0


def _alone(a: _Figure, b: _Figure) -> str:
    """Say which of two results has a figure that the other one has not."""
    return "only in second" if np.isnan(a.mean) else "only in first" if np.isnan(b.mean) else ""


def _half_width(a: _Figure, b: _Figure) -> float:
    """Return the half width of the 95 % interval of the difference of two means."""
    errors = a.error**2, b.error**2
    together = sum(errors)
    if not together > 0:  # NaN, or both exact
        return together
    freedom = together**2 / (errors[0] ** 2 / a.freedom + errors[1] ** 2 / b.freedom)
    return float(stdtrit(freedom, _LEVEL) * np.sqrt(together))


def _verdict(difference: float, half: float, *, saturated: bool) -> str:
    if saturated:
        return "saturated"
    if difference == 0:
        return "equal"
    if np.isnan(half):
        return "no interval"
    return "differs" if abs(difference) > half else "not told apart"


def _changed(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    a, b = dict(_flat(ours)), dict(_flat(theirs))
    keys = [*a, *(key for key in b if key not in a)]
    return {key: (a.get(key), b.get(key)) for key in keys if a.get(key) != b.get(key)}


def _flat(config: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in config.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
