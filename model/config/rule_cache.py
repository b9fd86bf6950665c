"""Section `rule_cache`: a cache in hardware before a TCAM of prefix rules."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from hopforge.model.config.base import Problem, Section

__all__ = ["MOST_LINES", "MOST_LINES_IN_SETS", "MOST_WAYS", "RuleCacheConfig", "set_problems"]

MOST_LINES = 64
"""Lines of a fully associative cache."""

MOST_LINES_IN_SETS = 1 << 16
"""Lines of a cache with sets."""

MOST_WAYS = 16
"""Lines of a set."""


def set_problems(entries: int, ways: int | None, index_bits: int | None, address_bits: int) -> Iterator[Problem]:
    """Yield what is wrong with the lines of a rule cache and their sets."""
    if ways is None:
        if entries > MOST_LINES:
            yield Problem("entries", f"must be 1 to {MOST_LINES} without ways, not {entries}")
        if index_bits is not None:
            yield Problem("index_bits", f"needs ways: without sets nothing is hashed, not {index_bits}")
        return
    sets, rest = divmod(entries, ways)
    if rest or sets < 2 or sets & (sets - 1):
        yield Problem(
            "entries",
            f"must be ways={ways} times a power of two from 2 on, not {entries} (for a single set leave ways out)",
        )
    if index_bits is not None and index_bits > address_bits:
        yield Problem("index_bits", f"must be at most address_bits={address_bits}, not {index_bits}")


class RuleCacheConfig(Section):
    """The block (docs/definitions/rule-caches.md, *In hardware*)."""

    policy: Literal["exact", "host", "mep"] = "mep"
    """What a miss caches: the address; its rule if no longer one lies inside, else the address; the shortest prefix
    that is right."""
    entries: Annotated[int, Field(ge=1, le=MOST_LINES_IN_SETS)] = 16
    """Lines of the cache, LRU; without `ways` 64 at most."""
    ways: Annotated[int, Field(ge=1, le=MOST_WAYS)] | None = None
    """Lines of a set, in memories; the sets are a power of two. Without it the cache is fully associative, in
    flip-flops."""
    index_bits: Annotated[int, Field(ge=1)] | None = None
    """With `ways`: highest bits of an address, of which the set is a hash. No line is wider. By default all for policy
    `exact`, else three quarters of the address, 48 at most."""
    rows: Annotated[int, Field(ge=1, le=1024)] = 64
    """Rules that the TCAM holds."""
    address_bits: Annotated[int, Field(ge=1, le=128)] = 32
    """Bits of an address."""
    output_bits: Annotated[int, Field(ge=1, le=32)] = 8
    """Bits of an answer."""
    id_bits: Annotated[int, Field(ge=1, le=16)] = 6
    """Bits of the number of a request."""
    tcam_cycles: Annotated[int, Field(ge=4, le=32)] = 4
    """Cycles from a miss to its answer and line."""
    invalidation: Literal["overlap", "flush"] = "overlap"
    """What an update of a rule removes: the lines that share an address with it, or all."""

    def problems(self) -> Iterator[Problem]:
        """Say what is wrong with the sets."""
        yield from set_problems(self.entries, self.ways, self.index_bits, self.address_bits)
