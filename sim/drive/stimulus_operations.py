"""What a lookup engine works on, cycle by cycle: the operation in the stage that looks into the cache."""

import numpy as np

from hopforge.model.kernel.compile import inner
from hopforge.model.lookup.fast import layout as at
from hopforge.model.lookup.fast.keys import row_of

__all__ = ["OPERATION_COLUMNS", "see_operation"]

OPERATION_COLUMNS = ("seen_valid", "seen_key", "seen_index")
"""Whether the cache looks for a key, which one, and in which rows it may lie (skewed ways: each has its own)."""


@inner
def see_operation(state, seen):  # type: ignore[no-untyped-def]
    """Write down the operation in stage C (deep engines: C2) of the cycle that comes; the depth is at least 2.

    What began before a flush does not count: its key may be that of an earlier set-up.
    """
    p = state.params
    operation = state.operations[at.DEEP_C2 if p[at.P_DEPTH] > at.SHALLOW_DEPTHS else at.OP_C]
    kind = operation[at.F_KIND]
    if kind not in (at.LOOKUP, at.FILL, at.INVALIDATE) or not operation[at.F_FRESH]:
        seen[:] = 0
        return
    key = operation[at.F_KEY]
    payload = key & (1 << p[at.P_A]) - 1
    index, shift = np.int64(0), 0
    for way in range(p[at.P_WAYS] if p[at.P_SKEWED] else 1):
        index |= row_of(state.lines, payload, way) << shift
        shift += _width(p[at.P_SETS])
    seen[0], seen[1], seen[2] = 1, key, index


@inner
def _width(sets):  # type: ignore[no-untyped-def]
    """Return the bits of a row number, at least one."""
    bits = 1
    while 1 << bits < sets:
        bits += 1
    return bits
