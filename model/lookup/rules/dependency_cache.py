"""A cache of whole rules that keeps what they depend on: cover and dependent sets; the golden model.

Definition: docs/definitions/rule-caches.md; after CacheFlow (Katta et al. 2016).
"""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from hopforge.model.lookup.rules.cube_columns import CubeColumns
from hopforge.model.lookup.rules.dependencies import Dependencies
from hopforge.model.lookup.rules.rule_table import Rule, RuleTable, Update

__all__ = [
    "DEPENDENCY_INVALIDATIONS",
    "DEPENDENCY_POLICIES",
    "DependencyCache",
    "DependencyCounts",
    "DependencySettings",
]

DEPENDENCY_POLICIES = ("cover", "dependent")
"""``cover``: a dependency sends its packets to the TCAM; ``dependent``: it answers."""

DEPENDENCY_INVALIDATIONS = ("overlap", "flush")
"""What leaves the cache when a rule changes."""


class DependencyCounts(NamedTuple):
    """What the cache counts; `evicted` and `invalidated` count owners, `peak` entries, covers among them."""

    lookups: int = 0
    hits: int = 0
    punts: int = 0
    wrong: int = 0
    installs: int = 0
    evicted: int = 0
    invalidated: int = 0
    uncacheable: int = 0
    peak: int = 0


class DependencySettings(NamedTuple):
    """A cache with dependencies.

    Attributes
    ----------
    policy : str
        Of `DEPENDENCY_POLICIES`.
    size : int
        Entries, covers among them.
    invalidation : str
        Of `DEPENDENCY_INVALIDATIONS`.
    exact_graph : bool
        With ``cover``: direct dependencies, else all rules above that overlap.
    """

    policy: str
    size: int
    invalidation: str = "overlap"
    exact_graph: bool = True

    def check(self) -> None:
        """Refuse what is out of range.

        Raises
        ------
        ValueError
            Naming parameter, limit and value.
        """
        if self.policy not in DEPENDENCY_POLICIES:
            raise ValueError(f"policy must be one of {', '.join(DEPENDENCY_POLICIES)}, not {self.policy}")
        if self.invalidation not in DEPENDENCY_INVALIDATIONS:
            raise ValueError(
                f"invalidation must be one of {', '.join(DEPENDENCY_INVALIDATIONS)} with policy {self.policy}, "
                f"not {self.invalidation}"
            )
        if self.size < 1:
            raise ValueError(f"size must be at least 1, not {self.size}")
        if self.policy == "dependent" and not self.exact_graph:
            raise ValueError("exact_graph must be true with policy dependent, not false")


