"""Speed of one run on several threads beside one thread, and what more cores would make of it.

Both simulate the same network in turn. The prediction adds up, window by window, the time of the slowest core, that of
a barrier, and what is done on one core at the beginning and end. The time of each part is measured on one thread.
"""

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config import parse_config
from hopforge.model.network.core.kinds import GROW
from hopforge.model.network.threads.barrier import CONTROL_PLACES, pass_barriers
from hopforge.model.network.threads.crew import Crew
from hopforge.model.network.threads.ranges import most_parts
from hopforge.sim.run.simulation import Simulation
from hopforge.sim.run.threads import parts_for
from hopforge.sim.start.bench_net import SIZES, NetCase, grid_case

__all__ = ["CASES", "CLOCK", "LARGE", "PREDICTED_CORES", "barrier_ns", "measure_threads", "predicted_ns"]

CLOCK = "wall clock, and process time of all threads"
#: cores that are predicted beside those measured
PREDICTED_CORES = (16, 64)
CASES: Sequence[NetCase] = (grid_case("torus", 8, 3, 1, 4000, 0), grid_case("torus", 16, 3, 1, 500, 0))
#: with `--sizes`, too: 65 536 routers
LARGE = SIZES[-1]
#: barriers of a measurement, and measurements, of which the shortest counts
_BARRIERS, _TRIES = 20000, 5
#: times of a part above so many times its median count as the median
DISTURBED = 2.0
#: cycles of the start of a network, at least
_START_CYCLES = 200


@dataclass(frozen=True)
class _Time:
    """Seconds of a piece of a run: on the clock, and of processors."""

    wall: float
    cpu: float


def barrier_ns(threads: int) -> float:
    """Time a barrier of so many threads, which all do nothing else: ns."""
    if threads == 1:
        return 0.0
    control, found = np.zeros(CONTROL_PLACES, np.int64), []
    for _ in range(_TRIES):
        each = [
            threading.Thread(target=pass_barriers, args=(control.ctypes.data, threads, _BARRIERS))
            for _ in range(threads)
        ]
        begin = time.perf_counter_ns()
        for thread in each:
            thread.start()
        for thread in each:
            thread.join()
        found.append((time.perf_counter_ns() - begin) / _BARRIERS)
    return min(found)


def predicted_ns(times: NDArray[np.int64], cores: int, barrier: float, alone: float) -> float:
    """Predict the time of a run on a number of cores, each with as many neighbouring parts as every other.

    A time that is much longer than usual for its part counts as usual: another process had the core.

    Parameters
    ----------
    times : ndarray
        ns of each part in each window: int64[window, part].
    cores : int
        At most the parts.
    barrier, alone : float
        ns of a barrier of so many threads, and of what is done on one core before and after.
    """
    parts, usual = times.shape[1], np.median(times, axis=0)
    times = np.where(times > DISTURBED * usual, usual, times)
    first = [parts * core // cores for core in range(cores)]
    of_core = np.add.reduceat(times, first, axis=1)
    return float(of_core.max(axis=1).sum() + len(times) * barrier + alone)


def _timed(run: Simulation, cycles: int) -> _Time:
    wall, cpu = time.perf_counter(), time.process_time()
    run.advance(cycles)
    return _Time(time.perf_counter() - wall, time.process_time() - cpu)


def _measured_parts(run: Simulation, crew: Crew, cycles: int) -> tuple[NDArray[np.int64], float]:
    """Return the times of all parts on one thread, and the ns of what is done before and after."""
    while crew.run(run.plan.route, run.traffic.pattern, crew.ranges.window) == GROW:
        run.state.grow_packets()
    begin = time.perf_counter_ns()
    times = crew.part_times(run.plan.route, run.traffic.pattern, cycles)
    return times, float(time.perf_counter_ns() - begin - times.sum())


def _prepared(case: NetCase, threads: int) -> Simulation:
    run = Simulation(parse_config(case.ours), case.load, 1, check=False, threads=threads)
    run.advance(max(case.cycles // 5, _START_CYCLES))
    return run


def measure_threads(cases: Sequence[NetCase], threads: int, repetitions: int = 7) -> Iterator[dict[str, Any]]:
    """Time every case on one thread and on several in turn, and yield a row of a table for each.

    Parameters
    ----------
    cases : sequence of NetCase
        What to time.
    threads : int
        At least 2.
    repetitions : int
        Pairs.

    Raises
    ------
    ValueError
        No repetition, or one thread.
    UserError
        More threads than a network has parts.
    """
    if repetitions < 1 or threads < 2:
        raise ValueError(f"repetitions must be at least 1, not {repetitions}; threads at least 2, not {threads}")
    barrier = barrier_ns(threads)
    for case in cases:
        one, many = _prepared(case, 1), _prepared(case, threads)
        pairs = [(_timed(one, case.cycles), _timed(many, case.cycles)) for _ in range(repetitions)]
        same = all(int(one.state[name]) == int(many.state[name]) for name in ("hops_sum", "latency_sum", "measured"))
        row: dict[str, Any] = {
            "case": case.name,
            "load": case.load,
            "routers": one.topology.routers,
            "threads": threads,
            "parts": many.threads.parts,
            "repetitions": repetitions,
            "one_ms_per_cycle": min(a.wall for a, _ in pairs) * 1e3 / case.cycles,
            "wall_ratio": max(a.wall / b.wall for a, b in pairs),
            "wall_ratio_shortest": min(a.wall for a, _ in pairs) / min(b.wall for _, b in pairs),
            "wall_ratio_median": float(np.median([a.wall / b.wall for a, b in pairs])),
            "cpu_ratio": min(b.cpu / a.cpu for a, b in pairs),
            "cpu_ratio_median": float(np.median([b.cpu / a.cpu for a, b in pairs])),
            "barrier_ns": barrier,
            "same_results": same,
        }
        for cores in (threads, *PREDICTED_CORES):
            if cores <= most_parts(many.state):
                row[f"predicted_{cores}"] = _predicted_ratio(one, many, case.cycles, cores, repetitions, barrier)
        yield row


def _predicted_ratio(
    one: Simulation, many: Simulation, cycles: int, cores: int, repetitions: int, barrier: float
) -> float:
    """Predict from the times of one thread and of all parts in turn; each core adds its share to a barrier."""
    crew = Crew(many.state, parts_for(many.state, cores), 1, many.built.run)
    alone, predicted = [], []
    for _ in range(repetitions):
        alone.append(_timed(one, cycles).wall * 1e9 / cycles)
        times, around = _measured_parts(many, crew, cycles)
        whole = predicted_ns(times, cores, barrier * cores / many.threads.threads, around)
        predicted.append(whole / max(len(times) * crew.ranges.window, 1))
    return min(alone) / min(predicted)
