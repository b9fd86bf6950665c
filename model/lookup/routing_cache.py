"""The routing cache, functionally: which lookups hit, and what is evicted.

Source: the specification of the lookup path, "Cache"; replacement state as in docs/definitions/lookup-engine.md. No
cycles here: an answer is in the cache before the next lookup. `model.lookup.golden` is the same cache with time.
"""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopforge.model.config import Config
from hopforge.model.config.lookup import KEY_MODE_BITS, REPLAYED_POLICIES, ReplayedPolicy
from hopforge.model.kernel.compile import inlined, kernel
from hopforge.model.lookup.cache_line import RESERVED_BITS, Line
from hopforge.model.lookup.cache_lines import (
    EMPTY,
    CacheState,
    CacheTables,
    claim_line,
    find_line,
    line_of,
    touch_line,
)
from hopforge.model.lookup.replacement import LRU
from hopforge.model.lookup.tcam import NO_MATCH
from hopforge.model.numbers.crc import CrcMatrix, affine_tables, crc_matrix
from hopforge.model.numbers.crc_catalogue import DEFAULT_CRC, Crc
from hopforge.model.numbers.skew_matrices import skew_matrices

__all__ = ["CacheRun", "RoutingCache"]

_MAX_WAYS = 64


# The body of a long run exists twice, once with the constants of the default (lru, not skewed), where the compiler then
# drops all else; that is three times as fast.


@inlined
def _run_as(policy, skewed, c, s, keys, outputs, now, hits, answers):  # type: ignore[no-untyped-def]
    fills = evictions = drops = 0
    step = len(outputs) > 1
    for index in range(len(keys)):
        key = keys[index]
        output = outputs[index if step else 0]
        line = find_line(c.rows, skewed, s.tags, 0, c.ways, key, key & c.payload_mask)
        if line >= 0:
            touch_line(policy, c.ways, s.order, line, now + index)
            hits[index] = True
            output = s.outputs[line]
        elif output == NO_MATCH:
            drops += 1
        else:
            line = claim_line(c, s, 0, 0, key, now + index)
            evictions += s.tags[line] != EMPTY
            fills += 1
            s.tags[line] = key
            s.outputs[line] = output
        answers[index] = output
    return fills, evictions, drops


@kernel
def _run(c, s, keys, outputs, now, hits, answers):  # type: ignore[no-untyped-def]
    """Run `keys` through the cache; return (fills, evictions, drops)."""
    if c.policy == LRU and len(c.rows) == 1:
        return _run_as(LRU, False, c, s, keys, outputs, now, hits, answers)
    return _run_as(c.policy, len(c.rows) > 1, c, s, keys, outputs, now, hits, answers)


@kernel
def _lines(c, key, lines):  # type: ignore[no-untyped-def]
    """Write the line of each way in which `key` may lie."""
    for way in range(c.ways):
        lines[way] = line_of(c.rows, 0, c.ways, key & c.payload_mask, way)


@kernel
def _touch(c, s, line, now):  # type: ignore[no-untyped-def]
    """Note that a line was used."""
    touch_line(c.policy, c.ways, s.order, line, now)


@kernel
def _claim(c, s, key, now):  # type: ignore[no-untyped-def]
    """Return the line that a key gets."""
    return claim_line(c, s, 0, 0, key, now)


class CacheRun(NamedTuple):
    """What `RoutingCache.run` found.

    Attributes
    ----------
    hits : ndarray, bool[lookup]
        Whether a lookup hit.
    outputs : ndarray, int64[lookup]
        The answers; `NO_MATCH` for a drop.
    fills, evictions, drops : int
        Lines written, live lines written over, answers without a matching row.
    """

    hits: NDArray[np.bool_]
    outputs: NDArray[np.int64]
    fills: int
    evictions: int
    drops: int


