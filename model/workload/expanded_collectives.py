"""Collectives as arrays of transfers, and what every rank does for them.

Algorithms of very many rounds, in each of which every rank sends one message, are written as arrays at once; the others
are taken from their rounds (`collective_choice.joined`).
"""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopforge.model.kernel.compile import kernel
from hopforge.model.workload.calls import KINDS
from hopforge.model.workload.collective_choice import Part, joined
from hopforge.model.workload.collective_rounds import NOTHING
from hopforge.model.workload.operations import POST, RECEIVE, SEND, WAIT_SENT

#: most transfers of a collective that is kept for its next call
KEPT_TRANSFERS = 1 << 20
#: most rounds that are written at once
_ROUNDS = 64


class Transfers(NamedTuple):
    """Messages of a collective, in the order of its rounds.

    Attributes
    ----------
    round_first : ndarray, int64[round + 1]
        Where the transfers of a round start.
    source, destination : ndarray, int32[transfer]
        Ranks.
    blocks : ndarray, int32[...]
        The blocks of all transfers.
    first_block : ndarray, int64[transfer + 1]
        Where those of a transfer start; empty: each has one.
    optional, silent : ndarray, bool[transfer]
        May be left out; have no block. Of `REGULAR` empty: none.
    """

    round_first: NDArray[np.int64]
    source: NDArray[np.int32]
    destination: NDArray[np.int32]
    blocks: NDArray[np.int32]
    first_block: NDArray[np.int64]
    optional: NDArray[np.bool_]
    silent: NDArray[np.bool_]

    def sizes(self, block_bytes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the bytes of each transfer, int64[transfer], from those of each block (`Chosen.sizes`)."""
        found = block_bytes[self.blocks]
        return found if not len(self.first_block) else np.add.reduceat(found, self.first_block[:-1])


class Expanded(NamedTuple):
    """A collective: its messages, and the operations of each rank (transfer · KINDS + kind), if they were wanted."""

    transfers: Transfers
    operations: tuple[NDArray[np.int64], ...]


_Row = NDArray[np.int32]
_Sends = Callable[[int, int, _Row], tuple[_Row, _Row]]
"""Ranks p, round, the ranks twice in a row → the peers to which rank 0, 1, … send, and the blocks."""


def _to_next(p: int, step: int, ring: _Row) -> tuple[_Row, _Row]:
    """Ring of allreduce: pieces go round once to be reduced (rounds 0 to p − 2), and once more."""
    back = step if step < p - 1 else step - p
    return ring[1 : p + 1], ring[-back % p :][:p]


def _gathered(p: int, step: int, ring: _Row) -> tuple[_Row, _Row]:
    return ring[1 : p + 1], ring[-step % p :][:p]


def _around(p: int, step: int, ring: _Row) -> tuple[_Row, _Row]:
    peer = ring[step + 1 :][:p]
    return peer, ring[:p] * p + peer


def _paired(p: int, step: int, ring: _Row) -> tuple[_Row, _Row]:
    peer = ring[:p] ^ (step + 1) if p & (p - 1) == 0 else ring[step + 1 :][:p]
    return peer, ring[:p] * p + peer


def _scattered(p: int, step: int, ring: _Row) -> tuple[_Row, _Row]:
    peer = ring[step + 1 :][:p]
    return peer, peer


#: operation, algorithm → what each rank sends in a round, and rounds by p − 1
REGULAR: dict[tuple[str, str], tuple[_Sends, int]] = {
    ("allreduce", "ring"): (_to_next, 2),
    ("allgather", "ring"): (_gathered, 1),
    ("alltoall", "ring"): (_around, 1),
    ("alltoall", "pairwise"): (_paired, 1),
    ("reduce_scatter", "pairwise"): (_scattered, 1),
}


def _regular_part(parts: tuple[Part, ...]) -> tuple[_Sends, int] | None:
    return REGULAR.get((parts[0].operation, parts[0].algorithm)) if len(parts) == 1 else None


def transfers_of(parts: tuple[Part, ...], ranks: int) -> Transfers:
    """Return the messages of a collective, part after part."""
    regular = _regular_part(parts)
    if regular is not None:
        return _regular(ranks, *regular)
    source: list[int] = []
    destination: list[int] = []
    sizes: list[int] = []
    blocks: list[int] = []
    optional: list[bool] = []
    first = [0]
    for part in joined(parts, ranks):
        for transfer in part:
            source.append(transfer.src)
            destination.append(transfer.dst)
            sizes.append(len(transfer.blocks))
            blocks.extend(transfer.blocks)
            optional.append(transfer.optional)
        first.append(len(source))
    block, first_block = np.array(blocks, np.int32), np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return Transfers(
        np.array(first, np.int64), np.array(source, np.int32), np.array(destination, np.int32), block, first_block,
        np.array(optional, np.bool_), block[first_block[:-1]] == NOTHING,
    )


def _regular(ranks: int, sends: _Sends, times: int) -> Transfers:
    rounds = times * (ranks - 1)
    ring = np.tile(np.arange(ranks, dtype=np.int32), 2)
    source, destination, blocks = (np.empty((rounds, ranks), np.int32) for _ in range(3))
    source[:] = ring[:ranks]
    for step in range(rounds):
        destination[step], blocks[step] = sends(ranks, step, ring)
    return Transfers(
        np.arange(rounds + 1, dtype=np.int64) * ranks, source.reshape(-1), destination.reshape(-1), blocks.reshape(-1),
        np.empty(0, np.int64), np.empty(0, np.bool_), np.empty(0, np.bool_),
    )


@kernel
def _count(source, destination, first):  # type: ignore[no-untyped-def]
    for t in range(len(source)):
        first[source[t] + 1] += 2
        first[destination[t] + 1] += 2


@kernel
def _operate(round_first, source, destination, at, operation):  # type: ignore[no-untyped-def]
    """In a round every rank posts its receives, sends, waits for what it receives and until all has left."""
    for r in range(len(round_first) - 1):
        for kind in (POST, SEND, RECEIVE, WAIT_SENT):
            receives = kind in (POST, RECEIVE)
            for t in range(round_first[r], round_first[r + 1]):
                rank = destination[t] if receives else source[t]
                operation[at[rank]] = KINDS * t + kind
                at[rank] += 1


@kernel
def _operate_alike(ranks, destination, kind, operand):  # type: ignore[no-untyped-def]
    """Do the same where in a round each rank sends one message, in order, and receives one."""
    rounds = len(destination) // ranks
    came = np.empty((_ROUNDS, ranks), np.int32)  # which rank sends to this one
    for start in range(0, rounds, _ROUNDS):  # some rounds of a rank at a time: lines of the cache are filled
        count = min(_ROUNDS, rounds - start)
        for i in range(count):
            for rank in range(ranks):
                came[i, destination[(start + i) * ranks + rank]] = rank
        for rank in range(ranks):
            at = 4 * (rank * rounds + start)
            for i in range(count):
                base = (start + i) * ranks
                kind[at], kind[at + 1], kind[at + 2], kind[at + 3] = POST, SEND, RECEIVE, WAIT_SENT
                operand[at] = operand[at + 2] = base + came[i, rank]
                operand[at + 1] = operand[at + 3] = base + rank
                at += 4


def alike_operations(
    ranks: int, destination: NDArray[np.int32]
) -> tuple[NDArray[np.int8], NDArray[np.int64]]:
    """Return kinds and transfers of the operations of all ranks, rank by rank, for one of `REGULAR`.

    Parameters
    ----------
    ranks : int
        How many there are.
    destination : ndarray, int32[transfer]
        Who gets each transfer.
    """
    kind, operand = np.empty(4 * len(destination), np.int8), np.empty(4 * len(destination), np.int64)
    _operate_alike(ranks, destination, kind, operand)
    return kind, operand


def is_large(parts: tuple[Part, ...], ranks: int) -> bool:
    """Whether a collective is one of `REGULAR` that is not kept."""
    regular = _regular_part(parts)
    return regular is not None and regular[1] * (ranks - 1) * ranks > KEPT_TRANSFERS


def expanded(parts: tuple[Part, ...], ranks: int) -> Expanded:
    """Return messages and operations of a collective, part after part; small ones are kept."""
    return (_expanded if is_large(parts, ranks) else _kept)(parts, ranks)


def _expanded(parts: tuple[Part, ...], ranks: int) -> Expanded:
    transfers = transfers_of(parts, ranks)
    first = np.zeros(ranks + 1, np.int64)
    if _regular_part(parts) is not None:
        first += np.arange(ranks + 1) * (4 * len(transfers.source) // ranks)
        kind, operations = alike_operations(ranks, transfers.destination)
        operations *= KINDS
        operations += kind
    else:
        operations = np.empty(4 * len(transfers.source), np.int64)
        _count(transfers.source, transfers.destination, first)
        np.cumsum(first, out=first)
        _operate(transfers.round_first, transfers.source, transfers.destination, first[:-1].copy(), operations)
    return Expanded(transfers, tuple(operations[first[r] : first[r + 1]] for r in range(ranks)))


_kept = lru_cache(maxsize=256)(_expanded)
