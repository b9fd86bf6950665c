"""How many threads simulate a run, and why it is one (docs/definitions/threads.md)."""

import os
from dataclasses import dataclass
from typing import Any

from hopforge.model.config import Config
from hopforge.model.errors import UserError
from hopforge.model.free_memory import free_memory, refuse_beyond_memory
from hopforge.model.network.core.state import NetState
from hopforge.model.network.core.user_code import is_ours
from hopforge.model.network.threads.alone import why_alone
from hopforge.model.network.threads.ranges import most_parts
from hopforge.model.routing import RoutingPlan
from hopforge.sim.queued.build import QueuedState

__all__ = ["ThreadChoice", "choose_threads", "parts_for"]

#: routers for each thread from which on another one pays (docs/results/speed.md)
ROUTERS_PER_THREAD = 256
#: state of a part that stays near the processor while it goes through a window
PART_BYTES = 2 << 20
#: most parts of a thread: every part has a mailbox for every other one
MOST_PARTS_PER_THREAD = 16
#: state for which parts pay on one thread, too: more than a core has of the last cache, its parts less
MOST_PARTS_OF_ONE = 32
LARGE_STATE, LARGEST_STATE = 48 << 20, MOST_PARTS_OF_ONE * (32 << 20)
#: what several threads need beside the state, in bytes of the state
MORE_MEMORY = 2


@dataclass(frozen=True)
class ThreadChoice:
    """Threads of a run.

    Attributes
    ----------
    threads : int
        How many.
    parts : int
        Of the network, at least one for each.
    words : str
        For people; empty: nothing has to be said.
    """

    threads: int = 1
    parts: int = 1
    words: str = ""


def choose_threads(
    wanted: int | None, config: Config, state: NetState, plan: RoutingPlan, pattern: Any
) -> ThreadChoice:
    """Choose the threads of a run that is ready.

    Parameters
    ----------
    wanted : int, optional
        What was asked for; None: as many as pay.
    config, state, plan, pattern
        The run.

    Raises
    ------
    UserError
        More threads than the network has parts.
    """
    if wanted == 1 and state.nbytes < LARGE_STATE:
        return ThreadChoice()
    reason = _reason(config, state, plan, pattern)
    if reason:
        return ThreadChoice(words=f"1: {reason}" if wanted is not None and wanted > 1 else "")
    most = most_parts(state)
    threads = min(_paying(state), most) if wanted is None else wanted
    if threads > most:
        raise UserError(
            f"--threads must be at most {most} for {int(state['routers'])} routers, as a part has 8 or more, "
            f"not {threads}"
        )
    if threads == 1:
        return ThreadChoice(parts=_parts_of_one(state))
    if wanted is not None:
        refuse_beyond_memory(MORE_MEMORY * state.nbytes, f"{threads} threads beside the state of the network")
    parts = parts_for(state, threads)
    return ThreadChoice(threads, parts, f"{threads}, with {parts} parts of the network")


def parts_for(state: NetState, threads: int) -> int:
    """Return the parts for a number of threads: each thread has as many, of which one stays near the processor."""
    each = -(-state.nbytes // (threads * PART_BYTES))
    most = MOST_PARTS_OF_ONE if threads == 1 else MOST_PARTS_PER_THREAD
    return int(threads * max(1, min(each, most, most_parts(state) // threads)))


def _parts_of_one(state: NetState) -> int:
    """Return the parts for one thread: one, unless the network is large and memory is not scarce."""
    memory = free_memory()
    scarce = bool(memory) and memory < MORE_MEMORY * state.nbytes
    return parts_for(state, 1) if LARGE_STATE <= state.nbytes <= LARGEST_STATE and not scarce else 1


def _reason(config: Config, state: NetState, plan: RoutingPlan, pattern: Any) -> str:
    """Say why a run stays on one thread; empty: it need not."""
    if isinstance(state, QueuedState):
        return f"router.model is {config.router.model}"
    if config.simulation.failures:
        return "links or routers fail during the run"
    if not is_ours(plan.route.py_func) or plan.unguarded is not None:
        return "the routing algorithm is a file of yours"
    if plan.sees_others:
        return "the routing algorithm looks at queues of other routers"
    if not is_ours(pattern.py_func):
        return "the traffic pattern is a file of yours"
    return why_alone(state)


def _paying(state: NetState) -> int:
    """Return the threads that pay on this machine at present."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    idle = cores - round(os.getloadavg()[0]) if hasattr(os, "getloadavg") else cores
    memory = free_memory()
    if memory and memory < MORE_MEMORY * state.nbytes:
        return 1
    return max(1, min(idle, int(state["routers"]) // ROUTERS_PER_THREAD))
