"""Routing tables of a network without its failed links and switches, and what of the tables before they change."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config.simulation import FailedConfig, describe_failed, parse_failed
from hopforge.model.config.tables import TablesConfig
from hopforge.model.errors import UserError
from hopforge.model.irregular.channels import WorkingSwitches
from hopforge.model.irregular.landmarks import LandmarkTables
from hopforge.model.irregular.loren import FloorPlan, LorenTables
from hopforge.model.irregular.tables import RoutingTables, build_tables
from hopforge.model.shared import once
from hopforge.model.topology import Topology
from hopforge.model.topology.failed import failed_ports, failed_switches, survivors, without_failed

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "FailureReport",
    "SurvivingTables",
    "TableChange",
    "compare_tables",
    "linked_tables",
    "surviving_tables",
    "tables_after_failure",
    "with_options",
]


@dataclass(frozen=True)
class SurvivingTables:
    """Tables of the switches that work.

    Attributes
    ----------
    tables : RoutingTables
        Of the working switches, numbered in their order: for figures of merit.
    named : RoutingTables
        The same with the numbers of the whole network; −1, and no entries, where a switch has failed.
    """

    tables: RoutingTables
    named: RoutingTables


def surviving_tables(
    section: TablesConfig, topology: Topology, failed: FailedConfig, seed: int, step: Callable[[str], None]
) -> SurvivingTables:
    """Build tables and virtual layers of a network without its failed parts, and check both.

    Parameters
    ----------
    section, seed
        As for `build_tables`.
    topology : Topology
        The whole network.
    failed : FailedConfig
        What does not work.
    step : callable
        Called with the name of each step when it begins.

    Raises
    ------
    FailureError
        Parts that do not exist, or a network that falls apart.
    UserError
        As `build_tables`.
    """
    step("network")
    return _without(section, without_failed(topology, failed), failed_switches(topology, failed), seed, step)


def linked_tables(section: TablesConfig, topology: Topology, seed: int) -> RoutingTables:
    """Tables of a network in which switches without a link have failed, with the numbers of the whole network.

    Made once for all commands that are prepared.
    """
    alone = np.asarray((topology.peer_router < 0).all(axis=1))
    if not alone.any() or topology.routers < 3:
        return plain_tables(section, topology, seed)
    return once(
        ("tables left", section, topology, seed), lambda: _without(section, topology, alone, seed, lambda _: None).named
    )


def plain_tables(section: TablesConfig, topology: Topology, seed: int) -> RoutingTables:
    """Tables of a network in which nothing has failed; made once for all commands that are prepared."""
    return once(("tables", section, topology, seed), lambda: build_tables(section, topology, seed))


def _without(
    section: TablesConfig, topology: Topology, gone: NDArray[np.bool_], seed: int, step: Callable[[str], None]
) -> SurvivingTables:
    if not gone.any():
        tables = build_tables(section, topology, seed, step)
        return SurvivingTables(tables, tables)
    smaller, numbers = survivors(topology, gone)
    if isinstance(section.root, int):
        if gone[section.root]:
            raise UserError(f"tables.root: router {section.root} has failed; centre finds another one")
        section = section.model_copy(update={"root": int(np.searchsorted(numbers, section.root))})
    tables = build_tables(section, smaller, seed, step, WorkingSwitches(topology.routers, numbers))
    return SurvivingTables(tables, _named(tables, topology, numbers))


def _spread(matrix: NDArray[np.generic], numbers: NDArray[np.int32], size: int, empty: int) -> NDArray[np.generic]:
    """Put a matrix [router, router] of the working switches into one of all."""
    full = np.full((size, size), empty, matrix.dtype)
    full[np.ix_(numbers, numbers)] = matrix
    return full


def _named(tables: RoutingTables, topology: Topology, numbers: NDArray[np.int32]) -> RoutingTables:
    """Give tables the numbers of the whole network; channels keep their order, and so their numbers."""
    size, name = topology.routers, np.append(numbers, np.int32(-1))  # name[-1]: nothing
    entries = np.zeros(size, np.int64)
    entries[numbers] = tables.entries
    neighbours = np.full((size, tables.neighbours.shape[1]), -1, np.int32)
    neighbours[numbers] = name[tables.neighbours]
    channels = tables.channels
    degree = np.zeros(size, np.int64)
    degree[numbers] = np.diff(channels.first)
    hops_of_pair = np.zeros((size, size), np.int64)
    hops_of_pair[np.ix_(numbers, numbers)] = np.diff(tables.layers.starts).reshape(len(numbers), -1)
    details, escape = tables.details, tables.layers.escape
    if isinstance(details, LandmarkTables):
        landmark_of = np.full(size, -1, np.int32)
        landmark_of[numbers] = name[details.landmark_of]
        details = LandmarkTables(
            name[details.landmarks],
            landmark_of,
            _spread(details.known, numbers, size, 0).astype(np.bool_),
            _spread(name[details.next_hop], numbers, size, -1).astype(np.int32),
        )
    if isinstance(details, LorenTables):
        every = (size, details.destination.shape[1])
        destination, successor, hops = (np.full(every, -1, np.int32) for _ in range(3))
        destination[numbers], successor[numbers] = name[details.destination], name[details.successor]
        hops[numbers] = details.hops
        plan = FloorPlan(details.plan.side, np.arange(size, dtype=np.int32))
        details = LorenTables(plan, destination, successor, hops, entries.astype(np.int32), details.least_entries)
    return replace(
        tables,
        topology=topology,
        neighbours=neighbours,
        channels=channels._replace(
            source=name[channels.source],
            target=name[channels.target],
            first=np.concatenate([[0], np.cumsum(degree)]).astype(np.int32),
        ),
        next_hop=_spread(name[tables.next_hop], numbers, size, -1).astype(np.int32),
        next_channel=_spread(tables.next_channel, numbers, size, -1).astype(np.int32),
        hops=_spread(tables.hops, numbers, size, -1).astype(np.int32),
        shortest=_spread(tables.shortest, numbers, size, 255).astype(np.uint8),
        entries=entries,
        layers=replace(
            tables.layers,
            starts=np.concatenate([[0], np.cumsum(hops_of_pair.reshape(-1))]),
            escape=None if escape is None else _spread(escape, numbers, size, -1).astype(np.int32),
        ),
        details=details,
        others=tuple(_named(one, topology, numbers) for one in tables.others),
    )


def entry_matrix(tables: RoutingTables) -> NDArray[np.int32]:
    """Next router of every entry: int32[router, destination]; −1 where a table has no entry."""
    details = tables.details
    if isinstance(details, LandmarkTables):
        return np.where(details.known, tables.next_hop, -1).astype(np.int32)
    if not isinstance(details, LorenTables):
        return tables.next_hop
    found = np.full(tables.next_hop.shape, -1, np.int32)
    router, place = np.nonzero(details.destination >= 0)
    found[router, details.destination[router, place]] = details.successor[router, place]
    return found


def changed_paths(before: NDArray[np.int32], after: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Pairs whose path is another one: bool[source, destination].

    Parameters
    ----------
    before, after : ndarray, int32[router, destination]
        Next hops of tables that deliver every pair; −1 on the diagonal and where a switch has failed.

    Examples
    --------
    A ring of four: only the first hop of the way from 0 to 2 changes, so only this path does.

    >>> old = np.array([[-1, 1, 1, 3], [0, -1, 2, 2], [1, 1, -1, 3], [0, 0, 2, -1]])
    >>> new = old.copy()
    >>> new[0, 2] = 3
    >>> np.argwhere(changed_paths(old, new)).tolist()
    [[0, 2]]
    """
    changed = before != after
    # a path changes if the rest of it, seen from any of its switches, does: double the hops that are looked at
    column = np.arange(after.shape[1])[None, :]
    jump = np.where(after < 0, np.arange(after.shape[0])[:, None], after)
    while True:
        further = changed | changed[jump, column]
        if np.array_equal(further, changed):
            return changed
        changed, jump = further, jump[jump, column]


