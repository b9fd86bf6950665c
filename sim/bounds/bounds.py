"""Bounds of throughput of a network: the tables and figures of `hopforge bounds`.

Definitions: docs/definitions/bounds.md.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config import Config
from hopforge.model.output.columns import Columns
from hopforge.model.output.results import run_metadata, staged, write_metadata, write_tables
from hopforge.model.topology import Topology
from hopforge.sim.bounds.ideal import ideal_factor
from hopforge.sim.bounds.permutation import WorstPermutation, worst_permutation
from hopforge.sim.bounds.prepared import BoundsSetup
from hopforge.sim.bounds.shares import PER_HOP, PER_PATH, SINGLE
from hopforge.sim.traffic.demand import Demand

__all__ = ["BoundsReport", "find_bounds", "summary_rows", "table_lines", "write_bounds"]

Loads = NDArray[np.float64]
#: name of a minimal routing → rule
MINIMAL = {"minimal_per_hop": PER_HOP, "minimal_per_path": PER_PATH, "minimal_single": SINGLE}
_NAN = float("nan")


@dataclass(frozen=True, eq=False)
class BoundsReport:
    """Everything that one run of `hopforge bounds` found.

    Attributes
    ----------
    config : Config
        What was asked.
    topology : Topology
        The network.
    loads : dict
        (routing, ``uniform`` or ``traffic``) → load of every channel, float64[router, port].
    worst : dict
        Minimal routing → the permutation that loads a channel most.
    table : Columns
        A row for each routing.
    left_out : dict
        What was too large → why.
    """

    config: Config
    topology: Topology
    loads: dict[tuple[str, str], Loads]
    worst: dict[str, WorstPermutation]
    table: dict[str, NDArray[Any]]
    left_out: dict[str, str]


def find_bounds(config: Config, setup: BoundsSetup, progress: Callable[[int, int], None]) -> BoundsReport:
    """Compute loads, worst permutations and ideal throughput.

    Parameters
    ----------
    config : Config
        The file.
    setup : BoundsSetup
        What `prepare_bounds` made of it.
    progress : callable
        Called with (steps done, steps in all); a step is a router of a routing, or a linear program.
    """
    topology, ways = setup.topology, setup.ways
    demands = {"uniform": setup.uniform, "traffic": setup.traffic}
    loads = {(name, key): ways.loads(rule, demand.rate) for name, rule in MINIMAL.items()
             for key, demand in demands.items()}  # fmt: skip
    for key, demand in demands.items():
        loads["valiant", key] = ways.loads(PER_HOP, _over_routers(topology, demand))
    if setup.fixed is not None:
        loads |= {(setup.fixed.name, key): setup.fixed.loads(topology, rate) for key, rate in setup.to_hosts.items()}
    searched = "worst permutation" not in setup.left_out
    steps = (len(MINIMAL) * topology.routers if searched else 0) + (0 if "ideal" in setup.left_out else 3)
    worst: dict[str, WorstPermutation] = {}
    for index, (name, rule) in enumerate(MINIMAL.items() if searched else ()):
        before = index * topology.routers
        worst[name] = worst_permutation(
            topology, ways, rule, lambda done, _, before=before: progress(before + done, steps)  # type: ignore[misc]
        )
    factors = {}
    if "ideal" not in setup.left_out:
        rates = {key: demand.rate for key, demand in demands.items()}
        if worst:
            rates["worst"] = _rates_of(topology, worst["minimal_per_hop"].goals)
        for left, (key, rate) in zip((2, 1, 0), rates.items(), strict=False):
            factors[key] = ideal_factor(topology, rate)
            progress(steps - left, steps)
    table = _table(setup, loads, worst, factors)
    return BoundsReport(config, topology, loads, worst, table, setup.left_out)


def _over_routers(topology: Topology, demand: Demand) -> Loads:
    """Rates of both parts of Valiant's ways: over every router with hosts alike."""
    hosts = np.bincount(topology.host_router, minlength=topology.routers) > 0
    share = hosts / hosts.sum()
    found: Loads = np.outer(demand.rate.sum(axis=1), share) + np.outer(share, demand.rate.sum(axis=0))
    return found


def _rates_of(topology: Topology, goals: NDArray[np.int64]) -> Loads:
    rate = np.zeros((topology.routers, topology.routers))
    np.add.at(rate, (topology.host_router, topology.host_router[goals]), 1.0)
    return rate


