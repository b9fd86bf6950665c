"""What comes in a cycle, in the order of its place: numbers ``place << 32 | packet``."""

from typing import Any

from hopforge.model.dqn.dense import part

__all__ = ["LOW", "sort"]

#: mask of the packet
LOW = (1 << 32) - 1


@part
def sort(numbers: Any, count: int) -> None:
    """Sort the first `count` of a few numbers."""
    for k in range(1, count):
        number, place = numbers[k], k
        while place > 0 and numbers[place - 1] > number:
            numbers[place] = numbers[place - 1]
            place -= 1
        numbers[place] = number
