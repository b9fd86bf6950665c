"""What one thread of a run does: window by window all cycles of its parts (docs/definitions/threads.md)."""

from collections.abc import Callable
from typing import Any

from numba import int32, int64, types

from hopforge.model.kernel.compile import Entry, inlined
from hopforge.model.kernel.memory import int32s, int64s
from hopforge.model.network.core.draining import drain
from hopforge.model.network.core.net_record import PATTERN_SIGNATURE, ROUTE_SIGNATURE, Net, is_plain
from hopforge.model.network.core.sources import inject
from hopforge.model.network.core.switch_allocation import allocate_routers
from hopforge.model.network.threads.barrier import GO_ON, STOP, STOP_GROW, clock_ns, wait_for_all
from hopforge.model.network.threads.mail import deliver_to_part, post
from hopforge.model.network.threads.records import CREW_RECORD, PLAIN_CREW_RECORD, Crew, Part, net_of, part_at


@inlined
def mark_lanes(crew: Crew, part: Part, net: Net, now: int, hosts: int) -> None:
    """Note how far the lanes from routers, or from hosts, have filled the slots that they lead to."""
    for lane in range(crew.lanes):
        if int64s(crew.lane_host)[lane] == hosts:
            slot = (now + int64s(crew.lane_time)[lane]) & net.wheel_mask
            int32s(part.marks)[slot * crew.lanes + lane] = int32(int32s(net.flit_events)[slot])


def _signature(record: Any) -> Any:
    return int64(types.FunctionType(ROUTE_SIGNATURE), types.FunctionType(PATTERN_SIGNATURE), record, int64)


def run_parts(route: Callable[..., int], pattern: Callable[..., int], crew: Crew, thread: int) -> int:
    """Simulate the parts of thread number `thread` from cycle ``crew.begin`` up to ``crew.end``, or until one stops.

    All threads of a crew call it, and wait for each other after each window.

    Returns
    -------
    int
        First cycle that is not simulated: the same for all threads.
    """
    now, half = int64(crew.begin), int64(0)
    first, end = crew.parts * thread // crew.threads, crew.parts * (thread + 1) // crew.threads
    while now < crew.end:
        last = min(now + crew.window, crew.end)
        for me in range(first, end):
            part, net = part_at(crew, int64(me)), net_of(crew, int64(me))
            started = clock_ns() if crew.times != 0 else int64(0)
            for cycle in range(now, last):
                net.cycle = cycle
                deliver_to_part(crew, part, net, route, int64(me), int64(cycle - now), half, int64(cycle))
                allocate_routers(net, int64(cycle), part.first, part.end)
                drain(net, int64(cycle), part.first, part.end)
                mark_lanes(crew, part, net, int64(cycle), 0)
                inject(net, route, pattern, int64(cycle), part.first_host, part.end_host)
                mark_lanes(crew, part, net, int64(cycle), 1)
                net.cycle = cycle + 1
            if last < crew.end:
                post(crew, part, net, int64(me), int64(last), 1 - half)
            if net.free_packets < crew.window * (part.end_host - part.first_host):
                int64s(crew.control)[STOP] = STOP_GROW
            if crew.times != 0:
                int64s(crew.times)[(now - crew.begin) // crew.window * crew.parts + me] = clock_ns() - started
        now, half = last, 1 - half
        if wait_for_all(crew.control, crew.threads) != GO_ON:
            break
    return now


_KERNEL, _PLAIN_KERNEL = (Entry(run_parts, _signature(one), nogil=True) for one in (CREW_RECORD, PLAIN_CREW_RECORD))


def parts_kernel(net: Net) -> Entry:
    """Return `run_parts`, made for plain networks if the record of a network is of one."""
    return _PLAIN_KERNEL if is_plain(net) else _KERNEL
