"""Traffic for one router: the kernels of the simulator as its golden router, and what goes in and comes out."""

from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from hopforge.model.lookup.golden.ports import LookupInputs
from hopforge.model.router.flit import Flit, PortInputs, PortOutputs
from hopforge.model.router.golden import RouterModel
from hopforge.model.router.params import Route, RouterParams
from hopforge.sim.drive.router_stimulus import router_stimulus
from hopforge.sim.drive.router_traffic import (
    C_CLEAR,
    C_ENABLE,
    I_CREDIT_VALID,
    I_DATA,
    I_VALID,
    O_CREDIT_VALID,
    O_DATA,
    O_DROPPED,
    O_DROPS,
    O_VALID,
    RouterTraffic,
)
from hopforge.sim.drive.router_variants import router_variant

WORD = (1 << 64) - 1


def flit_of(row: list[int], valid: int, data: int) -> Flit | None:
    """Flit of a row of the recording."""
    if not row[valid]:
        return None
    words = sum((word & WORD) << 64 * place for place, word in enumerate(row[data:]))
    return Flit(row[valid + 1], row[valid + 2], words)


def compare(params: RouterParams, traffic: RouterTraffic) -> dict[str, int]:
    """Play the inputs to the golden router in plain Python; every output must be the recorded one."""
    stimulus = router_stimulus(params, traffic)
    golden = RouterModel(params)
    rows = zip(stimulus.inputs.tolist(), stimulus.outputs.tolist(), strict=True)
    for cycle, (given, expected) in enumerate(rows):
        inputs = [
            PortInputs(flit_of(row, I_VALID, I_DATA), row[I_CREDIT_VALID + 1] if row[I_CREDIT_VALID] else None)
            for row in given
        ]
        engines = [LookupInputs(*row) for row in stimulus.engine_inputs[cycle].tolist()]
        want = [
            PortOutputs(
                flit_of(row, O_VALID, O_DATA), row[O_CREDIT_VALID + 1] if row[O_CREDIT_VALID] else None, row[O_DROPS]
            )
            for row in expected
        ]
        enable, clear = (bool(stimulus.control[cycle, column]) for column in (C_ENABLE, C_CLEAR))
        got, answers = golden.step(inputs, engines, enable=enable, clear_counters=clear)
        assert golden.dropped == [i for i, row in enumerate(expected) if row[O_DROPPED]], f"cycle {cycle}"
        assert got == want, f"cycle {cycle}"
        for answer, row in zip(answers, stimulus.engine_outputs[cycle].tolist(), strict=True):
            assert [word & WORD for word in answer] == [word & WORD for word in row], f"cycle {cycle}"
    return {**stimulus.lookups, "packets": stimulus.packets, "unroutable": stimulus.drops}


@pytest.mark.parametrize("seed", range(24))
def test_the_kernels_are_the_golden_router(seed: int) -> None:
    compare(router_variant(seed, rc="table"), RouterTraffic(cycles=250, seed=seed))


def test_routers_that_are_drawn_differ_in_every_parameter() -> None:
    """A parameter that none of them has was never compared; those that are left out have tests of their own."""
    drawn = [router_variant(seed) for seed in range(150)]
    same = {field.name for field in fields(RouterParams) if len({repr(getattr(p, field.name)) for p in drawn}) == 1}
    assert same == {"address_bits", "tag_bits", "length_bits", "cycles_per_flit", "protection"}


@pytest.mark.parametrize(("va", "sa"), [("output_first", "output_first"), ("output_first", "wavefront")])
def test_the_kernels_are_the_golden_router_with_iterations(va: str, sa: str) -> None:
    given = {"va": va, "sa": sa, "arbiter": "round_robin", "va_arbiter": None, "quality": None, "ports": 5, "vcs": 3}
    turns = {"va_iterations": 3, "sa_iterations": 2 if sa == va else 1}
    for speculation in (False, True):
        params = router_variant(3, rc="table", rc_cycles=1, speculation=speculation, **given, **turns)
        assert compare(params, RouterTraffic(cycles=250, seed=3))["packets"] > 50


@pytest.mark.parametrize(("seed", "given"), [
    (1, {"rc": "table", "lookahead": True}), (2, {"rc": "table", "lookahead": True}),
    (15, {"rc": "lookup"}), (20, {"rc": "lookup"}),
    (1, {"rc": "lookup", "lookahead": True}), (15, {"rc": "lookup", "lookahead": True}),
])  # fmt: skip
def test_the_kernels_are_the_golden_router_that_takes_one_of_several_ports(seed: int, given: dict[str, Any]) -> None:
    params = router_variant(seed, width_bits=64, **given)
    assert (params.spread_router is not None and params.entropy_bits > 0) or params.lookahead is not None
    seen = compare(params, RouterTraffic(cycles=400, seed=seed))
    assert seen["packets"] > 50


@pytest.mark.study
@pytest.mark.parametrize(("seed", "ahead"), [(5, False), (7, False), (13, False), (15, False), (2, True), (4, True)])
def test_with_lookup_engines(seed: int, ahead: bool) -> None:
    params = router_variant(seed, rc="lookup", lookahead=ahead)
    assert params.asks_ahead == ahead
    seen = compare(params, RouterTraffic(cycles=400, seed=seed))
    assert seen["hits"] > 0
    assert seen["misses"] > 0
    assert seen["flushes"] > 0


def test_unroutable_packets_without_route_computation() -> None:
    """With r = 0 the head is in VA for one cycle before it is drained (docs/definitions/router.md, RC)."""
    params = RouterParams(ports=2, vcs=1, buffer_flits=2, routes=(Route(0), Route(2)))
    seen = compare(params, RouterTraffic(cycles=1500, seed=2))
    assert 0 < seen["unroutable"] < seen["packets"]


def test_the_same_seed_gives_the_same_cycles() -> None:
    params = router_variant(1)
    first, again, other = (router_stimulus(params, RouterTraffic(cycles=100, seed=seed)) for seed in (1, 1, 2))
    assert np.array_equal(first.inputs, again.inputs)
    assert not np.array_equal(first.inputs[:100], other.inputs[:100])
