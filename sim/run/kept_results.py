"""Results of many runs, each kept as soon as it is finished under the digest of all that decides it.

A run is computed on the cores of this machine or on a Dask cluster. What was kept under the same key is taken from
there; what the same run gave with another program, configuration or file stays on disk, and is computed again with a
word.
"""

import contextlib
import json
import os
import platform
import re
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

import hopforge
from hopforge.model.config import Config
from hopforge.model.config.base import named_files
from hopforge.model.config.source import undotted
from hopforge.model.errors import UserError
from hopforge.model.output.program_digest import imported_files, program_digest
from hopforge.model.output.results import MEASURED, forget_parts, locked, package_versions, write_own
from hopforge.sim.run.file_stamps import Stamp, changed_files, file_stamps
from hopforge.sim.run.worker_processes import done_by_processes

#: folder of finished runs inside the folder of results
FINISHED = "runs"
#: folder beside them: how long each took
TIMES = "times"
#: patience with a Dask scheduler
CONNECT_SECONDS = 10
_ADDRESS = re.compile(r"(\w+://)?[^\s/]+:\d+")
#: keys that are named when a configuration has changed
_NAMED_KEYS = 3
#: keys of section `simulation` that say which runs there are, not what one of them gives
_CHOICE_OF_RUNS = ("load", "loads", "knee_percent", "seeds", "variants")

Job = TypeVar("Job")
Row = dict[str, Any]


class SweepError(UserError):
    """A sweep that cannot run: no Dask scheduler, or a variant that does not fit its network."""


class LostRunsError(SweepError):
    """Runs that have twice ended the process that did them; all others are finished and kept."""

    exit_status = 1


@contextlib.contextmanager
def naming_variant(name: str) -> Iterator[None]:
    """Let mistakes say of which variant of a sweep they are (`name` is empty where there are no variants)."""
    try:
        yield
    except UserError as error:
        if not name:
            raise
        raise SweepError(f"simulation.variants.{name}: {error}") from error


@dataclass(frozen=True)
class Wanted:
    """A result that is wanted.

    Attributes
    ----------
    name : str
        Of the run among those of its folder, such as its variant, load and seed.
    configuration : mapping
        All that the user chose and that decides the result: plain values.
    files : mapping of str to str
        Digest of each file that the run reads, by what it is called in messages.
    paths : tuple of Path
        These files, to see whether one is changed while the run goes on.
    """

    name: str
    configuration: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    paths: tuple[Path, ...] = ()

    @cached_property
    def key(self) -> str:
        """Digest (24 hexadecimal digits) of the program and of what decides the result; variants may share one."""
        text = json.dumps([program_digest(), self.configuration, self.files], sort_keys=True)
        return sha256(text.encode()).hexdigest()[:24]


def file_digest(path: Path) -> str:
    """SHA-256 of a file, or of names and contents of all files in a folder; empty for a name that is neither."""
    if path.is_dir():
        text = "".join(f"{item.name} {file_digest(item)}\n" for item in sorted(path.iterdir()) if item.is_file())
        return sha256(text.encode()).hexdigest()
    return sha256(path.read_bytes()).hexdigest() if path.exists() else ""


def described(config: Config, *, without: Collection[str] = ()) -> tuple[dict[str, Any], dict[str, str]]:
    """Return what of a configuration decides a run (but load and seed), and the files that the run reads.

    Parameters
    ----------
    config : Config
        Of the run.
    without : collection of str
        Sections that play no part.

    Returns
    -------
    (dict, dict)
        For `Wanted`: values of the configuration, files by their bare names; digests of the files, and of the local
        modules that those in Python import.
    """
    parts = config.model_dump(mode="json", exclude={"name", "cosim", *without})
    for name in _CHOICE_OF_RUNS:
        parts.get("simulation", {}).pop(name, None)
    for key, path in named_files(config).items():
        place = undotted(key)
        if place[0] not in parts:
            continue
        section: Any = parts
        for step in place[:-1]:
            section = section[step]
        section[place[-1]] = path.name
    return parts, {name: file_digest(path) for name, path in files_read(config, without=without).items()}


