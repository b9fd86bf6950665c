"""Measure the points of a reproduction, keep each as it is finished, and write CSV, PNG, JSON and the comparison."""

import json
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

import hopforge
from hopforge.model.config.base import suggestion
from hopforge.model.errors import UserError
from hopforge.model.output.plots import save_figure
from hopforge.model.output.program_digest import program_digest
from hopforge.model.output.results import MEASURED, staged, write_text
from hopforge.sim.reproduce.registry import Comparison, Options, Point, Reproduction, Row
from hopforge.sim.run.kept_results import kept_results
from hopforge.sim.run.wanted_result import Wanted, file_digest

#: folder of measured points inside the folder of a figure
POINTS = "points"

Advance = Callable[[Reproduction, int, int], None]
"""Called with (reproduction, points finished, points in all) before the first and after each point."""


@dataclass(frozen=True)
class Outcome:
    """What one reproduction has written, and how it compares."""

    reproduction: Reproduction
    comparisons: tuple[Comparison, ...]
    folder: Path
    files: tuple[Path, ...]
    points: int
    resumed_points: int
    """How many of the points were taken from an earlier run."""
    table: pd.DataFrame | None = None
    """For people, if the reproduction has one."""


def select(patterns: Sequence[str], table: Mapping[str, Reproduction]) -> list[Reproduction]:
    """Reproductions whose names match one of the shell patterns, in the order of `table`, each once.

    Raises
    ------
    UserError
        A pattern matches nothing; the nearest name is told, or all of them.
    """
    chosen = {}
    for pattern in patterns:
        hits = [name for name, r in table.items() if any(fnmatchcase(known, pattern) for known in (name, *r.aliases))]
        if not hits:
            names = [*table, *(alias for reproduction in table.values() for alias in reproduction.aliases)]
            raise UserError(f"no reproduction is named {pattern!r}; {suggestion(pattern, names)}")
        chosen.update(dict.fromkeys(hits))
    return [table[name] for name in table if name in chosen]


def _inputs(reproduction: Reproduction, options: Options) -> dict[str, Path]:
    """Return the files and folders that the user gave and the reproduction reads, by their options."""
    given = {name: getattr(options, name) for name in reproduction.uses}
    return {name: path for name, path in given.items() if isinstance(path, Path)}


def wanted_point(reproduction: Reproduction, point: Point, options: Options) -> Wanted:
    """Say what decides a point's result: figure, point, seed and inputs (and the program)."""
    inputs = _inputs(reproduction, options)
    words = ", ".join([*(f"{key} {value}" for key, value in point.items()), f"seed {options.seed}", *inputs])
    chosen = {"reproduction": reproduction.name, "point": point, "seed": options.seed}
    files = {f"--{name} {path.name}": file_digest(path) for name, path in inputs.items()}
    return Wanted(words, chosen, files, tuple(inputs.values()))


def _check_inputs(options: Options) -> None:
    if options.liberty is not None and not options.liberty.is_file():
        raise UserError(f"--liberty: no such file: {options.liberty}")
    if options.traces is not None and not options.traces.is_dir():
        raise UserError(f"--traces: no such folder: {options.traces}")


def _compared(reproduction: Reproduction, comparison: Comparison) -> dict[str, Any]:
    """Return a comparison as a row; what is no paper's value stands in a column `reference`."""
    column = "paper" if reproduction.reference == "paper" else "reference"
    row = {column if name == "paper" else name: value for name, value in asdict(comparison).items()}
    return row | {"deviation_percent": comparison.deviation_percent}


def _measured(measure: Callable[[Point, Options], Sequence[Row]], options: Options, point: Point) -> list[Row]:
    return list(measure(point, options))


