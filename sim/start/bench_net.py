"""Speed of the network simulator, in processor time per flit and router visited, beside a BookSim binary if given.

The two simulators run the same networks in turn, a few times each; the ratio of each pair is taken, so that a machine
whose speed changes during the measurement disturbs little.
"""

import os
import re
import statistics
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hopforge.model.config import parse_config
from hopforge.model.errors import UserError
from hopforge.sim.run.simulation import Simulation

CLOCK = "process time, user and system"
LOAD = 0.3
#: most seconds that one BookSim run may take
BOOKSIM_LIMIT_S = 600

_ROUTER = "vcs: 4, buffer_flits: 8, va: islip, sa: islip, credit_delay_cycles: 2"
_BOOKSIM = """\
num_vcs = 4; vc_buf_size = 8; wait_for_tail_credit = 0; vc_busy_when_full = 0; vc_prioritize_empty = 0;
vc_shuffle_requests = 0; vc_allocator = islip; sw_allocator = islip; alloc_iters = 1; arb_type = round_robin;
speculative = 0; hold_switch_for_packet = 0; noq = 0; routing_delay = 0; vc_alloc_delay = 1; sw_alloc_delay = 1;
st_prepare_delay = 0; st_final_delay = 1; credit_delay = 2; output_delay = 0; input_speedup = 1; output_speedup = 1;
internal_speedup = 1.0; output_buffer_size = -1; subnets = 1; classes = 1; priority = none; use_read_write = 0;
injection_process = bernoulli; injection_rate_uses_flits = 1; sim_count = 1; traffic = uniform; seed = 1;
sim_type = throughput; warmup_periods = 1; max_samples = 3;
"""


@dataclass(frozen=True)
class NetCase:
    """A network that both simulators run at the same load.

    Attributes
    ----------
    name : str
        For people.
    ours : str
        Configuration (YAML) without its load.
    booksim : str
        The settings of BookSim that differ between cases; "" if it is not measured there.
    cycles, booksim_cycles : int
        Cycles of one run of ours, and of one sample period of BookSim (it runs three or four).
    load : float
        Flits per host and cycle.
    """

    name: str
    ours: str
    booksim: str
    cycles: int
    booksim_cycles: int
    load: float = LOAD


def grid_case(kind: str, k: int, n: int, flits: int, cycles: int, booksim_cycles: int) -> NetCase:
    """Return a mesh or torus of n dimensions of k routers, with packets of so many flits."""
    latency = 2 if kind == "torus" else 1
    name = f"{k}-ary {n}-cube" if kind == "torus" else "×".join([str(k)] * n) + " mesh"
    return NetCase(
        f"{name}, {flits} flit{'s' if flits > 1 else ''}",
        f"name: bench\ntopology: {{kind: {kind}, radices: {[k] * n}}}\n"
        f"address: {{chunk_bits: {max(4, (k - 1).bit_length())}}}\n"
        f"router: {{{_ROUTER}, link_latency_cycles: {latency}}}\n"
        "routing: {algorithm: dor, vc_rule: fixed, ties: random}\n"
        f"traffic: {{packet_flits: {flits}}}\n",
        f"topology = {kind}; k = {k}; n = {n}; routing_function = {'dim_order' if kind == 'torus' else 'dor'}; "
        f"packet_size = {flits};",
        cycles,
        booksim_cycles,
    )


#: a dragonfly of 264 routers and 1056 hosts, whose packets take minimal ways
_DRAGONFLY = NetCase(
    "dragonfly of 1056 hosts, 5 flits",
    "name: bench\ntopology: {kind: dragonfly, p: 4, a: 8, h: 4}\n"
    "router: {vcs: 2, buffer_flits: 256, va: islip, sa: islip, credit_delay_cycles: 2, "
    "link_latency_cycles: 10, global_latency_cycles: 100}\n"
    "routing: {algorithm: dragonfly_min, ejection: class}\ntraffic: {packet_flits: 5}\n",
    "topology = dragonflynew; k = 4; n = 1; routing_function = min; packet_size = 5; num_vcs = 2; vc_buf_size = 256;",
    4000,
    400,
    load=0.5,
)
#: what `hopforge bench net` measures
CASES: Sequence[NetCase] = (
    grid_case("mesh", 8, 2, 1, 30000, 3000),
    grid_case("mesh", 8, 2, 4, 30000, 3000),
    grid_case("torus", 8, 3, 1, 5000, 300),
    _DRAGONFLY,
)
#: networks of growing size, for the cost per flit and router; the bisection of the largest carries 0.25
SIZES: Sequence[NetCase] = (
    *(grid_case("torus", k, 3, 1, cycles, 0) for k, cycles in [(4, 40000), (8, 5000), (16, 600)]),
    replace(grid_case("torus", 16, 4, 1, 60, 0), load=0.15),
)


