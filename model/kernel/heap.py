"""Binary heaps of int64 in memory that the caller owns, earliest first, jitted."""

from typing import Any

from hopforge.model.kernel.compile import inner


@inner
def push_entry(heap: Any, count: int, entry: int) -> None:
    """Put an entry into a heap of `count` entries."""
    k = count
    while k > 0 and heap[(k - 1) >> 1] > entry:
        heap[k] = heap[(k - 1) >> 1]
        k = (k - 1) >> 1
    heap[k] = entry


@inner
def pop_entry(heap: Any, count: int) -> int:
    """Remove the least entry of a heap of `count` ≥ 1 entries; returns it."""
    least, last, left = heap[0], heap[count - 1], count - 1
    k = 0
    while 2 * k + 1 < left:
        child = 2 * k + 1
        if child + 1 < left and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= last:
            break
        heap[k] = heap[child]
        k = child
    heap[k] = last
    return int(least)