def run_reproduction(
    reproduction: Reproduction,
    folder: Path,
    options: Options,
    advance: Advance | None = None,
    tell: Callable[[str], None] = lambda line: None,
) -> Outcome:
    """Measure every point that an earlier run has not finished, then write the results to `folder`/`name`.

    Written are ``data.csv``, ``figure.png``, ``comparison.csv`` and ``metadata.json``, ``times.csv`` where points
    tell how long they took, and ``table.csv`` of a reproduction that has a table. Finished points lie in ``points/``
    and are taken from there when the run is repeated after an interruption. `tell` is called with a line about points
    that are measured again, because the program or an input has changed, and about a process that was killed.

    Raises
    ------
    UserError
        A missing input, or a folder that can't be written.
    KeyboardInterrupt
        Passed on; the points finished so far are kept.
    """
    _check_inputs(options)
    target = folder / reproduction.name
    points = list(reproduction.points(options))
    first: list[int] = []

    def progress(done: int, total: int) -> None:
        first.append(done)
        if advance:
            advance(reproduction, done, total)

    try:
        measured = kept_results(
            points, [wanted_point(reproduction, point, options) for point in points],
            partial(_measured, reproduction.measure, options), target / POINTS, progress,
            tell=tell, unit="points", workers=None if reproduction.parallel else 1,
        )  # fmt: skip
        data = pd.DataFrame([row for rows in measured for row in rows])
        comparisons = tuple(reproduction.compare(data, options))
        shown = None if reproduction.table is None else reproduction.table(data, options)
        files = _write_results(reproduction, target, points, data, shown, comparisons, options)
    except OSError as error:
        raise UserError(f"{error.filename or target}: {error.strerror or error}") from error
    return Outcome(reproduction, comparisons, target, files, len(points), first[0], shown)


def _command(reproduction: Reproduction, options: Options) -> list[str]:
    """Return the command that repeats this figure alone; inputs by their bare names."""
    words = ["hopforge", "reproduce", reproduction.name, *(["--full"] if options.full else [])]
    words += ["--seed", str(options.seed)]
    words += ["--hosts", str(options.hosts)] if options.hosts and "hosts" in reproduction.uses else []
    for name, path in _inputs(reproduction, options).items():
        words += [f"--{name}", path.name]
    return words


def _write_results(
    reproduction: Reproduction,
    target: Path,
    points: Sequence[Point],
    data: pd.DataFrame,
    shown: pd.DataFrame | None,
    comparisons: tuple[Comparison, ...],
    options: Options,
) -> tuple[Path, ...]:
    compared = [_compared(reproduction, comparison) for comparison in comparisons]
    table = pd.DataFrame(compared)
    times = [column for column in data if column in MEASURED]
    metadata = {
        "command": _command(reproduction, options),
        "name": reproduction.name,
        "title": reproduction.title,
        "source": reproduction.source,
        "reference": reproduction.reference,
        "assumptions": list(reproduction.assumptions),
        "variant": "full" if options.full else "quick",
        "seed": options.seed,
        **({"hosts": options.hosts} if options.hosts and "hosts" in reproduction.uses else {}),
        "inputs": {
            name: {"name": path.name, "sha256": file_digest(path)}
            for name, path in _inputs(reproduction, options).items()
        },
        "hopforge": hopforge.__version__,
        "program_digest": program_digest(),
        "python": platform.python_version(),
        "comparisons": compared,
    }
    with staged(target) as scratch:
        data.drop(columns=times).to_csv(scratch / "data.csv", index=False)
        if times:
            data[[*(key for key in points[0] if key in data), *times]].to_csv(scratch / "times.csv", index=False)
        save_figure(reproduction.draw(data, options), scratch / "figure.png")
        table.to_csv(scratch / "comparison.csv", index=False)
        if shown is not None:
            shown.to_csv(scratch / "table.csv", index=False)
        write_text(scratch / "metadata.json", json.dumps(metadata, indent=1, ensure_ascii=False) + "\n")
        names = sorted(path.name for path in scratch.iterdir())
    return tuple(target / name for name in names)
