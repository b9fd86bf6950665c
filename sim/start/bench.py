"""Speed of the golden model on this machine, in processor time, with a yardstick that makes machines comparable."""

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hopforge.model.config import Config, parse_config
from hopforge.model.kernel.compile import kernel
from hopforge.model.lookup.belady import KeyStreams, optimal_misses
from hopforge.model.lookup.cache_replay import replay
from hopforge.model.lookup.node_reduction import NodeReduction
from hopforge.model.lookup.routing_cache import RoutingCache
from hopforge.model.numbers.address import AddressFormat
from hopforge.model.numbers.crc import crc_addresses
from hopforge.model.topology import build
from hopforge.model.workload.compiled_program import compile_program
from hopforge.model.workload.packet_order import interleave
from hopforge.model.workload.read_trace import read_trace
from hopforge.sim.hits.replay import Replay
from hopforge.sim.traffic.workload_packets import build_workload

CLOCK = "process time of one process"
LOOKUPS = 1 << 22
BOUND_LOOKUPS = 10_000_000
SLOW_LOOKUPS = 1 << 12
YARDSTICK_STEPS = 1 << 26


@dataclass(frozen=True)
class Case:
    """Something to be timed.

    Attributes
    ----------
    name, unit : str
        What is counted per second.
    work : int
        Units per run.
    prepare : callable
        Makes a function that does the work once; not timed.
    """

    name: str
    unit: str
    work: int
    prepare: Callable[[], Callable[[], Any]]


@kernel
def _yardstick(steps):  # type: ignore[no-untyped-def]
    state = np.uint64(88172645463325252)
    for _ in range(steps):
        state ^= state << np.uint64(13)
        state ^= state >> np.uint64(7)
        state ^= state << np.uint64(17)
    return state


def _hot(reduction: NodeReduction, addresses: np.ndarray, policy: str = "lru") -> Callable[[], Any]:
    """Random destinations that all fit in the cache, which is warm."""
    cache = RoutingCache(entries=2048, ways=4, policy=policy)  # type: ignore[arg-type]
    stream = np.random.default_rng(1).choice(addresses, LOOKUPS)
    replay(reduction, 0, stream, cache)
    return lambda: replay(reduction, 0, stream, cache)


def _one_at_a_time(reduction: NodeReduction, addresses: np.ndarray) -> Callable[[], Any]:
    cache = RoutingCache(entries=2048, ways=4)
    stream = np.random.default_rng(1).choice(addresses, SLOW_LOOKUPS).tolist()

    def run() -> None:
        for address in stream:
            key = reduction.key(0, address)
            if cache.lookup(key) is None:
                cache.fill(key, 0)

    return run


def _best_choice() -> Callable[[], Any]:
    """Uniform keys in a cache that holds a quarter of them: misses of LRU, min and min_bypass."""
    streams = KeyStreams.of_keys(np.random.default_rng(1).integers(0, 4096, BOUND_LOOKUPS))
    sets = crc_addresses("CRC-32C", streams.keys) % np.uint64(256)
    return lambda: optimal_misses(streams, sets, ways=4, set_count=256)


def _config(file: str, reduction: bool) -> Config:
    return parse_config(
        "name: bench\ntopology: {kind: torus, radices: [4, 4, 4]}\n"
        f"lookup: {{reduction: {str(reduction).lower()}}}\nworkload: {{kind: trace, file: '{file}'}}\n"
    )


def _network(file: str, reduction: bool) -> tuple[int, Callable[[], Any]]:
    """Lookups of a recorded program on the 4×4×4 torus, and a function that replays them."""
    config = _config(file, reduction)
    assert config.workload is not None
    topology = build(config.topology, config.address)
    packets = build_workload(config.workload, topology, config.seed).all_packets()

    def run() -> Replay:
        network = Replay(config, topology)
        network.send(*packets)
        return network

    return int(run().result.lookups.sum()), run


