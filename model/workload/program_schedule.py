"""A program of ranks that do one thing after the other, as a schedule of GOAL."""

import numpy as np
from numpy.typing import NDArray

from hopforge.model.workload import operations as op
from hopforge.model.workload.matched_receives import numbered
from hopforge.model.workload.program import Program
from hopforge.model.workload.schedule import CALC, MAX_OPERATIONS, RECV, SEND, Edges, GoalError, Schedule

#: largest time of a computation
_LARGEST_TIME = float(1 << 63)


def program_schedule(name: str, program: Program, host_gflops: float | None) -> Schedule:
    """Write a program as a schedule whose unit is the nanosecond; everything is on cpu 0 and nic 0.

    - An operation waits for the end of the computation before it, else for the start of what stands before it: a rank
      goes on when it has handed a message over or has posted a receive.
    - What follows a wait requires the send or receive that is waited for.
    - The n-th message from a rank to another has tag n, so that it meets the receive that the trace gives it.
    - A message whose receive a trace does not tell (from any source) is received beside everything else.
    - Messages of 0 bytes become 1 byte: published programs do not take 0.

    Parameters
    ----------
    name : str
        For reports.
    program : Program
        What to write.
    host_gflops : float, optional
        Speed of a rank in 10⁹ operations per second; None: computing takes no time and is left out.

    Raises
    ------
    GoalError
        Too many operations, or a computation that is too long to be written.
    """
    kind, operand = program.kind, program.operand
    time = _times(program, host_gflops)
    sends, posts = kind == op.SEND, kind == op.POST
    kept = sends | posts | (time > 0)
    posted = np.zeros(program.messages, np.bool_)
    posted[operand[posts]] = True
    extra = np.flatnonzero(~posted)  # messages, by their receiver
    extra = extra[np.argsort(program.destination[extra], kind="stable")]
    added = np.bincount(program.destination[extra], minlength=program.ranks)
    before = np.concatenate([[0], np.cumsum(kept)])
    first = before[program.first] + np.concatenate([[0], np.cumsum(added)])
    total = int(first[-1])
    if total > MAX_OPERATIONS:
        raise GoalError(f"workload: {total} operations are more than {MAX_OPERATIONS}")
    rank = np.repeat(np.arange(program.ranks), np.diff(program.first))
    place = before[:-1] + (np.cumsum(added) - added)[rank]  # number of each operation, or of what follows it
    receiver = program.destination[extra].astype(np.int64)
    place_extra = first[receiver + 1] - added[receiver] + numbered(receiver)
    peer, tag, size = np.zeros(total, np.uint32), np.zeros(total, np.uint32), np.zeros(total, np.uint64)
    what = np.full(total, CALC, np.uint8)
    of_pair = numbered(program.source.astype(np.int64) * program.ranks + program.destination)
    bytes_ = np.maximum(program.size_bytes, 1)
    for chosen, message, which, other in (
        (place[sends], operand[sends], SEND, program.destination),
        (place[posts], operand[posts], RECV, program.source),
        (place_extra, extra, RECV, program.source),
    ):
        what[chosen], tag[chosen] = which, of_pair[message]
        peer[chosen], size[chosen] = other[message], bytes_[message]
    computing = time > 0
    size[place[computing]] = time[computing]
    cpu, nic = np.zeros(total, np.uint8), np.zeros(total, np.uint8)
    at_end, at_start = _order(program, place, kept, rank, total)
    return Schedule(name, "", first, what, peer, size, tag, cpu, nic, at_end, at_start)


def _times(program: Program, host_gflops: float | None) -> NDArray[np.uint64]:
    """Return uint64[operation]: whole nanoseconds of COMPUTE and SLEEP, else 0."""
    time = np.zeros(len(program.kind))
    for kind, factor in ((op.COMPUTE, 0.0 if host_gflops is None else 1 / host_gflops), (op.SLEEP, 1e9)):
        chosen = program.kind == kind
        with np.errstate(over="ignore", invalid="ignore"):  # refused below
            time[chosen] = program.amount[program.operand[chosen]] * factor
    longest = float(time.max(initial=0.0))
    if not longest < _LARGEST_TIME:
        raise GoalError(f"workload: a computation of {longest:.6g} ns is longer than {_LARGEST_TIME:.6g} ns")
    return np.rint(time).astype(np.uint64)


def _order(
    program: Program, place: NDArray[np.int64], kept: NDArray[np.bool_], rank: NDArray[np.int64], total: int
) -> tuple[Edges, Edges]:
    """Return what waits for the end and for the start of each operation."""
    kind, operand = program.kind, program.operand
    last = np.full(program.ranks, -1, np.int64)
    np.maximum.at(last, rank[kept], place[kept])
    own = {}
    for which in (op.SEND, op.POST):
        own[which] = np.full(program.messages, -1, np.int64)
        own[which][operand[kind == which]] = place[kind == which]
    waiting = np.isin(kind, (op.WAIT_SENT, op.RECEIVE)) & (place <= last[rank])
    awaited = np.where(
        kind[waiting] == op.WAIT_SENT, own[op.SEND][operand[waiting]], own[op.POST][operand[waiting]]
    )
    # neighbours of one rank
    kept_place, kept_rank = place[kept], rank[kept]
    same = kept_rank[1:] == kept_rank[:-1]
    ahead, behind = kept_place[:-1][same], kept_place[1:][same]
    blocks = np.isin(kind[kept][:-1][same], (op.COMPUTE, op.SLEEP))
    ends = np.concatenate([
        np.stack([awaited, place[waiting]], axis=1), np.stack([ahead[blocks], behind[blocks]], axis=1)
    ])
    ends = np.unique(ends, axis=0)
    starts = np.stack([ahead[~blocks], behind[~blocks]], axis=1)
    starts = starts[~np.isin(starts[:, 0] * total + starts[:, 1], ends[:, 0] * total + ends[:, 1])]
    return Edges.of(total, ends[:, 0], ends[:, 1]), Edges.of(total, starts[:, 0], starts[:, 1])
