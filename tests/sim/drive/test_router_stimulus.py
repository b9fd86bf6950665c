"""Traffic for one router: the kernels of the simulator as its golden router, and what goes in and comes out."""

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hopforge.model.config import load_config
from hopforge.model.lookup.golden.ports import LookupInputs
from hopforge.model.router.flit import Flit, PortInputs, PortOutputs
from hopforge.model.router.golden import RouterModel
from hopforge.model.router.params import Route, RouterParams
from hopforge.sim.cosim.router import router_of
from hopforge.sim.drive.reachable_routes import reachable_routes
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
from hopforge.sim.drive.router_variants import draw_rule, router_variant

CONFIGS = Path(__file__).parents[3] / "configs"
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


@pytest.mark.parametrize("name", ["demo", "cosim/torus4x4", "cosim/lookahead_torus", "cosim/lookup2x2"])
def test_most_packets_of_shipped_routers_are_routed(name: str) -> None:
    """With rules of VCs nine of ten were dropped, and with engines that answered a class that there is not."""
    _, params = router_of(load_config(CONFIGS / f"{name}.yml"))
    seen = compare(params, RouterTraffic(cycles=600))
    assert 0 < seen["unroutable"] < 0.3 * seen["packets"]


def test_engines_route_whatever_the_table_holds() -> None:
    """A router with lookup engines and a rule of VCs, whose parameters name routes that nobody reads."""
    _, params = router_of(load_config(CONFIGS / "router_lookup.yml"))
    assert params.vc_rule and not params.routes
    traffic = RouterTraffic(cycles=300)
    seen = compare(replace(params, routes=(Route(ports=1), Route(ports=2))), traffic)
    assert seen == compare(params, traffic) and seen["packets"] > seen["unroutable"]


def test_routes_that_an_input_vc_can_take() -> None:
    ruled = 0
    for seed in range(60):
        p = router_variant(seed)
        first, routes = reachable_routes(p)
        assert len(first) == p.ports * p.vcs + 1 and first[-1] == len(routes)
        ruled += bool(p.vc_rule) and len(routes) > 0
        for n in range(p.ports * p.vcs) if p.vc_rule else ():
            i, v = divmod(n, p.vcs)
            if p.rc == "table" and not p.carries(i):
                expected = [number for number, each in enumerate(p.routes) if leaves(p, each, i, v)]
            else:
                pairs = [(o, k) for k in range(p.classes) for o in range(p.ports)]
                expected = [o | k << 16 for o, k in pairs if p.vc_mask(k, i, v, o)]
            assert routes[first[n] : first[n + 1]].tolist() == expected
        assert p.vc_rule or len(routes) == 0
    assert ruled > 5


def leaves(p: RouterParams, route: Route, i: int, v: int) -> bool:
    k = route.route_class
    to = route.escape
    by_ports = any(route.ports >> o & 1 and p.vc_mask(k, i, v, o) for o in range(p.ports))
    return by_ports or (to is not None and p.escape_mask(k, i, v, to) > 0)


@pytest.mark.parametrize("rules", [False, True])
def test_sets_of_64_ports(rules: bool) -> None:
    """More than numpy draws at once, and than its integers hold."""
    params = router_variant(665, rc="lookup", ports=64, vcs=2, output_kind="port_set")
    assert params.output_kind == "port_set" and params.lookup is not None and params.classes == 1
    if rules:
        params = replace(params, vc_rule=draw_rule(np.random.default_rng(1), 1, 64, 2))
    stimulus = router_stimulus(params, RouterTraffic(cycles=60))
    assert stimulus.packets > 3 * stimulus.drops


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
