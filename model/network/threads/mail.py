"""How flits and credits get from part to part, in the order in which one thread would have sent them.

Each part sends into wheels of its own, as a network on one thread does. At the end of a window it posts what other
parts must read in the next one. A window is at most as long as the shortest delay between routers, so nothing comes
too late. What comes to a router in a cycle is read lane by lane, and in a lane by increasing part that sent it: random
numbers of a router are then drawn in the same order as on one thread.
"""

from collections.abc import Callable

from numba import int32, int64, uint64

from hopforge.model.kernel.compile import inlined, inner
from hopforge.model.kernel.memory import int32s, int64s, prefetch
from hopforge.model.network.core.arrivals import receive_all, take_events
from hopforge.model.network.core.events import end_routing, take_credit
from hopforge.model.network.core.loads_ahead import AHEAD, OUTPUT_VC_BYTES, SPARSE
from hopforge.model.network.core.net_record import Net
from hopforge.model.network.threads.records import Crew, Part


@inlined
def is_own(part: Part, vc: int) -> bool:
    """Whether an input VC, or an output VC, is one of the part's."""
    return uint64(vc - part.first_vc) < uint64(part.own_vcs)


@inlined
def pair(crew: Crew, half: int, source: int, target: int) -> int:
    """Place of two parts in the counts of a half of the mailboxes."""
    return (half * crew.parts + source) * crew.parts + target


@inlined
def post_flits(crew: Crew, part: Part, net: Net, me: int, cycle: int, k: int, half: int) -> None:
    """Post the flits that come to other parts in `cycle`, number `k` of its window."""
    slot = cycle & net.wheel_mask
    first = slot * net.event_capacity
    filled, places = int64s(part.filled), int64s(crew.flit_place)
    marks, mailed = int32s(part.marks), int32s(crew.flit_mailed)
    start = int64(int32s(part.base)[slot])
    for lane in range(crew.lanes):
        stop = int64(marks[slot * crew.lanes + lane])
        if int64s(crew.lane_host)[lane] == 0:
            for e in range(start, stop):
                event = int64s(net.flit_event)[first + e]
                n = event >> 32
                if not is_own(part, n) and n < net.input_vcs:
                    to = int64(int32s(crew.part_of)[n // crew.span])
                    place = half * crew.flit_half + places[me * crew.parts + to] + filled[to]
                    int64s(crew.flit_mail)[place] = event
                    filled[to] += 1
            start = stop
        else:
            start = max(start, stop)
        for to in range(crew.parts):
            mailed[(pair(crew, half, me, to) * crew.window + k) * crew.lanes + lane] = int32(filled[to])


@inlined
def post_credits(crew: Crew, part: Part, net: Net, me: int, cycle: int, k: int, half: int) -> None:
    """Post the credits that come to other parts in `cycle`, number `k` of its window."""
    slot = cycle & net.wheel_mask
    first = slot * net.event_capacity
    filled, places, mailed = int64s(part.filled), int64s(crew.credit_place), int32s(crew.credit_mailed)
    for e in range(int32s(net.credit_events)[slot]):
        m = int64(int32s(net.credit_event)[first + e])
        if not is_own(part, m) and m < net.output_vcs:
            to = int64(int32s(crew.part_of)[m // crew.span])
            place = half * crew.credit_half + places[me * crew.parts + to] + filled[to]
            int32s(crew.credit_mail)[place] = int32(m)
            filled[to] += 1
    for to in range(crew.parts):
        mailed[pair(crew, half, me, to) * crew.window + k] = int32(filled[to])


@inner
def post(crew: Crew, part: Part, net: Net, me: int, begin: int, half: int) -> int:
    """Post what comes to other parts in the window that begins at cycle `begin`."""
    for to in range(crew.parts):
        int64s(part.filled)[to] = 0
    for k in range(crew.window):
        post_flits(crew, part, net, me, begin + k, int64(k), half)
    for to in range(crew.parts):
        int64s(part.filled)[to] = 0
    for k in range(crew.window):
        post_credits(crew, part, net, me, begin + k, int64(k), half)
    return 0


@inlined
def take_credits(crew: Crew, part: Part, net: Net, me: int, k: int, half: int, slot: int) -> None:
    """Let all credits of a cycle count: no order of them matters."""
    for source in range(crew.parts):
        at, count = net.credit_event + 4 * slot * net.event_capacity, int64(int32s(net.credit_events)[slot])
        if source != me:
            row = pair(crew, half, int64(source), me)
            mailed = row * crew.window + k
            before = int64(int32s(crew.credit_mailed)[mailed - 1]) if k > 0 else int64(0)
            count = int64(int32s(crew.credit_mailed)[mailed]) - before
            place = half * crew.credit_half + int64s(crew.credit_place)[source * crew.parts + me] + before
            at = crew.credit_mail + 4 * place
        credits = int32s(at)
        for e in range(count):
            if e + AHEAD < count:
                later = int64(credits[e + AHEAD])
                if is_own(part, later):
                    prefetch(net.output_vc + later * OUTPUT_VC_BYTES)
            m = int64(credits[e])
            if m >= net.output_vcs or is_own(part, m):
                take_credit(net, m)
    int32s(net.credit_events)[slot] = 0


@inlined
def take_flits(
    crew: Crew, part: Part, net: Net, route: Callable[..., int], me: int, k: int, half: int, now: int
) -> None:
    """Heads behind tails that have left, then all flits that come in cycle `now`, by the order in which they left."""
    slot = now & net.wheel_mask
    own = net.flit_event + 8 * slot * net.event_capacity
    heads, to_hosts = int(net.heads_count), 0
    net.heads_count = 0
    net.sparse = int64(int32s(net.flit_events)[slot] < SPARSE) & net.far
    start = int64(int32s(part.base)[slot])
    lane, source = int64(0), int64(0)
    for piece in range(-1, crew.lanes * crew.parts):  # in one loop: RC is compiled once
        at, count = own, start
        if piece >= 0:
            if source == me:
                stop = int64(int32s(part.marks)[slot * crew.lanes + lane])
                at, count = own + 8 * start, stop - start
                start = stop
            elif int64s(crew.lane_host)[lane] != 0:
                at, count = own, int64(0)
            else:
                mailed = (pair(crew, half, source, me) * crew.window + k) * crew.lanes + lane
                before = int64(int32s(crew.flit_mailed)[mailed - 1]) if k + lane > 0 else int64(0)
                count = int64(int32s(crew.flit_mailed)[mailed]) - before
                place = half * crew.flit_half + int64s(crew.flit_place)[source * crew.parts + me] + before
                at = crew.flit_mail + 8 * place
            source += 1
            if source == crew.parts:
                source = int64(0)
                lane += 1
        first_vc, vcs = int64(part.first_vc), int64(part.own_vcs)
        to_hosts = take_events(net, route, int64s(at), count, first_vc, vcs, heads, to_hosts, now)
        heads = 0
    receive_all(net, to_hosts, now)
    int32s(net.flit_events)[slot] = 0
    int32s(part.base)[slot] = 0


@inlined
def deliver_to_part(
    crew: Crew, part: Part, net: Net, route: Callable[..., int], me: int, k: int, half: int, now: int
) -> None:
    """Everything that becomes visible in a part at the start of cycle `now`, number `k` of its window."""
    slot = now & net.wheel_mask
    take_credits(crew, part, net, me, k, half, slot)
    take_flits(crew, part, net, route, me, k, half, now)
    for e in range(int32s(net.ready_events)[slot]):
        end_routing(net, int64(int32s(net.ready_event)[slot * net.event_capacity + e]))
    int32s(net.ready_events)[slot] = 0
