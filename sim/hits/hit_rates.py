"""Hit rates of a whole network and what follows from them: the tables, plots and figures of `hopforge hits`.

Definitions of every column: docs/guides/hit-rates.md.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from hopforge.model.config import Config
from hopforge.model.config.root import TimingConfig
from hopforge.model.config.uses import key_words
from hopforge.model.output.colour_scale import colour_map
from hopforge.model.output.plots import GREY, PALETTE, new_figure, save_figure, style_axes
from hopforge.model.output.results import run_metadata, staged, write_metadata, write_tables
from hopforge.model.topology import Topology
from hopforge.model.topology.port_class import port_classes
from hopforge.sim.hits.analytic import LatencySet, LookupPowers, line_rate_gbps, lookup_energy, packet_rate
from hopforge.sim.hits.assisted import HELP_COUNTS, Assisted, Help, run_help
from hopforge.sim.hits.bounds import BOUNDS, add_gap_share, bounds_of, bounds_row, why_no_bounds
from hopforge.sim.hits.cache_inputs import cache_classes
from hopforge.sim.hits.expected_memory import refuse_beyond_expected
from hopforge.sim.hits.help_figures import add_help_figures, help_rows
from hopforge.sim.hits.kept_lookups import BYTES_OF_A_LOOKUP, BYTES_OF_A_PACKET
from hopforge.sim.hits.prepared import HitsSetup, prepare_hits
from hopforge.sim.hits.replay import send_all
from hopforge.sim.hits.replay_result import COUNTS, ReplayResult
from hopforge.sim.hits.sizes import check_sizes, size_lines, sizes_of
from hopforge.sim.traffic.packet_stream import PacketStream

_NEAR_ONE = 0.9  # hit rates all above this are drawn by their misses
PORT_LOAD_GBPS = 200.0
"""Load of every port for which power is stated (seed 004: 1400 Gbps over a switch of 7 ports)."""


def add_figures(table: pd.DataFrame, timing: TimingConfig, cached: bool, second_level: bool) -> pd.DataFrame:
    """Append hit rate, times, rate and energy to a table with the columns of `COUNTS`, and `gap_share` to bounds.

    Rates of inputs without lookups are NaN (an empty field of the CSV).
    """
    table = table.copy()
    lookups = table["lookups"].where(table["lookups"] > 0).astype(float)
    table["misses"] = table["lookups"] - table["hits"]
    table["tcam_lookups"] = table["misses"] - table["second_level_hits"]
    first = table["misses"] / lookups if cached else table["lookups"] / lookups
    last = table["tcam_lookups"] / lookups
    table["hit_rate"] = table["hits"] / lookups
    level_one = timing.cache_ns if cached else 0.0
    level_two = timing.second_level_ns if second_level else 0.0
    table["lookup_ns"] = level_one + level_two * first + timing.tcam_ns * last
    busiest = np.maximum(np.maximum(level_one, level_two * first), timing.tcam_ns * last)
    table["forwarding_mpps"] = 1e3 / busiest
    table["forwarding_gbps"] = table["forwarding_mpps"] * timing.slot_bytes * 8e-3
    energy = (timing.cache_energy_nj if cached else 0.0) + timing.tcam_energy_nj * last
    table["energy_nj_per_lookup"] = energy
    if "min_bypass" in table:
        add_gap_share(table)
    return table


@dataclass(frozen=True, eq=False)
class HitReport:
    """Everything that one run of `hopforge hits` found.

    Attributes
    ----------
    config : Config
        What was run.
    topology : Topology
        The network.
    workload : PacketStream
        The packets.
    result : ReplayResult
        Counts per cache.
    ports, switches, classes : DataFrame
        One row per input port (and link-aggregation member), per switch, per class of port.
    totals : dict
        The whole network: counts, rates, latency, forwarding rate, energy.
    no_bounds : str, optional
        Why there are no bounds, though they were asked for.
    sizes : DataFrame, optional
        Misses by policy, sets and ways.
    """

    config: Config
    topology: Topology
    workload: PacketStream
    result: ReplayResult
    ports: pd.DataFrame
    switches: pd.DataFrame
    classes: pd.DataFrame
    totals: dict[str, Any]
    no_bounds: str | None = None
    sizes: pd.DataFrame | None = None

    def size_lines(self) -> list[list[str]]:
        """Return headings and lines of the misses by size, for people; nothing if they were not asked for."""
        return [] if self.sizes is None else size_lines(self.sizes, self.config.lookup.cache.ways)


def run_hits(
    config: Config, progress: Callable[[int, int], None] | None = None, setup: HitsSetup | None = None, *,
    bounds: bool = False, sizes: bool = False, wanted: Help | None = None,
) -> HitReport:
    """Replay the workload of a configuration through the caches of its network.

    Parameters
    ----------
    config : Config
        Checked configuration with a `workload` section.
    progress : callable, optional
        Called with (packets done, packets in all) now and then.
    setup : HitsSetup, optional
        What `prepare_hits` has made of the configuration.
    bounds : bool
        Also count the misses of LRU and of the best choices, where they are defined.
    sizes : bool
        Also count the misses of caches of other sizes.
    wanted : Help, optional
        Prefetch and refill.

    Raises
    ------
    ConfigError, TopologyError, WorkloadError, TraceError
        A user's mistake.
    """
    ready = prepare_hits(config) if setup is None else setup
    if sizes:
        check_sizes(config, ready.caches.lacks_rows, helped=wanted is not None and wanted.any)
    if wanted is not None and wanted.any:
        helped = run_help(ready.caches, config, ready.workload, wanted, bounds=bounds)
        return report(config, ready.topology, ready.workload, helped.result, helped.bounds, (wanted, helped))
    none = why_no_bounds(config) if bounds else None
    if sizes or (bounds and none is None):
        what = "sizes of caches for {}" if sizes else "bounds of {} (--no-bounds)"
        refuse_beyond_expected(
            ready.caches, ready.workload, what, per_packet=BYTES_OF_A_PACKET, per_lookup=BYTES_OF_A_LOOKUP
        )
        ready.caches.keep_lookups()
    result = send_all(ready.caches, ready.workload, progress)
    none = why_no_bounds(config, int(result.unmatched.sum())) if bounds else None
    least = bounds_of(ready.caches, config) if bounds and none is None else None
    found = report(config, ready.topology, ready.workload, result, least)
    return replace(found, no_bounds=none, sizes=sizes_of(ready.caches, config, bounds=bounds) if sizes else None)


def report(
    config: Config, topology: Topology, workload: PacketStream, result: ReplayResult,
    bounds: NDArray[np.int64] | None = None, helped: tuple[Help, Assisted] | None = None,
) -> HitReport:
    """Make tables and figures of the counts of a replay, and of the misses of LRU and the best choices [cache, 3]."""
    cached = config.lookup.cache.enabled
    two = cached and config.lookup.cache.second_level is not None  # a cache that is off asks the TCAM
    classes = port_classes(topology)
    inputs = result.inputs
    counts = pd.DataFrame(
        {
            "router": inputs.router,
            "port": inputs.port,
            "member": inputs.member,
            "port_class": cache_classes(inputs, classes),
            **{name: getattr(result, name) for name in COUNTS},
        }
    )
    names = list(COUNTS)
    if bounds is not None:
        counts[list(BOUNDS)] = bounds
        names += BOUNDS
    if helped is not None:
        names += HELP_COUNTS
        counts[list(HELP_COUNTS)] = pd.DataFrame(helped[1].help)

    def figures(table: pd.DataFrame) -> pd.DataFrame:
        table = add_figures(table, config.timing, cached, two)
        if helped is not None:
            add_help_figures(table, config.timing, helped[0].tcam_cycles)
            table = table.drop(columns="gap_share", errors="ignore")  # neither choice bounds caches that are helped
        return table

    switches = figures(counts.groupby("router", sort=True)[names].sum().reset_index())
    by_class = figures(counts.groupby("port_class", sort=False)[names].sum().reset_index())
    whole = figures(counts[names].sum().to_frame().T).iloc[0]
    return HitReport(
        config=config,
        topology=topology,
        workload=workload,
        result=result,
        ports=figures(counts),
        switches=switches,
        classes=by_class,
        totals=_totals(config, workload, result, {str(name): value for name, value in whole.items()}, helped),
    )


def _totals(
    config: Config, workload: PacketStream, result: ReplayResult, whole: dict[str, Any],
    helped: tuple[Help, Assisted] | None,
) -> dict[str, Any]:
    timing = config.timing
    ports = result.inputs.ports_of_a_switch
    load_gbps = PORT_LOAD_GBPS * ports
    powers = LookupPowers(timing.cache_energy_nj, timing.cache_power_mw, timing.tcam_energy_nj, timing.tcam_power_mw)
    lookups = whole["lookups"]
    asked = lookups + (whole["issued"] if helped is not None else 0)
    miss = whole["tcam_lookups"] / asked if asked else 0.0
    rate = packet_rate(load_gbps=load_gbps, slot_bytes=timing.slot_bytes)
    cached = config.lookup.cache.enabled
    totals: dict[str, Any] = {
        "workload": workload.name, "packets": result.packets, "delivered": result.delivered,
        "not_sent": workload.packets - result.packets,
    }  # fmt: skip
    if helped is not None:
        totals |= {"help": asdict(helped[0]), "empty_packets": helped[1].empty_packets}
    for key, value in whole.items():
        totals[key] = int(value) if key in (*COUNTS, *BOUNDS, *HELP_COUNTS, "misses", "tcam_lookups") else float(value)
    second = config.lookup.cache.second_level
    if second is not None and second.content == "inclusive":
        totals["back_invalidations"] = result.back_invalidations
    totals |= {
        "mean_switches_per_packet": lookups / result.packets if result.packets else 0.0,
        "conventional_lookup_ns": timing.tcam_ns,
        "conventional_forwarding_gbps": line_rate_gbps(lookup_ns=timing.tcam_ns, slot_bytes=timing.slot_bytes),
        "switch_load_gbps": load_gbps,
        "switch_power_w": lookup_energy(
            packets_per_second=rate * asked / lookups if lookups else rate,
            miss_ratio=miss,
            ports=result.inputs.caches_of_a_switch,
            powers=powers,
            cached=cached,
        ),
        "conventional_switch_power_w": lookup_energy(
            packets_per_second=rate, miss_ratio=1.0, ports=ports, powers=powers, cached=False
        ),
    }
    return totals | latency_figures(config, result)


def latency_figures(config: Config, result: ReplayResult) -> dict[str, float]:
    """Zero-load latency of the packets of a run (seed 004, eq. 4.3): with the caches, and conventional.

    Every switch costs S_base and, on a miss, S_pnl (a second-level hit: S_pnl · second_level_ns / tcam_ns); every
    cable, those to the hosts included, costs C.
    """
    timing = config.timing
    lat = LatencySet(
        "configuration", timing.switch_base_ns, timing.miss_penalty_ns, timing.conventional_switch_ns, timing.cable_ns
    )
    packets = max(result.packets, 1)
    lookups = int(result.lookups.sum())
    second = int(result.second_level_hits.sum())
    tcam = lookups - int(result.hits.sum()) - second
    penalty = tcam + second * min(1.0, timing.second_level_ns / timing.tcam_ns)
    cables = (lookups + result.delivered) * lat.cable_ns
    conventional = (lookups * lat.conventional_ns + cables) / packets
    if not config.lookup.cache.enabled:
        mean = conventional
    else:
        mean = (lookups * lat.switch_hit_ns + penalty * lat.miss_penalty_ns + cables) / packets
    return {
        "mean_latency_ns": mean,
        "conventional_mean_latency_ns": conventional,
        "latency_reduction": 1.0 - mean / conventional if conventional else 0.0,
    }


def draw_classes(found: HitReport) -> Figure:
    """Draw the hit rate of each class of ports, with the causes of the misses."""
    table = found.classes[found.classes["lookups"] > 0]
    figure, (axes,) = new_figure(height_in=1.2 + 0.42 * max(len(table), 2))
    place = np.arange(len(table))[::-1]
    left = np.zeros(len(table))
    style_axes(axes, title=f"{found.workload.name} on {found.topology.name}", x_label="share of lookups, %", y_label="")
    axes.grid(visible=False)
    parts = [
        ("hits", 0, "hit"),
        ("compulsory", 5, "compulsory miss"),
        ("capacity", 4, "capacity miss"),
        ("conflict", 1, "conflict miss"),
        ("unmatched", 3, "no TCAM row"),
    ]
    lowest = float(table["hit_rate"].min()) if len(table) else 0.0
    for column, color, label in parts:
        if not table[column].any() or (column == "hits" and lowest > _NEAR_ONE):
            continue
        share = 100 * table[column].to_numpy(float) / table["lookups"].to_numpy(float)
        axes.barh(place, share, left=left, color=PALETTE[color], label=label, height=0.7)
        left += share
    for y, rate in zip(place, table["hit_rate"], strict=True):
        words = f"{100 * rate:.{2 if lowest < _NEAR_ONE else 3}f} %"
        axes.annotate(
            words, (1.01, y), xycoords=axes.get_yaxis_transform(), va="center", fontsize=9, color=GREY,
            annotation_clip=False,
        )  # fmt: skip
    axes.set_yticks(place, labels=table["port_class"].tolist())
    if lowest > _NEAR_ONE:  # of bars from 0 to 100 % only the hits would be seen
        axes.set_xlabel("misses, share of lookups, %; at the right: hit rate", fontsize=10)
        axes.set_xlim(0, max(float(left.max(initial=0.0)) * 1.05, 1e-3))
    else:
        axes.set_xlim(0, 100)
    if len(table):
        axes.legend(frameon=False, fontsize=9, loc="upper center", bbox_to_anchor=(0.5, -0.25), ncols=4)
    return figure


def draw_map(found: HitReport) -> Figure:
    """Draw the hit rate of every input port: one row per port, one column per switch."""
    table = found.ports.groupby(["port", "router"])[["lookups", "hits"]].sum()
    rates = np.full((found.topology.max_ports, found.topology.routers), np.nan)
    used = table[table["lookups"] > 0]
    where = np.array(used.index.to_list(), dtype=np.int64).reshape(-1, 2)
    rates[where[:, 0], where[:, 1]] = 100 * used["hits"] / used["lookups"]
    figure, (axes,) = new_figure(height_in=3.6)
    low = float(np.nanmin(rates)) if np.isfinite(rates).any() else 0.0
    style_axes(
        axes, title=f"{found.workload.name} on {found.topology.name}: hit rate of every input port",
        x_label="switch", y_label="port",
    )  # fmt: skip
    image = axes.imshow(
        rates, aspect="auto", interpolation="nearest", cmap=colour_map(), vmin=min(low, 99.0), vmax=100.0,
        origin="lower",
    )  # fmt: skip
    figure.colorbar(image, ax=axes, label="hit rate, %")
    axes.grid(visible=False)
    return figure


def write_report(found: HitReport, folder: Path) -> None:
    """Write ``ports``, ``switches``, ``classes`` (CSV and Parquet), ``metadata.json`` and two plots, all or nothing.

    Raises
    ------
    ResultError
        The folder cannot be written.
    """
    with staged(folder) as scratch:
        tables = {"ports": found.ports, "switches": found.switches, "classes": found.classes}
        write_tables(scratch, tables | ({} if found.sizes is None else {"sizes": found.sizes}))
        metadata = run_metadata(found.config)
        metadata |= {
            "topology": {"name": found.topology.name, **found.topology.params},
            "workload": {"name": found.workload.name, "packets": found.workload.packets, **found.workload.params},
            "totals": found.totals,
        }
        write_metadata(scratch, metadata)
        save_figure(draw_classes(found), scratch / "hit_rate_by_port_class.png")
        save_figure(draw_map(found), scratch / "hit_rate_map.png")


def _whose(config: Config) -> str:
    sharing = config.lookup.ports_per_engine
    return "a port" if sharing == 1 else f"for {sharing} ports"


def summary_rows(found: HitReport) -> list[tuple[str, str]]:
    """Return (subject, words) of a run, for people."""
    t = found.totals
    lookups = max(t["lookups"], 1)

    def share(name: str) -> str:
        percent = f"{100 * t[name] / lookups:.4g}"
        if percent == "100" and t[name] < t["lookups"]:
            percent = "> 99.99"
        return f"{t[name]:,} ({percent} %)"

    rows = [
        ("network", found.topology.name),
        ("workload", f"{t['workload']}: {t['packets']:,} packets, {t['mean_switches_per_packet']:.3g} switches each"),
        *([("not sent", f"{t['not_sent']:,} packets from or to hosts of failed switches")] if t["not_sent"] else []),
        ("keys", key_words(found.config, replayed=True)),
    ]
    if not t["lookups"]:
        return [*rows, ("lookups", "none: nothing was looked up, so there are no rates")]
    rows += [
        ("lookups", f"{t['lookups']:,}"),
        ("hits", share("hits")),
        (
            "misses",
            f"{share('misses')}: {t['compulsory']:,} compulsory, {t['capacity']:,} capacity,"
            f" {t['conflict']:,} conflict",
        ),
        ("evictions", f"{t['evictions']:,}"),
    ]
    if "min_bypass" in t or found.no_bounds is not None:
        rows.append(("bounds", found.no_bounds or bounds_row(t)))
    if "help" in t:
        rows += help_rows(t)
    if found.config.lookup.cache.enabled and found.config.lookup.cache.second_level is not None:
        words = f"{share('second_level_hits')} hits, {share('tcam_lookups')} ask the TCAM"
        if "back_invalidations" in t:
            words += f"; took {t['back_invalidations']:,} lines from first levels"
        rows.append(("second level", words))
    if t["unmatched"]:
        lost = t["packets"] - t["delivered"]
        rows.append(("no TCAM row", f"{t['unmatched']:,} lookups; {lost:,} packets dropped"))
    rows += [
        ("lookup", f"{t['lookup_ns']:.3g} ns on average; without cache {t['conventional_lookup_ns']:.3g} ns"),
        (
            "forwarding",
            f"{t['forwarding_gbps']:,.0f} Gbps {_whose(found.config)}; without cache"
            f" {t['conventional_forwarding_gbps']:,.3g} Gbps",
        ),
        (
            "power",
            f"{t['switch_power_w']:.3g} W a switch at {t['switch_load_gbps']:,.0f} Gbps; without cache"
            f" {t['conventional_switch_power_w']:.3g} W",
        ),
        (
            "latency",
            f"{t['mean_latency_ns']:.4g} ns a packet at zero load; without cache"
            f" {t['conventional_mean_latency_ns']:.4g} ns ({100 * t['latency_reduction']:.3g} % less)",
        ),
    ]
    return rows
