"""Workloads: the packets, from host to host and in order, that a network's caches see."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.apps.generated import generated_trace
from hopforge.model.config.jobs import JobsWorkload, WorkloadConfig
from hopforge.model.config.workload import (
    ChakraWorkload,
    CollectiveWorkload,
    GeneratedWorkload,
    JobLogWorkload,
    MappingConfig,
    ProgramWorkload,
    SyntheticWorkload,
    TraceWorkload,
    TrainingWorkload,
)
from hopforge.model.errors import UserError
from hopforge.model.input_file import read_input_text
from hopforge.model.shared import once
from hopforge.model.topology import Topology
from hopforge.model.workload.compiled_program import compile_program
from hopforge.model.workload.goal_files import is_goal
from hopforge.model.workload.kept_traces import kept_trace
from hopforge.model.workload.matched_receives import numbered
from hopforge.model.workload.operations import SEND
from hopforge.model.workload.packet_order import interleave
from hopforge.model.workload.program import Program
from hopforge.model.workload.slow_ranks import slowed_program
from hopforge.model.workload.trace import Action, Trace
from hopforge.model.workload.unit_calls import UnitGroups

CHUNK_PACKETS = 1 << 20
MAX_PAIRS = 1 << 29

Hosts = NDArray[np.int32]
Chunk = tuple[Hosts, Hosts]


class WorkloadError(UserError, ValueError):
    """A workload that does not fit its network: the message names key, limit and value."""


@dataclass(frozen=True, eq=False)
class PacketStream:
    """Packets in the order in which they enter the network.

    Attributes
    ----------
    name : str
        For reports, for example ``uniform`` or ``is.A.64``.
    packets : int
        How many.
    make_chunks : callable
        Starts an iteration over (source host, destination host) arrays, int32[packet] each, the same every time.
    params : dict
        What is worth telling: ranks, messages, bytes, ...
    """

    name: str
    packets: int
    make_chunks: Callable[[], Iterator[Chunk]]
    params: dict[str, Any] = field(default_factory=dict)

    def chunks(self) -> Iterator[Chunk]:
        """Iterate over the packets in pieces of about `CHUNK_PACKETS`."""
        return self.make_chunks()

    def all_packets(self) -> Chunk:
        """Return all packets as one pair of arrays."""
        parts = list(self.chunks())
        empty = np.empty(0, np.int32)
        return np.concatenate([empty, *(p[0] for p in parts)]), np.concatenate([empty, *(p[1] for p in parts)])


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


# ---- recorded -------------------------------------------------------------------------------------------------------


def map_ranks(config: MappingConfig, ranks: int, topology: Topology, seed: int) -> Hosts:
    """Place ranks on hosts.

    Returns
    -------
    ndarray, int32[rank]
        Host of each rank; of a machine with several links the first one. Only a file may put several ranks on one host.

    Raises
    ------
    WorkloadError
        More ranks than hosts, or a bad mapping file (with file and line).
    """
    links = topology.host_links
    machines = topology.hosts // links
    if config.kind == "file":
        assert config.file is not None, "checked by model.config"
        return _read_mapping(config.file, ranks, machines) * links
    if ranks > machines:
        raise WorkloadError(f"workload: {ranks} ranks are more than the {machines} hosts of the {topology.name}")
    if config.kind == "random":
        return np.random.default_rng([seed, 1]).permutation(machines)[:ranks].astype(np.int32) * links
    if config.kind == "spread":
        return (np.arange(ranks, dtype=np.int64) * machines // max(ranks, 1)).astype(np.int32) * links
    if config.first + ranks > machines:
        raise WorkloadError(
            f"workload.mapping.first: {ranks} ranks from host {config.first} on end beyond the last host"
            f" {machines - 1}"
        )
    return np.arange(config.first, config.first + ranks, dtype=np.int32) * links


def _read_mapping(path: Path, ranks: int, machines: int) -> Hosts:
    try:
        text = read_input_text(path)
    except OSError as error:
        raise WorkloadError(f"workload.mapping.file: cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise WorkloadError(f"workload.mapping.file: {path} is not a text") from error
    hosts = []
    for number, line in enumerate(text.splitlines(), start=1):
        word = line.split("#", 1)[0].strip()
        if not word:
            continue
        if not (word.isascii() and word.isdigit() and len(word) < 20):
            raise WorkloadError(f"{path}:{number}: expected a host number, not {word!r}")
        if int(word) >= machines:
            raise WorkloadError(f"{path}:{number}: host {word} is beyond the last host {machines - 1}")
        hosts.append(int(word))
    if len(hosts) != ranks:
        raise WorkloadError(f"{path}: maps {len(hosts)} ranks, the program has {ranks}")
    return np.array(hosts, np.int32)


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
    """

    trace: Trace
    program: Program
    host: Hosts
    ends: tuple[Hosts, Hosts] | None = None

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