def _whole_program(file: str) -> None:
    """Everything that `hopforge hits` does before and during the replay."""
    config = _config(file, reduction=True)
    assert config.workload is not None
    topology = build(config.topology, config.address)
    network = Replay(config, topology)
    network.send(*build_workload(config.workload, topology, config.seed).all_packets())


def _expand(file: str) -> tuple[int, Callable[[], Any]]:
    trace = read_trace(file)
    config = _config(file, reduction=True).workload
    assert config is not None
    assert config.kind == "trace"
    collectives, host = config.collectives, np.arange(trace.ranks)

    def run() -> int:
        return len(interleave(compile_program(trace, collectives), host, 2048, trace).source)

    return run(), run


def lookup_cases(trace: Path | None = None) -> Iterator[Case]:
    """Yield what `hopforge bench lookup` times.

    Parameters
    ----------
    trace : Path, optional
        Another recorded program to replay, beside NPB IS and FT; at most 64 ranks.
    """
    address = AddressFormat(24, 4)
    torus = NodeReduction.torus((4, 4, 4), address=address)
    places = np.array([x | y << 4 | z << 8 for x in range(4) for y in range(4) for z in range(4)])
    whole = NodeReduction.arbitrary(address=address)
    yield Case("torus keys, CRC, 4-way LRU", "lookup", LOOKUPS, partial(_hot, torus, places))
    yield Case("address keys, CRC, 4-way LRU", "lookup", LOOKUPS, partial(_hot, whole, np.arange(1024)))
    yield Case("address keys, CRC, 4-way PLRU", "lookup", LOOKUPS, partial(_hot, whole, np.arange(1024), "plru"))
    yield Case("torus keys, one call a lookup", "lookup", SLOW_LOOKUPS, partial(_one_at_a_time, torus, places))
    yield Case("best choices and LRU, 4-way, 1024 lines", "lookup", BOUND_LOOKUPS, _best_choice)
    files = ["shipped:is.A.64", "shipped:ft.A.64"] + ([str(trace)] if trace is not None else [])
    for file in files:
        name = file.removeprefix("shipped:") if file.startswith("shipped:") else Path(file).name
        packets, expand = _expand(file)
        yield Case(f"{name}: messages to packets", "packet", packets, lambda expand=expand: expand)  # type: ignore[misc]
        lookups, run = _network(file, reduction=True)
        yield Case(f"{name}: replay on 4x4x4", "lookup", lookups, lambda run=run: run)  # type: ignore[misc]
        yield Case(
            f"{name}: from file to counts", "lookup", lookups,
            lambda file=file: lambda: _whole_program(file),  # type: ignore[misc]
        )  # fmt: skip


def measure(cases: Iterator[Case], repetitions: int = 5) -> Iterator[dict[str, Any]]:
    """Time cases and yield a row of a table for each.

    The first run of each is a warm-up and is not counted. Times are processor times of this process, so that other
    programs disturb little. ``per_yardstick_step`` is the rate over that of a xorshift generator (three shifts and
    exclusive ors a step) in the same process: nearly the same on machines of different speed.

    Parameters
    ----------
    cases : iterator of Case
        What to time.
    repetitions : int
        Runs that count, at least 1.

    Raises
    ------
    ValueError
        No repetition.
    """
    if repetitions < 1:
        raise ValueError(f"repetitions must be at least 1, not {repetitions}")
    step_s = min(_times(lambda: _yardstick(YARDSTICK_STEPS), repetitions)) / YARDSTICK_STEPS
    for case in cases:
        times = _times(case.prepare(), repetitions)
        best = min(times)
        yield {
            "case": case.name, "unit": case.unit, "work": case.work, "repetitions": repetitions,
            "best_s": best, "median_s": statistics.median(times), "worst_s": max(times),
            "million_per_s": case.work / best / 1e6, "per_yardstick_step": case.work * step_s / best,
        }  # fmt: skip


def _times(run: Callable[[], Any], repetitions: int) -> list[float]:
    run()
    found = []
    for _ in range(repetitions):
        start = time.process_time()
        run()
        found.append(max(time.process_time() - start, 1e-9))
    return found
