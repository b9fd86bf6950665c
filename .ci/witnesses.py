"""Witnesses: a few numbers of a short run of each study whose results docs/results/data keeps.

A witness runs points of ``hopforge reproduce``, of the least kind that is still the same study: a simulation is ended
after `CYCLES` cycles, a search after its first run, other programs run to their end. Its numbers are counters, and
decimal numbers rounded to `DIGITS`: the same on every machine. `STUDIES` says which points, `WATCHED` which data a
study made besides those of its own name, `NOT_WATCHED` which data nobody watches, and why. ``origins.py`` keeps them.
"""

import hashlib
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any
from unittest.mock import patch

import numpy as np

from hopforge.sim.packet import saturation
from hopforge.sim.reproduce import REPRODUCTIONS, Options, Point, Row
from hopforge.sim.reproduce.routing.methods import costs
from hopforge.sim.reproduce.routing.networks import TITLES
from hopforge.sim.run import routing_proof
from hopforge.sim.run.simulation import Simulation

#: cycles after which a simulation is ended, and packet times where a cycle is a part of one
CYCLES, PACKET_TIMES = 1000, 200
#: so many times as long run programs, whose hosts first compute
PROGRAM_TIMES = 4
#: digits that a decimal number keeps
DIGITS = 6
#: letters of a witness that are kept as they are; of a longer one the first, and a digest of all
_LONGEST = 160
#: columns of rows that say how long something took
_TIMES = {"cpu_seconds", "seconds"}

Values = Mapping[str, Any]


@dataclass(frozen=True)
class Study:
    """Points of a study that are its witness.

    Attributes
    ----------
    every
        Key of the points of which each value is seen once; None: one point is enough.
    where
        Values that the points have.
    but
        Values of `every` that are left out.
    changes
        Values of the points that are others in the witness, to make it short.
    """

    every: str | None
    where: Values
    but: tuple[Any, ...]
    changes: Values

    def points(self, name: str) -> list[Point]:
        """Choose the points of a study: of those that have all values the first, or the first for each of a key."""
        found: dict[Any, Point] = {}
        for point in REPRODUCTIONS[name].points(Options()):
            if all(point.get(key) == value for key, value in self.where.items()):
                value = point.get(self.every) if self.every else None
                if value not in self.but:
                    found.setdefault(value, {**point, **self.changes})
        assert found, f"{name} has no point with {self.where}"
        return list(found.values())


def _study(
    every: str | None = None, *, but: tuple[Any, ...] = (), changes: Values | None = None, **where: Any
) -> Study:
    return Study(every, where, but, changes or {})


#: what learns: with another C library its last digits may differ
_AGENTS = ("DQN", "DQN, nearer", "DQN, minimal ways", "DQN, all ways")
_ONE_MESSAGE = {"messages": 1}

_MESHES = ("booksim.mesh8x8_uniform_p1", "booksim.mesh8x8_uniform_p4", "booksim.torus8x8_uniform_p1")

