"""Networks of RTL routers with classes of traffic: every flit in its cycle; what hardware refuses."""

import re
from typing import Any

import pytest

from hopforge.gen.design.configured import router_design, stream_design, whole_network_design
from hopforge.gen.verilog.writer import to_verilog
from hopforge.hw.router.router import Router
from hopforge.model.config import Config, parse_config
from hopforge.model.errors import UserError
from hopforge.sim.benches.network import NetworkTraffic, record_network
from hopforge.sim.bounds.prepared import prepare_bounds
from hopforge.sim.drive.replay import replay_amaranth


def mesh(qos: str, **more: Any) -> Config:
    router = "".join(f", {key}: {value}" for key, value in more.items())
    return parse_config(
        "name: mesh\ntopology: {kind: mesh, radices: [2, 2]}\n"
        f"router: {{vcs: 3, buffer_flits: 3, qos: {qos}{router}}}\n"
        "traffic: {classes: [{name: a, load: 0.2, vcs: 1, priority: 1, weight: 1}, "
        "{name: b, share: 1, vcs: 2, weight: 2, packet_flits: 3}]}\n"
    )


@pytest.mark.parametrize(
    "qos", ["weighted", *(pytest.param(one, marks=pytest.mark.study) for one in ("none", "strict"))]
)
def test_hardware_delivers_every_flit_in_its_cycle(qos: str) -> None:
    network = record_network(mesh(qos), NetworkTraffic(load=0.6, cycles=60, seed=2))
    assert network.packets > 60
    result = replay_amaranth(network.component, network.replay)
    assert result.first is None, str(result.first)
    assert result.cycles > network.simulated_cycles > 60


def test_only_routers_with_quality_have_a_filter() -> None:
    verilog = {qos: to_verilog(Router(params=router_design(mesh(qos)).params[0]), "r") for qos in ("none", "strict")}
    assert not re.search(r"\bdue\b", verilog["none"])
    assert re.search(r"\bdue\b", verilog["strict"])


def test_what_hardware_cannot_do_is_one_line() -> None:
    streams = mesh("strict", host_ports="axi_stream")
    with pytest.raises(UserError, match=r"^traffic.classes must be empty with router.host_ports=axi_stream"):
        stream_design(streams, whole_network_design(mesh("strict")), 0)
    with pytest.raises(UserError, match=r"^traffic.classes: bounds are of patterns"):
        prepare_bounds(mesh("strict"))
