"""A cache of whole rules that keeps what they depend on: cover and dependent sets; the golden model.

Definition: docs/definitions/rule-caches.md; after CacheFlow (Katta et al. 2016).
"""

from collections import OrderedDict
from collections.abc import Iterable
from typing import NamedTuple

from hopforge.model.lookup.rules.cubes import overlap
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
        self._owners: OrderedDict[int, list[Rule]] = OrderedDict()  # rule -> what it needs; least recently used first
        self._needs: dict[int, int] = {}  # rule -> owners that hold it: itself, or those that need it
        self._entries: dict[int, Rule] = {}
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
        best = self._find(address)
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
        gone = [owner for owner in self._owners if self._is_stale(owner, rule)]
        for owner in gone:
            self._drop(owner)
        self._counts["invalidated"] += len(gone)

    def _is_stale(self, owner: int, rule: Rule) -> bool:
        if self.settings.invalidation == "flush":
            return True
        held = [self._entries[owner], *self._owners[owner]]
        return any(overlap(one.value, one.mask, rule.value, rule.mask) for one in held)

    def _find(self, address: int) -> Rule | None:
        matching = [rule for rule in self._entries.values() if address & rule.mask == rule.value]
        return min(matching, key=lambda rule: rule.order, default=None)

    def _refresh(self, number: int) -> None:
        """Make an owner the most recent; of a dependency the most recent owner that needs it."""
        if number not in self._owners:
            number = next(
                owner for owner in reversed(self._owners) if any(rule.id == number for rule in self._owners[owner])
            )
        self._owners.move_to_end(number)

    def _needed(self, rule: Rule) -> list[Rule] | None:
        """Return the rules that a rule needs; None: more than fit."""
        most = self.settings.size - 1
        found: frozenset[int] | None
        if self.settings.policy == "dependent":
            found = self.dependencies.closure(rule.id, most)
        elif self.settings.exact_graph:
            found = self.dependencies.direct(rule.id, most)
        else:
            found = self.dependencies.overlap(rule.id)
        return None if found is None or len(found) > most else [self.table[number] for number in found]

    def _install(self, rule: Rule) -> None:
        needed = self._needed(rule)
        if needed is None:
            self._counts["uncacheable"] += 1
            return
        wanted = [rule, *needed]
        while len(self._entries) + sum(one.id not in self._entries for one in wanted) > self.settings.size:
            self._drop(next(iter(self._owners)))
            self._counts["evicted"] += 1
        self._owners[rule.id] = needed
        for one in wanted:
            self._entries[one.id] = one
            self._needs[one.id] = self._needs.get(one.id, 0) + 1
        self._counts["installs"] += 1
        self._counts["peak"] = max(self._counts["peak"], len(self._entries))

    def _drop(self, owner: int) -> None:
        for number in (owner, *(rule.id for rule in self._owners.pop(owner))):
            self._needs[number] -= 1
            if not self._needs[number]:
                del self._needs[number], self._entries[number]