#: name of a study → its witness
STUDIES: dict[str, Study] = {
    "lookup.fig3.3": _study(tcams=1),
    "lookup.fig4.3": _study(),
    "lookup.fig4.5": _study("addresses", changes={"trials": 5}),
    "lookup.fig4.6": _study(program="is.A.64"),
    "lookup.fig4.10": _study("latencies"),
    "lookup.fig4.11": _study("latencies"),
    "lookup.fig4.12": _study("load_gbps"),
    "lookup.fig5.1": _study("radix"),
    "lookup.fig5.2": _study("nodes"),
    "lookup.fig5.22": _study(radix=5),
    "lookup.fig5.23": _study(block="5-D fat tree", variant="two stages"),
    "booksim.mesh8x8_uniform_p1": _study(kind="throughput"),
    "booksim.mesh8x8_uniform_p4": _study(kind="throughput"),
    "booksim.torus8x8_uniform_p1": _study(kind="throughput"),
    "booksim.dragonfly72_min_uniform_p1": _study(kind="throughput"),
    "loren.fig2.4": _study("kind"),
    "loren.fig3.1": _study("nodes"),
    "loren.fig4.5": _study("scheme"),
    "loren.table7.1": _study(network="LCR, LOREN and ACRO"),
    "loren.fig4.3": _study("scheme"),
    "loren.fig4.7": _study("traffic", side=8),
    "loren.table4.2": _study("scheme", side=8),
    "loren.fig6.1": _study("scheme"),
    "loren.fig6.1-landmarks": _study("scheme"),
    "loren.fig6-bounds": _study(),
    "acro.fig5.4": _study(),
    "acro.fig3.4": _study("method", nodes=64),
    "outflank.table2": _study("algorithm", pattern="uniform", changes=_ONE_MESSAGE),
    "outflank.table3": _study("algorithm", pattern="uniform", changes=_ONE_MESSAGE),
    "outflank.eta": _study(pattern="uniform", algorithm="ofr", eta=3.0, changes=_ONE_MESSAGE),
    "outflank.assumptions": _study(algorithm="ofr", changes=_ONE_MESSAGE),
    "outflank.mesh": _study("algorithm", mesh="8×8", pattern="uniform"),
    "dqn.search": _study(setting="star-channel"),
    "dqn.beyond": _study("routing", but=_AGENTS),
    "dqn.dragonfly": _study("routing", but=_AGENTS),
    "dqn.failures": _study("routing", but=_AGENTS),
    "dqn.decision_delay": _study("algorithm", but=_AGENTS),
    "qadaptive.fig5": _study("algorithm", changes={"hosts": 72}),
    "qadaptive.fig6": _study("algorithm"),
    "qadaptive.fig8": _study(),
    "qadaptive.fig9": _study("pattern", algorithm="Q-adaptive"),
    "qadaptive.patterns": _study("pattern", algorithm="Q-adaptive"),
    "qadaptive.maxq": _study(max_q=2, pattern="ADV+1"),
    "qadaptive.cost": _study("what"),
    "qadaptive.groups": _study("network", method="Q-adaptive"),
    "qadaptive.failures": _study(share=0.12, algorithm="Q-adaptive"),
    "qadaptive.bursts": _study(burst_packets=1000.0),
    "qadaptive.outage": _study(algorithm="Q-adaptive"),
    "routing.qos": _study("router", flood=0.5),
    "routing.hyperx": _study("method", pattern="uniform"),
    "routing.slim_fly": _study("method", pattern="uniform"),
    "routing.polarfly": _study("method", pattern="uniform"),
    "routing.dragonfly": _study("method", pattern="uniform"),
    "routing.dragonfly_plus": _study("method", pattern="uniform"),
    "routing.fat_tree": _study("method", pattern="uniform"),
    "routing.torus": _study("method", pattern="uniform"),
    "routing.random": _study("method", pattern="uniform"),
    "apps.fig4.7": _study(program="dt"),
    "apps.fig4.8": _study(program="dt"),
    "apps.fig5.25": _study(program="dt"),
    "apps.fig5.27": _study(program="dt"),
    "apps.fig5.28": _study(program="dt"),
    "apps.engines": _study(program="all-to-all", changes={"simgrid": False}),
    "training.llama7b": _study(network="HyperX", engine="packet", changes={"microbatches": 1}),
    "collectives.cycles": _study(network="4x4 mesh"),
    "rules.index-bits": _study(index_bits=16, mix="all /24"),
    "rules.zipf": _study(zipf=1.4),
    "jobs.fig2.13": _study("kind"),
    "jobs.placements": _study("scheduler"),
    "jobs.interference": _study("method"),
    "spraying.fat_tree": _study("way", load=0.2, fails=False),
    "spraying.dragonfly": _study("way", load=0.2, fails=False),
}