def files_read(config: Config, *, without: Collection[str] = ()) -> dict[str, Path]:
    """Return the files that a run reads, and the modules that those in Python import, by what messages call them."""
    files: dict[str, Path] = {}
    for key, path in named_files(config).items():
        if key.split(".")[0] in {"name", "cosim", *without}:
            continue
        files[f"{path.name} ({key})"] = path
        if path.suffix == ".py":
            for module in imported_files(path):
                files[f"{_beside(module, path)} (imported by {path.name})"] = module
    return files


def _beside(module: Path, path: Path) -> str:
    """Return the path of a module as seen from the folder of the file that imports it."""
    return os.path.relpath(module, path.resolve().parent)


def kept_results(
    jobs: Sequence[Job],
    wanted: Sequence[Wanted],
    work: Callable[[Job], Any],
    store: Path,
    progress: Callable[[int, int], None],
    *,
    tell: Callable[[str], None] = lambda line: None,
    unit: str = "runs",
    prepare: Callable[[list[int]], None] = lambda missing: None,
    workers: int | None = None,
    dask: str | None = None,
) -> list[Any]:
    """Return the result of every job; those that `store` has none of are computed. Equal jobs are done once.

    Parameters
    ----------
    jobs : sequence
        What is to be done.
    wanted : sequence of Wanted
        What decides the result of each.
    work : callable
        Does a job (in a worker process); returns what JSON can hold.
    store : Path
        Each result is kept at once in ``store/KEY.json``.
    progress : callable
        Called with (finished, in all).
    tell : callable, optional
        Called with a line about results that are there and are computed again.
    unit : str
        What the jobs are called in these lines.
    prepare : callable
        Called with the numbers of the jobs to be done, before the first one.
    workers : int, optional
        Processes; by default one per core.
    dask : str, optional
        Address of a Dask scheduler, whose workers are used instead of processes here.

    Raises
    ------
    SweepError
        No scheduler at the address, or its workers run another program; or hopforge, or a file that a job reads, was
        changed meanwhile: what is computed after that is not kept.
    LostRunsError
        Jobs have twice ended the process that did them; names them. The others are finished.
    ResultError
        Another process does jobs of this store.
    """
    store.mkdir(parents=True, exist_ok=True)
    with locked(store, wait=False):
        forget_parts(store)
        forget_parts(store / TIMES)
        stamps = file_stamps({path for one in wanted for path in one.paths})
        keys = [one.key for one in wanted]
        results, damaged = _found(keys, wanted, store)
        missing = [number for number, key in enumerate(keys) if key not in results and keys.index(key) == number]
        for line in _why_again([one for one in wanted if one.key not in results], len(keys), unit, store, damaged):
            tell(line)
        finished = sum(key in results for key in keys)
        progress(finished, len(keys))
        chosen = [jobs[number] for number in missing]
        lost: dict[str, str] = {}

        def died(k: int, how: str, again: bool) -> None:
            name = wanted[missing[k]].name
            tell(f"{name}: its process was {how}; {'it is done again' if again else 'it is left out'}")
            if not again:
                lost[name] = how

        with contextlib.nullcontext() if dask is None else _dask_client(dask) as client:  # before anything is computed
            prepare(missing)
            done = (
                _results(work, chosen, workers, died) if client is None else _dask_results(work, chosen, client, died)
            )
            try:
                with contextlib.closing(done):
                    for k, found in done:
                        _refuse_changed(stamps, store)
                        key = keys[missing[k]]
                        results[key] = _keep(store / f"{key}.json", wanted[missing[k]], found)
                        finished += keys.count(key)
                        progress(finished, len(keys))
            except KeyboardInterrupt:  # perhaps between a result's being kept and its being counted
                paths = [store / f"{key}.json" for key in keys]
                now = sum(
                    key in results or (path not in damaged and path.exists())
                    for key, path in zip(keys, paths, strict=True)
                )
                if now != finished:
                    progress(now, len(keys))
                raise
    if lost:
        named = "; ".join(f"{name} (its process was {how})" for name, how in lost.items())
        raise LostRunsError(
            f"{len(keys) - finished} of {len(keys)} {unit} failed, and no table is written: {named};"
            f" the others are kept in {store}, and the same command tries again"
        )
    return [results[key] for key in keys]


