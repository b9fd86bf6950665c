"""Speed of the engines for programs, in processor time, beside SimGrid's replay of the same traces if it is installed.

The two run the same program on the same network in turn, a few times each; the ratio of each pair is taken, so that a
machine whose speed changes during the measurement disturbs little.
"""

import os
import shutil
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from hopforge.model.config import Config, parse_config
from hopforge.model.config.workload import ProgramWorkload
from hopforge.model.errors import UserError
from hopforge.model.topology import Topology, build
from hopforge.sim.programs.application import run_app
from hopforge.sim.programs.flow_engine import FlowRun
from hopforge.sim.programs.smpi_command import run_smpi
from hopforge.sim.programs.smpi_replay import write_replay
from hopforge.sim.traffic.placed import PlacedProgram, place_program

__all__ = ["CASES", "CLOCK", "AppCase", "chosen_cases", "measure_app", "trace_case"]

CLOCK = "process time, user and system; SimGrid: of smpirun and its children"

_Found = TypeVar("_Found")


@dataclass(frozen=True)
class AppCase:
    """A program on a network.

    Attributes
    ----------
    name : str
        For people.
    workload, topology : str
        Sections of a configuration (YAML).
    long : bool
        Takes minutes: with ``--full`` only.
    packet : bool
        Time engine packet, too.
    limit_s, packet_limit_s : float, optional
        The aims: processor seconds of making and running the program by engine flow, and by engine packet.
    """

    name: str
    workload: str
    topology: str = "{kind: torus, radices: [4, 4, 4]}"
    long: bool = False
    packet: bool = False
    limit_s: float | None = None
    packet_limit_s: float | None = None


def _npb(benchmark: str, size: str, ranks: int) -> tuple[str, str]:
    return (
        f"{benchmark.upper()} {size}, {ranks} ranks",
        f"{{kind: npb, benchmark: {benchmark}, class: {size}, ranks: {ranks}}}",
    )


_LARGE_TORUS = "{kind: torus, radices: [8, 8, 4]}"

CASES: Sequence[AppCase] = (
    AppCase(*_npb("is", "A", 64), packet=True, packet_limit_s=60),
    AppCase(*_npb("cg", "A", 64)),
    AppCase(*_npb("mg", "A", 64)),
    AppCase(*_npb("ft", "A", 64)),
    AppCase(*_npb("is", "A", 256), topology=_LARGE_TORUS, long=True, limit_s=30),
    AppCase(*_npb("cg", "A", 256), topology=_LARGE_TORUS, long=True),
    AppCase(*_npb("lu", "W", 64), long=True),
)
"""What `hopforge bench app` measures, on a torus of as many hosts as ranks."""


def chosen_cases(full: bool, traces: Sequence[Path]) -> list[AppCase]:
    """Cases without the long ones, or with them, and recorded programs of the user's."""
    return [*(case for case in CASES if full or not case.long), *map(trace_case, traces)]


def trace_case(path: Path) -> AppCase:
    """Return a recorded program of at most 64 ranks as a case.

    Raises
    ------
    UserError
        No such file or folder.
    """
    if not path.exists():
        raise UserError(f"--trace: no such file: {path}")
    return AppCase(path.name, f"{{kind: trace, file: {str(path.absolute())!r}}}")


def _config(case: AppCase, workload: str, engine: str = "flow") -> Config:
    return parse_config(
        f"name: bench\ntopology: {case.topology}\nworkload: {workload}\napp: {{engine: {engine}, backend: embedded}}\n"
    )


def _placed(config: Config, topology: Topology) -> PlacedProgram:
    assert isinstance(config.workload, ProgramWorkload), "cases are programs"
    return place_program(config.workload, topology, config.seed)


def _timed(work: Callable[[], _Found]) -> tuple[float, _Found]:
    start = time.process_time()
    found = work()
    return time.process_time() - start, found


