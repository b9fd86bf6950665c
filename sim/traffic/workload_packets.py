"""Section `workload` as packets, of a program or synthetic ones."""

from collections.abc import Iterator

from hopforge.model.config.jobs import JobsWorkload, WorkloadConfig
from hopforge.model.config.workload import JobLogWorkload, ProgramWorkload
from hopforge.model.shared import once
from hopforge.model.topology import Topology
from hopforge.model.workload.packet_order import interleave
from hopforge.sim.traffic.packet_stream import CHUNK_PACKETS, Chunk, PacketStream, WorkloadError
from hopforge.sim.traffic.placed import PlacedProgram, place_program
from hopforge.sim.traffic.synthetic import SYNTHETIC

__all__ = ["build_workload", "program_packets"]


def build_workload(config: WorkloadConfig, topology: Topology, seed: int) -> PacketStream:
    """Make the packets of a `workload` section.

    Parameters
    ----------
    config : WorkloadConfig
        The section.
    topology : Topology
        Where the packets run.
    seed : int
        Seed of every random choice (mapping and traffic draw from different streams).

    Raises
    ------
    WorkloadError, TraceError
        The workload does not fit the network, or a file is bad.
    """
    return once(("packets", config, topology, seed), lambda: _packets(config, topology, seed))


def _packets(config: WorkloadConfig, topology: Topology, seed: int) -> PacketStream:
    if isinstance(config, ProgramWorkload):
        return _recorded(config, topology, seed)
    if topology.hosts < 2:
        raise WorkloadError(
            f"workload.kind: {config.kind} needs at least 2 hosts, the {topology.name} has {topology.hosts}"
        )
    if isinstance(config, JobLogWorkload):
        raise WorkloadError("workload.kind: job_log is for `hopforge hits` and `wavelengths` only")
    if isinstance(config, JobsWorkload):
        raise WorkloadError("workload.kind: jobs is for `hopforge app`, `hits` and `wavelengths` only")
    return SYNTHETIC[config.kind](config, topology, seed)


def _recorded(config: ProgramWorkload, topology: Topology, seed: int) -> PacketStream:
    return program_packets(config, place_program(config, topology, seed))


def program_packets(config: ProgramWorkload | JobsWorkload, placed: PlacedProgram) -> PacketStream:
    """Return the packets of a program, or of several together, in causal order (docs/guides/workloads.md, Order).

    Raises
    ------
    TraceError
        Ranks that wait for each other for ever, or too many packets.
    """
    trace, program = placed.trace, placed.program
    run = interleave(program, placed.host, config.mtu_bytes, trace, placed.ends)
    source, destination = run.source, run.destination
    if placed.ends is None:
        source, destination = placed.host[source], placed.host[destination]

    def chunks() -> Iterator[Chunk]:
        for start in range(0, len(source), CHUNK_PACKETS):
            yield source[start:start + CHUNK_PACKETS], destination[start:start + CHUNK_PACKETS]

    return PacketStream(trace.name, len(source), chunks, {
        "ranks": trace.ranks, "messages": program.messages, "local_messages": run.local_messages,
        "payload_bytes": int(program.size_bytes.sum()), "mtu_bytes": config.mtu_bytes,
        **({"jobs": len(config.jobs)} if isinstance(config, JobsWorkload) else {"mapping": config.mapping.kind}),
    })