#: data → studies that made them; a name may be a pattern. Data not named here or below: the study of their name.
WATCHED: dict[str, tuple[str, ...]] = {
    "applications-caches": ("apps.fig5.25", "lookup.fig4.6"),
    "applications-differences": ("apps.engines",),
    "applications-engines*": ("apps.engines",),
    "applications-gains": ("apps.fig4.7", "apps.fig4.8", "apps.fig5.25", "apps.fig5.27", "apps.fig5.28"),
    "applications-simgrid": ("apps.engines",),
    "apps.fig5.26": ("apps.fig5.28",),
    "apps.study": ("apps.fig5.25", "lookup.fig4.6"),
    "booksim-adversarial": ("routing.slim_fly", "routing.polarfly"),
    "booksim-allocators": _MESHES,
    "booksim-cases": _MESHES,
    "booksim-classes": _MESHES,
    "booksim-dragonfly": ("booksim.dragonfly72_min_uniform_p1",),
    "booksim-imported": _MESHES,
    "booksim-knee": _MESHES,
    "booksim-reads-writes": _MESHES,
    "booksim-release": _MESHES,
    "booksim-speculative": _MESHES,
    "booksim-unlike": _MESHES,
    "collectives.programs": ("collectives.cycles",),
    "dragonfly-2550": ("qadaptive.fig9",),
    "dragonfly-2550-definitions": ("qadaptive.patterns",),
    "dragonfly-absolute-latency": ("qadaptive.fig6",),
    "dragonfly-estimate-widths": ("qadaptive.fig6",),
    "dragonfly-failures": ("qadaptive.failures", "qadaptive.bursts"),
    "dragonfly-groups-1000": ("qadaptive.groups",),
    "dragonfly-latency*": ("qadaptive.fig6",),
    "dragonfly-load-steps": ("qadaptive.fig8",),
    "dragonfly-maxq": ("qadaptive.maxq",),
    "dragonfly-outage": ("qadaptive.outage",),
    "dragonfly-q-table-cost": ("qadaptive.cost",),
    "dragonfly-throughput": ("qadaptive.fig5",),
    "jobs.day": ("jobs.placements", "lookup.fig4.6"),
    "learned-beyond": ("dqn.beyond",),
    "learned-dragonfly": ("dqn.dragonfly",),
    "learned-failures": ("dqn.failures",),
    "learned-search": ("dqn.search",),
    "learned-best": ("dqn.search",),
    "lookup.fig4.4": ("lookup.fig4.3",),
    "lookup.fig5.24": ("lookup.fig5.23",),
    "lookup.fig5.30": ("lookup.fig4.3",),
    "lookup.table6.1": ("lookup.fig5.23",),
    "loren-imbalanced": ("loren.fig4.7",),
    "loren-landmarks": ("loren.fig6.1-landmarks",),
    "loren-layers": ("acro.fig5.4",),
    "loren-loads": ("loren.table4.2",),
    "loren-paths": ("loren.fig4.3",),
    "loren-simulation": ("loren.fig6.1",),
    "loren-sizes": ("loren.fig3.1", "loren.fig4.5"),
    "loren-throughput": ("loren.fig6.1", "loren.fig6-bounds"),
    "loren-uniform1024": ("loren.fig6.1",),
    "routing-dragonfly-1000": ("routing.dragonfly",),
    "routing-dragonfly_plus-1000": ("routing.dragonfly_plus",),
    "routing-fat_tree-1000": ("routing.fat_tree",),
    "routing-fat_tree-10000": ("routing.fat_tree",),
    "routing-hyperx-1000": ("routing.hyperx",),
    "routing-polarfly-1000": ("routing.polarfly",),
    "routing-random-1000": ("routing.random",),
    "routing-slim_fly-1000": ("routing.slim_fly",),
    "routing-slim_fly-10000": ("routing.slim_fly",),
    "routing-torus-1000": ("routing.torus",),
    "routing-torus-10000": ("routing.torus",),
    "rules.entries": ("rules.zipf",),
    "rules.mix": ("rules.zipf",),
    "rules.updates": ("rules.zipf",),
    "rules.ways": ("rules.index-bits",),
    "rules.ways-zipf": ("rules.index-bits",),
    "spraying-findings": ("spraying.fat_tree", "spraying.dragonfly"),
    "torus-decision-delay": ("dqn.decision_delay",),
    "torus-detours*": ("outflank.table3",),
    "torus-largest-load-*": ("outflank.table2",),
    "torus-meshes": ("outflank.mesh",),
    "torus-one-answer-changed": ("outflank.assumptions",),
    "training-reading": ("training.llama7b",),
    "training.moe": ("training.llama7b",),
}

_GATES = "gates need yosys, ABC and a cell library that is not part of the repository"
_TIMES_ONLY = "times of one machine"
_WORDS = "words, no numbers of a run"
#: data that no witness watches → why; a name may be a pattern
NOT_WATCHED: dict[str, str] = {
    "applications-allocator-area": _GATES,
    "applications-speed": _TIMES_ONLY,
    "boards-*": "designs for FPGAs: their tools run for minutes",
    "booksim-reference": "recorded runs of BookSim 2, not of hopforge",
    "collectives.area": _GATES,
    "cosimulation-*": "co-simulation takes minutes; it compares twins cycle by cycle and fails by itself",
    "coverage-*": _WORDS,
    "dragonfly-speed": _TIMES_ONLY,
    "generation-routers": _TIMES_ONLY,
    "irregular-*": "times, and tables of networks too large for a test",
    "learned-cost": _GATES,
    "lookup-npb256": "the least run takes 6 s; lookup.fig4.6 watches the same caches with 64 ranks",
    "lookup.help": "the least run takes 3 s; lookup.fig4.6 watches caches without help",
    "lookup.wavelengths": "the least run takes 8 s",
    "loren-figures": _WORDS,
    "measured-*": "rows of many commands; their tests demand the aims",
    "mutation-*": "mutation tests take hours",
    "routing-setting": _WORDS,
    "rules.area": _GATES,
    "shared-lookup-area": _GATES,
    "shared-lookup-contention": "a sweep of configs/sweep_shared_lookup.yml, not of hopforge reproduce",
    "shared-lookup-rival": _GATES,
    "speed-*": _TIMES_ONLY,
    "spraying-setting": _WORDS,
    "synthesis-*": _GATES,
    "torus-int8": "agents learn, and with another C library their last digits may differ",
    "torus-speed": _TIMES_ONLY,
}