@dataclass(frozen=True)
class TableChange:
    """What differs between two sets of tables, in the numbers of the whole network.

    Attributes
    ----------
    routers : DataFrame
        router, entries_before, entries_after, written (entries that are new or lead elsewhere), removed.
    pairs, changed_pairs : int
        Pairs of working switches (for each path number), and those whose path is another one.
    layers, longest, mean_hops : tuple
        Before and after; hops over the pairs of switches that work in each.
    """

    routers: "pd.DataFrame"
    pairs: int
    changed_pairs: int
    layers: tuple[int, int]
    longest: tuple[int, int]
    mean_hops: tuple[float, float]


def compare_tables(before: RoutingTables, after: RoutingTables) -> TableChange:
    """Say what changes from one set of tables (of the whole network) to another (`SurvivingTables.named`)."""
    import pandas as pd  # noqa: PLC0415 - slow to import (tests/sim/start/test_start_up.py)

    both = list(zip(before.all_paths, after.all_paths, strict=True))
    entries = [(entry_matrix(b), entry_matrix(a)) for b, a in both]
    routers = pd.DataFrame(
        {
            "router": np.arange(len(before.entries)),
            "entries_before": before.entries,
            "entries_after": after.entries,
            "written": sum(((new >= 0) & (new != old)).sum(axis=1) for old, new in entries),
            "removed": sum(((old >= 0) & (new < 0)).sum(axis=1) for old, new in entries),
        }
    )
    working = after.hops > 0
    changed = [changed_paths(b.next_hop, a.next_hop) & working for b, a in both]
    hops_before, hops_after = (np.stack([one.hops for one in side.all_paths]) for side in (before, after))
    return TableChange(
        routers,
        int(working.sum()) * len(both),
        sum(int(one.sum()) for one in changed),
        (before.layers.count, after.layers.count),
        (int(hops_before.max()), int(hops_after.max())),
        (float(hops_before[hops_before > 0].mean()), float(hops_after[:, working].mean())),
    )


