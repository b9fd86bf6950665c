"""Routers take one of several ports by the hash of source and destination: units by themselves, and a network."""

from dataclasses import replace

import numpy as np
import pytest
from amaranth.sim import Simulator
from tests.model.topology.spread_by_bits import port_of

from hopforge.gen.design import whole_network_design
from hopforge.hw.spread_choice import SpreadChoice
from hopforge.model.config import Config, parse_config
from hopforge.model.errors import UserError
from hopforge.model.router.params import LookAhead, Route, RouterParams
from hopforge.model.topology.spread import router_key
from hopforge.sim.benches.network import NetworkTraffic, record_network
from hopforge.sim.benches.network_setup import network_setup
from hopforge.sim.drive.replay import replay_amaranth

TRAFFIC = NetworkTraffic(load=0.5, cycles=60, seed=4)


def config_of(routing: str = "algorithm: minimal, spread: flow", more: str = "", other: str = "") -> Config:
    return parse_config(
        f"name: x\ntopology: {{kind: hyperx, sizes: [2, 2]}}\nrouting: {{{routing}}}\n"
        f"router: {{vcs: 2, buffer_flits: 3{more}}}\ntraffic: {{packet_range: [1, 3]{other}}}\n"
    )


@pytest.mark.parametrize("bits", [6, 40])
def test_the_choice_is_the_definition(bits: int) -> None:
    """Addresses below and above the width of the hash; few ports and many."""
    ports = 20 if bits == 40 else 6
    params = RouterParams(
        ports=ports, vcs=1, buffer_flits=2, width_bits=96, address_bits=bits, routes=(), spread_router=0
    )
    counts = (0, 1, 2, 3, 5, ports)
    unit = SpreadChoice(params=params, counts=counts)
    rng = np.random.default_rng(bits)

    async def drive(ctx) -> None:  # type: ignore[no-untyped-def]
        for turn in range(300):
            source, goal = (int(rng.integers(1 << bits)) for _ in range(2))
            router, ways = int(rng.integers(1 << 31)), counts[turn % len(counts)]
            chosen = sorted(rng.choice(ports, ways, replace=False).tolist())
            ctx.set(unit.data, goal | source << bits)
            ctx.set(unit.key, router_key(router))
            ctx.set(unit.ports, sum(1 << port for port in chosen))
            assert ctx.get(unit.port) == (1 << chosen[port_of(source, goal, 0, router, ways)] if ways else 0)

    simulator = Simulator(unit)
    simulator.add_testbench(drive)
    simulator.run()


def test_rtl_is_the_simulator() -> None:
    """Every flit in its cycle; routers that take another number for themselves are found."""
    config = config_of()
    setup = network_setup(config, TRAFFIC.load, TRAFFIC.seed, TRAFFIC.cycles)
    recorded = record_network(config, TRAFFIC, setup)
    params = setup.design.params
    assert [router.spread_router for router in params] == [0, 1, 2, 3]
    assert all(any(route.ports.bit_count() > 1 for route in router.routes) for router in params)
    assert replay_amaranth(recorded.component, recorded.replay).mismatches == 0 and recorded.packets > 20
    others = tuple(replace(router, spread_router=number ^ 1) for number, router in enumerate(params))
    wrong = replace(setup, design=replace(setup.design, params=others))
    assert replay_amaranth((fresh := record_network(config, TRAFFIC, wrong)).component, fresh.replay).mismatches > 0


@pytest.mark.parametrize(("config", "said"), [
    (config_of("algorithm: minimal, spread: packet"), "it draws random numbers"),
    (config_of("algorithm: minimal, spread: entropy", other=", entropy: {per: flow}"), "the source"),
    (config_of(more=", route_computation: lookup"), r"routing\.spread: flow is not for router\.route_computation"),
    (config_of(more=", lookahead: true, rc_cycles: 1"), "lookahead"),
])  # fmt: skip
def test_what_hardware_cannot_do_is_refused(config: Config, said: str) -> None:
    with pytest.raises(UserError, match=said):
        whole_network_design(config)


@pytest.mark.parametrize(("changes", "said"), [
    ({"spread_router": -1}, r"spread_router must be below 2\*\*32, not -1"),
    ({"lookahead": LookAhead(), "rc_cycles": 1, "width_bits": 64}, "spread_router must be None with lookahead"),
    ({"routes": (Route(3, 0, 1),)}, "spread_router must be None with escapes"),
])  # fmt: skip
def test_parameters_that_do_not_fit(changes: dict[str, object], said: str) -> None:
    given = {"ports": 3, "vcs": 2, "buffer_flits": 4, "width_bits": 32, "address_bits": 10, "spread_router": 1}
    with pytest.raises(ValueError, match=said):
        RouterParams(**(given | changes))  # type: ignore[arg-type]
