"""The contract of a routing algorithm: one small jitted relation and what has to be proved of it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hopforge.model.errors import UserError
from hopforge.model.kernel.compile import kernel
from hopforge.model.kernel.memory import int64s, words
from hopforge.model.kernel.rng import next_below
from hopforge.model.network.core.records import ROUTE_SIGNATURE, Net
from hopforge.model.network.parts.feedback import Feedback
from hopforge.model.topology import Topology


class RoutingError(UserError, ValueError):
    """A routing algorithm that does not fit the network: names the key, the limit and the value."""


@dataclass(frozen=True)
class RoutingPlan:
    """A routing algorithm made ready for one network.

    Attributes
    ----------
    route : jitted function
        ``route(router, in_port, in_vc, packet, net, table, memory, out) -> count``: writes packed candidates
        (`model.network.core.candidates.candidate`) to ``out[0]`` … and returns their number; 0 means unroutable. It is
        evaluated once per packet and router, may change ``packet.phase``, ``packet.via``, ``packet.user0``,
        ``packet.user1``, and may read the state of its own router through ``net``.
    table : ndarray, int32
        Read-only data.
    memory : ndarray, float64
        Data that it may change (learning).
    max_candidates : int
        Largest count.
    phases : int
        ``packet.phase`` takes values 0 … phases − 1.
    uses_via : bool
        ``packet.via`` is a router drawn at the source, by the relation.
    random : bool
        Draws random numbers, with `draw_below`: the proof goes through all of them.
    inject_mask : int or ndarray
        VCs that hosts may use.
    obligation : str
        What is expected of the proof (`model.routing.deadlock`): ``acyclic`` (all channel dependencies), ``escape``
        (every packet can always leave the channels that wait for each other), or nothing, because the plan was made
        from something that has been ``checked``: then a packet that host h sends again after a failure has h + 1 in
        ``packet.user0``. A user's plan is proved whatever it says.
    every : jitted function, optional
        For algorithms of ours that learn or draw random numbers: a relation that gives, in any state, every candidate
        that `route` may ever give there, from ``in_port``, ``in_vc`` and ``packet.dst`` alone. The proof takes it in
        place of `route`, and tests compare the two. A user's is not believed.
    feedback : Feedback, optional
        What routers tell their neighbours upstream (`model.network.parts.feedback`).
    estimates : (int, tuple), optional
        Where in `memory` learned times begin, and their shape [router, row, port].
    """

    route: Any
    table: NDArray[np.int32]
    max_candidates: int = 1
    phases: int = 1
    uses_via: bool = False
    random: bool = False
    inject_mask: Any = None
    obligation: str = "acyclic"
    every: Any = None
    feedback: Feedback | None = None
    memory: NDArray[np.float64] = field(default_factory=lambda: np.zeros(1))
    estimates: tuple[int, tuple[int, ...]] | None = None


#: name → ``prepare(topology, vcs, options) -> RoutingPlan``
ROUTING: dict[str, Callable[[Topology, int, dict[str, Any]], RoutingPlan]] = {}


def register(name: str) -> Callable[[Callable[..., RoutingPlan]], Callable[..., RoutingPlan]]:
    """Enter the decorated ``prepare`` function in `ROUTING` as `name`."""

    def enter(prepare: Callable[..., RoutingPlan]) -> Callable[..., RoutingPlan]:
        ROUTING[name] = prepare
        return prepare

    return enter


def relation(function: Callable[..., int]) -> Any:
    """Jit a routing relation with the signature that the kernel calls (kept in numba's disk cache)."""
    return kernel(ROUTE_SIGNATURE)(function)


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


def need_kind(topology: Topology, name: str, *kinds: str) -> None:
    """Refuse a network of another kind."""
    if topology.kind not in kinds:
        raise RoutingError(
            f"routing.algorithm {name} needs a topology of kind {' or '.join(kinds)}, not {topology.kind}"
        )


def need_vcs(name: str, vcs: int, least: int) -> None:
    """Refuse too few virtual channels."""
    if vcs < least:
        raise RoutingError(f"router.vcs must be at least {least} for routing.algorithm {name}, not {vcs}")


def vc_range(first: int, last: int) -> int:
    """Mask of the VCs `first` … `last`."""
    return ((1 << (last + 1)) - 1) & ~((1 << first) - 1)


def all_vcs(vcs: int) -> int:
    """Mask of all VCs."""
    return (1 << vcs) - 1
