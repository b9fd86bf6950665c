"""Hosts choose one of several paths in hardware: the unit by itself, and a network beside the simulator."""

import os
from dataclasses import replace

import numpy as np
import pytest
from amaranth.sim import Simulator

from hopforge.gen.design.configured import whole_network_design
from hopforge.hw.network.path_choice import PathChoice
from hopforge.model.config import Config, parse_config
from hopforge.model.errors import UserError
from hopforge.model.router.params import RouterParams
from hopforge.model.topology.spread import flow_place
from hopforge.sim.benches.network import NetworkTraffic, record_network
from hopforge.sim.benches.network_setup import network_setup
from hopforge.sim.drive.replay import replay_amaranth

STUDY = os.environ.get("HOPFORGE_STUDY") == "1"
TRAFFIC = NetworkTraffic(load=0.5, cycles=80, seed=4)


LOOKUP = (
    "lookup: {functions: [arbitrary], reduction: false, mshrs: 2, ENGINES, cache: {entries: 2, ways: 2}, "
    "tcam: {kind: flops, rows: 8, latency_cycles: 2}}\n"
)


def config_of(spread: str = "entropy", entropy: str = "{per: packet}", more: str = "", engines: str = "") -> Config:
    traffic = f"packet_range: [1, 3]{f', entropy: {entropy}' if entropy else ''}"
    section = LOOKUP.replace("ENGINES", engines) if engines else ""
    return parse_config(
        f"name: x\ntopology: {{kind: torus, radices: [3]}}\nrouting: {{algorithm: tables, spread: {spread}}}\n"
        f"tables: {{scheme: k_shortest, lmc: 1, layers: fewest}}\n{section}"
        f"router: {{vcs: 2, buffer_flits: 3{more}}}\ntraffic: {{{traffic}}}\n"
    )


@pytest.mark.parametrize("turns", [True, False])
def test_the_number_of_the_path_goes_into_heads(turns: bool) -> None:
    """Three hosts, four paths: packets of one flit and of two, and gaps, beside a count by hand."""
    params = RouterParams(ports=3, vcs=2, buffer_flits=4, width_bits=32, address_bits=12, rc="table", routes=())
    first = (2, 0, 3)
    unit = PathChoice(params=params, lmc=2, first=first, turns=turns)
    rng, sent = np.random.default_rng(3), [0, 0, 0]

    async def drive(ctx) -> None:  # type: ignore[no-untyped-def]
        for _ in range(300):
            host, kind, valid = (int(rng.integers(bound)) for bound in (3, 4, 2))
            data = host << 2 | int(rng.integers(1 << 20)) << 12
            ctx.set(unit.valid, valid)
            ctx.set(unit.flit.kind, kind)
            ctx.set(unit.flit.vc, int(rng.integers(2)))
            ctx.set(unit.flit.data, data)
            path = (first[host] + (sent[host] if turns else 0)) % 4
            assert ctx.get(unit.path_flit.data) == (data | path if kind & 1 else data)
            assert ctx.get(unit.path_flit.kind) == kind and ctx.get(unit.path_flit.vc) == ctx.get(unit.flit.vc)
            sent[host] += valid & kind & 1
            await (ctx.tick() if turns else ctx.delay(1e-6))

    simulator = Simulator(unit)
    if turns:
        simulator.add_clock(1e-6)
    simulator.add_testbench(drive)
    simulator.run()
    assert min(sent) > 10


@pytest.mark.parametrize(("changes", "said"), [
    ({"lmc": 0}, "lmc must be from 1 to address_bits=12, not 0"),
    ({"first": (4,)}, "first must have paths below 4, not 4"),
    ({"first": (0,) * 1025}, "address_bits must have room for 4100 addresses, not be 12"),
])  # fmt: skip
def test_bad_parameters(changes: dict[str, object], said: str) -> None:
    params = RouterParams(ports=3, vcs=2, buffer_flits=4, width_bits=32, address_bits=12, rc="table", routes=())
    with pytest.raises(ValueError, match=said):
        PathChoice(**{"params": params, "lmc": 2, "first": (0,), "turns": False, **changes})  # type: ignore[arg-type]


ASKS = ", route_computation: lookup"


@pytest.mark.parametrize(("spread", "entropy", "more", "engines"), [
    ("flow", "", "", ""),
    pytest.param("entropy", "{per: packet}", ASKS, "ports_per_engine: 2", marks=pytest.mark.study),
    ("entropy", "{per: packet}", ", lookahead: true, rc_cycles: 2", ""),
    pytest.param("entropy", "{per: packet}", "", "", marks=pytest.mark.study),
    pytest.param("entropy", "{per: packet}", f"{ASKS}, lookahead: true, flit_bits: 90", "pipeline_depth: 3",
                 marks=pytest.mark.study),
    pytest.param("flow", "", ASKS, "lag: {members: 2, max_members: 2}", marks=pytest.mark.study),
])  # fmt: skip
def test_rtl_is_the_simulator(spread: str, entropy: str, more: str, engines: str) -> None:
    """Every flit in its cycle, with the address that its source chose; a host that chooses otherwise is found."""
    config = config_of(spread, entropy, more, engines)
    setup = network_setup(config, TRAFFIC.load, TRAFFIC.seed, TRAFFIC.cycles)
    recorded = record_network(config, TRAFFIC, setup)
    result = replay_amaranth(recorded.component, recorded.replay)
    assert result.mismatches == 0 and recorded.packets > 20
    paths = setup.design.paths
    assert paths is not None and paths.turns == (spread == "entropy")
    assert paths.first == tuple(tuple(int(flow_place(s, d, 3, 2)) for d in range(3)) for s in range(3))
    if engines and not STUDY:  # the fault does not depend on where routes come from
        return
    wrong = replace(paths, first=tuple(tuple(1 - path for path in of) for of in paths.first))
    fresh = record_network(config, TRAFFIC, replace(setup, design=replace(setup.design, paths=wrong)))
    assert replay_amaranth(fresh.component, fresh.replay, to_first=True).first is not None


@pytest.mark.parametrize(("config", "said"), [
    (config_of("packet", ""), r"routing\.spread must be flow or entropy in hardware with tables\.scheme=k_shortest"),
    (config_of(entropy="{per: message}"), r"traffic\.entropy\.per must be flow or packet in hardware, not message"),
    (config_of(entropy="{values: 3}"), r"traffic\.entropy\.values must be a multiple of the 2 paths in hardware"),
    (config_of(more=", host_ports: axi_stream"), r"router\.host_ports must be flits in hardware with tables\.scheme"),
])  # fmt: skip
def test_what_hardware_cannot_do_is_refused(config: Config, said: str) -> None:
    with pytest.raises(UserError, match=said):
        whole_network_design(config)