def _table(
    setup: BoundsSetup,
    loads: dict[tuple[str, str], Loads],
    worst: dict[str, WorstPermutation],
    factors: dict[str, float],
) -> dict[str, NDArray[Any]]:
    used = setup.topology.peer_router >= 0
    host = float(setup.traffic.received.max())

    def most(name: str, key: str) -> float:
        return float(loads[name, key].max(initial=0.0))

    rows: list[dict[str, Any]] = []
    for name in dict.fromkeys(name for name, _ in loads):
        found = worst.get(name)
        highest = found.load if found is not None else _NAN
        if name == "valiant":  # the sums over rows and columns of a permutation are those of uniform traffic
            highest = most(name, "uniform")
        rows.append({
            "routing": name, "uniform_load": most(name, "uniform"),
            "uniform_mean_load": float(loads[name, "uniform"][used].mean()) if used.any() else 0.0,
            "uniform_throughput": _share(most(name, "uniform")), "traffic_load": most(name, "traffic"),
            "traffic_throughput": _share(most(name, "traffic"), host), "worst_load": highest,
            "worst_throughput": _share(highest), "worst_router": found.router if found is not None else -1,
            "worst_port": found.port if found is not None else -1,
        })  # fmt: skip
    load = {key: 1.0 / factors[key] if key in factors else _NAN for key in ("uniform", "traffic", "worst")}
    rows.append({
        "routing": "ideal", "uniform_load": load["uniform"], "uniform_mean_load": _NAN,
        "uniform_throughput": _share(load["uniform"]), "traffic_load": load["traffic"],
        "traffic_throughput": _share(load["traffic"], host), "worst_load": load["worst"],
        "worst_throughput": _share(load["worst"]), "worst_router": -1, "worst_port": -1,
    })  # fmt: skip
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def _share(load: float, host: float = 1.0) -> float:
    """Flits per host and cycle at which the busiest channel, or a host, is full; at most 1."""
    return _NAN if np.isnan(load) else min(1.0, 1.0 / max(load, host, 1e-300))


def write_bounds(found: BoundsReport, folder: Path) -> None:
    """Write ``bounds``, ``channels``, ``worst_permutation`` (CSV and Parquet) and ``metadata.json``, all or nothing.

    Raises
    ------
    ResultError
        The folder cannot be written.
    """
    router, port = np.nonzero(found.topology.peer_router >= 0)
    channels: dict[str, Any] = {"router": router, "port": port, "peer": found.topology.peer_router[router, port]}
    own = {*MINIMAL, "valiant"}
    for (name, key), load in found.loads.items():
        channels[f"{key}_{name if name in own else 'routing'}"] = load[router, port]
    tables: dict[str, Columns] = {"bounds": found.table, "channels": channels}
    if found.worst:
        goals = {name: worst.goals for name, worst in found.worst.items()}
        tables["worst_permutation"] = dict[str, Any]({"host": np.arange(found.topology.hosts)}) | goals
    with staged(folder) as scratch:
        write_tables(scratch, tables)
        metadata = run_metadata(found.config)
        metadata["topology"] = {"name": found.topology.name, **found.topology.params}
        if found.left_out:
            metadata["left_out"] = dict(found.left_out)
        write_metadata(scratch, metadata)


def summary_rows(found: BoundsReport) -> list[tuple[str, str]]:
    """Return (subject, words) of a run, for people."""
    topology, traffic = found.topology, found.config.traffic
    channels = int((topology.peer_router >= 0).sum())
    rows = [
        ("network", f"{topology.name}: {topology.routers} routers, {topology.hosts} hosts, {channels} channels"),
        ("traffic", traffic.pattern),
        ("load", "flits per cycle on the busiest channel where every host sends 1"),
        ("bound", "throughput: flits per host and cycle at which it, or a host, is full"),
    ]
    return rows + [("left out", line) for line in found.left_out.values()]


def table_lines(found: BoundsReport) -> list[list[str]]:
    """Return headings and a row for each routing."""
    names = ("uniform", "traffic", "worst")
    lines = [["routing", "uniform load", "bound", "traffic load", "bound", "worst load", "bound"]]
    for row in range(len(found.table["routing"])):
        cells = [float(found.table[f"{key}_{what}"][row]) for key in names for what in ("load", "throughput")]
        words = ["-" if np.isnan(one) else f"{one:.6g}" for one in cells]
        lines.append([str(found.table["routing"][row]), *words])
    return lines
