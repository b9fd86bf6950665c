"""Links of several wavelengths, one lookup engine for the link or one for each: what `hopforge wavelengths` runs.

Definition: docs/definitions/wavelengths.md.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hopforge.model.config import Config, ConfigError
from hopforge.model.config.uses import key_words
from hopforge.model.lookup.lane_caches import HASH_BITS, LaneCounts, LaneShape, LinkPackets, hash_packets, run_links
from hopforge.model.lookup.lane_rates import lane_rate
from hopforge.model.numbers.crc_catalogue import crc_spec
from hopforge.model.output.results import run_metadata, staged, write_metadata, write_tables
from hopforge.sim.hits.analytic import packet_rate
from hopforge.sim.hits.link_packets import LinkStream, network_links, read_link
from hopforge.sim.hits.prepared import HitsSetup, prepare_hits
from hopforge.sim.hits.wavelength_costs import TCAMS, Engines, area_mm2, power_w
from hopforge.sim.hits.wavelength_pictures import draw_rates

__all__ = ["Wavelengths", "WavelengthsSetup", "prepare_wavelengths"]


@dataclass(frozen=True, eq=False)
class WavelengthsSetup:
    """Links at their start.

    Attributes
    ----------
    name : str
        Of the traffic.
    link : LinkStream, optional
        Packets of a file.
    network : HitsSetup, optional
        Else the network that the packets come from.
    """

    name: str
    link: LinkStream | None = None
    network: HitsSetup | None = None


def prepare_wavelengths(config: Config) -> WavelengthsSetup:
    """Check the section, and read or build what the links carry.

    Raises
    ------
    UserError
        A user's mistake.
    """
    _check(config)
    file = config.wavelengths.packets
    if file is not None:
        return WavelengthsSetup(file.stem, link=read_link(file, config.address.width_bits, config.timing.slot_bytes))
    if config.workload is None:
        raise ConfigError("workload: missing; `hopforge wavelengths` needs the section, or wavelengths.packets")
    network = prepare_hits(config)
    if network.caches.lacks_rows:
        rows = config.lookup.tcam.rows
        raise ConfigError(f"lookup.tcam.rows: must hold all routes for `hopforge wavelengths`; {rows} do not")
    return WavelengthsSetup(network.workload.name, network=network)


def _check(config: Config) -> None:
    cache, section = config.lookup.cache, config.wavelengths
    refused = {
        "cache.enabled: must be true": None if cache.enabled else "false",
        "cache.skewed: must be false": "true" if cache.skewed else None,
        "cache.second_level: must be null": None if cache.second_level is None else "a section",
        "ports_per_engine: must be 1": None if config.lookup.ports_per_engine == 1 else config.lookup.ports_per_engine,
    }
    for need, value in refused.items():
        if value is not None:
            raise ConfigError(f"lookup.{need} for `hopforge wavelengths`, not {value}")
    for lanes in section.lanes:
        if "split" in section.share and cache.entries % (lanes * cache.ways):
            raise ConfigError(
                f"wavelengths.lanes: must split lookup.cache.entries={cache.entries} into sets of {cache.ways} ways, "
                f"not {lanes} (or leave out share split)"
            )
    width = crc_spec(cache.crc).width
    most = (max(section.lanes) - 1).bit_length()
    for spread in section.spread:
        bits = most + (HASH_BITS if spread in ("hash", "flow") else 0)
        if spread not in ("rr", "least") and most and width < bits:
            raise ConfigError(
                f"lookup.cache.crc: must have at least {bits} bits for wavelengths.spread={spread} over "
                f"{max(section.lanes)} lanes, not {width}"
            )


@dataclass
class Wavelengths:
    """A comparison of arrangements: prepared, then run, then shown and written.

    Attributes
    ----------
    arrangements : DataFrame
        A row for each number of lanes, spread, share and place of the TCAMs.
    cheapest : DataFrame
        For each rate the arrangements of least area and of least power that keep up.
    """

    config: Config
    setup: WavelengthsSetup
    arrangements: pd.DataFrame = field(default_factory=pd.DataFrame)
    cheapest: pd.DataFrame = field(default_factory=pd.DataFrame)
    links: int = 0

    unit = "arrangements"

    def run(self, progress: Callable[[int, int], None] = lambda done, total: None) -> None:
        """Send the packets of all links through every arrangement.

        Raises
        ------
        UserError
            The packets do not fit in memory, or there are none.
        """
        packets = self._packets()
        shapes = list(_shapes(self.config))
        rows: list[dict[str, Any]] = []
        for done, (share, shape) in enumerate(shapes, start=1):
            counts = run_links(packets, shape)
            rows += self._rows(share, shape, counts)
            progress(done, len(shapes))
        self.arrangements = pd.DataFrame(rows)
        self.cheapest = pd.DataFrame(list(self._cheapest()))

    def _packets(self) -> LinkPackets:
        config, stream = self.config, self.setup.link
        if stream is None:
            network = self.setup.network
            assert network is not None
            stream = network_links(network.caches, network.workload, config.timing.slot_bytes)
        used = np.diff(stream.starts) > 0
        if not used.any():
            raise ConfigError("workload: sends no packet over the network")
        starts = np.concatenate([stream.starts[:-1][used], stream.starts[-1:]])
        self.links = int(used.sum())
        return hash_packets(
            starts, stream.keys, stream.bytes, stream.sources, config.lookup.cache.crc, config.address.width_bits
        )

    def _rows(self, share: str, shape: LaneShape, counts: LaneCounts) -> Iterator[dict[str, Any]]:
        config, one = self.config, shape.lanes == 1
        lookups, misses = int(counts.packets.sum()), int(counts.misses.sum())
        for tcams in TCAMS:
            if one and tcams == "lane":  # the only lane is the link
                continue
            rate = float(_rates(counts, config, tcams).min())
            engines = Engines(shape.lanes, shape.entries, tcams)
            energy = config.timing.cache_energy_nj + config.timing.tcam_energy_nj * misses / lookups
            yield {
                "lanes": shape.lanes, "spread": "none" if one else shape.spread, "share": share, "tcams": tcams,
                "entries": shape.entries, "lookups": lookups, "misses": misses, "hit_rate": 1 - misses / lookups,
                "rate_mpps": rate * 1e-6, "rate_gbps": rate * config.timing.slot_bytes * 8e-9,
                "balance": float(_balance(counts.bytes).min()), "overtaking": int(counts.overtaking.sum()),
                "area_mm2": area_mm2(config, engines), "energy_nj_per_lookup": energy,
            }  # fmt: skip

    def _cheapest(self) -> Iterator[dict[str, Any]]:
        config, table = self.config, self.arrangements
        ports = config.wavelengths.ports
        for rate in config.wavelengths.rates_gbps:
            need = packet_rate(load_gbps=rate, slot_bytes=config.timing.slot_bytes) * 1e-6
            enough = table[table["rate_mpps"] >= need].copy()
            enough["power_w"] = [
                power_w(config, Engines(*row[:3]), row[3], rate)
                for row in zip(enough["lanes"], enough["entries"], enough["tcams"], 1 - enough["hit_rate"], strict=True)
            ]
            for least, other in (("area_mm2", "power_w"), ("power_w", "area_mm2")):
                row: dict[str, Any] = {
                    "link_gbps": rate, "ports": ports, "least": least.split("_", maxsplit=1)[0], "needed_mpps": need,
                    "arrangements": len(table), "keep_up": len(enough),
                }  # fmt: skip
                names = ("lanes", "spread", "share", "tcams", "hit_rate", "rate_mpps", "balance", "area_mm2", "power_w")
                best: dict[str, Any] = dict.fromkeys(names)
                if len(enough):
                    chosen = enough.sort_values([least, other, "lanes"], kind="stable").iloc[0]
                    best = {name: chosen[name] for name in names}
                    best["switch_area_mm2"] = ports * chosen["area_mm2"]
                    best["switch_power_w"] = ports * chosen["power_w"]
                yield row | best

    def values(self) -> dict[str, Any]:
        """Return figures of the links."""
        return {"traffic": self.setup.name, "links": self.links, "lookups": int(self.arrangements["lookups"].iloc[0])}

    def rows(self) -> list[tuple[str, str]]:
        """Say what the links carry and what is compared."""
        cache, timing, found = self.config.lookup.cache, self.config.timing, self.values()
        file = self.setup.link is not None
        keys = "destination" if file else key_words(self.config, replayed=True)
        return [
            ("traffic", f"{found['traffic']}: {found['lookups']:,} packets on {found['links']:,} links"),
            ("keys", keys),
            ("cache", f"{cache.entries} lines, {cache.ways} ways, {cache.policy}; {timing.cache_ns:g} ns, TCAM "
                      f"{timing.tcam_ns:g} ns"),
            ("rates", f"of the slowest link, in packets of {timing.slot_bytes} bytes; a TCAM a lane, link or switch"),
            ("late", "packets that a later one of the same source and destination overtakes"),
        ]  # fmt: skip

    def lines(self) -> list[list[str]]:
        """Return headings and a line for each number of lanes, spread and share."""
        found = [["lanes", "spread", "share", "hit rate", "Mpps: lane", "link", "switch", "balance", "late"]]
        for place, part in self.arrangements.groupby(["lanes", "spread", "share"], sort=False):
            rates = dict(zip(part["tcams"], part["rate_mpps"], strict=True))
            first = part.iloc[0]
            found.append([
                *map(str, place), f"{100 * first['hit_rate']:.2f} %",
                *(f"{rates[tcams]:.0f}" if tcams in rates else "" for tcams in TCAMS),
                f"{first['balance']:.2f}", f"{first['overtaking']:,}",
            ])  # fmt: skip
        return found

    def cheapest_lines(self) -> list[list[str]]:
        """Return headings and a line for each rate and measure."""
        found = [["Gbps", "least", "lanes", "spread", "share", "TCAM", "mm²", "W", "switch: Tbps", "mm²", "W"]]
        for row in self.cheapest.to_dict("records"):
            cells = ["none keeps up", *[""] * 5]
            switch = ["", ""]
            if row["keep_up"]:
                cells = [str(int(row["lanes"])), row["spread"], row["share"], row["tcams"], f"{row['area_mm2']:.3f}",
                         f"{row['power_w']:.3f}"]  # fmt: skip
                switch = [f"{row['switch_area_mm2']:.1f}", f"{row['switch_power_w']:.1f}"]
            tbps = f"{row['link_gbps'] * row['ports'] / 1000:g}"
            found.append([str(row["link_gbps"]), row["least"], *cells, tbps, *switch])
        return found

    def write(self, folder: Path, *, plots: bool = True) -> None:
        """Write tables, plot and metadata, all or nothing."""
        with staged(folder) as scratch:
            write_tables(scratch, {"arrangements": self.arrangements, "cheapest": self.cheapest})
            write_metadata(scratch, run_metadata(self.config) | {"totals": self.values()})
            if plots:
                draw_rates(self.arrangements, self.config, scratch / "rates.png")


def _shapes(config: Config) -> Iterator[tuple[str, LaneShape]]:
    """Return share and lanes of every arrangement; that of one lane once."""
    section, cache = config.wavelengths, config.lookup.cache
    for lanes in section.lanes:
        if lanes == 1:
            yield "full", LaneShape(1, cache.entries, cache.ways, "rr", cache.policy, cache.random_seed)
            continue
        for spread, share in product(section.spread, section.share):
            entries = cache.entries // lanes if share == "split" else cache.entries
            yield share, LaneShape(lanes, entries, cache.ways, spread, cache.policy, cache.random_seed)


def _rates(counts: LaneCounts, config: Config, tcams: str) -> NDArray[np.float64]:
    """Return the packets per second of each link."""
    shared = {"lane": 0, "link": 1, "switch": config.wavelengths.ports}[tcams]
    timing = config.timing
    return np.array([
        lane_rate(packets, misses, cache_ns=timing.cache_ns, tcam_ns=timing.tcam_ns, shared=shared)
        for packets, misses in zip(counts.packets.tolist(), counts.misses.tolist(), strict=True)
    ])  # fmt: skip


def _balance(sizes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return mean over largest bytes of a lane, for each link."""
    return sizes.mean(axis=1) / sizes.max(axis=1)
