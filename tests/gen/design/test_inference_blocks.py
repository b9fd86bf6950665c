"""Blocks to synthesize that are made on request: inference, interfaces of hosts, engines at outputs."""

from pathlib import Path

from hopforge.gen.design.inference_blocks import inference_blocks
from hopforge.gen.design.router_blocks import router_blocks
from hopforge.hw.agents.dqn_inference import DqnInference
from hopforge.hw.network.interface import NetworkInterface
from hopforge.hw.ports.next_lookup import NextLookup
from hopforge.hw.ports.shared_lookup import SharedLookup
from hopforge.model.config import load_config, parse_config

ROOT = Path(__file__).parents[3]


def built(block):
    made = block.build()
    made._MustUse__used = True  # only looked at
    return made


def test_networks_of_the_table():
    for name, block in inference_blocks().items():
        made = built(block)
        assert isinstance(made, DqnInference)
        bits = f"a{made.activation_bits}" if made.activation_bits != 8 else ""
        assert name == f"dqn{made.widths[1]}_{made.lanes}{bits}"


def test_interface_of_a_host():
    blocks = router_blocks(load_config(ROOT / "configs/request_reply.yml"))
    assert isinstance(built(blocks["network_interface"]), NetworkInterface)
    assert blocks["network_interface"].on_request


def test_engines_at_outputs_and_inputs():
    text = (
        "name: a\ntopology: {kind: mesh, radices: [2, 2]}\n"
        "router: {vcs: 2, buffer_flits: 2, route_computation: lookup, lookahead: true, flit_bits: 64}\n"
        "lookup: {pipeline_depth: 2, reduction: false, cache: {entries: 4, ways: 2}}\n"
    )
    blocks = router_blocks(parse_config(text))
    made = {name: type(built(block)) for name, block in blocks.items() if name.startswith("engine")}
    assert set(made.values()) == {NextLookup, SharedLookup}
