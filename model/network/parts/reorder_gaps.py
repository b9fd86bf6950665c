"""The gaps of a flow: which of its packets are missing before others that have arrived, or were lost.

They say in constant memory for each gap whether an arrival is reordered, and which arrival has overtaken it first.
"""

from typing import Any

from hopforge.model.kernel.compile import inlined, inner
from hopforge.model.network.core.net_record import Net
from hopforge.model.network.core.spray_records import gap_at, spray_of

#: of `take_number`: no arrival has overtaken it
IN_TURN = -1


@inlined
def append_gap(net: Net, flow: Any, last: int, opener: int) -> None:
    """Note that the packets from the end of a flow up to `last` are missing."""
    spray = spray_of(net)
    k = spray.free_gap
    gap = gap_at(net, k)
    spray.free_gap = gap.next
    gap.first, gap.last, gap.opener, gap.next = flow.end, last, opener, -1
    if flow.first_gap < 0:
        flow.first_gap = k
    else:
        gap_at(net, flow.last_gap).next = k
    flow.last_gap = k


@inner
def overtake(net: Net, flow: Any, before: int, opener: int) -> None:
    """Let arrival `opener` be the first that has overtaken the missing packets below `before`, where none has yet."""
    k = flow.first_gap
    while k >= 0 and gap_at(net, k).first < before:
        if gap_at(net, k).opener < 0:
            gap_at(net, k).opener = opener
        k = gap_at(net, k).next


@inner
def leave_gap(net: Net, flow: Any, number: int) -> int:
    """Take a missing packet out of its gap; returns what had overtaken it.

    Gaps with nothing in them vanish, one that falls in two keeps its opener on both sides.
    """
    spray = spray_of(net)
    before, k = -1, flow.first_gap
    while gap_at(net, k).last < number:
        before, k = k, gap_at(net, k).next
    gap = gap_at(net, k)
    opener = gap.opener
    if gap.first == gap.last:
        if before < 0:
            flow.first_gap = gap.next
        else:
            gap_at(net, before).next = gap.next
        if flow.last_gap == k:
            flow.last_gap = before
        gap.next = spray.free_gap
        spray.free_gap = k
    elif number == gap.first:
        gap.first += 1
    elif number == gap.last:
        gap.last -= 1
    else:
        upper = spray.free_gap
        behind = gap_at(net, upper)
        spray.free_gap = behind.next
        behind.first, behind.last, behind.opener, behind.next = number + 1, gap.last, opener, gap.next
        gap.last, gap.next = number - 1, upper
        if flow.last_gap == k:
            flow.last_gap = upper
    return opener


@inner
def take_number(net: Net, flow: Any, number: int, arrival: int) -> int:
    """Note that packet `number` has come as arrival `arrival` of its flow, or (−1) that it is lost.

    Returns
    -------
    int
        The first arrival that had overtaken it, or IN_TURN.
    """
    opener = IN_TURN
    if number >= flow.end:
        if number > flow.end:
            append_gap(net, flow, number - 1, arrival)
        flow.end = number + 1
    else:
        opener = leave_gap(net, flow, number)
    if arrival < 0:
        flow.open_gaps = 1
    elif flow.open_gaps != 0:
        overtake(net, flow, number, arrival)
        if number + 1 == flow.end:
            flow.open_gaps = 0
    return opener


@inlined
def front_of(net: Net, flow: Any) -> int:
    """First packet of a flow that has neither arrived nor been lost."""
    return flow.end if flow.first_gap < 0 else gap_at(net, flow.first_gap).first
