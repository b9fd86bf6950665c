"""Faults that never show are proved so, others are not; circuits of AND gates as files."""

from pathlib import Path

import pytest
from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib.wiring import Component, In, Out

from hopforge.gen.mutation.and_graph import AndGraph, at, read_aiger, write_aiger
from hopforge.gen.mutation.mutate import Netlist, write_netlist
from hopforge.gen.mutation.unreachable_fault import never_shows


class Ring(Component):
    """A 1 goes round three places; two of them are never 1 together, but no single cycle from any state says so."""

    def __init__(self) -> None:
        super().__init__({"go": In(1), "x": In(1), "y": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        place = Signal(3, init=1)
        with m.If(self.go):
            m.d.sync += place.eq(Cat(place[2], place[:2]))
        m.d.comb += self.y.eq((place[0] & self.x) | (place[0] & place[1]))
        return m


class Held(Component):
    """Shows a word only in the cycle after it came; what it holds otherwise does not count."""

    def __init__(self) -> None:
        super().__init__({"come": In(1), "word": In(2), "y": Out(2)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        valid, word = Signal(), Signal(2)
        m.d.sync += [valid.eq(self.come), word.eq(Mux(self.come, self.word, word + 1))]
        m.d.comb += self.y.eq(word & valid.replicate(2))
        return m


def cells(netlist: Netlist, kind: str) -> list[str]:
    lines = (netlist.folder / "netlist.il").read_text().splitlines()
    return [line.split()[2] for line in lines if line.startswith(f"  cell ${kind} ")]


def no_effect(netlist: Netlist, command: str) -> bool:
    return netlist.has_no_effect(netlist.by_hand(f"-module {netlist.top} {command}"), {}, steps=0, timeout_s=20)


def test_two_bits_are_never_one_together(tmp_path: Path) -> None:
    netlist = write_netlist(Ring(), "ring", tmp_path)
    found = {
        (mode, cell): no_effect(netlist, f"-mode {mode} -cell {cell} -port Y -portbit 0")
        for mode in ("const0", "const1")
        for cell in cells(netlist, "and")
    }
    # place[0] & place[1] is 0 for ever, place[0] & x is not
    assert len(found) == 4
    assert [mode for (mode, _), same in found.items() if same] == ["const0"]


@pytest.mark.parametrize(("bit", "begin"), [(0, 1), (1, 0), (2, 0)])
def test_a_mutated_register_begins_as_before(tmp_path: Path, bit: int, begin: int) -> None:
    """Without its first value nothing is known of the others: that two are never 1 together could not be proved."""
    netlist = write_netlist(Ring(), "ring", tmp_path)
    place = f"-cell {cells(netlist, 'sdffe')[0]} -port Q -portbit {bit} -wire place -wirebit {bit}"
    other = f"-ctrlbit {(bit + 1) % 3}"
    assert not no_effect(netlist, f"-mode cnot0 {other} {place}"), begin
    graph = read_aiger(tmp_path / "faulty.aig")
    assert len(graph.registers) == 3 and "" not in graph.inputs  # one that begins anyhow has more of both


def test_what_a_register_holds_may_not_count(tmp_path: Path) -> None:
    netlist = write_netlist(Held(), "held", tmp_path)
    mux = f"-cell {cells(netlist, 'mux')[0]}"
    assert [no_effect(netlist, f"-mode inv {mux} -port {port} -portbit 1") for port in "AB"] == [True, False]
    assert not no_effect(netlist, f"-mode inv {mux} -port S -portbit 0")


def test_graphs_are_files_and_back(tmp_path: Path) -> None:
    graph = AndGraph(["a", "b", "c"], [0])
    graph.registers = [graph.differ(2, 8)]
    graph.outputs = [("y", graph.either([graph.both(2, 5), 8]) ^ 1), ("z", 1)]
    write_aiger(graph, tmp_path / "x.aig")
    again = read_aiger(tmp_path / "x.aig")
    assert (again.registers, again.gates) == (graph.registers, graph.gates)
    assert [literal for _, literal in again.outputs] == [literal for _, literal in graph.outputs]
    for word in range(16):
        bits = [word >> place & 1 for place in range(4)]
        a, b, _, state = bits
        values = again.values(bits[:3], bits[3:])
        assert at(values, again.registers[0]) == a ^ state
        assert at(values, again.outputs[0][1]) == 1 - (a & (1 - b) | state)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"aag 1 1 0 0 0\n2\n", "must be a binary AIGER file"),
        (b"aig 3 1 1 0 0\n0\n", "variables must be"),
        (b"aig 2 1 1 0 0\n0 1\n", "registers must begin with 0"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, data: bytes, said: str) -> None:
    file = tmp_path / "x.aig"
    file.write_bytes(data)
    with pytest.raises(ValueError, match=said):
        never_shows(file, "fault")
