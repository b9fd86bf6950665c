"""A schedule on the flow engine: cpus by the rules of LogGOPS, messages that share links (docs/definitions/goal.md).

Two event loops go through time together, that of the ranks (`loggops_kernel`) and that of the messages
(`flow_kernel`). A send hands its message over when its cpu is done with it; the last byte that leaves the network is
the arrival that meets the receive.
"""

from typing import Any

import numpy as np

from hopforge.model.kernel.compile import kernel
from hopforge.sim.programs import flow_kernel as flow
from hopforge.sim.programs import loggops_kernel as ranks

_FLOW_EVENTS, _RANK_EVENTS = flow.EVENTS, ranks.EVENTS
_ARRIVED, _LATENCY, _FREE, _CHANGED, _DONE = flow.ARRIVED, flow.LATENCY, flow.FREE, flow.CHANGED, flow.DONE
_INTAKE, _ARRIVE, _MESSAGE_CLASS, _ONE = ranks.INTAKE, ranks.ARRIVE, ranks.MESSAGE_CLASS, ranks.ONE
_SAME_TIME = flow.SAME_TIME
#: why `advance_graph` returned
SLICE, FINISHED, DISAGREE, FULL = range(4)

_push, _drop_first, _happen = ranks.push, ranks.drop_first, ranks.happen
_take_first, _arrive, _move, _start = flow.take_first, flow.arrive, flow.move, flow.start_message
_let_host_go, _next_of_host, _share = flow.let_host_go, flow.next_of_host, flow.share
_jit: Any = kernel(error_model="numpy")


@_jit
def advance_graph(g, s, hops, message_of, operation_of, most):  # type: ignore[no-untyped-def]
    """Let up to `most` points in time pass.

    Parameters
    ----------
    g : LoggopsState
        Ranks; times in seconds, without latency and time per byte of a network.
    s : FlowState
        Messages: those of the sends in their order; it has no operations.
    hops : int
        Most links of a route.
    message_of : ndarray, int32[operation]
        Message of a send.
    operation_of : ndarray, int32[message]
        Its send.
    most : int
        How many.

    Returns
    -------
    int
        SLICE, FINISHED (nothing can happen any more), DISAGREE (as `loggops_kernel`), FULL (as `flow_kernel`).
    """
    messages = len(s.message)
    for _ in range(most):
        of_ranks = g.event[0].time if g.numbers[_RANK_EVENTS] > 0 else np.inf
        of_flows = s.item[s.heap[0]].key if s.numbers[_FLOW_EVENTS] > 0 else np.inf
        if of_ranks == np.inf and of_flows == np.inf:
            return FINISHED
        if of_ranks <= of_flows:
            now, n, what = g.event[0].time, g.event[0].who, g.event[0].what
            _drop_first(g)
            g.clock[0] = now
            if what != _INTAKE:
                _happen(g, now, n, what)
                if g.numbers[_ONE] >= 0:
                    return DISAGREE
                continue
            m = message_of[n]
            s.clock[0] = max(s.clock[0], now)
            s.message[m].began = now
            if s.message[m].route < 0:
                _arrive(s, m, hops)
                _push(g, now, now, _MESSAGE_CLASS, n, _ARRIVE)
            else:
                _start(s, m)
            continue
        now = of_flows
        s.clock[0] = now
        while s.numbers[_FLOW_EVENTS] > 0 and s.item[s.heap[0]].key <= now + _SAME_TIME:
            if s.numbers[_FREE] == 0 and s.heap[0] < messages and s.message[s.heap[0]].phase == _LATENCY:
                return FULL
            item = _take_first(s)
            if item >= messages:
                _next_of_host(s, item - messages - len(s.rank))
                continue
            if s.message[item].phase == _LATENCY:
                _move(s, item, hops)
            elif s.message[item].held > 0:
                _let_host_go(s, item, s.size[item])
            else:
                _arrive(s, item, hops)
            if s.message[item].phase == _ARRIVED:
                _push(g, now, now, _MESSAGE_CLASS, operation_of[item], _ARRIVE)
            if s.numbers[_CHANGED] + 2 * hops > len(s.changed):
                _share(s, hops)
        if s.numbers[_CHANGED] > 0:
            _share(s, hops)
    return SLICE
