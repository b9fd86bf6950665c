"""Events, masks and free packets of a network, dealt out to its parts and collected from them.

An event goes to the part where it arrives. Collected, the events of a cycle stand in the order in which one thread
would have sent them, as far as an order matters: within a router.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopforge.model.network.core.records import HOST_VC_BITS
from hopforge.model.network.core.state import NetState
from hopforge.model.network.threads.ranges import Ranges

Arrays = dict[str, NDArray[Any]]


class Wheel(NamedTuple):
    """Events of one kind: slot, place in the slot, and what they are, by slot and place."""

    slot: NDArray[np.int64]
    place: NDArray[np.int64]
    event: NDArray[Any]


def read_wheel(events: NDArray[Any], counts: NDArray[Any]) -> Wheel:
    """List the events of a wheel."""
    capacity = len(events) // len(counts)
    slot = np.repeat(np.arange(len(counts)), counts)
    place = _places(slot, counts)
    return Wheel(slot, place, events[slot * capacity + place])


def write_wheel(events: NDArray[Any], counts: NDArray[Any], slot: NDArray[np.int64], event: NDArray[Any]) -> None:
    """Fill a wheel with events sorted by slot."""
    capacity = len(events) // len(counts)
    counts[:] = np.bincount(slot, minlength=len(counts))
    events[slot * capacity + _places(slot, counts)] = event


def _places(slot: NDArray[np.int64], counts: NDArray[Any]) -> NDArray[np.int64]:
    """Place of each event in its slot, of events sorted by slot."""
    first = np.concatenate([[0], np.cumsum(counts[:-1], dtype=np.int64)])
    return np.arange(len(slot)) - first[slot]


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


def deal(state: NetState, ranges: Ranges, parts: Sequence[Arrays], records: NDArray[Any], masks: list[Mask]) -> None:
    """Hand out to the parts what is under way in a network, and its free packet records by their hosts."""
    span, at_host = int(state["ports"]) * int(state["vcs"]), np.repeat(np.arange(ranges.parts), np.diff(ranges.hosts))

    def part_of(vc: NDArray[np.int64], beyond: int) -> NDArray[np.int64]:
        host = np.clip((vc - beyond) >> HOST_VC_BITS, 0, max(len(at_host) - 1, 0))
        router = np.minimum(vc, beyond - 1) // span
        return np.where(vc < beyond, ranges.part_of[router], at_host[host] if len(at_host) else 0)

    flits = read_wheel(state["flit_event"], state["flit_events"])
    credits = read_wheel(state["credit_event"], state["credit_events"])
    ready = read_wheel(state["ready_event"], state["ready_events"])
    heads = state["heads_next"][: int(state["heads_count"])].astype(np.int64)
    of_flit = part_of(flits.event >> 32, int(state["input_vcs"]))
    of_credit = part_of(credits.event.astype(np.int64), int(state["output_vcs"]))
    of_ready, of_head = (ranges.part_of[vc // span] for vc in (ready.event.astype(np.int64), heads))
    free = state["free_packet"][: int(state["free_packets"])]
    shares = len(free) * ranges.hosts // max(int(ranges.hosts[-1]), 1)
    for number, arrays in enumerate(parts):
        for kind, wheel, of in (("flit", flits, of_flit), ("credit", credits, of_credit), ("ready", ready, of_ready)):
            chosen = of == number
            write_wheel(arrays[f"{kind}_event"], arrays[f"{kind}_events"], wheel.slot[chosen], wheel.event[chosen])
        arrays["base"][:] = arrays["flit_events"]
        arrays["marks"].reshape(len(arrays["base"]), -1)[:] = arrays["base"][:, None]
        mine = heads[of_head == number]
        arrays["heads_next"][: len(mine)] = mine
        records["heads_count"][number] = len(mine)
        part_free = free[shares[number] : shares[number + 1]]
        arrays["free_packet"][: len(part_free)] = part_free
        records["free_packets"][number] = len(part_free)
        for mask in masks:
            first, end = mask.span(ranges, number)
            arrays[mask.name][:] = own_bits(state[mask.name], first, end)


def collect(state: NetState, ranges: Ranges, parts: Sequence[Arrays], records: NDArray[Any], masks: list[Mask]) -> None:
    """Put together again what the parts hold, after all have come to the same cycle."""
    lanes, now, slots = len(ranges.lane_time), int(records["cycle"][0]), len(state["flit_events"])
    wheels = [read_wheel(arrays["flit_event"], arrays["flit_events"]) for arrays in parts]
    order = []
    for arrays, wheel in zip(parts, wheels, strict=True):
        marks = arrays["marks"].reshape(slots, lanes)[wheel.slot]
        lane = np.where(wheel.place < arrays["base"][wheel.slot], 0, 1 + (marks > wheel.place[:, None]).argmax(axis=1))
        order.append(wheel.slot * (lanes + 1) + lane)
    by_lane = np.argsort(np.concatenate(order), kind="stable")
    slot, event = (np.concatenate([getattr(one, name) for one in wheels])[by_lane] for name in ("slot", "event"))
    write_wheel(state["flit_event"], state["flit_events"], slot, event)
    for kind in ("credit", "ready"):
        wheels = [read_wheel(arrays[f"{kind}_event"], arrays[f"{kind}_events"]) for arrays in parts]
        slot, event = (np.concatenate([getattr(one, name) for one in wheels]) for name in ("slot", "event"))
        by_slot = np.argsort(slot, kind="stable")
        write_wheel(state[f"{kind}_event"], state[f"{kind}_events"], slot[by_slot], event[by_slot])
    for name, count in (("heads_next", "heads_count"), ("free_packet", "free_packets")):
        lists = [arrays[name][: int(n)] for arrays, n in zip(parts, records[count], strict=True)]
        whole = np.concatenate(lists)
        state[name][: len(whole)] = whole
        state.record[count] = len(whole)
    for mask in masks:
        state[mask.name][:] = 0
        for number, arrays in enumerate(parts):
            first, end = mask.span(ranges, number)
            state[mask.name][first >> 6 : (end + 63) >> 6] |= arrays[mask.name]
    state.record["cycle"] = now
