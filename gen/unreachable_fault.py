"""Proof that a fault shows in no state that the circuit can reach.

A circuit with and without the fault are in the same state. If in every state that the circuit reaches from power-up,
with any inputs, both have the same outputs and the same next state, then they are in the same state for ever.

What is asked for is a property of the circuit without the fault alone, so that a solver has to find out what holds of
its states only: that two bits are never 1 together, say. The solver is ``pdr`` of abc.
"""

import re
import subprocess
from pathlib import Path

import pyosys

from hopforge.gen.and_graph import AndGraph, read_aiger, write_aiger
from hopforge.gen.processor_time import run_within

__all__ = ["never_shows", "shows"]

_ABC = Path(pyosys.__file__).with_name("yosys-abc")
_FILE = "shows.aig"
_PROVED = re.compile(r"^Property proved\.", re.MULTILINE)


def shows(circuit: AndGraph, selector: str) -> AndGraph:
    """Return the circuit without the fault, with one output: whether the fault shows at once.

    Parameters
    ----------
    circuit : AndGraph
        With the fault where the input `selector` is 1.
    selector : str
        Name of an input.
    """
    own = {number: 2 * number for number in range(1, circuit.first_gate)}
    both = AndGraph(list(circuit.inputs), [0] * len(circuit.registers))
    chosen = 1 + circuit.inputs.index(selector)
    without, faulty = (both.add(circuit, {**own, chosen: value}) for value in (0, 1))

    def pair(literal: int) -> tuple[int, int]:
        return without[literal >> 1] ^ literal & 1, faulty[literal >> 1] ^ literal & 1

    differences = [pair(literal) for literal in (*(literal for _, literal in circuit.outputs), *circuit.registers)]
    both.outputs = [("shows", both.either(both.differ(*one) for one in differences))]
    both.registers = [pair(following)[0] for following in circuit.registers]
    return both


def never_shows(file: Path, selector: str, *, timeout_s: float = 60) -> bool:
    """Try to prove that a fault shows in no state that can be reached.

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
    asked = shows(read_aiger(file), selector)
    if asked.outputs[0][1] == 0:
        return True
    write_aiger(asked, file.with_name(_FILE))
    command = f"read_aiger {_FILE}; strash; scleanup; pdr"
    try:
        done = run_within([str(_ABC), "-q", command], file.parent, timeout_s)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0 and _PROVED.search(done.stdout) is not None
