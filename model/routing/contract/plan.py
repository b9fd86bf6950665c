"""The contract of a routing algorithm: one small jitted relation and what has to be proved of it."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.errors import UserError
from hopforge.model.kernel.compile import kernel
from hopforge.model.network.core.net_record import ROUTE_SIGNATURE
from hopforge.model.network.core.user_code import is_ours, jit_when_used
from hopforge.model.network.parts.agent_state import AgentParameters
from hopforge.model.network.parts.feedback import Feedback
from hopforge.model.topology import Topology


class RoutingError(UserError, ValueError):
    """A routing algorithm that does not fit the network: names the key, the limit and the value."""


class IrregularError(Exception):
    """Why there is no short proof, in words: this says nothing about whether a routing can deadlock."""


class TooFewVcsError(RoutingError):
    """Too few virtual channels.

    Parameters
    ----------
    least : int
        How many would do.
    words : str
        For what.
    vcs : int
        How many there are.
    why : str
        What they are needed for.
    """

    def __init__(self, least: int, words: str, vcs: int, why: str) -> None:
        super().__init__(f"router.vcs must be at least {least} {words}, not {vcs}: {why}")
        self.least, self.words, self.why = least, words, why


@dataclass(frozen=True)
class Regular:
    """What an algorithm of ours promises to the short proof of a regular network (docs/definitions/short-proof.md).

    The promise is about the relations and the table named here. A plan whose relation or table another part has
    replaced holds other ones, and gets the full proof.

    Attributes
    ----------
    route, every : jitted function
        Of the plan.
    table : ndarray, int32
        Of the plan.
    smaller : callable, optional
        Of a grid: the same algorithm, with the same options, for a grid of fewer dimensions.
    order : callable, optional
        Instead of a regular network: numbers the channels so that they rise with every link of every way, or says why
        it cannot (`model.routing.ways.rising_channels`).
    """

    route: Any
    every: Any
    table: NDArray[np.int32]
    smaller: "Callable[[Topology], RoutingPlan] | None" = None
    order: "Callable[[Topology, RoutingPlan, int], tuple[NDArray[np.int64], int, str]] | None" = None


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
    every_candidates : int
        Largest count of `every`, if it is more.
    one_per_router : bool
        Answers for hosts of one router differ only in the last link: the proof takes one host of each.
    words : str
        How its virtual channels keep it free of deadlock, for people.
    advice : str
        Another scheme of virtual channels that fits and mostly carries more, for people.
    by_source : bool
        The source decides among links (``links: hash``, ``spread: flow`` or ``entropy``), which tables and lookups do
        not know.
    inject_mask : int or ndarray
        VCs that hosts may use (with replies: for requests).
    inject_by_destination : ndarray, optional
        int[hosts]: of the VCs above those that hosts may use for packets to each destination; None: all.
    reply_mask : int or ndarray
        VCs that they may use for replies (docs/definitions/replies.md); None: they send none.
    escape_mask : int, optional
        VCs of the escape, which acknowledges use, too; None: all VCs.
    ack_mask : int, optional
        VCs for acknowledges (docs/definitions/acknowledges.md); by default all.
    obligation : str
        What is expected of the proof (`model.routing.proof.deadlock`): ``acyclic`` (all channel dependencies),
        ``escape`` (every packet can always leave the channels that wait for each other), or nothing, because the plan
        was made from something that has been ``checked``: then a packet that host h sends again after a failure has
        h + 1 in ``packet.user0``. A user's plan is proved whatever it says.
    every : jitted function, optional
        For algorithms of ours that learn or draw random numbers: a relation that gives, in any state, every candidate
        that `route` may ever give there, from ``in_port``, ``in_vc`` and ``packet.dst`` alone. The proof takes it in
        place of `route`, and tests compare the two. A user's is not believed.
    feedback : Feedback, optional
        What routers tell their neighbours upstream (`model.network.parts.feedback`).
    agents : AgentParameters, optional
        Agents that decide in place of `route`, which makes candidates of what they put into ``packet.user0``.
    estimates : (int, tuple), optional
        Where in `memory` learned times begin, and their shape [router, row, port].
    asked : bool[router, row], optional
        Rows of them that a packet can ask for; by default all.
    of_paths : tuple of RoutingPlan
        The source chooses one of several paths: a plan of the packets of each, which tables of routers are made of
        (`model.router.factor`). What replaces `route` or `table` drops them.
    among : RoutingPlan, optional
        With ``spread: flow`` and ``entropy``: all ports of which a router takes one by the hash of a head. Tables of
        routers are made of it, and the routers choose. What replaces `route` or `table` drops it.
    regular : Regular, optional
        What the short proof of a large regular network may rely on (`model.routing.regular`); of algorithms of ours.
    unguarded : RoutingPlan, optional
        A user's plan as its file gave it, where `route`, `feedback` and `table` are those of
        `model.routing.contract.guard`.
    sees_others : bool
        `route` reads the state of other routers, too, which no router could: a run stays on one thread.
    compares_vcs : bool
        `route` names one of all virtual channels by their queues: no class of packets can have some of its own.
    rows : tuple of (int, int)
        Of `table`: where what router 0 reads begins, and how many entries each router has. Kernels load these ahead of
        time; nothing else depends on it. What replaces `table` drops it. Only algorithms of ours have it.
    """

    route: Any
    table: NDArray[np.int32]
    max_candidates: int = 1
    phases: int = 1
    uses_via: bool = False
    random: bool = False
    every_candidates: int = 0
    one_per_router: bool = False
    words: str = ""
    advice: str = ""
    by_source: bool = False
    inject_mask: Any = None
    inject_by_destination: Any = None
    reply_mask: Any = None
    escape_mask: int | None = None
    ack_mask: int | None = None
    obligation: str = "acyclic"
    every: Any = None
    feedback: Feedback | None = None
    agents: AgentParameters | None = None
    memory: NDArray[np.float64] = field(default_factory=lambda: np.zeros(1))
    estimates: tuple[int, tuple[int, ...]] | None = None
    asked: NDArray[np.bool_] | None = None
    of_paths: "tuple[RoutingPlan, ...]" = ()
    among: "RoutingPlan | None" = None
    regular: Regular | None = None
    unguarded: "RoutingPlan | None" = None
    sees_others: bool = False
    compares_vcs: bool = False
    rows: tuple[tuple[int, int], ...] = ()