def with_options(topology: Topology, failed: FailedConfig, links: list[str], switches: list[str]) -> FailedConfig:
    """Add what the options --fail and --fail-switch name to section `failed`.

    Raises
    ------
    FailureError
        Parts that do not exist, or a network that falls apart: names the options and their values, or `failed`.
    UserError
        A word of another form.
    """
    without_failed(topology, failed)
    options = [("--fail", word) for text in links for word in text.split(",")]
    options += [("--fail-switch", word) for text in switches for word in text.split(",")]
    for option, word in options:
        one = parse_failed([word], []) if option == "--fail" else parse_failed([], [word])
        failed_ports(topology, one, f"{option} {word.strip()}")
        failed += one
    without_failed(topology, failed, ", ".join(f"{option} {word.strip()}" for option, word in options) or "failed")
    return failed


@dataclass(frozen=True)
class FailureReport:
    """What `hopforge route` writes of a failure.

    Attributes
    ----------
    named : RoutingTables
        The new tables with the numbers of the whole network.
    routers : DataFrame
        As in `TableChange`; router, entries of tables and layers from files.
    rows : list of (str, str)
        Subject and words.
    """

    named: RoutingTables
    routers: "pd.DataFrame"
    rows: list[tuple[str, str]]


class _Clock:
    """Processor time of each step."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._name, self._since = "", 0.0

    def __call__(self, name: str) -> None:
        now = time.process_time()
        if self._name:
            self.seconds[self._name] = now - self._since
        self._name, self._since = name, now


def tables_after_failure(
    section: TablesConfig, topology: Topology, failed: FailedConfig, seed: int
) -> tuple[RoutingTables, FailureReport]:
    """Tables of the switches that work, numbered in their order, and what the failure changed.

    Parameters
    ----------
    section, seed
        As for `build_tables`.
    topology : Topology
        The whole network, whose tables are computed, too, to be compared with, if it has such tables; not those of a
        user's files, which stay as they are.
    failed : FailedConfig
        What does not work.

    Raises
    ------
    UserError
        As `surviving_tables`.
    """
    import pandas as pd  # noqa: PLC0415 - slow to import (tests/sim/start/test_start_up.py)

    without_failed(topology, failed)  # what cannot be is said before anything is computed
    fixed = section.file is not None or section.layers_file is not None
    before, missing = None, ""
    try:
        before = None if fixed else build_tables(section, topology, seed)
    except UserError as problem:  # of the whole network, which nobody asks for
        if isinstance(section.root, int) and section.root >= topology.routers:
            raise
        missing = str(problem)
    clock = _Clock()
    after = surviving_tables(section, topology, failed, seed, clock)
    clock("")
    rows = [("failed", describe_failed(failed))]
    if before is None:
        routers = pd.DataFrame({"router": np.arange(topology.routers), "entries": after.named.entries})
        if fixed:
            rows.append(("files", "fit what is left: every pair is delivered, no layers can deadlock"))
        else:
            rows.append(("compared with", f"nothing, for the whole network has no such tables: {missing}"))
    else:
        change = compare_tables(before, after.named)
        routers = change.routers
        rows += change_rows(change)
    words = ", ".join(f"{name} {value:.3f} s" for name, value in clock.seconds.items()) + " of processor time"
    rows.append(("recomputed in" if before is not None else "computed in", words))
    return after.tables, FailureReport(after.named, routers, rows)


def change_rows(change: TableChange) -> list[tuple[str, str]]:
    """Subject and words for the terminal."""
    routers = change.routers
    touched = int((routers["written"] + routers["removed"] > 0).sum())
    return [
        (
            "entries changed",
            f"{routers['written'].sum():,} written and {routers['removed'].sum():,} removed in {touched} of "
            f"{len(routers)} switches, {routers['written'].max()} written at most",
        ),
        ("paths changed", f"{change.changed_pairs:,} of {change.pairs:,} pairs"),
        ("layers", f"{change.layers[0]} before, {change.layers[1]} after"),
        ("longest path", f"{change.longest[0]} hops before, {change.longest[1]} after"),
        ("mean path", f"{change.mean_hops[0]:.4g} hops before, {change.mean_hops[1]:.4g} after"),
    ]
