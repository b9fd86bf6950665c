"""Caches of a link of several wavelengths, one packet after the other, from docs/definitions/wavelengths.md."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from hopforge.model.numbers.crc import crc_address

__all__ = ["LanePacket", "LaneRun", "run_lanes"]


class LanePacket(NamedTuple):
    """A packet of the link: what is looked up, its bytes, its source."""

    key: int
    bytes: int
    source: int = 0


@dataclass
class LaneRun:
    """What happened.

    Attributes
    ----------
    lane_of : list of int
        Lane of each packet.
    packets, misses, bytes : list of int [lane]
        Of each lane.
    overtaking : int
        Packets whose last byte arrives before that of an earlier packet of the same source and key.
    """

    lane_of: list[int] = field(default_factory=list)
    packets: list[int] = field(default_factory=list)
    misses: list[int] = field(default_factory=list)
    bytes: list[int] = field(default_factory=list)
    overtaking: int = 0


def _flow_hash(source: int, key: int, width_bits: int) -> int:
    """Return the CRC-32C of source and key, one behind the other in whole bytes."""
    whole = 8 * -(-width_bits // 8)
    return crc_address("CRC-32C", source << whole | key, 2 * whole)


def run_lanes(
    packets: Sequence[LanePacket], *, lanes: int, entries: int, ways: int, spread: str, width_bits: int = 24
) -> LaneRun:
    """Send packets over the lanes of a link, each with an LRU cache of its own.

    Parameters
    ----------
    packets : sequence of LanePacket
        Back to back at the rate of the link.
    lanes, entries, ways : int
        Wavelengths; lines of the cache of each, and of a set.
    spread : str
        ``rr``, ``least``, ``flow``, ``hash``, ``hash_low`` or ``bank``.
    width_bits : int
        Bits of a key and of a source.
    """
    sets = entries // ways
    found = LaneRun(packets=[0] * lanes, misses=[0] * lanes, bytes=[0] * lanes)
    lines: list[list[list[int]]] = [[[] for _ in range(sets)] for _ in range(lanes)]  # the least recently used first
    free = [0] * lanes  # in byte times of the link
    ends: dict[tuple[int, int], int] = {}
    arrival = 0
    for number, packet in enumerate(packets):
        code = crc_address("CRC-32C", packet.key, width_bits)
        if spread == "rr":
            lane = number % lanes
        elif spread == "least":
            lane = min(range(lanes), key=lambda one: (max(free[one], arrival), one))
        elif spread == "flow":
            lane = (_flow_hash(packet.source, packet.key, width_bits) >> 16) % lanes
        elif spread == "hash":
            lane = (code >> 16) % lanes
        else:
            lane = code % lanes
        free[lane] = max(free[lane], arrival) + packet.bytes * lanes
        arrival += packet.bytes
        flow = packet.source, packet.key
        found.overtaking += free[lane] < ends.get(flow, 0)
        ends[flow] = max(free[lane], ends.get(flow, 0))

        row = lines[lane][(code // lanes if spread == "bank" else code) % sets]
        if packet.key in row:
            row.remove(packet.key)
        else:
            found.misses[lane] += 1
            if len(row) == ways:
                row.pop(0)
        row.append(packet.key)
        found.lane_of.append(lane)
        found.packets[lane] += 1
        found.bytes[lane] += packet.bytes
    return found
