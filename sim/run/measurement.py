"""Results of one run of the network simulator, and its files: tables, loads of all channels, metadata."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from hopforge.model.config import Config
from hopforge.model.network.core.state import NetState
from hopforge.model.output.columns import Columns, one_row
from hopforge.model.output.results import Table, run_metadata, staged, write_metadata, write_tables
from hopforge.model.topology import Topology
from hopforge.sim.failures.reconfiguration import Reconfiguration
from hopforge.sim.failures.report import SERIES_UNITS, failure_tables
from hopforge.sim.run.agent_watch import AgentWatch
from hopforge.sim.run.buffer_samples import BufferSamples
from hopforge.sim.run.class_latencies import ClassLatency, acknowledge_tables, class_columns
from hopforge.sim.run.flit_networks import Built
from hopforge.sim.run.lookup_measures import lookup_table
from hopforge.sim.run.network_latency import network_words
from hopforge.sim.run.rate_time import rate_time, rate_units
from hopforge.sim.run.reordering import Reordering, reordering_tables
from hopforge.sim.run.run_statistics import figure
from hopforge.sim.run.starvation import StarvationWatch


class MeasuredRun(Protocol):
    """What the files of a run are made from."""

    @property
    def config(self) -> Config:
        """What was asked for."""

    @property
    def seed(self) -> int:
        """Of the random draws."""

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
    def buffers(self) -> BufferSamples:
        """How full input buffers were."""

    @property
    def starvation(self) -> StarvationWatch | None:
        """What did not move while the rest did."""

    @property
    def reconfiguration(self) -> Reconfiguration | None:
        """Failures during the run, if there are any."""

    @property
    def agents(self) -> AgentWatch | None:
        """What learns to route, if anything does."""


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
        Why the run ended: ``precision``, ``max_cycles``, ``measure_us``, ``saturated``, or ``diverged`` (agents that
        got no numbers).
    classes : tuple of ClassLatency
        Of requests, replies and round trips; empty without replies.
    reordering : Reordering, optional
        Order of packets, with ``traffic.reorder``.
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
    latency_max: float
    network_latency: float
    network_latency_std: float
    network_latency_median: float
    network_latency_p95: float
    network_latency_p99: float
    network_latency_max: float
    hops: float
    derouted_share: float
    message_latency: float
    message_latency_median: float
    message_latency_p95: float
    message_latency_p99: float
    message_latency_max: float
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
    classes: tuple[ClassLatency, ...] = ()
    reordering: Reordering | None = None

    def row(self) -> dict[str, Any]:
        """As a row of a table."""
        row = asdict(self)
        del row["classes"], row["reordering"]
        for each in self.classes:
            row |= each.columns()
        return row if self.reordering is None else row | self.reordering.columns()


def channel_columns(run: MeasuredRun, cycles: int) -> Columns:
    """Load of every channel between routers in flits per cycle: columns router, port, to_router, load."""
    channels = run.topology.channels()
    number = channels.src_router.astype(np.int64) * run.topology.max_ports + channels.src_port
    load = run.state["output_port"]["flits"][number] * (run.built.flit_cycles / max(cycles, 1))
    return {"router": channels.src_router, "port": channels.src_port, "to_router": channels.dst_router, "load": load}


def write_measurement(run: MeasuredRun, found: Measurement, folder: Path, *, plots: bool = False) -> None:
    """Write measurement, channels and buffers (CSV, Parquet), the metadata (JSON) and, if wanted, plots (PNG).

    Parameters
    ----------
    run, found
        The simulation and what it measured.
    folder : Path
        For all files.
    plots : bool
        Draw the loads of all channels, and the rates over time of a run with failures.
    """
    channels = channel_columns(run, found.cycles)
    tables: dict[str, Table] = {"measurement": one_row(found.row()), "channels": channels}
    if run.buffers.samples:
        tables["buffers"] = run.buffers.columns()
    if run.starvation is not None and run.starvation.some:
        tables["starved"] = run.starvation.columns()
    if found.classes:
        tables["classes"] = class_columns(found.classes)
    tables |= acknowledge_tables(run.state) | reordering_tables(run.state)
    if run.state.lookup is not None:
        tables["lookups"] = lookup_table(run.topology, run.state.lookup)
    agents, failures = run.agents, run.reconfiguration
    if agents is not None:
        tables |= agents.tables()
    if failures is not None:
        tables |= failure_tables(failures)
    with staged(folder) as scratch:
        write_tables(scratch, tables, rate_units(run.config, SERIES_UNITS))
        if agents is not None:
            write_agents(run, agents, scratch, plots=plots)
        if plots:
            draw_channels(run, channels, scratch)
        if plots and failures is not None and len(failures.series):
            from hopforge.sim.failures.rate_plot import plot_rates  # noqa: PLC0415 - slow to import (tests/sim/start/test_start_up.py)

            plot_rates(failures, run.topology.name, scratch / "series.png")
        write_metadata(scratch, run_metadata(run.config, seed=run.seed))


def write_agents(run: MeasuredRun, agents: AgentWatch, folder: Path, *, plots: bool) -> None:
    """Write the weights of agents (NumPy archive) and, if wanted, their curves over time (PNG)."""
    agents.keep(folder)
    if plots:
        from hopforge.sim.run.agent_plot import plot_agents  # noqa: PLC0415 - slow to import (tests/sim/start/test_start_up.py)

        plot_agents(agents.series(), run.topology.name, folder / "agents.png")


def draw_channels(run: MeasuredRun, channels: Columns, folder: Path) -> None:
    """Draw the loads of all channels: ``channels.png``."""
    from hopforge.sim.run.channel_plot import plot_channels  # noqa: PLC0415 - slow to import (tests/sim/start/test_start_up.py)

    plot_channels(run.topology, channels, folder / "channels.png", rate_time(run.config))


def _latency_rows(found: Measurement) -> list[tuple[str, str]]:
    spread = (
        f"median {found.latency_median:.0f}, 95 % {found.latency_p95:.0f}, "
        f"99 % {found.latency_p99:.0f}, max {found.latency_max}"
    )
    rows = [("latency", f"{found.latency:.2f} ± {found.latency_interval:.2f} cycles ({spread})")]
    if found.message_latency != found.latency or found.reordering is not None:
        words = (
            f"{figure(found.message_latency, '.2f')} cycles (median {figure(found.message_latency_median)}, "
            f"95 % {figure(found.message_latency_p95)}, 99 % {figure(found.message_latency_p99)}, "
            f"max {figure(found.message_latency_max)})"
        )
        rows.append(("messages", words))
    return [
        *rows,
        *((each.plural, each.words()) for each in found.classes),
        ("in the network", network_words(found)),
        ("routers visited", f"{found.hops:.3f}"),
        *([] if found.reordering is None else found.reordering.rows()),
    ]


def measurement_rows(found: Measurement, time: str = "cycle") -> list[tuple[str, str]]:
    """Say what `hopforge net` shows: subject and words; `time` is that of rates (`rate_time`)."""
    ends = {
        "precision": "the interval is tight enough",
        "max_cycles": "simulation.max_cycles reached",
        "measure_us": "as long as simulation.measure_us says",
        "saturated": "the source queues grow",
        "diverged": "an agent got no numbers",
    }
    rows = [
        (
            "offered load",
            f"{found.load:.4g} flits per host and {time}"
            + (", SATURATED: sources fall behind; latencies are those of full queues" if found.saturated else ""),
        ),
        ("accepted", f"{found.accepted:.4g} (worst host {found.accepted_worst:.4g})"),
        *(_latency_rows(found) if found.packets else [("latency", "no packet arrived in the cycles measured")]),
        ("channel load", f"mean {found.channel_load_mean:.3g}, highest {found.channel_load_max:.3g} flits per {time}"),
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
