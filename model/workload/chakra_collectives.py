"""Collectives of Chakra as sends and receives of each member, by the named algorithms of `collectives`."""

import itertools
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config.workload import ChakraWorkload, CollectivesConfig
from hopforge.model.workload.chakra_groups import Members
from hopforge.model.workload.collective_choice import Chosen, Part, choose, joined
from hopforge.model.workload.collective_rounds import NOTHING, Schedule
from hopforge.model.workload.collective_sizes import VECTORS, Amount
from hopforge.model.workload.protobuf import WireError
from hopforge.model.workload.schedule import RECV, SEND

NAMES = (
    "all-reduce", "reduce", "all-gather", "gather", "scatter", "broadcast", "all-to-all", "reduce-scatter",
    "reduce-scatter block", "barrier",
)  # fmt: skip
"""Names of comm_type."""
BROADCAST, BARRIER = 5, 9
#: comm_type → key of `workload.collectives`
EXPANDED = {0: "allreduce", 2: "allgather", 5: "bcast", 6: "alltoall", 7: "reduce_scatter", 9: "barrier"}


class Template(NamedTuple):
    """An algorithm for so many members, without sizes.

    Attributes
    ----------
    rounds : int
        How many rounds it has: a pair has at most one transfer in a round.
    blocks, first_block : ndarray, int64[...]
        Blocks of each transfer.
    first : ndarray, int64[member + 1]
        Where the operations of a member begin; a round's receives, then its sends.
    kind, peer, transfer, round : ndarray, int[operation]
        RECV or SEND, other member, which transfer, in which round.
    head, tail : ndarray, bool[operation]
        Of the first and of the last round of its member.
    before, after : ndarray, int64[...]
        Operations of which the latter waits for the former: all of a member's round for all of its round before.
    first_pair : ndarray, int64[member + 1]
        Where the pairs of a member begin.
    """

    rounds: int
    blocks: NDArray[np.int64]
    first_block: NDArray[np.int64]
    first: NDArray[np.int64]
    kind: NDArray[np.uint8]
    peer: NDArray[np.int64]
    transfer: NDArray[np.int64]
    round: NDArray[np.int64]
    head: NDArray[np.bool_]
    tail: NDArray[np.bool_]
    before: NDArray[np.int64]
    after: NDArray[np.int64]
    first_pair: NDArray[np.int64]


@lru_cache(maxsize=16)
def template(chosen: tuple[Part, ...], ranks: int, left_out: frozenset[int] = frozenset()) -> Template:
    """Return algorithms (`collective_choice.joined`) as the operations of each member.

    Transfers `left_out`, by their number, are not sent.
    """
    numbers = itertools.count()
    parts = tuple(
        found for part in joined(chosen, ranks)
        if (found := tuple(each for each in part if next(numbers) not in left_out))
    )
    return as_template(parts, ranks)


def as_template(parts: Schedule, ranks: int) -> Template:
    """Return rounds of transfers as the operations of each member."""
    transfers = [each for part in parts for each in part]
    lengths = np.array([len(each.blocks) for each in transfers], np.int64)
    blocks = np.array([block for each in transfers for block in each.blocks], np.int64)
    ends = np.array([(each.dst, each.src) for each in transfers], np.int64).reshape(-1, 2)
    count, number = len(transfers), np.arange(len(transfers))
    in_round = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    member, peer = ends.T.reshape(-1), ends[:, ::-1].T.reshape(-1)
    kind = np.repeat(np.array([RECV, SEND], np.uint8), count)
    rounds, transfer = np.tile(in_round, 2), np.tile(number, 2)
    order = np.lexsort((kind == SEND, rounds, member))
    member, peer, rounds, transfer = (each[order] for each in (member, peer, rounds, transfer))
    kind = kind[order]
    first = np.searchsorted(member, np.arange(ranks + 1))
    head, tail, before, after = _round_after_round(member, rounds)
    return Template(
        len(parts), blocks, np.cumsum(lengths) - lengths, first, kind, peer, transfer, rounds, head, tail,
        before, after, np.searchsorted(member[after], np.arange(ranks + 1)),
    )  # fmt: skip


