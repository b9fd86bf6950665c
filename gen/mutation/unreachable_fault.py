"""Proof that a fault never shows at the outputs of a circuit, whatever it is given from power-up on.

A circuit with and without the fault are in the same state at first. If in every state that the circuit reaches both
have the same outputs and the same next state, they are in the same state for ever. That is a property of the circuit
without the fault alone: a solver has to find out what holds of its states only, such as that two bits are never 1
together.

Where the fault reaches a register whose value does not count just then, the faulty circuit has this register for
itself, and the rest in common with the other one; then the same is asked of all other registers, and of the outputs.

The solver is abc. First it looks for the few gates that keep the fault from showing in the first cycles (``gla``),
everything else being free; then for a reason why they keep it from showing for ever (``pdr``).
"""

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from hopforge.gen.mutation.and_graph import AndGraph, at, read_aiger, write_aiger
from hopforge.gen.tools.abc import run_abc

__all__ = ["Twins", "never_shows", "twins"]

_FILE, _RUN = "shows.aig", "shows.cex"
_FIRST_FRAMES = 16
"""Cycles in which a run that shows the fault is looked for before a proof."""
_FRAMES = 40
"""First cycles that the gates of a proof are chosen for."""
_PROVED = re.compile(r"^Property proved\.", re.MULTILINE)


class Twins(NamedTuple):
    """A circuit and the same with a fault.

    Attributes
    ----------
    graph : AndGraph
        Both; one output: whether something that they have in common would differ.
    differences : list of int
        Literals, for every output whether it differs, then for every register whether its next value does.
    apart : tuple of int
        Registers of which each has its own.
    """

    graph: AndGraph
    differences: list[int]
    apart: tuple[int, ...]


def twins(circuit: AndGraph, selector: str, apart: Iterable[int] = ()) -> Twins:
    """Return a circuit beside itself with a fault.

    Parameters
    ----------
    circuit : AndGraph
        With the fault where the input `selector` is 1.
    selector : str
        Name of an input.
    apart : iterable of int
        Registers of which each has its own.
    """
    own = tuple(sorted(apart))
    both = AndGraph(list(circuit.inputs), [0] * (len(circuit.registers) + len(own)))
    right = {number: 2 * number for number in range(1, circuit.first_gate)}
    first = 1 + len(circuit.inputs)
    # what is kept of the register of the faulty circuit is whether it differs: of that a solver has less to find out
    wrong = right | {
        first + register: both.differ(right[first + register], 2 * (circuit.first_gate + place))
        for place, register in enumerate(own)
    }
    chosen = 1 + circuit.inputs.index(selector)
    pair = [both.add(circuit, {**values, chosen: bit}) for bit, values in enumerate((right, wrong))]

    def in_both(literal: int) -> tuple[int, int]:
        return pair[0][literal >> 1] ^ literal & 1, pair[1][literal >> 1] ^ literal & 1

    outputs = [in_both(literal) for _, literal in circuit.outputs]
    following = [in_both(literal) for literal in circuit.registers]
    differences = [both.differ(*values) for values in (*outputs, *following)]
    both.registers = [values[0] for values in following] + [differences[len(outputs) + register] for register in own]
    common = [literal for place, literal in enumerate(differences) if place - len(outputs) not in own]
    both.outputs = [("shows", both.either(common))]
    return Twins(both, differences, own)


def never_shows(file: Path, selector: str, *, timeout_s: float = 60) -> bool:
    """Try to prove that a fault never shows at an output.

    Parameters
    ----------
    file : Path
        Circuit, an AIGER file; others are written beside it.
    selector : str
        Input that is 1 where the fault is there.
    timeout_s : float
        Limit of processor time in seconds.

    Returns
    -------
    bool
        Proved. False: it shows, or no proof was found in the time.
    """
    circuit = read_aiger(file)
    solver = _Solver(file.parent, timeout_s)
    apart: set[int] = set()
    while solver.left_s > 0:
        asked = twins(circuit, selector, apart)
        if asked.graph.outputs[0][1] == 0:
            return True
        write_aiger(asked.graph, file.with_name(_FILE))
        differing = solver.differing(asked)
        if differing is None:
            return solver.proves()
        outputs = len(circuit.outputs)
        if not differing or min(differing) < outputs:
            return False
        words = {circuit.words[place - outputs] for place in differing} - {""}
        apart |= {place - outputs for place in differing}
        apart |= {register for register, word in enumerate(circuit.words) if word in words}
    return False


class _Solver:
    """abc, as long as there is processor time left, ours counted too."""

    def __init__(self, folder: Path, limit_s: float) -> None:
        self.folder = folder
        self.end_s = _processor_s() + limit_s

    @property
    def left_s(self) -> float:
        """Processor time that is left."""
        return self.end_s - _processor_s()

    def run(self, commands: str, share: float) -> str:
        """Return what abc says within a share of the time that is left; nothing if it takes longer."""
        limit = max(0.1, self.left_s * share)
        return run_abc(f"read_aiger {_FILE}; strash; {commands}", self.folder, timeout_s=limit) or ""

    def proves(self) -> bool:
        """Whether what was written never happens."""
        few = f"scleanup; &get -n; &gla -F {_FRAMES}; &gla_derive; &put; pdr"
        return any(_PROVED.search(self.run(commands, share)) for commands, share in ((few, 0.5), ("scleanup; pdr", 1)))

    def differing(self, asked: Twins) -> list[int] | None:
        """Return the places of `Twins.differences` that differ at the end of a short run; None: there is none."""
        run = self.folder / _RUN
        run.unlink(missing_ok=True)
        self.run(f"bmc3 -F {_FIRST_FRAMES}; write_cex {_RUN}", 0.3)
        if not run.exists():
            return None
        bits = [int(bit) for bit in run.read_text().partition("#")[0].strip()]
        return _differing(asked, bits[len(asked.graph.registers) :])  # the state at first, then inputs


def _processor_s() -> float:
    """Processor time of this process and of those that it has waited for."""
    return sum(os.times()[:4])


def _differing(asked: Twins, bits: Sequence[int]) -> list[int]:
    graph = asked.graph
    state, width = [0] * len(graph.registers), len(graph.inputs)
    for begin in range(0, len(bits), width):
        values = graph.values(bits[begin : begin + width], state)
        found = [place for place, literal in enumerate(asked.differences) if at(values, literal)]
        if at(values, graph.outputs[0][1]):
            return found
        state = [at(values, following) for following in graph.registers]
    return []
