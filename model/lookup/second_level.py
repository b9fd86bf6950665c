"""What the second level of a lookup engine is built with (docs/definitions/second-level.md)."""

from collections.abc import Iterator
from dataclasses import dataclass

from hopforge.model.config.lookup import POLICIES, SECOND_LEVEL_LATENCY, Policy

__all__ = ["SecondLevelParams"]

_STAGES_BEHIND_R = 3  # C1, C2 and the answer register
_MAX_WAYS = 64


@dataclass(frozen=True, kw_only=True)
class SecondLevelParams:
    """The second level of an engine.

    Parameters
    ----------
    entries, ways : int
        Lines in all and per set; the number of sets is a power of two.
    policy : str
        ``lru``, ``plru``, ``fifo`` or ``random``.
    latency_cycles : int
        From a request to its answer on a hit, 4 to 64.
    """

    entries: int = 8192
    ways: int = 4
    policy: Policy = "lru"
    latency_cycles: int = SECOND_LEVEL_LATENCY[0]

    @property
    def sets(self) -> int:
        """Number of sets, a power of two."""
        return self.entries // self.ways

    @property
    def index_bits(self) -> int:
        """Width of a set index; 0 for one set."""
        return self.sets.bit_length() - 1

    @property
    def request_registers(self) -> int:
        """Registers of R."""
        return self.latency_cycles - _STAGES_BEHIND_R

    def problems(self) -> Iterator[str]:
        """Yield what is wrong, naming the parameter, its limit and its value."""
        least, most = SECOND_LEVEL_LATENCY
        if not 1 <= self.ways <= _MAX_WAYS:
            yield f"second_level.ways must be 1 to {_MAX_WAYS}, not {self.ways}"
        elif self.entries < 1 or self.entries % self.ways:
            yield f"second_level.ways must divide second_level.entries={self.entries}, not {self.ways}"
        elif self.sets & (self.sets - 1):
            geometry = f"{self.entries}/{self.ways} = {self.sets}"
            yield f"second_level.entries must give a power of two of sets, not {geometry}"
        if self.policy not in POLICIES:
            yield f"second_level.policy must be one of {', '.join(POLICIES)}, not {self.policy!r}"
        elif self.policy == "plru" and self.ways & (self.ways - 1):
            yield f"second_level.policy plru needs a power of two of ways, not ways={self.ways}"
        if not least <= self.latency_cycles <= most:
            yield f"second_level.latency_cycles must be {least} to {most}, not {self.latency_cycles}"
