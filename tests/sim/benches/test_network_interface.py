"""Traffic and software around a small network, played to its hardware on Amaranth's own simulator."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hopforge.gen.design.configured import network_design
from hopforge.hw.network.network import Network
from hopforge.model.config import load_config
from hopforge.model.lookup.csr import csr_map
from hopforge.model.router.configured import network_links
from hopforge.model.router.csr import ROUTER_CSR_ADDR_BITS, engine_address, router_csr_map
from hopforge.model.router.links import topology_hosts
from hopforge.sim.benches.network_interface import InterfaceTraffic, disagreeing, network_interface_replay
from hopforge.sim.drive.replay import replay_amaranth

CONFIGS = Path(__file__).parents[3] / "configs" / "mutation" / "network"


@pytest.mark.parametrize("name", ["table", pytest.param("lookup", marks=pytest.mark.study)])
def test_hardware_equals_the_golden_network(name: str) -> None:
    design = disagreeing(network_design(load_config(CONFIGS / f"{name}.yml", hardware=True)))
    replay = network_interface_replay(design, InterfaceTraffic(cycles=1500, seed=1))
    network = Network(
        routers=design.params, links=network_links(design.config, design.topology),
        hosts=topology_hosts(design.topology),
    )  # fmt: skip
    assert replay_amaranth(network, replay).first is None
    inputs = {port: replay.driven[:, column] for column, port in enumerate(replay.inputs)}
    read = set(inputs["csr__addr"][inputs["csr__re"] == 1].tolist())
    own = {register.address for register in router_csr_map(design.params[0])}
    assert {router << ROUTER_CSR_ADDR_BITS | address for router in range(len(design.params)) for address in own} <= read
    assert inputs["csr__we"].sum() > 20
    flags = router_csr_map(design.params[0])["UNROUTABLE_LO"].address | 1 << ROUTER_CSR_ADDR_BITS
    shown = replay.expected[1:, 0][(inputs["csr__re"] == 1)[:-1] & (inputs["csr__addr"] == flags)[:-1]]
    if name == "table":  # a packet that the middle router alone does not know comes from a neighbour
        assert int(np.bitwise_or.reduce(shown)) & 0b110
    words = {output.name: replay.expected[:, column] for column, output in enumerate(replay.outputs)}
    assert all(words[f"host__{host}__out_valid"].sum() > 20 for host in range(design.topology.hosts))


def test_lookups_are_lost_on_the_way_and_writes_of_rows_overrun() -> None:
    """Without these, flags of ports between routers and reads that clear something show no fault."""
    design = network_design(load_config(CONFIGS / "lookup.yml", hardware=True))
    replay = network_interface_replay(design, InterfaceTraffic(cycles=1200, seed=1))
    inputs = {port: replay.driven[:, column] for column, port in enumerate(replay.inputs)}

    def shown(address: int) -> np.ndarray:
        reads = (inputs["csr__re"] == 1) & (inputs["csr__addr"] == address)
        return replay.expected[1:, 0][reads[:-1]]

    flags = router_csr_map(design.params[0])["UNROUTABLE_LO"].address
    between = [int(np.bitwise_or.reduce(shown(flags | router << ROUTER_CSR_ADDR_BITS))) for router in (0, 1)]
    assert all(word & 0b110 for word in between) and (between[0] | between[1]) & 0b110 == 0b110
    lookup = design.params[0].lookup
    assert lookup is not None
    status = csr_map(lookup)["STATUS"]
    places = [
        engine_address(engine, status.address) | router << ROUTER_CSR_ADDR_BITS
        for router in (0, 1) for engine in range(design.params[0].engines)
    ]  # fmt: skip
    overruns = [status.decode(int(word))["tcam_overrun"] for place in places for word in shown(place)]
    assert 0 < sum(overruns) < len(overruns)


def test_counters_begin_where_they_are_told_to() -> None:
    design = network_design(load_config(CONFIGS / "table.yml", hardware=True))
    begin = 2**32 - 1024
    traffic = InterfaceTraffic(cycles=2600, seed=3)
    plain, high = (network_interface_replay(design, replace(traffic, count_from=start)) for start in (0, begin))
    differ = plain.expected[:, 0] != high.expected[:, 0]
    assert np.array_equal(plain.driven, high.driven) and np.array_equal(plain.expected[:, 1:], high.expected[:, 1:])
    assert set(((high.expected - plain.expected)[differ, 0] % 2**32).tolist()) == {begin}
    assert 100 < differ.sum() < 2000
