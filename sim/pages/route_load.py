"""Load of channels, effective bandwidth and average efficiency of a table (Kawano's thesis, seed 002, section 4.4)."""

from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from hopforge.model.irregular.channels import ChannelList
from hopforge.model.kernel.compile import kernel

__all__ = ["Quality", "all_to_all_load", "hotspot_quality", "local_quality"]


class Quality(NamedTuple):
    """Means over random traffic patterns.

    Attributes
    ----------
    bandwidth : float
        Effective bandwidth: mean over the pairs of a pattern of 1 / the largest number of paths on a channel of the
        path.
    efficiency : float
        Average efficiency: mean of 1 / hops.
    """

    bandwidth: float
    efficiency: float


@kernel
def _all_to_all(next_channel, target, load):  # type: ignore[no-untyped-def]
    nodes = next_channel.shape[0]
    through = np.empty(nodes, np.int64)
    waits = np.empty(nodes, np.int32)
    queue = np.empty(nodes, np.int32)
    for d in range(nodes):
        through[:] = 1
        waits[:] = 0
        for u in range(nodes):
            if u != d:
                waits[target[next_channel[u, d]]] += 1
        count = 0
        for u in range(nodes):
            if waits[u] == 0 and u != d:
                queue[count] = u
                count += 1
        done = 0
        while done < count:
            u = queue[done]
            done += 1
            c = next_channel[u, d]
            load[c] += through[u]
            w = target[c]
            through[w] += through[u]
            waits[w] -= 1
            if waits[w] == 0 and w != d:
                queue[count] = w
                count += 1


def all_to_all_load(next_channel: NDArray[np.int32], channels: ChannelList) -> NDArray[np.int64]:
    """Count the pairs whose path takes a channel, int64[channel], for a checked table."""
    load = np.zeros(len(channels.source), np.int64)
    _all_to_all(next_channel, channels.target, load)
    return load


@kernel
def _pattern(destinations, next_channel, target, load):  # type: ignore[no-untyped-def]
    """Sum of 1/congestion and of 1/hops over the pairs with different ends, and their number; `load` is scratch."""
    load[:] = 0
    for s in range(len(destinations)):
        u = s
        while u != destinations[s]:
            c = next_channel[u, destinations[s]]
            load[c] += 1
            u = target[c]
    bandwidth, efficiency, pairs = 0.0, 0.0, 0
    for s in range(len(destinations)):
        u, worst, hops = s, 0, 0
        while u != destinations[s]:
            c = next_channel[u, destinations[s]]
            worst = max(worst, load[c])
            u = target[c]
            hops += 1
        if hops > 0:
            bandwidth += 1 / worst
            efficiency += 1 / hops
            pairs += 1
    return bandwidth, efficiency, pairs


@kernel
def _patterns(patterns, share, cumulative, next_channel, target, generator):  # type: ignore[no-untyped-def]
    """Draw destinations pattern by pattern: the hot switch with probability `share`, else by ``cumulative[s]``."""
    nodes = next_channel.shape[0]
    destinations = np.empty(nodes, np.int64)
    load = np.empty(len(target), np.int64)
    bandwidth, efficiency, counted = 0.0, 0.0, 0
    for _ in range(patterns):
        hot = int(generator.random() * nodes)
        for s in range(nodes):
            if share > 0 and generator.random() < share:
                destinations[s] = hot
            elif len(cumulative) == 0:
                destinations[s] = int(generator.random() * nodes)
            else:
                destinations[s] = np.searchsorted(cumulative[s], generator.random() * cumulative[s, -1], side="right")
        b, e, pairs = _pattern(destinations, next_channel, target, load)
        if pairs > 0:
            bandwidth += b / pairs
            efficiency += e / pairs
            counted += 1
    return bandwidth / max(counted, 1), efficiency / max(counted, 1)


def hotspot_quality(
    beta: float, patterns: int, next_channel: NDArray[np.int32], channels: ChannelList, generator: Generator
) -> Quality:
    """Bandwidth and efficiency under hotspot(β): in a pattern every switch has one destination.

    It is the pattern's hot switch with probability `beta`, else any switch. Pairs of a switch with itself don't count,
    nor do patterns without others.
    """
    none = np.empty((0, 0))
    return Quality(*_patterns(patterns, beta, none, next_channel, channels.target, generator))


def local_quality(
    gamma: float,
    place: NDArray[np.float64],
    patterns: int,
    next_channel: NDArray[np.int32],
    channels: ChannelList,
    generator: Generator,
) -> Quality:
    """Bandwidth and efficiency under local(γ): destinations with probability ∝ (Manhattan distance)^−γ.

    Parameters
    ----------
    place : ndarray, float64[router, 2]
        Floor plan.
    """
    x, y = place.T
    far = np.abs(np.subtract.outer(x, x)) + np.abs(np.subtract.outer(y, y))
    far[far == 0] = far[far > 0].min(initial=np.inf)  # two at one place are as near as any
    far[np.isinf(far)] = 1.0  # all are at one place
    np.fill_diagonal(far, np.inf)
    far /= far.min(axis=1, keepdims=True)  # the nearest counts 1, so that no row becomes all zeros
    cumulative = np.cumsum(far**-gamma, axis=1)
    return Quality(*_patterns(patterns, 0.0, cumulative, next_channel, channels.target, generator))
