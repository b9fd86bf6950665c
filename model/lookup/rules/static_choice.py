"""A cache of rules that is filled once, from how often each rule matches: greedy choice of what to keep.

Definition: docs/definitions/rule-caches.md; after CacheFlow (Katta et al. 2016).
"""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import NamedTuple

from hopforge.model.lookup.rules.dependencies import Dependencies
from hopforge.model.lookup.rules.rule_table import RuleTable

__all__ = ["STATIC_WAYS", "StaticChoice", "choose", "static_hits"]

STATIC_WAYS = ("dependent", "cover", "mixed")
"""A rule with its closure; a rule with covers; the better of both for each."""


class StaticChoice(NamedTuple):
    """Rules kept, by id: `real` ones answer, at a `cover` the packet goes to the TCAM."""

    real: frozenset[int]
    cover: frozenset[int]


class _Unit(NamedTuple):
    rule: int
    is_dependent: bool
    members: frozenset[int]  # of a cover unit: the rule alone
    covers: frozenset[int]


class _Greedy:
    def __init__(self, weights: Mapping[int, int], size: int) -> None:
        self.weights, self.size = weights, size
        self.real: set[int] = set()
        self.cover: set[int] = set()

    def rank(self, unit: _Unit) -> tuple[tuple[Fraction, int, bool], int] | None:
        """Return what sorts units, the best first, and their cost; None: nothing is gained."""
        gain = sum(self.weights.get(number, 0) for number in unit.members - self.real)
        if not gain:
            return None
        cost = len((unit.members | unit.covers) - self.real - self.cover)
        # free ones before all others: their gains stand above every ratio
        score = Fraction(gain, cost) if cost else Fraction(gain) + sum(self.weights.values())
        return (-score, unit.rule, unit.is_dependent), cost

    def take(self, unit: _Unit) -> None:
        self.real |= unit.members
        self.cover |= unit.covers
        self.cover -= self.real

    @property
    def room(self) -> int:
        return self.size - len(self.real) - len(self.cover)


def choose(table: RuleTable, weights: Mapping[int, int], size: int, how: str) -> StaticChoice:
    """Choose the rules of a cache: again and again the unit of largest gain per entry that fits.

    Parameters
    ----------
    table : RuleTable
        All rules.
    weights : mapping
        Lookups that a rule answers, by its id.
    size : int
        Entries.
    how : str
        Of `STATIC_WAYS`.

    Returns
    -------
    StaticChoice
        What is kept.

    Raises
    ------
    ValueError
        A way that is not known, or a size below 1.
    """
    if how not in STATIC_WAYS:
        raise ValueError(f"how must be one of {', '.join(STATIC_WAYS)}, not {how}")
    if size < 1:
        raise ValueError(f"size must be at least 1, not {size}")
    greedy = _Greedy(weights, size)
    units = list(_units(table, how, size))
    while True:
        best = min(
            ((rank[0], place) for place, unit in enumerate(units)
             if (rank := greedy.rank(unit)) is not None and rank[1] <= greedy.room),
            default=None,
        )  # fmt: skip
        if best is None:
            return StaticChoice(frozenset(greedy.real), frozenset(greedy.cover))
        greedy.take(units[best[1]])


def _units(table: RuleTable, how: str, size: int) -> Iterable[_Unit]:
    """Yield what can be kept; what needs more than `size` entries never fits."""
    dependencies = Dependencies(table)
    for rule in table.rules:
        own = frozenset([rule.id])
        if how != "dependent" and (direct := dependencies.direct(rule.id, size - 1)) is not None:
            yield _Unit(rule.id, False, own, direct)
        if how != "cover" and (closure := dependencies.closure(rule.id, size - 1)) is not None:
            yield _Unit(rule.id, True, own | closure, frozenset())


def static_hits(table: RuleTable, choice: StaticChoice, addresses: Iterable[int]) -> int:
    """Return how many lookups the rules kept answer; the others go to the TCAM.

    Raises
    ------
    RuntimeError
        An answer is not that of the TCAM: the choice lacks a dependency.
    """
    kept = RuleTable([table[number] for number in choice.real | choice.cover], table.width)
    hits = 0
    for address in addresses:
        found = kept.match(address)
        if found is None or found.id not in choice.real:
            continue
        hits += 1
        if found.out != table.answer(address):
            raise RuntimeError(f"the rules kept answer {found.out} for address {address:#x}, unlike the table")
    return hits
