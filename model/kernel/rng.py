"""One small random stream per host and per router, so that results do not depend on the order of evaluation.

SplitMix64 (Steele, Lea, Flood 2014): the state is a counter, the output a hash of it. Streams start at states drawn by
numpy's SeedSequence from the seed of the configuration.
"""

import math
from typing import Any

import numpy as np
from numba import uint64
from numpy.typing import NDArray

from hopforge.model.kernel.compile import inner


def seed_streams(seed: int, purpose: int, count: int) -> NDArray[np.uint64]:
    """States of `count` independent streams: uint64[count], one stream per index.

    Parameters
    ----------
    seed : int
        From the configuration.
    purpose : int
        Distinguishes uses of the same seed (hosts, routers, ...).
    count : int
        Number of streams.
    """
    return np.random.SeedSequence((seed, purpose)).generate_state(max(count, 1), np.uint64).astype(np.uint64)


@inner
def next_word(streams: Any, index: int) -> int:
    """Advance stream `index` and return 64 random bits."""
    state = streams[index] + uint64(0x9E3779B97F4A7C15)
    streams[index] = state
    word = (state ^ (state >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> uint64(27))) * uint64(0x94D049BB133111EB)
    return word ^ (word >> uint64(31))


@inner
def next_below(streams: Any, index: int, bound: int) -> int:
    """Uniform integer in [0, bound), bound ≤ 2³¹ (multiply-shift; bias below 2⁻³²)."""
    return int(np.int64(((next_word(streams, index) >> uint64(32)) * uint64(bound)) >> uint64(32)))


@inner
def next_float(streams: Any, index: int) -> float:
    """Uniform float in [0, 1) with 53 bits."""
    return np.float64(next_word(streams, index) >> uint64(11)) * (1.0 / 9007199254740992.0)


@inner
def next_geometric(streams: Any, index: int, log_failure: float) -> int:
    """Failures before the first success of Bernoulli trials.

    Parameters
    ----------
    streams, index
        The stream.
    log_failure : float
        log(1 − p) < 0; −inf for p = 1; 0 (p = 0) gives "never" (2⁶²).
    """
    if log_failure == 0.0:
        return 1 << 62
    gap = math.log(1.0 - next_float(streams, index)) / log_failure
    return int(min(gap, 4.0e18))
