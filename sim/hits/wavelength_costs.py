"""What an arrangement of lookup engines on a link costs: area, energy (docs/definitions/wavelengths.md)."""

from typing import NamedTuple

from hopforge.model.config import Config
from hopforge.sim.hits.analytic import LookupPowers, packet_rate
from hopforge.sim.hits.energy import LINE_BYTES

__all__ = ["TCAMS", "Engines", "area_mm2", "power_w"]

TCAMS = ("lane", "link", "switch")
"""What has a TCAM: every lane, every link, or the switch for all of its links."""


class Engines(NamedTuple):
    """Engines of a link.

    Attributes
    ----------
    lanes : int
        How many, each with a cache.
    entries : int
        Lines of each cache.
    tcams : str
        Of `TCAMS`.
    """

    lanes: int
    entries: int
    tcams: str


def _tcams(config: Config, engines: Engines) -> float:
    """Return how many TCAMs a link has to pay for."""
    return {"lane": float(engines.lanes), "link": 1.0, "switch": 1.0 / config.wavelengths.ports}[engines.tcams]


def area_mm2(config: Config, engines: Engines) -> float:
    """Return the area of a link's engines, caches and TCAMs in mm²; a TCAM outside the switch has none."""
    energy, tcam = config.energy, config.lookup.tcam
    rows = 0 if tcam.kind == "external" else tcam.rows
    cache = energy.engine_um2 + engines.entries * LINE_BYTES * energy.cache_um2_per_byte
    return (engines.lanes * cache + _tcams(config, engines) * rows * energy.tcam_um2_per_row) * 1e-6


def power_w(config: Config, engines: Engines, miss_ratio: float, rate_gbps: float) -> float:
    """Return the power of a link at a rate of back-to-back packets of `timing.slot_bytes` (eq. 4.5 for a link).

    The static power of a cache is in proportion to its lines.
    """
    timing = config.timing
    powers = LookupPowers(timing.cache_energy_nj, timing.cache_power_mw, timing.tcam_energy_nj, timing.tcam_power_mw)
    packets = packet_rate(load_gbps=rate_gbps, slot_bytes=timing.slot_bytes)
    dynamic = packets * (powers.cache_energy_nj + powers.tcam_energy_nj * miss_ratio) * 1e-9
    caches = engines.lanes * powers.cache_power_mw * engines.entries / config.lookup.cache.entries
    return dynamic + (caches + _tcams(config, engines) * powers.tcam_power_mw) * 1e-3
