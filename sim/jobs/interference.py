"""How much jobs that run at once on a torus disturb each other, by counts of packets on links.

Definition: docs/definitions/jobs.md. Every job sends one packet for each ordered pair of its ranks, in dimension order;
half the ring away the sign of the offset decides. A link is (switch entered, input port).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Disturbance", "interference", "link_loads"]

Counts = NDArray[np.int64]

_PAIRS_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class Disturbance:
    """What one job meets.

    Attributes
    ----------
    mean_hops : float
        Links of a packet; 0 for a job of one node.
    links : int
        Links that the job uses.
    shared : int
        Of these also used by other jobs.
    own_max : int
        Most packets of the job on a link.
    total_max : int
        Most packets of all jobs on one of its links.
    foreign : int
        Switches that its packets pass and that are not among its nodes.
    """

    mean_hops: float
    links: int
    shared: int
    own_max: int
    total_max: int
    foreign: int

    @property
    def slowdown(self) -> float:
        """Bound at the bottleneck, no prediction: `total_max` / `own_max`; 1 for a job of one node."""
        return self.total_max / self.own_max if self.own_max else 1.0


def interference(dims: Sequence[int], jobs: Sequence[NDArray[np.integer]]) -> list[Disturbance]:
    """Return what every job meets.

    Parameters
    ----------
    dims : sequence of int
        Of the torus.
    jobs : sequence of ndarray
        Of each job int[rank]: its nodes.

    Examples
    --------
    >>> pair, other = interference((8,), [np.array([0, 2]), np.array([1, 3])])
    >>> pair.links, pair.shared, pair.foreign, pair.slowdown
    (4, 2, 1, 2.0)
    """
    loads = [link_loads(dims, nodes) for nodes in jobs]
    total = np.zeros((math.prod(dims), 2 * len(dims)), np.int64)
    for load in loads:
        total += load
    return [_of_job(nodes, own, total) for nodes, own in zip(jobs, loads, strict=True)]


def _of_job(nodes: NDArray[np.integer], own: Counts, total: Counts) -> Disturbance:
    used = own > 0
    passed: NDArray[np.bool_] = np.any(used, axis=1)
    passed[nodes] = False
    pairs = len(nodes) * (len(nodes) - 1)
    return Disturbance(
        mean_hops=float(own.sum()) / pairs if pairs else 0.0,
        links=int(used.sum()),
        shared=int((total > own)[used].sum()),
        own_max=int(own.max(initial=0)),
        total_max=int(total[used].max(initial=0)),
        foreign=int(passed.sum()),
    )


def link_loads(dims: Sequence[int], nodes: NDArray[np.integer]) -> Counts:
    """Return packets of a job on every link, int64[switch entered, port]; port 2d travels in + of dimension d."""
    found = np.zeros((math.prod(dims), 2 * len(dims)), np.int64)
    digits = np.stack(np.unravel_index(np.asarray(nodes), tuple(dims), order="F"))  # dimension 0 is the fastest
    rows = max(1, _PAIRS_AT_ONCE // max(len(nodes), 1))
    for first in range(0, len(nodes), rows):
        source = np.repeat(digits[:, first : first + rows], len(nodes), axis=1)
        goal = np.tile(digits, source.shape[1] // len(nodes))
        _count_ways(dims, source, goal, found)
    return found


def _count_ways(dims: Sequence[int], at: Counts, goal: Counts, loads: Counts) -> None:
    """Move packets in dimension order and count every link; digits are int64[dimension, packet]."""
    stride = 1
    for dim, length in enumerate(dims):
        offset = goal[dim] - at[dim]
        ahead = offset % length
        up = (2 * ahead < length) | ((2 * ahead == length) & (offset > 0))
        left = np.where(up, ahead, length - ahead) % length
        rest = np.ravel_multi_index(tuple(at), tuple(dims), order="F") - stride * at[dim]
        digit, step, port = at[dim].copy(), np.where(up, 1, -1), 2 * dim + np.where(up, 0, 1)
        for _ in range(length // 2):
            moving = np.flatnonzero(left)
            if not len(moving):
                break
            digit[moving] = (digit[moving] + step[moving]) % length
            left[moving] -= 1
            entered = rest[moving] + stride * digit[moving]
            links = entered * loads.shape[1] + port[moving]
            loads += np.bincount(links, minlength=loads.size).reshape(loads.shape)
        at[dim] = goal[dim]
        stride *= length
