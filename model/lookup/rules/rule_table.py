"""A table of rules and what a TCAM answers: the matching rule of highest priority, of equal ones the lowest id.

Definition: docs/definitions/rule-caches.md. A prefix table has prefix masks, and priorities that are their lengths.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopforge.model.lookup.rules.cube_columns import CubeColumns
from hopforge.model.lookup.rules.cubes import prefix_mask, uncovered

__all__ = ["MOST_WIDTH", "Rule", "RuleTable", "Update"]

MOST_WIDTH = 128
"""Bits of an address."""

_FIRST_BLOCK = 256


class Rule(NamedTuple):
    """A rule; it matches an address when ``address & mask == value``.

    Attributes
    ----------
    id : int
        Name of the rule.
    value, mask : int
        What it matches; ``value & ~mask`` is 0.
    priority : int
        The larger one wins.
    out : int
        The answer: the number of a next hop.
    """

    id: int
    value: int
    mask: int
    priority: int
    out: int

    @property
    def order(self) -> tuple[int, int]:
        """Sorts rules as a TCAM does: what wins comes first."""
        return -self.priority, self.id


class Update(NamedTuple):
    """A change of the table between two lookups.

    Attributes
    ----------
    kind : str
        ``add``, ``del`` or ``mod``.
    rule : Rule
        The rule added, the rule deleted, or the rule with its new answer.
    """

    kind: str
    rule: Rule


class RuleTable:
    """Rules in the order in which they win.

    Parameters
    ----------
    rules : iterable of Rule
        In any order.
    width : int
        Bits of an address.

    Raises
    ------
    ValueError
        A width, value or mask out of range, a bit of a value outside its mask, or an id that is there twice.
    """

    def __init__(self, rules: Iterable[Rule], width: int) -> None:
        if not 1 <= width <= MOST_WIDTH:
            raise ValueError(f"width must be 1 to {MOST_WIDTH} bits, not {width}")
        self.width = width
        self.rules = sorted(rules, key=lambda rule: rule.order)
        self._orders = [rule.order for rule in self.rules]
        self._by_id = {rule.id: rule for rule in self.rules}
        for rule in self.rules:
            self._check(rule)
        if len(self._by_id) < len(self.rules):
            raise ValueError("two rules have the same id")
        self._columns: CubeColumns | None = None

    def _check(self, rule: Rule) -> None:
        top = 1 << self.width
        if not (0 <= rule.value < top and 0 <= rule.mask < top):
            raise ValueError(f"rule {rule.id}: value and mask must be below 2^{self.width}")
        if rule.value & ~rule.mask:
            raise ValueError(f"rule {rule.id}: value {rule.value:#x} has bits outside mask {rule.mask:#x}")

    def __len__(self) -> int:
        return len(self.rules)

    def __contains__(self, number: int) -> bool:
        return number in self._by_id

    def __getitem__(self, number: int) -> Rule:
        return self._by_id[number]

    def named(self, numbers: Iterable[int]) -> list[Rule]:
        """Return rules by their ids."""
        by_id = self._by_id
        return [by_id[number] for number in numbers]

    @property
    def full_mask(self) -> int:
        """The mask of a single address."""
        return (1 << self.width) - 1

    @property
    def is_prefix_table(self) -> bool:
        """Whether all masks are those of prefixes, and all priorities their lengths."""
        return all(
            0 <= rule.priority <= self.width and rule.mask == prefix_mask(rule.priority, self.width)
            for rule in self.rules
        )

    @property
    def columns(self) -> CubeColumns:
        """Values and masks in the order of `rules`."""
        if self._columns is None:
            values, masks = [rule.value for rule in self.rules], [rule.mask for rule in self.rules]
            self._columns = CubeColumns(values, masks, self.width)
        return self._columns

    def place(self, rule: Rule) -> int:
        """Return how many rules win over this one."""
        return bisect_left(self._orders, rule.order)

    def match(self, address: int) -> Rule | None:
        """Return the rule that a TCAM finds; None: no rule matches."""
        columns = self.columns
        for first, last in _blocks(len(self)):
            found = columns.matching(address, first, last)
            place = int(found.argmax())
            if found[place]:
                return self.rules[first + place]
        return None

    def answer(self, address: int) -> int | None:
        """Return what a TCAM answers; None: no rule matches, the packet is dropped."""
        rule = self.match(address)
        return None if rule is None else rule.out

    def winners(self, rule: Rule | None, value: int, mask: int) -> list[Rule]:
        """Return the rules that win over `rule` (None: all rules do) and overlap a cube, the best first."""
        places = self._overlapping(value, mask, 0, len(self) if rule is None else self.place(rule))
        return [self.rules[place] for place in places]

    def winning_cubes(self, rule: Rule) -> tuple[list[Rule], NDArray[Any], NDArray[Any]]:
        """Return the rules that win over a rule and overlap it, the next one first, and their values and masks."""
        places = self._overlapping(rule.value, rule.mask, 0, self.place(rule))[::-1]
        return [self.rules[place] for place in places], *self.columns.numbers(places)

    def few_winners(self, rule: Rule, most: int) -> list[int] | None:
        """Return the ids of the rules that win over a rule and overlap it; None: more than `most`.

        No more is looked at than it takes to see that there are too many.
        """
        places: list[int] = []
        for first, last in _blocks(self.place(rule)):
            places += self._overlapping(rule.value, rule.mask, first, last)
            if len(places) > most:
                return None
        return [self._orders[place][1] for place in places]

    def _overlapping(self, value: int, mask: int, first: int, last: int) -> list[int]:
        found: list[int] = (np.flatnonzero(self.columns.overlapping(value, mask, first, last)) + first).tolist()
        return found

    def has_winner(self, rule: Rule | None, value: int, mask: int) -> bool:
        """Tell whether a rule that wins over `rule` overlaps a cube."""
        above = len(self) if rule is None else self.place(rule)
        return bool(self.columns.overlapping(value, mask, 0, above).any())

    def all_answer(self, value: int, mask: int, out: int | None) -> bool:
        """Tell whether every address of a cube has the same, given, answer."""
        places = self._overlapping(value, mask, 0, len(self))
        values, masks = self.columns.numbers(places)
        for k, rule in enumerate(self.rules[place] for place in places):
            shared = value | rule.value, mask | rule.mask
            if rule.out != out and uncovered(*shared, values[:k], masks[:k]):
                return False
        return out is None or not uncovered(value, mask, values, masks)

    def apply(self, update: Update) -> None:
        """Change the table.

        Raises
        ------
        ValueError
            An id to add that is there, or one to delete or change that is not.
        """
        kind, rule = update
        if (rule.id in self._by_id) == (kind == "add"):
            raise ValueError(f"{kind} of rule {rule.id}, which is {'there' if kind == 'add' else 'not there'}")
        if kind == "add":
            self._check(rule)
            self._insert(rule)
        elif kind == "del":
            self._remove(self._by_id[rule.id])
        elif kind == "mod":
            old = self._by_id[rule.id]
            place = self.place(old)
            self.rules[place] = self._by_id[rule.id] = old._replace(out=rule.out)
        else:
            raise ValueError(f"an update is add, del or mod, not {kind}")

    def _insert(self, rule: Rule) -> None:
        place = self.place(rule)
        self.rules.insert(place, rule)
        self._orders.insert(place, rule.order)
        self._by_id[rule.id] = rule
        if self._columns is not None:
            self._columns.insert(place, rule.value, rule.mask)

    def _remove(self, rule: Rule) -> None:
        place = self.place(rule)
        del self.rules[place], self._orders[place], self._by_id[rule.id]
        if self._columns is not None:
            self._columns.delete(place)


def _blocks(count: int) -> Iterator[tuple[int, int]]:
    """Cut places into parts, four times as large each: what is asked for is often among the first ones."""
    first, last = 0, _FIRST_BLOCK
    while first < count:
        yield first, min(last, count)
        first, last = last, 4 * last
