"""Two levels of routing caches."""

from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopforge.model.config import Config
from hopforge.model.lookup.routing_cache import RoutingCache

__all__ = ["TwoLevelCache"]


class TwoLevelCache:
    """A small fast cache in front of a large slow one (seed 004, fig. 5.2).

    A miss in the first level asks the second; what is found there, or in the TCAM, is filled into all levels that
    missed.

    Parameters
    ----------
    first, second : RoutingCache
        The levels.

    Examples
    --------
    >>> cache = TwoLevelCache(RoutingCache(entries=1, ways=1), RoutingCache(entries=8, ways=2))
    >>> cache.run([5, 6, 5, 5]).tolist()
    [0, 0, 2, 1]
    """

    def __init__(self, first: RoutingCache, second: RoutingCache) -> None:
        if first.address_bits != second.address_bits:
            raise ValueError(f"address_bits must be {first.address_bits} in both levels, not {second.address_bits}")
        self.first = first
        self.second = second

    @classmethod
    def from_config(cls, config: Config) -> Self | None:
        """Return the two levels that `config` describes, None if it has only one."""
        section = config.lookup.cache.second_level
        if section is None:
            return None
        if (section.content, section.per) != ("nine", "cache"):
            words = f"{section.content}, per={section.per}"
            raise ValueError(f"second_level must have content=nine and per=cache here, not content={words}")
        first = RoutingCache.from_config(config)
        second = RoutingCache(
            entries=section.entries, ways=section.ways, policy=section.policy, address_bits=first.address_bits,
            crc=config.lookup.cache.crc, epoch_bits=first.epoch_bits, random_seed=first.random_seed,
        )  # fmt: skip
        second.enabled = first.enabled
        return cls(first, second)

    def lookup(self, key: int) -> int | None:
        """Return the output of `key`, None if no level holds it."""
        output = self.first.lookup(key)
        if output is None:
            output = self.second.lookup(key)
            if output is not None:
                self.first.fill(key, output)
        return output

    def fill(self, key: int, output: int) -> None:
        """Write the line into both levels after a miss in both."""
        self.second.fill(key, output)
        self.first.fill(key, output)

    def run(self, keys: ArrayLike, outputs: ArrayLike = 0) -> NDArray[np.uint8]:
        """Look up many keys in order.

        Returns
        -------
        ndarray, uint8[lookup]
            The level that hit, 1 or 2; 0: none.
        """
        words, answers = self.first.checked(keys, outputs)
        levels = np.zeros(len(words), dtype=np.uint8)
        hits = self.first.run(words, answers).hits
        levels[hits] = 1
        # the second level sees exactly the misses of the first, in their order
        missed = np.flatnonzero(~hits)
        behind = self.second.run(words[missed], answers if len(answers) == 1 else answers[missed])
        levels[missed[behind.hits]] = 2
        return levels

    def invalidate(self, key: int) -> bool:
        """Remove `key` from both levels; return whether it was in any."""
        return any([self.first.invalidate(key), self.second.invalidate(key)])

    def flush(self) -> None:
        """Forget all lines of both levels."""
        self.first.flush()
        self.second.flush()
