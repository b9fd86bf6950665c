"""What the algorithms of collectives are written in: rounds of transfers of numbered blocks."""

from collections.abc import Callable
from typing import NamedTuple

NOTHING = -1
"""Number of a block without bytes: a message that only says "go on"."""


class Transfer(NamedTuple):
    """`blocks` go from rank `src` to rank `dst`, which keeps them or, with `combine`, reduces them into its own.

    With `optional` there is no message if the blocks have no bytes.
    """

    src: int
    dst: int
    blocks: tuple[int, ...]
    combine: bool = False
    optional: bool = False


Schedule = tuple[tuple[Transfer, ...], ...]
Algorithm = Callable[[int, int], Schedule]


def rounds_of(rounds: list[list[Transfer]]) -> Schedule:
    """Return the rounds that have transfers."""
    return tuple(tuple(part) for part in rounds if part)


def power_below(p: int) -> int:
    """Return the largest power of two that is at most p."""
    return 1 << (p.bit_length() - 1)


def binomial_tree(p: int, root: int) -> list[list[tuple[int, int, int]]]:
    """Return rounds of (parent, child, size of the child's subtree) of the binomial tree, root first."""
    rounds = []
    mask = 1 << max(p - 1, 0).bit_length() >> 1
    while mask:
        rounds.append([
            ((rank + root) % p, (rank + mask + root) % p, min(mask, p - rank - mask))
            for rank in range(0, p - mask, 2 * mask)
        ])
        mask >>= 1
    return rounds