#: name of a study → what its points hold that no run gives, and that would be lost where a run ends early
BESIDE_RUNS: dict[str, Callable[[Point], Row]] = {f"routing.{network}": costs for network in TITLES}


def studies_of(data: str) -> tuple[str, ...]:
    """Name the studies whose witnesses watch some data; (): none does, see `NOT_WATCHED`.

    Raises
    ------
    ValueError
        The tables above say nothing of it, or two things.
    """
    own = tuple(name for name in STUDIES if data in (name, name.replace(".", "-", 1)))
    others = [names for pattern, names in WATCHED.items() if fnmatchcase(data, pattern)]
    reasons = [reason for pattern, reason in NOT_WATCHED.items() if fnmatchcase(data, pattern)]
    said = [*([own] if own else []), *others, *[() for _ in reasons]]
    if len(said) != 1:
        raise ValueError(
            f"{data}: must be in one place of .ci/witnesses.py, STUDIES, WATCHED or NOT_WATCHED, not {len(said)}"
        )
    return said[0]


class Enough(Exception):  # noqa: N818 - says that a run has told what is wanted, no mistake
    """A run has given its numbers."""

    def __init__(self, numbers: Row) -> None:
        super().__init__(numbers)
        self.numbers = numbers


def _advance(run: Simulation, cycles: int) -> int:
    """Simulate up to the last cycle of a witness; there the run ends with what it has counted."""
    per_flit = run.built.flit_cycles
    last = CYCLES if per_flit == 1 else PACKET_TIMES * per_flit
    if run.placed is not None:
        last *= PROGRAM_TIMES
    code = _whole_advance(run, min(cycles, last - int(run.state["cycle"])))
    state = run.state
    if int(state["cycle"]) < last:
        return code
    counters = np.ascontiguousarray(state["output_port"]["flits"], np.int64)
    raise Enough({
        "packets": int(state["measured"]), "latency": int(state["latency_sum"]), "hops": int(state["hops_sum"]),
        "flits": int(counters.sum()), "links": f"{zlib.crc32(counters.astype('<i8').tobytes()):08x}",
    })  # fmt: skip


def _run_packets(*arguments: Any, **named: Any) -> None:
    found = _whole_run_packets(*arguments, **named)
    names = ("lifetime_ns", "hops", "outflanked", "wrapped", "refused")
    raise Enough({name: getattr(found, name) for name in names})


_whole_advance, _whole_run_packets = Simulation.advance, saturation.run_packets


@contextmanager
def short_runs() -> Iterator[None]:
    """End every simulation after its first cycles, and leave out the proof that it cannot deadlock."""
    with (
        patch.object(Simulation, "advance", _advance),
        patch.object(routing_proof, "prove_routing", lambda *_, **__: ""),
        patch.object(saturation, "run_packets", _run_packets),
    ):
        yield


def witness(name: str) -> str:
    """Run the witness of a study and give its numbers as one line."""
    found: list[Row] = []
    with short_runs():
        for point in STUDIES[name].points(name):
            if name in BESIDE_RUNS:
                found.append(BESIDE_RUNS[name](point))
            try:
                found += REPRODUCTIONS[name].measure(point, Options())
            except Enough as run:
                found.append(run.numbers)
    return shortened("; ".join(_words(row) for row in found))


def _words(row: Row) -> str:
    return ", ".join(f"{key} {_rounded(value)}" for key, value in row.items() if key not in _TIMES)


def _rounded(value: Any) -> str:
    return f"{value:.{DIGITS}g}" if isinstance(value, float) else str(value)


def shortened(text: str) -> str:
    """Give the text, or its first letters and a digest of all."""
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST]}… sha256 {hashlib.sha256(text.encode()).hexdigest()[:12]}"
