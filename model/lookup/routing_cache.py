"""The routing cache, functionally: which lookups hit, what is evicted, and why a lookup misses.

Source: the specification of the lookup path, "Cache"; replacement state as in docs/lookup-engine.md. No cycles here:
an answer is in the cache before the next lookup. `model.lookup.golden` is the same cache with time.
"""

from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from hopforge.model.config import Config
from hopforge.model.config.lookup import KEY_MODE_BITS, POLICIES, Policy
from hopforge.model.kernel.stale import forget_stale
from hopforge.model.lookup import node_reduction, replacement
from hopforge.model.lookup.node_reduction import NodeReduction, reduce_key
from hopforge.model.lookup.replacement import (
    LRU,
    PLRU,
    RANDOM,
    choose_victim,
    next_random,
    note_fill,
    note_use,
    random_way,
)
from hopforge.model.numbers import crc as crc_module
from hopforge.model.numbers.crc import DEFAULT_CRC, Crc, CrcMatrix, affine_tables, crc_matrix
from hopforge.model.numbers.skew_matrices import skew_matrices

__all__ = [
    "CAUSES", "NO_MATCH", "CacheRun", "Line", "ReplayCounts", "RoutingCache", "TwoLevelCache", "miss_causes",
    "pack_line", "replay", "replay_streams", "unpack_line",
]

NO_MATCH = -1
"""Output that stands for "no TCAM row matches"; nothing is cached then."""

CAUSES = ("hit", "compulsory", "capacity", "conflict")
"""Meaning of the values that `miss_causes` returns."""

TAG_BITS, OUTPUT_BITS, RESERVED_BITS = 64, 16, 16
LINE_BYTES = (TAG_BITS + OUTPUT_BITS + RESERVED_BITS) // 8
_MAX_WAYS = 64
_EMPTY = -1
_WORD_MASK = -1


class Line(NamedTuple):
    """One line of the cache.

    Attributes
    ----------
    tag : int
        The key, zero-extended to 64 bits.
    output : int
        Output port, or a bit for each allowed port.
    valid : bool
        Whether the line holds anything.
    epoch : int
        Epoch in which it was filled; the line is live if that is the current one.
    """

    tag: int
    output: int
    valid: bool
    epoch: int


def pack_line(line: Line) -> int:
    """Return the 12 bytes of a line as an integer: tag [63:0], output [79:64], epoch from bit 80, valid bit 95.

    Raises
    ------
    ValueError
        If a field does not fit.

    Examples
    --------
    >>> hex(pack_line(Line(tag=0x2000001, output=3, valid=True, epoch=5)))
    '0x800500030000000002000001'
    """
    for name, bits in (("tag", TAG_BITS), ("output", OUTPUT_BITS), ("epoch", RESERVED_BITS - 1)):
        if not 0 <= getattr(line, name) < 1 << bits:
            raise ValueError(f"{name} must be less than 2^{bits}, not {getattr(line, name):#x}")
    reserved = line.valid << (RESERVED_BITS - 1) | line.epoch
    return (reserved << OUTPUT_BITS | line.output) << TAG_BITS | line.tag


def unpack_line(image: int) -> Line:
    """Return the line that `pack_line` packed.

    Raises
    ------
    ValueError
        If `image` has more than 96 bits.
    """
    if not 0 <= image < 1 << 8 * LINE_BYTES:
        raise ValueError(f"image must be less than 2^{8 * LINE_BYTES}, not {image:#x}")
    reserved = image >> TAG_BITS + OUTPUT_BITS
    return Line(
        tag=image & (1 << TAG_BITS) - 1, output=image >> TAG_BITS & (1 << OUTPUT_BITS) - 1,
        valid=bool(reserved >> RESERVED_BITS - 1), epoch=reserved & (1 << RESERVED_BITS - 1) - 1,
    )  # fmt: skip


class CacheTables(NamedTuple):
    """What a cache is, for kernels.

    Attributes
    ----------
    rows : ndarray, uint64[way or 1, byte, 256]
        Byte tables of the row number of each way; one for all ways without skewing.
    payload_mask : int
        Bits of a key that are hashed.
    ways, policy : int
        Ways, and index in (lru, plru, fifo, random).
    """

    rows: NDArray[np.uint64]
    payload_mask: int
    ways: int
    policy: int


