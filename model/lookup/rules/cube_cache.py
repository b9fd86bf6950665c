"""A cube cache: LRU, fully associative or in sets, before a large TCAM; the golden model, an event at a time.

Definition: docs/definitions/rule-caches.md. `cube_kernel` is the same machine for prefix tables, for long runs.
"""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from hopforge.model.lookup.rules.cube_policies import CUBE_POLICIES, PREFIX_POLICIES, WRONG_POLICIES, Cube
from hopforge.model.lookup.rules.cube_sets import CubeSets, default_index_bits
from hopforge.model.lookup.rules.cubes import overlap
from hopforge.model.lookup.rules.rule_table import RuleTable, Update

__all__ = ["INVALIDATIONS", "CubeCache", "CubeCounts", "CubeSettings"]

INVALIDATIONS = ("overlap", "changed", "flush", "none")
"""What leaves the cache when a rule changes; with ``none`` answers may be wrong."""


class CubeCounts(NamedTuple):
    """What a cube cache counts; `peak` is the most entries at once."""

    lookups: int = 0
    hits: int = 0
    wrong: int = 0
    fills: int = 0
    evicted: int = 0
    absorbed: int = 0
    invalidated: int = 0
    dropped: int = 0
    peak: int = 0


class CubeSettings(NamedTuple):
    """A cube cache.

    Attributes
    ----------
    policy : str
        Of `CUBE_POLICIES`.
    size : int
        Entries.
    invalidation : str
        Of `INVALIDATIONS`.
    fill : int
        Lookups from a miss to the write of its entry, at least 1.
    guard : bool
        Whether an update drops the fills in flight that it would have invalidated.
    ways : int, optional
        Entries of a set; None: fully associative. The sets are a power of two.
    index_bits : int, optional
        With `ways`: highest bits of an address, of which the set is a hash (`CubeSets`); None: `default_index_bits`.
    """

    policy: str
    size: int
    invalidation: str = "overlap"
    fill: int = 1
    guard: bool = True
    ways: int | None = None
    index_bits: int | None = None

    def sets(self, width: int) -> CubeSets:
        """Return the sets for addresses of `width` bits; one without `ways`."""
        if self.ways is None:
            return CubeSets(width, 0, 1)
        bits = self.index_bits or default_index_bits(self.policy, width)
        if bits > width:
            raise ValueError(f"index_bits must be at most the width of {width} bits, not {bits}")
        return CubeSets(width, bits, self.size // self.ways)

    @property
    def is_correct(self) -> bool:
        """Whether no answer may be wrong."""
        return (
            self.policy not in WRONG_POLICIES and self.invalidation != "none" and (self.guard or self.fill == 1)
        )

    def check(self) -> None:
        """Refuse what is out of range.

        Raises
        ------
        ValueError
            Naming parameter, limit and value.
        """
        if self.policy not in CUBE_POLICIES:
            raise ValueError(f"policy must be one of {', '.join(CUBE_POLICIES)}, not {self.policy}")
        if self.invalidation not in INVALIDATIONS:
            raise ValueError(f"invalidation must be one of {', '.join(INVALIDATIONS)}, not {self.invalidation}")
        for name, value in (("size", self.size), ("fill", self.fill)):
            if value < 1:
                raise ValueError(f"{name} must be at least 1, not {value}")
        if self.index_bits is not None and (self.ways is None or self.index_bits < 1):
            raise ValueError(f"index_bits must be at least 1, with ways, not {self.index_bits} with ways {self.ways}")
        if self.ways is not None and not _are_sets(self.size, self.ways):
            raise ValueError(f"size={self.size} must be ways={self.ways} times a power of two")


def _are_sets(size: int, ways: int) -> bool:
    return ways >= 1 and size % ways == 0 and (size // ways).bit_count() == 1


@dataclass(slots=True)
class _Fill:
    """An entry in flight: written just before lookup number `due`."""

    due: int
    cube: Cube
    out: int | None


@dataclass
class _Entry:
    out: int | None
    used: int = field(default=0)


class CubeCache:
    """A cache before a table of rules, which it owns: updates go to both.

    Parameters
    ----------
    table : RuleTable
        The table; changed by updates.
    settings : CubeSettings
        The cache.

    Raises
    ------
    ValueError
        A setting out of range, or a policy for prefix tables with another table.
    """

    def __init__(self, table: RuleTable, settings: CubeSettings) -> None:
        settings.check()
        if settings.policy in PREFIX_POLICIES and not table.is_prefix_table:
            raise ValueError(f"policy {settings.policy} needs a prefix table")
        self.table, self.settings = table, settings
        self._policy = CUBE_POLICIES[settings.policy]
        self._sets = settings.sets(table.width)
        self._entries: dict[Cube, _Entry] = {}
        self._held: list[OrderedDict[Cube, None]] = [  # of each set, least recently used first
            OrderedDict() for _ in range(self._sets.sets)
        ]
        self._masks: dict[int, int] = {}  # mask -> entries that have it
        self._flight: list[_Fill] = []
        self._clock = 0
        self._counts = dict.fromkeys(CubeCounts._fields, 0)

    def counts(self) -> CubeCounts:
        """Return what was counted until now; fills in flight are not."""
        return CubeCounts(**self._counts)

    def run(self, events: Iterable[int | Update]) -> CubeCounts:
        """Look up the addresses and apply the updates among them, in their order."""
        for event in events:
            if isinstance(event, Update):
                self.update(event)
            else:
                self.look_up(event)
        return self.counts()

    def look_up(self, address: int) -> int | None:
        """Return the answer of the cache, or on a miss that of the TCAM."""
        self._write_due(self._counts["lookups"])
        self._counts["lookups"] += 1
        right = self.table.match(address)
        answer = None if right is None else right.out
        cube = self._find(address)
        if cube is None:
            wanted = self._sets.cut(self._policy(self.table, address, right), address)
            if all(fill.cube != wanted for fill in self._flight):
                self._flight.append(_Fill(self._counts["lookups"] - 1 + self.settings.fill, wanted, answer))
            return answer
        self._touch(cube)
        found = self._entries[cube].out
        self._counts["hits"] += 1
        self._counts["wrong"] += found != answer
        return found

    def update(self, update: Update) -> None:
        """Change the table, and drop what the change may have made wrong."""
        if self.settings.fill == 1:
            self._write_due(self._counts["lookups"])
        rule = self.table[update.rule.id] if update.kind != "add" else update.rule
        self.table.apply(update)
        gone = [cube for cube, entry in self._entries.items() if self._is_stale(cube, entry.out, rule.value, rule.mask)]
        for cube in gone:
            self._remove(cube)
        self._counts["invalidated"] += len(gone)
        if self.settings.guard:
            kept = [fill for fill in self._flight if not self._is_stale(fill.cube, fill.out, rule.value, rule.mask)]
            self._counts["dropped"] += len(self._flight) - len(kept)
            self._flight = kept

    def _is_stale(self, cube: Cube, out: int | None, value: int, mask: int) -> bool:
        how = self.settings.invalidation
        if how == "overlap":
            return overlap(*cube, value, mask)
        if how == "changed":
            return not self.table.all_answer(*cube, out)
        return how == "flush"

    def _find(self, address: int) -> Cube | None:
        """Return the entry with most cared bits that holds the address; of several the least recently used."""
        held = [(address & mask, mask) for mask in self._masks if (address & mask, mask) in self._entries]
        if not held:
            return None
        return min(held, key=lambda cube: (-cube[1].bit_count(), self._entries[cube].used))

    def _touch(self, cube: Cube) -> None:
        self._clock += 1
        self._entries[cube].used = self._clock
        held = self._held[self._sets.number(cube[0])]
        held[cube] = None
        held.move_to_end(cube)

    def _write_due(self, lookup: int) -> None:
        while self._flight and self._flight[0].due <= lookup:
            self._write(self._flight.pop(0))

    def _write(self, fill: _Fill) -> None:
        value, mask = fill.cube
        inside = [(v, m) for v, m in self._entries if mask & ~m == 0 and v & mask == value]
        for cube in inside:
            self._remove(cube)
        self._counts["absorbed"] += len(inside)
        held = self._held[self._sets.number(value)]
        if len(held) == self.settings.size // self._sets.sets:
            self._remove(next(iter(held)))
            self._counts["evicted"] += 1
        self._entries[fill.cube] = _Entry(fill.out)
        self._masks[mask] = self._masks.get(mask, 0) + 1
        self._touch(fill.cube)
        self._counts["fills"] += 1
        self._counts["peak"] = max(self._counts["peak"], len(self._entries))

    def _remove(self, cube: Cube) -> None:
        del self._entries[cube], self._held[self._sets.number(cube[0])][cube]
        self._masks[cube[1]] -= 1
        if not self._masks[cube[1]]:
            del self._masks[cube[1]]
