"""The step function of input-output-queued routers, cycle by cycle as in docs/definitions/router-models.md.

Nothing is searched for: what may move in a cycle stands in delay lines (one per length of link: what was sent first
arrives first), in masks of requests, and in a calendar of hosts. The parts of a large network (`parts`) run a window of
cycles one after the other.
"""

from collections.abc import Callable

from numba import int64, types, uint64

from hopforge.model.kernel.arena import LINE_BYTES
from hopforge.model.kernel.bits import trailing_zeros
from hopforge.model.kernel.compile import entry, inlined
from hopforge.model.kernel.memory import int64s, prefetch, words
from hopforge.model.network.core.hooks import CYCLE, call_hook
from hopforge.model.network.core.kinds import DONE, GROW, PROGRAM
from hopforge.model.network.core.layouts import NOTE
from hopforge.model.network.core.net_record import NET_RECORD, PATTERN_SIGNATURE, ROUTE_SIGNATURE, Net
from hopforge.model.network.core.progress import stop_reason
from hopforge.sim.queued.crossbar import PACKET_BYTES, match
from hopforge.sim.queued.delay_lines import deliver_all
from hopforge.sim.queued.hosts import inject, wake_hosts
from hopforge.sim.queued.links import free_ports, send_all, take_credits, take_packets
from hopforge.sim.queued.records import QUEUES_RECORD, Part, Queues, line_at, part_at

NOTE_BYTES = NOTE.itemsize


@inlined
def match_all(net: Net, queues: Queues, part: Part, route: Callable[..., int], now: int) -> None:
    """One match in every router of a part that has requests."""
    for word in range(part.asking_words):
        routers = words(part.asking)[word]
        while routers != uint64(0):
            router = part.first_router + (word << 6) + trailing_zeros(routers)
            routers &= routers - uint64(1)
            match(net, queues, part, route, router, now)


@inlined
def load_ahead(net: Net, queues: Queues, part: int, step: int, start: int) -> None:
    """Begin to load a share of what part number `part` touches from cycle `start` on, so that it waits less then."""
    for k in range(queues.slices):
        at = 2 * (part * queues.slices + k)
        lines = int64s(queues.slice)[at + 1]
        address = int64s(queues.slice)[at] + step * lines * LINE_BYTES
        for line in range(lines):
            prefetch(address + line * LINE_BYTES)
    first_line = part_at(queues, part).first_line
    for k in range(first_line, first_line + queues.lines):
        arriving, credits = line_at(queues.packet_line, k), line_at(queues.credit_line, k)
        slot = start + step * queues.match_cycles
        prefetch(arriving.counts + (slot & arriving.count_mask) * 4)
        prefetch(credits.counts + (slot & credits.count_mask) * 4)
        if arriving.far == 0:
            continue
        share = ((arriving.last - arriving.first) * queues.match_cycles) // queues.window + 1
        place_first = arriving.first + step * share
        for place in range(place_first, min(place_first + share, arriving.last)):
            prefetch(net.packet + (int64s(arriving.entries)[place & arriving.mask] & 0xFFFFFFFF) * PACKET_BYTES)
        share = ((credits.last - credits.first) * queues.match_cycles) // queues.window + 1
        place_first = credits.first + step * share
        for place in range(place_first, min(place_first + share, credits.last)):
            prefetch(credits.entries + (place & credits.mask) * 8)
            if credits.notes != 0:
                prefetch(credits.notes + (place & credits.mask) * NOTE_BYTES)


@inlined
def inject_all(net: Net, queues: Queues, part: Part, pattern: Callable[..., int], now: int) -> None:
    """Let the hosts send that are due."""
    for word in range(part.due_words):
        hosts = words(part.due_hosts)[word]
        if hosts != uint64(0):
            words(part.due_hosts)[word] = 0
            while hosts != uint64(0):
                inject(net, queues, part, pattern, part.first_host + (word << 6) + trailing_zeros(hosts), now)
                hosts &= hosts - uint64(1)


@entry(
    int64(types.FunctionType(ROUTE_SIGNATURE), types.FunctionType(PATTERN_SIGNATURE), NET_RECORD, QUEUES_RECORD, int64)
)
def run_cycles(
    route: Callable[..., int], pattern: Callable[..., int], net: Net, queues: Queues, cycles: int
) -> int:
    """Simulate up to `cycles` cycles.

    Parameters
    ----------
    route, pattern : function
        Routing algorithm (`ROUTE_SIGNATURE`) and traffic pattern (`PATTERN_SIGNATURE`).
    net, queues : record
        State, changed in place.
    cycles : int
        How many.

    Returns
    -------
    int
        DONE, GROW, DEADLOCK, FINISHED or STUCK as in `model.network.kernel`.
    """
    end = net.cycle + cycles
    while net.cycle < end:
        if net.free_packets < queues.reserve:
            return GROW
        first = int64(net.cycle)
        last = min(first + queues.window, end)
        for k in range(queues.parts):
            part = part_at(queues, k)
            phase = first % queues.match_cycles
            step, following = 0, k + 1 if k + 1 < queues.parts else 0
            start = first if following > 0 else last
            for now in range(first, last):
                take_credits(net, queues, part, now)
                take_packets(net, queues, part, route, now)
                if net.source_kind == PROGRAM:  # one part, windows of one cycle
                    wake = call_hook(net.messages, net, CYCLE, now, now)
                    if wake < 0:
                        return -wake
                    if wake > now:
                        net.cycle = wake  # all ranks compute: perhaps beyond the end
                        break
                if phase == 0:
                    match_all(net, queues, part, route, now)
                    load_ahead(net, queues, following, step, start)
                    step += 1
                phase = phase + 1 if phase + 1 < queues.match_cycles else 0
                free_ports(queues, part, now)
                send_all(net, queues, part, now)
                wake_hosts(net, queues, part, now)
                inject_all(net, queues, part, pattern, now)
        if net.cycle > first:
            continue
        if queues.parts > 1:
            deliver_all(queues, first, last - first)
        net.cycle = last
        reason = stop_reason(net, last - 1)
        if reason != DONE:
            return reason
    return DONE
