"""Spread over all shortest ways by a hash of what a packet says: every router chooses a port by itself (ECMP)."""

from typing import Any

from numba import njit

from hopforge.model.topology.base import TopologyError

__all__ = ["GOAL_FACTOR", "ROUTER_FACTOR", "SOURCE_FACTOR", "entropy_place", "flow_place", "refuse_spread"]

_WORD = 0xFFFFFFFF
#: odd multipliers with well mixed bits: 2^32 divided by the golden ratio, and two of MurmurHash3
SOURCE_FACTOR, GOAL_FACTOR, ROUTER_FACTOR = 2654435761, 2246822507, 3266489909
#: ... and one of xxHash
_ENTROPY = 668265263


@njit
def entropy_place(src: Any, dst: Any, entropy: Any, router: Any, ways: Any) -> Any:
    """Return which of several equal ways the packets of an entropy take at a router, 0 … ways − 1.

    The router's number enters the hash, so that routers one behind the other choose independently.
    """
    word = (((src + 1) * SOURCE_FACTOR) ^ (entropy * _ENTROPY)) & _WORD
    word = ((word ^ (word >> 15) ^ dst) * GOAL_FACTOR) & _WORD
    word = ((word ^ (word >> 13) ^ router) * ROUTER_FACTOR) & _WORD
    return (word ^ (word >> 16)) % ways


@njit
def flow_place(src: Any, dst: Any, router: Any, ways: Any) -> Any:
    """Return which of several equal ways the packets from a host to another take at a router, 0 … ways − 1."""
    return entropy_place(src, dst, 0, router, ways)


def refuse_spread(spread: str | None, what: str) -> None:
    """Refuse what cannot spread packets.

    Raises
    ------
    TopologyError
        Naming what cannot have it.
    """
    if spread is not None:
        raise TopologyError("routing.spread", f"{spread} is not for {what}, which know one way to a destination")
