"""Results of many runs, each kept as soon as it is finished under the digest of all that decides it.

A run is computed on the cores of this machine or on a Dask cluster. What was kept under the same key is taken from
there; what the same run gave with another program, configuration or file stays on disk, and is computed again with a
word.
"""

import contextlib
import os
import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from hopforge.model.errors import UserError
from hopforge.model.output.program_digest import program_digest
from hopforge.model.output.results import forget_parts, locked
from hopforge.sim.run.file_stamps import Stamp, changed_files, file_stamps
from hopforge.sim.run.kept_file import TIMES, find_results, why_again, write_result
from hopforge.sim.run.wanted_result import Wanted
from hopforge.sim.run.worker_processes import done_by_processes

#: folder of finished runs inside the folder of results
FINISHED = "runs"
#: patience with a Dask scheduler
CONNECT_SECONDS = 10
_ADDRESS = re.compile(r"(\w+://)?[^\s/]+:\d+")

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
        finished = _Finished(wanted, store, progress)
        missing = finished.missing()
        for line in finished.why_again(unit):
            tell(line)
        finished.tell()
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
            with finished.counted_on_interrupt(), contextlib.closing(done):
                for k, found in done:
                    _refuse_changed(stamps, store)
                    finished.add(wanted[missing[k]], found)
    if lost:
        named = "; ".join(f"{name} (its process was {how})" for name, how in lost.items())
        raise LostRunsError(
            f"{len(wanted) - finished.count} of {len(wanted)} {unit} failed, and no table is written: {named};"
            f" the others are kept in {store}, and the same command tries again"
        )
    return finished.in_order()


class _Finished:
    """The results that there are; whenever they become more, it tells how many of the wanted ones they are.

    Parameters
    ----------
    wanted : sequence of Wanted
        What decides each result; several may be the same.
    store : Path
        Folder of the results; those that it has are there from the beginning.
    progress : callable
        Called with (finished, in all).
    """

    def __init__(self, wanted: Sequence[Wanted], store: Path, progress: Callable[[int, int], None]) -> None:
        self._wanted, self._store, self._progress = wanted, store, progress
        self._keys = [one.key for one in wanted]
        self._results, self._damaged = find_results(wanted, store)
        self.count = sum(key in self._results for key in self._keys)

    def missing(self) -> list[int]:
        """Return the numbers of what is to be done; of equal ones the first."""
        keys = self._keys
        return [number for number, key in enumerate(keys) if key not in self._results and keys.index(key) == number]

    def why_again(self, unit: str) -> Iterator[str]:
        """Yield why results that are missing are computed again."""
        missing = [one for one in self._wanted if one.key not in self._results]
        return why_again(missing, len(self._wanted), unit, self._store, self._damaged)

    def tell(self) -> None:
        """Tell how many results there are."""
        self._progress(self.count, len(self._wanted))

    def add(self, one: Wanted, result: Any) -> None:
        """Keep a result that has been computed."""
        self._results[one.key] = write_result(self._path(one.key), one, result)
        self.count += self._keys.count(one.key)
        self.tell()

    @contextlib.contextmanager
    def counted_on_interrupt(self) -> Iterator[None]:
        """Let the last number told be right: a signal may come between a result's being kept and its being counted."""
        try:
            yield
        except KeyboardInterrupt:
            before, self.count = self.count, sum(self._is_there(key) for key in self._keys)
            if self.count != before:
                self.tell()
            raise

    def in_order(self) -> list[Any]:
        """Return the result of every job."""
        return [self._results[key] for key in self._keys]

    def _is_there(self, key: str) -> bool:
        path = self._path(key)
        return key in self._results or (path not in self._damaged and path.exists())

    def _path(self, key: str) -> Path:
        return self._store / f"{key}.json"


def _refuse_changed(stamps: Mapping[Path, Stamp], store: Path) -> None:
    changed = changed_files(stamps)
    if changed:
        more = f" and {len(changed) - 1} more files" if len(changed) > 1 else ""
        raise SweepError(
            f"{changed[0]}{more} changed while this command ran, so nobody knows what its last results are of; those "
            f"before are kept in {store}: call it again"
        )


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