def _found(keys: Sequence[str], wanted: Sequence[Wanted], store: Path) -> tuple[dict[str, Any], list[Path]]:
    """Return the results that are kept, by key, and the files that hold none, or that of something else."""
    results: dict[str, Any] = {}
    damaged: list[Path] = []
    for key, one in zip(keys, wanted, strict=True):
        path = store / f"{key}.json"
        if key in results or path in damaged:
            continue
        kept = _read(path)
        if kept is not None and _decided_alike(kept, one):
            results[key] = _with_times(kept["result"], store / TIMES / path.name)
        elif os.path.lexists(path):
            damaged.append(path)
    return results, damaged


def _refuse_changed(stamps: Mapping[Path, Stamp], store: Path) -> None:
    changed = changed_files(stamps)
    if changed:
        more = f" and {len(changed) - 1} more files" if len(changed) > 1 else ""
        raise SweepError(
            f"{changed[0]}{more} changed while this command ran, so nobody knows what its last results are of; those "
            f"before are kept in {store}: call it again"
        )


def _keep(path: Path, wanted: Wanted, result: Any) -> Any:
    """Write a result with all that decided it, and beside it how long it took; returns it as a later run reads it."""
    result, times = _times_apart(json.loads(json.dumps(result, default=lambda value: value.item())))
    kept = {
        "name": wanted.name,
        "hopforge": hopforge.__version__,
        "program_digest": program_digest(),
        "versions": {"python": platform.python_version(), **package_versions()},
        "configuration": wanted.configuration,
        "files": wanted.files,
        "result": result,
        "result_sha256": _result_digest(result),
    }
    beside = path.parent / TIMES / path.name
    if times:
        write_own(beside, json.dumps(times) + "\n")
    write_own(path, json.dumps(kept, indent=1) + "\n")
    return _with_times(result, beside)


def _times_apart(result: Any) -> tuple[Any, list[Row]]:
    """Return a result without what was measured of the computation, and that: a row for each row, none if all lack."""
    rows = result if isinstance(result, list) else [result]
    times = [{key: row[key] for key in row if key in MEASURED} if isinstance(row, dict) else {} for row in rows]
    if not any(times):
        return result, []
    left = [{key: value for key, value in row.items() if key not in MEASURED} for row in rows]
    return left if isinstance(result, list) else left[0], times


def _with_times(result: Any, path: Path) -> Any:
    """Put back how long a result took; times that are lost are no reason to compute it again."""
    rows = result if isinstance(result, list) else [result]
    try:
        times = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
    except (OSError, ValueError, RecursionError):
        times = []
    if (
        not isinstance(times, list)
        or len(times) != len(rows)
        or not all(isinstance(row, dict) for row in (*rows, *times))
    ):
        return result
    whole = [
        {**row, **{key: value for key, value in spent.items() if key in MEASURED and isinstance(value, float)}}
        for row, spent in zip(rows, times, strict=True)
    ]
    return whole if isinstance(result, list) else whole[0]


