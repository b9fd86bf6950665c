"""Operations of one rank of a training program: computations, messages and collectives as messages, and their order."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.apps.training_levels import Algorithms, is_whole, level_template
from hopforge.model.workload.chakra_collectives import Template
from hopforge.model.workload.schedule import CALC, RECV, SEND

#: what the cpus of a rank are for
STREAMS = ("compute", "tensor", "context", "expert", "pipeline", "data")
COMPUTE = 0
#: pairs of operations that wait for each other which a join of no time takes the place of
_MANY_PAIRS = 16

Grid = tuple[tuple[int, ...], tuple[int, ...]]
"""Members along each dimension, and the members, the first dimension fastest."""
Blocks = int | tuple[int, ...]
"""Bytes of a vector, or of an all-to-all what each member gets of all others (`outward`) or sends to them."""


@dataclass
class Tags:
    """Tags of messages, the same for all ranks.

    Attributes
    ----------
    known : dict
        First tag of a collective or message by what it is.
    next : int
        The first tag that nothing has.
    """

    known: dict[Any, int] = field(default_factory=dict)
    next: int = 0

    def of(self, key: Any, rounds: int) -> int:
        """Return the first of `rounds` tags."""
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = self.next
            self.next += rounds
        return found


@dataclass(frozen=True)
class _Part:
    """What a member does in a collective: fields of operations, and places in it."""

    rounds: int
    kind: list[int]
    peer: list[int]
    size: list[int]
    round: list[int]
    heads: list[int]
    tails: list[int]
    before: list[int]
    after: list[int]


class RankOperations:
    """The operations of a rank, which are appended one after the other.

    Parameters
    ----------
    rank : int
        Its number.
    tags : Tags
        Those of the program.
    algorithms : tuple of (str, str)
        Algorithm of each collective.
    grid : callable
        Members of a group → how they stand in a grid.
    """

    def __init__(
        self, rank: int, tags: Tags, algorithms: Algorithms, grid: Callable[[tuple[int, ...]], Grid]
    ) -> None:
        self.rank, self._tags, self._algorithms, self._grid = rank, tags, algorithms, grid
        self.kind: list[int] = []
        self.peer: list[int] = []
        self.size: list[int] = []
        self.tag: list[int] = []
        self.cpu: list[int] = []
        self.before: list[int] = []
        self.after: list[int] = []
        self._parts: dict[Any, _Part] = {}

    def compute(self, time: int, after: Sequence[int], stream: int = COMPUTE) -> int:
        """Append a computation that waits for the ends of others; return its place."""
        return self._single(CALC, 0, time, 0, stream, after)

    def send(self, to: int, size: int, key: Any, stream: int, after: Sequence[int]) -> int:
        """Append a send; `key` names the message to both sides."""
        return self._single(SEND, to, size, self._tags.of(key, 1), stream, after)

    def receive(self, source: int, size: int, key: Any, stream: int) -> int:
        """Append a receive, which waits for nothing but its message."""
        return self._single(RECV, source, size, self._tags.of(key, 1), stream, ())

    def collective(
        self, operation: str, members: tuple[int, ...], blocks: Blocks, key: Any, stream: int,
        after: Sequence[int], *, outward: bool = True,
    ) -> Sequence[int]:
        """Append what the rank does in a collective; return the places of what ends it.

        Parameters
        ----------
        operation : str
            allreduce, allgather, reduce_scatter or alltoall.
        members : tuple of int
            Who takes part, in order; alone, or without bytes, nothing is appended and `after` returned.
        blocks : int or tuple of int
            Bytes of the vector: of the whole one in allgather, of what a rank sends in alltoall (its own block, too).
            Or bytes that each member gets from everyone (outward), or sends to everyone.
        key : hashable
            Names the collective to its members.
        stream : int
            Its cpu.
        after : sequence of int
            What it waits for.
        outward : bool
            Meaning of `blocks` of an alltoall.
        """
        if len(members) == 1 or not (any(blocks) if isinstance(blocks, tuple) else blocks):
            return after
        part = self._part(operation, members, blocks, outward=outward)
        tag = self._tags.of(key, part.rounds)
        if len(after) * len(part.heads) > _MANY_PAIRS:
            after = [self.compute(0, after, stream)]
        at = len(self.kind)
        self.kind += part.kind
        self.peer += part.peer
        self.size += part.size
        self.tag += [tag + number for number in part.round]
        self.cpu += [stream] * len(part.kind)
        self.before += [at + place for place in part.before]
        self.after += [at + place for place in part.after]
        for place in part.heads:
            self.before += after
            self.after += [at + place] * len(after)
        return [at + place for place in part.tails]

    def _single(self, kind: int, peer: int, size: int, tag: int, stream: int, after: Sequence[int]) -> int:
        at = len(self.kind)
        self.kind.append(kind)
        self.peer.append(peer)
        self.size.append(size)
        self.tag.append(tag)
        self.cpu.append(stream)
        self.before += after
        self.after += [at] * len(after)
        return at

    def _part(self, operation: str, members: tuple[int, ...], blocks: Blocks, *, outward: bool) -> _Part:
        key = operation, members, blocks, outward
        if key not in self._parts:
            dims, order = self._grid(members) if operation != "alltoall" else ((len(members),), members)
            template = level_template(operation, self._algorithms, dims)
            whole = is_whole(operation, dict(self._algorithms), dims)
            sizes = transfer_bytes(template, operation, len(members), blocks, whole=whole, outward=outward)
            self._parts[key] = _own_part(template, sizes, order, order.index(self.rank))
        return self._parts[key]


def _own_part(template: Template, sizes: NDArray[np.int64], members: tuple[int, ...], own: int) -> _Part:
    start, end = int(template.first[own]), int(template.first[own + 1])
    inside, pairs = slice(start, end), slice(int(template.first_pair[own]), int(template.first_pair[own + 1]))
    return _Part(
        template.rounds, template.kind[inside].tolist(), np.array(members)[template.peer[inside]].tolist(),
        sizes[template.transfer[inside]].tolist(), template.round[inside].tolist(),
        np.flatnonzero(template.head[inside]).tolist(), np.flatnonzero(template.tail[inside]).tolist(),
        (template.before[pairs] - start).tolist(), (template.after[pairs] - start).tolist(),
    )  # fmt: skip


def transfer_bytes(
    template: Template, operation: str, members: int, blocks: Blocks, *, whole: bool, outward: bool = True
) -> NDArray[np.int64]:
    """Return int64[transfer]: bytes of each message, at least 1.

    A vector is cut in one piece for each member, in whole bytes, the first ones larger by one; with `whole` it is not
    cut.
    """
    number = np.arange(members)
    if isinstance(blocks, tuple):
        pieces = np.array(blocks, np.int64)
    else:
        pieces = blocks // members + (number < blocks % members)
    if operation == "alltoall":  # block s · p + d goes from s to d
        pieces = np.tile(pieces, members) if outward else np.repeat(pieces, members)
    elif whole:
        pieces = pieces.sum(keepdims=True)
    return np.maximum(np.add.reduceat(pieces[template.blocks], template.first_block), 1)