# ---- synthetic ------------------------------------------------------------------------------------------------------


def _rounds_of(partner: Callable[[int, int], NDArray[np.integer]], steps: int, hosts: int) -> Iterator[Chunk]:
    """Yield packets step by step, in each step one from each host in increasing number; a negative partner: none.

    `partner(start, count)` gives int[count, hosts], the destinations of steps start … start + count − 1.
    """
    source = np.arange(hosts, dtype=np.int32)
    count = max(1, CHUNK_PACKETS // hosts)
    for start in range(0, steps, count):
        block = partner(start, min(count, steps - start)).astype(np.int32)
        keep = (block >= 0) & (block != source)
        yield np.broadcast_to(source, block.shape)[keep], block[keep]


def _uniform(config: SyntheticWorkload, topology: Topology, seed: int) -> PacketStream:
    hosts, steps = topology.hosts, config.packets_per_host

    def chunks() -> Iterator[Chunk]:
        rng = np.random.default_rng([seed, 2])
        others = np.arange(hosts)

        def partner(start: int, count: int) -> NDArray[np.integer]:
            drawn = rng.integers(0, hosts - 1, size=(count, hosts))
            return drawn + (drawn >= others)

        yield from _rounds_of(partner, steps, hosts)

    return PacketStream("uniform", hosts * steps, chunks, {"packets_per_host": steps})


def _all_to_all(config: SyntheticWorkload, topology: Topology, seed: int) -> PacketStream:
    hosts = topology.hosts
    others = np.arange(hosts)
    if config.order == "random" and hosts * (hosts - 1) > MAX_PAIRS:
        raise WorkloadError(
            f"workload.order: random order of {hosts} hosts has more than {MAX_PAIRS} pairs; use kind: uniform"
        )

    def cyclic() -> Iterator[Chunk]:
        def partner(start: int, count: int) -> NDArray[np.integer]:
            offset = 1 + (start + np.arange(count)) % (hosts - 1)
            return (others + offset[:, None]) % hosts

        yield from _rounds_of(partner, config.rounds * (hosts - 1), hosts)

    def shuffled() -> Iterator[Chunk]:
        rng = np.random.default_rng([seed, 2])
        for _ in range(config.rounds):
            offset = rng.permuted(np.tile(np.arange(1, hosts, dtype=np.int32), (hosts, 1)), axis=1)

            def partner(start: int, count: int, offset: NDArray[np.int32] = offset) -> NDArray[np.integer]:
                return (others + offset[:, start:start + count].T) % hosts

            yield from _rounds_of(partner, hosts - 1, hosts)

    total = config.rounds * hosts * (hosts - 1)
    chunks = cyclic if config.order == "cyclic" else shuffled
    return PacketStream(f"all-to-all ({config.order})", total, chunks, {"rounds": config.rounds})


def _bits(name: str, hosts: int, even: bool = False) -> int:
    bits = hosts.bit_length() - 1
    if hosts != 1 << bits or (even and bits % 2):
        kind = "power of four" if even else "power of two"
        raise WorkloadError(f"workload.permutation: {name} needs a {kind} of hosts, not {hosts}")
    return bits


def permutation(name: str, topology: Topology, seed: int) -> NDArray[np.int64]:
    """Destination of each host in a permutation pattern.

    With host number x of b bits: transpose swaps the halves, bit_reverse the order of the bits, bit_complement inverts
    all, shuffle rotates left by one, butterfly swaps the first and the last bit (Dally and Towles, "Principles and
    Practices of Interconnection Networks", 2004, table 3.1). tornado moves ⌈k/2⌉ − 1 on in every dimension of a mesh or
    torus; elsewhere it moves ⌈hosts/2⌉ − 1 host numbers on.

    Returns
    -------
    ndarray, int64[host]

    Raises
    ------
    WorkloadError
        A bit permutation on a number of hosts that is not a power of two (transpose: of four).
    """
    hosts = topology.hosts
    x = np.arange(hosts, dtype=np.int64)
    if name == "random":
        return np.random.default_rng([seed, 2]).permutation(hosts).astype(np.int64)
    if name == "tornado":
        if topology.kind not in ("mesh", "torus"):
            return (x + (hosts + 1) // 2 - 1) % hosts
        router, stride, target = topology.host_router.astype(np.int64), 1, np.zeros(hosts, np.int64)
        for radix in topology.params["radices"]:
            target += (router // stride + (radix + 1) // 2 - 1) % radix * stride
            stride *= radix
        terminals = topology.params["hosts_per_router"]
        return target * terminals + topology.host_port
    bits = _bits(name, hosts, even=name == "transpose")
    if bits == 0:
        return x
    if name == "transpose":
        return (x >> bits // 2) | (x << bits // 2) & (hosts - 1)
    if name == "bit_complement":
        return hosts - 1 - x
    if name == "shuffle":
        return (x << 1) & (hosts - 1) | x >> (bits - 1)
    if name == "butterfly":
        low, high = x & 1, x >> (bits - 1) & 1
        return x if bits == 1 else x & ~np.int64(1 | 1 << (bits - 1)) | low << (bits - 1) | high
    assert name == "bit_reverse", name
    return sum(((x >> i & 1) << (bits - 1 - i) for i in range(bits)), np.zeros(hosts, np.int64))


def _permutation(config: SyntheticWorkload, topology: Topology, seed: int) -> PacketStream:
    target = permutation(config.permutation, topology, seed)
    steps = config.packets_per_host
    moving = int(np.count_nonzero(target != np.arange(topology.hosts)))

    def chunks() -> Iterator[Chunk]:
        yield from _rounds_of(lambda start, count: np.tile(target, (count, 1)), steps, topology.hosts)

    params = {"packets_per_host": steps, "silent_hosts": topology.hosts - moving}
    return PacketStream(f"permutation ({config.permutation})", moving * steps, chunks, params)


def neighbours(topology: Topology) -> list[list[int]]:
    """Neighbours of each host: the hosts of the same terminal number at directly linked routers, in port order.

    Where no two routers with hosts are linked (fat trees), host i has the neighbours i + 1 and i − 1 (modulo hosts).
    """
    found: list[list[int]] = []
    for host in range(topology.hosts):
        router, port = int(topology.host_router[host]), int(topology.host_port[host])
        peers = topology.peer_router[router]
        near = dict.fromkeys(int(topology.host_at[peer, port]) for peer in peers[peers >= 0])
        found.append([other for other in near if other >= 0 and other != host])
    if not any(found):
        return [list(dict.fromkeys([(host + 1) % topology.hosts, (host - 1) % topology.hosts]))
                for host in range(topology.hosts)]
    return found


def _neighbour(config: SyntheticWorkload, topology: Topology, seed: int) -> PacketStream:
    near = neighbours(topology)
    steps = config.packets_per_host
    most = max(map(len, near))
    degree = np.array([max(1, len(hosts)) for hosts in near])
    table = np.full((most, topology.hosts), -1, np.int64)
    for host, others in enumerate(near):
        table[:len(others), host] = others

    def partner(start: int, count: int) -> NDArray[np.integer]:
        turn = (start + np.arange(count))[:, None] % degree
        return table[turn, np.arange(topology.hosts)]

    moving = sum(bool(hosts) for hosts in near)
    return PacketStream(
        "neighbour", moving * steps, lambda: _rounds_of(partner, steps, topology.hosts), {"packets_per_host": steps}
    )


#: kind of a synthetic workload → its packets
SYNTHETIC: dict[str, Callable[[SyntheticWorkload, Topology, int], PacketStream]] = {
    "uniform": _uniform,
    "all_to_all": _all_to_all,
    "permutation": _permutation,
    "neighbour": _neighbour,
}
