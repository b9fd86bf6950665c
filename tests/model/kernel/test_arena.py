"""The block of memory of a network's arrays: places, huge pages where the system has them, not enough memory."""

import re
import resource
from pathlib import Path

import numpy as np
import pytest

from hopforge.model.kernel.arena import HUGE_PAGE_BYTES, LINE_BYTES, gather

#: which pages may be huge: always, where a program asks (madvise), never
SYSTEM = Path("/sys/kernel/mm/transparent_hugepage/enabled")


def mapping_of(address: int) -> dict[str, str]:
    """What Linux says of the mapping in which an address lies (proc(5), smaps)."""
    found: dict[str, str] = {}
    for line in Path("/proc/self/smaps").read_text().splitlines():
        head = re.match(r"([0-9a-f]+)-([0-9a-f]+) (\S+) ", line)
        if head is None:
            found.setdefault(*(part.strip() for part in line.split(":", 1)))
            continue
        if found and "inside" in found:
            return found
        first, last = (int(word, 16) for word in head.groups()[:2])
        found = {"flags": head[3]} | ({"inside": "yes"} if first <= address < last else {})
    return found


def test_arrays_keep_their_values_at_cache_lines() -> None:
    wanted = {"a": np.arange(5), "b": np.ones((3, 7), np.uint8), "none": np.zeros(0, np.int32)}
    found = gather({name: array.copy() for name, array in wanted.items()}, {"c": (9, np.dtype(np.int16))})
    for name, array in wanted.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype
    assert found["c"].tolist() == [0] * 9
    assert all(array.ctypes.data % LINE_BYTES == 0 for array in found.values())


@pytest.mark.skipif(not SYSTEM.exists() or "[never]" in SYSTEM.read_text(), reason="a system without huge pages")
def test_huge_pages_are_asked_for_in_memory_of_this_process_alone() -> None:
    """Pages that processes can share are huge on few systems, and a limit on this process' data does not count them."""
    array = gather({}, {"a": (8 * HUGE_PAGE_BYTES, np.dtype(np.uint8))})["a"]
    array[:] = 1
    mapping = mapping_of(array.ctypes.data)
    assert mapping["flags"] == "rw-p"
    assert "hg" in mapping["VmFlags"].split()  # whether there are any is up to the system


def test_too_little_memory_is_a_memory_error() -> None:
    used = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (1 << 32, used[1]))
    try:
        with pytest.raises(MemoryError):
            gather({}, {"a": (1 << 33, np.dtype(np.uint8))})
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, used)
