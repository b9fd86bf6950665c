"""Events, masks and free packets of a network, dealt out to its parts and collected from them.

An event goes to the part where it arrives. Collected, the events of a cycle stand in the order in which one thread
would have sent them, as far as an order matters: within a router.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import int32, int64, types
from numpy.typing import NDArray

from hopforge.model.kernel.compile import entry, inlined
from hopforge.model.kernel.memory import int32s, int64s
from hopforge.model.network.core.kinds import HOST_VC_BITS
from hopforge.model.network.core.net_record import NET_RECORD, Net
from hopforge.model.network.core.state import NetState
from hopforge.model.network.threads.ranges import Ranges
from hopforge.model.network.threads.records import CREW_RECORD, Crew, net_of, part_at

Arrays = dict[str, NDArray[Any]]


def own_bits(words: NDArray[np.uint64], first: int, end: int) -> NDArray[np.uint64]:
    """Return the words that hold the bits `first` up to, but without, `end`, with no other bits."""
    found = words[first >> 6 : (end + 63) >> 6].copy()
    ones = np.uint64(0xFFFFFFFFFFFFFFFF)
    found[0] &= ones << np.uint64(first & 63)
    found[-1] &= ones >> np.uint64(63 - ((end - 1) & 63))
    return found


class Mask(NamedTuple):
    """Where a mask of bits per port, or per router, stands in the state, and the bits of each part."""

    name: str
    per_router: int

    def span(self, ranges: Ranges, part: int) -> tuple[int, int]:
        """Return the first bit of a part, and the first one behind it."""
        return int(ranges.routers[part]) * self.per_router, int(ranges.routers[part + 1]) * self.per_router


def masks_of(state: NetState) -> list[Mask]:
    """List the masks that parts have for themselves, as words at their borders hold bits of two parts."""
    ports, lists = int(state["ports"]), bool(state["vc_lists"])
    by_port = ["asking"] if lists else ["asking", "wanted"]
    return [Mask(name, ports) for name in by_port] + [Mask(name, 1) for name in ("draining", "active")]


@inlined
def part_with(crew: Crew, vc: int, beyond: int) -> int:
    """Part of a VC of a router, or of a host VC: those have the numbers from `beyond` on."""
    if vc < beyond:
        return int64(int32s(crew.part_of)[vc // crew.span])
    return int64(int32s(crew.part_of_host)[(vc - beyond) >> HOST_VC_BITS])


@entry(types.void(NET_RECORD, CREW_RECORD))
def deal_events(net: Net, crew: Crew) -> None:
    """Put every event, and the heads behind tails that have left, into the wheels of its part."""
    for slot in range(net.wheel_mask + 1):
        first = slot * net.event_capacity
        for p in range(crew.parts):
            part = net_of(crew, int64(p))
            int32s(part.flit_events)[slot] = 0
            int32s(part.credit_events)[slot] = 0
            int32s(part.ready_events)[slot] = 0
        for e in range(int32s(net.flit_events)[slot]):
            event = int64s(net.flit_event)[first + e]
            part = net_of(crew, part_with(crew, event >> 32, net.input_vcs))
            place = int32s(part.flit_events)[slot]
            int64s(part.flit_event)[slot * part.event_capacity + place] = event
            int32s(part.flit_events)[slot] = place + 1
        for e in range(int32s(net.credit_events)[slot]):
            m = int32s(net.credit_event)[first + e]
            part = net_of(crew, part_with(crew, int64(m), net.output_vcs))
            place = int32s(part.credit_events)[slot]
            int32s(part.credit_event)[slot * part.event_capacity + place] = m
            int32s(part.credit_events)[slot] = place + 1
        for e in range(int32s(net.ready_events)[slot]):
            n = int32s(net.ready_event)[first + e]
            part = net_of(crew, part_with(crew, int64(n), net.input_vcs))
            place = int32s(part.ready_events)[slot]
            int32s(part.ready_event)[slot * part.event_capacity + place] = n
            int32s(part.ready_events)[slot] = place + 1
        for p in range(crew.parts):
            part, there = part_at(crew, int64(p)), int32s(net_of(crew, int64(p)).flit_events)[slot]
            int32s(part.base)[slot] = there
            for lane in range(crew.lanes):
                int32s(part.marks)[slot * crew.lanes + lane] = there
    for p in range(crew.parts):
        net_of(crew, int64(p)).heads_count = 0
    for k in range(net.heads_count):
        n = int32s(net.heads_next)[k]
        part = net_of(crew, part_with(crew, int64(n), net.input_vcs))
        int32s(part.heads_next)[part.heads_count] = n
        part.heads_count += 1


@entry(types.void(NET_RECORD, CREW_RECORD))
def collect_events(net: Net, crew: Crew) -> None:
    """Put the events of all parts, and their heads, into the wheels of the network."""
    for slot in range(net.wheel_mask + 1):
        first, count = slot * net.event_capacity, int64(0)
        # first what was there before; last what comes to hosts before the lane from hosts of this cycle has begun
        for lane in range(-1, crew.lanes + 1):
            for p in range(crew.parts):
                part, own = part_at(crew, int64(p)), net_of(crew, int64(p))
                done = int64s(part.filled)
                start = done[0] if lane >= 0 else int64(0)
                stop = int64(int32s(own.flit_events)[slot])
                if lane < 0:
                    stop = int64(int32s(part.base)[slot])
                elif lane < crew.lanes:
                    stop = min(stop, int64(int32s(part.marks)[slot * crew.lanes + lane]))
                for e in range(start, stop):
                    int64s(net.flit_event)[first + count] = int64s(own.flit_event)[slot * own.event_capacity + e]
                    count += 1
                done[0] = max(start, stop)
        int32s(net.flit_events)[slot] = int32(count)
        credits, ready = int64(0), int64(0)
        for p in range(crew.parts):
            own = net_of(crew, int64(p))
            place = slot * own.event_capacity
            for e in range(int32s(own.credit_events)[slot]):
                int32s(net.credit_event)[first + credits] = int32s(own.credit_event)[place + e]
                credits += 1
            for e in range(int32s(own.ready_events)[slot]):
                int32s(net.ready_event)[first + ready] = int32s(own.ready_event)[place + e]
                ready += 1
        int32s(net.credit_events)[slot], int32s(net.ready_events)[slot] = int32(credits), int32(ready)
    net.heads_count = 0
    for p in range(crew.parts):
        own = net_of(crew, int64(p))
        for k in range(own.heads_count):
            int32s(net.heads_next)[net.heads_count] = int32s(own.heads_next)[k]
            net.heads_count += 1


def deal(
    state: NetState, crew: Any, ranges: Ranges, parts: Sequence[Arrays], records: NDArray[Any], masks: list[Mask]
) -> None:
    """Hand out to the parts what is under way in a network, and its free packet records by their hosts."""
    deal_events(state.record[0], crew)
    free = state["free_packet"][: int(state["free_packets"])]
    shares = len(free) * ranges.hosts // max(int(ranges.hosts[-1]), 1)
    for number, arrays in enumerate(parts):
        mine = free[shares[number] : shares[number + 1]]
        arrays["free_packet"][: len(mine)] = mine
        records["free_packets"][number] = len(mine)
        for mask in masks:
            first, end = mask.span(ranges, number)
            arrays[mask.name][:] = own_bits(state[mask.name], first, end)


def collect(
    state: NetState, crew: Any, ranges: Ranges, parts: Sequence[Arrays], records: NDArray[Any], masks: list[Mask]
) -> None:
    """Put together again what the parts hold, after all have come to the same cycle."""
    collect_events(state.record[0], crew)
    lists = [arrays["free_packet"][: int(n)] for arrays, n in zip(parts, records["free_packets"], strict=True)]
    free = np.concatenate(lists)
    state["free_packet"][: len(free)] = free
    state.record["free_packets"] = len(free)
    for mask in masks:
        state[mask.name][:] = 0
        for number, arrays in enumerate(parts):
            first, end = mask.span(ranges, number)
            state[mask.name][first >> 6 : (end + 63) >> 6] |= arrays[mask.name]
    state.record["cycle"] = records["cycle"][0]
