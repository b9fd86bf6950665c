"""Replay: feed a component recorded inputs and compare its outputs with the recorded ones in every cycle.

A golden model records once what goes in and what must come out (`Replay`); any simulator can then play it: Amaranth's
own (`replay_amaranth`), Icarus and Verilator through cocotb (`sim.drive.runner.replay_cocotb`), and Verilator without
Python in the loop (`sim.drive.runner.replay_verilator`).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from amaranth.hdl import Value
from amaranth.lib.wiring import Component
from amaranth.sim import Simulator
from numpy.typing import NDArray

from hopforge.model.output.destination import one_file

Progress = Callable[[int, int], None]
"""Called now and then with (cycles done, cycles in all)."""

REPLAY_VARIABLE = "HOPFORGE_REPLAY"
RESULT_VARIABLE = "HOPFORGE_REPLAY_RESULT"
CYCLE_VARIABLE = "HOPFORGE_REPLAY_CYCLE"
"""Environment variables that tell the cocotb bench its files: the replay, the result, how far it is."""

WORD_BITS = 64
"""Bits of a column."""

_PROGRESS_CYCLES = 256


class Output(NamedTuple):
    """An output to be compared.

    Attributes
    ----------
    name : str
        Port.
    gate : str or None
        The port means something only in cycles in which this other output is not 0; None: always.
    """

    name: str
    gate: str | None = None


class Mismatch(NamedTuple):
    """The first difference: in which cycle, at which port, what it should have been and what it was."""

    cycle: int
    signal: str
    expected: int
    got: int | None

    def __str__(self) -> str:
        """Return one line for people; a value of None is unknown (X or Z)."""
        got = "unknown" if self.got is None else f"{self.got:#x}"
        return f"cycle {self.cycle}: {self.signal} is {got}, expected {self.expected:#x}"


class ReplayResult(NamedTuple):
    """What came out of a replay.

    Attributes
    ----------
    cycles : int
        Cycles that were compared.
    mismatches : int
        Cycles in which some output differed.
    first : Mismatch or None
        The first of them.
    """

    cycles: int
    mismatches: int
    first: Mismatch | None

    @property
    def words(self) -> str:
        """How many cycles differed, and what was the first, for people."""
        return "0" if self.first is None else f"{self.mismatches} cycles; first {self.first}"


@dataclass(frozen=True, eq=False)
class Replay:
    """Inputs and expected outputs of a component, cycle by cycle.

    A port of more than 64 bits has several columns with its name, one after the other, the lowest word first. Ports
    inside of others are named as in Verilog: ``host__0__out_valid``.

    Parameters
    ----------
    inputs : tuple of str
        Input ports, in the order of the columns of `driven`.
    outputs : tuple of Output
        Output ports, in the order of the columns of `expected`.
    driven : ndarray
        uint64[cycle, input]. Set right after a rising edge of the clock.
    expected : ndarray
        uint64[cycle, output]. Compared at the end of the same cycle, before the next rising edge.
    clocked : bool
        Whether the component has ``clk`` and ``rst``; reset is active before cycle 0.
    settle_cycles : int
        Cycles at the beginning in which the outputs mean nothing yet.

    Raises
    ------
    ValueError
        If the arrays do not fit the ports or each other.
    """

    inputs: tuple[str, ...]
    outputs: tuple[Output, ...]
    driven: NDArray[np.uint64]
    expected: NDArray[np.uint64]
    clocked: bool = True
    settle_cycles: int = 0

    def __post_init__(self) -> None:
        if self.driven.ndim != 2 or self.driven.shape[1] != len(self.inputs):
            raise ValueError(f"driven must have shape [cycle, {len(self.inputs)}], not {self.driven.shape}")
        if self.expected.shape != (len(self.driven), len(self.outputs)):
            raise ValueError(
                f"expected must have shape [{len(self.driven)}, {len(self.outputs)}], not {self.expected.shape}"
            )
        names = [output.name for output in self.outputs]
        for output in self.outputs:
            if output.gate is not None and output.gate not in names:
                raise ValueError(f"gate of {output.name} must be an output, not {output.gate!r}")

    @property
    def cycles(self) -> int:
        """Number of cycles."""
        return len(self.driven)

    @property
    def gates(self) -> tuple[int, ...]:
        """Column of the gate of every output, -1 for none."""
        names = [output.name for output in self.outputs]
        return tuple(-1 if output.gate is None else names.index(output.gate) for output in self.outputs)

    def head(self, cycles: int) -> "Replay":
        """Return the first `cycles` cycles."""
        return replace(self, driven=self.driven[:cycles], expected=self.expected[:cycles])

    def save(self, path: Path) -> None:
        """Write everything to a NumPy archive; the file appears only when it is complete."""
        with one_file(path) as part, part.open("wb") as file:
            self._write(file)

    def _write(self, file: BinaryIO) -> None:
        np.savez(
            file, inputs=np.array(self.inputs), outputs=np.array([name for name, _ in self.outputs]),
            gates=np.array(self.gates), driven=self.driven, expected=self.expected, clocked=np.array(self.clocked),
            settle_cycles=np.array(self.settle_cycles),
        )  # fmt: skip

    @classmethod
    def load(cls, path: Path) -> "Replay":
        """Return what `save` wrote."""
        with np.load(path) as archive:
            names = [str(name) for name in archive["outputs"]]
            gates = [None if gate < 0 else names[gate] for gate in archive["gates"]]
            return cls(
                tuple(str(name) for name in archive["inputs"]),
                tuple(map(Output, names, gates)),
                archive["driven"],
                archive["expected"],
                bool(archive["clocked"]),
                int(archive["settle_cycles"]),
            )


class Columns(NamedTuple):
    """The columns of one port.

    Attributes
    ----------
    name : str
        Port.
    first, words : int
        Its first column, and how many there are.
    """

    name: str
    first: int
    words: int


def port_columns(names: Sequence[str]) -> list[Columns]:
    """Return the ports that columns with these names belong to.

    Examples
    --------
    >>> port_columns(["valid", "flit", "flit"])
    [Columns(name='valid', first=0, words=1), Columns(name='flit', first=1, words=2)]
    """
    ports: list[Columns] = []
    for column, name in enumerate(names):
        if ports and ports[-1].name == name:
            ports[-1] = ports[-1]._replace(words=ports[-1].words + 1)
        else:
            ports.append(Columns(name, column, 1))
    return ports


def joined(words: Sequence[int]) -> int:
    """Return the value of a port from its words.

    Examples
    --------
    >>> hex(joined([5, 1]))
    '0x10000000000000005'
    """
    return sum(word << WORD_BITS * place for place, word in enumerate(words))


class Bench(NamedTuple):
    """A component, the name of its top module, and what it has to do.

    Attributes
    ----------
    top : str
        Name of the module in Verilog.
    component : Component
        Fresh: it can be used once.
    replay : Replay
        Recorded from the golden model.
    """

    top: str
    component: Component
    replay: Replay


class Scoreboard:
    """Compares the outputs of each cycle with the expected ones and remembers the first difference.

    Parameters
    ----------
    replay : Replay
        What is expected.
    """

    def __init__(self, replay: Replay) -> None:
        self._names = [output.name for output in replay.outputs]
        self._gates = replay.gates
        self._expected = replay.expected.tolist()
        self._settle_cycles = replay.settle_cycles
        self._cycles = 0
        self._mismatches = 0
        self._first: Mismatch | None = None

    def columns(self) -> list[int]:
        """Return the outputs that mean something in the next cycle."""
        if self._cycles < self._settle_cycles:
            return []
        expected = self._expected[self._cycles]
        return [column for column, gate in enumerate(self._gates) if gate < 0 or expected[gate]]

    def compare(self, columns: Sequence[int], got: Sequence[int | None]) -> None:
        """Take the values of the outputs `columns` in the next cycle, None for unknown bits."""
        expected = self._expected[self._cycles]
        for column, word in zip(columns, got, strict=True):
            if word != expected[column]:
                self._mismatches += 1
                if self._first is None:
                    self._first = Mismatch(self._cycles, self._names[column], expected[column], word)
                break
        self._cycles += 1

    @property
    def result(self) -> ReplayResult:
        """What has been found so far."""
        return ReplayResult(self._cycles, self._mismatches, self._first)


def first_of(result: ReplayResult | dict[str, Any]) -> ReplayResult:
    """Return a result that may come from JSON."""
    if isinstance(result, ReplayResult):
        return result
    first = result["first"]
    return ReplayResult(result["cycles"], result["mismatches"], None if first is None else Mismatch(*first))


def as_words(rows: Iterable[Sequence[int]] | NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return rows of words as uint64; int64 arrays are taken as bit patterns."""
    if isinstance(rows, np.ndarray):
        return np.ascontiguousarray(rows, np.int64).view(np.uint64)
    return np.array([[int(word) for word in row] for row in rows], np.uint64)


