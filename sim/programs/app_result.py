"""What a program that has run on a network tells, whichever engine ran it."""

from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd

from hopforge.model.config import Config
from hopforge.sim.failures.report import FailuresFound
from hopforge.sim.hits.energy import Traffic, energy_rows, shape_of
from hopforge.sim.programs.app_setup import AppSetup
from hopforge.sim.programs.graph_activity import GraphActivity
from hopforge.sim.programs.link_bytes import LinkBytes
from hopforge.sim.programs.loggops_engine import LoggopsTimes
from hopforge.sim.programs.rank_times import ProgramMeasurement, makespan, mean_share, rank_table
from hopforge.sim.run.reordering import Reordering
from hopforge.sim.run.unit_times import UnitTimes
from hopforge.sim.traffic.placed import untimed_rows
from hopforge.sim.traffic.scheduled import untimed_schedule_rows


@dataclass(frozen=True)
class AppMeasurement(ProgramMeasurement):
    """Results of a program; times in seconds.

    Attributes
    ----------
    messages, local_messages : int
        All messages, and those between ranks of one host.
    message_latency_s : float, optional
        Mean time from the call that sends a message to its arrival, messages through the network only; SimGrid does
        not tell.
    waiting_share, computing_share : float
        Mean shares of the makespan in which a rank waited for messages, and computed.
    miss_share : float
        Share of the lookups that miss.
    energy_j, conventional_energy_j : float
        Of all switches, and of switches without caches for the same packets in the same time (docs/guides/energy.md).
    cpu_seconds : float
        Processor time of the engine.
    """

    messages: int
    local_messages: int
    payload_bytes: int
    message_latency_s: float | None
    waiting_share: float
    computing_share: float
    miss_share: float
    energy_j: float
    conventional_energy_j: float
    cpu_seconds: float


@dataclass(frozen=True, eq=False)
class AppRun:
    """A finished run.

    Attributes
    ----------
    config : Config
        What ran: the configuration with the flits and buffers of `sized_router`.
    found : AppMeasurement
        The whole program.
    ranks : DataFrame
        Of each rank: rank, host, finish_s, waiting_s, compute_s, sent_messages, sent_bytes.
    energy : DataFrame
        Of each part of the switches: part, J and nJ per packet and switch, with caches and without.
    activity : GraphActivity, optional
        What ranks of a schedule did when.
    links : LinkBytes, optional
        What links carry, of a schedule or of jobs with engine flow.
    times : LoggopsTimes, optional
        When the operations of a schedule ran.
    link_share : float, optional
        Mean share of the cycles in which a link between routers carries a flit, with engine packet.
    jobs : DataFrame, optional
        Of each job, if there are several (`sim.programs.jobs_run`).
    reordering : Reordering, optional
        Order of packets, with engine packet and ``traffic.reorder``.
    units : UnitTimes, optional
        Collective units that did collectives of the program.
    failures : FailuresFound, optional
        What ``simulation.failures`` did, with engine packet; of jobs to the run of all together.
    untimed : tuple of (str, str)
        What is said of computations that take no time.
    """

    config: Config
    found: AppMeasurement
    ranks: pd.DataFrame
    energy: pd.DataFrame
    activity: GraphActivity | None = None
    links: LinkBytes | None = None
    times: LoggopsTimes | None = None
    link_share: float | None = None
    jobs: pd.DataFrame | None = None
    reordering: Reordering | None = None
    units: UnitTimes | None = None
    failures: FailuresFound | None = None
    untimed: tuple[tuple[str, str], ...] = ()

    def row(self) -> dict[str, Any]:
        """As a row of a table."""
        row = asdict(self.found) | ({} if self.reordering is None else self.reordering.columns())
        return row if self.units is None else row | self.units.columns()


def app_result(
    setup: AppSetup,
    *,
    message_latency_s: float | None,
    cpu: float,
    finish: Any,
    waiting: Any,
    computing: Any,
    miss_share: float,
    visits: tuple[int, int],
    backend: str = "",
    tcam_share: float | None = None,
) -> AppRun:
    """Put together what an engine has found.

    Parameters
    ----------
    setup : AppSetup
        What ran.
    message_latency_s, cpu, miss_share, backend : float or str
        As in `AppMeasurement`.
    finish, waiting, computing : ndarray, float64[rank]
        Seconds.
    visits : (int, int)
        Of packets and of flits to switches.
    tcam_share : float, optional
        Share of the lookups that ask the TCAM (default: all that miss).
    """
    config, topology, placed = setup.config, setup.topology, setup.placed
    program = placed.program
    table = rank_table(program, placed.host, finish=finish, waiting=waiting, computing=computing)
    packets, flits = visits
    shape = shape_of(config, topology.max_ports, 8 * config.traffic.flit_bytes)
    asked = miss_share if tcam_share is None else tcam_share
    energy = pd.DataFrame(
        energy_rows(config, shape, topology.routers, Traffic(makespan(finish), packets, flits, asked))
    )
    found = AppMeasurement(
        program=placed.trace.name, engine=config.app.engine, backend=backend, seed=config.seed, ranks=program.ranks,
        makespan_s=makespan(finish), messages=program.messages, local_messages=placed.local_messages,
        payload_bytes=int(program.size_bytes.sum()),
        message_latency_s=message_latency_s,
        waiting_share=mean_share(waiting, finish), computing_share=mean_share(computing, finish),
        miss_share=miss_share, energy_j=float(energy["cache_j"].iloc[-1]),
        conventional_energy_j=float(energy["conventional_j"].iloc[-1]), cpu_seconds=cpu,
    )
    if setup.schedule is None:
        untimed = untimed_rows(program, config.app.host_gflops, "app.host_gflops")
    else:
        untimed = untimed_schedule_rows(setup.schedule, config.app.host_gflops)
    return AppRun(config, found, table, energy, units=setup.units, untimed=tuple(untimed))
