"""One block of memory, on huge pages where the system has them, for all arrays of a network.

An event touches ten or more arrays; on pages of 4 KiB a network of thousands of routers would then miss the address
translation caches at nearly every one of them.
"""

import contextlib
import mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: arrays begin at cache lines
LINE_BYTES = 64
HUGE_PAGE_BYTES = 1 << 21


def gather(arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Copy arrays into one block, each at a cache line.

    Parameters
    ----------
    arrays : dict of ndarray
        Contiguous arrays by name.

    Returns
    -------
    dict of ndarray
        The copies; the block lives as long as one of them.
    """
    places, end = {}, 0
    for name, array in arrays.items():
        places[name] = end
        end += -(-array.nbytes // LINE_BYTES) * LINE_BYTES
    size = -(-max(end, 1) // HUGE_PAGE_BYTES) * HUGE_PAGE_BYTES + HUGE_PAGE_BYTES
    block = mmap.mmap(-1, size)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # a kernel without huge pages
            block.madvise(mmap.MADV_HUGEPAGE)
    whole = np.frombuffer(block, np.uint8)
    first = -whole.ctypes.data % HUGE_PAGE_BYTES
    found = {}
    for name, array in arrays.items():
        start = first + places[name]
        copy = whole[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
        copy[...] = array
        found[name] = copy
    return found