class CacheState(NamedTuple):
    """What a cache holds, for kernels; line of (row, way) = row·ways + way.

    Attributes
    ----------
    tags, outputs : ndarray, int64[line]
        Key (-1: not live) and output.
    order : ndarray, int64[line]
        Replacement state (`model.lookup.replacement`); fifo with skewing: time of the fill.
    shift_register : ndarray, int64[1]
        random: the LFSR.
    """

    tags: NDArray[np.int64]
    outputs: NDArray[np.int64]
    order: NDArray[np.int64]
    shift_register: NDArray[np.int64]


# Kernels hand plain arrays and numbers to what they call for every lookup: an array taken from a tuple, or a slice, is
# reference-counted each time, which costs more than the lookup. The bodies of long runs exist twice, once with the
# constants of the default (lru, not skewed), where the compiler then drops all else; that is three times as fast.


@njit(cache=True, inline="always")  # type: ignore[untyped-decorator]
def hash_row(rows, which, word):  # type: ignore[no-untyped-def]
    """Return the row of `word` by the byte tables of index function `which`."""
    result = rows[which, 0, word & 255]
    for byte in range(1, rows.shape[1]):
        result ^= rows[which, byte, (word >> (8 * byte)) & 255]
    return np.int64(result)


@njit(cache=True, inline="always")  # type: ignore[untyped-decorator]
def find_line(rows, skewed, tags, ways, key, word):  # type: ignore[no-untyped-def]
    """Return the line that holds `key`, -1 if none does."""
    found = -1
    if skewed:
        for way in range(ways):
            line = hash_row(rows, way, word) * ways + way
            found = line if tags[line] == key else found
    else:
        first = hash_row(rows, 0, word) * ways
        # no early exit: which way hits is as good as random, and a wrong guess costs more than the compares
        for line in range(first, first + ways):
            found = line if tags[line] == key else found
    return found


@njit(cache=True, inline="always")  # type: ignore[untyped-decorator]
def touch_line(policy, ways, order, line, now):  # type: ignore[no-untyped-def]
    if policy == LRU:
        note_use(LRU, ways, order, line, 1, 0, now)  # a time belongs to its line alone, also with skewing
    elif policy == PLRU:
        way = line & (ways - 1)  # the ways are a power of two; a division would take longer than the rest
        note_use(PLRU, ways, order, line - way, 1, way, now)


@njit(cache=True, inline="always")  # type: ignore[untyped-decorator]
def _line(rows, ways, word, way):  # type: ignore[no-untyped-def]
    """Return the line of `way` in which the key with payload `word` may lie."""
    return hash_row(rows, way if len(rows) > 1 else 0, word) * ways + way


@njit(cache=True)  # type: ignore[untyped-decorator]
def _victim(rows, ways, policy, tags, order, register, word, now):  # type: ignore[no-untyped-def]
    """Return the line to be filled: the lowest way that is not live, else the policy's choice."""
    for way in range(ways):
        line = _line(rows, ways, word, way)
        if tags[line] == _EMPTY:
            return line
    if len(rows) == 1:
        first = _line(rows, ways, word, 0)
        return first + choose_victim(policy, ways, order, first, 1, now, _WORD_MASK, register)
    if policy == RANDOM:
        return _line(rows, ways, word, random_way(ways, register))
    oldest = _line(rows, ways, word, 0)
    for way in range(1, ways):
        line = _line(rows, ways, word, way)
        if order[line] < order[oldest]:
            oldest = line
    return oldest


@njit(cache=True)  # type: ignore[untyped-decorator]
def claim_line(rows, ways, policy, tags, order, shift_register, word, now):  # type: ignore[no-untyped-def]
    """Return the line that a key with payload `word` gets, and do to the replacement state what a fill does."""
    line = _victim(rows, ways, policy, tags, order, shift_register[0], word, now)
    if policy == RANDOM:
        if tags[line] != _EMPTY:
            shift_register[0] = next_random(shift_register[0])
    elif len(rows) > 1:
        order[line] = now
    else:
        way = line % ways
        note_fill(policy, ways, order, line - way, 1, way, now)
    return line


