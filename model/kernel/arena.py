"""One block of memory, on huge pages where the system has them, for all arrays of a network.

An event touches ten or more arrays; on pages of 4 KiB a network of thousands of routers would then miss the address
translation caches at nearly every one of them.
"""

import contextlib
import mmap
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: arrays begin at cache lines
LINE_BYTES = 64
HUGE_PAGE_BYTES = 1 << 21
#: Windows has no flags, and no huge pages that one can ask for
_PRIVATE = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}


def gather(
    arrays: dict[str, NDArray[Any]], empty: Mapping[str, tuple[int, np.dtype[Any]]] | None = None
) -> dict[str, NDArray[Any]]:
    """Move arrays into one block, each at a cache line.

    Parameters
    ----------
    arrays : dict of ndarray
        Contiguous arrays by name; they are taken out of it one by one.
    empty : mapping of (entries, dtype), optional
        Arrays of zeros that are made in the block: memory that is never written is never taken.

    Returns
    -------
    dict of ndarray
        All of them; the block lives as long as one of them.

    Raises
    ------
    MemoryError
        There is not enough.
    """
    places, end, zeros = {}, 0, dict(empty or {})
    sizes = {name: size * dtype.itemsize for name, (size, dtype) in zeros.items()}
    sizes |= {name: array.nbytes for name, array in arrays.items()}
    for name, size in sizes.items():
        places[name] = end
        end += -(-size // LINE_BYTES) * LINE_BYTES
    size = -(-max(end, 1) // HUGE_PAGE_BYTES) * HUGE_PAGE_BYTES + HUGE_PAGE_BYTES
    whole = np.frombuffer(_block(size), np.uint8)
    first = -whole.ctypes.data % HUGE_PAGE_BYTES
    found = {}
    for name, place in places.items():
        taken = whole[first + place : first + place + sizes[name]]
        if name in zeros:
            found[name] = taken.view(zeros[name][1])
            continue
        array = arrays.pop(name)
        copy = taken.view(array.dtype).reshape(array.shape)
        copy[...] = array
        found[name] = copy
        del array
    return found


def _block(size: int) -> mmap.mmap:
    """Return memory of zeros for this process alone: pages that processes can share are huge on few systems."""
    try:
        block = mmap.mmap(-1, size, **_PRIVATE)
    except OSError as error:
        raise MemoryError from error
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # a kernel without huge pages
            block.madvise(mmap.MADV_HUGEPAGE)
    return block
