"""Speed of engine flow on collectives of very many messages: processor time, memory and messages per second."""

import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hopforge.model.config import parse_config
from hopforge.model.errors import UserError
from hopforge.sim.programs.application import run_app
from hopforge.sim.programs.flow_rounds import compile_rounds

__all__ = ["CASES", "CLOCK", "FlowCase", "chosen_flows", "measure_flows", "time_flow"]

CLOCK = "process time, user and system, of a process per case, without compilation"


@dataclass(frozen=True)
class FlowCase:
    """A collective on a network.

    Attributes
    ----------
    name : str
        For people.
    topology, workload : str
        Sections of a configuration (YAML).
    long : bool
        Takes gigabytes: with ``--full`` only.
    limit_s, limit_gib : float, optional
        The aims.
    """

    name: str
    topology: str
    workload: str
    long: bool = False
    limit_s: float | None = None
    limit_gib: float | None = None


def _collective(operation: str, algorithm: str, size: int) -> str:
    return f"{{kind: collective, operation: {operation}, bytes: {size}, collectives: {{{operation}: {algorithm}}}}}"


_DRAGONFLY = "{kind: dragonfly, p: 4, a: 8, h: 4}"

CASES: Sequence[FlowCase] = (
    FlowCase(
        "all-to-all of 342 ranks, 4 KiB", "{kind: dragonfly, p: 3, a: 6, h: 3}",
        _collective("alltoall", "pairwise", 4096),
    ),
    FlowCase("all-to-all of 1056 ranks, 256 B", _DRAGONFLY, _collective("alltoall", "pairwise", 256)),
    FlowCase(
        "all-to-all of 1056 ranks, 4 KiB", _DRAGONFLY, _collective("alltoall", "pairwise", 4096), limit_s=5
    ),
    FlowCase(
        "ring all-reduce of 512 ranks, 128 MiB", "{kind: torus, radices: [8, 8, 8]}",
        _collective("allreduce", "ring", 1 << 27),
    ),
    FlowCase(
        "ring all-reduce of 4096 ranks, 1 GiB", "{kind: torus, radices: [16, 16, 16]}",
        _collective("allreduce", "ring", 1 << 30), long=True, limit_s=20, limit_gib=8,
    ),
)
"""What `hopforge bench flow` measures."""


def chosen_flows(full: bool) -> list[FlowCase]:
    """Cases without the long ones, or with them."""
    return [case for case in CASES if full or not case.long]


def _run(topology: str, workload: str) -> Any:
    return run_app(parse_config(
        f"name: bench\ntopology: {topology}\nworkload: {workload}\napp: {{engine: flow, backend: embedded}}\n"
    )).found


def time_flow(topology: str, workload: str) -> dict[str, float]:
    """Measure in this process, once compiled: seconds of making and running a program, and of the engine alone.

    Returns
    -------
    dict
        messages, makespan_s; processor seconds cpu_s and engine_s, million messages per second of both; largest memory
        of the process in MiB.
    """
    _run("{kind: torus, radices: [2, 2]}", _collective("allreduce", "ring", 64))  # compile
    compile_rounds()
    start = time.process_time()
    found = _run(topology, workload)
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "messages": found.messages, "makespan_s": found.makespan_s, "cpu_s": seconds, "engine_s": found.cpu_seconds,
        "million_per_s": found.messages / seconds * 1e-6,
        "peak_mib": peak / (2**20 if sys.platform == "darwin" else 2**10),
    }  # fmt: skip


_CHILD = (
    "import json; from hopforge.sim.start.bench_flow import time_flow; print(json.dumps(time_flow({!r}, {!r})))"
)


def measure_flows(cases: Sequence[FlowCase]) -> Iterator[dict[str, Any]]:
    """Run every case in a process of its own and yield a row of a table for each.

    Raises
    ------
    UserError
        A case that failed, such as for want of memory.
    """
    for case in cases:
        child = _CHILD.format(case.topology, case.workload)
        done = subprocess.run([sys.executable, "-c", child], capture_output=True, text=True, check=False)
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
            raise UserError(f"{case.name}: {reason}")
        yield {
            "case": case.name, **json.loads(done.stdout.splitlines()[-1]), "limit_s": case.limit_s,
            "limit_gib": case.limit_gib,
        }  # fmt: skip
