"""Flush the lookup engines of a network and give their TCAMs new contents (definitions/lookup-engine.md, Flush)."""

import numpy as np

from hopforge.model.lookup.reference_stack import ReferenceStacks
from hopforge.model.network.core.lookup_state import LookupState
from hopforge.model.network.parts.lookup_build import RouteLookup

__all__ = ["reprogram_engines"]


def reprogram_engines(lookup: LookupState, new: RouteLookup) -> None:
    """Begin a new epoch in every engine: no line is live any more; the order of replacement stays as it is.

    Parameters
    ----------
    lookup : LookupState
        Engines with nothing under way.
    new : RouteLookup
        What their TCAMs hold from now on. Misses count as compulsory again until a key has been looked up once.
    """
    arrays = lookup.arrays
    assert not arrays["engine"]["used"].any(), "an engine is flushed with a lookup under way"
    arrays["line"]["key"] = 0
    if lookup.second is not None:
        lookup.second.arrays["line"]["key"] = 0
    if lookup.record["stacked"][0]:
        empty = ReferenceStacks(len(arrays["stack_head"]), int(lookup.record["entries"][0])).arrays
        for name, values in (("stack_head", empty.head), ("stack_tail", empty.tail), ("stack_held", empty.held)):
            arrays[name][:] = values
    arrays["stack_status"][:] = 0
    limited = new.row is not None
    lookup.record["limited"] = limited
    if limited:
        lookup.put("row", np.ascontiguousarray(new.row, np.uint8).reshape(-1))
    if new.key is not None:
        lookup.put("key", np.ascontiguousarray(new.key, np.int32).reshape(-1))
