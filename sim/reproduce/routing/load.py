"""The highest load that a network carries, and the permutation of hosts under which that is least, by search."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from hopforge.model.topology import Topology
from hopforge.sim.bounds.permutation import WorstPermutation
from hopforge.sim.run.knee import HIGHEST_LOAD, Knee, knee_of, next_load

__all__ = ["Found", "carried_load", "permutations", "worst_found"]

Goals = NDArray[np.int64]
#: how well a load is known: its knee lies within this share
WITHIN = 0.03
_FIRST_LOAD = 0.5
#: no load has been tried
UNKNOWN = Knee(None, None)
#: share of the routers whose destinations change places in a step of the search
_SWAPPED = 0.1


def carried_load(carried: Callable[[float], float], known: Knee = UNKNOWN, guess: float = HIGHEST_LOAD) -> Knee:
    """Find the load at which a network saturates: the two loads that a bisection from 0.5 on ends with.

    They are found with fewer runs: the ends of the interval in which the guess lies come first, then those of intervals
    further and further from it. They are the same where a network that carries a load carries every lower one.

    Parameters
    ----------
    carried : callable
        Offered load → that load if the network carries it, else about what it carries; flits per host and cycle.
    known : Knee
        What is known already, and where the bisection begins.
    guess : float
        About what the network carries.

    Examples
    --------
    >>> carried_load(lambda load: min(load, 0.3)).carried
    0.29688
    """
    low, high = known
    step, rising, estimated = WITHIN, False, guess < HIGHEST_LOAD
    while True:
        end = _bisected(known, low, high, guess)
        ends = [
            end.carried if end.carried is not None and (low is None or low < end.carried) else None,
            end.saturated if end.saturated is not None and (high is None or end.saturated < high) else None,
        ]
        load = next((load for load in (reversed(ends) if rising else ends) if load is not None), None)
        if load is None:
            return end
        seen = carried(load)
        if seen < load:
            high = load
            if load == end.carried:  # the guess was too high
                rising = False
                if estimated:
                    guess, step = load * (1 - step), 2 * step
                else:
                    guess, estimated = seen, True
        else:
            low = load
            if load == end.saturated:
                rising, guess, step = True, load * (1 + step), 2 * step
        if low is not None and high is not None and not low <= guess < high:
            guess = (low + high) / 2


def _bisected(start: Knee, low: float | None, high: float | None, guess: float) -> Knee:
    """Bisect from `start` on, without a run, where the network carries `low`, not `high`, and between them `guess`."""
    loads = [load for load in start if load is not None]
    full = [load == start.saturated for load in loads]
    load: float | None = _FIRST_LOAD if not loads else next_load(start, WITHIN)
    while load is not None:
        loads.append(load)
        beyond = high is not None and load >= high
        full.append(beyond or (load > guess and (low is None or load > low)))
        load = next_load(knee_of(loads, full), WITHIN)
    return knee_of(loads, full)


class Found(NamedTuple):
    """The permutation that a method carries least of.

    Attributes
    ----------
    knee : Knee
        Its load.
    name : str
        How it was made.
    goals : ndarray, int64[host]
        Destination of every host.
    tried : int
        Permutations that were looked at.
    """

    knee: Knee
    name: str
    goals: Goals
    tried: int


def worst_found(
    candidates: Iterator[tuple[str, Goals]],
    change: Callable[[Goals], Goals],
    carried: Callable[[Goals, float], float],
    budget: int,
) -> Found:
    """Search the permutation under which a network saturates at the lowest load.

    First all `candidates`, then changes of the worst one so far. A permutation is simulated once, a little below the
    lowest load so far, and again only if the network saturates there.

    Parameters
    ----------
    candidates : iterator
        Name and destinations; at least one.
    change : callable
        Destinations → others like them.
    carried : callable
        Destinations and load → what the network carries, as for `carried_load`.
    budget : int
        Permutations to look at.
    """
    best: Found | None = None
    for number in range(budget):
        name, goals = next(candidates, ("", None))
        if goals is None:
            assert best is not None, "there is a candidate"
            name, goals = f"{best.name.removesuffix(', changed')}, changed", change(best.goals)
        of_load = partial(carried, goals)
        if best is None:
            best = Found(carried_load(of_load), name, goals, 1)
            continue
        best = best._replace(tried=number + 1)
        below = (best.knee.carried or 0.0) * (1 - WITHIN)
        if below > 0:
            seen = of_load(below)
            if seen < below:
                best = Found(carried_load(of_load, Knee(None, below), seen), name, goals, number + 1)
    assert best is not None, "budget is at least 1"
    return best


def permutations(
    topology: Topology,
    distance: NDArray[np.float64],
    exact: WorstPermutation | None,
    known: Mapping[str, Goals],
    generator: np.random.Generator,
) -> Iterator[tuple[str, Goals]]:
    """Yield permutations that are likely bad.

    The one that loads a channel most under shortest ways, and `known` ones; then those in which every host of a router
    sends to the same other router: shifts of the routers, pairs as far from each other as can be, and random ones.

    Parameters
    ----------
    topology : Topology
        Every router with hosts has as many.
    distance : ndarray, float64[router, router]
        Links between two routers.
    exact : WorstPermutation, optional
        From `worst_permutation`.
    known : mapping
        Name → destination of every host.
    generator : Generator
        Of what is drawn.
    """
    if exact is not None:
        yield "fullest channel of shortest ways", exact.goals
    yield from known.items()
    routers = np.unique(topology.host_router)
    count = len(routers)
    shifts = dict.fromkeys(
        [count // 2, 1, *(int(topology.params[key]) for key in ("a", "leaves") if key in topology.params)]
    )
    for shift in shifts:
        if 0 < shift < count:
            yield f"shift by {shift} routers", _of_routers(topology, np.roll(np.arange(count), -shift))
    between = distance[np.ix_(routers, routers)]
    for _ in range(2):
        order = linear_sum_assignment(between + 0.5 * generator.random(between.shape), maximize=True)[1]
        yield "far pairs", _of_routers(topology, order)
    for _ in range(2):
        yield "random routers", _of_routers(topology, generator.permutation(count))


def _of_routers(topology: Topology, order: NDArray[np.int64]) -> Goals:
    """Let every host send to the one of its place at the router that `order` names; only routers with hosts count."""
    hosts = np.argsort(topology.host_router, kind="stable").reshape(len(order), -1)
    goals = np.empty(topology.hosts, np.int64)
    goals[hosts.ravel()] = hosts[order].ravel()
    return goals


def swapped(topology: Topology, goals: Goals, generator: np.random.Generator) -> Goals:
    """Let some routers exchange the destinations of their hosts."""
    hosts = np.argsort(topology.host_router, kind="stable").reshape(len(np.unique(topology.host_router)), -1)
    count = max(2, round(_SWAPPED * len(hosts)))
    chosen = generator.choice(len(hosts), count, replace=False)
    changed = goals.copy()
    changed[hosts[chosen]] = goals[hosts[np.roll(chosen, 1)]]
    return changed
