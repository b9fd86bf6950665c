"""Which algorithm does a collective call: the one that the configuration names, or what the rules of a library say."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from hopforge.model.config.workload import CollectivesConfig
from hopforge.model.workload.collective_rounds import NOTHING, Schedule
from hopforge.model.workload.collective_rules import Rules, read_rules
from hopforge.model.workload.collective_sizes import VECTORS, Amount, Sizes, block_bytes
from hopforge.model.workload.collectives import schedule

#: action of a trace → operation
OPERATIONS = {
    "barrier": "barrier", "bcast": "bcast", "reduce": "reduce", "allreduce": "allreduce", "alltoall": "alltoall",
    "alltoallv": "alltoall", "gather": "gather", "gatherv": "gather", "scatter": "scatter", "scatterv": "scatter",
    "allgather": "allgather", "allgatherv": "allgather", "reducescatter": "reduce_scatter", "scan": "scan",
    "exscan": "scan",
}


class Part(NamedTuple):
    """An operation by an algorithm (`collectives.ALGORITHMS`) with a root."""

    operation: str
    algorithm: str
    root: int


class Chosen(NamedTuple):
    """How a call is done.

    Attributes
    ----------
    parts : tuple of Part
        One after the other on every rank.
    amounts : tuple of Amount
        What each moves.
    cut_bytes : bool
        Pieces of vectors need not be whole elements.
    skip_empty : bool
        There are no messages without bytes.
    """

    parts: tuple[Part, ...]
    amounts: tuple[Amount, ...]
    cut_bytes: bool = False
    skip_empty: bool = False

    @property
    def name(self) -> str:
        """The algorithm; of several parts, each with its operation."""
        if len(self.parts) == 1:
            return self.parts[0].algorithm
        return " + ".join(f"{part.operation} {part.algorithm}" for part in self.parts)

    def sizes(self, ranks: int) -> Sizes:
        """Return int64[block + 1]: bytes of the blocks of `joined`; the last one is that of `NOTHING`."""
        found = [
            block_bytes(part.operation, part.algorithm, ranks, amount, cut_bytes=self.cut_bytes)
            for part, amount in zip(self.parts, self.amounts, strict=True)
        ]
        return np.concatenate([*found, np.zeros(1, np.int64)])


def choose(collectives: CollectivesConfig, call: str, ranks: int, root: int, amount: Amount) -> Chosen:
    """Return how a collective is done.

    Parameters
    ----------
    collectives : CollectivesConfig
        Algorithms and rules.
    call : str
        A key of `OPERATIONS`.
    ranks, root : int
        Of the communicator.
    amount : Amount
        What it moves.

    Raises
    ------
    RulesError
        The file of rules cannot be read.
    """
    operation = OPERATIONS[call]
    algorithm = collectives.named(operation)
    assert algorithm != "in_network", "units do it, or its caller refuses it"
    if algorithm is not None:
        if call == "alltoallv" and algorithm == "bruck":  # it is for equal blocks
            algorithm = "pairwise"
        return Chosen((Part(operation, algorithm, root),), (amount,))
    rules = read_rules(collectives.rules, collectives.rules_file)
    return _by_rules(rules, call, ranks, root, amount)


def _by_rules(rules: Rules, call: str, ranks: int, root: int, amount: Amount) -> Chosen:
    table = rules.tables["reduce_scatter" if call == "reducescatter" else call]
    operation, blocks = OPERATIONS[call], amount.blocks
    counted = amount.bytes
    if operation == "alltoall":
        counted = int(blocks[1]) if len(blocks) > 1 else 0  # from rank 0 to rank 1
    elif operation not in VECTORS:
        total = int(blocks.sum())
        counted = {"total": total, "average": total // ranks}.get(table.counts, int(blocks[root]))
    algorithm = table.choose(ranks, counted, amount.elements)
    whole = amount if operation in VECTORS else _vector(amount)
    match algorithm:
        case "reduce_bcast":
            first, second = _by_rules(rules, "reduce", ranks, 0, whole), _by_rules(rules, "bcast", ranks, 0, whole)
        case "reduce_scatterv":
            first, second = _by_rules(rules, "reduce", ranks, 0, whole), _by_rules(rules, "scatterv", ranks, 0, amount)
        case "gatherv_bcast":  # the broadcast is of one element of a type that holds everything
            everything = Amount(1, whole.bytes)
            first, second = (
                _by_rules(rules, "gatherv", ranks, 0, amount), _by_rules(rules, "bcast", ranks, 0, everything),
            )
        case _:
            part = Part(operation, algorithm, root)
            return Chosen((part,), (amount,), table.cut_bytes, table.skip_empty)
    return Chosen(
        first.parts + second.parts, first.amounts + second.amounts, first.cut_bytes or second.cut_bytes,
        first.skip_empty and second.skip_empty,
    )


def _vector(amount: Amount) -> Amount:
    """Return all blocks together as a vector."""
    return Amount(int(amount.blocks.sum()) // amount.element_bytes, amount.element_bytes)


@lru_cache(maxsize=256)
def joined(parts: tuple[Part, ...], ranks: int) -> Schedule:
    """Return the rounds of all parts, blocks numbered on (`Chosen.sizes`)."""
    rounds: Schedule = ()
    first = 0
    for part in parts:
        found = schedule(part.operation, part.algorithm, ranks, part.root)
        if first:
            found = tuple(
                tuple(each._replace(blocks=tuple(b if b == NOTHING else b + first for b in each.blocks)) for each in r)
                for r in found
            )
        rounds += found
        first += _blocks(part, ranks)
    return rounds


def _blocks(part: Part, ranks: int) -> int:
    """Return how many blocks a part has."""
    several = np.zeros(ranks * ranks if part.operation == "alltoall" else ranks, np.int64)
    return len(block_bytes(part.operation, part.algorithm, ranks, Amount(0, 1, several)))
