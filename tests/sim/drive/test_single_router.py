"""The golden router alone has all parameters of the router that it stands for."""

from dataclasses import fields

import pytest

from hopforge.model.network.settings import RouterParameters
from hopforge.sim.drive import single_router
from hopforge.sim.drive.router_variants import router_variant

#: engines are outside, and a head waits for them; ports have an array; what heads bring is another kind of value
_OTHERWISE = {"rc_cycles", "cycles_per_flit", "lookahead", "lookup"}


def test_no_parameter_is_left_at_its_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """`va_arbiter` once was: the RTL differed from its golden router wherever the arbiters of va are others."""
    given: list[RouterParameters] = []
    build = single_router.build_net

    def noted(topology, router, *others, **more):  # type: ignore[no-untyped-def]
        given.append(router)
        return build(topology, router, *others, **more)

    monkeypatch.setattr(single_router, "build_net", noted)
    variants = [router_variant(seed) for seed in range(60)]
    common = {field.name for field in fields(RouterParameters)} & {field.name for field in fields(variants[0])}
    common -= _OTHERWISE
    assert {"va", "sa", "arbiter", "va_arbiter", "vc_release", "switching"} <= common
    for name in common:
        assert len({getattr(params, name) for params in variants}) > 1, f"{name} is not drawn"
    for params in variants:
        single_router.single_router(params)
        assert {name: getattr(given[-1], name) for name in common} == {name: getattr(params, name) for name in common}
