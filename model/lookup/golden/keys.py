"""Keys for every register value, members and rows of the cache."""

from collections.abc import Sequence
from typing import NamedTuple

from hopforge.model.expression.golden import evaluate
from hopforge.model.lookup.csr import MODES
from hopforge.model.lookup.params import MEMBER_BITS, LookupParams
from hopforge.model.numbers.crc import crc_matrix
from hopforge.model.numbers.skew_matrices import skew_matrices

_GRID_LOCAL, _GRID_PLUS, _GRID_MINUS = 0, 1, 2
_TREE_UP, _TREE_DOWN = 1, 2
_DRAGONFLY_TERMINAL, _DRAGONFLY_ROUTER, _DRAGONFLY_GROUP = 0, 1, 2
_KIND_BITS = 2


class ActiveConfig(NamedTuple):
    """Registers that key computation reads; out-of-range values are already replaced by what they act as."""

    enable: int
    mode: int
    chunk_bits: int
    up_choice: int
    member_hash: int
    members: int
    own: int
    level: int
    digits: int
    radices: tuple[int, ...]


class KeyFunctions:
    """Key, link-aggregation member and set index of a destination, for every register value.

    Parameters
    ----------
    params : LookupParams
        The engine.
    """

    def __init__(self, params: LookupParams) -> None:
        self.params = params
        self._masks, self._constant = crc_matrix(params.crc, params.address_bits)
        self._skew = skew_matrices(params.address_bits, params.index_bits, params.ways) if params.skewed else ()

    def config(
        self,
        *,
        enable: int = 1,
        mode: int = 0,
        chunk_select: int = 0,
        up_choice: int = 0,
        member_hash: int = 0,
        members: int = 1,
        own: int = 0,
        level: int = 0,
        digits: int = 0,
        radices: tuple[int, ...] = (),
    ) -> ActiveConfig:
        """Return the configuration that the fields of the registers ask for, with what impossible values act as.

        Parameters
        ----------
        enable, mode, chunk_select, up_choice, member_hash, members, own, level, digits : int
            Fields of CTRL, MODE, OWN and LEVEL.
        radices : tuple of int
            RADIX registers.
        """
        params = self.params
        return ActiveConfig(
            enable=enable,
            mode=mode if mode < len(MODES) and MODES[mode] in params.functions else 0,
            chunk_bits=params.chunk_bits[chunk_select if chunk_select < len(params.chunk_bits) else 0],
            up_choice=up_choice,
            member_hash=member_hash,
            members=members if 1 <= members <= params.max_members else 1,
            own=own,
            level=level,
            digits=digits,
            radices=radices,
        )

    def crc(self, word: int) -> int:
        """Return the CRC of an address or payload."""
        return _parities(self._masks, word) ^ self._constant

    def member(self, config: ActiveConfig, dst: int) -> int:
        """Return the link-aggregation member of `dst`: CRC(dst) or dst itself, modulo the number of members."""
        hashed = dst if config.member_hash else self.crc(dst)
        return hashed % config.members

    def key(self, config: ActiveConfig, dst: int) -> int:
        """Return the cache key of `dst` (docs/architecture.md, "Cache keys")."""
        a = self.params.address_bits
        if config.mode == MODES.index("arbitrary"):
            return dst
        if config.mode == MODES.index("expression"):
            return config.mode << a | self.member(config, dst) << (a - MEMBER_BITS) | self._expression(config, dst)
        if config.mode == MODES.index("fat_tree"):
            kind, value = self._fat_tree(config, dst)
        elif config.mode == MODES.index("dragonfly"):
            kind, value = self._dragonfly(config, dst)
        else:
            kind, value = self._grid(config, dst)
        payload = self.member(config, dst)
        payload = payload << _KIND_BITS | kind
        payload = payload << (a - MEMBER_BITS - _KIND_BITS) | value & (1 << self.params.value_bits) - 1
        return config.mode << a | payload

    def rows(self, key: int) -> tuple[int, ...]:
        """Return the row of each way in which the line of `key` may lie."""
        payload = key & (1 << self.params.address_bits) - 1
        if self.params.skewed:
            return tuple(_parities(masks, payload) for masks in self._skew)
        return (self.crc(payload) & self.params.sets - 1,) * self.params.ways

    def _digit(self, config: ActiveConfig, address: int, index: int) -> int:
        return address >> config.chunk_bits * index & (1 << config.chunk_bits) - 1

    def _expression(self, config: ActiveConfig, dst: int) -> int:
        compiled = self.params.expression
        assert compiled is not None
        return evaluate(compiled.expression, compiled.names, dst=dst, own=config.own, level=config.level)

    def _grid(self, config: ActiveConfig, dst: int) -> tuple[int, int]:
        used = self.params.digits(config.chunk_bits)
        for i in range(min(config.digits, used)):
            d, c = self._digit(config, dst, i), self._digit(config, config.own, i)
            if d != c:
                return (_GRID_PLUS if self._plus(config, d, c, config.radices[i]) else _GRID_MINUS), i
        return _GRID_LOCAL, self._digit(config, dst, config.digits) if 1 <= config.digits <= used else 0

    def _plus(self, config: ActiveConfig, d: int, c: int, k: int) -> bool:
        """Return whether the short way from digit c to digit d ≠ c is the one with increasing digits."""
        if config.mode == MODES.index("mesh"):
            return d > c
        if c > k // 2:  # the interval (c, c + ⌊k/2⌋] of the ring wraps around
            return d > c or d <= c - k // 2 - 1
        return c < d <= c + k // 2

    def _fat_tree(self, config: ActiveConfig, dst: int) -> tuple[int, int]:
        used = self.params.digits(config.chunk_bits)
        differ = [
            i
            for i in range(config.level, config.digits)
            if i + 1 < used and self._digit(config, dst, i + 1) != self._digit(config, config.own, i)
        ]
        if differ and config.up_choice:
            return _TREE_UP, self._digit(config, dst, max(differ))
        value = self._digit(config, dst, config.level) if config.level < used else 0
        return (_TREE_UP if differ else _TREE_DOWN), value

    def _dragonfly(self, config: ActiveConfig, dst: int) -> tuple[int, int]:
        group = dst >> 2 * config.chunk_bits
        if group != config.own >> 2 * config.chunk_bits:
            return _DRAGONFLY_GROUP, group
        if self._digit(config, dst, 1) != self._digit(config, config.own, 1):
            return _DRAGONFLY_ROUTER, self._digit(config, dst, 1)
        return _DRAGONFLY_TERMINAL, self._digit(config, dst, 0)


def _parities(masks: Sequence[int], word: int) -> int:
    """Return the number whose bit i is the parity of ``word & masks[i]``."""
    return sum(((word & int(mask)).bit_count() & 1) << bit for bit, mask in enumerate(masks))
