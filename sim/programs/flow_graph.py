"""A schedule on the flow engine: cpus by the rules of LogGOPS, messages that share links (docs/definitions/goal.md).

Two event loops go through time together, that of the ranks (`loggops_kernel`) and that of the messages
(`flow_kernel`). A send hands its message over when its cpu is done with it; the last byte that leaves the network is
the arrival that meets the receive.
"""

from typing import Any

import numpy as np

from hopforge.model.kernel.compile import WITHOUT_COUNTS, inner, kernel
from hopforge.sim.programs import flow_kernel as flow
from hopforge.sim.programs import flow_state as state
from hopforge.sim.programs import loggops_kernel as ranks
from hopforge.sim.programs.flow_events import take_first
from hopforge.sim.programs.flow_sharing import share

_RANK_EVENTS = ranks.EVENTS
_FLOW_EVENTS, _FREE, _NEWS, _DIRTY, _FRESH = state.EVENTS, state.FREE, state.NEWS, state.DIRTY, state.FRESH
_INTAKE, _ARRIVE, _MESSAGE_CLASS, _ONE = ranks.INTAKE, ranks.ARRIVE, ranks.MESSAGE_CLASS, ranks.ONE
_SAME_TIME = state.SAME_TIME
#: why `advance_graph` returned
SLICE, FINISHED, DISAGREE, FULL, CHANGE = range(5)

_push, _drop_first, _happen = ranks.push, ranks.drop_first, ranks.happen
_start, _note_arrival, _run_event = flow.start_message, flow.note_arrival, flow.run_event
_jit: Any = kernel(error_model="numpy", **WITHOUT_COUNTS)


@inner
def _in_steps(seconds, unit, step):  # type: ignore[no-untyped-def]
    """Return a time in units, as the ranks see it."""
    return np.rint(seconds / unit / step) * step


@_jit
def advance_graph(g, s, hops, message_of, operation_of, most, unit, step):  # type: ignore[no-untyped-def]
    """Let up to `most` points in time pass.

    Parameters
    ----------
    g : LoggopsState
        Ranks; times in the unit of the schedule, whose sums are exact, without latency and time per byte of a network.
    s : FlowState
        Messages: those of the sends in their order; it has no operations. Times in seconds.
    hops : int
        Most links of a route.
    message_of : ndarray, int32[operation]
        Message of a send.
    operation_of : ndarray, int32[message]
        Its send.
    most : int
        How many.
    unit : float
        Seconds of a unit of the schedule.
    step : float
        Units of which arrivals are whole multiples: two that are equal but for rounding are one instant to the ranks.

    Returns
    -------
    int
        SLICE, FINISHED (nothing can happen any more), DISAGREE (as `loggops_kernel`), FULL and CHANGE (as
        `flow_kernel`).
    """
    for _ in range(most):
        of_ranks = g.event[0].time * unit if g.numbers[_RANK_EVENTS] > 0 else np.inf
        of_flows = s.heap[0].key if s.numbers[_FLOW_EVENTS] > 0 else np.inf
        if of_ranks == np.inf and of_flows == np.inf:
            return FINISHED
        if s.numbers[_FREE] == 0:
            return FULL
        if min(of_ranks, of_flows) > s.clock[2]:
            s.clock[0] = max(s.clock[0], s.clock[2])
            return CHANGE
        # what arrives in an instant is there before the ranks do anything in it
        if of_ranks + _SAME_TIME < of_flows:
            now, n, what = g.event[0].time, g.event[0].who, g.event[0].what
            _drop_first(g)
            g.clock[0] = now
            if what != _INTAKE:
                _happen(g, now, n, what)
                if g.numbers[_ONE] >= 0:
                    return DISAGREE
                continue
            m = message_of[n]
            if _in_steps(s.clock[0], unit, step) < now:  # else this is the present of the network
                s.clock[0] = max(s.clock[0], of_ranks)
            s.message[m].began = s.clock[0]
            if s.message[m].route < 0:
                _note_arrival(s, m)
                _push(g, now, now, _MESSAGE_CLASS, n, _ARRIVE)
            else:
                _start(s, m, hops)
                # one that was alone may begin to share
                if s.numbers[_DIRTY] + s.numbers[_FRESH] > 0:
                    share(s, hops)
            continue
        now = of_flows
        s.clock[0] = now
        there = max(_in_steps(now, unit, step), g.clock[0])
        while s.numbers[_FLOW_EVENTS] > 0 and s.heap[0].key <= now + _SAME_TIME and s.numbers[_FREE] > 0:
            _run_event(s, take_first(s), hops)
            for i in range(s.numbers[_NEWS]):
                _push(g, there, there, _MESSAGE_CLASS, operation_of[s.news[i]], _ARRIVE)
            s.numbers[_NEWS] = 0
        if s.numbers[_DIRTY] + s.numbers[_FRESH] > 0:
            share(s, hops)
    return SLICE
