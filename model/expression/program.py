"""An expression as a list of operations, each with the range of its value; and the kernel that computes it.

`compile.py` makes it from a text, `hw.keys.expression` hardware from it.
"""

from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopforge.model.kernel.compile import kernel

__all__ = ["Op", "Program", "ProgramArrays", "Step", "run_steps"]


class Op(IntEnum):
    """What a step does with its operands a, b, c (numbers of earlier steps) and its own number v."""

    CONST = 0
    """v."""
    DST = 1
    OWN = 2
    LEVEL = 3
    ADD = 4
    SUB = 5
    MUL = 6
    DIV = 7
    """⌊a / v⌋."""
    MOD = 8
    """a mod v, from 0 up."""
    EQ = 9
    LT = 10
    """a < b."""
    AND = 11
    OR = 12
    NOT = 13
    SELECT = 14
    """b if a is 1, else c."""
    SHIFT = 15
    """a · 2^v."""
    ROM = 16
    """Element a of table v."""


class Step(NamedTuple):
    """One operation.

    Attributes
    ----------
    op : Op
        What it does.
    a, b, c : int
        Numbers of its operands, -1: none.
    v : int
        Its constant.
    low, high : int
        Least and greatest value.
    late : bool
        Whether it depends on the destination.
    """

    op: Op
    a: int
    b: int
    c: int
    v: int
    low: int
    high: int
    late: bool


class ProgramArrays(NamedTuple):
    """A program for kernels.

    Attributes
    ----------
    steps : ndarray, int64[step, 5]
        Op, a, b, c, v; of a ROM v is the start of its table in `roms`. The last step is the result.
    quiet : int
        Steps at the beginning that do not depend on the destination.
    roms : ndarray, int64[number]
        All tables, one after the other.
    """

    steps: NDArray[np.int64]
    quiet: int
    roms: NDArray[np.int64]


@dataclass(frozen=True)
class Program:
    """Operations in order, those first that do not depend on the destination.

    Attributes
    ----------
    address_bits : int
        Width of destination and own address.
    steps : tuple of Step
        The operations.
    result : int
        Number of the step that is the result.
    roms : tuple of tuple of int
        Tables.
    """

    address_bits: int
    steps: tuple[Step, ...]
    result: int
    roms: tuple[tuple[int, ...], ...] = ()

    @property
    def width(self) -> int:
        """Bits of the result, at least 1."""
        return max(1, self.steps[self.result].high.bit_length())

    @cached_property
    def arrays(self) -> ProgramArrays:
        """The same for kernels."""
        starts = np.cumsum([0, *(len(rom) for rom in self.roms)])
        rows = [_row(step, starts) for step in self.steps]
        rows.append((Op.SHIFT, self.result, -1, -1, 0))
        quiet = sum(not step.late for step in self.steps)
        roms = [number for rom in self.roms for number in rom]
        return ProgramArrays(np.array(rows, np.int64), quiet, np.array([*roms, 0], np.int64))

    def values(
        self, own: NDArray[np.int64], level: NDArray[np.int64], dst: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return the values for many destinations at many places; all of one length, or one place for all."""
        found = np.empty(len(dst), np.int64)
        if len(dst):
            _run(self.arrays, own, level, dst, found)
        return found


def _row(step: Step, starts: NDArray[np.int64]) -> tuple[int, ...]:
    op, v = int(step.op), step.v
    if step.op == Op.ROM:
        v = int(starts[v])
    elif step.op in (Op.DIV, Op.MOD) and v & v - 1 == 0:
        op, v = (_SHIFT_RIGHT, v.bit_length() - 1) if step.op == Op.DIV else (_MASK, v - 1)
    return op, step.a, step.b, step.c, v


_SHIFT_RIGHT, _MASK = len(Op), len(Op) + 1
"""A division by a power of two in kernels, and its remainder; v is the shift, or the mask."""
(
    _CONST, _DST, _OWN, _LEVEL, _ADD, _SUB, _MUL, _DIV, _MOD, _EQ, _LT, _AND, _OR, _NOT,
    _SELECT, _SHIFT, _ROM,
) = (int(op) for op in Op)  # kernels know numbers, not enums


@kernel(inline="always")
def run_steps(steps, roms, first, end, values, own, level, dst):  # type: ignore[no-untyped-def]
    """Compute steps `first` to `end` − 1 into ``values[step]``; for use in kernels, checks nothing."""
    for number in range(first, end):
        op, a, b, v = steps[number, 0], steps[number, 1], steps[number, 2], steps[number, 4]
        if op == _CONST:
            found = v
        elif op == _DST:
            found = dst
        elif op == _OWN:
            found = own
        elif op == _LEVEL:
            found = level
        elif op == _ADD:
            found = values[a] + values[b]
        elif op == _SUB:
            found = values[a] - values[b]
        elif op == _MUL:
            found = values[a] * values[b]
        elif op == _DIV:
            found = values[a] // v
        elif op == _MOD:
            found = values[a] % v
        elif op == _EQ:
            found = np.int64(values[a] == values[b])
        elif op == _LT:
            found = np.int64(values[a] < values[b])
        elif op == _AND:
            found = values[a] & values[b]
        elif op == _OR:
            found = values[a] | values[b]
        elif op == _NOT:
            found = 1 - values[a]
        elif op == _SELECT:
            found = values[b] if values[a] else values[steps[number, 3]]
        elif op == _SHIFT:
            found = values[a] << v
        elif op == _SHIFT_RIGHT:
            found = values[a] >> v
        elif op == _MASK:
            found = values[a] & v
        else:
            found = roms[v + values[a]]
        values[number] = found


@kernel
def _run(program, own, level, dst, result):  # type: ignore[no-untyped-def]
    steps, quiet, roms = program
    values = np.empty(len(steps), np.int64)
    many = len(own) > 1
    before = -1
    for index in range(len(dst)):
        place = index if many else 0
        if before < 0 or own[place] != own[before] or level[place] != level[before]:
            run_steps(steps, roms, 0, quiet, values, own[place], level[place], np.int64(0))
            before = place
        run_steps(steps, roms, quiet, len(steps), values, own[place], level[place], dst[index])
        result[index] = values[len(steps) - 1]
