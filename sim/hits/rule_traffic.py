"""Lookups and updates for a table of rules: flows of Zipf's law, and rules that come, go and change among them.

Definition: docs/definitions/rule-caches.md.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopforge.model.lookup.rules.cube_kernel import KINDS, PrefixEvents
from hopforge.model.lookup.rules.cubes import prefix_mask
from hopforge.model.lookup.rules.rule_table import Rule, RuleTable, Update

__all__ = ["RuleTraffic", "draw_traffic"]

_TRIES = 20


class RuleTraffic(NamedTuple):
    """Lookups, and the updates among them.

    Attributes
    ----------
    addresses : ndarray, int64[lookup]
        In their order.
    before : ndarray, int64[update]
        Lookup before which an update falls, ascending; the number of lookups: after the last one.
    updates : list of Update
        In their order.
    """

    addresses: NDArray[np.int64]
    before: NDArray[np.int64]
    updates: list[Update]

    def events(self) -> Iterator[int | Update]:
        """Yield lookups and updates in their order."""
        start = 0
        for place, update in zip(self.before.tolist(), self.updates, strict=True):
            yield from self.addresses[start:place].tolist()
            yield update
            start = place
        yield from self.addresses[start:].tolist()

    def prefix_events(self) -> PrefixEvents:
        """Return the same for the kernel; the rules are prefixes."""
        rules = [update.rule for update in self.updates]
        kinds = np.array([KINDS.index(update.kind) for update in self.updates], np.int64)
        columns = np.array([(rule.value, rule.priority, rule.out) for rule in rules], np.int64).reshape(-1, 3)
        values, lengths, outs = columns.T.copy()
        return PrefixEvents(self.addresses, self.before, kinds, values, lengths, outs.astype(np.int32))


def draw_traffic(
    rules: Sequence[Rule], width: int, hops: int, *, lookups: int, updates: int, flows: int, zipf: float,
    rng: np.random.Generator,
) -> RuleTraffic:
    """Draw lookups and updates.

    Each of `flows` flows has an address in a rule that is drawn uniformly, all its free bits are random. Flow k
    (from 1) sends a lookup with a probability that goes with k to the power of -`zipf`. Updates fall anywhere; each
    is with equal probability a new answer of a rule, the end of a rule, or a rule that is a part of another one.

    Parameters
    ----------
    rules : sequence of Rule
        The table at the start, not empty.
    width : int
        Bits of an address.
    hops : int
        Answers are 0 to `hops` - 1.
    lookups, updates, flows : int
        How many.
    zipf : float
        Exponent; 0: all flows alike.
    rng : numpy.random.Generator
        What all is drawn from.
    """
    values = np.array([rule.value for rule in rules], np.int64)
    masks = np.array([rule.mask for rule in rules], np.int64)
    which = rng.integers(0, len(rules), flows)
    address = values[which] | rng.integers(0, 1 << width, flows) & ~masks[which]
    shares = np.cumsum(np.arange(1, flows + 1, dtype=float) ** -zipf)
    ranks = np.searchsorted(shares, rng.random(lookups) * shares[-1], side="right")
    before = np.sort(rng.integers(0, lookups + 1, updates))
    drawn = _Changes(rules, width, hops, rng)
    return RuleTraffic(address[np.minimum(ranks, flows - 1)], before, [drawn.next() for _ in range(updates)])


class _Changes:
    """Updates of a table that stays about as large as it is."""

    def __init__(self, rules: Sequence[Rule], width: int, hops: int, rng: np.random.Generator) -> None:
        self._live, self._width, self._hops, self._rng = list(rules), width, hops, rng
        self._cubes = {(rule.value, rule.mask) for rule in rules}
        self._next_id = max(rule.id for rule in rules) + 1
        self._is_prefix = RuleTable(rules, width).is_prefix_table

    def _draw(self, below: int) -> int:
        return int(self._rng.integers(0, below))

    def next(self) -> Update:
        kind = KINDS[self._draw(len(KINDS))]
        place = self._draw(len(self._live))
        rule = self._live[place]
        if kind == "add":
            part = self._part_of(rule)
            if part is not None:
                self._live.append(part)
                self._cubes.add((part.value, part.mask))
                self._next_id += 1
                return Update("add", part)
        if kind == "del" and len(self._live) > 1:
            self._live[place] = self._live[-1]
            self._live.pop()
            self._cubes.discard((rule.value, rule.mask))
            return Update("del", rule)
        self._live[place] = rule._replace(out=self._draw(self._hops))
        return Update("mod", self._live[place])

    def _part_of(self, rule: Rule) -> Rule | None:
        """Return a new rule with more bits that matter, a prefix if all are; None: hardly any is free."""
        for _ in range(_TRIES):
            if self._is_prefix:
                length = rule.priority + 1 + self._draw(max(self._width - rule.priority, 1))
                mask = prefix_mask(min(length, self._width), self._width)
                priority = mask.bit_count()
            else:
                mask = rule.mask | (self._draw(1 << self._width) & self._draw(1 << self._width))
                priority = rule.priority + 1 + self._draw(8)
            value = rule.value | (self._draw(1 << self._width) & mask & ~rule.mask)
            if (value, mask) not in self._cubes:
                return Rule(self._next_id, value, mask, priority, self._draw(self._hops))
        return None
