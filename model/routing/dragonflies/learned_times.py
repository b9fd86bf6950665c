"""Estimates of time that routers learn: their parameters in ``memory``, and how a note moves one.

With ``routing.estimate_bits`` the estimates are those of a table in hardware (`model.router.q_table`): multiples of a
step, with rates and thresholds rounded to 1/1024.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config.router import RouterConfig
from hopforge.model.kernel.compile import both
from hopforge.model.kernel.memory import words
from hopforge.model.kernel.rng import next_float
from hopforge.model.network.core.net_record import Net
from hopforge.model.numbers.q_rule import RATE_BITS, in_steps, learned, rate_words, step_and_largest
from hopforge.model.routing.contract.plan import RoutingError
from hopforge.model.topology import Topology
from hopforge.model.topology.link_times import dragonfly_times

#: places in ``memory``: learning rates, share of random decisions, thresholds, ns (or cycles) of a cycle; step of the
#: estimates (0: none) and the largest one, whether they are rounded at random; estimates
ALPHA, BETA, EPSILON, THRESHOLD_1, THRESHOLD_2, CYCLE, STEP, LARGEST, RANDOM, ESTIMATES = range(10)


@both()
def learn(net: Net, memory: Any, router: int, place: int, target: float, slower: float) -> None:
    """Move an estimate towards `target`, by `slower` of the difference where that is longer (without a link: not)."""
    if memory[place] == np.inf:  # the link has failed with the note under way
        return
    step, largest = memory[STEP], memory[LARGEST]
    if step == 0.0:
        memory[place] = learned(memory[place], target, memory[ALPHA], slower)
        return
    shift = 0.5
    if memory[RANDOM] != 0.0:
        shift = np.floor(next_float(words(net.router_rng), router) * (1 << RATE_BITS)) / (1 << RATE_BITS)
    new = learned(memory[place], in_steps(target, step, largest, 0.5), memory[ALPHA], slower)
    memory[place] = in_steps(new, step, largest, shift)


def time_parameters(topology: Topology, options: dict[str, Any]) -> tuple[NDArray[np.float64], float, float]:
    """Head of ``memory``, and the times of a local and of a global link as estimates begin with."""
    local, far, cycle = dragonfly_times(topology, options.get("router") or RouterConfig())
    keys = {"alpha": 0.2, "beta": 0.04, "epsilon": 0.001, "q_thld1": 0.2, "q_thld2": 0.35}
    head = np.array([*(float(options.get(key, value)) for key, value in keys.items()), cycle, 0.0, 0.0, 0.0])
    bits = options.get("estimate_bits")
    if bits is not None:
        step, largest = step_and_largest(bits, options.get("estimate_fraction_bits"))
        for place in (ALPHA, BETA, THRESHOLD_1, THRESHOLD_2):
            head[place] = rate_words(head[place]) / (1 << RATE_BITS)
        head[STEP:ESTIMATES] = [step, largest, options.get("estimate_rounding") == "random"]
    return head, local, far


def on_steps(first: NDArray[np.float64], head: NDArray[np.float64]) -> None:
    """Round first estimates to the steps of a table in hardware, if there are any (in place).

    Raises
    ------
    RoutingError
        They are beyond the largest: all would be equal, and stay so.
    """
    if head[STEP] > 0.0:
        linked = np.isfinite(first)
        longest = float(first[linked].max(initial=0.0))
        if in_steps(longest, head[STEP], np.inf, 0.5) > head[LARGEST]:
            raise RoutingError(
                f"routing.estimate_bits: first estimates go up to {longest:g}, beyond the largest, {head[LARGEST]:g} "
                "(more bits, or fewer routing.estimate_fraction_bits, reach further)"
            )
        first[linked] = [in_steps(time, head[STEP], head[LARGEST], 0.5) for time in first[linked].tolist()]
