"""Where the counters of a mutated netlist keep their bits, so that a trace can begin with any count.

A mutant behind a register takes its name away: yosys gives the register a new one, and the old name is what is seen.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from hopforge.sim.drive.runner import SimulatorError

__all__ = ["CounterBits", "counter_bits"]

_COUNTER = re.compile(r"(?P<of>(?:.*\.)?(?:count_\w+(?=_(?:low|high|at\d+)$)|drops_counted))(?:_(?P<part>\w+))?")
"""Registers of `hw.parts.event_counter`, `hw.parts.sliced_counter` and of the drop counters of inputs."""
_BITS = 32
_DECLARED = re.compile(r"^ +(?:output +)?(reg|wire) (?:\[(\d+):0\] )?(\\\S+|\w+) *(?:=.*)?;$", re.MULTILINE)
_ASSIGNED = re.compile(r"^ +assign (.+?) = (.+);$", re.MULTILINE)
_SIGNAL = re.compile(r"(\\\S+|\w+)(?: *\[(\d+)(?::(\d+))?\])?")


class CounterBits(NamedTuple):
    """Neighbouring bits of a register that belong to a counter.

    Attributes
    ----------
    register : str
        Its name in the Verilog, without the sign of an escaped name.
    lowest, width : int
        Its bits.
    first : int
        Bit of the count that the lowest one holds.
    """

    register: str
    lowest: int
    width: int
    first: int


class _Netlist:
    """Declarations of a Verilog text of yosys, and what each bit of its wires is assigned from."""

    def __init__(self, verilog: str) -> None:
        self.widths: dict[str, int] = {}
        self.registers: set[str] = set()
        for kind, high, name in _DECLARED.findall(verilog):
            self.widths[name] = int(high or 0) + 1
            if kind == "reg":
                self.registers.add(name)
        self.sources: dict[tuple[str, int], tuple[str, int]] = {}
        for target, value in _ASSIGNED.findall(verilog):
            # with a mutant: CHOSEN ? what the mutant gives : what was there
            kept = value.rpartition(" : ")[2] if " ? " in value else value
            if _SIGNAL.fullmatch(kept.strip()):
                self.sources.update(zip(self._bits(target), self._bits(kept), strict=False))

    def _bits(self, text: str) -> list[tuple[str, int]]:
        """Return the bits of a signal or of a concatenation, the lowest first."""
        found: list[tuple[str, int]] = []
        for name, high, low in reversed(_SIGNAL.findall(text)):
            if name not in self.widths:
                continue
            top = int(high) if high else self.widths[name] - 1
            bottom = int(low) if low else top if high else 0
            found += [(name, bit) for bit in range(bottom, top + 1)]
        return found

    def origin(self, name: str, bit: int) -> tuple[str, int] | None:
        """Return the bit of a register that a bit of a signal shows; None if logic makes it."""
        at: tuple[str, int] | None = (name, bit)
        while at is not None and at[0] not in self.registers:
            at = self.sources.get(at)
        return at


def counter_bits(verilog: str) -> list[CounterBits]:
    """Return all bits of counters, those that are next to each other together.

    Raises
    ------
    SimulatorError
        A counter has a bit without a register: it would not begin where its trace does.
    """
    netlist = _Netlist(verilog)
    found: list[CounterBits] = []
    bits: dict[str, set[int]] = defaultdict(set)
    for name, width in netlist.widths.items():
        counter = _COUNTER.fullmatch(name.removeprefix("\\"))
        if counter is not None:
            part = counter["part"]
            first = int(part[2:]) if part and part.startswith("at") else {"high": 2}.get(part, 0)
            places = [netlist.origin(name, bit) for bit in range(width)]
            found += _runs(places, first)
            bits[counter["of"]] |= {first + bit for bit, place in enumerate(places) if place is not None}
    for name, there in bits.items():
        lost = sorted(set(range(_BITS)) - there)
        if lost:
            raise SimulatorError(f"counter {name}: no register holds bit {lost[0]}, so that it cannot begin anywhere")
    return sorted(set(found))


def _runs(places: list[tuple[str, int] | None], first: int) -> Iterator[CounterBits]:
    """Yield neighbouring bits of one register together; `first` is the bit of the count in the first place."""
    begin = 0
    for bit in range(1, len(places) + 1):
        before = places[bit - 1]
        if before is not None and bit < len(places) and places[bit] == (before[0], before[1] + 1):
            continue
        place = places[begin]
        if place is not None:
            yield CounterBits(place[0].removeprefix("\\"), place[1], bit - begin, first + begin)
        begin = bit
