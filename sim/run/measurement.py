"""Results of one run of the network simulator, and its files: tables, loads of all channels, metadata."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pandas as pd

from hopforge.model.config import Config
from hopforge.model.network.core.state import NetState
from hopforge.model.output.plots import draw_heat_map, new_figure, save_figure, style_axes
from hopforge.model.output.results import run_metadata, staged, write_metadata, write_tables
from hopforge.model.routing.configured import routing_network
from hopforge.model.topology import Topology
from hopforge.model.topology.floor_plan import MAX_DRAWN_LINKS, draw_channel_values
from hopforge.sim.failures.reconfiguration import Reconfiguration
from hopforge.sim.failures.report import failure_tables, plot_series
from hopforge.sim.run.flit_networks import Built
from hopforge.sim.run.lookup_measures import lookup_table


class MeasuredRun(Protocol):
    """What the files of a run are made from."""

    @property
    def config(self) -> Config:
        """What was asked for."""

    @property
    def topology(self) -> Topology:
        """The network."""

    @property
    def state(self) -> NetState:
        """Its routers and links, with what they counted."""

    @property
    def built(self) -> Built:
        """Times of its router model."""

    @property
    def reconfiguration(self) -> Reconfiguration | None:
        """Failures during the run, if there are any."""


@dataclass(frozen=True)
class Measurement:
    """Results of one run; latencies in cycles, rates in flits per host and cycle.

    Attributes
    ----------
    latency_interval : float
        Half width of the 95 % interval of the mean latency (batch means).
    message_latency : float
        Mean from the creation of a message to the arrival of its last tail.
    accepted, accepted_worst : float
        Mean over hosts, and the host that received the least.
    stop : str
        Why the run ended: ``precision``, ``max_cycles`` or ``saturated``.
    """

    load: float
    seed: int
    saturated: bool
    stop: str
    warmup_cycles: int
    cycles: int
    packets: int
    latency: float
    latency_interval: float
    latency_median: float
    latency_p95: float
    latency_p99: float
    latency_max: int
    network_latency: float
    hops: float
    derouted_share: float
    message_latency: float
    message_latency_median: float
    message_latency_p95: float
    message_latency_p99: float
    message_latency_max: int
    accepted: float
    accepted_worst: float
    channel_load_max: float
    channel_load_mean: float
    dropped_packets: int
    lookups: int
    hit_rate: float
    merges: int
    compulsory: int
    capacity: int
    conflict: int
    unmatched: int
    cycle_ns: float
    cpu_seconds: float

    def row(self) -> dict[str, Any]:
        """As a row of a table."""
        return asdict(self)


def channel_table(run: MeasuredRun, cycles: int) -> pd.DataFrame:
    """Load of every channel between routers in flits per cycle: columns router, port, to_router, load."""
    channels = run.topology.channels()
    number = channels.src_router.astype(np.int64) * run.topology.max_ports + channels.src_port
    load = run.state["output_port"]["flits"][number] * (run.built.flit_cycles / max(cycles, 1))
    return pd.DataFrame(
        {"router": channels.src_router, "port": channels.src_port, "to_router": channels.dst_router, "load": load}
    )


def plot_channels(run: MeasuredRun, channels: pd.DataFrame, path: Path) -> None:
    """Draw the load of every channel between routers as colours.

    Meshes and tori of two dimensions: one panel per direction with the routers in their places; others: curves on the
    floor plan, with too many channels a map of output port over router.
    """
    largest = max(float(channels["load"].max()), 1e-9) if len(channels) else 1.0
    topology = run.topology
    logical, group = routing_network(topology), channels["port"].to_numpy()
    if topology.aggregation is not None:
        group = topology.aggregation.group[channels["router"], group]
    table = np.full((logical.max_ports, topology.routers), np.nan)
    table[group, channels["router"]] = 0
    np.add.at(table, (group, channels["router"]), channels["load"])
    label = "flits per cycle" if topology.aggregation is None else "flits per cycle, all members"
    if topology.kind in ("mesh", "torus") and len(topology.params["radices"]) == 2:
        largest = max(float(np.nanmax(table)), 1e-9)
        first, (width, height) = logical.max_ports - 4, topology.params["radices"]
        figure, panels = new_figure(panels=4, width_in=4.4, height_in=3.8)
        for axes, port, name in zip(panels, range(first, first + 4), ("+x", "−x", "+y", "−y"), strict=True):
            style_axes(axes, title=f"Channels to {name}", x_label="x of the router", y_label="y of the router")
            draw_heat_map(axes, table[port].reshape(int(height), int(width)), label=label, largest=largest)
    elif 0 < len(channels) <= 2 * MAX_DRAWN_LINKS:
        draw_channel_values(
            topology, channels["load"], title=f"Channels between routers, {topology.name}", label=label, path=path
        )
        return
    else:
        figure, (axes,) = new_figure(width_in=9.0)
        style_axes(axes, title="Channels between routers", x_label="router", y_label="output port")
        draw_heat_map(axes, table, label=label, largest=largest)
    save_figure(figure, path)


def write_measurement(run: MeasuredRun, found: Measurement, folder: Path) -> None:
    """Write the measurement, the loads of all channels (CSV, Parquet; PNG) and the metadata (JSON)."""
    channels = channel_table(run, found.cycles)
    tables = {"measurement": pd.DataFrame([found.row()]), "channels": channels}
    if run.state.lookup is not None:
        tables["lookups"] = lookup_table(run.topology, run.state.lookup)
    failures = run.reconfiguration
    if failures is not None:
        tables |= failure_tables(failures)
    with staged(folder) as scratch:
        write_tables(scratch, tables)
        plot_channels(run, channels, scratch / "channels.png")
        if failures is not None and len(failures.series):
            plot_series(failures, run.topology.name, scratch / "series.png")
        write_metadata(scratch, run_metadata(run.config))


def _latency_rows(found: Measurement) -> list[tuple[str, str]]:
    spread = (
        f"median {found.latency_median:.0f}, 95 % {found.latency_p95:.0f}, "
        f"99 % {found.latency_p99:.0f}, max {found.latency_max}"
    )
    rows = [("latency", f"{found.latency:.2f} ± {found.latency_interval:.2f} cycles ({spread})")]
    if found.message_latency != found.latency:
        words = (
            f"{found.message_latency:.2f} cycles (median {found.message_latency_median:.0f}, "
            f"95 % {found.message_latency_p95:.0f}, 99 % {found.message_latency_p99:.0f}, "
            f"max {found.message_latency_max})"
        )
        rows.append(("messages", words))
    return [
        *rows,
        ("in the network", f"{found.network_latency:.2f} cycles"),
        ("routers visited", f"{found.hops:.3f}"),
    ]


def measurement_rows(found: Measurement) -> list[tuple[str, str]]:
    """Say what `hopforge net` shows: subject and words."""
    ends = {
        "precision": "the interval is tight enough",
        "max_cycles": "simulation.max_cycles reached",
        "saturated": "the source queues grow",
    }
    rows = [
        (
            "offered load",
            f"{found.load:.4g} flits per host and cycle"
            + (", SATURATED: latencies depend on the length of the run" if found.saturated else ""),
        ),
        ("accepted", f"{found.accepted:.4g} (worst host {found.accepted_worst:.4g})"),
        *(_latency_rows(found) if found.packets else [("latency", "no packet arrived in the cycles measured")]),
        ("channel load", f"mean {found.channel_load_mean:.3f}, highest {found.channel_load_max:.3f} flits per cycle"),
        (
            "cycles",
            f"{found.warmup_cycles:,} to warm up, {found.cycles:,} measured ({ends[found.stop]}); "
            f"{found.packets:,} packets, {found.cpu_seconds:.2f} s",
        ),
    ]
    if found.lookups:
        misses = found.compulsory + found.capacity + found.conflict + found.unmatched
        causes = f"{found.compulsory:,} compulsory, {found.capacity:,} capacity, {found.conflict:,} conflict"
        if found.unmatched:
            causes += f", {found.unmatched:,} without a TCAM row"
        hits = f"{100 * found.hit_rate:.4g} % hit, {found.merges:,} joined a miss"
        rows.append(("route lookups", f"{found.lookups:,}: {hits}, {misses:,} missed ({causes})"))
    if found.dropped_packets:
        rows.append(("dropped", f"{found.dropped_packets:,} packets, unroutable or lost in a failure"))
    return rows
