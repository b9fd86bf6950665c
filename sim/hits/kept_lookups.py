"""The lookups of a replay, kept for what needs the future of each: bounds, sizes."""

import numpy as np
from numpy.typing import NDArray

from hopforge.model.free_memory import refuse_beyond_memory
from hopforge.model.kernel.compile import kernel
from hopforge.model.lookup.belady import KeyStreams

#: its number, and when its key is asked for again
BYTES_OF_A_LOOKUP = 8
#: its way
BYTES_OF_A_PACKET = 4


class KeptLookups:
    """Lookups of pieces of a workload, as small as they came.

    Packets between the same hosts make the same lookups: a piece holds each way once, and its number for every packet.

    Parameters
    ----------
    caches : int
        How many caches there are.
    """

    def __init__(self, caches: int) -> None:
        self._pieces: list[tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]] = []
        self._counts = np.zeros(caches, np.int64)

    def add(
        self, of_packet: NDArray[np.int64], first: NDArray[np.int64], caches: NDArray[np.int32],
        slots: NDArray[np.int32],
    ) -> None:
        """Keep a piece: the way of each packet, where ways begin, cache and slot of each hop."""
        self._pieces.append((of_packet.astype(np.int32), first, caches, slots))

    def streams(self, slot_keys: NDArray[np.int64]) -> KeyStreams:
        """Return the lookups cache by cache; the number of a key is its slot.

        Raises
        ------
        UserError
            They do not fit in memory.
        """
        counts = np.zeros_like(self._counts)
        for of_packet, first, caches, _ in self._pieces:
            _count(of_packet, first, caches, counts)
        starts = np.concatenate([[0], np.cumsum(counts)])
        refuse_beyond_memory(int(starts[-1]) * BYTES_OF_A_LOOKUP, f"bounds of {starts[-1]:,} lookups (--no-bounds)")
        numbers = np.empty(starts[-1], np.int32)
        place = starts[:-1].copy()
        for of_packet, first, caches, slots in self._pieces:
            _scatter(of_packet, first, caches, slots, place, numbers)
        return KeyStreams(starts, numbers, slot_keys)


@kernel
def _count(of_packet, first, caches, counts):  # type: ignore[no-untyped-def]
    for packet in range(len(of_packet)):
        for hop in range(first[of_packet[packet]], first[of_packet[packet] + 1]):
            counts[caches[hop]] += 1


@kernel
def _scatter(of_packet, first, caches, slots, place, numbers):  # type: ignore[no-untyped-def]
    for packet in range(len(of_packet)):
        for hop in range(first[of_packet[packet]], first[of_packet[packet] + 1]):
            cache = caches[hop]
            numbers[place[cache]] = slots[hop]
            place[cache] += 1