def _read(path: Path) -> dict[str, Any] | None:
    """Return what was kept in a file; None if there is none, or it is damaged or of another form."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
    except (OSError, ValueError, RecursionError):
        return None
    forms = {"name": str, "hopforge": str, "program_digest": str, "configuration": dict, "files": dict}
    if not isinstance(kept, dict) or not all(isinstance(kept.get(key), form) for key, form in forms.items()):
        return None
    whole = "result" in kept and kept.get("result_sha256") == _result_digest(kept["result"])
    return kept if whole else None


def _decided_alike(kept: Mapping[str, Any], wanted: Wanted) -> bool:
    """Tell whether a result is of what its name says: a file can be copied over another."""
    now = json.loads(json.dumps([program_digest(), wanted.configuration, wanted.files]))
    return [kept["program_digest"], kept["configuration"], kept["files"]] == now


def _result_digest(result: Any) -> str:
    """Digest of a result as it stands in its file: what somebody has changed there is damaged."""
    return sha256(json.dumps(result, sort_keys=True).encode()).hexdigest()


def _why_again(wanted: Sequence[Wanted], total: int, unit: str, store: Path, damaged: Sequence[Path]) -> Iterator[str]:
    """Yield why results are computed again that the same runs have given before."""
    if not wanted:
        return
    for path in damaged:
        yield f"{path}: damaged; computed again"
    others: dict[str, list[dict[str, Any]]] = {}
    strange = 0
    for path in sorted(set(store.glob("*.json")).difference(damaged)):
        kept = _read(path)
        if kept is not None:
            others.setdefault(kept["name"], []).append(kept)
        else:
            strange += 1
    reasons: Counter[str] = Counter()
    for one in wanted:
        changes = [_changes(kept, one) for kept in others.get(one.name, [])]
        if changes:
            fewest = min(changes, key=len)
            reasons[" and ".join(fewest)] += 1
    for reason, count in reasons.items():
        yield f"{count} of {total} {unit} computed again: {reason}"
    if strange:
        yield f"{store}: {strange} files are damaged or of an older hopforge, and not used"


def _changes(kept: Mapping[str, Any], wanted: Wanted) -> list[str]:
    """Say what has changed since a result of the same run was kept."""
    changes = []
    if kept["program_digest"] != program_digest():
        changes.append(f"made by another version of hopforge ({kept['hopforge']}, {kept['program_digest'][:8]})")
    before, now = _flat(kept["configuration"]), _flat(json.loads(json.dumps(wanted.configuration)))
    keys = sorted(key for key in before.keys() | now.keys() if before.get(key, ...) != now.get(key, ...))
    if keys:
        more = ", …" if len(keys) > _NAMED_KEYS else ""
        changes.append(f"the configuration changed ({', '.join(keys[:_NAMED_KEYS])}{more})")
    files = kept["files"]
    changes += [f"{name} changed" for name in wanted.files if name in files and files[name] != wanted.files[name]]
    changes += [f"{name} is new" for name in wanted.files if name not in files and not keys]
    changes += [f"{name} is not read any more" for name in files if name not in wanted.files and not keys]
    return changes


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested mappings as one, with dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def _results(
    work: Callable[[Job], Any], jobs: list[Job], workers: int | None, died: Callable[[int, str, bool], None]
) -> Generator[tuple[int, Any]]:
    """Yield number and result of every job as it is finished, on processes of this machine."""
    count = min(workers or os.cpu_count() or 1, len(jobs))
    if count > 1:
        yield from done_by_processes(work, jobs, count, died)
        return
    for k, job in enumerate(jobs):
        yield k, work(job)


def _dask_client(address: str) -> Any:
    """Connect to a scheduler."""
    if _ADDRESS.fullmatch(address) is None:
        raise SweepError(f"--dask must be the address of a scheduler, such as tcp://127.0.0.1:8786, not {address!r}")
    try:
        from distributed import Client  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise SweepError("--dask needs the package distributed; pip install 'hopforge[sweep]'") from error
    try:
        return Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise SweepError(f"--dask: no scheduler answers at {address!r}") from error


def _with_program(work: Callable[[Job], Any], job: Job) -> tuple[str, Any]:
    """Do a job elsewhere; tells also by which program."""
    return program_digest(), work(job)


def _dask_results(
    work: Callable[[Job], Any], jobs: list[Job], client: Any, died: Callable[[int, str, bool], None]
) -> Generator[tuple[int, Any]]:
    """Yield number and result of every job as it is finished, on the workers of a Dask cluster.

    Files that a configuration names must stand at the same place on every machine.
    """
    from distributed import KilledWorker, as_completed  # noqa: PLC0415 - an extra

    futures = [client.submit(_with_program, work, job, pure=False) for job in jobs]
    number = {future.key: k for k, future in enumerate(futures)}
    try:
        for future in as_completed(futures, loop=client.loop):
            try:
                program, found = future.result()
            except KilledWorker:  # by Dask's own rules more than once
                died(number[future.key], "killed by its work", False)
                continue
            if program != program_digest():
                raise SweepError("--dask: the workers run another version of hopforge; install this one there, too")
            yield number[future.key], found
    finally:
        client.cancel(futures)
