"""Measure the points of a reproduction, keep each as it is finished, and write CSV, PNG, JSON and the comparison."""

import hashlib
import json
import multiprocessing
import os
import platform
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import pandas as pd

import hopforge
from hopforge.model.errors import UserError
from hopforge.model.output.plots import save_figure
from hopforge.sim.reproduce.registry import Comparison, Options, Point, Reproduction, Row

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


def select(patterns: Sequence[str], table: Mapping[str, Reproduction]) -> list[Reproduction]:
    """Reproductions whose names match one of the shell patterns, in the order of `table`, each once.

    Raises
    ------
    UserError
        A pattern matches nothing; the known names are listed.
    """
    chosen = {}
    for pattern in patterns:
        hits = [name for name, r in table.items() if any(fnmatchcase(known, pattern) for known in (name, *r.aliases))]
        if not hits:
            raise UserError(f"no reproduction is named {pattern!r}; known: {', '.join(table)}")
        chosen.update(dict.fromkeys(hits))
    return [table[name] for name in table if name in chosen]


@cache
def _program_digest() -> str:
    # A cached point must not outlive the code that measured it, whatever part of the package that was.
    digest = hashlib.sha256(hopforge.__version__.encode())
    for part in ("model", "hw", "gen", "sim"):
        root = Path(hopforge.__file__).parent / part
        for path in sorted(root.rglob("*.py")):
            digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


@cache
def _file_digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _input_digests(reproduction: Reproduction, options: Options) -> dict[str, str]:
    digests = {}
    for field in reproduction.uses:
        path = getattr(options, field)
        if path is None:
            continue
        files = sorted(p for p in path.iterdir() if p.is_file()) if path.is_dir() else [path]
        digests[field] = hashlib.sha256("".join(f"{p.name}:{_file_digest(p)};" for p in files).encode()).hexdigest()
    return digests


def point_key(reproduction: Reproduction, point: Point, options: Options) -> str:
    """Hash (16 hexadecimal digits) of all that decides a point's result: figure, point, seed, inputs, program."""
    description = {
        "reproduction": reproduction.name,
        "point": point,
        "seed": options.seed,
        "inputs": _input_digests(reproduction, options),
        "program": _program_digest(),
    }
    return hashlib.sha256(json.dumps(description, sort_keys=True).encode()).hexdigest()[:16]


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all, making its folder if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _finished_rows(path: Path) -> list[Row] | None:
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    except (OSError, ValueError, KeyError, TypeError):
        return None  # not there, or damaged: measure it again
    return rows if isinstance(rows, list) and rows else None


def _check_inputs(options: Options) -> None:
    if options.liberty is not None and not options.liberty.is_file():
        raise UserError(f"--liberty: no such file: {options.liberty}")
    if options.traces is not None and not options.traces.is_dir():
        raise UserError(f"--traces: no such folder: {options.traces}")


def _measure(
    reproduction: Reproduction, missing: Mapping[int, Point], options: Options
) -> Iterator[tuple[int, list[Row]]]:
    """Yield number and rows of every point as it is finished."""
    workers = min(os.cpu_count() or 1, len(missing)) if reproduction.parallel else 1
    if workers <= 1:
        for k, point in missing.items():
            yield k, list(reproduction.measure(point, options))
        return
    jobs = [(reproduction.measure, k, point, options) for k, point in missing.items()]
    with multiprocessing.get_context("spawn").Pool(workers, initializer=_ignore_interrupt) as pool:
        yield from pool.imap_unordered(_measure_one, jobs)


def _measure_one(
    job: tuple[Callable[[Point, Options], Sequence[Row]], int, Point, Options],
) -> tuple[int, list[Row]]:
    measure, k, point, options = job
    return k, list(measure(point, options))


def _ignore_interrupt() -> None:
    # Ctrl-C reaches the whole process group; only the parent decides what to do
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def run_reproduction(
    reproduction: Reproduction,
    folder: Path,
    options: Options,
    advance: Advance | None = None,
) -> Outcome:
    """Measure every point that an earlier run has not finished, then write the results to `folder`/`name`.

    Written are ``data.csv``, ``figure.png``, ``comparison.csv`` and ``metadata.json``; finished points lie in
    ``points/`` and are taken from there when the run is repeated after an interruption.

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
    try:
        paths = [target / "points" / f"{point_key(reproduction, point, options)}.json" for point in points]
        measured = {k: rows for k, path in enumerate(paths) if (rows := _finished_rows(path)) is not None}
        resumed = len(measured)
        if advance:
            advance(reproduction, resumed, len(points))
        missing = {k: point for k, point in enumerate(points) if k not in measured}
        for k, rows in _measure(reproduction, missing, options):
            write_text(paths[k], json.dumps({"point": points[k], "rows": rows}, indent=1, sort_keys=True) + "\n")
            measured[k] = rows
            if advance:
                advance(reproduction, len(measured), len(points))
        data = pd.DataFrame([row for k in range(len(points)) for row in measured[k]])
        comparisons = tuple(reproduction.compare(data, options))
        files = _write_results(reproduction, target, data, comparisons, options)
    except OSError as error:
        raise UserError(f"{error.filename or target}: {error.strerror or error}") from error
    return Outcome(reproduction, comparisons, target, files, len(points), resumed)


def _command(reproduction: Reproduction, options: Options) -> list[str]:
    """Return the command that repeats this figure alone; inputs by their bare names."""
    words = ["hopforge", "reproduce", reproduction.name, *(["--full"] if options.full else [])]
    words += ["--seed", str(options.seed)]
    for field in _input_digests(reproduction, options):
        words += [f"--{field}", getattr(options, field).name]
    return words


def _write_results(
    reproduction: Reproduction,
    target: Path,
    data: pd.DataFrame,
    comparisons: tuple[Comparison, ...],
    options: Options,
) -> tuple[Path, ...]:
    paths = tuple(target / name for name in ("data.csv", "figure.png", "comparison.csv", "metadata.json"))
    write_text(paths[0], data.to_csv(index=False))
    save_figure(reproduction.draw(data, options), paths[1])
    table = pd.DataFrame([{**asdict(c), "deviation_percent": c.deviation_percent} for c in comparisons])
    write_text(paths[2], table.to_csv(index=False))
    metadata = {
        "command": _command(reproduction, options),
        "name": reproduction.name,
        "title": reproduction.title,
        "source": reproduction.source,
        "assumptions": list(reproduction.assumptions),
        "variant": "full" if options.full else "quick",
        "seed": options.seed,
        "inputs": {
            field: {"name": getattr(options, field).name, "sha256": digest}
            for field, digest in _input_digests(reproduction, options).items()
        },
        "hopforge": hopforge.__version__,
        "program_sha256": _program_digest(),
        "python": platform.python_version(),
        "comparisons": [{**asdict(c), "deviation_percent": c.deviation_percent} for c in comparisons],
    }
    write_text(paths[3], json.dumps(metadata, indent=1, ensure_ascii=False) + "\n")
    return paths
