"""The step function: one cycle of every router, link and host of a network (docs/definitions/router.md).

It is compiled once for plain networks (`net_record.PLAIN`) and once for all others: the routing algorithm and the
traffic pattern come in as first-class functions with fixed signatures, so a user's own function costs its own
compilation only.
"""

from collections.abc import Callable
from typing import Any

from numba import int64, types

from hopforge.model.kernel.compile import Entry
from hopforge.model.network.core.arrivals import deliver
from hopforge.model.network.core.draining import drain
from hopforge.model.network.core.hooks import CYCLE, KEEP_TABLES, READ, REPLY, WRITE, call_hook
from hopforge.model.network.core.kinds import DONE, GROW, PROGRAM
from hopforge.model.network.core.lookup_state import step_lookups
from hopforge.model.network.core.net_record import (
    NET_RECORD,
    PATTERN_SIGNATURE,
    PLAIN_RECORD,
    ROUTE_SIGNATURE,
    Net,
    is_plain,
)
from hopforge.model.network.core.progress import stop_reason
from hopforge.model.network.core.sources import inject
from hopforge.model.network.core.switch_allocation import allocate_routers


def _signature(record: Any) -> Any:
    return int64(types.FunctionType(ROUTE_SIGNATURE), types.FunctionType(PATTERN_SIGNATURE), record, int64)


def run_cycles(route: Callable[..., int], pattern: Callable[..., int], net: Net, cycles: int) -> int:
    """Simulate up to `cycles` cycles.

    Parameters
    ----------
    route, pattern : function
        Routing algorithm (`ROUTE_SIGNATURE`) and traffic pattern (`PATTERN_SIGNATURE`).
    net : Net
        State, changed in place.
    cycles : int
        How many.

    Returns
    -------
    int
        DONE; GROW: the pool of packets is too small, enlarge it and call again; DEADLOCK: flits in flight and none
        has moved for ``deadlock_cycles``; FINISHED: all listed packets have arrived, or the program is at its end;
        STUCK: nothing is under way and ranks of the program wait; UNITS: calls of collective units are complete.
    """
    return int((PLAIN_KERNEL if is_plain(net) else KERNEL)(route, pattern, net, cycles))


def _run(route: Callable[..., int], pattern: Callable[..., int], net: Net, cycles: int) -> int:
    """Do what `run_cycles` says."""
    end = net.cycle + cycles
    while net.cycle < end:
        if net.free_packets < net.hosts:
            return GROW
        now = int64(net.cycle)
        if net.feedback != 0:
            call_hook(net.feedback, net, READ, now, now)
        begins, wake = True, now
        while True:  # a step of the routers; in all but the first only the next heads of VCs are new
            deliver(net, route, now)
            if begins:
                if net.lookup != 0:
                    step_lookups(net.lookup_step, net, now)
                if net.source_kind == PROGRAM:
                    wake = call_hook(net.messages, net, CYCLE, now, now)
                    if wake < 0:
                        return -wake
                    if wake > now:
                        break  # all ranks compute
                if net.sped_up != 0:
                    net.partial_steps += net.internal_speedup
                begins = False
            if net.sped_up != 0:
                if net.step_routes != 0:
                    call_hook(net.step_routes, net, now, now, now)
                net.partial_steps -= 1
                net.steps += 1
                net.step_follows = int64(net.partial_steps >= 1)
            allocate_routers(net, now, 0, net.routers)
            if net.step_follows == 0:
                break
        if begins:
            net.cycle = wake  # perhaps beyond the end
            continue
        drain(net, now, 0, net.routers)
        if net.feedback != 0:
            call_hook(net.feedback, net, WRITE, now, now)
        if net.replies != 0:
            call_hook(net.replies, net, REPLY, now, now)
        if net.acks != 0:
            call_hook(net.acks, net, KEEP_TABLES, now, now)
        if net.sources != 0:
            call_hook(net.sources, net, now, now, now)
        else:
            inject(net, route, pattern, now, 0, net.hosts)
        net.cycle = now + 1
        reason = stop_reason(net, now)
        if reason != DONE:
            return reason
    return DONE


#: what `run_cycles` runs, for all networks and for plain ones
KERNEL, PLAIN_KERNEL = (Entry(_run, _signature(record)) for record in (NET_RECORD, PLAIN_RECORD))
