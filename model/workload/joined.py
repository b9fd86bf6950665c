"""Several programs as one: their ranks, messages and operations behind each other, nothing between them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hopforge.model.workload import operations as op
from hopforge.model.workload.program import Program
from hopforge.model.workload.schedule import ANY, CALC, MAX_OPERATIONS, Edges, GoalError, Schedule
from hopforge.model.workload.trace import Trace

__all__ = ["joined_name", "joined_program", "joined_schedule", "joined_trace", "later"]

#: most programs that a name lists
_NAMED = 3

_Part = TypeVar("_Part")


def joined_name(names: Sequence[str]) -> str:
    """Return the name of programs that run together.

    >>> joined_name(["is.A.16", "cg.A.16"]), joined_name(["a"]), joined_name(list("abcde"))
    ('is.A.16 + cg.A.16', 'a', 'a + b + c + 2 more')
    """
    shown, more = names[:_NAMED], len(names) - _NAMED
    return " + ".join([*shown, *([f"{more} more"] if more > 0 else [])])


def later(program: Program, seconds: float) -> Program:
    """Return a program whose ranks sleep for so long before everything else; 0: the same one."""
    if seconds == 0:
        return program
    ranks, own = program.ranks, np.diff(program.first)
    first = np.concatenate([[0], np.cumsum(own + 1)]).astype(np.int64)
    kept = np.ones(int(first[-1]), np.bool_)
    kept[first[:-1]] = False

    def behind(values: NDArray[Any], new: int) -> NDArray[Any]:
        found = np.full(len(kept), new, values.dtype)
        found[kept] = values
        return found

    return replace(
        program, ranks=ranks, first=first, kind=behind(program.kind, op.SLEEP),
        operand=behind(program.operand, len(program.amount)), action=behind(program.action, 0),
        amount=np.append(program.amount, seconds),
    )  # fmt: skip


def _offsets(counts: Sequence[int]) -> NDArray[np.int64]:
    """Return how much stands before each part."""
    return np.concatenate([[0], np.cumsum(counts)])[:-1].astype(np.int64)


def _firsts(parts: Sequence[_Part], first: Callable[[_Part], NDArray[np.int64]]) -> NDArray[np.int64]:
    """Join arrays of where each begins, each with its end behind."""
    base, found = 0, [np.zeros(1, np.int64)]
    for part in parts:
        here = first(part)
        found.append(here[1:] + base)
        base += int(here[-1])
    return np.concatenate(found)


def joined_program(programs: Sequence[Program]) -> Program:
    """Join programs; one alone is returned as it is."""
    if len(programs) == 1:
        return programs[0]
    of_rank = _offsets([program.ranks for program in programs])
    of_message = _offsets([program.messages for program in programs])
    of_amount = _offsets([len(program.amount) for program in programs])
    operands = []
    for program, message, amount in zip(programs, of_message.tolist(), of_amount.tolist(), strict=True):
        timed = (program.kind == op.COMPUTE) | (program.kind == op.SLEEP)
        operands.append(program.operand + np.where(timed, amount, message))
    pairs = list(zip(programs, of_rank.astype(np.int32), strict=True))
    return Program(
        ranks=sum(program.ranks for program in programs),
        first=_firsts(programs, lambda program: program.first),
        kind=np.concatenate([program.kind for program in programs]),
        operand=np.concatenate(operands),
        action=np.concatenate([program.action for program in programs]),
        amount=np.concatenate([program.amount for program in programs]),
        source=np.concatenate([program.source + rank for program, rank in pairs]),
        destination=np.concatenate([program.destination + rank for program, rank in pairs]),
        size_bytes=np.concatenate([program.size_bytes for program in programs]),
    )


def joined_trace(traces: Sequence[Trace]) -> Trace:
    """Join the calls of programs, for what messages say about them; communicators are left out."""
    if len(traces) == 1:
        return traces[0]
    calls = _offsets([len(trace.calls) for trace in traces]).astype(np.int32)
    return Trace(
        joined_name([trace.name for trace in traces]),
        tuple(call for trace in traces for call in trace.calls),
        tuple(numbers + base for trace, base in zip(traces, calls, strict=True) for numbers in trace.numbers),
        tuple(file for trace in traces for file in trace.files),
        tuple(lines for trace in traces for lines in trace.lines),
    )


def joined_schedule(schedules: Sequence[Schedule]) -> Schedule:
    """Join schedules; one alone is returned as it is.

    Raises
    ------
    GoalError
        Too many operations.
    """
    if len(schedules) == 1:
        return schedules[0]
    total = sum(schedule.operations for schedule in schedules)
    if total > MAX_OPERATIONS:
        raise GoalError(f"workload: {total} operations are more than {MAX_OPERATIONS}")
    of_rank = _offsets([schedule.ranks for schedule in schedules])
    of_operation = _offsets([schedule.operations for schedule in schedules]).astype(np.int32)
    peers = []
    for schedule, rank in zip(schedules, of_rank.tolist(), strict=True):
        named = (schedule.kind != CALC) & (schedule.peer != ANY)
        peers.append(schedule.peer + np.where(named, rank, 0).astype(np.uint32))

    def edges(of: Callable[[Schedule], Edges]) -> Edges:
        following = [of(schedule).next + base for schedule, base in zip(schedules, of_operation, strict=True)]
        return Edges(_firsts(schedules, lambda schedule: of(schedule).first), np.concatenate(following))

    def joined(key: str) -> NDArray[Any]:
        return np.concatenate([getattr(schedule, key) for schedule in schedules])

    streams = {schedule.streams for schedule in schedules}
    return Schedule(
        joined_name([schedule.name for schedule in schedules]), "",
        _firsts(schedules, lambda schedule: schedule.first), joined("kind"), np.concatenate(peers), joined("size"),
        joined("tag"), joined("cpu"), joined("nic"), edges(lambda schedule: schedule.at_end),
        edges(lambda schedule: schedule.at_start), streams=streams.pop() if len(streams) == 1 else (),
    )  # fmt: skip
