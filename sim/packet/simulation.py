"""One run of a packet network: lifetimes, hops, detours, and whether its sources keep up."""

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hopforge.model.config import Config
from hopforge.model.kernel.histogram import bin_ends
from hopforge.model.kernel.run_clock import run_seconds
from hopforge.model.output.results import run_metadata, staged, write_metadata, write_tables
from hopforge.sim.packet import records as r
from hopforge.sim.packet.network import PacketNetwork
from hopforge.sim.run.rate_time import rate_units
from hopforge.sim.run.run_statistics import figure

#: a run whose messages have not all arrived after so many times its planned length is given up
PATIENCE = 20


@dataclass(frozen=True)
class PacketMeasurement:
    """Results of one run over all packets of all messages; times in ns.

    Attributes
    ----------
    load : float
        In units of the load that saturates the bisection of a torus under uniform traffic.
    complete : bool
        All packets arrived that failures did not lose.
    lifetime_ns : float
        Mean from the creation of a message to the arrival of each of its packets at the sink; nan if none arrived.
    hops : float
        Mean of routers visited, the first and the last included: one more than links passed.
    accepted : float
        Packets that arrived, in units of load, over `cycles`.
    outflanked, wrapped : float
        Shares of the packets that took a detour through an outflank or a wraparound destination.
    refused : float
        Packets that a router sent back, for each that arrived.
    lost : int
        Packets that failures lost, dropped or kept from being sent.
    """

    load: float
    seed: int
    complete: bool
    lifetime_ns: float
    lifetime_median_ns: float
    lifetime_p95_ns: float
    lifetime_p99_ns: float
    lifetime_max_ns: float
    hops: float
    accepted: float
    outflanked: float
    wrapped: float
    refused: float
    link_load: float
    packets: int
    lost: int
    cycle_ns: float
    cycles: int
    cpu_seconds: float

    def row(self) -> dict[str, Any]:
        """As a row of a table."""
        return dataclasses.asdict(self)


def run_packets(
    network: PacketNetwork,
    progress: Callable[[int, int], None] | None = None,
    give_up_lifetime_ns: float = float("inf"),
    least_lifetime_ns: float = 0.0,
) -> PacketMeasurement:
    """Run until all messages have arrived.

    Parameters
    ----------
    network : PacketNetwork
        At its start.
    progress : callable, optional
        Called with (packets delivered, packets in all) after every period of the messages.
    give_up_lifetime_ns, least_lifetime_ns : float
        Stop as soon as the mean lifetime over all packets would be longer, were those to come as short as the second.

    Raises
    ------
    DeadlockError
        A standstill.
    """
    network.compile()
    started = run_seconds()
    counters, cycle_ns = network.counters, network.settings.cycle_ns
    nodes = network.topology.routers
    whole = nodes * network.settings.messages * network.settings.message_packets
    end, last = 0, PATIENCE * int(network.period_cycles * network.settings.messages + 1e4)
    complete = False
    while not complete and end < last:
        end += max(int(network.period_cycles), 1)
        complete = network.advance(end)
        if progress is not None:
            progress(int(counters["delivered"]), whole)
        lost = int(counters["vanished"] + counters["abandoned"])
        to_come = whole - lost - counters["delivered"]
        if counters["lifetime_sum"] * cycle_ns + to_come * least_lifetime_ns > give_up_lifetime_ns * whole:
            break
    network.check_conservation()
    delivered = int(counters["delivered"])  # none, where failures took all
    each = delivered or math.nan
    chosen = int(counters["chosen"]) or math.nan
    # the last arrival, or the last loss if that is later, or where the run was cut
    cycles = max(int(counters["finish"]), network.cycle, 1)
    links = int((network.topology.peer_router >= 0).sum())
    unit = network.period_cycles * network.load / network.settings.message_packets
    longest = int(counters["lifetime_max"])
    median, p95, p99 = (percentile(network.histogram, share, longest) * cycle_ns for share in (0.5, 0.95, 0.99))
    return PacketMeasurement(
        load=network.load,
        seed=network.seed,
        complete=complete,
        lifetime_ns=int(counters["lifetime_sum"]) / each * cycle_ns,
        lifetime_median_ns=median,
        lifetime_p95_ns=p95,
        lifetime_p99_ns=p99,
        lifetime_max_ns=longest * cycle_ns if delivered else math.nan,
        hops=int(counters["hops_sum"]) / each + 1,
        accepted=delivered / nodes / cycles * unit,
        outflanked=int(counters["detours_outflank"]) / chosen,
        wrapped=int(counters["detours_wraparound"]) / chosen,
        refused=int(counters["refused"]) / each,
        link_load=int(counters["sent"]) * network.settings.send_cycles / cycles / max(links, 1),
        packets=delivered,
        lost=int(counters["vanished"] + counters["abandoned"]),
        cycle_ns=cycle_ns,
        cycles=cycles,
        cpu_seconds=run_seconds() - started,
    )


