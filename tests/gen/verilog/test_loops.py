"""Generated networks have no combinational loop, which no simulator could end.

Amaranth looks for loops, bit by bit, in what it converts at once. What users get is converted part by part
(`hopforge.hw.parts.shared`), where it sees no loop that goes through two parts: so these networks are converted as a
whole.
"""

import pytest
from amaranth.hdl import Module
from amaranth.lib.wiring import Component, In, Out
from tests.hw.network import test_path_choice
from tests.hw.ports import test_spread_choice

from hopforge.gen.design.configured import whole_network_design
from hopforge.gen.packages.network import network_component
from hopforge.gen.verilog.writer import to_rtlil
from hopforge.hw.parts.shared import shared
from hopforge.model.config import Config

ENTROPY = ", entropy: {values: 5}"
LOOKUP = ", route_computation: lookup"
spread = test_spread_choice.config_of


class Inverter(Component):
    data: In(1)
    out: Out(1)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += self.out.eq(~self.data)
        return m


class Ring(Component):
    """Two equal parts, one behind the other or in a circle."""

    data: In(1)
    out: Out(1)

    def __init__(self, *, closed: bool):
        self.closed = closed
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        first, second = Inverter(), Inverter()
        m.submodules.first, m.submodules.second = shared(first, platform), shared(second, platform)
        m.d.comb += [
            first.data.eq(second.out if self.closed else self.data), second.data.eq(first.out),
            self.out.eq(second.out),
        ]  # fmt: skip
        return m


def test_a_loop_through_two_parts_is_found() -> None:
    to_rtlil(Ring(closed=True), "top", shared=True)
    to_rtlil(Ring(closed=False), "top")
    with pytest.raises(Exception, match="Combinational cycle detected"):
        to_rtlil(Ring(closed=True), "top")


@pytest.mark.parametrize("config", [
    test_path_choice.config_of(),
    spread(test_spread_choice.BY_ENTROPY, ", lookahead: true, rc_cycles: 2, flit_bits: 90", ENTROPY),
    pytest.param(
        spread(test_spread_choice.BY_ENTROPY, LOOKUP, ENTROPY, "ports_per_engine: 2"), marks=pytest.mark.study
    ),
])  # fmt: skip
def test_networks_have_no_loop(config: Config) -> None:
    assert "module" in to_rtlil(network_component(whole_network_design(config)), "top")
