"""`hopforge collectives`: barrier, broadcast and all-reduce by the collective plane, beside the same by hosts."""

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pandas as pd

from hopforge.model.config import Config
from hopforge.model.config.workload import CollectivesConfig, CollectiveWorkload, MappingConfig
from hopforge.model.errors import UserError
from hopforge.model.output.results import run_metadata, staged, write_metadata, write_tables
from hopforge.model.router.collective_params import OPERATIONS, Flit
from hopforge.model.router.collective_plane import PlaneDesign, configured_plane
from hopforge.model.router.collective_unit import combined
from hopforge.model.topology.link_times import in_cycles
from hopforge.sim.programs.app_setup import prepare_app
from hopforge.sim.programs.application import run_app
from hopforge.sim.programs.program_routers import cycle_ns, packet_config, sized_router

__all__ = ["BY_HOSTS", "CollectiveRun", "CollectiveSetup", "plane_cycles", "prepare_collectives", "run_collectives"]

BY_HOSTS: dict[str, tuple[str, ...]] = {
    "barrier": ("bruck", "recursive_doubling", "binomial"),
    "bcast": ("binomial", "ring", "scatter_ring_allgather"),
    "allreduce": ("recursive_doubling", "ring", "halving_doubling", "binomial"),
}
"""Operation → algorithms of hosts that it is compared with (docs/definitions/collective-rules.md)."""
_IN_NETWORK = {"barrier": "barrier", "bcast": "multicast", "allreduce": "sum"}
_MOST_STEPS = 20_000_000
"""Words of an operation times units of a tree."""

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class CollectiveSetup:
    """What is compared.

    Attributes
    ----------
    config : Config
        With times of `packet_config`.
    original : Config
        As `run_app` wants it.
    design : PlaneDesign
        The plane; its links are as long as those of the routers.
    host_cycles : int
        Latency of the links to hosts.
    """

    config: Config
    original: Config
    design: PlaneDesign
    host_cycles: int

    @property
    def cases(self) -> list[tuple[int, str, int]]:
        """Group, operation and words of everything that is timed."""
        words = tuple(dict.fromkeys(self.config.collective_plane.words))
        return [
            (group, operation, count)
            for group in range(len(self.design.trees))
            for operation in BY_HOSTS
            for count in ((0,) if operation == "barrier" else words)
        ]


@dataclass(frozen=True)
class CollectiveRow:
    """One operation, done in one way.

    Attributes
    ----------
    group, hosts : int
        Number of the group, and its members.
    operation : str
        barrier, bcast, allreduce.
    words, bytes : int
        Of the vector.
    by : str
        ``network``, or the algorithm of the hosts.
    cycles : int
        From the first flit of the fastest host to the last one at the slowest.
    ns : float
        The same in ns.
    """

    group: int
    hosts: int
    operation: str
    words: int
    bytes: int
    by: str
    cycles: int
    ns: float


@dataclass(frozen=True)
class CollectiveRun:
    """What was timed."""

    setup: CollectiveSetup
    found: tuple[CollectiveRow, ...]

    def rows(self) -> Iterator[tuple[str, str]]:
        """Say what was compared: subject and words."""
        config, design = self.setup.config, self.setup.design
        p, router = design.params, config.router
        longest = max((link.latency_cycles for link in design.links), default=0)
        yield "network", f"{design.network}, {len(design.hosts)} hosts"
        yield "plane", f"words of {p.width_bits} bits, {p.groups} groups of {p.buffer_flits} flits at each input"
        yield "routers", f"flits of {config.traffic.flit_bytes} bytes, {router.vcs} VCs of {router.buffer_flits} flits"
        latency = f"links of up to {longest} cycle{'' if longest == 1 else 's'}"
        yield "both", f"cycle {cycle_ns(config):.4g} ns, {latency}, {self.setup.host_cycles} to hosts"
        for number, tree in enumerate(design.trees):
            yield f"group {number}", f"{len(tree.hosts)} hosts, root router {tree.root}, depth {tree.depth}"

    def lines(self) -> list[list[str]]:
        """Return the table of the terminal, its heading first."""
        table = [["group", "operation", "words", "in the network", "by hosts", "best algorithm", "ratio"]]
        for group, operation, words in self.setup.cases:
            part = [r for r in self.found if (r.group, r.operation, r.words) == (group, operation, words)]
            own = next(row for row in part if row.by == "network")
            best = min((row for row in part if row.by != "network"), key=lambda row: row.cycles)
            ratio = f"{best.cycles / own.cycles:.2f}"
            table.append([f"{group}", operation, f"{words}", f"{own.cycles:,}", f"{best.cycles:,}", best.by, ratio])
        return table

    def frame(self) -> pd.DataFrame:
        """Return all rows."""
        return pd.DataFrame([asdict(row) for row in self.found])

    def write(self, folder: Path) -> None:
        """Write the table (CSV, Parquet) and the metadata to repeat it (JSON)."""
        with staged(folder) as scratch:
            write_tables(scratch, {"collectives": self.frame()})
            write_metadata(scratch, run_metadata(self.setup.original))


