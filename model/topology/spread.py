"""Spread over all shortest ways by hashes of what a packet says (ECMP): of every router, and of its source.

The hash of a router (`port_place`) is one that hardware can afford: bits are added (⊕) and multiplied (∧) in two
rounds, without carries. The router's number enters before both, so that choices of routers one behind the other do not
depend on each other, as those of hashes that are linear do.
"""

from typing import Any

import numpy as np
from numba import njit

from hopforge.model.errors import UserError
from hopforge.model.topology.base import Topology, TopologyError

__all__ = [
    "ENTROPY_FACTOR",
    "FEW_BITS",
    "FEW_WAYS",
    "FIRST_FACTORS",
    "FOLD_TURNS",
    "GOAL_TURN",
    "HALF_BITS",
    "LAST_TURNS",
    "SECOND_FACTORS",
    "entropy_place",
    "flow_place",
    "port_place",
    "refuse_other_addresses",
    "refuse_spread",
    "router_key",
]

HALF_BITS = 16
"""Bits of the hash of a router; what enters it has twice as many."""

GOAL_TURN = 16
"""By how much the destination is rotated, to the left as all of these, before it is added to the source."""

FIRST_FACTORS, FOLD_TURNS = (6, 9), (7, 16, 19, 27)
"""Rotations of the first round, in 32 bits: of both factors of what is added, then of what is added, of which the lower
half remains."""

SECOND_FACTORS, LAST_TURNS = (1, 5), (5, 7)
"""Those of the second round, in 16 bits: of both factors of what is added, then of what is added."""

FEW_WAYS, FEW_BITS = 16, 8
"""Among so many ways as many upper bits of the hash choose, among more all."""

_WORD, _HALF = 0xFFFFFFFF, 0xFFFF
_ROUTER_FACTOR = 2654435761
_A, _B = FIRST_FACTORS
_C, _D, _E, _F = FOLD_TURNS
_G, _H = SECOND_FACTORS
_I, _J = LAST_TURNS

#: of sources: odd multipliers with well mixed bits: 2^32 divided by the golden ratio, and two of MurmurHash3
_SOURCE_FACTOR, _GOAL_FACTOR, _LAST_FACTOR = 2654435761, 2246822507, 3266489909
#: ... and one of xxHash, for routers, too
ENTROPY_FACTOR = 668265263


def router_key(router: int) -> int:
    """Return what a router adds to its hash in the first round, 32 bits."""
    word = (router + 1) * _ROUTER_FACTOR & _WORD
    return word ^ word >> 16


@njit
def _turned(word: Any, by: int) -> Any:
    return (word << by | word >> (32 - by)) & _WORD


@njit
def _half_turned(word: Any, by: int) -> Any:
    return (word << by | word >> (16 - by)) & _HALF


@njit
def port_place(src: Any, dst: Any, entropy: Any, router: Any, ways: Any) -> Any:
    """Return which of several equal ports the packets of an entropy take at a router, 0 … ways − 1."""
    key = ((router + 1) * _ROUTER_FACTOR) & _WORD
    word = (src & _WORD) ^ _turned(dst & _WORD, GOAL_TURN) ^ ((entropy * ENTROPY_FACTOR) & _WORD)
    word ^= key ^ (key >> 16)
    word ^= _turned(word, _A) & _turned(word, _B)
    half = (word ^ _turned(word, _C) ^ _turned(word, _D) ^ _turned(word, _E) ^ _turned(word, _F)) & _HALF
    half ^= _half_turned(half, _G) & _half_turned(half, _H)
    half ^= _half_turned(half, _I) ^ _half_turned(half, _J)
    if ways <= FEW_WAYS:
        return ((half >> (HALF_BITS - FEW_BITS)) * ways) >> FEW_BITS
    return (half * ways) >> HALF_BITS


@njit
def entropy_place(src: Any, dst: Any, entropy: Any, number: Any, ways: Any) -> Any:
    """Return which of several ways a source chooses for the packets of an entropy, 0 … ways − 1."""
    word = (((src + 1) * _SOURCE_FACTOR) ^ (entropy * ENTROPY_FACTOR)) & _WORD
    word = ((word ^ (word >> 15) ^ dst) * _GOAL_FACTOR) & _WORD
    word = ((word ^ (word >> 13) ^ number) * _LAST_FACTOR) & _WORD
    return (word ^ (word >> 16)) % ways


@njit
def flow_place(src: Any, dst: Any, number: Any, ways: Any) -> Any:
    """Return which of several ways a source chooses for its packets to a host, 0 … ways − 1."""
    return entropy_place(src, dst, 0, number, ways)


def refuse_spread(spread: str | None, what: str) -> None:
    """Refuse what cannot spread packets.

    Raises
    ------
    TopologyError
        Naming what cannot have it.
    """
    if spread is not None:
        raise TopologyError("routing.spread", f"{spread} is not for {what}, which know one way to a destination")


def refuse_other_addresses(topology: Topology, who: str) -> None:
    """Refuse addresses that are not the numbers of the hosts, where `who` takes them for those: it would hash others.

    Raises
    ------
    UserError
        Naming the first such host, and the same network with other addresses.
    """
    wrong = np.flatnonzero(topology.host_address != np.arange(topology.hosts))
    if len(wrong):
        host = int(wrong[0])
        raise UserError(
            f"{who} needs addresses that are the numbers of hosts, as graphs have them; that of host {host} is "
            f"{int(topology.host_address[host])} (`hopforge topology FILE --export anynet -o NAME.anynet` writes this "
            "network as a graph; topology: {kind: edge_list, format: anynet, file: NAME.anynet} reads it)"
        )
