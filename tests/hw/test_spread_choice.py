"""Routers take one of several ports by the hash of source and destination: units by themselves, and a network."""

from dataclasses import replace

import numpy as np
import pytest
from amaranth.hdl import Module, Signal
from amaranth.sim import Simulator

from hopforge.gen.design import whole_network_design
from hopforge.hw.spread_choice import SpreadChoice, remainder
from hopforge.model.config import Config, parse_config
from hopforge.model.errors import UserError
from hopforge.model.router.params import LookAhead, Route, RouterParams
from hopforge.sim.benches.network import NetworkTraffic, record_network
from hopforge.sim.benches.network_setup import network_setup
from hopforge.sim.drive.replay import replay_amaranth

TRAFFIC = NetworkTraffic(load=0.5, cycles=60, seed=4)


def config_of(routing: str = "algorithm: minimal, spread: flow", more: str = "", other: str = "") -> Config:
    return parse_config(
        f"name: x\ntopology: {{kind: hyperx, sizes: [2, 2]}}\nrouting: {{{routing}}}\n"
        f"router: {{vcs: 2, buffer_flits: 3{more}}}\ntraffic: {{packet_range: [1, 3]{other}}}\n"
    )


@pytest.mark.parametrize("divisor", [1, 2, 3, 5, 6, 7, 8, 11, 24, 63])
def test_remainders(divisor: int) -> None:
    m, value, found = Module(), Signal(32), Signal(8)
    m.d.comb += found.eq(remainder(m, value, divisor))

    async def drive(ctx) -> None:  # type: ignore[no-untyped-def]
        numbers = np.random.default_rng(divisor).integers(0, 1 << 32, 60).tolist()
        for number in [0, 1, divisor - 1, divisor, 2**32 - 1, 2**32 - divisor, *numbers]:
            ctx.set(value, number)
            assert ctx.get(found) == number % divisor

    simulator = Simulator(m)
    simulator.add_testbench(drive)
    simulator.run()


def test_a_divisor_is_at_least_one() -> None:
    with pytest.raises(ValueError, match="divisor must be at least 1, not 0"):
        remainder(Module(), Signal(4), 0)


@pytest.mark.parametrize("bits", [6, 40])
def test_the_choice_is_the_definition(bits: int) -> None:
    """Addresses below and above the width of the hash, beside the definition in numbers of 32 bits."""
    params = RouterParams(ports=6, vcs=1, buffer_flits=2, width_bits=96, address_bits=bits, routes=(), spread_router=0)
    unit = SpreadChoice(params=params, counts=(0, 1, 2, 3, 5))
    rng = np.random.default_rng(bits)

    def place(source: int, goal: int, router: int, ways: int) -> int:
        w = np.array([source + 1], np.uint32) * np.uint32(2654435761)
        w = (w ^ w >> np.uint32(15) ^ np.array([goal & 0xFFFFFFFF], np.uint32)) * np.uint32(2246822507)
        w = (w ^ w >> np.uint32(13) ^ np.array([router], np.uint32)) * np.uint32(3266489909)
        return int((w ^ w >> np.uint32(16))[0]) % ways

    async def drive(ctx) -> None:  # type: ignore[no-untyped-def]
        for turn in range(200):
            source, goal = (int(rng.integers(min(1 << bits, 1 << 32) - 1)) for _ in range(2))
            goal |= int(rng.integers(2)) << bits - 1
            router, ways = int(rng.integers(1 << 32)), (0, 1, 2, 3, 5)[turn % 5]
            ports = sorted(rng.choice(6, ways, replace=False).tolist())
            ctx.set(unit.data, goal | source << bits)
            ctx.set(unit.router, router)
            ctx.set(unit.ports, sum(1 << port for port in ports))
            assert ctx.get(unit.port) == (1 << ports[place(source, goal, router, ways)] if ways else 0)

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
