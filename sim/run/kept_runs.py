"""Many runs over all cores or a Dask cluster, each kept as soon as it is finished, so that a stopped sweep goes on."""

import contextlib
import json
import multiprocessing
import os
import re
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from hopforge.model.config import Config
from hopforge.model.errors import UserError

#: folder of finished runs inside the folder of results
FINISHED = "runs"
#: patience with a Dask scheduler
CONNECT_SECONDS = 10
_ADDRESS = re.compile(r"(\w+://)?[^\s/]+:\d+")

Job = TypeVar("Job")
Row = dict[str, Any]


class SweepError(UserError):
    """A sweep that cannot run: no Dask scheduler, or a variant that does not fit its network."""


@contextlib.contextmanager
def naming_variant(name: str) -> Iterator[None]:
    """Let mistakes say of which variant of a sweep they are (`name` is empty where there are no variants)."""
    try:
        yield
    except UserError as error:
        if not name:
            raise
        raise SweepError(f"simulation.variants.{name}: {error}") from error


def config_key(config: Config, sections: set[str], *extra: Any) -> str:
    """Return a name for what some sections of a configuration (and the contents of their files) and `extra` decide."""
    parts = config.model_dump(mode="json", include=sections)
    for name in ("load", "loads", "seeds", "variants"):
        parts.get("simulation", {}).pop(name, None)
    for section in ("topology", "routing", "traffic", "tables", "workload"):
        for key in ("file", "layers_file", "mapping"):
            file = getattr(getattr(config, section), key, None)
            file = getattr(file, "file", None) if key == "mapping" else file
            if file is not None and section in parts:
                parts[section][f"{key} digest"] = _digest(Path(file))
    text = json.dumps([parts, *extra], sort_keys=True)
    return sha256(text.encode()).hexdigest()[:24]


def _digest(path: Path) -> str:
    """Return the digest of a file, or of all in a folder; of a name that is neither, nothing but the name."""
    if path.is_dir():
        text = "".join(f"{item.name} {_digest(item)}\n" for item in sorted(path.iterdir()) if item.is_file())
        return sha256(text.encode()).hexdigest()
    return sha256(path.read_bytes()).hexdigest() if path.exists() else ""


def kept_runs(
    jobs: Sequence[Job],
    keys: Sequence[str],
    work: Callable[[Job], Row],
    folder: Path,
    progress: Callable[[int, int], None],
    *,
    prepare: Callable[[list[int]], None] = lambda missing: None,
    workers: int | None = None,
    dask: str | None = None,
) -> list[Row]:
    """Return the result of every job; those that `folder` has none of are run. Equal jobs run once.

    Parameters
    ----------
    jobs : sequence
        What is to be done.
    keys : sequence of str
        A name for all that decides the result of each job.
    work : callable
        Does a job (in a worker process).
    folder : Path
        Each result is kept at once in ``folder/runs/KEY.json``.
    progress : callable
        Called with (finished, in all).
    prepare : callable
        Called with the numbers of the jobs to be run, before the first one.
    workers : int, optional
        Processes; by default one per core.
    dask : str, optional
        Address of a Dask scheduler, whose workers are used instead of processes here.

    Raises
    ------
    SweepError
        No scheduler at the address.
    """
    store = folder / FINISHED
    store.mkdir(parents=True, exist_ok=True)
    files = [store / f"{key}.json" for key in keys]
    rows = {file: json.loads(file.read_text()) for file in files if file.is_file()}
    finished = sum(file in rows for file in files)
    progress(finished, len(files))
    missing = [number for number, file in enumerate(files) if file not in rows and files.index(file) == number]
    chosen = [jobs[number] for number in missing]
    with contextlib.nullcontext() if dask is None else _dask_client(dask) as client:  # before anything is computed
        prepare(missing)
        for k, row in _results(work, chosen, workers) if client is None else _dask_results(work, chosen, client):
            place = files[missing[k]]
            rows[place] = row
            unfinished = place.with_suffix(".tmp")
            unfinished.write_text(json.dumps(row, default=float))
            unfinished.replace(place)
            finished += files.count(place)
            progress(finished, len(files))
    return [rows[file] for file in files]


def _ignore_interrupt() -> None:
    # Ctrl-C reaches the whole process group; only the parent decides what to do
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextlib.contextmanager
def _interrupts_ignored() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():  # elsewhere signals cannot be set
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _results(work: Callable[[Job], Row], jobs: list[Job], workers: int | None) -> Iterator[tuple[int, Row]]:
    """Yield number and result of every job as it is finished, on processes of this machine."""
    count = min(workers or os.cpu_count() or 1, len(jobs))
    if count <= 1:
        for k, job in enumerate(jobs):
            yield k, work(job)
        return
    with _interrupts_ignored():  # also in the processes that begin here, before they come to their initializer
        pool = multiprocessing.get_context("spawn").Pool(count, initializer=_ignore_interrupt)
    with pool:
        yield from pool.imap_unordered(_numbered, [(work, k, job) for k, job in enumerate(jobs)])


def _numbered(numbered: tuple[Callable[[Job], Row], int, Job]) -> tuple[int, Row]:
    work, k, job = numbered
    return k, work(job)


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


def _dask_results(work: Callable[[Job], Row], jobs: list[Job], client: Any) -> Iterator[tuple[int, Row]]:
    """Yield number and result of every job as it is finished, on the workers of a Dask cluster.

    Files that a configuration names must stand at the same place on every machine.
    """
    from distributed import as_completed  # noqa: PLC0415 - an extra

    futures = [client.submit(work, job, pure=False) for job in jobs]
    number = {future.key: k for k, future in enumerate(futures)}
    try:
        for future, row in as_completed(futures, loop=client.loop, with_results=True):
            yield number[future.key], row
    finally:
        client.cancel(futures)
