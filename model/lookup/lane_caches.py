"""Caches of links of several wavelengths, in a kernel (docs/definitions/wavelengths.md).

`model.lookup.golden.lane_caches` is written on its own from the same page.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config.lookup import REPLAYED_POLICIES, SPREADS, ReplayedPolicy, Spread
from hopforge.model.kernel.compile import kernel
from hopforge.model.lookup.replacement import RANDOM, choose_victim, next_random, note_fill, note_use
from hopforge.model.numbers.crc import crc_addresses, crc_tables
from hopforge.model.numbers.crc_catalogue import Crc

__all__ = ["HASH_BITS", "LaneCounts", "LaneShape", "LinkPackets", "hash_packets", "run_links"]

_RR, _LEAST, _FLOW, _HASH, _HASH_LOW, _BANK = range(len(SPREADS))
HASH_BITS = 16
"""Bits of a hash below those that choose a lane in `hash` and `flow`."""

_WORD_MASK = -1


class LinkPackets(NamedTuple):
    """Packets of many links, link by link, in order; on each link back to back.

    Attributes
    ----------
    starts : ndarray, int64[link + 1]
        Where the packets of a link begin.
    numbers, flow_numbers : ndarray, int32[packet]
        Keys, and pairs of source and key, as numbers from 0.
    bytes : ndarray, int64[packet]
        Of each.
    codes, flows : ndarray, int64[packet]
        Hash of the key, and of source and key.
    """

    starts: NDArray[np.int64]
    numbers: NDArray[np.int32]
    flow_numbers: NDArray[np.int32]
    bytes: NDArray[np.int64]
    codes: NDArray[np.int64]
    flows: NDArray[np.int64]


class LaneShape(NamedTuple):
    """The lanes of a link and their caches.

    Attributes
    ----------
    lanes, entries, ways : int
        Lanes; lines of the cache of each, a multiple of the ways.
    spread : str
        How packets choose a lane.
    policy : str
        Of replacement.
    random_seed : int
        Start of the shift register of policy random.
    """

    lanes: int
    entries: int
    ways: int
    spread: Spread
    policy: ReplayedPolicy = "lru"
    random_seed: int = 0xACE1


class LaneCounts(NamedTuple):
    """What happened on each link.

    Attributes
    ----------
    packets, misses, bytes : ndarray, int64[link, lane]
        Of each lane.
    overtaking : ndarray, int64[link]
        Packets whose last byte arrives before that of an earlier packet of the same source and key.
    """

    packets: NDArray[np.int64]
    misses: NDArray[np.int64]
    bytes: NDArray[np.int64]
    overtaking: NDArray[np.int64]


def _pair_hash(which: Crc, width_bits: int) -> Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.int64]]:
    """Return a function of (sources, keys): the CRC of both, one behind the other in whole bytes."""
    width_bytes = -(-width_bits // 8)
    tables = crc_tables(which, 16 * width_bytes)

    def both(sources: NDArray[np.int64], keys: NDArray[np.int64]) -> NDArray[np.int64]:
        found = np.zeros(len(keys), np.uint64)
        for byte in range(width_bytes):
            found ^= tables[byte, keys >> 8 * byte & 255] ^ tables[width_bytes + byte, sources >> 8 * byte & 255]
        return found.view(np.int64) & np.iinfo(np.int64).max

    return both


def hash_packets(
    starts: NDArray[np.int64], keys: NDArray[np.int64], sizes: NDArray[np.int64], sources: NDArray[np.int64],
    which: Crc, width_bits: int,
) -> LinkPackets:
    """Return packets with their keys numbered and hashed.

    Parameters
    ----------
    starts : ndarray, int64[link + 1]
        Where the packets of a link begin.
    keys, sizes, sources : ndarray, int64[packet]
        Keys, bytes, addresses of the sources.
    which : str or parameters
        The CRC.
    width_bits : int
        Bits of a key that are hashed, and of a source.
    """
    known, numbers = np.unique(keys, return_inverse=True)
    _, senders = np.unique(sources, return_inverse=True)
    pairs = np.unique(senders.reshape(-1) * len(known) + numbers.reshape(-1), return_inverse=True)[1]
    payload = known & (1 << width_bits) - 1
    codes = (crc_addresses(which, payload, width_bits).view(np.int64) & np.iinfo(np.int64).max)[numbers]
    flows = _pair_hash(which, width_bits)(sources, payload[numbers])
    return LinkPackets(
        starts, numbers.reshape(-1).astype(np.int32), pairs.reshape(-1).astype(np.int32), sizes, codes, flows
    )


def run_links(packets: LinkPackets, shape: LaneShape) -> LaneCounts:
    """Send the packets of every link over its lanes; caches are empty at the start.

    Raises
    ------
    ValueError
        Entries are no multiple of the ways.

    Examples
    --------
    >>> keys = np.array([7, 8, 7, 8])
    >>> one = hash_packets(np.array([0, 4]), keys, np.full(4, 84), np.zeros(4, np.int64), "CRC-32C", 24)
    >>> run_links(one, LaneShape(lanes=2, entries=4, ways=4, spread="rr")).misses.tolist()
    [[1, 1]]
    """
    if shape.entries < 1 or shape.entries % shape.ways:
        raise ValueError(f"ways must divide entries={shape.entries}, not {shape.ways}")
    links = len(packets.starts) - 1
    packed, misses, sizes = (np.zeros((links, shape.lanes), np.int64) for _ in range(3))
    found = LaneCounts(packed, misses, sizes, np.zeros(links, np.int64))
    lane = np.empty(len(packets.numbers), np.int32)
    flows = int(packets.flow_numbers.max(initial=-1)) + 1
    _choose(
        SPREADS.index(shape.spread), shape.lanes, packets.starts, packets.bytes, packets.flow_numbers,
        packets.codes, packets.flows, np.empty(flows, np.int64), np.full(flows, -1, np.int64), lane, found,
    )  # fmt: skip
    _look(
        (REPLAYED_POLICIES.index(shape.policy), shape.lanes, shape.entries // shape.ways, shape.ways,
         shape.spread == "bank", shape.random_seed), packets.starts, packets.numbers, packets.codes, lane,
        found.misses,
    )  # fmt: skip
    return found


@kernel
def _choose(  # type: ignore[no-untyped-def]
    spread, lanes, starts, sizes, numbers, codes, flows, ends, seen, lane_of, found
):
    """Write the lane of each packet; count packets and bytes of lanes, and packets that overtake."""
    free = np.zeros(lanes, np.int64)
    for link in range(len(starts) - 1):
        free[:] = 0
        arrival = 0
        for packet in range(starts[link], starts[link + 1]):
            if spread == _RR:
                lane = (packet - starts[link]) % lanes
            elif spread == _LEAST:
                lane = 0
                for other in range(1, lanes):
                    if max(free[other], arrival) < max(free[lane], arrival):
                        lane = other
            elif spread == _FLOW:
                lane = (flows[packet] >> HASH_BITS) % lanes
            elif spread == _HASH:
                lane = (codes[packet] >> HASH_BITS) % lanes
            else:
                lane = codes[packet] % lanes
            end = max(free[lane], arrival) + sizes[packet] * lanes
            free[lane] = end
            arrival += sizes[packet]
            flow = numbers[packet]
            if seen[flow] != link:
                seen[flow] = link
                ends[flow] = end
            elif end < ends[flow]:
                found.overtaking[link] += 1
            else:
                ends[flow] = end
            lane_of[packet] = lane
            found.packets[link, lane] += 1
            found.bytes[link, lane] += sizes[packet]


@kernel
def _look(shape, starts, keys, codes, lane_of, misses):  # type: ignore[no-untyped-def]
    """Look every packet up in the cache of its lane."""
    policy, lanes, sets, ways, banked, random_seed = shape
    tags = np.empty(lanes * sets * ways, np.int32)
    order = np.empty(lanes * sets * ways, np.int64)
    registers = np.empty(lanes, np.int64)
    for link in range(len(starts) - 1):
        tags[:] = -1
        order[:] = 0
        registers[:] = random_seed
        for packet in range(starts[link], starts[link + 1]):
            lane, key = lane_of[packet], keys[packet]
            row = (codes[packet] // lanes if banked else codes[packet]) % sets
            first = (lane * sets + row) * ways
            way, empty = -1, -1
            for each in range(ways - 1, -1, -1):
                tag = tags[first + each]
                way = each if tag == key else way
                empty = each if tag < 0 else empty
            if way >= 0:
                note_use(policy, ways, order, first, 1, way, packet)
                continue
            misses[link, lane] += 1
            if empty < 0:
                empty = choose_victim(policy, ways, order, first, 1, packet, _WORD_MASK, registers[lane])
                if policy == RANDOM:
                    registers[lane] = next_random(registers[lane])
            tags[first + empty] = key
            note_fill(policy, ways, order, first, 1, empty, packet)
