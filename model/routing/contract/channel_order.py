"""An order of channels that all links of all ways follow."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["places_in_order"]


def places_in_order(source: NDArray[Any], target: NDArray[Any], nodes: int) -> NDArray[np.int64] | None:
    """Put nodes into an order that all edges follow: place of each, int64[node]; None: there is none.

    Takes away the nodes that no edge enters, again and again: what is left holds a cycle.
    """
    entering = np.bincount(target, minlength=nodes)
    first = np.concatenate([[0], np.cumsum(np.bincount(source, minlength=nodes))])
    leads_to = np.asarray(target)[np.argsort(source, kind="stable")]
    place, level = np.zeros(nodes, np.int64), 0
    free, left = np.flatnonzero(entering == 0), nodes
    while len(free):
        place[free], level, left = level, level + 1, left - len(free)
        counts = first[free + 1] - first[free]
        ends = np.cumsum(counts)
        edges = np.repeat(first[free] - ends + counts, counts) + np.arange(counts.sum())
        reached, times = np.unique(leads_to[edges], return_counts=True)
        entering[reached] -= times
        free = reached[entering[reached] == 0]
    return place if left == 0 else None
