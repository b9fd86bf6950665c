"""Lookups and updates for a table of rules: flows of Zipf's law, and rules that come, go and change among them.

Definition: docs/definitions/rule-caches.md.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopforge.model.lookup.rules.address_words import NARROW_WIDTH, as_addresses, as_numbers
from hopforge.model.lookup.rules.cube_kernel import KINDS, PrefixEvents
from hopforge.model.lookup.rules.cubes import prefix_mask
from hopforge.model.lookup.rules.rule_table import Rule, RuleTable, Update

__all__ = ["RuleTraffic", "draw_traffic"]

_TRIES = 20


class RuleTraffic(NamedTuple):
    """Lookups, and the updates among them.

    Attributes
    ----------
    addresses : ndarray, int64[lookup] or uint64[lookup, 2]
        In their order (`as_addresses`).
    before : ndarray, int64[update]
        Lookup before which an update falls, ascending; the number of lookups: after the last one.
    updates : list of Update
        In their order.
    width : int
        Bits of an address; of those of up to `NARROW_WIDTH` any.
    """

    addresses: NDArray[Any]
    before: NDArray[np.int64]
    updates: list[Update]
    width: int = NARROW_WIDTH

    def events(self) -> Iterator[int | Update]:
        """Yield lookups and updates in their order."""
        start = 0
        for place, update in zip(self.before.tolist(), self.updates, strict=True):
            yield from as_numbers(self.addresses[start:place], self.width)
            yield update
            start = place
        yield from as_numbers(self.addresses[start:], self.width)

    def prefix_events(self) -> PrefixEvents:
        """Return the same for the kernel; the rules are prefixes."""
        rules = [update.rule for update in self.updates]
        kinds = np.array([KINDS.index(update.kind) for update in self.updates], np.int64)
        values = as_addresses([rule.value for rule in rules], self.width)
        lengths = np.array([rule.priority for rule in rules], np.int64)
        outs = np.array([rule.out for rule in rules], np.int32)
        return PrefixEvents(self.addresses, self.before, kinds, values, lengths, outs)

    def counted(self) -> list[tuple[int, int]]:
        """Return each address that is looked up, and how often."""
        axis = None if self.addresses.ndim == 1 else 0
        addresses, counts = np.unique(self.addresses, return_counts=True, axis=axis)
        return list(zip(as_numbers(addresses, self.width), counts.tolist(), strict=True))


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
    address = _in_rules(rules, width, flows, rng)
    shares = np.cumsum(np.arange(1, flows + 1, dtype=float) ** -zipf)
    ranks = np.searchsorted(shares, rng.random(lookups) * shares[-1], side="right")
    before = np.sort(rng.integers(0, lookups + 1, updates))
    drawn = _Changes(rules, width, hops, rng)
    return RuleTraffic(address[np.minimum(ranks, flows - 1)], before, [drawn.next() for _ in range(updates)], width)


def _in_rules(rules: Sequence[Rule], width: int, flows: int, rng: np.random.Generator) -> NDArray[Any]:
    """Return an address in a rule that is drawn for each flow."""
    kind: Any = np.int64 if width <= NARROW_WIDTH else object
    values = np.array([rule.value for rule in rules], kind)
    masks = np.array([rule.mask for rule in rules], kind)
    which = rng.integers(0, len(rules), flows)
    if width <= NARROW_WIDTH:
        return values[which] | rng.integers(0, 1 << width, flows) & ~masks[which]
    noise = np.array([_wide(rng, width) for _ in range(flows)], object)
    return as_addresses((values[which] | noise & ~masks[which]).tolist(), width)


def _wide(rng: np.random.Generator, bits: int) -> int:
    return int.from_bytes(rng.bytes(-(-bits // 8))) & ((1 << bits) - 1)


class _Changes:
    """Updates of a table that stays about as large as it is."""

    def __init__(self, rules: Sequence[Rule], width: int, hops: int, rng: np.random.Generator) -> None:
        self._live, self._width, self._hops, self._rng = list(rules), width, hops, rng
        self._cubes = {(rule.value, rule.mask) for rule in rules}
        self._next_id = max(rule.id for rule in rules) + 1
        self._is_prefix = RuleTable(rules, width).is_prefix_table

    def _draw(self, below: int) -> int:
        if below > 1 << NARROW_WIDTH:  # a power of two
            return _wide(self._rng, below.bit_length() - 1)
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
