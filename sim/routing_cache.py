"""Bench of `hw.routing_cache`: one operation per cycle, and what the functional cache says to each.

Every operation is read in the cycle in which the one before it is carried out, so that every write is followed by a
read that may collide with it.
"""

from typing import NamedTuple

import numpy as np

from hopforge.hw import routing_cache as hw
from hopforge.model import routing_cache as model
from hopforge.model.lookup_params import LookupParams
from hopforge.sim.replay import Bench, Output, Replay, as_words

_INPUTS = (
    "read", "read_index", "same_row", "index", "key", "epoch", "lookup", "fill", "invalidate", "scrub", "fill_output",
)  # fmt: skip
_OUTPUTS = (Output("present"), Output("output", "present"), Output("filled"), Output("evicted"))
_KEYS = 3  # different keys per line of the cache


class _Operation(NamedTuple):
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
        Operations: lookups, fills, invalidations, and a few flushes.
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
    kinds = ["lookup", "fill", "invalidate"]
    operations = [
        _Operation(
            rng.choice(kinds, p=[0.5, 0.4, 0.1]), keys[int(rng.integers(0, len(keys)))],
            int(rng.integers(0, 1 << min(params.output_bits, 62))),
        )
        for _ in range(count)
    ]  # fmt: skip
    # as many flushes as epochs would need a scrubber
    most = min(count // 100, (1 << params.epoch_bits) - 1)
    flushes = set(rng.choice(count, most, replace=False).tolist())
    index = [_index(golden, params, component.row_bits, operation.key) for operation in operations]
    driven = [[1, index[0], *[0] * 9]]
    expected = [[0, 0, 0, 0]]
    for number, operation in enumerate(operations):
        if number in flushes:
            golden.flush()
        following = index[number + 1] if number + 1 < count else 0
        driven.append([
            int(number + 1 < count), following, _same_row(component, index[number], following), index[number],
            operation.key, golden.epoch,
            *(int(operation.kind == kind) for kind in kinds), 0, operation.output,
        ])  # fmt: skip
        expected.append(_carry_out(golden, operation))
    # nothing has been read in cycle 0
    replay = Replay(_INPUTS, _OUTPUTS, as_words(driven), as_words(expected), settle_cycles=1)
    return Bench("routing_cache", component, replay)


def _index(golden: model.RoutingCache, params: LookupParams, row_bits: int, key: int) -> int:
    rows = golden.rows(key)
    return sum(row << way * row_bits for way, row in enumerate(rows)) if params.skewed else rows[0]


def _same_row(component: hw.RoutingCache, one: int, other: int) -> int:
    """Return a bit per row number (skewed: per way) that two indices have in common."""
    bits = component.row_bits
    mask = (1 << bits) - 1
    return sum(
        int(one >> at & mask == other >> at & mask) << at // bits for at in range(0, component.index_bits, bits)
    )


def _carry_out(golden: model.RoutingCache, operation: _Operation) -> list[int]:
    """Return present, output, filled, evicted of one operation."""
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
