"""Routers take one of several ports by the hash of source and destination: units by themselves, and a network."""

import itertools
import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from amaranth.sim import Simulator
from tests.model.topology.spread_by_bits import port_of

from hopforge.gen.design.configured import whole_network_design
from hopforge.gen.packages.router import router_parameters_as_data
from hopforge.hw.ports.spread_choice import SpreadChoice
from hopforge.model.config import Config, parse_config
from hopforge.model.errors import UserError
from hopforge.model.router.params import LookAhead, Route, RouterParams
from hopforge.model.routing.combined.configured import routing_plan
from hopforge.model.topology import build
from hopforge.model.topology.spread import router_key
from hopforge.sim.benches.network import NetworkTraffic, record_network
from hopforge.sim.benches.network_setup import network_setup
from hopforge.sim.drive.replay import replay_amaranth

STUDY = os.environ.get("HOPFORGE_STUDY") == "1"
TRAFFIC = NetworkTraffic(load=0.5, cycles=60, seed=4)


LOOKUP = (
    "lookup: {functions: [arbitrary], mshrs: 2, ENGINES, cache: {entries: 2, ways: 2, output_kind: port_set}, "
    "tcam: {kind: flops, rows: 8, latency_cycles: 2}}\n"
)


def config_of(
    routing: str = "algorithm: minimal, spread: flow", more: str = "", other: str = "", lookup: str = "",
    network: str = "{kind: hyperx, sizes: [2, 2]}",
) -> Config:
    lookup = LOOKUP.replace("ENGINES", lookup) if lookup else ""
    return parse_config(
        f"name: x\ntopology: {network}\nrouting: {{{routing}}}\n{lookup}"
        f"router: {{vcs: 2, buffer_flits: 3{more}}}\ntraffic: {{packet_range: [1, 3]{other}}}\n"
    )


@pytest.mark.parametrize(("bits", "entropy_bits"), [(6, 0), (40, 0), (6, 16), (40, 1)])
def test_the_choice_is_the_definition(bits: int, entropy_bits: int) -> None:
    """Addresses below and above the width of the hash; few ports and many; with and without entropy."""
    ports = 20 if bits == 40 else 6
    params = RouterParams(
        ports=ports, vcs=1, buffer_flits=2, width_bits=128, address_bits=bits, routes=(), spread_router=0,
        entropy_bits=entropy_bits,
    )
    counts = (0, 1, 2, 3, 5, ports)
    unit = SpreadChoice(params=params, counts=counts)
    rng = np.random.default_rng(bits)

    async def drive(ctx) -> None:  # type: ignore[no-untyped-def]
        for turn in range(300):
            source, goal = (int(rng.integers(1 << bits)) for _ in range(2))
            router, ways = int(rng.integers(1 << 31)), counts[turn % len(counts)]
            entropy = int(rng.integers(1 << entropy_bits))
            chosen = sorted(rng.choice(ports, ways, replace=False).tolist())
            ctx.set(unit.data, goal | source << bits)
            ctx.set(unit.key, router_key(router))
            if entropy_bits:
                ctx.set(unit.entropy, entropy)
            ctx.set(unit.ports, sum(1 << port for port in chosen))
            assert ctx.get(unit.port) == (1 << chosen[port_of(source, goal, entropy, router, ways)] if ways else 0)

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
    fresh = record_network(config, TRAFFIC, wrong)
    assert replay_amaranth(fresh.component, fresh.replay, to_first=True).first is not None


#: three routers, the last two with two links between them
ROW = "{kind: edge_list, file: ROW_FILE}"


@pytest.mark.parametrize(("more", "lookup", "network"), [
    pytest.param(", rc_cycles: 2", "", ROW, marks=pytest.mark.study),
    pytest.param(", route_computation: lookup", "pipeline_depth: 2", ROW, marks=pytest.mark.study),
    pytest.param(", rc_cycles: 2", "", "{kind: hyperx, sizes: [2, 2, 2]}", marks=pytest.mark.study),
])  # fmt: skip
def test_rtl_with_look_ahead_is_the_simulator(more: str, lookup: str, network: str, tmp_path: Path) -> None:
    """A router that takes its neighbours for others tells heads a wrong port."""
    more, entropy = f", lookahead: true, flit_bits: 90{more}", ", entropy: {values: 7}"
    (tmp_path / "row.txt").write_text("0 1\n1 2\n1 2\n")
    config = config_of(BY_ENTROPY, more, entropy, lookup, network.replace("ROW_FILE", str(tmp_path / "row.txt")))
    setup = network_setup(config, TRAFFIC.load, TRAFFIC.seed, TRAFFIC.cycles)
    recorded = record_network(config, TRAFFIC, setup)
    assert replay_amaranth(recorded.component, recorded.replay).mismatches == 0 and recorded.packets > 20

    def other(router: RouterParams) -> RouterParams:
        assert router.lookahead is not None and any(router.lookahead.behind)
        behind = (each and replace(each, router=each.router ^ 1) for each in router.lookahead.behind)
        return replace(router, lookahead=replace(router.lookahead, behind=tuple(behind)))

    wrong = replace(setup, design=replace(setup.design, params=tuple(map(other, setup.design.params))))
    fresh = record_network(config, TRAFFIC, wrong)
    assert replay_amaranth(fresh.component, fresh.replay, to_first=True).first is not None


BY_ENTROPY = "algorithm: minimal, spread: entropy"


