"""Cells of a library as Verilog, and the sum of energies, against calculations by hand."""

import dataclasses
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from gate_library import LIBRARY

from hopforge.gen.synth.cells import Library
from hopforge.gen.synth.gate_cells import read_cells, supply
from hopforge.gen.synth.gate_energy import Activity, Bit, clock_bits, gate_energy, read_netlist, uniform
from hopforge.model.errors import UserError

SMALL = Library("small", "", LIBRARY)

NETLIST = """
module top(clk, a, b, q);
  input clk; wire clk; input a; input [1:0] b; output q; wire _0_; wire \\state.bit ; wire gated;
  NAND2 _1_ (
    .A(a),
    .B(b[1]),
    .Z(_0_)
  );
  GATE _3_ (.CK(clk), .E(a), .GCK(gated));
  DFF _2_ (
    .CK(gated),
    .D(_0_),
    .Q(\\state.bit )
  );
  memory ram (.clk(clk), .data({ a, b }));
  assign q = \\state.bit ;
endmodule
"""


def test_a_cell_becomes_a_module() -> None:
    cells = read_cells(SMALL, ["DFF", "GATE", "NAND2"])
    assert "assign Z = ~(A & B);" in cells["NAND2"].verilog()
    assert "always @(posedge clocked) IQ <= D;" in cells["DFF"].verilog()
    assert "always @* if (~CK) IQ <= E;" in cells["GATE"].verilog()
    assert list(cells["GATE"].pins) == ["CK", "E", "GCK"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LIBRARY.replace("nom_voltage", "voltage"), "no nom_voltage in the library; energies need it"),
        (LIBRARY.replace("capacitive_load_unit", "load"), "no capacitive_load_unit in the library; energies need it"),
    ],
)
def test_a_library_without_units_is_refused(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        supply(Library("small", "", text))


def test_unknown_cells_and_functions_are_refused() -> None:
    with pytest.raises(UserError, match="small: no cell OAI21"):
        read_cells(SMALL, ["OAI21"])
    odd = Library("small", "", LIBRARY.replace("!(A | B)", "A B"))
    with pytest.raises(UserError, match="cell NOR2: the function 'A B' cannot be read"):
        read_cells(odd, ["NOR2"])["NOR2"].verilog()


def test_netlist_and_clock() -> None:
    netlist = read_netlist(NETLIST, SMALL, "top")
    assert [kind for kind, _ in netlist.instances] == ["NAND2", "GATE", "DFF"]
    assert netlist.instances[0][1] == {"A": Bit("a", 0), "B": Bit("b", 1), "Z": Bit("_0_", 0)}
    assert netlist.instances[2][1]["Q"] == Bit("state.bit", 0)
    assert clock_bits(netlist, "clk") == {Bit("clk", 0), Bit("gated", 0)}
    with pytest.raises(UserError, match="top: the netlist has no cells of small"):
        read_netlist("module top(a);\nendmodule\n", SMALL, "top")


def test_energy_by_hand() -> None:
    netlist = read_netlist(NETLIST, SMALL, "top")
    changes = {"clk": 2.0, "gated": 0.5, "a": 0.3, "b": 0.2, "_0_": 0.25, "state.bit": 0.125}
    found = gate_energy(netlist, lambda bit: Activity(changes[bit.net], 0.25), SMALL, "clk")
    volts = 0.5 * 2.0**2  # half of V², times fF: fJ
    switching = volts * (0.3 * (2.0 + 1.0) + 0.2 * 2.0 + 0.25 * 1.0)  # A and E, B, D
    internal = 0.25 * 2.0 + 0.125 * 4.0  # NAND2 and Q; a change is half a rise and half a fall
    clock = 0.5 * (0.75 * 2.0 + 0.25 * 6.0) + volts * (2.0 * 1.0 + 0.5 * 0.5)  # CK of the DFF by D; caps of both gates
    assert 1000 * found.switching_pj == pytest.approx(switching)
    assert 1000 * found.internal_pj == pytest.approx(internal)
    assert 1000 * found.clock_pj == pytest.approx(clock)
    assert found.leakage_mw == pytest.approx(30e-6)
    assert found.cycle_pj(2.0) == pytest.approx((switching + internal + clock) / 1000 + 60e-6)


def test_energy_as_opensta_sums_it() -> None:
    netlist = read_netlist(NETLIST, SMALL, "top")
    found = gate_energy(netlist, uniform(netlist, "clk", 0.5), SMALL, "clk", as_opensta=True)
    # a change is a rise and a fall; half of the NAND's states follow each of its inputs; nets of inputs do not count
    clock = 2 * 2.0 * (0.5 * 2.0 + 0.5 * 6.0)
    assert 1000 * found.internal_pj == pytest.approx(0.5 * 2 * (2.0 * 0.5 + 2.0 * 0.5) + 0.5 * 2 * 4.0 + clock)
    assert 1000 * found.switching_pj == pytest.approx(0.5 * 2.0**2 * (0.5 * 1.0 + 2.0 * 0.5))
    assert found.clock_pj == 0


def test_leakage_has_a_unit() -> None:
    micro = Library("small", "", LIBRARY.replace('"1nW"', '"1uW"'))
    one, other = (read_cells(library, ["INV"])["INV"] for library in (SMALL, micro))
    assert other == dataclasses.replace(one, leakage_nw=1000 * one.leakage_nw)
