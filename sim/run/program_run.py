"""A program run to its end by the hosts of the network simulator: makespan, times of the ranks, latencies."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from heapq import heappush
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.kernel.run_clock import run_seconds
from hopforge.model.network.core.kinds import FINISHED, RANK_BITS, STUCK, UNITS
from hopforge.model.network.parts.program_arrays import ProgramError, refuse_long_run
from hopforge.model.output.columns import one_row
from hopforge.model.output.results import Table, run_metadata, staged, write_metadata, write_tables
from hopforge.model.workload.program import waiting_text
from hopforge.sim.failures.program_messages import lost_text
from hopforge.sim.failures.record import counted
from hopforge.sim.failures.report import SERIES_UNITS, failure_tables
from hopforge.sim.run.class_latencies import acknowledge_tables
from hopforge.sim.run.measurement import channel_columns, draw_channels, write_agents
from hopforge.sim.run.network_latency import network_latencies, network_words
from hopforge.sim.run.rate_time import rate_units
from hopforge.sim.run.reordering import Reordering, reordering, reordering_tables
from hopforge.sim.run.run_statistics import figure, largest_of, mean_of, percentile
from hopforge.sim.run.simulation import Simulation
from hopforge.sim.run.standstill import StandstillWatch
from hopforge.sim.run.unit_times import UnitTimes
from hopforge.sim.traffic.placed import PlacedProgram

if TYPE_CHECKING:
    import pandas as pd

#: cycles between two looks at the keyboard
SLICE_CYCLES = 2000


@dataclass(frozen=True)
class ProgramMeasurement:
    """Results of a program; times in cycles.

    Attributes
    ----------
    makespan : int
        Cycle in which the last rank was at its end.
    messages, local_messages : int
        All messages, and those between ranks of one host, which do not enter the network.
    message_latency : float
        From the call that sends a message to the arrival of its last tail, messages through the network only.
    latency, network_latency : float
        Of packets: since their message came into the source queue, and since their head left the host.
    waiting_share : float
        Mean share of the makespan in which a rank waited for a message, or for one of its own to leave.
    accepted : float
        Flits per host and cycle (with queues at the outputs: per time of a flit on its link).
    reordering : Reordering, optional
        Order of packets, with ``traffic.reorder``.
    units : UnitTimes, optional
        Collective units that did collectives of the program.
    """

    program: str
    seed: int
    ranks: int
    makespan: int
    messages: int
    local_messages: int
    payload_bytes: int
    packets: int
    flits: int
    message_latency: float
    message_latency_median: float
    message_latency_p95: float
    message_latency_p99: float
    message_latency_max: float
    latency: float
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
    waiting_share: float
    accepted: float
    channel_load_max: float
    channel_load_mean: float
    cpu_seconds: float
    reordering: Reordering | None = None
    units: UnitTimes | None = None

    def row(self) -> dict[str, Any]:
        """As a row of a table."""
        row = {each.name: getattr(self, each.name) for each in fields(self)}
        for part in (row.pop("reordering"), row.pop("units")):
            row |= {} if part is None else part.columns()
        return row


def run_program(
    run: Simulation, progress: Callable[[int, int], None] | None = None, units: UnitTimes | None = None
) -> ProgramMeasurement:
    """Run the program of a simulation whose ``traffic.source`` is ``program`` from its begin to its end.

    Parameters
    ----------
    run : Simulation
        At cycle 0.
    progress : callable, optional
        Called with the messages that have arrived, and all that go through the network.
    units : UnitTimes, optional
        Of a program with collectives that units do.

    Raises
    ------
    ProgramError
        The program cannot end: names the ranks that wait, and for what; or it takes more cycles than can be counted.
    DeadlockError
        The network is in a deadlock.
    """
    assert run.placed is not None, "traffic.source is program"
    placed = run.placed
    local = placed.local
    total = int((~local).sum())
    run.compile()
    started, code, still = run_seconds(), -1, StandstillWatch(run)
    while code not in (FINISHED, STUCK):
        code = run.advance(SLICE_CYCLES)
        if code == UNITS:
            assert units is not None, "the program has collectives of units"
            _join(run, units)
        if code not in (FINISHED, STUCK) and still.found():
            raise ProgramError(stuck_text(run))
        if code == UNITS:
            continue
        if run.agents is not None:
            run.agents.note()
        if progress is not None:
            progress(int(run.state["messages_arrived"]), total)
    refuse_long_run(int(run.state["cycle"]))
    run.check_conservation()
    if code == STUCK:
        raise ProgramError(stuck_text(run))
    return replace(_measurement(run, placed, local, run_seconds() - started), units=units)


def _join(run: Simulation, units: UnitTimes) -> None:
    """Let units do the calls that are complete; results come in later cycles than this one."""
    assert run.placed is not None, "traffic.source is program"
    state, calls, messages = run.state, units.calls, run.placed.program.messages
    timers = state["timer"][: int(state["timers"])].tolist()
    at = int(state["calls_ready"])
    while at > 0:
        call = at - messages - calls.parts
        first, last = calls.first[call : call + 2].tolist()
        parts = state["message"][messages + first : messages + last]
        finish = units.finish(call, parts["started"])
        parts["arrived"] = finish
        for rank, cycle, began in zip(
            calls.rank[first:last].tolist(), finish.tolist(), parts["started"].tolist(), strict=True
        ):
            if began >= 0:
                heappush(timers, cycle << RANK_BITS | rank)
        at = int(state["message"]["next"][at])
    state["timer"][: len(timers)] = timers
    state.record["timers"], state.record["calls_ready"] = len(timers), 0


def _measurement(run: Simulation, placed: PlacedProgram, local: NDArray[np.bool_], cpu: float) -> ProgramMeasurement:
    state, program = run.state, placed.program
    message = state["message"][: program.messages]
    latency = message_latencies(message, local)
    ranks = state["rank"][: program.ranks]
    makespan = int(ranks["finished"].max(initial=0))
    packets, cycles = int(state["measured"]), max(int(state["cycle"]), 1)
    flits = int(state.senders["flits_received"].sum())  # without those of acknowledges
    channels = np.asarray(channel_columns(run, cycles)["load"])
    largest = int(state["latency_max"])
    shares, bin_cycles = (0.5, 0.95, 0.99), run.built.bin_cycles
    median, p95, p99 = (percentile(state["histogram"], share, largest, bin_cycles) for share in shares)
    message_median, message_p95, message_p99 = (
        float(np.quantile(latency, share, method="inverted_cdf")) if len(latency) else np.nan for share in shares
    )
    return ProgramMeasurement(
        program=placed.trace.name,
        seed=run.seed,
        ranks=program.ranks,
        makespan=makespan,
        messages=program.messages,
        local_messages=int(local.sum()),
        payload_bytes=int(program.size_bytes.sum()),
        packets=int(state["packets_ejected"]),
        flits=flits,
        message_latency=float(latency.mean()) if len(latency) else np.nan,
        message_latency_median=message_median,
        message_latency_p95=message_p95,
        message_latency_p99=message_p99,
        message_latency_max=largest_of(int(latency.max(initial=0)), len(latency)),
        latency=mean_of(int(state["latency_sum"]), packets),
        latency_median=median,
        latency_p95=p95,
        latency_p99=p99,
        latency_max=largest_of(largest, packets),
        **network_latencies(state, bin_cycles),
        hops=mean_of(int(state["hops_sum"]), packets),
        waiting_share=float(ranks["waited"].mean() / max(makespan, 1)) if len(ranks) else 0.0,
        accepted=flits * run.built.flit_cycles / cycles / max(run.topology.hosts, 1),
        channel_load_max=float(channels.max()) if len(channels) else 0.0,
        channel_load_mean=float(channels.mean()) if len(channels) else 0.0,
        cpu_seconds=cpu,
        reordering=reordering(state),
    )


def message_latencies(message: Any, local: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Cycles from the call that sends a message to its arrival, of those that arrived through the network.

    A message that failures cost never arrives; where nobody waits for it the program ends without it.

    Parameters
    ----------
    message : NumPy records
        ``MESSAGE[...]`` at the end of the run.
    local : ndarray, bool[message]
        Messages within a host.
    """
    return np.asarray((message["arrived"] - message["started"])[~local & (message["arrived"] >= 0)], np.int64)


