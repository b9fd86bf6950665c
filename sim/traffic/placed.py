"""Programs on the hosts of a network: their calls, their ranks, and the messages between these."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hopforge.model.apps.generated import generated_trace
from hopforge.model.config.workload import (
    ChakraWorkload,
    CollectiveWorkload,
    GeneratedWorkload,
    MappingConfig,
    ProgramWorkload,
    TraceWorkload,
    TrainingWorkload,
)
from hopforge.model.shared import once
from hopforge.model.topology import Topology
from hopforge.model.workload.compiled_program import compile_program
from hopforge.model.workload.goal_files import is_goal
from hopforge.model.workload.kept_traces import kept_trace
from hopforge.model.workload.matched_receives import numbered
from hopforge.model.workload.operations import SEND
from hopforge.model.workload.program import Program
from hopforge.model.workload.slow_ranks import slowed_program
from hopforge.model.workload.trace import Action, Trace
from hopforge.model.workload.unit_calls import UnitGroups
from hopforge.sim.traffic.packet_stream import CHUNK_PACKETS, Hosts, WorkloadError
from hopforge.sim.traffic.rank_hosts import map_ranks


@dataclass(frozen=True, eq=False)
class PlacedProgram:
    """A program on the hosts of a network.

    Attributes
    ----------
    trace : Trace
        The calls of all ranks.
    program : Program
        The same as messages between ranks.
    host : ndarray, int32[rank]
        Host of each rank; of a machine with several links the first one.
    ends : tuple of (ndarray, int32[message]), optional
        Host at which each message enters the network, and where it leaves it, where machines have several links.
    sender : ndarray, int32[message], optional
        Rank that sends each message, where the last ranks of `program` stand for one message each.
    """

    trace: Trace
    program: Program
    host: Hosts
    ends: tuple[Hosts, Hosts] | None = None
    sender: NDArray[np.int32] | None = None

    @property
    def source_host(self) -> Hosts:
        """Host at which each message enters the network, int32[message]."""
        return self.host[self.program.source] if self.ends is None else self.ends[0]

    @property
    def destination_host(self) -> Hosts:
        """Host at which each message leaves the network, int32[message]; of its source: it stays within a machine."""
        return self.host[self.program.destination] if self.ends is None else self.ends[1]

    @property
    def local(self) -> NDArray[np.bool_]:
        """Whether a message stays within a machine, bool[message]."""
        return self.source_host == self.destination_host

    @property
    def local_messages(self) -> int:
        """How many messages stay within a machine."""
        if self.ends is not None:
            return int(self.local.sum())
        source, destination, found = self.program.source, self.program.destination, 0
        for start in range(0, len(source), CHUNK_PACKETS):  # at once they would need memory that is new
            ends = (self.host[each[start : start + CHUNK_PACKETS]] for each in (source, destination))
            found += int(np.equal(*ends).sum())
        return found


def place_program(
    config: ProgramWorkload, topology: Topology, seed: int, groups: UnitGroups | None = None
) -> PlacedProgram:
    """Read (or, for a collective, write) the calls of all ranks, place the ranks and match the messages.

    `groups`: of the collective units that do what is ``in_network``; without them that is refused.

    Raises
    ------
    WorkloadError, TraceError
        The program does not fit the network, or a file is bad.
    """
    return once(("program", config, topology, seed, groups), lambda: _placed(config, topology, seed, groups))


def _placed(config: ProgramWorkload, topology: Topology, seed: int, groups: UnitGroups | None) -> PlacedProgram:
    ranks = getattr(config, "ranks", None)
    if ranks is not None:  # too many are refused before the calls of each are written
        map_ranks(config.mapping, ranks, topology, seed)
    return program_on(config, topology, seed, lambda ranks: map_ranks(config.mapping, ranks, topology, seed), groups)


def program_on(
    config: ProgramWorkload, topology: Topology, seed: int, find: Callable[[int], Hosts],
    groups: UnitGroups | None = None,
) -> PlacedProgram:
    """Place a program as `place_program`, its ranks on the hosts that `find` returns for their number."""
    trace = program_trace(config, topology.hosts // topology.host_links, seed)
    host = find(trace.ranks)
    program = slowed(compile_program(trace, config.collectives, groups, host), config, seed)
    return PlacedProgram(trace, program, host, link_ends(program, host, topology, config.mapping))


def link_ends(
    program: Program, host: Hosts, topology: Topology, mapping: MappingConfig
) -> tuple[Hosts, Hosts] | None:
    """Return the links that messages take between machines with several, int32[message] at both ends.

    None: machines have one link.
    """
    links = topology.host_links
    if links == 1:
        return None
    source, destination = host[program.source], host[program.destination]
    if mapping.links == "pair":
        link = (source // links + destination // links) % links
    else:
        sends = program.operand[program.kind == SEND]
        order = sends if len(sends) else np.arange(program.messages)  # of a schedule: rank by rank
        link = np.zeros(program.messages, np.int64)
        link[order] = numbered(program.source[order].astype(np.int64)) % links
    link = np.where(source == destination, 0, link)
    return (source + link).astype(np.int32), (destination + link).astype(np.int32)


def slowed(program: Program, config: ProgramWorkload, seed: int) -> Program:
    """Return a program with the stragglers and the noise of its section.

    Raises
    ------
    WorkloadError
        More stragglers than ranks.
    """
    try:
        return slowed_program(program, config.computing, seed)
    except ValueError as error:
        raise WorkloadError(str(error)) from error


def untimed_rows(program: Program, speed: float | None, key: str) -> list[tuple[str, str]]:
    """Say that computations of a program take no time, if there are any: subject and words; `speed`: of `key`."""
    if speed or not program.flops:
        return []
    return [("computing", f"takes no time without {key}; the program has {program.flops:,.0f} operations")]


def check_computing(config: ProgramWorkload, speed: float | None, key: str) -> None:
    """Refuse stragglers and noise where computing takes no time.

    Parameters
    ----------
    config : ProgramWorkload
        Section `workload`.
    speed : float, optional
        What `key` is; None or 0: no time.
    key : str
        Which key gives computations their time.

    Raises
    ------
    WorkloadError
        They would have no effect.
    """
    if not speed and not config.computing.is_even:
        raise WorkloadError(f"workload.computing: has no effect, for computing takes no time without {key}")


def program_trace(config: ProgramWorkload, hosts: int, seed: int) -> Trace:
    """Read (or, for everything but recorded programs, write) the calls of all ranks.

    Parameters
    ----------
    config : ProgramWorkload
        Section `workload`.
    hosts : int
        Hosts of the network, the number of ranks if `config` does not say.
    seed : int
        Of generated graphs.

    Raises
    ------
    WorkloadError, TraceError, AppError
        A bad file, or a program that does not run so.
    """
    return once(("calls", config, hosts, seed), lambda: _program_trace(config, hosts, seed))


def _program_trace(config: ProgramWorkload, hosts: int, seed: int) -> Trace:
    if isinstance(config, TraceWorkload):
        if is_goal(config.file):
            raise WorkloadError(
                f"workload.file: {config.file} is a schedule of GOAL, no time-independent trace; hopforge app"
                " runs it"
            )
        return kept_trace(config.file)
    if isinstance(config, ChakraWorkload):
        raise WorkloadError(
            f"workload.file: {config.file} are execution traces of Chakra, no time-independent trace; hopforge app"
            " runs them"
        )
    if isinstance(config, CollectiveWorkload):
        return collective_trace(config, hosts)
    assert isinstance(config, GeneratedWorkload), "checked by model.config"
    if isinstance(config, TrainingWorkload) and config.is_graph:
        raise WorkloadError(
            "workload.kind: training with model or sizes is a graph, no time-independent trace; hopforge app runs it"
        )
    return generated_trace(config, hosts, seed)


def collective_trace(config: CollectiveWorkload, hosts: int) -> Trace:
    """Return the calls of a `collective` workload, as if they had been recorded.

    Raises
    ------
    WorkloadError
        The root is not one of the ranks.
    """
    ranks = hosts if config.ranks is None else config.ranks
    if config.root >= ranks:
        raise WorkloadError(f"workload.root: rank {config.root} is not one of the {ranks} ranks")
    counts = (config.bytes,) * ranks if config.operation == "reduce_scatter" else ()
    name = config.operation.replace("_", "")
    call = Action(name, count=config.bytes, recv_count=config.bytes, counts=counts, root=config.root)
    number = np.arange(config.repeat + 2, dtype=np.int32)
    files = tuple(f"rank {rank}, call" for rank in range(ranks))
    by = config.collectives.named(config.operation) or f"rules of {config.collectives.rules}"
    name = f"{config.operation} ({by})"
    program = (Action("init"), *(call,) * config.repeat, Action("finalize"))
    return Trace.of(name, (program,) * ranks, files, (number,) * ranks)
