"""Collectives of a program that collective units do: which calls these are, and what each asks of the units.

docs/definitions/network-collectives.md#in-programs says what units can do.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopforge.model.workload.trace import DATATYPES

__all__ = ["UnitCall", "UnitCalls", "UnitGroups"]

_BYTES = ("BYTE", "CHAR", "PACKED")
"""Types without numbers: of an all-reduce they are taken as words."""
_WHOLE = frozenset({
    "INT", "SHORT", "LONG", "LONG_LONG", "SIGNED_CHAR", "UNSIGNED_CHAR", "UNSIGNED_SHORT", "UNSIGNED", "UNSIGNED_LONG",
    "UNSIGNED_LONG_LONG", "INT8_T", "INT16_T", "INT32_T", "INT64_T", "UINT8_T", "UINT16_T", "UINT32_T", "UINT64_T",
    "AINT", "OFFSET", "COUNT", "INTEGER2", "INTEGER4", "INTEGER8", "INTEGER16",
})  # fmt: skip


@dataclass(frozen=True)
class UnitGroups:
    """Groups of a collective plane, and the hosts of the ranks.

    Parameters
    ----------
    groups : tuple of tuple of int
        Hosts of each group, in increasing order.
    width_bits : int
        Of a word.
    """

    groups: tuple[tuple[int, ...], ...]
    width_bits: int

    def words(self, size_bytes: int) -> int:
        """Return the words of a vector; without data it is one empty word."""
        return max(1, -(-8 * size_bytes // self.width_bits))

    def group_of(self, hosts: Sequence[int]) -> int | str:
        """Return the group that these hosts are, one for each member; or why they are none."""
        if len(set(hosts)) < len(hosts):
            return "several of its ranks are on one host"
        wanted = tuple(sorted(hosts))
        if wanted in self.groups:
            return self.groups.index(wanted)
        return f"no group of collective_plane.groups has just the {len(hosts)} hosts of its ranks"

    def problem(self, operation: str, datatypes: Sequence[int]) -> str:
        """Say why words of these datatypes cannot be combined by units; empty: they can.

        Parameters
        ----------
        operation : str
            barrier, bcast or allreduce: the others combine nothing.
        datatypes : sequence of int
            Of the members (`DATATYPES`).
        """
        if operation != "allreduce":
            return ""
        for datatype in datatypes:
            name, size = DATATYPES[datatype]
            if name in _BYTES:
                continue
            if name not in _WHOLE:
                return f"units combine whole numbers, not {name}"
            if 8 * size != self.width_bits:
                return f"{name} has {8 * size} bits, a word {self.width_bits} (collective_plane.width_bits)"
        return ""


class UnitCall(NamedTuple):
    """A collective that units do.

    Attributes
    ----------
    operation : str
        barrier, bcast or allreduce.
    group : int
        Whose.
    words : int
        Of the vector.
    members : tuple of int
        Ranks.
    source : int
        Place of the root of a bcast among the members; -1: all send.
    """

    operation: str
    group: int
    words: int
    members: tuple[int, ...]
    source: int


@dataclass(frozen=True, eq=False)
class UnitCalls:
    """All collectives of a program that units do; a *part* is what one member does for one call.

    Attributes
    ----------
    calls : tuple of UnitCall
        Numbered from 0.
    first : ndarray, int64[call + 1]
        Where the parts of a call begin, in the order of its members.
    rank, call : ndarray, int32[part]
        Whose, and for which.
    sends : ndarray, bool[part]
        Whether the result waits for it: of a bcast only that of its root.
    """

    calls: tuple[UnitCall, ...]
    first: NDArray[np.int64]
    rank: NDArray[np.int32]
    call: NDArray[np.int32]
    sends: NDArray[np.bool_]

    @classmethod
    def of(cls, calls: Sequence[UnitCall]) -> "UnitCalls":
        """Return calls with their parts numbered."""
        counts = [len(call.members) for call in calls]
        first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        sends = [
            np.ones(len(call.members), bool) if call.source < 0 else np.arange(len(call.members)) == call.source
            for call in calls
        ]
        return cls(
            tuple(calls), first, np.concatenate([np.array(call.members, np.int32) for call in calls]),
            np.repeat(np.arange(len(calls), dtype=np.int32), counts), np.concatenate(sends),
        )

    @property
    def parts(self) -> int:
        """How many parts there are."""
        return len(self.rank)
