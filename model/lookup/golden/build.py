"""The golden engine of any depth."""

from hopforge.model.lookup.golden.deep import DeepLookupEngine
from hopforge.model.lookup.golden.engine import LookupEngine
from hopforge.model.lookup.params import LookupParams

SHALLOW_DEPTHS = 4

GoldenEngine = LookupEngine | DeepLookupEngine


def golden_engine(params: LookupParams) -> GoldenEngine:
    """Return the golden engine for `params`: another machine from depth 5 on.

    Examples
    --------
    >>> type(golden_engine(LookupParams(pipeline_depth=6))).__name__
    'DeepLookupEngine'
    """
    return DeepLookupEngine(params) if params.pipeline_depth > SHALLOW_DEPTHS else LookupEngine(params)
