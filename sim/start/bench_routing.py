"""What the guard of a user's routing file costs: its relation with the guard and without it, in alternated rounds."""

import statistics
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from hopforge.model.config import parse_config
from hopforge.model.errors import UserError
from hopforge.model.kernel.compile import kernel
from hopforge.model.network.core.net_record import ROUTE_SIGNATURE
from hopforge.model.routing.combined.configured import routing_plan
from hopforge.model.routing.contract.plan import RoutingPlan
from hopforge.sim.run.simulation import Simulation, network_topology

__all__ = ["CLOCK", "GUARDS", "LOAD", "measure_routing", "overhead_percent"]

CLOCK = "process time, user and system"
LOAD = 0.25
#: cycles of a round: short, so that what disturbs one round disturbs its pair alike
CYCLES = 4_000
#: how a relation runs → for people
GUARDS = {"proved": "after the proof", "unproved": "routing.check: false"}
_MESH = "name: bench\ntopology: {{kind: mesh, radices: [8, 8]}}\nrouting: {{algorithm: file, file: {}{}}}\n"


def measure_routing(file: Path, rounds: int = 81) -> Iterator[dict[str, Any]]:
    """Time a routing file on an 8×8 mesh; yield a row of a table for each of `GUARDS`.

    Parameters
    ----------
    file : Path
        Of the relation; one that learns is refused.
    rounds : int
        Timed pairs of rounds, at least 2; the guarded run first and second in turn.

    Raises
    ------
    ValueError
        Fewer than two rounds.
    UserError
        A mistake in the file.
    """
    if rounds < 2:
        raise ValueError(f"rounds must be at least 2, not {rounds}")
    for name, words in GUARDS.items():
        guarded, bare = _pair(file, proved=name == "proved")
        for run in (guarded, bare):
            run.advance(CYCLES // 4)
        first: list[float] = []
        second: list[float] = []
        for number in range(rounds):
            order = ((guarded, first), (bare, second)) if number % 2 == 0 else ((bare, second), (guarded, first))
            for run, seconds in order:
                seconds.append(_timed(run))
        if int(guarded.state["hops_sum"]) != int(bare.state["hops_sum"]):
            raise UserError(f"{file}: runs with the guard and without it differ")
        ratios = [with_guard / without for with_guard, without in zip(first, second, strict=True)]
        low, middle, high = statistics.quantiles(ratios, n=4)
        yield {
            "case": f"{file.name}, {words}", "rounds": rounds, "cycles": CYCLES,
            "guarded_s": statistics.median(first), "bare_s": statistics.median(second),
            "guard_percent": overhead_percent(middle),
            "low_quartile_percent": overhead_percent(low), "high_quartile_percent": overhead_percent(high),
        }  # fmt: skip


def overhead_percent(ratio: float) -> float:
    """Return how much longer the guarded run takes, in percent.

    >>> overhead_percent(1.25)
    25.0
    """
    return 100 * (ratio - 1)


def _pair(file: Path, *, proved: bool) -> tuple[Simulation, Simulation]:
    """Build the same network twice: with the guard of the file's relation, and without it."""
    config = parse_config(_MESH.format(file.resolve(), "" if proved else ", check: false"))
    plan = routing_plan(config, network_topology(config))
    return Simulation(config, LOAD, 1, plan=plan), Simulation(config, LOAD, 1, plan=_bare(plan, file), check=False)


def _bare(plan: RoutingPlan, file: Path) -> RoutingPlan:
    """Return the plan of a file as the file gave it, its relation compiled without checks."""
    written = plan.unguarded
    assert written is not None, "that of a file is guarded"
    if written.feedback is not None:
        raise UserError(f"{file}: hopforge bench routing takes a relation that does not learn")
    return replace(written, route=kernel(ROUTE_SIGNATURE)(written.route.py_func))


def _timed(run: Simulation) -> float:
    start = time.process_time()
    run.advance(CYCLES)
    return time.process_time() - start
