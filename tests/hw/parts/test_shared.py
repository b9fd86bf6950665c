"""Parts with values at their inputs: the same in a simulation and as instances."""

import re

import pytest
from amaranth.hdl import Const, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hopforge.gen.tools.yosys import run_yosys
from hopforge.gen.verilog.writer import to_rtlil
from hopforge.hw.allocation.crossbar import OneHotMux
from hopforge.hw.parts.shared import place


class Pair(wiring.Component):
    """Two equal multiplexers: one with values at all inputs, one with an input of the parent's."""

    def __init__(self, **more):
        self.more = more
        super().__init__({"a": In(3), "b": In(3), "select": In(2), "out": Out(3).array(2)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for n, words in enumerate(({"words__0": self.a, "words__1": self.b}, {"words__0": Const(5, 3)})):
            mux = OneHotMux(inputs=2, width_bits=3)
            place(m, f"mux{n}", mux, platform, 2, 3, select=self.select, **words, **self.more)
            if n:
                m.d.comb += mux.words[1].eq(self.a ^ self.b)
            m.d.comb += self.out[n].eq(mux.out)
        return m


@pytest.mark.parametrize("shared", [False, True])
def test_values_reach_the_inputs(shared: bool, tmp_path) -> None:
    (tmp_path / "pair.il").write_text(to_rtlil(Pair(), "pair", shared=shared))
    log = run_yosys(
        "read_rtlil pair.il\nhierarchy -check -top pair\nproc\nflatten\nopt\n"
        "eval -set a 6 -set b 2 -set select 1 -show out__0 -show out__1\n"
        "eval -set a 6 -set b 2 -set select 2 -show out__0 -show out__1\n",
        tmp_path,
    )
    shown = re.findall(r"\\out__(\d) = 3'(\d+)", log)
    assert [(int(port), int(bits, 2)) for port, bits in shown] == [(0, 6), (1, 5), (0, 2), (1, 4)]


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"word": Signal(3)}, "mux0 has no port word; there are select, words__0, words__1, out"),
        ({"words__2": Signal(3)}, "mux0 has no port words__2; there are select, words__0, words__1, out"),
    ],
)
def test_an_unknown_port_is_named(inputs, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        Pair(**inputs).elaborate(None)


def test_widths_must_agree() -> None:
    mux = OneHotMux(inputs=2, width_bits=3)
    with pytest.raises(ValueError, match=r"^mux\.words__1 must have 3 bits, not 4$"):
        place(Module(), "mux", mux, None, words__1=Signal(4))
