"""Bench of `hw.cache.routing_cache`: one operation per cycle, and what the functional cache says to each.

Every operation is read in the cycle in which the one before it is carried out, so that every write is followed by a
read that may collide with it.
"""

from typing import NamedTuple

import numpy as np

from hopforge.hw.cache import routing_cache as hw
from hopforge.model.lookup import routing_cache as model
from hopforge.model.lookup.params import LookupParams
from hopforge.sim.drive.replay import Bench, Output, Replay, as_words

_INPUTS = (
    "read", "read_index", "same_row", "index", "key", "epoch", "lookup", "fill", "invalidate", "scrub", "fill_output",
)  # fmt: skip
_OUTPUTS = (Output("present"), Output("output", "present"), Output("filled"), Output("evicted"))
_IDLE = 0.05  # share of the cycles without an operation
_KEYS = 3  # different keys per line of the cache


class _Operation(NamedTuple):
    """What the cache does in a cycle; the output of a scrub or of no operation is its row, its key is never filled."""

    kind: str
    key: int
    output: int


def routing_cache_bench(params: LookupParams, count: int, rng: np.random.Generator) -> Bench:
    """Return a bench of the arrays.

    Parameters
    ----------
    params : LookupParams
        The engine whose cache it is.
    count : int
        Operations: lookups, fills, invalidations, and now and then a flush with the scrubs of all rows that follow it.
    rng : numpy.random.Generator
        Draws operations and keys.
    """
    golden = model.RoutingCache(
        entries=params.entries, ways=params.ways, policy=params.policy, skewed=params.skewed,
        address_bits=params.address_bits, crc=params.crc, epoch_bits=params.epoch_bits, random_seed=params.random_seed,
    )  # fmt: skip
    component = hw.RoutingCache(
        sets=params.sets, ways=params.ways, policy=params.policy, skewed=params.skewed, key_bits=params.key_bits,
        tag_bits=params.tag_bits, output_bits=params.output_bits, epoch_bits=params.epoch_bits,
        seed=params.random_seed,
    )  # fmt: skip
    keys = [int(key) for key in rng.integers(0, 1 << params.key_bits, _KEYS * params.entries)]
    kinds = ["lookup", "fill", "invalidate", "scrub"]
    stranger = next(key for key in range(len(keys) + 1) if key not in set(keys))
    # After a flush every row is scrubbed before the next one, so that epochs may come round again; often before the
    # lines have been written again, so that a line that was not scrubbed would come back.
    flushes, at = set(), 16 * params.entries
    while at < count:
        flushes.add(at)
        at += 2 * params.sets + 4 if rng.random() < 0.8 else 16 * params.entries
    operations, since = [], count
    for number in range(count):
        since = 0 if number in flushes else since + 1
        if since < 2 * params.sets and since % 2:
            operations.append(_Operation("scrub", stranger, since // 2))
            continue
        if rng.random() < _IDLE:
            operations.append(_Operation("idle", stranger, int(rng.integers(0, params.sets))))
            continue
        operations.append(
            _Operation(
                rng.choice(kinds[:3], p=[0.5, 0.4, 0.1]), keys[int(rng.integers(0, len(keys)))],
                int(rng.integers(0, 1 << min(params.output_bits, 62))),
            )
        )  # fmt: skip
    index = [_index(golden, component, operation) for operation in operations]
    driven = [[1, index[0], *[0] * 9]]
    expected = [[0, 0, 0, 0]]
    for number, operation in enumerate(operations):
        if number in flushes:
            golden.flush()
        following = index[number + 1] if number + 1 < count else 0
        driven.append([
            int(number + 1 < count and operations[number + 1].kind != "idle"), following,
            _same_row(component, index[number], following), index[number],
            operation.key, golden.epoch,
            *(int(operation.kind == kind) for kind in kinds), operation.output,
        ])  # fmt: skip
        expected.append(_carry_out(golden, operation))
    # nothing has been read in cycle 0
    replay = Replay(_INPUTS, _OUTPUTS, as_words(driven), as_words(expected), settle_cycles=1)
    return Bench("routing_cache", component, replay)


def _index(golden: model.RoutingCache, component: hw.RoutingCache, operation: _Operation) -> int:
    by_row = operation.kind in {"scrub", "idle"}
    rows = [operation.output] * component.ways if by_row else golden.rows(operation.key)
    return sum(row << way * component.row_bits for way, row in enumerate(rows)) if component.skewed else rows[0]


def _same_row(component: hw.RoutingCache, one: int, other: int) -> int:
    """Return a bit per row number (skewed: per way) that two indices have in common."""
    bits = component.row_bits
    mask = (1 << bits) - 1
    return sum(int(one >> at & mask == other >> at & mask) << at // bits for at in range(0, component.index_bits, bits))


def _carry_out(golden: model.RoutingCache, operation: _Operation) -> list[int]:
    """Return present, output, filled, evicted of one operation."""
    if operation.kind in {"scrub", "idle"}:  # a scrub removes only what is forgotten already
        return [0, 0, 0, 0]
    before = golden.contents().get(operation.key)
    present, output = int(before is not None), before or 0
    if operation.kind == "lookup":
        golden.lookup(operation.key)
    elif operation.kind == "invalidate":
        golden.invalidate(operation.key)
    else:
        evicted = golden.fill(operation.key, operation.output)
        return [present, output, 1 - present, int(evicted is not None)]
    return [present, output, 0, 0]
