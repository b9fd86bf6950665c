"""What the hardware of a rule cache is made with (docs/definitions/rule-caches.md, *In hardware*)."""

from dataclasses import dataclass

from hopforge.model.config import Config
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
        Lines, 1 to 64.
    rows : int
        Rules that the TCAM holds, 1 to 1024.
    address_bits, output_bits, id_bits : int
        Widths of address, answer and request number: 1 to 62, 32, 16.
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
            "entries": (1, 64), "rows": (1, 1024), "address_bits": (1, MOST_WIDTH), "output_bits": (1, 32),
            "id_bits": (1, 16), "tcam_cycles": (4, 32),
        }  # fmt: skip
        for name, (least, most) in limits.items():
            value = getattr(self, name)
            if not least <= value <= most:
                raise ValueError(f"{name} must be {least} to {most}, not {value}")

    @classmethod
    def from_config(cls, config: Config) -> "RuleCacheParams":
        """Return those of section `rule_cache`."""
        return cls(**config.rule_cache.model_dump())

    @property
    def row_bits(self) -> int:
        """Bits of the number of a row, at least 1."""
        return max(1, (self.rows - 1).bit_length())

    @property
    def length_bits(self) -> int:
        """Bits of a prefix length, 0 to `address_bits`."""
        return self.address_bits.bit_length()