def prepare_collectives(config: Config) -> CollectiveSetup:
    """Make plane and routers of a configuration ready.

    Raises
    ------
    UserError
        Groups that do not fit the network, hosts with several links, a network that the router simulator cannot run,
        or vectors that take too long.
    """
    host_links = getattr(config.topology, "host_links", 1)
    if host_links != 1:
        raise UserError(f"topology.host_links must be 1 for hopforge collectives, not {host_links}")
    app = config.app.model_copy(update={"engine": "packet"})
    workload = CollectiveWorkload(kind="collective", operation="barrier")
    original = config.model_copy(update={"app": app, "workload": workload})
    timed = packet_config(sized_router(original))
    design = configured_plane(timed)
    words = max(config.collective_plane.words)
    for number, tree in enumerate(design.trees):
        units = len(tree.writes)
        if units * words > _MOST_STEPS:
            raise UserError(
                f"collective_plane.words: {words} words in the {units} units of group {number} are {units * words:,} "
                f"steps, more than {_MOST_STEPS:,}"
            )
    with _by_hosts(original, design.trees[0].hosts, "barrier", BY_HOSTS["barrier"][0], 0) as by_hosts:
        prepare_app(by_hosts)
    return CollectiveSetup(timed, original, design, in_cycles(timed.router, "host_latency_cycles"))


def run_collectives(setup: CollectiveSetup, progress: Progress | None = None) -> CollectiveRun:
    """Time every operation in the network and by each algorithm of the hosts.

    Hosts begin together, send as fast as credits allow and take what comes at once; combining takes hosts no time.

    Raises
    ------
    UserError
        The router simulator cannot run it.
    """
    found: list[CollectiveRow] = []
    cases = setup.cases
    cycle = cycle_ns(setup.config)
    for done, (group, operation, words) in enumerate(cases):
        if progress is not None:
            progress(done, len(cases))
        hosts = setup.design.trees[group].hosts
        size = words * setup.config.collective_plane.width_bits // 8

        taken = {
            "network": plane_cycles(setup.design, group, _IN_NETWORK[operation], max(1, words), setup.host_cycles)
        }
        for algorithm in BY_HOSTS[operation]:
            taken[algorithm] = _host_cycles(setup, hosts, operation, algorithm, size)
        found += [
            CollectiveRow(group, len(hosts), operation, words, size, by, cycles, cycles * cycle)
            for by, cycles in taken.items()
        ]
    if progress is not None:
        progress(len(cases), len(cases))
    return CollectiveRun(setup, tuple(found))


def plane_cycles(design: PlaneDesign, group: int, operation: str, words: int, host_cycles: int = 1) -> int:
    """Return the cycles from the first word that stands at a host to the last result at the last host.

    Parameters
    ----------
    design : PlaneDesign
        The plane.
    group : int
        Whose operation.
    operation : str
        A name of `OPERATIONS`; of a multicast the lowest host is the source.
    words : int
        Of the vector, at least one.
    host_cycles : int
        Latency of the links to hosts.

    Raises
    ------
    ValueError
        No word, whose result would never come.
    """
    if words < 1:
        raise ValueError(f"words must be at least 1, not {words}")
    p, hosts = design.params, design.trees[group].hosts
    plane = design.golden(host_cycles)
    for write in design.writes:
        plane.outputs()
        plane.cycle({}, {}, write)
    began, code = plane.now, OPERATIONS.index(operation)
    senders = hosts[:1] if operation == "multicast" else hosts
    sent = dict.fromkeys(senders, 0)
    credits = dict.fromkeys(senders, p.buffer_flits)
    left = dict.fromkeys(hosts, words)
    wanted = combined(code, [1] * len(senders), p.width_bits)
    while left:
        results, back = plane.outputs()
        for host, groups in back.items():
            credits[host] += groups >> group & 1
        flits = {}
        for host in list(sent):
            if credits[host]:
                flits[host] = Flit(group, code, 0, int(sent[host] == words - 1), 0, 1)
                credits[host] -= 1
                sent[host] += 1
                if sent[host] == words:
                    del sent[host]
        for host, flit in results.items():
            assert flit.word == wanted and not flit.error, f"host {host} gets {flit}"
            left[host] -= 1
            if not left[host]:
                del left[host]
        plane.cycle(flits, dict.fromkeys(results, 1 << group))
    return plane.now - began


def _host_cycles(setup: CollectiveSetup, hosts: Sequence[int], operation: str, algorithm: str, size: int) -> int:
    """Return the cycles of an operation by hosts, in the router simulator."""
    with _by_hosts(setup.original, hosts, operation, algorithm, size) as config:
        run = run_app(config)
    return round(run.found.makespan_s * 1e9 / cycle_ns(setup.config))


@contextlib.contextmanager
def _by_hosts(config: Config, hosts: Sequence[int], operation: str, algorithm: str, size: int) -> Iterator[Config]:
    """Yield the configuration whose program is an operation of these hosts; their file is there meanwhile."""
    with tempfile.TemporaryDirectory(prefix="hopforge-") as scratch:
        places = Path(scratch) / "hosts.txt"
        (Path(scratch) / places.name).write_text("".join(f"{host}\n" for host in hosts))
        workload = CollectiveWorkload.model_validate({
            "kind": "collective", "operation": operation, "bytes": size, "ranks": len(hosts),
            "mapping": MappingConfig(kind="file", file=places),
            "collectives": CollectivesConfig.model_validate({operation: algorithm}),
        })  # fmt: skip
        yield config.model_copy(update={"workload": workload})