def prepare(case: NetCase) -> Simulation:
    """Build the network of `case` and run it until its first cycles are over."""
    run = Simulation(parse_config(case.ours), case.load, 1, check=False)
    run.advance(max(case.cycles // 5, 200))
    return run


def time_ours(run: Simulation, cycles: int) -> tuple[float, float]:
    """Run `cycles` cycles; returns CPU seconds and flits times routers that they visited, per cycle."""
    before = int(run.state["hops_sum"]), int(run.state["flits_ejected"]), int(run.state["measured"])
    start = time.process_time()
    run.advance(cycles)
    seconds = time.process_time() - start
    hops = (int(run.state["hops_sum"]) - before[0]) / max(int(run.state["measured"]) - before[2], 1)
    return seconds / cycles, (int(run.state["flits_ejected"]) - before[1]) * hops / cycles


def time_booksim(binary: Path, case: NetCase, hosts: int) -> tuple[float, float]:
    """Run BookSim once; returns CPU seconds and flits times routers that they visited, per cycle.

    Raises
    ------
    UserError
        The binary cannot be run, fails, or prints no results.
    """
    settings = f"{_BOOKSIM}{case.booksim}\ninjection_rate = {case.load}; sample_period = {case.booksim_cycles};\n"
    with TemporaryDirectory() as folder:
        path = Path(folder) / "case.cfg"
        path.write_text(settings)
        before = os.times()
        try:
            done = subprocess.run(
                [str(binary.absolute()), str(path)],
                capture_output=True, text=True, timeout=BOOKSIM_LIMIT_S, check=False, cwd=folder,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            raise UserError(f"--booksim: {binary} cannot be run: {error}") from error
        after = os.times()
    seconds = after.children_user + after.children_system - before.children_user - before.children_system
    overall = done.stdout.partition("====== Overall Traffic Statistics ======")[2]
    cycles = _number(binary, done.stdout, "Time taken is")
    hops = _number(binary, overall, "Hops average =")
    accepted = _number(binary, overall, "Accepted flit rate average =")
    return seconds / cycles, accepted * hosts * hops


def _number(binary: Path, text: str, label: str) -> float:
    found = re.search(re.escape(label) + r"\s*(\d[\d.eE+-]*)", text)
    if found is None:
        raise UserError(f"--booksim: {binary} printed no {label!r}")
    return float(found.group(1))


def measure_net(cases: Sequence[NetCase], booksim: Path | None, repetitions: int = 5) -> Iterator[dict[str, Any]]:
    """Time every case and yield a row of a table for each.

    Parameters
    ----------
    cases : sequence of NetCase
        What to time.
    booksim : Path, optional
        A BookSim 2 binary to run in turn with ours.
    repetitions : int
        Timed runs of each simulator, at least 1; the medians are given.

    Raises
    ------
    ValueError
        No repetition.
    UserError
        The BookSim binary cannot be used.
    """
    _at_least_one(repetitions)
    for case in cases:
        run = prepare(case)
        hosts = run.topology.hosts
        ours, theirs = [], []
        for _ in range(repetitions):
            ours.append(time_ours(run, case.cycles))
            if booksim is not None and case.booksim_cycles:
                theirs.append(time_booksim(booksim, case, hosts))
        row = _row(case, run, ours)
        if theirs:
            ratios = [(b[0] / b[1]) / (a[0] / a[1]) for a, b in zip(ours, theirs, strict=True)]
            row |= {
                "booksim_million_flit_hops_per_s": statistics.median(work / seconds for seconds, work in theirs) / 1e6,
                "ratio": statistics.median(ratios),
                "ratio_lowest": min(ratios),
                "ratio_highest": max(ratios),
            }
        yield row


def measure_sizes(cases: Sequence[NetCase], repetitions: int = 5) -> list[dict[str, Any]]:
    """Time all cases in turn and return a row of a table for each, with its cost beside that of the first.

    Parameters
    ----------
    cases : sequence of NetCase
        What to time; all are in memory at the same time.
    repetitions : int
        Rounds of timed runs, at least 1; the medians are given.

    Raises
    ------
    ValueError
        No repetition.
    """
    _at_least_one(repetitions)
    runs = [prepare(case) for case in cases]
    rounds = [
        [time_ours(run, case.cycles) for case, run in zip(cases, runs, strict=True)] for _ in range(repetitions)
    ]
    rows = []
    for case, run, ours in zip(cases, runs, zip(*rounds, strict=True), strict=True):
        beside = [(a[0] / a[1]) / (b[0][0] / b[0][1]) for a, b in zip(ours, rounds, strict=True)]
        rows.append(_row(case, run, ours) | {"cost_ratio": statistics.median(beside)})
    return rows


def _row(case: NetCase, run: Simulation, ours: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """Row of a table for the timed runs of a case."""
    return {
        "case": case.name,
        "load": case.load,
        "routers": run.topology.routers,
        "parts": run.threads.parts,
        "repetitions": len(ours),
        "cycles_per_s": 1 / statistics.median(seconds for seconds, _ in ours),
        "flit_hops_per_cycle": statistics.mean(work for _, work in ours),
        "million_flit_hops_per_s": statistics.median(work / seconds for seconds, work in ours) / 1e6,
        "ns_per_flit_hop": statistics.median(1e9 * seconds / work for seconds, work in ours),
        "state_mib": run.state.nbytes / 2**20,
    }


def _at_least_one(repetitions: int) -> None:
    if repetitions < 1:
        raise ValueError(f"repetitions must be at least 1, not {repetitions}")