def time_ours(config: Config, topology: Topology) -> tuple[float, float, float]:
    """Read the trace of `config` and run it; returns CPU seconds of the engine, of all, and the makespan in seconds."""
    reading, placed = _timed(lambda: _placed(config, topology))

    def engine() -> float:
        run = FlowRun(config, topology, placed)
        ended = run.run()
        assert ended, "the program has been matched"
        return float(run.state.rank["finished"].max())

    running, makespan = _timed(engine)
    return running, reading + running, makespan


def time_simgrid(words: Sequence[str], ranks: int, folder: Path) -> tuple[float, float]:
    """Let SimGrid replay what `write_replay` wrote; returns CPU seconds and the makespan in seconds.

    Raises
    ------
    SmpiError
        It failed.
    """
    before = os.times()
    ended = run_smpi(words, ranks, folder).ended
    after = os.times()
    seconds = after.children_user + after.children_system - before.children_user - before.children_system
    return seconds, float(ended.max())


def measure_app(cases: Sequence[AppCase], repetitions: int = 3) -> Iterator[dict[str, Any]]:
    """Time every case and yield a row of a table for each; with SimGrid's times if it is installed.

    Parameters
    ----------
    cases : sequence of AppCase
        What to time.
    repetitions : int
        Timed runs of engine flow and of SimGrid, at least 1; the medians are given. Engine packet runs once.

    Raises
    ------
    ValueError
        No repetition.
    UserError
        A bad trace, or SimGrid failed.
    """
    if repetitions < 1:
        raise ValueError(f"repetitions must be at least 1, not {repetitions}")
    small = AppCase("", "{kind: collective, operation: barrier, ranks: 4}")
    for engine in ("flow", *(["packet"] if any(case.packet for case in cases) else [])):
        run_app(_config(small, small.workload, engine))  # compile
    for case in cases:
        with TemporaryDirectory(prefix="hopforge-bench-") as folder:
            yield _measured(case, Path(folder), repetitions)


def _measured(case: AppCase, folder: Path, repetitions: int) -> dict[str, Any]:
    config = _config(case, case.workload)
    topology = build(config.topology, config.address)
    making, placed = _timed(lambda: _placed(config, topology))
    words = write_replay(folder, config, topology, placed)
    recorded = _config(case, f"{{kind: trace, file: {str(folder / 'trace')!r}}}")
    ours, theirs = [], []
    for _ in range(repetitions):
        ours.append(time_ours(recorded, topology))
        if shutil.which("smpirun") is not None:
            theirs.append(time_simgrid(words, placed.program.ranks, folder))
    makespan = ours[0][2]
    row: dict[str, Any] = {
        "case": case.name, "network": topology.name, "ranks": placed.program.ranks,
        "messages": placed.program.messages, "repetitions": repetitions, "make_s": making,
        "engine_s": statistics.median(each[0] for each in ours), "whole_s": statistics.median(each[1] for each in ours),
        "limit_s": case.limit_s, "makespan_s": makespan,
    }  # fmt: skip
    if theirs:
        row |= {"simgrid_s": statistics.median(each[0] for each in theirs)}
        for name, place in (("engine_ratio", 0), ("whole_ratio", 1)):
            ratios = [b[0] / a[place] for a, b in zip(ours, theirs, strict=True)]
            row |= {name: statistics.median(ratios), f"{name}_lowest": min(ratios), f"{name}_highest": max(ratios)}
        row |= {"simgrid_makespan_s": theirs[0][1], "deviation_percent": 100 * (makespan / theirs[0][1] - 1)}
    if case.packet:
        seconds, run = _timed(lambda: run_app(_config(case, case.workload, "packet")))
        row |= {
            "packet_s": seconds, "packet_limit_s": case.packet_limit_s, "packet_makespan_s": run.found.makespan_s,
            "packet_deviation_percent": 100 * (run.found.makespan_s / makespan - 1),
        }  # fmt: skip
    return row
