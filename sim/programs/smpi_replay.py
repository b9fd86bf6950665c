"""Engine `flow` by SimGrid: the program of a configuration, replayed by `smpirun -replay`."""

import tempfile
from collections.abc import Iterator, Set
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config import Config
from hopforge.model.config.workload import CollectivesConfig, ProgramWorkload
from hopforge.model.topology import Topology
from hopforge.model.workload.collective_choice import OPERATIONS
from hopforge.model.workload.operations import COMPUTE, POST, SEND, SLEEP
from hopforge.model.workload.program import Program
from hopforge.model.workload.read_trace import write_trace
from hopforge.model.workload.trace import COLLECTIVES, Action, Trace
from hopforge.sim.programs.simgrid import simgrid_text
from hopforge.sim.programs.smpi_command import Progress, check_hosts, run_smpi, settings
from hopforge.sim.traffic.placed import PlacedProgram

#: action and algorithm of `workload.collectives` → SimGrid's name, where both send the same messages in the same rounds
SAME_IN_SIMGRID = {
    ("barrier", "bruck"): "ompi_bruck",
    ("bcast", "binomial"): "binomial_tree",
    ("reduce", "binomial"): "binomial",
    ("allreduce", "recursive_doubling"): "rdb",
    ("alltoall", "pairwise"): "pair",  # powers of two of ranks; else ring
    ("alltoallv", "pairwise"): "pair",
}
_FIRST_TAG = 1 << 24
_BYTE = 6


def replayed(
    config: Config, topology: Topology, placed: PlacedProgram, progress: Progress | None = None
) -> NDArray[np.float64]:
    """Replay a program and return when each rank was at its end, float64[rank], in seconds.

    Parameters
    ----------
    config : Config
        Sections `app`, `timing`, and what decides on routes.
    topology : Topology
        The network.
    placed : PlacedProgram
        The program on its hosts.
    progress : callable, optional
        Called with the ranks that are at their end, and all.

    Raises
    ------
    SmpiError
        SimGrid is missing, cannot do that, or failed.
    ProgramError
        Ranks wait for each other.
    """
    with tempfile.TemporaryDirectory(prefix="hopforge-smpi-") as name:
        folder = Path(name)
        words = write_replay(folder, config, topology, placed)
        return run_smpi(words, placed.trace.ranks, folder, progress).ended


def write_replay(folder: Path, config: Config, topology: Topology, placed: PlacedProgram) -> list[str]:
    """Write platform, hosts and trace (folder ``trace``), and return what `smpirun` is called with in `folder`.

    Raises
    ------
    SmpiError
        SimGrid cannot do what the configuration says, or ranks are on too many hosts.
    """
    trace, workload = placed.trace, config.workload
    assert isinstance(workload, ProgramWorkload), "it has been placed"
    own = own_names(trace.ranks, workload.collectives)
    chosen = [f"--cfg={item}" for item in (*settings(config), *own)]
    by_simgrid = {item.removeprefix("smpi/").partition(":")[0] for item in own}
    write_platform(folder, config, topology, placed.host)
    computing = config.app.host_gflops is not None
    write_trace(simgrid_trace(trace, placed.program, by_simgrid, computing=computing), folder / "trace")
    texts = (f"trace/rank-{rank + 1}.txt\n" for rank in range(trace.ranks))
    (folder / "replay").write_text("".join(texts), encoding="utf-8")
    return ["-hostfile", "hosts", "-platform", "platform.xml", "-replay", "replay", *chosen]


def write_platform(folder: Path, config: Config, topology: Topology, host: NDArray[np.integer]) -> None:
    """Write ``platform.xml`` and ``hosts``, for ranks on the hosts ``host[rank]``; each rank has a core of its own.

    Raises
    ------
    SmpiError
        Ranks on more than `MAX_FULL_HOSTS` hosts.
    """
    check_hosts(len(np.unique(host)))
    cores = int(np.bincount(host).max(initial=1))
    text = simgrid_text(topology, config, full=True, hosts=host, cores=cores)
    (folder / "platform.xml").write_text(text, encoding="utf-8")
    (folder / "hosts").write_text("".join(f"h{number}\n" for number in host.tolist()), encoding="utf-8")


def computed_seconds(program: Program, host_gflops: float | None) -> NDArray[np.float64]:
    """Return how long each rank computes and sleeps, float64[rank]."""
    rank = np.repeat(np.arange(program.ranks), np.diff(program.first))
    total = np.zeros(program.ranks)
    for kind, second in ((COMPUTE, 0.0 if host_gflops is None else 1e-9 / host_gflops), (SLEEP, 1.0)):
        here = program.kind == kind
        total += np.bincount(rank[here], program.amount[program.operand[here]], program.ranks) * second
    return total


def own_names(ranks: int, collectives: CollectivesConfig) -> list[str]:
    """Return SimGrid's settings for the collectives that it does with the same messages as `collectives`."""
    chosen = (
        (name, theirs) for (name, algorithm), theirs in SAME_IN_SIMGRID.items()
        if collectives.named(OPERATIONS[name]) == algorithm
    )
    power = ranks & (ranks - 1) == 0
    return [f"smpi/{name}:{'ring' if theirs == 'pair' and not power else theirs}" for name, theirs in chosen]


def simgrid_trace(trace: Trace, program: Program, own: Set[str], *, computing: bool) -> Trace:
    """Return the program as SimGrid replays it.

    Parameters
    ----------
    trace, program : Trace, Program
        The calls, and the same as messages.
    own : set of str
        Collectives that SimGrid does by itself; others become messages with tags of their own.
    computing : bool
        False: computing takes no time.
    """
    replaced = COLLECTIVES - own
    free: dict[int, Action] = {}

    def kept(action: Action) -> Action:
        if computing or not action.amount or action.name == "sleep":
            return action
        if id(action) not in free:
            free[id(action)] = replace(action, amount=0.0)
        return free[id(action)]

    programs = []
    for rank, actions in enumerate(trace.actions):
        calls = [] if actions and actions[0].name == "init" else [Action("init")]
        first, last = program.first[rank], program.first[rank + 1]
        of_action = program.action[first:last]
        for index, action in enumerate(actions):
            if action.name in replaced or action.communicator:
                low, high = first + np.searchsorted(of_action, [index, index + 1])
                calls += _messages(program, rank, int(low), int(high), computing=computing)
            elif (computing or action.name != "compute") and action.name != "communicator":
                calls.append(kept(action))
        programs.append(tuple(calls))
    return Trace.of(trace.name, programs, trace.files, trace.lines)


def _messages(program: Program, rank: int, low: int, high: int, *, computing: bool) -> Iterator[Action]:
    """Yield the operations `low` … `high` − 1 of a rank as calls."""
    for kind, number in zip(program.kind[low:high].tolist(), program.operand[low:high].tolist(), strict=True):
        if kind == COMPUTE:
            if computing:
                yield Action("compute", amount=float(program.amount[number]))
            continue
        source, target = int(program.source[number]), int(program.destination[number])
        tag = _FIRST_TAG + number
        if kind in (SEND, POST):
            name, peer = ("isend", target) if kind == SEND else ("irecv", source)
            yield Action(name, peer=peer, tag=tag, count=int(program.size_bytes[number]), datatype=_BYTE)
        else:
            yield Action("wait", source=source, peer=target, tag=tag)
