"""Random numbers of routing relations, and all that could be drawn in turn, which the proof takes in their place."""

from typing import Any

from numba import njit

from hopforge.model.kernel.memory import int64s, words
from hopforge.model.kernel.rng import next_below
from hopforge.model.network.core.net_record import Net


@njit
def draw_below(net: Net, router: int, bound: int) -> int:
    """Random integer in [0, bound) from the stream of `router`, for use inside relations."""
    if net.choices != 0:
        return chosen_below(int64s(net.choices), bound)
    return next_below(words(net.router_rng), router, bound)


@njit
def chosen_below(choices: Any, bound: int) -> int:
    """Take the next number of a list in place of a random one, so that all that can be drawn are tried in turn.

    `choices` holds the most draws of an evaluation, how many were made, how many of the list are set, and then the
    number and the bound of each.
    """
    place = choices[1]
    choices[1] = place + 1
    if place >= choices[0]:
        return 0
    if place >= choices[2]:
        choices[3 + 2 * place] = 0
        choices[2] = place + 1
    choices[4 + 2 * place] = bound
    return choices[3 + 2 * place]


@njit
def next_choices(choices: Any) -> bool:
    """Set the list to the numbers that come after those of the last evaluation; False: that was the last one."""
    made = min(choices[1], choices[0])
    while made > 0:
        made -= 1
        if choices[3 + 2 * made] + 1 < choices[4 + 2 * made]:
            choices[3 + 2 * made] += 1
            choices[1], choices[2] = 0, made + 1
            return True
    choices[1], choices[2] = 0, 0
    return False