class DependencyCache:
    """A cache before a table of rules, which it owns: updates go to both.

    A rule that a miss installed is an owner; what it needs stays as long as it does. There is one entry per rule.

    Parameters
    ----------
    table : RuleTable
        The table; changed by updates.
    settings : DependencySettings
        The cache.

    Raises
    ------
    ValueError
        A setting out of range.
    """

    def __init__(self, table: RuleTable, settings: DependencySettings) -> None:
        settings.check()
        self.table, self.settings = table, settings
        self.dependencies = Dependencies(table)
        self._owners: OrderedDict[int, frozenset[int]] = OrderedDict()  # rule -> its needs; least recently used first
        self._needs: dict[int, int] = {}  # rule -> owners that hold it: itself, or those that need it
        self._entries = _Entries(settings.size, table.width)
        self._counts = dict.fromkeys(DependencyCounts._fields, 0)

    def counts(self) -> DependencyCounts:
        """Return what was counted until now."""
        return DependencyCounts(**self._counts)

    def run(self, events: Iterable[int | Update]) -> DependencyCounts:
        """Look up the addresses and apply the updates among them, in their order."""
        for event in events:
            if isinstance(event, Update):
                self.update(event)
            else:
                self.look_up(event)
        return self.counts()

    def look_up(self, address: int) -> int | None:
        """Return the answer of the cache, or on a miss or punt that of the TCAM."""
        self._counts["lookups"] += 1
        right = self.table.match(address)
        answer = None if right is None else right.out
        best = self._entries.find(address)
        if best is not None and (best.id in self._owners or self.settings.policy == "dependent"):
            self._counts["hits"] += 1
            self._counts["wrong"] += best.out != answer
            self._refresh(best.id)
            return best.out
        self._counts["punts"] += best is not None
        if right is not None:
            self._install(right)
        return answer

    def update(self, update: Update) -> None:
        """Change the table, and drop the owners that the change may have made wrong."""
        rule = self.table[update.rule.id] if update.kind != "add" else update.rule
        self.table.apply(update)
        self.dependencies.changed(rule)
        gone = list(self._owners) if self.settings.invalidation == "flush" else self._touched_by(rule)
        for owner in gone:
            self._drop(owner)
        self._counts["invalidated"] += len(gone)

    def _touched_by(self, rule: Rule) -> list[int]:
        """Return the owners that overlap a rule, or need an entry that does."""
        touched = self._entries.overlapping(rule)
        return [
            owner for owner, needed in self._owners.items() if owner in touched or not touched.isdisjoint(needed)
        ]

    def _refresh(self, number: int) -> None:
        """Make an owner the most recent; of a dependency the most recent owner that needs it."""
        if number not in self._owners:
            number = next(owner for owner in reversed(self._owners) if number in self._owners[owner])
        self._owners.move_to_end(number)

    def _needed(self, rule: Rule) -> frozenset[int] | None:
        """Return the rules that a rule needs, by id; None: more than fit."""
        most = self.settings.size - 1
        found: frozenset[int] | None
        if self.settings.policy == "dependent":
            found = self.dependencies.closure(rule.id, most)
        elif self.settings.exact_graph:
            found = self.dependencies.direct(rule.id, most)
        else:
            found = self.dependencies.overlap(rule.id, most)
        return None if found is None or len(found) > most else found

    def _install(self, rule: Rule) -> None:
        needed = self._needed(rule)
        if needed is None:
            self._counts["uncacheable"] += 1
            return
        wanted = needed | {rule.id}
        while len(self._needs) + len(new := wanted.difference(self._needs)) > self.settings.size:
            self._drop(next(iter(self._owners)))
            self._counts["evicted"] += 1
        self._owners[rule.id] = needed
        for number in wanted - new:
            self._needs[number] += 1
        self._needs.update(dict.fromkeys(new, 1))
        self._entries.put(self.table.named(new))
        self._counts["installs"] += 1
        self._counts["peak"] = max(self._counts["peak"], len(self._needs))

    def _drop(self, owner: int) -> None:
        needs, held = self._needs, self._owners.pop(owner) | {owner}
        dead = [number for number in held if needs[number] == 1]
        for number in held.difference(dead):
            needs[number] -= 1
        for number in dead:
            del needs[number]
        self._entries.remove(dead)


class _Entries:
    """The entries of a cache by the ids of their rules; all of them are asked at once."""

    def __init__(self, size: int, width: int) -> None:
        self._place: dict[int, int] = {}  # of a rule
        self._at: dict[int, Rule] = {}  # what was written into a place
        self._free, self._used = list(range(size))[::-1], 0
        self._cubes = CubeColumns.empty(size, width)

    def put(self, rules: Sequence[Rule]) -> None:
        """Write rules that are not there into free places."""
        free = len(self._free) - len(rules)
        places = self._free[free:]
        del self._free[free:]
        self._place.update(zip([rule.id for rule in rules], places, strict=True))
        self._at.update(zip(places, rules, strict=True))
        self._cubes.put(places, [rule.value for rule in rules], [rule.mask for rule in rules])
        self._used = max(self._used, 1 + max(places, default=-1))

    def remove(self, numbers: Sequence[int]) -> None:
        """Free the places of rules."""
        places = [self._place.pop(number) for number in numbers]
        self._cubes.clear(places)
        self._free += places

    def overlapping(self, rule: Rule) -> set[int]:
        """Return the ids of the entries that share an address with a rule."""
        places = np.flatnonzero(self._cubes.overlapping(rule.value, rule.mask, 0, self._used)).tolist()
        found = ((self._at[place].id, place) for place in places)
        return {number for number, place in found if self._place.get(number) == place}  # others are free

    def find(self, address: int) -> Rule | None:
        """Return the entry that wins among those that match an address."""
        places = np.flatnonzero(self._cubes.matching(address, 0, self._used)).tolist()
        return min((self._at[place] for place in places), key=lambda rule: rule.order, default=None)