def _round_after_round(
    member: NDArray[np.int64], rounds: NDArray[np.int64]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.int64], NDArray[np.int64]]:
    """Return which operations are of a first and of a last round, and the pairs between rounds."""
    count = len(member)
    new = np.ones(count, np.bool_)
    new[1:] = (member[1:] != member[:-1]) | (rounds[1:] != rounds[:-1])
    start = np.flatnonzero(new)  # of the part of a member in a round
    part = np.cumsum(new) - 1
    size = np.diff(np.append(start, count))
    follows = np.zeros(len(start), np.bool_)
    follows[1:] = member[start[1:]] == member[start[:-1]]
    leads = np.append(follows[1:], False) if len(start) else follows
    waits = np.where(follows[part], size[part - 1], 0) if count else np.zeros(0, np.int64)
    after = np.repeat(np.arange(count), waits)
    inside = np.arange(len(after)) - np.repeat(np.cumsum(waits) - waits, waits)
    before = start[part[after] - 1] + inside
    return ~follows[part], ~leads[part], before, after


class Collective(NamedTuple):
    """A collective as its members agree on it.

    Attributes
    ----------
    kind : int
        comm_type.
    size : int
        comm_size, in bytes.
    root : int
        Of broadcast: place in `members`.
    members : tuple of int
        Ranks.
    """

    kind: int
    size: int
    root: int
    members: Members

    def messages(self, config: ChakraWorkload) -> tuple[Template, NDArray[np.int64]]:
        """Return the operations of its members, and int64[transfer]: bytes of each message, at least 1.

        Raises
        ------
        WireError
            A message of 2⁶³ bytes or more.
        RulesError
            The file of rules cannot be read.
        """
        return _messages(
            self.kind, self.root, len(self.members), self.size, config.all_gather_size, config.collectives
        )


def _amount(operation: str, members: int, size: int, all_gather_size: str) -> Amount:
    """Return what `comm_size` means; an element is a byte, for the trace does not tell more."""
    if operation in VECTORS:
        return Amount(size, 1)
    if operation == "allgather" and all_gather_size == "part":
        if size * members >= 1 << 63:
            raise WireError(f"comm_size {size} of {members} ranks together are 2^63 bytes or more")
        return Amount(size, 1, np.full(members, size))
    pieces = size // members + (np.arange(members) < size % members)
    return Amount(size, 1, np.tile(pieces, members) if operation == "alltoall" else pieces)


@lru_cache(maxsize=16)
def _messages(
    kind: int, root: int, members: int, size: int, all_gather_size: str, collectives: CollectivesConfig
) -> tuple[Template, NDArray[np.int64]]:
    """Return the operations of members, and int64[transfer]: bytes of each message."""
    operation = EXPANDED[kind]
    amount = _amount(operation, members, size, all_gather_size)
    chosen = choose(collectives, operation.replace("_", ""), members, root, amount)
    found = template(chosen.parts, members)
    if not len(found.blocks):
        return found, np.empty(0, np.int64)
    sizes = np.add.reduceat(chosen.sizes(members)[found.blocks], found.first_block)
    empty = _left_out(chosen, members, sizes)
    if empty:
        found, sizes = template(chosen.parts, members, empty), np.delete(sizes, sorted(empty))
    return found, np.maximum(sizes, 1)


def _left_out(chosen: Chosen, members: int, sizes: NDArray[np.int64]) -> frozenset[int]:
    """Return the numbers of the transfers that are not sent because they have no bytes."""
    if sizes.all():
        return frozenset()
    transfers = [each for part in joined(chosen.parts, members) for each in part]
    return frozenset(
        number for number, (each, size) in enumerate(zip(transfers, sizes.tolist(), strict=True))
        if not size and each.blocks[0] != NOTHING and (chosen.skip_empty or each.optional)
    )
