"""What `hopforge rules` is asked for, checked before anything is drawn."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from hopforge.model.errors import UserError
from hopforge.model.lookup.rules.cube_cache import INVALIDATIONS
from hopforge.model.lookup.rules.cube_policies import CUBE_POLICIES, PREFIX_POLICIES
from hopforge.model.lookup.rules.dependency_cache import DEPENDENCY_INVALIDATIONS, DEPENDENCY_POLICIES
from hopforge.model.lookup.rules.rule_table import MOST_WIDTH
from hopforge.model.lookup.rules.static_choice import STATIC_WAYS

__all__ = ["MOST_EXACT_GRAPH", "MOST_LOOKUPS", "MOST_OVERLAP_GRAPH", "RULE_POLICIES", "RuleCacheError", "RuleSettings"]

STATIC = {f"static-{how}": how for how in STATIC_WAYS}
"""Policies of caches that are filled once, and their ways."""

RULE_POLICIES = (*CUBE_POLICIES, *DEPENDENCY_POLICIES, *STATIC)
"""Every policy by name."""

MOST_LOOKUPS = 100_000_000
"""Lookups of a run."""

MOST_EXACT_GRAPH = 1 << 14
"""Rules with direct dependencies."""

MOST_OVERLAP_GRAPH = 1 << 16
"""Rules with all that overlap in their place."""

_MOST_SIZE, _MOST_FILL, _MOST_FLOWS, _MOST_ZIPF = 1 << 20, 1 << 10, 1 << 24, 10.0


class RuleCacheError(UserError, ValueError):
    """A run of rule caches that is not possible."""


@dataclass(kw_only=True)
class RuleSettings:
    """What is run; the words of the command.

    Attributes
    ----------
    policies : tuple of str
        Of `RULE_POLICIES`; empty: those that are correct, without those that take long.
    sizes : tuple of int
        Entries of the caches.
    zipfs : tuple of float
        Exponents.
    lookups, updates, flows : int
        How many.
    seed : int
        Of lookups and updates.
    invalidation, fill, guard
        As `CubeSettings`.
    overlap_graph : bool
        Policy cover takes all rules above that overlap.
    ways, index_bits
        As `CubeSettings`: entries of a set, and the highest bits of an address that choose it.
    """

    policies: tuple[str, ...] = ()
    sizes: tuple[int, ...] = (64, 256, 1024)
    zipfs: tuple[float, ...] = (1.0,)
    lookups: int = 100_000
    updates: int = 1000
    flows: int = 65_536
    seed: int = 1
    invalidation: str = "overlap"
    fill: int = 1
    guard: bool = True
    overlap_graph: bool = False
    ways: int | None = None
    index_bits: int | None = None

    def check(self) -> None:
        """Refuse what is out of range.

        Raises
        ------
        RuleCacheError
            Naming option, limit and value.
        """
        for name in self.policies:
            _one_of("--policy", name, RULE_POLICIES)
        _one_of("--invalidation", self.invalidation, INVALIDATIONS)
        for size in self.sizes:
            _within("--size", size, 1, _MOST_SIZE)
        for zipf in self.zipfs:
            _within("--zipf", zipf, 0, _MOST_ZIPF)
        _within("--lookups", self.lookups, 1, MOST_LOOKUPS)
        _within("--updates", self.updates, 0, self.lookups)
        _within("--flows", self.flows, 1, _MOST_FLOWS)
        _within("--fill", self.fill, 1, _MOST_FILL)
        self._check_sets()

    def _check_sets(self) -> None:
        if self.ways is None:
            if self.index_bits is not None:
                raise RuleCacheError("--index-bits: needs --ways; without sets nothing is hashed")
            return
        _within("--ways", self.ways, 1, _MOST_SIZE)
        if self.index_bits is not None:
            _within("--index-bits", self.index_bits, 1, MOST_WIDTH)
        for size in self.sizes:
            if size % self.ways or (size // self.ways).bit_count() != 1:
                raise RuleCacheError(f"--size: must be --ways {self.ways} times a power of two, not {size}")

    def chosen(self, rules: int, *, is_prefix: bool) -> tuple[str, ...]:
        """Return the policies for a table.

        Raises
        ------
        RuleCacheError
            One of them is not for this table, or not with the other options.
        """
        if not self.policies:
            return ("exact", "host", "mep") if is_prefix else ("exact", "megaflow")
        for name in self.policies:
            if name in PREFIX_POLICIES and not is_prefix:
                raise RuleCacheError(f"--policy {name}: needs a table of prefixes with their lengths as priorities")
            if name not in CUBE_POLICIES:
                self._check_dependent(name, rules)
        return tuple(dict.fromkeys(self.policies))

    def _check_dependent(self, name: str, rules: int) -> None:
        if self.ways is not None:
            raise RuleCacheError(f"--policy {name}: is fully associative; takes no --ways")
        overlap = name == "cover" and self.overlap_graph
        most = MOST_OVERLAP_GRAPH if overlap else MOST_EXACT_GRAPH
        if rules > most:
            more = "" if name != "cover" or overlap else f" (with --overlap-graph {MOST_OVERLAP_GRAPH})"
            raise RuleCacheError(f"--policy {name}: takes at most {most} rules{more}, not {rules}")
        if name in DEPENDENCY_POLICIES and self.invalidation not in DEPENDENCY_INVALIDATIONS:
            words = " or ".join(DEPENDENCY_INVALIDATIONS)
            raise RuleCacheError(f"--policy {name}: takes --invalidation {words}, not {self.invalidation}")
        if name in DEPENDENCY_POLICIES and self.fill > 1:
            raise RuleCacheError(f"--policy {name}: writes at once; takes --fill 1, not {self.fill}")

    @property
    def unused(self) -> Sequence[str]:
        """Nothing: a run uses every word."""
        return ()

    def model_dump(self, *, mode: str) -> dict[str, Any]:
        """Return all words, for the metadata."""
        return asdict(self)


def _within(option: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise RuleCacheError(f"{option}: must be {low} to {high}, not {value}")


def _one_of(option: str, name: str, known: Sequence[str]) -> None:
    if name not in known:
        raise RuleCacheError(f"{option}: must be one of {', '.join(known)}, not {name}")