@njit(cache=True, inline="always")  # type: ignore[untyped-decorator]
def _run_as(  # type: ignore[no-untyped-def]
    policy, skewed, rows, payload_mask, ways, tags, held, order, shift_register, keys, outputs,
    now, hits, answers,
):
    fills = evictions = drops = 0
    step = len(outputs) > 1
    for index in range(len(keys)):
        key = keys[index]
        word = key & payload_mask
        output = outputs[index if step else 0]
        line = find_line(rows, skewed, tags, ways, key, word)
        if line >= 0:
            touch_line(policy, ways, order, line, now + index)
            hits[index] = True
            output = held[line]
        elif output == NO_MATCH:
            drops += 1
        else:
            line = claim_line(rows, ways, policy, tags, order, shift_register, word, now + index)
            evictions += tags[line] != _EMPTY
            fills += 1
            tags[line] = key
            held[line] = output
        answers[index] = output
    return fills, evictions, drops


@njit(cache=True)  # type: ignore[untyped-decorator]
def _run(c, s, keys, outputs, now, hits, answers):  # type: ignore[no-untyped-def]
    """Run `keys` through the cache; return (fills, evictions, drops)."""
    rows, payload_mask, ways, policy = c
    tags, held, order, shift_register = s
    if policy == LRU and len(rows) == 1:
        return _run_as(
            LRU, False, rows, payload_mask, ways, tags, held, order, shift_register, keys, outputs,
            now, hits, answers,
        )  # fmt: skip
    return _run_as(
        policy, len(rows) > 1, rows, payload_mask, ways, tags, held, order, shift_register, keys,
        outputs, now, hits, answers,
    )  # fmt: skip


@njit(cache=True, inline="always")  # type: ignore[untyped-decorator]
def _replay_as(  # type: ignore[no-untyped-def]
    policy, skewed, rows, payload_mask, ways, tags, held, order, shift_register, t, own, level,
    dst, now,
):
    hits = evictions = 0
    for index in range(len(dst)):
        key = reduce_key(t, own, level, dst[index])
        word = key & payload_mask
        line = find_line(rows, skewed, tags, ways, key, word)
        if line >= 0:
            touch_line(policy, ways, order, line, now + index)
            hits += 1
        else:
            line = claim_line(rows, ways, policy, tags, order, shift_register, word, now + index)
            evictions += tags[line] != _EMPTY
            tags[line] = key
            held[line] = 0
    return hits, evictions


