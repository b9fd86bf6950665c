"""Destinations that a lookup engine is asked for in random traffic."""

import numpy as np

from hopforge.model.lookup.params import LookupParams
from hopforge.model.numbers.crc import crc_matrix
from hopforge.sim.drive.stimulus_traffic import Traffic

__all__ = ["destinations", "near_addresses"]

_ONE_BIT = 1 / 3
"""Share of near destinations, in thorough traffic, that differ from the own address in one bit."""
_RUSH_LOOKUPS = 48
_CROWDED = slice(1, None, 4)  # of a pool


def destinations(params: LookupParams, traffic: Traffic, rng: np.random.Generator, centres: np.ndarray) -> np.ndarray:
    """Return int64[lookup]: destinations out of a pool that changes now and then, near ones more often.

    Where keys are whole addresses a quarter of the pool shares few sets, twice as many addresses in each as it has
    ways, and now and then only those of one set are asked for: a large cache would otherwise never use its last way,
    let alone evict, or fill what has been filled while other lines of the set were used.
    """
    limit = 1 << params.address_bits
    pools = rng.integers(0, limit, (max(1, traffic.lookups // traffic.pool_lookups), traffic.pool))
    # half of the addresses differ from their neighbours in a few low bits only, as in a real network
    pools[:, ::2] &= 0xFFF
    if traffic.addresses:
        known = rng.random(pools.shape) < 0.75
        pools[known] = rng.choice(np.array(traffic.addresses, np.int64), int(known.sum()))
    if len(centres):
        near = rng.random(pools.shape) < 0.85
        pools[near] = near_addresses(params, centres, int(near.sum()), rng)
        if traffic.thorough:
            beside = near & (rng.random(pools.shape) < _ONE_BIT)
            pools[beside] = rng.choice(centres, int(beside.sum())) ^ _single_bits(params, int(beside.sum()), rng)
    elif not params.skewed:
        for pool in pools:
            pool[_CROWDED] = _crowded(params, len(pool[_CROWDED]), rng)
    pick = (rng.random(traffic.lookups) ** traffic.locality * traffic.pool).astype(np.int64)
    if not (len(centres) or params.skewed):
        _rush(params, traffic, rng, pick)
    return pools[np.arange(traffic.lookups) * len(pools) // max(1, traffic.lookups), pick]


def near_addresses(params: LookupParams, centres: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return int64[count]: addresses that differ from one of `centres` in up to two digits."""
    addresses = rng.choice(centres, count)
    for _ in range(2):
        bits = rng.choice(np.array(params.chunk_bits), count)
        at = rng.integers(0, params.address_bits // bits) * bits
        addresses ^= (rng.integers(0, 1 << bits) * (rng.random(count) < 0.7)) << at
    return addresses


def _single_bits(params: LookupParams, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return int64[count]: words with one bit of an address."""
    return np.left_shift(1, rng.integers(0, params.address_bits, count))


def _crowded(params: LookupParams, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return int64[count]: addresses that, as keys, lie in few sets, 2 · ways in each."""
    masks, _ = crc_matrix(params.crc, params.address_bits)
    same_set = _kernel([int(mask) for mask in masks[: params.index_bits]], params.address_bits)
    addresses = np.repeat(rng.integers(0, 1 << params.address_bits, -(-count // (2 * params.ways))), 2 * params.ways)
    for vector in same_set:
        addresses ^= vector * rng.integers(0, 2, len(addresses))
    return addresses[:count]


def _rush(params: LookupParams, traffic: Traffic, rng: np.random.Generator, pick: np.ndarray) -> None:
    """Let some stretches of `pick`, places in the pool, ask for the addresses of one set of `_crowded` only."""
    crowded = np.arange(traffic.pool)[_CROWDED]
    in_a_set = 2 * params.ways
    for begin in range(0, len(pick), _RUSH_LOOKUPS):
        if len(crowded) and rng.random() < 0.3:
            first = int(rng.integers(0, -(-len(crowded) // in_a_set))) * in_a_set
            stretch = pick[begin : begin + _RUSH_LOOKUPS]
            stretch[:] = rng.choice(crowded[first : first + in_a_set], len(stretch))


def _kernel(masks: list[int], width: int) -> list[int]:
    """Return a basis of the words whose parity under each of `masks` is 0.

    Examples
    --------
    >>> _kernel([0b011, 0b110], 3)
    [7]
    """
    rows = [(sum((mask >> bit & 1) << place for place, mask in enumerate(masks)), 1 << bit) for bit in range(width)]
    found: list[int] = []
    while rows:
        parities, word = rows.pop()
        if not parities:
            found.append(word)
            continue
        lowest = parities & -parities
        rows = [(p ^ parities, w ^ word) if p & lowest else (p, w) for p, w in rows]
    return found
