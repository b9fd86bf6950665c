"""The lookup engine of any depth."""

from collections.abc import Callable

from hopforge.hw.deep_lookup import DeepLookup
from hopforge.hw.lookup import Lookup, LookupBase
from hopforge.hw.sram import Sram
from hopforge.model.lookup.params import LookupParams

__all__ = ["lookup_engine"]


def lookup_engine(*, params: LookupParams, memory: Callable[..., Sram] = Sram) -> LookupBase:
    """Return the engine for `params`: `Lookup` to a depth of 4, `DeepLookup` from 5 on.

    Parameters
    ----------
    params : LookupParams
        The engine.
    memory : callable
        Makes the memories of the cache, `Sram`.
    """
    return (DeepLookup if params.pipeline_depth >= 5 else Lookup)(params=params, memory=memory)