@njit(cache=True)  # type: ignore[untyped-decorator]
def _replay(t, own, level, c, s, dst, now):  # type: ignore[no-untyped-def]
    """Reduce, hash and look up `dst`; return (hits, evictions)."""
    rows, payload_mask, ways, policy = c
    tags, held, order, shift_register = s
    if policy == LRU and len(rows) == 1:
        return _replay_as(
            LRU, False, rows, payload_mask, ways, tags, held, order, shift_register, t, own, level,
            dst, now,
        )  # fmt: skip
    return _replay_as(
        policy, len(rows) > 1, rows, payload_mask, ways, tags, held, order, shift_register, t, own,
        level, dst, now,
    )  # fmt: skip


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
    policy : {"lru", "plru", "fifo", "random"}
        Replacement policy.
    skewed : bool
        Every way has an index function of its own (`skew_matrices`); lru and fifo then go by time stamps, plru is not
        defined.
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
        policy: Policy = "lru",
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
            policy=POLICIES.index(policy),
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
        if self.policy not in POLICIES:
            raise ValueError(f"policy must be one of {', '.join(POLICIES)}, not {self.policy!r}")
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
        self.state.tags[:] = _EMPTY
        self.state.order[:] = 0
        self.state.shift_register[0] = self.random_seed

    def rows(self, key: int) -> tuple[int, ...]:
        """Return the row of each way in which `key` may lie."""
        return tuple(line // self.ways for line in self._lines(key))

    def lookup(self, key: int) -> int | None:
        """Return the output of `key`, None if it is not in the cache; a hit touches the line."""
        line = self._where(key) if self.enabled else None
        self._count(lookups=1, hits=line is not None, misses=line is None)
        if line is None:
            return None
        s = self.state
        touch_line(self.tables.policy, self.ways, s.order, line, self._tick(1))
        return int(s.outputs[line])

    def fill(self, key: int, output: int) -> int | None:
        """Write a line after a miss; return the key that was evicted, None if none was.

        A key that is in the cache already keeps its line and its output and is touched. `NO_MATCH` is not cached.
        """
        line = self._where(key)
        if output < NO_MATCH:
            raise ValueError(f"output must be at least 0, or NO_MATCH = {NO_MATCH}, not {output}")
        if output == NO_MATCH:
            self._count(drops=1)
            return None
        if not self.enabled:
            return None
        c, s, now = self.tables, self.state, self._tick(1)
        if line is not None:
            touch_line(c.policy, self.ways, s.order, line, now)
            return None
        word = key & c.payload_mask
        line = claim_line(c.rows, self.ways, c.policy, s.tags, s.order, s.shift_register, word, now)
        evicted = int(s.tags[line])
        s.tags[line], s.outputs[line] = key, output
        self._count(fills=1, evictions=evicted != _EMPTY)
        return None if evicted == _EMPTY else evicted

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
        words, answers = self._arrays(keys, outputs)
        hits = np.zeros(len(words), dtype=np.bool_)
        results = np.empty(len(words), dtype=np.int64)
        if self.enabled:
            fills, evictions, drops = _run(
                self.tables, self.state, words, answers, self._tick(len(words)), hits, results
            )
        else:
            results[:] = answers
            fills, evictions, drops = 0, 0, int(np.count_nonzero(results == NO_MATCH))
        found = int(np.count_nonzero(hits))
        self._count(
            lookups=len(words), hits=found, misses=len(words) - found, fills=fills, evictions=evictions, drops=drops
        )
        return CacheRun(hits, results, int(fills), int(evictions), int(drops))

    def _arrays(self, keys: ArrayLike, outputs: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
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
            self.state.tags[line] = _EMPTY
        self._count(invalidations=1)
        return line is not None

    def flush(self) -> None:
        """Forget all lines: the next epoch begins. Replacement state stays."""
        self.epoch = (self.epoch + 1) % (1 << self.epoch_bits)
        self.state.tags[:] = _EMPTY
        self._count(flushes=1)

    def topology_change(self) -> None:
        """Begin a topology change: flush and disable; set `enabled` when the TCAM is reprogrammed."""
        self.flush()
        self.enabled = False

    def contents(self) -> dict[int, int]:
        """Return key → output of all live lines."""
        live = self.state.tags != _EMPTY
        return dict(zip(self.state.tags[live].tolist(), self.state.outputs[live].tolist(), strict=True))

    def line(self, row: int, way: int) -> Line:
        """Return one line; `pack_line` gives its 12 bytes."""
        if not (0 <= row < self.sets and 0 <= way < self.ways):
            raise ValueError(f"row must be less than {self.sets} and way less than {self.ways}, not {row}, {way}")
        index = row * self.ways + way
        tag = int(self.state.tags[index])
        if tag == _EMPTY:
            return Line(0, 0, False, 0)
        return Line(tag, int(self.state.outputs[index]), True, self.epoch)

    def _lines(self, key: int) -> list[int]:
        self._check_key(key)
        c = self.tables
        return [int(_line(c.rows, self.ways, key & c.payload_mask, way)) for way in range(self.ways)]

    def _where(self, key: int) -> int | None:
        return next((line for line in self._lines(key) if self.state.tags[line] == key), None)

    def _check_key(self, key: int) -> None:
        if not 0 <= key < 1 << self.address_bits + KEY_MODE_BITS:
            raise ValueError(f"key must be less than 2^{self.address_bits + KEY_MODE_BITS}, not {key:#x}")

    def _tick(self, count: int) -> int:
        now = self._now
        self._now += count
        return now

    def _count(self, **events: int) -> None:
        for name, number in events.items():
            self.counters[name] += int(number)


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
        words, answers = self.first._arrays(keys, outputs)
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


# --- why a lookup misses


@njit(cache=True)  # type: ignore[untyped-decorator]
def _number_keys(keys, numbers):  # type: ignore[no-untyped-def]
    """Give keys numbers by first appearance (open addressing, the table doubles when half full); return how many."""
    size = 1024
    slots = np.full(size, -1, np.int64)
    names = np.empty(size, np.int64)
    count = 0
    for index in range(len(keys)):
        key = keys[index]
        slot = ((key * -7046029254386353131) >> 20) & (size - 1)
        while slots[slot] >= 0 and names[slot] != key:
            slot = (slot + 1) & (size - 1)
        if slots[slot] < 0:
            slots[slot] = count
            names[slot] = key
            count += 1
        numbers[index] = slots[slot]
        if 2 * count > size:
            old_slots, old_names = slots, names
            size *= 2
            slots = np.full(size, -1, np.int64)
            names = np.empty(size, np.int64)
            for old in range(len(old_slots)):
                if old_slots[old] >= 0:
                    slot = ((old_names[old] * -7046029254386353131) >> 20) & (size - 1)
                    while slots[slot] >= 0:
                        slot = (slot + 1) & (size - 1)
                    slots[slot] = old_slots[old]
                    names[slot] = old_names[old]
    return count


@njit(cache=True)  # type: ignore[untyped-decorator]
def _full_lru(numbers, entries, seen, newer, older, causes):  # type: ignore[no-untyped-def]
    """Write what a fully associative LRU cache of `entries` lines makes of `numbers`: 0 hit, 1 compulsory, 2 capacity.

    ``seen``: 0 never, 1 gone, 2 held; zeros at the start. ``newer`` and ``older`` link the numbers that are held.
    """
    newest = oldest = -1
    held = 0
    for index in range(len(numbers)):
        number = numbers[index]
        state = seen[number]
        causes[index] = 1 if state == 0 else 2 * (2 - state)
        if state == 2:
            if number == newest:
                continue
            above, below = newer[number], older[number]
            older[above] = below
            if below >= 0:
                newer[below] = above
            else:
                oldest = above
        elif held == entries:
            seen[oldest] = 1
            oldest = newer[oldest]
            if oldest >= 0:
                older[oldest] = -1
            else:
                newest = -1
        else:
            held += 1
        seen[number] = 2
        older[number] = newest
        newer[number] = -1
        if newest >= 0:
            newer[newest] = number
        else:
            oldest = number
        newest = number


@njit(cache=True)  # type: ignore[untyped-decorator]
def _blame(hits, causes):  # type: ignore[no-untyped-def]
    """Turn what the fully associative cache did into the causes of the real one's misses."""
    for index in range(len(hits)):
        if hits[index]:
            causes[index] = 0
        elif causes[index] == 0:
            causes[index] = 3


def miss_causes(keys: ArrayLike, hits: ArrayLike, entries: int) -> NDArray[np.uint8]:
    """Return why each lookup missed (Hill's three causes).

    Compulsory: the first lookup of this key. Capacity: a fully associative LRU cache of as many entries would miss,
    too. Conflict: it would not.

    Parameters
    ----------
    keys : array_like of int [lookup]
        All lookups since the cache was empty.
    hits : array_like of bool [lookup]
        What `RoutingCache.run` found.
    entries : int
        Lines of the cache.

    Returns
    -------
    ndarray, uint8[lookup]
        Index in `CAUSES`.

    Raises
    ------
    ValueError
        If `entries` is below 1, or `keys` and `hits` differ in length.

    Examples
    --------
    >>> keys = [1, 2, 3, 1, 1]
    >>> miss_causes(keys, RoutingCache(entries=2, ways=2).run(keys).hits, 2).tolist()
    [1, 1, 1, 2, 0]
    """
    words = np.ascontiguousarray(keys, dtype=np.int64)
    found = np.ascontiguousarray(hits, dtype=np.bool_)
    if entries < 1:
        raise ValueError(f"entries must be at least 1, not {entries}")
    if len(words) != len(found):
        raise ValueError(f"hits must be as many as keys={len(words)}, not {len(found)}")
    causes = _ideal_causes(words, entries)
    _blame(found, causes)
    return causes


def _ideal_causes(words: NDArray[np.int64], entries: int) -> NDArray[np.uint8]:
    numbers = np.empty(len(words), dtype=np.int64)
    count = _number_keys(words, numbers)
    causes = np.empty(len(words), dtype=np.uint8)
    seen, newer, older = np.zeros(count, np.uint8), np.empty(count, np.int64), np.empty(count, np.int64)
    _full_lru(numbers, entries, seen, newer, older, causes)
    return causes


# --- long runs


class ReplayCounts(NamedTuple):
    """What happened in a replay.

    Attributes
    ----------
    lookups, hits, evictions : int
        Numbers of events; all misses are filled.
    """

    lookups: int
    hits: int
    evictions: int


def replay(reduction: NodeReduction, router: int, destinations: ArrayLike, cache: RoutingCache) -> ReplayCounts:
    """Look up many destinations at one input port of a switch: reduction, hash and cache in one kernel.

    The fast way where only counts matter: the same as ``cache.run(reduction.keys(router, destinations))``.

    Parameters
    ----------
    reduction : NodeReduction
        The key function.
    router : int
        Number of the switch.
    destinations : array_like of int [lookup]
        Destination addresses.
    cache : RoutingCache
        The port's cache; its contents and counters go on.

    Raises
    ------
    ValueError
        If an address is beyond the network, or widths differ.
    """
    if reduction.address.width_bits != cache.address_bits:
        limit = f"width_bits={reduction.address.width_bits}"
        raise ValueError(f"address_bits of the cache must be {limit}, not {cache.address_bits}")
    dst = np.ascontiguousarray(destinations, dtype=np.int64)
    reduction.check_destinations(dst)
    place = reduction.switch(router)
    hits = evictions = 0
    if cache.enabled:
        hits, evictions = _replay(
            reduction.tables, place.own, place.level, cache.tables, cache.state, dst, cache._tick(len(dst))
        )
    misses = len(dst) - hits
    cache._count(
        lookups=len(dst), hits=hits, misses=misses, fills=misses if cache.enabled else 0, evictions=evictions
    )
    return ReplayCounts(len(dst), int(hits), int(evictions))


def replay_streams(keys: ArrayLike, starts: ArrayLike, cache: RoutingCache) -> NDArray[np.int64]:
    """Run many streams of keys, each through its own cache that is empty at the start.

    Parameters
    ----------
    keys : array_like of int [lookup]
        Keys of all streams, stream by stream.
    starts : array_like of int [stream + 1]
        ``keys[starts[i]:starts[i + 1]]`` is stream i.
    cache : RoutingCache
        What each cache is like; it is reset before every stream.

    Returns
    -------
    ndarray, int64[stream, 5]
        Hits, compulsory, capacity and conflict misses (as `CAUSES`), evictions.

    Raises
    ------
    ValueError
        If `starts` does not ascend from 0 to the number of keys.

    Examples
    --------
    >>> replay_streams([7, 7, 8, 7], [0, 3, 4], RoutingCache(entries=4, ways=2)).tolist()
    [[1, 2, 0, 0, 0], [0, 1, 0, 0, 0]]
    """
    words, _ = cache._arrays(keys, 0)
    bounds = np.asarray(starts, dtype=np.int64)
    if len(bounds) < 1 or bounds[0] != 0 or bounds[-1] != len(words) or (np.diff(bounds) < 0).any():
        raise ValueError(f"starts must ascend from 0 to the number of keys={len(words)}, not {bounds.tolist()[:8]}")
    result = np.zeros((len(bounds) - 1, 5), dtype=np.int64)
    for stream, (start, end) in enumerate(pairwise(bounds)):
        if start == end:
            continue
        enabled = cache.enabled
        cache.reset()
        cache.enabled = enabled
        run = cache.run(words[start:end])
        causes = miss_causes(words[start:end], run.hits, cache.entries)
        result[stream, :4] = np.bincount(causes, minlength=4)
        result[stream, 4] = run.evictions
    return result


forget_stale(_replay, crc_module, node_reduction, replacement)