def replay_amaranth(
    component: Component, replay: Replay, progress: Progress | None = None, *, to_first: bool = False
) -> ReplayResult:
    """Play on Amaranth's own simulator.

    Parameters
    ----------
    component : Component
        A fresh component; its ports are found by name.
    replay : Replay
        What to play.
    progress : callable, optional
        See `Progress`.
    to_first : bool
        End with the first cycle that differs.

    Returns
    -------
    ReplayResult
        Every cycle compared.
    """
    scoreboard = Scoreboard(replay)
    values = {"__".join(map(str, path)): Value.cast(value) for path, _, value in component.signature.flatten(component)}
    ins = [(port, values[port.name]) for port in port_columns(replay.inputs)]
    outs: list[Value] = []
    for port in port_columns([output.name for output in replay.outputs]):
        value = values[port.name]
        outs += [value[WORD_BITS * place : WORD_BITS * (place + 1)] for place in range(port.words)]

    async def bench(ctx: Any) -> None:
        before: list[int] = []
        for number, row in enumerate(replay.driven.tolist()):
            for (_, first, words), value in ins:
                if row[first : first + words] != before[first : first + words]:
                    ctx.set(value, joined(row[first : first + words]))
            before = row
            if not replay.clocked:
                await ctx.delay(1e-9)
            columns = scoreboard.columns()
            scoreboard.compare(columns, [ctx.get(outs[column]) for column in columns])
            if to_first and scoreboard.result.first is not None:
                return
            if replay.clocked:
                await ctx.tick()
            if progress is not None and number % _PROGRESS_CYCLES == 0:
                progress(number, replay.cycles)

    simulator = Simulator(component)
    if replay.clocked:
        simulator.add_clock(1e-9)
    simulator.add_testbench(bench)
    simulator.run()
    return scoreboard.result
