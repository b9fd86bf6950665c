"""The closed formulas of the routing-cache paper: hit ratios, latencies, energy, forwarding rates, expected evictions.

Source: seed 004, chapters 4 and 5, as corrected in the project's specification of the lookup path. Nothing here
simulates; everything is an equation, or (for LRU) the fixed point of Che's approximation, so that simulations have
something independent to be compared with.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "CONSISTENT_LATENCIES", "LATENCY_SETS", "LOOKUP_POWERS", "PRINTED_LATENCIES", "CapacityMisses", "LatencySet",
    "LookupPowers", "capacity_miss_rate", "conventional_max_latency_ns", "cyclic_miss_rate", "expected_evictions",
    "forwarding_rate", "line_rate_gbps", "lookup_energy", "lru_hit_ratio", "max_zero_load_latency_ns",
    "most_targets_within", "packet_rate", "port_hit_ratio", "port_lru_hit_ratio", "port_reach",
    "two_level_lookup_ns", "zero_load_latency",
]

ReplacementModel = Literal["equation", "lru"]
OverlapModel = Literal["serial", "pipelined"]


def _at_least(name: str, value: float, limit: float) -> None:
    if not value >= limit:
        raise ValueError(f"{name} must be at least {limit}, not {value}")


def _ratio(name: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise ValueError(f"{name} must be within 0 to 1, not {value}")


# --- hit ratios


def port_reach(*, radix: int, dimensions: int, dimension: int) -> float:
    """Destinations that an input port of a K-ary N-torus can see under dimension-order routing (seed 004, eq. 4.2).

    Parameters
    ----------
    radix, dimensions
        K and N. For even K the two directions of a ring reach K/2 and K/2 − 1 nodes; this function, like the equation,
        gives ⌊K/2⌋.
    dimension
        0 for the port from the local compute node (K^N − 1 destinations), i ≥ 1 for a port of the i-th dimension
        (K^(N−i)·⌊K/2⌋ destinations).
    """
    _at_least("radix", radix, 2)
    _at_least("dimensions", dimensions, 1)
    if not 0 <= dimension <= dimensions:
        raise ValueError(f"dimension must be within 0 to dimensions={dimensions}, not {dimension}")
    if dimension == 0:
        return float(radix**dimensions - 1)
    return float(radix ** (dimensions - dimension) * (radix // 2))


def port_hit_ratio(*, radix: int, dimensions: int, entries: int, dimension: int) -> float:
    """Hit ratio P_i of the input ports of dimension i: entries over destinations, at most 1 (seed 004, eq. 4.1, 4.2).

    Assumes uniform traffic, a warm cache without conflicts, and that every destination of a port is equally likely,
    which is wrong for i ≥ 1: see `port_lru_hit_ratio`.

    >>> round(port_hit_ratio(radix=21, dimensions=3, entries=2048, dimension=1), 3)
    0.464
    """
    _at_least("entries", entries, 0)
    return min(entries / port_reach(radix=radix, dimensions=dimensions, dimension=dimension), 1.0)


def lru_hit_ratio(*, weights: ArrayLike, counts: ArrayLike, entries: int) -> float:
    """Hit ratio of a fully associative LRU cache under independent references (Che's approximation).

    Source: Che, Tung and Wang, "Hierarchical web caching systems: modeling, design and experimental results", 2002.
    The characteristic time T is the number of references in which `entries` distinct items appear on average:
    Σ n_g (1 − exp(−p_g T)) = entries; an item of probability p hits with 1 − exp(−p T). The error vanishes as the
    population grows (below 10⁻³ from a hundred items on).

    Parameters
    ----------
    weights : float[groups]
        How often one item of each group is asked for, relative to the others (> 0).
    counts : int[groups]
        Items in each group (≥ 1).
    entries
        Lines of the cache.
    """
    _at_least("entries", entries, 0)
    w = np.atleast_1d(np.asarray(weights, dtype=np.float64))
    n = np.atleast_1d(np.asarray(counts, dtype=np.float64))
    if w.shape != n.shape or w.ndim != 1 or w.size == 0:
        raise ValueError(f"weights and counts must be two lists of one length, not of shapes {w.shape} and {n.shape}")
    if not (w > 0).all():
        raise ValueError(f"weights must be positive, not {float(w.min())}")
    if not (n >= 1).all():
        raise ValueError(f"counts must be at least 1, not {float(n.min())}")
    if entries == 0:
        return 0.0
    if entries >= n.sum():
        return 1.0
    p = w / (w * n).sum()

    def surplus(time: float) -> float:
        return float((n * -np.expm1(-p * time)).sum() - entries)

    upper = 1.0 / float(p.min())
    while surplus(upper) < 0:
        upper *= 2
    from scipy.optimize import brentq  # noqa: PLC0415  most commands have no use for it, and it takes half a second

    time = float(brentq(surplus, 0.0, upper, xtol=1e-9, rtol=1e-13))
    return float((n * p * -np.expm1(-p * time)).sum())


def _ring_weights(radix: int, position: int) -> NDArray[np.float64]:
    """Return from how many origins the port at `position` that is entered in the + direction sees each offset.

    A packet that came s ≥ 1 hops and has o left took s + o < K/2, or K/2 if that is the + way of a tie: from the lower
    half of the coordinates to the upper one.
    """
    half = radix // 2
    offset = np.arange(half, dtype=np.float64)
    if radix % 2:
        return half - offset
    return half - 1 - offset + ((position - half + offset) % radix < half)


def port_lru_hit_ratio(
    *, radix: int, dimensions: int, entries: int, dimension: int, position: int | None = None,
) -> float:
    """LRU hit ratio of a port of dimension i with the true destination distribution of uniform traffic.

    Behind a port of dimension i ≥ 1 the remaining offset o in that dimension is seen from about ⌊K/2⌋ − o origins, so
    near destinations are asked for more often than far ones; the dimensions above are uniform. For even K a tie (offset
    K/2) follows the sign of the difference of coordinates, as in the keys of the switches, so ports differ by their
    coordinate `position` (default K/2, where all ties pass). Those of the − direction mirror it: K − 1 − `position`.
    1.0 for a port without lookups.

    >>> round(1 - port_lru_hit_ratio(radix=21, dimensions=3, entries=2048, dimension=1), 3)
    0.438
    """
    reach = port_reach(radix=radix, dimensions=dimensions, dimension=dimension)
    if dimension == 0:
        return lru_hit_ratio(weights=[1.0], counts=[reach], entries=entries)
    weights = _ring_weights(radix, radix // 2 if position is None else position)
    weights = weights[weights > 0]
    if not len(weights):
        return 1.0
    return lru_hit_ratio(
        weights=weights, counts=np.full(len(weights), radix ** (dimensions - dimension)), entries=entries
    )


@dataclass(frozen=True)
class CapacityMisses:
    """Capacity-miss ratios of a torus under uniform traffic, each within 0 to 1."""

    mean: float
    """Over all lookups of all ports."""
    injection: float
    """Of the ports from the compute nodes."""
    per_dimension: tuple[float, ...]
    """Of the ports of dimension 1 … N, weighted by their traffic."""


def capacity_miss_rate(
    *, radix: int, dimensions: int, entries: int, model: ReplacementModel = "equation",
) -> CapacityMisses:
    """Capacity misses on a K-ary N-torus with uniform traffic and dimension-order routing (seed 004, fig. 5.1).

    Every packet goes to another node; it makes one lookup at its source's switch and one after every hop. Ties of an
    even ring follow the sign of the difference of coordinates, as in the keys of the switches.

    Parameters
    ----------
    radix, dimensions, entries
        K, N and the lines of the cache of every input port.
    model
        ``"equation"``: entries over destinations (eq. 4.1); ``"lru"``: LRU with the true distribution
        (`port_lru_hit_ratio`).

    >>> round(100 * capacity_miss_rate(radix=10, dimensions=4, entries=2048).mean, 1)
    19.5
    """
    _at_least("radix", radix, 2)
    _at_least("dimensions", dimensions, 1)
    _at_least("entries", entries, 0)
    if model not in ("equation", "lru"):
        raise ValueError(f"model must be 'equation' or 'lru', not {model!r}")
    injection = 1.0 - port_hit_ratio(radix=radix, dimensions=dimensions, entries=entries, dimension=0)
    nodes = radix**dimensions
    rings = [_ring_weights(radix, position) for position in range(radix if radix % 2 == 0 else 1)]
    # − mirrors +; of the K^N destinations that the weights count the source itself gets no packet
    rates = np.array([2 * weights.sum() for weights in rings]) / (radix * len(rings)) * nodes / (nodes - 1)
    per_dimension = []
    for dimension in range(1, dimensions + 1):
        misses = []
        for position, weights in enumerate(rings):
            if model == "lru":
                hit = port_lru_hit_ratio(
                    radix=radix, dimensions=dimensions, entries=entries, dimension=dimension, position=position)
            else:
                reach = radix ** (dimensions - dimension) * np.count_nonzero(weights)
                hit = min(1.0, entries / reach) if reach else 1.0
            misses.append(1.0 - hit)
        per_dimension.append(float(np.average(misses, weights=rates)))
    hops = float(rates.sum())
    missed = injection + hops * sum(per_dimension)
    lookups = 1.0 + hops * dimensions
    return CapacityMisses(mean=missed / lookups, injection=injection, per_dimension=tuple(per_dimension))


# --- latencies


@dataclass(frozen=True)
class LatencySet:
    """Latencies of a switch and its cables, in ns."""

    name: str
    switch_hit_ns: float
    """S_base: a switch whose cache hits."""
    miss_penalty_ns: float
    """S_pnl: what a miss adds."""
    conventional_ns: float
    """A switch that asks the TCAM for every packet."""
    cable_ns: float
    """C: one link, switch to switch or switch to compute node."""


CONSISTENT_LATENCIES = LatencySet(
    "consistent 51/25/75", switch_hit_ns=51.0, miss_penalty_ns=25.0, conventional_ns=75.0, cable_ns=50.0)
"""The only set that gives the "19 % → 13 %" and "9 % → 19 %" of the seed's text: 25 ns TCAM, 50 ns for the rest."""

PRINTED_LATENCIES = LatencySet(
    "printed 51/10/60", switch_hit_ns=51.0, miss_penalty_ns=10.0, conventional_ns=60.0, cable_ns=50.0)
"""The set that the seed prints (section 4.3.3.1); no cable can make its reduction exceed (60 − 51)/60 = 15 %."""

LATENCY_SETS = {"consistent": CONSISTENT_LATENCIES, "printed": PRINTED_LATENCIES}


def zero_load_latency(*, hops: float, miss_ratio: float, latencies: LatencySet = CONSISTENT_LATENCIES) -> float:
    """L_{i,j}: time in ns over `hops` switches whose input ports miss with `miss_ratio` (seed 004, eq. 4.3).

    L = hops · (S_base + S_pnl · miss_ratio + C). The outgoing cables are included; add one C for the cable into the
    first switch.

    >>> zero_load_latency(hops=2, miss_ratio=0.5)
    227.0
    """
    _at_least("hops", hops, 0)
    _ratio("miss_ratio", miss_ratio)
    return hops * (latencies.switch_hit_ns + latencies.miss_penalty_ns * miss_ratio + latencies.cable_ns)


def max_zero_load_latency_ns(
    *, radix: int, dimensions: int, entries: int, latencies: LatencySet = CONSISTENT_LATENCIES,
    model: ReplacementModel = "equation",
) -> float:
    """L_max in ns: to the node ⌊K/2⌋ hops away in every dimension of a K-ary N-torus, with caches (seed 004, eq. 4.4).

    `model` chooses the hit ratios: ``"equation"`` (`port_hit_ratio`) or ``"lru"`` (`port_lru_hit_ratio`).
    """
    if model not in ("equation", "lru"):
        raise ValueError(f"model must be 'equation' or 'lru', not {model!r}")
    hit_ratio = port_hit_ratio if model == "equation" else port_lru_hit_ratio
    total = latencies.cable_ns
    for dimension in range(dimensions + 1):
        hit = hit_ratio(radix=radix, dimensions=dimensions, entries=entries, dimension=dimension)
        total += zero_load_latency(hops=1 if dimension == 0 else radix // 2, miss_ratio=1.0 - hit, latencies=latencies)
    return total


def conventional_max_latency_ns(*, radix: int, dimensions: int, latencies: LatencySet = CONSISTENT_LATENCIES) -> float:
    """L_max in ns of switches without a cache: the same path with `conventional_ns` a switch."""
    _at_least("radix", radix, 2)
    _at_least("dimensions", dimensions, 1)
    switches = 1 + dimensions * (radix // 2)
    return switches * (latencies.conventional_ns + latencies.cable_ns) + latencies.cable_ns


# --- energy and throughput


@dataclass(frozen=True)
class LookupPowers:
    """Energies and powers of the lookup path of one switch (seed 004, section 4.4.1: CACTI 6.5 and published CAMs)."""

    cache_energy_nj: float = 0.039
    cache_power_mw: float = 13.0
    tcam_energy_nj: float = 42.0
    tcam_power_mw: float = 36.0


LOOKUP_POWERS = LookupPowers()


def packet_rate(*, load_gbps: float, slot_bytes: int = 84) -> float:
    """Packets per second of back-to-back packets of `slot_bytes` (preamble and gap included) at `load_gbps`."""
    _at_least("load_gbps", load_gbps, 0)
    _at_least("slot_bytes", slot_bytes, 1)
    return load_gbps * 1e9 / (slot_bytes * 8)


def lookup_energy(
    *, packets_per_second: float, miss_ratio: float, ports: int = 7, powers: LookupPowers = LOOKUP_POWERS,
    cached: bool = True,
) -> float:
    """Power in W that a switch spends on lookups (seed 004, eq. 4.5).

    S = n·(E_cache + E_cam·r_miss) + (d·P_cache + P_cam).

    Parameters
    ----------
    packets_per_second
        n, over all ports together.
    miss_ratio
        r_miss, 0 to 1; ignored (taken as 1) when `cached` is false.
    ports
        d, input ports with a cache each.
    powers
        Energies per access and static powers.
    cached
        False: a conventional switch, no caches, every packet asks the TCAM.

    >>> round(lookup_energy(packets_per_second=packet_rate(load_gbps=1400), miss_ratio=0.01), 3)
    1.083
    """
    _at_least("packets_per_second", packets_per_second, 0)
    _ratio("miss_ratio", miss_ratio)
    _at_least("ports", ports, 1)
    if not cached:
        return packets_per_second * powers.tcam_energy_nj * 1e-9 + powers.tcam_power_mw * 1e-3
    dynamic_w = packets_per_second * (powers.cache_energy_nj + powers.tcam_energy_nj * miss_ratio) * 1e-9
    return dynamic_w + (ports * powers.cache_power_mw + powers.tcam_power_mw) * 1e-3


def forwarding_rate(*, miss_ratio: float, cache_ns: float = 1.0, tcam_ns: float = 25.0, cached: bool = True) -> float:
    """Packets per second that one port can look up (seed 004, eq. 4.6 and 4.7).

    min(1/L_cache, 1/(L_cam·r_miss)); without a cache 1/L_cam.

    >>> forwarding_rate(miss_ratio=0.1) / 1e6
    400.0
    """
    _ratio("miss_ratio", miss_ratio)
    if not cache_ns > 0:
        raise ValueError(f"cache_ns must be greater than 0, not {cache_ns}")
    if not tcam_ns > 0:
        raise ValueError(f"tcam_ns must be greater than 0, not {tcam_ns}")
    if not cached:
        return 1e9 / tcam_ns
    return 1e9 / max(cache_ns, tcam_ns * miss_ratio)


def line_rate_gbps(*, lookup_ns: float, slot_bytes: int = 84) -> float:
    """Line rate in Gbps that one lookup every `lookup_ns` sustains with packets of `slot_bytes`.

    The default slot is the shortest Ethernet frame (64 bytes) with preamble and gap (20 bytes).

    >>> line_rate_gbps(lookup_ns=4.0)
    168.0
    """
    if not lookup_ns > 0:
        raise ValueError(f"lookup_ns must be greater than 0, not {lookup_ns}")
    _at_least("slot_bytes", slot_bytes, 1)
    return slot_bytes * 8 / lookup_ns


def two_level_lookup_ns(
    *, nodes: int, overlap: OverlapModel, first_entries: int = 512, first_ns: float = 0.4, second_entries: int = 8192,
    second_ns: float = 4.0, tcam_ns: float = 25.0,
) -> float:
    """Mean time per lookup, ns, of the two-level cache "RC(Real)" under uniform traffic (seed 004, fig. 5.2).

    The miss ratio of a level is 1 − entries/nodes (at least 0), `nodes` being the destinations. ``"serial"``: a lookup
    occupies the path until it is answered, the times add up (lower bound of the rate); ``"pipelined"``: levels work at
    the same time, the busiest one limits (upper bound).
    """
    _at_least("nodes", nodes, 1)
    _at_least("first_entries", first_entries, 0)
    _at_least("second_entries", second_entries, 0)
    if overlap not in ("serial", "pipelined"):
        raise ValueError(f"overlap must be 'serial' or 'pipelined', not {overlap!r}")
    first_miss = max(0.0, 1.0 - first_entries / nodes)
    second_miss = max(0.0, 1.0 - second_entries / nodes)
    parts = (first_ns, second_ns * first_miss, tcam_ns * second_miss)
    return sum(parts) if overlap == "serial" else max(parts)


# --- conflicts


def _set_occupancy(targets: int, entries: int, ways: int) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
    _at_least("targets", targets, 1)
    _at_least("ways", ways, 1)
    _at_least("entries", entries, 1)
    if entries % ways:
        raise ValueError(f"ways must divide entries={entries}, not {ways}")
    sets = entries // ways
    occupancy = np.arange(targets + 1, dtype=np.float64)
    from scipy.stats import binom  # type: ignore[attr-defined]  # noqa: PLC0415  as above; made at run time

    probability: NDArray[np.float64] = binom.pmf(occupancy, targets, 1.0 / sets)
    return occupancy, probability, sets


def expected_evictions(*, targets: int, entries: int, ways: int) -> float:
    """Give the expected evictions per inserted target, 0 to 1, of distinct targets hashed uniformly (exact binomial).

    Each target is inserted once into an empty cache of `entries` lines; a set that gets x targets evicts max(x − ways,
    0). The same number is the steady miss ratio of LRU when the targets are asked for at random with equal probability.

    >>> round(100 * expected_evictions(targets=512, entries=2048, ways=4), 3)
    0.429
    """
    occupancy, probability, sets = _set_occupancy(targets, entries, ways)
    return float((np.maximum(occupancy - ways, 0.0) * probability).sum() * sets / targets)


def cyclic_miss_rate(*, targets: int, entries: int, ways: int) -> float:
    """Steady miss ratio, 0 to 1, of LRU when the targets are asked for in a fixed cyclic order (exact binomial).

    LRU with a cycle longer than the set misses always, so every target of a set with more than `ways` targets misses.

    >>> round(100 * cyclic_miss_rate(targets=2048, entries=2048, ways=4), 1)
    56.6
    """
    occupancy, probability, sets = _set_occupancy(targets, entries, ways)
    return float((np.where(occupancy > ways, occupancy, 0.0) * probability).sum() * sets / targets)


def most_targets_within(*, entries: int, ways: int, allowed: float) -> int:
    """Most distinct targets for which `expected_evictions` is at most `allowed` (0 to 1), up to 16·entries.

    >>> most_targets_within(entries=2048, ways=4, allowed=0.001)
    337
    """
    if not (math.isfinite(allowed) and allowed >= 0):
        raise ValueError(f"allowed must be at least 0, not {allowed}")
    low, high = 1, 16 * entries  # one target never evicts, and evictions per target grow with the targets
    while low < high:
        middle = (low + high + 1) // 2
        if expected_evictions(targets=middle, entries=entries, ways=ways) <= allowed:
            low = middle
        else:
            high = middle - 1
    return low
