"""Which rules a cached rule needs beside it: direct dependencies, their closure, all that overlap.

Definition: docs/definitions/rule-caches.md; after CacheFlow (Katta et al., "CacheFlow: dependency-aware rule-caching
for software-defined networks", 2016). What is found is kept until the table changes.
"""

import numpy as np

from hopforge.model.lookup.rules.cubes import overlap, residual_after
from hopforge.model.lookup.rules.rule_table import Rule, RuleTable

__all__ = ["Dependencies"]


class Dependencies:
    """Dependencies of the rules of a table; ids throughout.

    Parameters
    ----------
    table : RuleTable
        Its rules; call `changed` after each change of one of them.
    """

    def __init__(self, table: RuleTable) -> None:
        self._table = table
        self._direct: dict[int, frozenset[int]] = {}

    def changed(self, rule: Rule) -> None:
        """Forget what a rule that came, went or changed has to do with: what overlaps it."""
        for number in list(self._direct):
            if number not in self._table or number == rule.id:
                del self._direct[number]
                continue
            other = self._table[number]
            if overlap(other.value, other.mask, rule.value, rule.mask):
                del self._direct[number]

    def overlap(self, number: int) -> frozenset[int]:
        """Return all rules that win over a rule and overlap it: more than is needed."""
        rule = self._table[number]
        return frozenset(other.id for other in self._table.winners(rule, rule.value, rule.mask))

    def direct(self, number: int) -> frozenset[int]:
        """Return the rules that come next: they share an address with the rule that none between them matches."""
        if number not in self._direct:
            self._direct[number] = self._find_direct(self._table[number])
        return self._direct[number]

    def _find_direct(self, rule: Rule) -> frozenset[int]:
        rest = np.array([(rule.value, rule.mask)], np.int64)
        found = []
        for other in reversed(self._table.winners(rule, rule.value, rule.mask)):
            left = residual_after(rest, other.value, other.mask)
            if left is not rest:
                found.append(other.id)
            rest = left
            if not len(rest):
                break
        return frozenset(found)

    def closure(self, number: int) -> frozenset[int]:
        """Return the direct dependencies, theirs, and so on."""
        found: set[int] = set()
        open_ends = [number]
        while open_ends:
            more = self.direct(open_ends.pop()) - found
            found |= more
            open_ends += more
        return frozenset(found)
