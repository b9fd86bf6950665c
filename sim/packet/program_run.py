"""A program on packet routers, run to its end: makespan, times of the ranks, messages, lifetimes of packets."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hopforge.model.kernel.run_clock import run_seconds
from hopforge.model.output.columns import one_row
from hopforge.model.output.results import Table, run_metadata, staged, write_metadata, write_tables
from hopforge.sim.packet.program_network import ProgramNetwork
from hopforge.sim.packet.simulation import percentile
from hopforge.sim.run.program_run import message_latencies, rank_columns

#: packet times on a link between two looks at the keyboard
SLICE_PACKETS = 500


@dataclass(frozen=True)
class PacketProgramMeasurement:
    """Results of a program on packet routers.

    Attributes
    ----------
    makespan_ns : float
        When the last rank was at its end.
    messages, local_messages : int
        All messages, and those between ranks of one host, which do not enter the network.
    message_latency_ns : float
        Mean from the call that sends a message to the arrival of its last packet; messages through the network only.
    lifetime_ns : float
        Mean of packets: from when their message came into the queue of its host to their arrival.
    hops : float
        Mean of routers visited.
    outflanked, wrapped, refused : float
        Shares of packets with a detour; packets sent back for each that arrived.
    link_load, link_load_max : float
        Share of the time in which a link between routers is busy: mean, and of the busiest. The time is the makespan,
        or until the last packet has arrived, if that is later; if packets were lost, until nothing was under way.
    """

    program: str
    seed: int
    ranks: int
    makespan_ns: float
    messages: int
    local_messages: int
    payload_bytes: int
    packets: int
    message_latency_ns: float
    message_latency_median_ns: float
    message_latency_p95_ns: float
    message_latency_p99_ns: float
    message_latency_max_ns: float
    lifetime_ns: float
    lifetime_median_ns: float
    lifetime_p95_ns: float
    lifetime_p99_ns: float
    lifetime_max_ns: float
    hops: float
    waiting_share: float
    outflanked: float
    wrapped: float
    refused: float
    link_load: float
    link_load_max: float
    cycle_ns: float
    cycles: int
    cpu_seconds: float

    def row(self) -> dict[str, Any]:
        """As a row of a table."""
        return dataclasses.asdict(self)


def run_packet_program(
    network: ProgramNetwork, progress: Callable[[int, int], None] | None = None
) -> PacketProgramMeasurement:
    """Run from the begin of the program to its end.

    Parameters
    ----------
    network : ProgramNetwork
        At cycle 0.
    progress : callable, optional
        Called with the messages that have arrived, and all that go through the network.

    Raises
    ------
    ProgramError
        The program cannot end: names the ranks that wait, and for what.
    DeadlockError
        A standstill.
    """
    network.compile()
    started, counters = run_seconds(), network.counters
    total = int((~network.placed.local).sum())
    step = slice_cycles = SLICE_PACKETS * network.settings.send_cycles
    delivered = 0
    while not network.advance(network.cycle + step):
        # ranks that only compute may do so for long
        step = slice_cycles if counters["delivered"] > delivered else 2 * step
        delivered = int(counters["delivered"])
        if progress is not None:
            progress(int(counters["messages_arrived"]), total)
    if progress is not None:
        progress(int(counters["messages_arrived"]), total)
    network.check_conservation()
    return _measurement(network, run_seconds() - started)


def _measurement(network: ProgramNetwork, cpu: float) -> PacketProgramMeasurement:
    placed, counters, ns = network.placed, network.counters, network.settings.cycle_ns
    program, local = placed.program, placed.local
    latency = message_latencies(network.messages, local) * ns
    makespan = int(network.ranks["finished"].max(initial=0))
    packets, longest = int(counters["delivered"]), int(counters["lifetime_max"])
    each, chosen = packets or np.nan, int(counters["chosen"]) or np.nan
    lives = [percentile(network.histogram, share, longest) * ns for share in (0.5, 0.95, 0.99)]
    of_messages = [
        float(np.quantile(latency, share, method="inverted_cdf")) if len(latency) else np.nan
        for share in (0.5, 0.95, 0.99)
    ]
    # ranks need not wait for what they send
    end = network.cycle if counters["vanished"] else max(makespan, int(counters["finish"]))
    busy = network.channel_packets() * network.settings.send_cycles / max(end, 1)
    return PacketProgramMeasurement(
        program=placed.trace.name,
        seed=network.seed,
        ranks=program.ranks,
        makespan_ns=makespan * ns,
        messages=program.messages,
        local_messages=int(local.sum()),
        payload_bytes=int(program.size_bytes.sum()),
        packets=packets,
        message_latency_ns=float(latency.mean()) if len(latency) else np.nan,
        message_latency_median_ns=of_messages[0],
        message_latency_p95_ns=of_messages[1],
        message_latency_p99_ns=of_messages[2],
        message_latency_max_ns=float(latency.max()) if len(latency) else np.nan,
        lifetime_ns=int(counters["lifetime_sum"]) / each * ns,
        lifetime_median_ns=lives[0],
        lifetime_p95_ns=lives[1],
        lifetime_p99_ns=lives[2],
        lifetime_max_ns=longest * ns if packets else np.nan,
        hops=int(counters["hops_sum"]) / each + 1,
        waiting_share=float(network.ranks["waited"].mean() / max(makespan, 1)) if program.ranks else 0.0,
        outflanked=int(counters["detours_outflank"]) / chosen,
        wrapped=int(counters["detours_wraparound"]) / chosen,
        refused=int(counters["refused"]) / each,
        link_load=float(busy.mean()) if len(busy) else 0.0,
        link_load_max=float(busy.max(initial=0.0)),
        cycle_ns=ns,
        cycles=makespan,
        cpu_seconds=cpu,
    )


def packet_program_rows(found: PacketProgramMeasurement) -> list[tuple[str, str]]:
    """Say what `hopforge net` shows of a program: subject and words."""
    local = f", {found.local_messages:,} of them within a host" if found.local_messages else ""
    rows = [
        ("program", f"{found.program}, {found.ranks} ranks"),
        ("makespan", f"{found.makespan_ns:,.0f} ns; ranks wait {found.waiting_share:.1%} of it"),
        ("messages", f"{found.messages:,} with {found.payload_bytes:,} bytes{local}"),
    ]
    if found.packets:
        rows += [
            ("message latency", _times(found, "message_latency")),
            ("lifetime", f"{_times(found, 'lifetime')} of {found.packets:,} packets"),
            ("routers visited", f"{found.hops:.3f}"),
            ("detours", f"{found.outflanked:.2%} outflank, {found.wrapped:.2%} wraparound"),
            (
                "links",
                f"busy {found.link_load:.1%} of the time, the busiest {found.link_load_max:.1%}; "
                f"{found.refused:.3f} packets sent back for each",
            ),
        ]
    rows.append(("cycles", f"{found.cycles:,} of {found.cycle_ns:g} ns; {found.cpu_seconds:.2f} s"))
    return rows


def _times(found: PacketProgramMeasurement, name: str) -> str:
    row = found.row()
    if np.isnan(row[f"{name}_ns"]):
        return "none arrived"
    median, p95, p99, most = (row[f"{name}_{what}_ns"] for what in ("median", "p95", "p99", "max"))
    return f"{row[f'{name}_ns']:.0f} ns (median {median:.0f}, 95 % {p95:.0f}, 99 % {p99:.0f}, max {most:.0f})"


def write_packet_program(network: ProgramNetwork, found: PacketProgramMeasurement, folder: Path) -> None:
    """Write the measurement, the times of the ranks and what failures did (CSV, Parquet), and the metadata (JSON)."""
    ranks = rank_columns(network.placed, network.ranks)
    with staged(folder) as scratch:
        tables: dict[str, Table] = {"program": one_row(found.row()), "ranks": ranks}
        if network.failures is not None:
            tables["failures"] = network.failures.table()
        write_tables(scratch, tables)
        write_metadata(scratch, run_metadata(network.config, seed=network.seed))
