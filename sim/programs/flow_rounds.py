"""Collectives of regular rounds on routes of their own: no events, one look at each message.

Where no route has a link of another one, and no message catches up with the one before it, nothing is shared: a message
takes the latency of its route, and its bytes at the rate of that. The times of a rank in a round follow from those of
its two partners in the round before, so that ranks need not be run in the order of time. The event loop
(`flow_kernel`) does the same with such messages.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config import Config
from hopforge.model.kernel.compile import WITHOUT_COUNTS, kernel
from hopforge.model.workload.program import Program, RegularProgram
from hopforge.sim.programs.flow_ways import FlowWays

__all__ = ["RoundTimes", "compile_rounds", "round_times"]

_jit: Any = kernel(error_model="numpy", **WITHOUT_COUNTS)


class RoundTimes(NamedTuple):
    """When ranks have run.

    Attributes
    ----------
    finish, waited : ndarray, float64[rank]
        Seconds: end of the rank, and how long it waited for messages.
    latency_s : float
        Mean time from the call that sends a message to its arrival; 0 without messages through the network.
    """

    finish: NDArray[np.float64]
    waited: NDArray[np.float64]
    latency_s: float


@_jit
def _run(destination, size, number, latency, rate, buffered, eager, envelope, until, now, waited, there, came, total):  # type: ignore[no-untyped-def]
    """Run all rounds; return whether no message caught up with the one before it.

    `until`: end of the last message of each route. Of each rank: `now`, when its round begins; `there`, when its
    message arrives; `came`, who sends to it. `total`: seconds and number of messages through the network.
    """
    ranks = len(now)
    for base in range(0, len(destination), ranks):
        seconds = 0.0  # of a round: a sum of all would be rounded more
        for rank in range(ranks):
            m, began = base + rank, now[rank]
            came[destination[m]] = rank
            route = number[m]
            if route < 0:  # both ranks are on one host
                there[rank] = began
                continue
            starts = began if size[m] < buffered else max(began, now[destination[m]])
            if starts + latency[route] < until[route]:
                return False
            there[rank] = starts + latency[route] + (size[m] + envelope) / rate[route]
            until[route] = there[rank]
            seconds += there[rank] - began
            total[1] += 1
        total[0] += seconds
        for rank in range(ranks):
            arrives = there[came[rank]]
            if arrives > now[rank]:
                waited[rank] += arrives - now[rank]
                now[rank] = arrives
            leaves = there[rank]
            if size[base + rank] >= eager and leaves > now[rank]:
                waited[rank] += leaves - now[rank]
                now[rank] = leaves
    return True


def compile_rounds() -> None:
    """Compile, or read from disk, what `round_times` runs."""
    none, one = np.empty(0, np.int32), np.zeros(1)
    _run(none, np.empty(0, np.int64), none, one, one, 0, 0, 0.0, *(one,) * 4, np.zeros(1, np.int32), np.zeros(2))


def round_times(config: Config, program: Program, ways: FlowWays) -> RoundTimes | None:
    """Run a program if it is such a collective.

    Parameters
    ----------
    config : Config
        Section `app`; no link changes its rate meanwhile.
    program : Program
        What to run.
    ways : FlowWays
        Its routes.

    Returns
    -------
    RoundTimes or None
        None: it is another program, or messages share links or meet: the event loop is needed.
    """
    app, routes = config.app, ways.routes
    if not (isinstance(program, RegularProgram) and program.in_rounds and app.injection != "queued"):
        return None
    if not routes["private"].all():
        return None
    times = np.zeros((3, program.ranks))
    total = np.zeros(2)
    alone = _run(
        program.destination, program.size_bytes, ways.pairs.number, routes["latency"].copy(), routes["rate"].copy(),
        app.buffered_bytes, app.eager_bytes, float(app.envelope_bytes), np.zeros(len(routes)), *times,
        np.empty(program.ranks, np.int32), total,
    )  # fmt: skip
    if not alone:
        return None
    return RoundTimes(times[0], times[1], float(total[0] / total[1]) if total[1] else 0.0)
