"""One collective call of all members of a communicator: how it is done, what it moves, which messages are left out."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config.workload import CollectivesConfig
from hopforge.model.workload.agreement import ROOTED
from hopforge.model.workload.calls import KINDS
from hopforge.model.workload.collective_choice import OPERATIONS, Chosen, choose
from hopforge.model.workload.collective_sizes import VECTORS, Amount, Sizes
from hopforge.model.workload.expanded_collectives import Transfers
from hopforge.model.workload.trace import DATATYPES, Action

__all__ = ["CollectiveCall", "kept_transfers", "only_kept"]


class CollectiveCall(NamedTuple):
    """One collective as all members of its communicator called it: by rank in it.

    Attributes
    ----------
    actions : tuple of Action
        The call of each.
    defaults : tuple of int
        Their data type where the call names none.
    members : tuple of int
        Their ranks in the program.
    """

    actions: tuple[Action, ...]
    defaults: tuple[int, ...]
    members: tuple[int, ...]

    @property
    def name(self) -> str:
        """What they call."""
        return self.actions[0].name

    @property
    def datatypes(self) -> list[int]:
        """Data type of each."""
        return [
            default if action.datatype == -2 else action.datatype
            for action, default in zip(self.actions, self.defaults, strict=True)
        ]

    def amount(self, root: int) -> Amount:
        """Return what it moves."""
        ranks = len(self.actions)
        operation = OPERATIONS[self.name]
        action = self.actions[root]
        elements = [DATATYPES[datatype][1] for datatype in self.datatypes]
        element = elements[root]
        if operation in VECTORS:
            return Amount(0 if operation == "barrier" else action.count, element)
        if operation in ("gather", "allgather"):
            own = [each.count * bytes_ for each, bytes_ in zip(self.actions, elements, strict=True)]
            return Amount(action.count, element, np.array(own, np.int64))
        if operation == "alltoall":
            rows = [
                np.array(each.counts or (each.count,) * ranks, np.int64) * bytes_
                for each, bytes_ in zip(self.actions, elements, strict=True)
            ]
            return Amount(action.count, element, np.concatenate(rows))
        return Amount(action.count, element, np.array(action.counts or (action.count,) * ranks, np.int64) * element)

    def chosen(self, collectives: CollectivesConfig) -> Chosen:
        """Return how it is done."""
        root = self.actions[0].root if self.name in ROOTED else 0
        return choose(collectives, self.name, len(self.actions), root, self.amount(root))


def kept_transfers(transfers: Transfers, chosen: Chosen, sizes: Sizes) -> NDArray[np.bool_] | None:
    """Return bool[transfer], which are sent; None: all."""
    if not chosen.skip_empty and not transfers.optional.any():
        return None
    kept = sizes > 0
    if len(transfers.silent):
        kept |= transfers.silent
    if not chosen.skip_empty:
        kept |= ~transfers.optional
    return None if kept.all() else kept


def only_kept(operations: tuple[NDArray[np.int64], ...], kept: NDArray[np.bool_]) -> tuple[NDArray[np.int64], ...]:
    """Return the operations of the transfers that are kept, numbered anew."""
    number = np.cumsum(kept) - 1
    found = []
    for program in operations:
        here = program[kept[program // KINDS]]
        found.append(KINDS * number[here // KINDS] + here % KINDS)
    return tuple(found)
