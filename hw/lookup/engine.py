"""The lookup engine of any depth."""

from collections.abc import Callable

from hopforge.hw.lookup.base import LookupBase
from hopforge.hw.lookup.deep import LEAST_DEPTH, DeepLookup
from hopforge.hw.lookup.registered_csr import SETUP_PERIODS
from hopforge.hw.lookup.shallow import Lookup
from hopforge.hw.parts.sram import Sram
from hopforge.model.lookup.params import LookupParams

__all__ = ["is_deep", "lookup_engine", "many_periods"]


def is_deep(params: LookupParams) -> bool:
    """Whether `params` make a `DeepLookup`."""
    return params.pipeline_depth >= LEAST_DEPTH


def many_periods(params: LookupParams) -> dict[str, int]:
    """Submodules through which a path may take several periods, and how many."""
    return {"setup": SETUP_PERIODS} if is_deep(params) and params.functions != ("arbitrary",) else {}


def lookup_engine(*, params: LookupParams, memory: Callable[..., Sram] = Sram) -> LookupBase:
    """Return the engine for `params`: `Lookup` to a depth of 4, `DeepLookup` from 5 on.

    Parameters
    ----------
    params : LookupParams
        The engine.
    memory : callable
        Makes the memories of the cache, `Sram`.
    """
    return (DeepLookup if is_deep(params) else Lookup)(params=params, memory=memory)