@pytest.mark.parametrize("config", [
    pytest.param(
        config_of(more=", route_computation: lookup", lookup="ports_per_engine: 2"), marks=pytest.mark.study,
    ),
    pytest.param(
        config_of(more=", route_computation: lookup", lookup="lag: {members: 2, max_members: 2}"),
        marks=pytest.mark.study,
    ),
    pytest.param(config_of(BY_ENTROPY, ", flit_bits: 80", ", entropy: {values: 5}"), marks=pytest.mark.study),
    pytest.param(
        config_of(BY_ENTROPY, ", route_computation: lookup", ", entropy: {values: 5}", "ports_per_engine: 1"),
        marks=pytest.mark.study,
    ),
])  # fmt: skip
def test_rtl_is_the_simulator_with_engines_groups_of_links_and_entropy(config: Config) -> None:
    """Every flit in its cycle; routers that take another number for themselves are found."""
    setup = network_setup(config, TRAFFIC.load, TRAFFIC.seed, TRAFFIC.cycles)
    recorded = record_network(config, TRAFFIC, setup)
    assert replay_amaranth(recorded.component, recorded.replay).mismatches == 0 and recorded.packets > 20
    params = setup.design.params
    assert params[0].entropy_bits == (3 if config.traffic.entropy else 0)
    if config.router.route_computation == "lookup" and not STUDY:  # the fault does not depend on where routes come from
        return
    others = tuple(replace(router, spread_router=number ^ 1) for number, router in enumerate(params))
    wrong = replace(setup, design=replace(setup.design, params=others))
    fresh = record_network(config, TRAFFIC, wrong)
    assert replay_amaranth(fresh.component, fresh.replay, to_first=True).first is not None


def test_other_entropies_are_for_hosts_of_yours() -> None:
    """Routers are generated; a co-simulation does not know what hosts write."""
    config = config_of(BY_ENTROPY, ", flit_bits: 80", ", entropy: {per: message}")
    assert whole_network_design(config).params[0].entropy_bits == 16
    with pytest.raises(UserError, match=r"traffic\.entropy\.per must be flow or packet for the co-simulation"):
        record_network(config, TRAFFIC)


CLASSES = parse_config(
    "name: x\ntopology: {kind: hyperx, sizes: [2, 2]}\nrouting: {algorithm: minimal, spread: flow}\n"
    "router: {vcs: 5, buffer_flits: 3, qos: strict}\ntraffic: {classes: "
    "[{name: a, load: 0.2, vcs: 2, priority: 1}, {name: b, share: 1, vcs: 3, packet_flits: 3}]}\n"
)


def test_classes_of_traffic_have_all_ports_of_which_one_is_chosen() -> None:
    plan = routing_plan(CLASSES, build(CLASSES.topology, CLASSES.address))
    assert plan.among is not None and (plan.max_candidates, plan.among.max_candidates) == (1, 2)


@pytest.mark.study
def test_classes_of_traffic_spread_on_their_own_virtual_channels() -> None:
    """Both ports are there for every class that a host sends, and no packet leaves the VCs of its class."""
    params = whole_network_design(CLASSES).params
    inject = int(routing_plan(CLASSES, build(CLASSES.topology, CLASSES.address)).inject_mask)
    entered = [v for v in range(5) if inject >> v & 1]
    assert {0 if v < 2 else 1 for v in entered} == {0, 1}
    assert [router.spread_router for router in params] == [0, 1, 2, 3]
    assert json.loads(json.dumps(router_parameters_as_data(params[0])))["quality"]["of_vc"] == [0, 0, 1, 1, 1]
    for router in params:
        (far,) = [route for route in router.routes if route.ports.bit_count() == 2]  # to the opposite corner
        assert far.ports == 0b110
        for route, i, v, o in itertools.product(router.routes, range(3), range(5), range(3)):
            assert router.vc_mask(route.route_class, i, v, o) & ~(0b11 if v < 2 else 0b11100) == 0
        assert all(router.vc_mask(far.route_class, 0, v, o) for v in entered for o in (1, 2))


@pytest.mark.study
def test_rtl_is_the_simulator_with_classes_of_traffic() -> None:
    recorded = record_network(CLASSES, NetworkTraffic(load=0.6, cycles=60, seed=4))
    assert recorded.packets > 40
    assert replay_amaranth(recorded.component, recorded.replay).mismatches == 0


@pytest.mark.parametrize(("config", "said"), [
    (config_of("algorithm: minimal, spread: packet"), "it draws random numbers"),
    (config_of(BY_ENTROPY, other=", entropy: {per: flow}"), r"flit_bits must be at least 72 \(the header\), not 64"),
    (config_of(BY_ENTROPY, ", host_ports: axi_stream, flit_bits: 80", ", entropy: {}"), r"traffic\.entropy must be n"),
])  # fmt: skip
def test_what_hardware_cannot_do_is_refused(config: Config, said: str) -> None:
    with pytest.raises(UserError, match=said):
        whole_network_design(config)


@pytest.mark.parametrize(("changes", "said"), [
    ({"spread_router": -1}, r"spread_router must be below 2\*\*32, not -1"),
    ({"lookahead": LookAhead(behind=(None,)), "rc_cycles": 1, "width_bits": 64}, r"behind must have ports=3 routers"),
    ({"spread_router": None, "entropy_bits": 2}, "entropy_bits must be 0 without spread_router, not 2"),
    ({"routes": (Route(3, 0, 1),)}, "spread_router must be None with escapes"),
])  # fmt: skip
def test_parameters_that_do_not_fit(changes: dict[str, object], said: str) -> None:
    given = {"ports": 3, "vcs": 2, "buffer_flits": 4, "width_bits": 32, "address_bits": 10, "spread_router": 1}
    with pytest.raises(ValueError, match=said):
        RouterParams(**(given | changes))  # type: ignore[arg-type]
