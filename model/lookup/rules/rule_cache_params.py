"""What the hardware of a rule cache is made with (docs/definitions/rule-caches.md, *In hardware*)."""

from dataclasses import dataclass

from hopforge.model.config import Config
from hopforge.model.config.lookup import MOST_LINES_IN_SETS, MOST_WAYS, set_problems
from hopforge.model.lookup.rules.cube_sets import default_index_bits
from hopforge.model.lookup.rules.rule_table import MOST_WIDTH

__all__ = ["RULE_CACHE_POLICIES", "RuleCacheParams"]

RULE_CACHE_POLICIES = ("exact", "host", "mep")
"""Policies that the hardware has."""
_INVALIDATIONS = ("overlap", "flush")


@dataclass(frozen=True, kw_only=True)
class RuleCacheParams:
    """A cache and the TCAM of prefix rules behind it.

    Parameters
    ----------
    policy : str
        Of `RULE_CACHE_POLICIES`.
    entries : int
        Lines: 1 to 64, with `ways` at most 65536.
    ways : int, optional
        Lines of a set, 1 to 16; the sets are a power of two, 2 or more. None: fully associative.
    index_bits : int, optional
        With `ways`: highest bits of an address, of which the set is a hash; no line is wider. By default
        `default_index_bits`.
    rows : int
        Rules that the TCAM holds, 1 to 1024.
    address_bits, output_bits, id_bits : int
        Widths of address, answer and request number: 1 to 128, 32, 16.
    tcam_cycles : int
        From a miss to its line, 4 to 32.
    invalidation : {"overlap", "flush"}
        What an update removes.

    Raises
    ------
    ValueError
        Out of these limits.
    """

    policy: str = "mep"
    entries: int = 16
    ways: int | None = None
    index_bits: int | None = None
    rows: int = 64
    address_bits: int = 32
    output_bits: int = 8
    id_bits: int = 6
    tcam_cycles: int = 4
    invalidation: str = "overlap"

    def __post_init__(self) -> None:
        for name, words in (("policy", RULE_CACHE_POLICIES), ("invalidation", _INVALIDATIONS)):
            word = getattr(self, name)
            if word not in words:
                raise ValueError(f"{name} must be one of {', '.join(words)}, not {word}")
        limits = {
            "entries": (1, MOST_LINES_IN_SETS), "rows": (1, 1024), "address_bits": (1, MOST_WIDTH),
            "output_bits": (1, 32), "id_bits": (1, 16), "tcam_cycles": (4, 32),
        }  # fmt: skip
        if self.ways is not None:
            limits["ways"] = (1, MOST_WAYS)
        if self.index_bits is not None:
            limits["index_bits"] = (1, self.address_bits)
        for name, (least, most) in limits.items():
            value = getattr(self, name)
            if not least <= value <= most:
                raise ValueError(f"{name} must be {least} to {most}, not {value}")
        for problem in set_problems(self.entries, self.ways, self.index_bits, self.address_bits):
            raise ValueError(str(problem).replace(":", "", 1))

    @classmethod
    def from_config(cls, config: Config) -> "RuleCacheParams":
        """Return those of section `rule_cache`."""
        return cls(**config.rule_cache.model_dump())

    @property
    def sets(self) -> int:
        """Sets of lines; 1: fully associative."""
        return 1 if self.ways is None else self.entries // self.ways

    @property
    def hashed_bits(self) -> int:
        """Highest bits of an address that choose the set; 0 without sets."""
        if self.ways is None:
            return 0
        return self.index_bits or default_index_bits(self.policy, self.address_bits)

    @property
    def row_bits(self) -> int:
        """Bits of the number of a row, at least 1."""
        return max(1, (self.rows - 1).bit_length())

    @property
    def length_bits(self) -> int:
        """Bits of a prefix length, 0 to `address_bits`."""
        return self.address_bits.bit_length()
