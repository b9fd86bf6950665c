"""Which rules a cached rule needs beside it: direct dependencies, their closure, all that overlap.

Definition: docs/definitions/rule-caches.md; after CacheFlow (Katta et al., "CacheFlow: dependency-aware rule-caching
for software-defined networks", 2016). What is found is kept until the table changes.
"""

from hopforge.model.lookup.rules.cubes import overlap, uncovered
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
        self._more_than: dict[int, int] = {}  # rule -> that many dependencies and more, which nobody wanted to know

    def changed(self, rule: Rule) -> None:
        """Forget what a rule that came, went or changed has to do with: what overlaps it."""
        for known in (self._direct, self._more_than):
            for number in list(known):
                other = self._table[number] if number in self._table and number != rule.id else None
                if other is None or overlap(other.value, other.mask, rule.value, rule.mask):
                    del known[number]

    def overlap(self, number: int, most: int | None = None) -> frozenset[int] | None:
        """Return all rules that win over a rule and overlap it: more than is needed. None: more than `most`."""
        rule = self._table[number]
        if most is None:
            return frozenset(other.id for other in self._table.winners(rule, rule.value, rule.mask))
        found = self._table.few_winners(rule, most)
        return None if found is None else frozenset(found)

    def direct(self, number: int, most: int | None = None) -> frozenset[int] | None:
        """Return the rules that come next: they share an address with the rule that none between them matches.

        Parameters
        ----------
        number : int
            Id of the rule.
        most : int, optional
            Return None as soon as there are more: they would not fit into a cache.

        Raises
        ------
        UserError
            The rules above cut the rule into too many parts (`cubes.uncovered`).
        """
        known = self._direct.get(number)
        if known is None and (most is None or self._more_than.get(number, -1) < most):
            known = self._find_direct(self._table[number], most)
            if known is not None:
                self._direct[number] = known
            elif most is not None:
                self._more_than[number] = most
        return known if known is None or most is None or len(known) <= most else None

    def _find_direct(self, rule: Rule, most: int | None) -> frozenset[int] | None:
        above, values, masks = self._table.winning_cubes(rule)
        found: list[int] = []
        for place, other in enumerate(above):
            value, mask = rule.value | other.value, rule.mask | other.mask  # of what they share
            if uncovered(value, mask, values[:place], masks[:place]):
                found.append(other.id)
                if most is not None and len(found) > most:
                    return None
            if other.mask & ~rule.mask == 0:  # it holds the whole rule
                break
        return frozenset(found)

    def closure(self, number: int, most: int | None = None) -> frozenset[int] | None:
        """Return the direct dependencies, theirs, and so on; None: more than `most`.

        Raises
        ------
        UserError
            As `direct`.
        """
        found: set[int] = set()
        open_ends = [number]
        while open_ends:
            following = self.direct(open_ends.pop(), most)
            if following is None:
                return None
            more = following - found
            found |= more
            open_ends += more
            if most is not None and len(found) > most:
                return None
        return frozenset(found)