#: name → ``prepare(topology, vcs, options) -> RoutingPlan``
ROUTING: dict[str, Callable[[Topology, int, dict[str, Any]], RoutingPlan]] = {}


def register(name: str) -> Callable[[Callable[..., RoutingPlan]], Callable[..., RoutingPlan]]:
    """Enter the decorated ``prepare`` function in `ROUTING` as `name`."""

    def enter(prepare: Callable[..., RoutingPlan]) -> Callable[..., RoutingPlan]:
        ROUTING[name] = prepare
        return prepare

    return enter


def relation(function: Callable[..., int]) -> Any:
    """Jit a routing relation with the signature that the kernel calls (its machine code is kept on disk).

    That of a user's file is compiled by `model.routing.contract.guard`, with checks.
    """
    return _of_ours(function) if is_ours(function) else jit_when_used(function)


@cache
def _of_ours(function: Callable[..., int]) -> Any:
    return kernel(ROUTE_SIGNATURE)(function)


def regular(plan: RoutingPlan, smaller: Callable[[Topology], RoutingPlan] | None = None) -> RoutingPlan:
    """Return a plan that makes the promise of `Regular`."""
    return replace(plan, regular=Regular(plan.route, plan.every, plan.table, smaller))


def need_kind(topology: Topology, name: str, *kinds: str) -> None:
    """Refuse a network of another kind."""
    if topology.kind not in kinds:
        raise RoutingError(
            f"routing.algorithm {name} needs a topology of kind {' or '.join(kinds)}, not {topology.kind}; "
            "minimal, up_down and tables go on any but a butterfly"
        )


def need_vcs(name: str, vcs: int, least: int, why: str) -> None:
    """Refuse too few virtual channels: how many would do, and for what each is needed."""
    if vcs < least:
        raise TooFewVcsError(least, f"for routing.algorithm {name}", vcs, why)


def vc_range(first: int, last: int) -> int:
    """Mask of the VCs `first` … `last`."""
    return ((1 << (last + 1)) - 1) & ~((1 << first) - 1)


def all_vcs(vcs: int) -> int:
    """Mask of all VCs."""
    return (1 << vcs) - 1
