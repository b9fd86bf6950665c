"""What a reproduced figure is made of."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

Value = str | int | float | bool | None
Row = dict[str, Value]
"""One line of a figure's CSV; also what one measured point is cached as."""

_NUMBER = r"(\d+(?:\.\d+)?)"
#: wordings of a claim that bound a value from above, from below, and on both sides
_AT_MOST = re.compile(rf"(?:at most|less than|within) {_NUMBER}")
_AT_LEAST = re.compile(rf"at least {_NUMBER}")
_BETWEEN = re.compile(rf"{_NUMBER} ?%? to {_NUMBER}")

Point = dict[str, Value]
"""What one measurement is asked for: plain values only, because their hash names the cached result."""


@dataclass(frozen=True)
class Options:
    """What the user chose for one run.

    Attributes
    ----------
    full
        The long variant: more trials, more points.
    seed
        Of every random draw.
    liberty
        Cell library for the figures with gates; None: generic gates and levels.
    traces
        Folder with more recorded programs than the shipped ones; None: the shipped ones only.
    reference, configs
        Other runs of BookSim (CSV), and the folder of our configurations for them; None: the shipped ones.
    hosts
        About how many the compared networks have; None: as `full` says.
    """

    full: bool = False
    seed: int = 1
    liberty: Path | None = None
    traces: Path | None = None
    reference: Path | None = None
    configs: Path | None = None
    hosts: int | None = None


@dataclass(frozen=True)
class Comparison:
    """One value of the paper beside ours.

    Attributes
    ----------
    quantity, unit
        What is compared ("" for a pure number).
    paper
        The number that the paper's text states; None where it states none (its plots are lost).
    ours
        Our number; None where it can't be measured with the options given.
    assumption
        What our number rests on, and why it may differ.
    claim
        The paper's wording where it is a bound or a range rather than a number ("less than 0.1 %").
    """

    quantity: str
    unit: str
    paper: float | None
    ours: float | None
    assumption: str
    claim: str = ""

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Least and largest value that the claim allows; None if it states none."""
        if found := _AT_MOST.match(self.claim):
            return float("-inf"), float(found[1])
        if found := _AT_LEAST.match(self.claim):
            return float(found[1]), float("inf")
        if found := _BETWEEN.match(self.claim):
            return float(found[1]), float(found[2])
        return None

    @property
    def deviation_percent(self) -> float | None:
        """(ours − paper)/paper in %.

        If the paper states bounds only: from the bound that is not kept. None if there is nothing to deviate from.
        """
        paper = self.paper
        if paper is None and self.ours is not None and (bounds := self.bounds):
            kept = min(max(self.ours, bounds[0]), bounds[1])
            paper = None if kept == self.ours else kept
        if paper is None or self.ours is None or paper == 0:
            return None
        return 100.0 * (self.ours - paper) / paper

    @property
    def no_deviation(self) -> str:
        """Why there is no deviation."""
        if self.ours is None:
            return "not measured"
        if self.paper is not None:
            return "equal" if self.ours == self.paper else "from 0"
        if self.bounds is not None:
            return "kept"
        return "no number" if self.claim else "no value"


@dataclass(frozen=True)
class Reproduction:
    """One figure or table of a paper, measured again.

    Attributes
    ----------
    name
        ``lookup.fig4.5``: paper and figure.
    title, source
        What it shows, and where it stands in the paper.
    assumptions
        What had to be assumed because the paper does not say it.
    points
        Options → the measurements to make, each independent of the others.
    measure
        (point, options) → rows of the CSV. Deterministic: a random draw takes its seed from the options.
    compare
        (all rows, options) → paper beside ours.
    draw
        (all rows, options) → the figure.
    uses
        Names of the fields of `Options`, besides `full` and `seed`, that change the result.
    reference
        What stands beside ours, the heading of its column.
    aliases
        Other names under which it is found.
    table
        (all rows, options) → one table for people, printed and written beside the comparison; None: it has none.
    parallel
        Points are measured on all cores; `measure` is a function of a module and takes seconds or more.
    """

    name: str
    title: str
    source: str
    assumptions: tuple[str, ...]
    points: Callable[[Options], Sequence[Point]]
    measure: Callable[[Point, Options], Sequence[Row]]
    compare: Callable[[pd.DataFrame, Options], Sequence[Comparison]]
    draw: Callable[[pd.DataFrame, Options], Figure]
    uses: tuple[str, ...] = ()
    reference: str = "paper"
    aliases: tuple[str, ...] = ()
    table: Callable[[pd.DataFrame, Options], pd.DataFrame] | None = None
    parallel: bool = False


def index_by_name(*groups: Sequence[Reproduction]) -> Mapping[str, Reproduction]:
    """Put the reproductions of several modules in one table, in order; names must differ."""
    table: dict[str, Reproduction] = {}
    for reproduction in (r for group in groups for r in group):
        if reproduction.name in table:
            raise ValueError(f"name must be unique, not {reproduction.name!r} twice")
        table[reproduction.name] = reproduction
    return table


def number(point: Point, key: str) -> float:
    """Value `key` of a point, which must be a number."""
    value = point[key]
    assert isinstance(value, int | float) and not isinstance(value, bool), f"{key} is {value!r}, not a number"
    return float(value)


def integer(point: Point, key: str) -> int:
    """Value `key` of a point, which must be an integer."""
    value = point[key]
    assert isinstance(value, int) and not isinstance(value, bool), f"{key} is {value!r}, not an integer"
    return value


def pick(data: pd.DataFrame, column: str, **where: Value) -> float:
    """Take the number in `column` of the one row whose columns equal `where`."""
    for key, value in where.items():
        data = data[data[key] == value]
    assert len(data) == 1, f"{where} selects {len(data)} rows, not 1"
    return float(data[column].iloc[0])
