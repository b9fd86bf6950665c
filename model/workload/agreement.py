"""Whether the ranks of a program agree on its collectives: how many, which, with which root, of how many bytes."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopforge.model.workload.trace import DATATYPES, Action, Trace, TraceError

#: collectives with a root
ROOTED = frozenset({"bcast", "reduce", "gather", "gatherv", "scatter", "scatterv"})
_ALIKE = frozenset({"bcast", "reduce", "allreduce", "scan", "exscan"})
#: ranks that an error names
_SHOWN = 8
_HINT = "; are these calls in communicators of the program's own, which this trace does not tell?"

Sizes = NDArray[np.int64]


def listed(ranks: Sequence[int]) -> str:
    """Join numbers for an error, the first ones of many."""
    return ", ".join(map(str, ranks[:_SHOWN])) + (f" and {len(ranks) - _SHOWN} more" if len(ranks) > _SHOWN else "")


def same_calls(
    trace: Trace, communicator: int, members: Sequence[int], where: Sequence[NDArray[np.integer]]
) -> None:
    """Compare the collectives of all members of a communicator, call by call.

    Parameters
    ----------
    trace : Trace
        The program.
    communicator : int
        0 is MPI_COMM_WORLD.
    members : sequence of int
        Its ranks.
    where : sequence of int[call]
        ``where[rank]``: its actions that are collectives in this communicator.

    Raises
    ------
    TraceError
        Ranks that disagree, with file and line of both.
    """
    hint = "" if communicator else _HINT
    first = members[0]
    short = next((rank for rank in members if len(where[rank]) != len(where[first])), None)
    calls = min(len(where[rank]) for rank in members)
    numbers = np.stack([trace.numbers[rank][where[rank][:calls]] for rank in members])
    defaults = [trace.default_datatype(rank) for rank in members]
    _, columns = np.unique(numbers, axis=1, return_index=True)
    for column in sorted(columns.tolist()):
        actions = [trace.calls[number] for number in numbers[:, column].tolist()]
        found = _difference(actions, defaults)
        if found is not None:
            rank, against = members[found.place], members[found.other]
            raise TraceError(
                f"{trace.where(rank, where[rank][column])}: rank {rank} calls {found.said % against}"
                f" ({trace.where(against, where[against][column])}){hint}"
            )
    if short is not None:
        ours, theirs = len(where[short]), len(where[first])
        more = short if ours > theirs else first
        of = f" of communicator {communicator}" if communicator else ""
        index = where[more][calls]
        raise TraceError(
            f"{trace.files[short]}: rank {short} calls {ours} collectives{of}, rank {first} calls {theirs}; not all"
            f" call {trace.action(more, index).name} of rank {more} ({trace.where(more, index)}){hint}"
        )


class _Difference(NamedTuple):
    """Two members that disagree, and how: the first one's call, with %d for the other's rank."""

    place: int
    other: int
    said: str


def _difference(actions: Sequence[Action], defaults: Sequence[int]) -> _Difference | None:
    first = actions[0]
    for place, action in enumerate(actions):
        if action.name != first.name:
            return _Difference(place, 0, f"{action.name} where rank %d calls {first.name}")
        if action.name in ROOTED and action.root != first.root:
            return _Difference(place, 0, f"{action.name} with root {action.root}, rank %d with root {first.root}")
    found = _unequal(first.name, first.root, actions, defaults)
    if found is None:
        return None
    place, mine, other, theirs = found
    return _Difference(place, other, f"{first.name} with {mine} bytes where rank %d has {theirs}")


def _unequal(
    name: str, root: int, actions: Sequence[Action], defaults: Sequence[int]
) -> tuple[int, int, int, int] | None:
    """Return a member, its bytes, another one, and the bytes that this one has for the same data; None: all agree.

    MPI lets sender and receiver agree on the bytes of all data but those that a member keeps in place.
    """
    both = list(zip(actions, defaults, strict=True))
    if name == "barrier" or len(actions) < 2:
        return None
    if name in _ALIKE:
        return _first_unequal(np.array([_bytes((a.count,), a.datatype, d) for a, d in both])[:, 0], None)
    if name == "reducescatter":
        for column in np.array([_bytes(a.counts, a.datatype, d) for a, d in both]).T:
            if (found := _first_unequal(column, None)) is not None:
                return found
        return None
    out = np.array([_bytes(a.counts or (a.count,), a.datatype, d) for a, d in both])
    into = np.array([_bytes(a.recv_counts or (a.recv_count,), a.recv_datatype, d) for a, d in both])
    if name in ("gather", "gatherv"):
        return _first_differing(out[:, 0], into[root], root)
    if name in ("scatter", "scatterv"):
        return _first_differing(into[:, 0], out[root], root)
    if name in ("alltoall", "allgather"):
        return _first_unequal(out[:, 0], into[:, 0])
    # allgatherv sends the same to all
    wrong = (out != into.T) & (out >= 0) & (into.T >= 0) & ~np.eye(len(actions), dtype=bool)
    if not wrong.any():
        return None
    source, target = np.argwhere(wrong)[0].tolist()
    return source, int(np.broadcast_to(out, wrong.shape)[source, target]), target, int(into[target, source])


def _first_unequal(one: Sizes, other: Sizes | None) -> tuple[int, int, int, int] | None:
    """Compare sizes by member that must all be the same."""
    both = one if other is None else np.concatenate([one, other])
    known = np.flatnonzero(both >= 0)
    wrong = known[both[known] != both[known[0]]] if len(known) else known
    if not len(wrong):
        return None
    return int(wrong[0]) % len(one), int(both[wrong[0]]), int(known[0]) % len(one), int(both[known[0]])


def _first_differing(theirs: Sizes, of_root: Sizes, root: int) -> tuple[int, int, int, int] | None:
    """Compare what members send to (or get from) the root with what the root says."""
    expected = np.broadcast_to(of_root, theirs.shape)
    wrong = (theirs != expected) & (theirs >= 0) & (expected >= 0)
    wrong[root] = False
    if not wrong.any():
        return None
    place = int(np.flatnonzero(wrong)[0])
    return place, int(theirs[place]), root, int(expected[place])


def _bytes(counts: Sequence[int], datatype: int, default: int) -> Sizes:
    """Return the bytes of counts of a datatype; -1: its size is not known."""
    element = DATATYPES[default if datatype == -2 else datatype][1]
    found = np.array(counts, np.int64) * element
    return found if element else np.full(len(found), -1)
