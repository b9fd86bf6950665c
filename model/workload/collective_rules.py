"""Decision rules of MPI libraries: algorithm by bytes and ranks (docs/definitions/collective-rules.md)."""

import itertools
import json
from collections.abc import Callable, Iterator
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from hopforge.model.config.base import Problem, Section
from hopforge.model.config.source import SourceError, explain, read_source
from hopforge.model.errors import UserError
from hopforge.model.input_file import read_input_text
from hopforge.model.workload.collective_rounds import power_below
from hopforge.model.workload.collectives import ALGORITHMS

#: what other operations do one after the other → the operation that may be done so (`collective_choice`)
TOGETHER = {"reduce_bcast": "allreduce", "reduce_scatterv": "reduce_scatter", "gatherv_bcast": "allgatherv"}
#: needs of an algorithm → whether so many ranks and elements have them
NEEDS: dict[str, Callable[[int, int], bool]] = {
    "power_of_two": lambda ranks, elements: ranks & (ranks - 1) == 0,
    "two_elements": lambda ranks, elements: elements >= 2,
    "element_per_rank": lambda ranks, elements: elements >= ranks,
    "element_per_core_rank": lambda ranks, elements: elements >= power_below(ranks),
}
LIBRARIES = ("mpich", "open_mpi")
"""Whose rules come with hopforge."""
Bytes = Annotated[int, Field(ge=1, le=1 << 62)]


class RulesError(UserError, ValueError):
    """A file of rules that cannot be read: file, line, reason."""


class Row(Section):
    """For so many ranks: the first row that fits counts."""

    ranks_below: Annotated[int, Field(ge=2)] | None = None
    """Fewer ranks than this (default: any number)."""
    power_of_two: bool | None = None
    """Numbers of ranks that are powers of two, or are not (default: both)."""
    below: tuple[tuple[Bytes, str], ...] = ()
    """Bytes and algorithm: for fewer bytes than that, in rising order."""
    use: str
    """The algorithm for everything else."""

    def problems(self) -> Iterator[Problem]:
        """Check that limits rise."""
        limits = [limit for limit, _ in self.below]
        for low, high in itertools.pairwise(limits):
            if high <= low:
                yield Problem("below", f"limits must rise; {high} stands after {low}")

    def fits(self, ranks: int) -> bool:
        """Whether the row is for so many ranks."""
        power = ranks & (ranks - 1) == 0
        return (self.ranks_below is None or ranks < self.ranks_below) and self.power_of_two in (None, power)


class Fallback(Section):
    """Another algorithm where the chosen one cannot be."""

    algorithm: str
    """The one that was chosen."""
    needs: Literal["power_of_two", "two_elements", "element_per_rank", "element_per_core_rank"]
    """What it needs: a power of two of ranks; elements: two, one for each rank, or for each of the largest power of two
    of ranks."""
    use: str
    """What is done without."""


class Table(Section):
    """Rules of one call."""

    counts: Literal["own", "total", "average"] = "own"
    """Which bytes decide: the vector, or the block of the root (of rank 0 for rank 1 in an all-to-all); all blocks; or
    all divided by the number of ranks."""
    cut_bytes: bool = False
    """Vectors are cut at any byte, not only between elements."""
    skip_empty: bool = False
    """Messages without bytes are not sent."""
    rows: Annotated[tuple[Row, ...], Field(min_length=1)]
    """By number of ranks."""
    unless: tuple[Fallback, ...] = ()
    """Looked at in their order."""

    def problems(self) -> Iterator[Problem]:
        """Check that some row fits every number of ranks."""
        last = self.rows[-1]
        if last.ranks_below is not None or last.power_of_two is not None:
            yield Problem("rows", "the last row must be for any number of ranks")

    def choose(self, ranks: int, count: int, elements: int) -> str:
        """Return the algorithm for `count` bytes (`counts`) and so many elements."""
        row = next(row for row in self.rows if row.fits(ranks))
        found = next((name for limit, name in row.below if count < limit), row.use)
        for fallback in self.unless:
            if fallback.algorithm == found and not NEEDS[fallback.needs](ranks, elements):
                found = fallback.use
        return found

    def names(self) -> Iterator[str]:
        """Yield every algorithm that is named."""
        for row in self.rows:
            yield from (name for _, name in row.below)
            yield row.use
        for each in self.unless:
            yield from (each.algorithm, each.use)


class Rules(Section):
    """A library's rules."""

    library: str
    """Which library."""
    version: str
    """Of which version."""
    source: str
    """Where in it they stand."""
    bcast: Table
    """MPI_Bcast."""
    reduce: Table
    """MPI_Reduce."""
    allreduce: Table
    """MPI_Allreduce."""
    alltoall: Table
    """MPI_Alltoall."""
    alltoallv: Table
    """MPI_Alltoallv."""
    allgather: Table
    """MPI_Allgather."""
    allgatherv: Table
    """MPI_Allgatherv."""
    gather: Table
    """MPI_Gather."""
    gatherv: Table
    """MPI_Gatherv."""
    scatter: Table
    """MPI_Scatter."""
    scatterv: Table
    """MPI_Scatterv."""
    reduce_scatter: Table
    """MPI_Reduce_scatter."""
    barrier: Table
    """MPI_Barrier."""
    scan: Table
    """MPI_Scan."""
    exscan: Table
    """MPI_Exscan."""

    def problems(self) -> Iterator[Problem]:
        """Check that the algorithms are known."""
        for call, table in self.tables.items():
            operation = "scan" if call == "exscan" else call.removesuffix("v")
            known = [*ALGORITHMS[operation], *(name for name, of in TOGETHER.items() if of == call)]
            for name in table.names():
                if name not in known:
                    yield Problem(call, f"algorithm must be one of {', '.join(known)}, not {name!r}")
                    break

    @property
    def tables(self) -> dict[str, Table]:
        """The table of each call."""
        return {name: value for name in type(self).model_fields if isinstance(value := getattr(self, name), Table)}


def read_rules(rules: str, file: Path | None = None) -> Rules:
    """Return the rules of a library that come with hopforge, or those of a file.

    Parameters
    ----------
    rules : str
        ``mpich``, ``open_mpi`` or ``file``.
    file : Path, optional
        For ``file``.

    Raises
    ------
    RulesError
        No such file, or what is wrong with it, a line each.
    """
    if rules in LIBRARIES:
        return _shipped(rules)
    assert file is not None, "the configuration has been checked"
    try:
        found = file.stat()
        return _of_file(file, found.st_mtime_ns, found.st_size)
    except OSError as error:
        raise RulesError(f"workload.collectives.rules_file: {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise RulesError(f"workload.collectives.rules_file: {file}: not UTF-8 text") from error


@lru_cache(maxsize=2)
def _shipped(library: str) -> Rules:
    file = resources.files("hopforge.model") / "data" / "collectives" / f"{library}.yml"
    return _parsed(file.read_text(encoding="utf-8"), library)


@lru_cache(maxsize=8)
def _of_file(file: Path, changed_ns: int, size: int) -> Rules:
    """Return the rules of a file of that time and size."""
    return _parsed(read_input_text(file), str(file))


def _parsed(text: str, name: str) -> Rules:
    try:
        source = read_source(text)
        # JSON mode: lists become tuples, while ints and booleans stay strict
        return Rules.model_validate_json(json.dumps(source.data))
    except SourceError as error:
        problems = error.problems
    except ValidationError as error:
        problems = list(explain(error, source, Rules))
    raise RulesError("\n".join(f"{name}:{line}: {reason}" for line, reason in problems))
