"""Speed of the network simulator beside that of another version of hopforge, each in a process of its own, in turn.

The two go through the same cycles of the same networks; the ratio of each pair is taken, so that a machine whose speed
changes during the measurement disturbs little. What they counted is compared, too.
"""

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from hopforge.model.errors import UserError
from hopforge.sim.start.bench_net import CASES, SIZES, NetCase, grid_case

#: what both versions are timed on: the cases of `hopforge bench net`, and large networks that are busy or nearly idle
VERSION_CASES: Sequence[NetCase] = (
    *CASES,
    replace(grid_case("mesh", 64, 2, 1, 800, 0), load=0.04),
    replace(grid_case("torus", 16, 3, 1, 2500, 0), load=0.005),
    *SIZES[2:],
)

# uses only what all versions since 0.1 have
_WORKER = """
import json, sys, time
from hopforge.model.config import parse_config
from hopforge.sim.run.simulation import Simulation
text, load, cycles = json.loads(sys.stdin.readline())
run = Simulation(parse_config(text), load, 1, check=False)
run.advance(max(cycles // 5, 200))
counts = ("hops_sum", "flits_ejected", "latency_sum", "measured")
print(json.dumps("ready"), flush=True)
for _ in sys.stdin:
    before = [int(run.state[name]) for name in counts]
    start = time.process_time()
    run.advance(cycles)
    seconds = time.process_time() - start
    after = [int(run.state[name]) for name in counts]
    hops = (after[0] - before[0]) / max(after[3] - before[3], 1)
    print(json.dumps([seconds, (after[1] - before[1]) * hops, after]), flush=True)
"""


@dataclass(frozen=True)
class Piece:
    """What a version made of a number of cycles: processor seconds, flits times routers visited, and its counters."""

    seconds: float
    work: float
    counts: tuple[int, ...]


class Version:
    """A version of hopforge that simulates a case in a process of its own.

    Parameters
    ----------
    source : Path
        Folder that holds the package ``hopforge``.
    case : NetCase
        The network.

    Raises
    ------
    UserError
        That version cannot be run, or not with this network.
    """

    def __init__(self, source: Path, case: NetCase) -> None:
        self._source = source
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", _WORKER],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": str(source), "NUMBA_NUM_THREADS": "1"},
        )  # fmt: skip
        self._ask([case.ours, case.load, case.cycles])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.kill()
        self._process.communicate()

    def run(self) -> Piece:
        """Go through the cycles of the case once more."""
        seconds, work, counts = self._ask("run")
        return Piece(seconds, work, tuple(counts))

    def _ask(self, message: object) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            _, said = self._process.communicate()
            last = (said.strip().splitlines() or [f"exit status {self._process.returncode}"])[-1]
            raise UserError(f"--against: the version in {self._source} failed: {last}")
        return json.loads(answer)


def source_of(checkout: Path) -> Path:
    """Return the folder of a checkout that holds the package.

    Raises
    ------
    UserError
        There is none.
    """
    for folder in (checkout / "src", checkout):
        if (folder / "hopforge" / "__init__.py").is_file():
            return folder.absolute()
    raise UserError(f"--against: {checkout} holds no version of hopforge (neither src/hopforge nor hopforge)")


def measure_versions(
    ours: Path, theirs: Path, repetitions: int = 5, cases: Sequence[NetCase] = VERSION_CASES
) -> Iterator[dict[str, Any]]:
    """Time every case with two versions in turn and yield a row of a table for each.

    Parameters
    ----------
    ours, theirs : Path
        Folders that hold the package ``hopforge``.
    repetitions : int
        Pairs of timed runs, at least 1; medians are given.
    cases : sequence of NetCase
        What to time.

    Raises
    ------
    ValueError
        No repetition.
    UserError
        A version cannot be run.
    """
    if repetitions < 1:
        raise ValueError(f"repetitions must be at least 1, not {repetitions}")
    for case in cases:
        with ExitStack() as both:
            new, old = (both.enter_context(Version(source, case)) for source in (ours, theirs))
            pairs = []
            for number in range(repetitions):  # the first one goes second next time
                if number % 2 == 0:
                    pairs.append((new.run(), old.run()))
                else:
                    before = old.run()
                    pairs.append((new.run(), before))
        ratios = [(b.seconds / b.work) / (a.seconds / a.work) for a, b in pairs]
        yield {
            "case": case.name,
            "load": case.load,
            "repetitions": repetitions,
            "ns_per_flit_hop": statistics.median(1e9 * a.seconds / a.work for a, _ in pairs),
            "against_ns_per_flit_hop": statistics.median(1e9 * b.seconds / b.work for _, b in pairs),
            "ratio": statistics.median(ratios),
            "ratio_lowest": min(ratios),
            "ratio_highest": max(ratios),
            "same_results": all(a.counts == b.counts for a, b in pairs),
        }
