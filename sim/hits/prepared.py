"""What `hopforge hits` makes of a file before the first packet is sent."""

from dataclasses import dataclass

from hopforge.model.config import Config, ConfigError
from hopforge.model.config.jobs import JobsWorkload
from hopforge.model.config.workload import JobLogWorkload
from hopforge.model.routing.combined.configured import routing_network
from hopforge.model.topology import Topology, build
from hopforge.model.topology.aggregation import aggregate
from hopforge.model.topology.failed import refuse_failed, without_failed
from hopforge.sim.hits.job_day import job_packets
from hopforge.sim.hits.replay import Replay
from hopforge.sim.jobs.placed_jobs import place_jobs
from hopforge.sim.traffic.forecast import refuse_many_packets
from hopforge.sim.traffic.packet_stream import PacketStream
from hopforge.sim.traffic.workload_packets import build_workload, program_packets


@dataclass(frozen=True, eq=False)
class HitsSetup:
    """A replay at its start.

    Attributes
    ----------
    topology : Topology
        The network.
    workload : PacketStream
        Its packets.
    caches : Replay
        Its caches.
    """

    topology: Topology
    workload: PacketStream
    caches: Replay


def prepare_hits(config: Config) -> HitsSetup:
    """Build network, packets and caches.

    Raises
    ------
    ConfigError, TopologyError, WorkloadError, TraceError, ReplayError
        A user's mistake.
    """
    if config.workload is None:
        raise ConfigError("workload: missing; `hopforge hits` needs the section")
    topology = build(config.topology, config.address)
    if config.routing.algorithm != "tables":
        refuse_failed(config.failed, f"the replay of routing.algorithm={config.routing.algorithm}")
    topology = without_failed(topology, config.failed)
    topology = routing_network(aggregate(topology, config.lookup.lag.members))  # parallel links of a file are a group
    if isinstance(config.workload, JobLogWorkload):
        workload = job_packets(config.workload, config.topology, topology, config.seed)
    elif isinstance(config.workload, JobsWorkload):
        jobs = place_jobs(config.workload, config.topology, topology, config.seed)
        workload = program_packets(config.workload, jobs.placed)
    else:
        workload = build_workload(config.workload, topology, config.seed)
    many = next((key for key in ("packets_per_host", "rounds") if key in workload.params), "")
    refuse_many_packets(workload.packets, f"workload.{many}".rstrip("."))
    return HitsSetup(topology, workload, Replay(config, topology))
