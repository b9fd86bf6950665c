"""Keys of destinations as the definition says them, one at a time, for people.

Source: seed 004, chapter 5, as corrected in the specification of the lookup path.
"""

from collections.abc import Sequence
from typing import Literal

__all__ = ["HumanKey", "UpChoice", "arbitrary_key", "dragonfly_key", "fat_tree_key", "mesh_key", "torus_key"]

HumanKey = tuple[str] | tuple[str, int] | tuple[str, int, str]
"""A key for people: ("L",), ("L", terminal), ("X", dimension, "+" or "-"), ("U", j), ("D", j), ("T", terminal),
("R", router), ("G", group), ("A", address)."""

UpChoice = Literal["d_mod_k", "highest_mismatch"]


def mesh_key(c: Sequence[int], d: Sequence[int]) -> HumanKey:
    """Key of destination digits `d` at the mesh switch `c`: the first dimension that differs decides.

    Examples
    --------
    >>> mesh_key((1, 1), (0, 2))
    ('X', 0, '-')
    """
    for i in range(len(c)):
        if d[i] > c[i]:
            return ("X", i, "+")
        if d[i] < c[i]:
            return ("X", i, "-")
    return ("L",)


def torus_key(c: Sequence[int], d: Sequence[int], radices: Sequence[int]) -> HumanKey:
    """Key of destination digits `d` at the torus switch `c`; a tie (half way around) follows the sign of d − c.

    Examples
    --------
    >>> torus_key((1, 1), (1, 4), (5, 5))
    ('X', 1, '-')
    """
    for i in range(len(c)):
        offset = d[i] - c[i]
        if offset > radices[i] // 2:
            return ("X", i, "-")
        if offset > 0:
            return ("X", i, "+")
        if offset < -(radices[i] // 2):
            return ("X", i, "+")
        if offset < 0:
            return ("X", i, "-")
    return ("L",)


def fat_tree_key(level: int, c: Sequence[int], d: Sequence[int], up_choice: UpChoice = "d_mod_k") -> HumanKey:
    """Key of host digits `d` at the switch (level; c) of a k-ary tree: up if the host is not below, else down.

    Parameters
    ----------
    level : int
        0 = leaf … n = root.
    c : sequence of int
        n digits of the switch, digit 0 first.
    d : sequence of int
        n + 1 digits of the host, digit 0 first.
    up_choice : {"d_mod_k", "highest_mismatch"}
        Up by d_level (balanced), or by d_i with i the highest digit for which d_{i+1} ≠ c_i.

    Examples
    --------
    >>> fat_tree_key(0, (0, 0), (0, 0, 1)), fat_tree_key(1, (0, 0), (0, 1, 0))
    (('U', 0), ('D', 1))
    """
    for i in range(len(c) - 1, level - 1, -1):
        if d[i + 1] != c[i]:
            return ("U", d[level] if up_choice == "d_mod_k" else d[i])
    return ("D", d[level])


def dragonfly_key(c: Sequence[int], d: Sequence[int]) -> HumanKey:
    """Key of destination `d` = (terminal, router, group) at the dragonfly router `c` = (router, group).

    Examples
    --------
    >>> dragonfly_key((1, 0), (0, 1, 5)), dragonfly_key((1, 5), (0, 2, 5)), dragonfly_key((2, 5), (0, 2, 5))
    (('G', 5), ('R', 2), ('T', 0))
    """
    router, group = c
    if d[2] != group:
        return ("G", d[2])
    if d[1] != router:
        return ("R", d[1])
    return ("T", d[0])


def arbitrary_key(d: int) -> HumanKey:
    """Key of destination address `d` where nothing is known of the network: the address itself.

    Examples
    --------
    >>> arbitrary_key(17)
    ('A', 17)
    """
    return ("A", d)
