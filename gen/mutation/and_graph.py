"""Sequential circuits as graphs of AND gates and inverters: read from and written to binary AIGER files.

A literal is 2 · variable, plus 1 if it is inverted; 0 is false, 1 is true. Equal gates are one gate.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["AndGraph", "at", "read_aiger", "write_aiger"]

_PLACE = re.compile(r"(?:\[\d+\])+$")


@dataclass
class AndGraph:
    """Inputs, registers that are 0 at first, and gates.

    Attributes
    ----------
    inputs : list of str
        Their names; input n is variable n + 1.
    registers : list of int
        Next values, as literals; register n is the variable behind the inputs and n others.
    outputs : list of (str, int)
        Names and literals.
    gates : list of (int, int)
        What each ANDs, as literals; gate n is the variable behind the registers and n others.
    words : list of str
        For each register the name of the word or the memory that it is a bit of; empty if nothing is known of that.
    """

    inputs: list[str] = field(default_factory=list)
    registers: list[int] = field(default_factory=list)
    outputs: list[tuple[str, int]] = field(default_factory=list)
    gates: list[tuple[int, int]] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    _known: dict[tuple[int, int], int] = field(default_factory=dict)

    @property
    def first_gate(self) -> int:
        """Variable of the first gate."""
        return 1 + len(self.inputs) + len(self.registers)

    def both(self, one: int, other: int) -> int:
        """Return the literal of ``one & other``, by a new gate if there is none."""
        if one > other:
            one, other = other, one
        if one == 0 or one == other ^ 1:
            return 0
        if one in {1, other}:
            return other
        if (one, other) not in self._known:
            self._known[one, other] = 2 * (self.first_gate + len(self.gates))
            self.gates.append((one, other))
        return self._known[one, other]

    def either(self, literals: Iterable[int]) -> int:
        """Return the literal of the OR of `literals`."""
        found = 1
        for literal in literals:
            found = self.both(found, literal ^ 1)
        return found ^ 1

    def differ(self, one: int, other: int) -> int:
        """Return the literal of ``one ^ other``."""
        return self.either([self.both(one, other ^ 1), self.both(one ^ 1, other)])

    def add(self, other: "AndGraph", values: dict[int, int]) -> dict[int, int]:
        """Copy the gates of `other`; `values` says what stands for its inputs and registers.

        Returns
        -------
        dict
            Variable of `other` to literal of this graph, gates included.
        """
        here = {0: 0, **values}
        for number, (one, two) in enumerate(other.gates, other.first_gate):
            here[number] = self.both(here[one >> 1] ^ one & 1, here[two >> 1] ^ two & 1)
        return here

    def values(self, inputs: Sequence[int], registers: Sequence[int]) -> list[int]:
        """Return the value, 0 or 1, of every variable; `at` reads a literal of it."""
        found = [0, *inputs, *registers]
        for one, other in self.gates:
            found.append((found[one >> 1] ^ one & 1) & (found[other >> 1] ^ other & 1))
        return found


def at(values: Sequence[int], literal: int) -> int:
    """Return the value of a literal."""
    return values[literal >> 1] ^ literal & 1


def read_aiger(file: Path) -> AndGraph:
    """Read a binary file with the names of its inputs and outputs, and registers that begin with 0.

    Raises
    ------
    ValueError
        It is something else.
    """
    data = file.read_bytes()
    head, _, rest = data.partition(b"\n")
    words = head.split()
    if words[:1] != [b"aig"] or len(words) != 6:
        raise ValueError(f"{file.name} must be a binary AIGER file with outputs only")
    most, inputs, registers, outputs, gates = map(int, words[1:])
    if most != inputs + registers + gates:
        raise ValueError(f"{file.name}: variables must be inputs, registers and gates, nothing else")
    lines = rest.split(b"\n", registers + outputs)
    graph = AndGraph([""] * inputs)
    for line in lines[:registers]:
        following, *begin = map(int, line.split())
        if begin not in ([], [0]):
            raise ValueError(f"{file.name}: registers must begin with 0")
        graph.registers.append(following)
    literals = [int(line) for line in lines[registers : registers + outputs]]
    body, place = lines[-1], 0

    def number() -> int:
        nonlocal place
        value = shift = 0
        while True:
            byte = body[place]
            place += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    for variable in range(graph.first_gate, graph.first_gate + gates):
        one = 2 * variable - number()
        graph.gates.append((one - number(), one))
    names = dict.fromkeys(range(outputs), "")
    graph.words = [""] * registers
    for symbol in body[place:].decode().split("\nc\n")[0].splitlines():
        of, _, name = symbol.partition(" ")
        if of[:1] == "i" and of[1:].isdigit():
            graph.inputs[int(of[1:])] = name
        elif of[:1] == "l" and of[1:].isdigit():
            graph.words[int(of[1:])] = _PLACE.sub("", name)
        elif of[:1] == "o" and of[1:].isdigit():
            names[int(of[1:])] = name
    graph.outputs = [(names[index], literal) for index, literal in enumerate(literals)]
    return graph


def write_aiger(graph: AndGraph, file: Path) -> None:
    """Write a binary file, without names."""
    counts = (len(graph.inputs), len(graph.registers), len(graph.outputs), len(graph.gates))
    lines = [" ".join(map(str, ("aig", graph.first_gate - 1 + len(graph.gates), *counts)))]
    lines += [str(following) for following in graph.registers]
    lines += [str(literal) for _, literal in graph.outputs]
    body = bytearray()
    for variable, (one, other) in enumerate(graph.gates, graph.first_gate):
        for delta in (2 * variable - other, other - one):
            rest = delta
            while rest >= 0x80:
                body.append(rest & 0x7F | 0x80)
                rest >>= 7
            body.append(rest)
    file.write_bytes("\n".join([*lines, ""]).encode() + bytes(body))
