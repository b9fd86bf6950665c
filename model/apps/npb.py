"""The NAS Parallel Benchmarks 3.3 (MPI) by name: classes, legal numbers of ranks, calls."""

from collections.abc import Callable
from typing import NamedTuple

from hopforge.model.apps import (
    npb_cg,
    npb_dt,
    npb_ep,
    npb_ft,
    npb_is,
    npb_lu,
    npb_mg,
    npb_multipartition,
)
from hopforge.model.apps.calls import AppError, Calls, listed, written_program
from hopforge.model.workload.trace import Trace


class Benchmark(NamedTuple):
    """A benchmark: sizes by class, which numbers of ranks are legal, and who writes the calls of a rank."""

    classes: tuple[str, ...]
    rule: str
    legal: Callable[[str, int], bool]
    write: Callable[[Calls, str, int], None]


_POWER = "powers of two"
BENCHMARKS: dict[str, Benchmark] = {
    "bt": Benchmark(
        tuple(npb_multipartition.BT_SIZES), "squares with cells of at least 3 points",
        npb_multipartition.bt_legal, npb_multipartition.write_bt,
    ),
    "cg": Benchmark(tuple(npb_cg.SIZES), _POWER, npb_cg.legal, npb_cg.write),
    "ep": Benchmark(
        tuple(npb_ep.SIZES), "any number up to one rank for each batch of 65536 pairs", npb_ep.legal, npb_ep.write
    ),
    "ft": Benchmark(tuple(npb_ft.SIZES), f"{_POWER} that divide the box", npb_ft.legal, npb_ft.write),
    "is": Benchmark(tuple(npb_is.SIZES), _POWER, npb_is.legal, npb_is.write),
    "lu": Benchmark(
        tuple(npb_lu.SIZES), "rows × columns with columns ≤ rows ≤ 2·columns and parts of at least 3 points",
        npb_lu.legal, npb_lu.write,
    ),
    "mg": Benchmark(tuple(npb_mg.SIZES), f"{_POWER} with a point for each rank", npb_mg.legal, npb_mg.write),
    "sp": Benchmark(
        tuple(npb_multipartition.SP_SIZES), "squares with cells of at least 3 points",
        npb_multipartition.sp_legal, npb_multipartition.write_sp,
    ),
}
#: largest number of ranks that an error looks through
_LISTED = 1 << 14


def npb_trace(
    benchmark: str, problem: str, ranks: int, graph: str = "BH", iterations: int | None = None
) -> Trace:
    """Return the calls of a benchmark.

    Parameters
    ----------
    benchmark : str
        ``is``, ``cg``, ``mg``, ``ft``, ``bt``, ``sp``, ``lu``, ``ep`` or ``dt``.
    problem : str
        Class ``S``, ``W``, ``A`` to ``E`` (IS and DT: to ``D``).
    ranks : int
        Number of ranks.
    graph : str
        Graph of DT: ``BH``, ``WH`` or ``SH``.
    iterations : int, optional
        At most so many, at least 2, of those that the class has; EP and DT have none.

    Raises
    ------
    AppError
        A class that the benchmark does not have, or a number of ranks that it does not allow (names the legal ones).
    """
    if benchmark == "dt":
        return _dt_trace(problem, ranks, graph)
    rules = BENCHMARKS[benchmark]
    _check_class(benchmark, problem, rules.classes)
    if not rules.legal(problem, ranks):
        known = listed(number for number in range(1, _LISTED + 1) if rules.legal(problem, number))
        raise AppError(
            f"workload.ranks: {benchmark.upper()} class {problem} runs on {rules.rule} ({known}), not {ranks}"
        )
    name = f"{benchmark}.{problem}.{ranks}" + ("" if iterations is None else f", {iterations} iterations")
    return written_program(name, ranks, lambda calls: rules.write(calls, problem, ranks), iterations)


def _dt_trace(problem: str, ranks: int, graph: str) -> Trace:
    _check_class("dt", problem, tuple(npb_dt.SIZES))
    if not npb_dt.legal(problem, ranks, graph):
        nodes = len(npb_dt.graph_nodes(problem, graph)[0])
        raise AppError(
            f"workload.ranks: DT class {problem} needs a rank for each of the {nodes} nodes of graph {graph},"
            f" not {ranks}"
        )
    return written_program(
        f"dt.{graph}.{problem}.{ranks}", ranks, lambda calls: npb_dt.write(calls, problem, ranks, graph)
    )


def _check_class(benchmark: str, problem: str, classes: tuple[str, ...]) -> None:
    if problem not in classes:
        raise AppError(f"workload.class: {benchmark.upper()} has the classes {', '.join(classes)}, not {problem}")
