"""The knee of a curve: the load at which a network saturates, between the loads that were simulated."""

import math
from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["HIGHEST_LOAD", "Knee", "knee_of", "knee_words", "next_load"]

#: offered loads are flits per host and cycle
HIGHEST_LOAD = 1.0
#: below it a network is said to carry nothing
_LOWEST_LOAD = 1e-3


class Knee(NamedTuple):
    """Where a curve saturates.

    Attributes
    ----------
    carried : float or None
        Highest load below `saturated` that the network carried; None: it did not carry the lowest one.
    saturated : float or None
        Lowest load at which it saturated; None: it never did.
    """

    carried: float | None
    saturated: float | None

    @property
    def gap(self) -> float:
        """How far the two loads are from each other, as a share of the higher one; infinite without one of them."""
        if self.carried is None or self.saturated is None:
            return float("inf")
        return (self.saturated - self.carried) / self.saturated


def knee_of(loads: Sequence[float], saturated: Sequence[bool]) -> Knee:
    """Find the knee of a curve.

    Parameters
    ----------
    loads : sequence of float
        In any order.
    saturated : sequence of bool
        Whether the network saturated at each.

    Examples
    --------
    >>> knee_of([0.1, 0.2, 0.3], [False, False, True])
    Knee(carried=0.2, saturated=0.3)
    """
    full = min((load for load, beyond in zip(loads, saturated, strict=True) if beyond), default=None)
    below = [
        load for load, beyond in zip(loads, saturated, strict=True) if not beyond and (full is None or load < full)
    ]
    return Knee(max(below, default=None), full)


def next_load(knee: Knee, within: float, highest: float = HIGHEST_LOAD) -> float | None:
    """Return the load that tells most about a knee; None where it is known.

    Known: its two loads differ by at most the share `within`, or it lies beyond the `highest` load that the source
    offers, or below all that is of use.

    Examples
    --------
    >>> next_load(Knee(0.9, None), 0.02), next_load(Knee(0.9, None), 0.02, highest=0.99009), next_load(Knee(0.99, None),
    ... 0.02, highest=0.99009)
    (1.0, 0.99, None)
    """
    if knee.saturated is None:
        assert knee.carried is not None, "a curve has a load"
        most = _of_four_digits(highest)
        return None if knee.carried >= most else min(float(f"{1.5 * knee.carried:.4g}"), most)
    if knee.carried is None:
        return None if knee.saturated <= _LOWEST_LOAD else float(f"{max(knee.saturated / 2, _LOWEST_LOAD):.4g}")
    found = float(f"{(knee.carried + knee.saturated) / 2:.5g}")  # for people: it stands in tables
    return None if knee.gap <= within or not knee.carried < found < knee.saturated else found


def _of_four_digits(load: float) -> float:
    """Return the largest number of four digits that is not above `load`, with all of a load that has no more."""
    near = float(f"{load:.4g}")
    return near if near <= load else float(f"{near - 10.0 ** (math.floor(math.log10(load)) - 3):.4g}")


def knee_words(knee: Knee, highest: float = HIGHEST_LOAD) -> tuple[str, str]:
    """Say where a knee lies, and how well that is known; `highest`: the most that the source offers."""
    if knee.saturated is None:
        if knee.carried is not None and knee.carried >= _of_four_digits(highest):
            more = "" if highest >= HIGHEST_LOAD else ", the most that the source offers"
            return "never", f"it carries load {knee.carried:.4g}{more}"
        return f"above {knee.carried:.4g}", "the loads end before the knee (simulation.knee_percent adds more)"
    if knee.carried is None:
        return f"below {knee.saturated:.4g}", "the loads begin beyond the knee (simulation.knee_percent adds more)"
    within = f"known within {100 * knee.gap:.1f} % (simulation.knee_percent)"
    return f"{knee.carried:.4g} to {knee.saturated:.4g}", within