class RoutingCache:
    """Cache of (key → output) at one input port.

    Parameters
    ----------
    entries, ways : int
        Lines in all and per set; the number of sets is a power of two.
    policy : {"lru", "plru", "fifo", "random", "srrip"}
        Replacement policy.
    skewed : bool
        Every way has an index function of its own (`skew_matrices`); lru and fifo then go by time stamps, plru and
        srrip are not defined.
    address_bits : int
        Width of the payload of a key; a key has 4 bits more.
    crc : str or parameters
        Hash of the set index.
    epoch_bits : int
        Width of an epoch.
    random_seed : int
        Start of the shift register of policy random, 1 to 65535.

    Attributes
    ----------
    enabled : bool
        A disabled cache misses every lookup and takes no fill; what it holds stays.
    counters : dict
        lookups, hits, misses, fills, evictions, drops, flushes, invalidations since the start.

    Raises
    ------
    ValueError
        Naming the parameter, its limit and its value.

    Examples
    --------
    >>> cache = RoutingCache(entries=8, ways=2)
    >>> cache.lookup(5), cache.fill(5, output=3), cache.lookup(5)
    (None, None, 3)
    >>> cache.run([5, 6, 6], outputs=[3, 1, 1]).hits.tolist()
    [True, False, True]
    """

    def __init__(
        self,
        *,
        entries: int = 2048,
        ways: int = 4,
        policy: ReplayedPolicy = "lru",
        skewed: bool = False,
        address_bits: int = 24,
        crc: Crc = DEFAULT_CRC,
        epoch_bits: int = 8,
        random_seed: int = 0xACE1,
    ) -> None:
        self.entries = entries
        self.ways = ways
        self.policy = policy
        self.skewed = skewed
        self.address_bits = address_bits
        self.epoch_bits = epoch_bits
        self.random_seed = random_seed
        matrix = self._check(crc)
        if skewed:
            rows = [CrcMatrix(masks, 0) for masks in skew_matrices(address_bits, self.row_bits, ways)]
        else:
            rows = [CrcMatrix(matrix.masks[: self.row_bits], matrix.constant & self.sets - 1)]
        self.tables = CacheTables(
            rows=np.array([affine_tables(row, address_bits) for row in rows]),
            payload_mask=(1 << address_bits) - 1, ways=ways,
            policy=REPLAYED_POLICIES.index(policy),
        )  # fmt: skip
        self.state = CacheState(
            tags=np.empty(entries, dtype=np.int64), outputs=np.zeros(entries, dtype=np.int64),
            order=np.empty(entries, dtype=np.int64), shift_register=np.empty(1, dtype=np.int64),
        )  # fmt: skip
        self.reset()

    def _check(self, crc: Crc) -> CrcMatrix:
        if self.entries < 1:
            raise ValueError(f"entries must be at least 1, not {self.entries}")
        if not 1 <= self.ways <= _MAX_WAYS:
            raise ValueError(f"ways must be 1 to {_MAX_WAYS}, not {self.ways}")
        if self.entries % self.ways:
            raise ValueError(f"ways must divide entries={self.entries}, not {self.ways}")
        if self.sets & (self.sets - 1):
            geometry = f"{self.entries}/{self.ways} = {self.sets}"
            raise ValueError(f"entries must give a power of two of sets, not {geometry}")
        if self.policy not in REPLAYED_POLICIES:
            raise ValueError(f"policy must be one of {', '.join(REPLAYED_POLICIES)}, not {self.policy!r}")
        if self.policy == "srrip" and self.skewed:
            raise ValueError("policy srrip needs no skewed association")
        if self.policy == "plru" and (self.ways & (self.ways - 1) or self.skewed):
            what = "no skewed association" if self.skewed else f"a power of two of ways, not {self.ways}"
            raise ValueError(f"policy plru needs {what}")
        if not 1 <= self.address_bits <= 59:
            raise ValueError(f"address_bits must be 1 to 59, not {self.address_bits}")
        if not 1 <= self.epoch_bits < RESERVED_BITS:
            raise ValueError(f"epoch_bits must be 1 to {RESERVED_BITS - 1}, not {self.epoch_bits}")
        if not 1 <= self.random_seed <= 0xFFFF:
            raise ValueError(f"random_seed must be 1 to 65535, not {self.random_seed}")
        matrix = crc_matrix(crc, self.address_bits)
        if len(matrix.masks) < self.row_bits:
            raise ValueError(f"crc must be at least as wide as the set index, {self.row_bits} bits")
        return matrix

    @classmethod
    def from_config(cls, config: Config) -> Self:
        """Return the first-level cache that `config` describes, disabled with ``lookup.cache.enabled: false``."""
        section = config.lookup.cache
        cache = cls(
            entries=section.entries, ways=section.ways, policy=section.policy, skewed=section.skewed,
            address_bits=config.address.width_bits, crc=section.crc, epoch_bits=section.epoch_bits,
            random_seed=section.random_seed,
        )  # fmt: skip
        cache.enabled = section.enabled
        return cache

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy needs, or pickle: the fields of the records, which hold addresses themselves."""
        return vars(self) | {name: vars(self)[name].fields() for name in ("tables", "state")}

    def __setstate__(self, found: dict[str, Any]) -> None:
        """Make records of the fields."""
        vars(self).update(found | {"tables": CacheTables(**found["tables"]), "state": CacheState(**found["state"])})

    @property
    def sets(self) -> int:
        """Number of sets; with skewing, rows of a way."""
        return self.entries // self.ways

    @property
    def row_bits(self) -> int:
        """Width of a row number."""
        return self.sets.bit_length() - 1

    def reset(self) -> None:
        """Bring everything into the state after power-up: empty, enabled, counters 0."""
        self.enabled = True
        self.epoch = 0
        self.counters = dict.fromkeys(
            ("lookups", "hits", "misses", "fills", "evictions", "drops", "flushes", "invalidations"), 0
        )
        self._now = 0
        self.state.tags[:] = EMPTY
        self.state.order[:] = 0
        self.state.shift_register[0] = self.random_seed

    def rows(self, key: int) -> tuple[int, ...]:
        """Return the row of each way in which `key` may lie."""
        return tuple(line // self.ways for line in self._lines(key))

    def lookup(self, key: int) -> int | None:
        """Return the output of `key`, None if it is not in the cache; a hit touches the line."""
        line = self._where(key) if self.enabled else None
        self.count(lookups=1, hits=line is not None, misses=line is None)
        if line is None:
            return None
        s = self.state
        _touch(self.tables, s, line, self.tick(1))
        return int(s.outputs[line])

    def fill(self, key: int, output: int) -> int | None:
        """Write a line after a miss; return the key that was evicted, None if none was.

        A key that is in the cache already keeps its line and its output and is touched. `NO_MATCH` is not cached.
        """
        line = self._where(key)
        if output < NO_MATCH:
            raise ValueError(f"output must be at least 0, or NO_MATCH = {NO_MATCH}, not {output}")
        if output == NO_MATCH:
            self.count(drops=1)
            return None
        if not self.enabled:
            return None
        c, s, now = self.tables, self.state, self.tick(1)
        if line is not None:
            _touch(c, s, line, now)
            return None
        line = int(_claim(c, s, key, now))
        evicted = int(s.tags[line])
        s.tags[line], s.outputs[line] = key, output
        self.count(fills=1, evictions=evicted != EMPTY)
        return None if evicted == EMPTY else evicted

    def run(self, keys: ArrayLike, outputs: ArrayLike = 0) -> CacheRun:
        """Look up many keys in order, each miss filled before the next lookup.

        Parameters
        ----------
        keys : array_like of int [lookup]
            Encoded keys.
        outputs : array_like of int [lookup], or int
            What the TCAM answers for each; `NO_MATCH` is dropped.

        Returns
        -------
        CacheRun
        """
        words, answers = self.checked(keys, outputs)
        hits = np.zeros(len(words), dtype=np.bool_)
        results = np.empty(len(words), dtype=np.int64)
        if self.enabled:
            fills, evictions, drops = _run(
                self.tables, self.state, words, answers, self.tick(len(words)), hits, results
            )
        else:
            results[:] = answers
            fills, evictions, drops = 0, 0, int(np.count_nonzero(results == NO_MATCH))
        found = int(np.count_nonzero(hits))
        self.count(
            lookups=len(words), hits=found, misses=len(words) - found, fills=fills, evictions=evictions, drops=drops
        )
        return CacheRun(hits, results, int(fills), int(evictions), int(drops))

    def checked(self, keys: ArrayLike, outputs: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return keys and outputs as arrays, if the cache can take them."""
        words = np.ascontiguousarray(keys, dtype=np.int64).reshape(-1)
        answers = np.ascontiguousarray(outputs, dtype=np.int64).reshape(-1)
        outside = (words >> self.address_bits + KEY_MODE_BITS) != 0
        if outside.any():
            self._check_key(int(words[outside][0]))
        if len(answers) not in {1, len(words)}:
            raise ValueError(f"outputs must be one, or as many as keys={len(words)}, not {len(answers)}")
        if (answers < NO_MATCH).any():
            raise ValueError(f"outputs must be at least 0, or NO_MATCH = {NO_MATCH}, not {answers.min()}")
        return words, answers

    def invalidate(self, key: int) -> bool:
        """Remove `key`; return whether it was there."""
        line = self._where(key)
        if line is not None:
            self.state.tags[line] = EMPTY
        self.count(invalidations=1)
        return line is not None

    def flush(self) -> None:
        """Forget all lines: the next epoch begins. Replacement state stays."""
        self.epoch = (self.epoch + 1) % (1 << self.epoch_bits)
        self.state.tags[:] = EMPTY
        self.count(flushes=1)

    def topology_change(self) -> None:
        """Begin a topology change: flush and disable; set `enabled` when the TCAM is reprogrammed."""
        self.flush()
        self.enabled = False

    def contents(self) -> dict[int, int]:
        """Return key → output of all live lines."""
        live = self.state.tags != EMPTY
        return dict(zip(self.state.tags[live].tolist(), self.state.outputs[live].tolist(), strict=True))

    def line(self, row: int, way: int) -> Line:
        """Return one line; `pack_line` gives its 12 bytes."""
        if not (0 <= row < self.sets and 0 <= way < self.ways):
            raise ValueError(f"row must be less than {self.sets} and way less than {self.ways}, not {row}, {way}")
        index = row * self.ways + way
        tag = int(self.state.tags[index])
        if tag == EMPTY:
            return Line(0, 0, False, 0)
        return Line(tag, int(self.state.outputs[index]), True, self.epoch)

    def _lines(self, key: int) -> list[int]:
        self._check_key(key)
        lines = np.empty(self.ways, np.int64)
        _lines(self.tables, key, lines)
        return [int(line) for line in lines]

    def _where(self, key: int) -> int | None:
        return next((line for line in self._lines(key) if self.state.tags[line] == key), None)

    def _check_key(self, key: int) -> None:
        if not 0 <= key < 1 << self.address_bits + KEY_MODE_BITS:
            raise ValueError(f"key must be less than 2^{self.address_bits + KEY_MODE_BITS}, not {key:#x}")

    def tick(self, count: int) -> int:
        """Return the time, and let as many lookups pass."""
        now = self._now
        self._now += count
        return now

    def count(self, **events: int) -> None:
        """Add to counters."""
        for name, number in events.items():
            self.counters[name] += int(number)
