"""The rule of Q-adaptive for one estimate: when the minimal port is kept, and how an estimate learns.

The simulator compiles these functions, the golden model of the table in hardware (`model.router.q_table`) calls them as
they stand. All numbers are floats; with estimates, targets and rates that are multiples of powers of two, as in
hardware, no operation rounds unless it says so.
"""

import math

from numba import njit

#: in hardware a rate or threshold is a whole number of 2**-RATE_BITS
RATE_BITS = 10


@njit
def keeps_minimal(minimal: float, other: float, threshold: float) -> bool:
    """Whether the minimal port is taken: what the other saves, as a share of the minimal time, is below the threshold.

    The definition divides, ΔV = (`minimal` − `other`)/`minimal` < `threshold`; times are positive.
    """
    return minimal - other < threshold * minimal


@njit
def learned(estimate: float, target: float, alpha: float, beta: float) -> float:
    """Estimate after an answer: it moves by `alpha` of the difference if it becomes smaller, by `beta` if larger."""
    change = target - estimate
    return estimate + (alpha if change < 0 else beta) * change


@njit
def in_steps(time: float, step: float, largest: float, shift: float) -> float:
    """Round a time to a multiple of `step`, at most `largest`.

    With `shift` 0.5 it is the nearest one (the upper of two); with a random `shift` from 0 up to 1 on average the time
    itself.
    """
    return min(math.floor(time / step + shift) * step, largest)


def rate_words(rate: float) -> int:
    """Rate or threshold in units of 2**-RATE_BITS, rounded."""
    return math.floor(rate * (1 << RATE_BITS) + 0.5)


def step_and_largest(bits: int, fraction_bits: int | None = None) -> tuple[float, float]:
    """Step and largest value of estimates of so many bits, in their unit; all ones are no estimate but "no link".

    Parameters
    ----------
    bits : int
        Of an estimate.
    fraction_bits : int, optional
        Of them, behind the binary point (negative: a step is more than 1); by default `bits` − 12: up to about 4096.

    Examples
    --------
    >>> step_and_largest(12)
    (1.0, 4094.0)
    >>> step_and_largest(8)
    (16.0, 4064.0)
    """
    step = 2.0 ** -(bits - 12 if fraction_bits is None else fraction_bits)
    return step, ((1 << bits) - 2) * step
