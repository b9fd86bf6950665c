"""Checks of ``router.route_computation: lookup``: section `router` against section `lookup`."""

from collections.abc import Iterator

from hopforge.model.config.base import Problem
from hopforge.model.config.limits import hardware_problems
from hopforge.model.config.lookup import AddressConfig, LookupConfig
from hopforge.model.config.router import RouterConfig


def route_computation_problems(router: RouterConfig, address: AddressConfig, lookup: LookupConfig) -> Iterator[Problem]:
    """Return what of the lookup engine does not fit the router; keys are from the root of the file.

    A cache that is off is an engine that is not enabled: every lookup asks the TCAM.
    """
    if router.route_computation == "table":
        return
    if router.rc_cycles:
        yield Problem(
            "router.rc_cycles",
            f"is for router.route_computation=table only, not lookup (a hit takes lookup.pipeline_depth + 1 = "
            f"{lookup.pipeline_depth + 1} cycles)",
        )
    if router.vcs > 1 << lookup.request_tag_bits:
        yield Problem(
            "lookup.request_tag_bits", f"must number router.vcs={router.vcs}, not {lookup.request_tag_bits} bits"
        )
    if lookup.cache.second_level is not None:
        yield Problem("lookup.cache.second_level", "is not in the engines of router.route_computation=lookup")
    cache = lookup.cache.model_copy(update={"enabled": True})
    yield from hardware_problems(address, lookup.model_copy(update={"cache": cache}))
