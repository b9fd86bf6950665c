"""Areas, times and energies of SRAM arrays, as CACTI gives them.

Measured once with CACTI 7.0 (github.com/HewlettPackard/cacti at 1ffd8df, its ``cache.cfg`` with the settings below),
because a cell library has no memories: lines of 12 bytes, one read-write port, cells and periphery ``itrs-hp``, 360 K,
access mode normal, one bank, no ECC, cache level L2, bus of 96 bits. CACTI itself is neither part of hopforge nor
needed to run it.
"""

from dataclasses import dataclass

__all__ = ["CACHE_45NM", "CACHE_NODES_2048", "ENTRIES", "WAY_45NM", "SramFigures"]


@dataclass(frozen=True)
class SramFigures:
    """One array.

    Attributes
    ----------
    access_ns, cycle_ns
        Time from the address to the data; shortest time between accesses.
    area_mm2
        Height times width.
    read_energy_pj
        Dynamic energy of one read.
    """

    access_ns: float
    cycle_ns: float
    area_mm2: float
    read_energy_pj: float


ENTRIES = (256, 512, 1024, 2048, 4096, 8192, 16384)

CACHE_45NM = {
    256: SramFigures(0.3025, 0.2575, 0.02015, 9.295),
    512: SramFigures(0.3227, 0.2728, 0.03183, 10.636),
    1024: SramFigures(0.3746, 0.3033, 0.05507, 12.979),
    2048: SramFigures(0.3958, 0.3693, 0.12736, 19.309),
    4096: SramFigures(0.5128, 0.5905, 0.19345, 33.229),
    8192: SramFigures(0.6525, 0.7297, 0.45929, 54.870),
    16384: SramFigures(0.8361, 1.4835, 0.70946, 101.125),
}
"""4-way cache of so many entries, 45 nm: data and CACTI's own tags, comparators and way select."""

WAY_45NM = {
    256: SramFigures(0.1980, 0.1693, 0.00340, 1.887),
    512: SramFigures(0.2194, 0.1852, 0.00548, 2.190),
    1024: SramFigures(0.2257, 0.1998, 0.01171, 3.739),
    2048: SramFigures(0.2782, 0.2302, 0.02050, 4.608),
    4096: SramFigures(0.3053, 0.3033, 0.03950, 8.517),
    8192: SramFigures(0.3883, 0.3693, 0.07307, 12.265),
    16384: SramFigures(0.4525, 0.5905, 0.14074, 23.580),
}
"""One way (a RAM of entries/4 lines of 96 bits) of a 4-way cache of so many entries, 45 nm."""

CACHE_NODES_2048 = {
    32: SramFigures(0.2993, 0.2807, 0.06446, 10.687),
    45: CACHE_45NM[2048],
    65: SramFigures(0.6547, 0.5726, 0.26784, 32.138),
}
"""The 4-way cache of 2048 entries in three technologies (nm)."""
