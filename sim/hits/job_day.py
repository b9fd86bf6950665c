"""The packets of a log of jobs that share a network: what `workload.kind: job_log` replays.

Definition: docs/definitions/jobs.md, "Packets of a log".
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config.topology import TopologyConfig
from hopforge.model.config.workload import JobLogWorkload
from hopforge.model.kernel.compile import kernel
from hopforge.model.topology import Topology
from hopforge.model.workload.job_log import JobLog, read_log
from hopforge.model.workload.lublin import draw_log
from hopforge.sim.jobs.network_groups import nested_groups, network_dims
from hopforge.sim.jobs.placement import GROUPED, group_problem
from hopforge.sim.jobs.prepared import JobsError, Machine, prepare_jobs
from hopforge.sim.jobs.space_sharing import Schedule, schedule
from hopforge.sim.traffic.packet_stream import Chunk, PacketStream

__all__ = ["job_packets", "nested_groups", "step_times"]

_CHUNK_STEPS = 1 << 14
MOST_PACKETS = 1 << 31


def job_packets(config: JobLogWorkload, section: TopologyConfig, topology: Topology, seed: int) -> PacketStream:
    """Schedule the jobs of a log on the hosts of a network, and return their packets in the order of time.

    Parameters
    ----------
    config : JobLogWorkload
        The section.
    section : TopologyConfig
        The network as the file has it.
    topology : Topology
        The network.
    seed : int
        Of a drawn log and of random placement.

    Raises
    ------
    UserError
        A log that is wrong, no job that can run, groups that do not fit.
    """
    dims = network_dims(section, topology.hosts)
    log = _log(config, topology.hosts, seed)
    setup = prepare_jobs(
        log, Machine(dims, config.ppn), drawn=config.file is None, schedulers=(config.scheduler,),
        placements=(config.placement,), seed=seed, interference=False,
    )  # fmt: skip
    groups = _groups(config, section, dims, topology.hosts)
    done = schedule(
        setup.jobs, dims, scheduler=config.scheduler, placement=config.placement, seed=seed, groups=groups
    )
    nodes = setup.jobs.nodes
    packets = int((nodes * (nodes - 1) * config.alltoalls + nodes * (nodes > 1) * config.exchanges).sum())
    if packets > MOST_PACKETS:
        raise JobsError(f"workload: at most {MOST_PACKETS} packets are replayed, not {packets}; take fewer jobs")

    def chunks() -> Iterator[Chunk]:
        yield from _chunks(config, done)

    return PacketStream(f"jobs of {Path(log.name).name}", packets, chunks, {
        "jobs": len(nodes), "skipped": dict(setup.jobs.skipped), "scheduler": config.scheduler,
        "placement": config.placement, "groups": list(groups), "makespan_s": done.makespan,
        "utilisation": done.utilisation, "alltoalls": config.alltoalls, "exchanges": config.exchanges,
    })  # fmt: skip


def _log(config: JobLogWorkload, hosts: int, seed: int) -> JobLog:
    if config.file is not None:
        return read_log(config.file)
    assert config.generate is not None, "checked by model.config"
    try:
        processors = config.processors or hosts * config.ppn
        return draw_log(config.generate, config.count, processors, np.random.default_rng(seed))
    except ValueError as error:
        raise JobsError(f"workload.generate: {error}") from error


def _groups(
    config: JobLogWorkload, section: TopologyConfig, dims: Sequence[int], hosts: int
) -> tuple[int, ...]:
    if config.placement not in GROUPED:
        return ()
    groups = config.groups or nested_groups(section, dims)
    if not groups:
        raise JobsError(f"workload.groups: missing; placement={config.placement} needs it on this network")
    if problem := group_problem(groups, hosts):
        raise JobsError(f"workload.{problem}")
    return groups


def step_times(start: NDArray[np.float64], run: NDArray[np.float64], steps: NDArray[np.int64]) -> tuple[
    NDArray[np.int64], NDArray[np.int64]
]:
    """Return the steps of all jobs in the order of time: job and number of each.

    Step k of K of a job is at start + run·(k + ½)/K. At one instant the earlier job comes first, then the earlier step.

    Parameters
    ----------
    start, run : ndarray, float64[job]
        In whole units of time (`Schedule.in_units`), so that equal instants are equal.
    steps : ndarray, int64[job]
        K of each job.

    Examples
    --------
    >>> jobs, numbers = step_times(np.array([0.0, 1.0]), np.array([4.0, 1.0]), np.array([2, 2]))
    >>> jobs.tolist(), numbers.tolist()
    ([0, 1, 1, 0], [0, 0, 1, 1])
    """
    job = np.repeat(np.arange(len(steps)), steps)
    number = np.arange(len(job)) - np.repeat(np.cumsum(steps) - steps, steps)
    # start + run · (2 number + 1) / parts as a whole number and a rest that is rounded once: equal instants are equal
    parts, times = 2 * steps[job], 2 * number + 1
    length, left = np.divmod(run[job], parts)
    more, rest = np.divmod(left * times, parts)
    begin, within = np.divmod(start[job], 1.0)
    rest = within + rest / parts
    whole = begin + length * times + more + np.floor(rest)
    order = np.lexsort((number, job, rest - np.floor(rest), whole))
    return job[order], number[order]


def _chunks(config: JobLogWorkload, done: Schedule) -> Iterator[Chunk]:
    nodes = done.jobs.nodes
    width = np.array([1 << (int(count) - 1).bit_length() for count in nodes], np.int64)  # partners of exclusive or
    alltoall = (width - 1) * config.alltoalls
    steps = np.where(nodes > 1, alltoall + config.exchanges, 0)
    job, number = step_times(done.in_units(done.start), done.in_units(done.jobs.run), steps)
    first = np.concatenate([[0], np.cumsum(nodes)])
    hosts = np.concatenate([*done.used, np.zeros(0, np.int32)]).astype(np.int32)
    mask = np.where(number < alltoall[job], 1 + number % np.maximum(width[job] - 1, 1), 0)
    for at in range(0, len(job), _CHUNK_STEPS):
        part, masks = job[at : at + _CHUNK_STEPS], mask[at : at + _CHUNK_STEPS]
        most = int(nodes[part].sum())
        sources, destinations = np.empty(most, np.int32), np.empty(most, np.int32)
        count = _write(part, masks, first, hosts, sources, destinations)
        yield sources[:count], destinations[:count]


@kernel
def _write(jobs, masks, first, hosts, sources, destinations):  # type: ignore[no-untyped-def]
    """Write the packets of steps: to rank xor mask, or with mask 0 to the next rank; return how many there are."""
    count = 0
    for step in range(len(jobs)):
        begin, ranks = first[jobs[step]], first[jobs[step] + 1] - first[jobs[step]]
        for rank in range(ranks):
            other = rank ^ masks[step] if masks[step] else (rank + 1) % ranks
            if other < ranks:
                sources[count], destinations[count] = hosts[begin + rank], hosts[begin + other]
                count += 1
    return count