def stuck_text(run: Simulation) -> str:
    """Say which ranks wait for what when nothing can happen any more."""
    assert run.placed is not None, "traffic.source is program"
    program, state = run.placed.program, run.state
    waiting = np.flatnonzero(state["rank"]["finished"][: program.ranks] < 0)
    failing = None if run.reconfiguration is None else run.reconfiguration.network
    dropped = run.unroutable_packets
    reason = f"; unroutable and dropped: {counted(dropped, 'packet')}" if dropped else ""
    if failing is not None:
        reason += lost_text(program, failing.lost.numbers)
    return (
        f"workload: the program cannot end: in cycle {int(state['cycle'])} nothing is under way and"
        f" {waiting_text(program, run.placed.trace, waiting, state['rank']['at'])}{reason}"
    )


def rank_table(run: Simulation) -> "pd.DataFrame":
    """Tell the times of every rank: `rank_columns` as a table."""
    import pandas as pd  # noqa: PLC0415 - slow to import (tests/sim/start/test_start_up.py)

    assert run.placed is not None, "traffic.source is program"
    return pd.DataFrame(rank_columns(run.placed, run.state["rank"]))


def rank_columns(placed: PlacedProgram, rank: Any) -> dict[str, Any]:
    """Tell the times of every rank.

    Parameters
    ----------
    placed : PlacedProgram
        The program.
    rank : NumPy records
        ``RANK[...]`` at the end of the run.

    Returns
    -------
    dict of str to array
        rank, host, finish_cycle, waiting_cycles (for messages, or for its own to leave), compute_cycles, sent_messages,
        sent_bytes.
    """
    program, ranks = placed.program, rank[: placed.program.ranks]
    return {
        "rank": np.arange(program.ranks),
        "host": placed.host,
        "finish_cycle": ranks["finished"],
        "waiting_cycles": ranks["waited"],
        "compute_cycles": ranks["computed"],
        "sent_messages": np.bincount(program.source, minlength=program.ranks),
        "sent_bytes": np.bincount(program.source, program.size_bytes, program.ranks).astype(np.int64),
    }