def percentile(histogram: NDArray[np.int64], share: float, longest: int) -> float:
    """Upper end, in cycles, of the bin with the lifetime that `share` of the packets do not exceed; nan without any."""
    sums = histogram.cumsum()
    if sums[-1] == 0:
        return math.nan
    k = int(sums.searchsorted(share * sums[-1]))
    _, end = bin_ends(k, r.BIN_CYCLES)
    return min(float(end) + 1, float(longest))


def measurement_rows(found: PacketMeasurement) -> list[tuple[str, str]]:
    """Say what `hopforge net` shows: subject and words."""
    outflanked, wrapped = (figure(100 * share, ".2f") for share in (found.outflanked, found.wrapped))
    refused = figure(found.refused, ".3f")
    return [
        ("load", f"{found.load:.4g} of the load that saturates the bisection of a torus under uniform traffic"),
        ("accepted", f"{found.accepted:.4g}" + ("" if found.complete else ", NOT SUSTAINED: the run was given up")),
        (
            "lifetime",
            f"{found.lifetime_ns:.0f} ns (median {found.lifetime_median_ns:.0f}, 95 % {found.lifetime_p95_ns:.0f}, "
            f"99 % {found.lifetime_p99_ns:.0f}, max {found.lifetime_max_ns:.0f})"
            if found.packets else "no packet arrived",
        ),
        ("routers visited", figure(found.hops, ".3f")),
        ("detours", f"{outflanked} % outflank, {wrapped} % wraparound"),
        ("links", f"busy {100 * found.link_load:.1f} % of the time; {refused} packets sent back for each"),
        (
            "cycles",
            f"{found.cycles:,} of {found.cycle_ns:g} ns; {found.packets:,} packets, {found.cpu_seconds:.2f} s",
        ),
    ]


def message_table(network: PacketNetwork) -> pd.DataFrame:
    """Mean lifetime by number of the message, over all nodes: columns message, packets, lifetime_ns."""
    sums: Any = network.message_sums
    packets = sums["packets"]
    return pd.DataFrame(
        {
            "message": range(len(sums)),
            "packets": packets,
            "lifetime_ns": sums["lifetime"] / np.where(packets, packets, np.nan) * network.settings.cycle_ns,
        }
    )


def write_packets(
    config: Config, network: PacketNetwork, found: PacketMeasurement, folder: Path, *, plots: bool = False
) -> None:
    """Write the measurement and the lifetimes by message (CSV, Parquet; plot: PNG) and the metadata (JSON)."""
    messages = message_table(network)
    tables = {"measurement": pd.DataFrame([found.row()]), "messages": messages}
    if network.failures is not None:
        tables["failures"] = network.failures.table()
    with staged(folder) as scratch:
        write_tables(scratch, tables, rate_units(config))
        if plots:
            _draw_messages(config.name, messages, scratch / "messages.png")
        write_metadata(scratch, run_metadata(config, seed=network.seed))


def _draw_messages(name: str, messages: pd.DataFrame, path: Path) -> None:
    from hopforge.model.output import plots  # noqa: PLC0415 - slow to import (tests/sim/start/test_start_up.py)

    figure, (axes,) = plots.new_figure()
    plots.style_axes(axes, title=f"Lifetime by message, {name}", x_label="message", y_label="lifetime (ns)")
    plots.draw_lines(axes, [plots.Line("mean", messages["message"], messages["lifetime_ns"], 0)])
    plots.save_figure(figure, path)