def program_rows(found: ProgramMeasurement, time: str = "cycle") -> list[tuple[str, str]]:
    """Say what `hopforge net` shows of a program: subject and words; `time` is that of rates (`rate_time`)."""
    local = f", {found.local_messages:,} of them within a host" if found.local_messages else ""
    return [
        ("program", f"{found.program}, {found.ranks} ranks"),
        ("makespan", f"{found.makespan:,} cycles; ranks wait {found.waiting_share:.1%} of it"),
        ("messages", f"{found.messages:,} with {found.payload_bytes:,} bytes{local}"),
        (
            "message latency",
            f"{figure(found.message_latency, '.2f')} cycles (median {figure(found.message_latency_median)}, "
            f"95 % {figure(found.message_latency_p95)}, 99 % {figure(found.message_latency_p99)}, "
            f"max {figure(found.message_latency_max)})",
        ),
        ("packets", f"{found.packets:,} with {found.flits:,} flits"),
        (
            "packet latency",
            f"{figure(found.latency, '.2f')} cycles (median {figure(found.latency_median)}, "
            f"95 % {figure(found.latency_p95)}, 99 % {figure(found.latency_p99)}, max {figure(found.latency_max)})",
        ),
        ("in the network", network_words(found)),
        ("routers visited", figure(found.hops, ".3f")),
        *([] if found.units is None else found.units.rows()),
        *([] if found.reordering is None else found.reordering.rows()),
        ("accepted", f"{found.accepted:.4g} flits per host and {time}"),
        ("channel load", f"mean {found.channel_load_mean:.3g}, highest {found.channel_load_max:.3g} flits per {time}"),
        ("processor time", f"{found.cpu_seconds:.2f} s"),
    ]


def write_program(run: Simulation, found: ProgramMeasurement, folder: Path, *, plots: bool = False) -> None:
    """Write the measurement, times of the ranks, loads of all channels (CSV, Parquet; plot: PNG), metadata (JSON)."""
    channels = channel_columns(run, int(run.state["cycle"]))
    with staged(folder) as scratch:
        tables: dict[str, Table] = {"program": one_row(found.row()), "ranks": rank_table(run), "channels": channels}
        if run.reconfiguration is not None:
            tables |= failure_tables(run.reconfiguration)
        if run.agents is not None:
            tables |= run.agents.tables()
            write_agents(run, run.agents, scratch, plots=plots)
        tables |= acknowledge_tables(run.state) | reordering_tables(run.state)
        write_tables(scratch, tables, rate_units(run.config, SERIES_UNITS))
        if plots:
            draw_channels(run, channels, scratch)
        if plots and run.reconfiguration is not None and len(run.reconfiguration.series):
            from hopforge.sim.failures.rate_plot import plot_rates  # noqa: PLC0415 - slow to import (tests/sim/start/test_start_up.py)

            plot_rates(run.reconfiguration, run.topology.name, scratch / "series.png")
        write_metadata(scratch, run_metadata(run.config, seed=run.seed))
