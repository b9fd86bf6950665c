"""Co-simulation of the generated engine with the golden one: `hopforge cosim`."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hopforge.gen.packages.lookup import lookup_name
from hopforge.gen.verilog.writer import to_verilog
from hopforge.hw.lookup.engine import lookup_engine
from hopforge.model.config import Config
from hopforge.model.topology import build
from hopforge.sim.benches.lookup import lookup_replay
from hopforge.sim.cosim.prepared import engine_setup, prepare_engine
from hopforge.sim.cosim.run import chosen_simulator, play, report_in
from hopforge.sim.drive.replay import Progress, ReplayResult
from hopforge.sim.drive.runner import SimulatorName
from hopforge.sim.drive.stimulus import stimulus
from hopforge.sim.drive.stimulus_traffic import Traffic

__all__ = ["CosimReport", "cosim", "engine_setup", "engine_traffic"]

_POOL = 256
_MOST_ADDRESSES = 4096


@dataclass(frozen=True)
class CosimReport:
    """What a co-simulation found.

    Attributes
    ----------
    name, simulator : str
        Top module and the simulator that ran it.
    seed : int
        Of the traffic.
    result : ReplayResult
        Cycles compared, cycles that differ, the first difference.
    totals : dict
        Counters of the golden engine over the whole run: lookups, hits, misses, merges, ...
    golden_s, verilog_s, build_s, run_s : float
        Wall-clock seconds for the golden trace, the Verilog, compiling it and playing.
    waves : Path or None
        Waveforms, if wanted.
    """

    name: str
    simulator: SimulatorName
    seed: int
    result: ReplayResult
    totals: dict[str, int]
    golden_s: float
    verilog_s: float
    build_s: float
    run_s: float
    waves: Path | None

    @property
    def passed(self) -> bool:
        """Whether every output was as expected in every cycle."""
        return self.result.mismatches == 0

    def rows(self) -> Iterator[tuple[str, str]]:
        """Return the report as (subject, words) for a table."""
        result, totals = self.result, self.totals
        yield "engine", f"{self.name} on {self.simulator}, seed {self.seed}"
        yield "cycles", f"{result.cycles}, every output compared in each"
        found = f"{totals['hits']} hits, {totals['misses']} misses, {totals['merges']} merges"
        yield "lookups", f"{totals['lookups']}: {found}"
        others = ("fills", "evictions", "drops", "retries", "flushes", "invalidations")
        yield "besides", ", ".join(f"{totals[name]} {name}" for name in others)
        yield "time", f"golden {self.golden_s:.1f} s, build {self.build_s:.1f} s, run {self.run_s:.1f} s"
        if self.waves is not None:
            yield "waves", str(self.waves)
        yield "mismatches", result.words


def cosim(
    config: Config,
    *,
    simulator: SimulatorName | None = None,
    lookups: int | None = None,
    seed: int | None = None,
    waves: bool = False,
    output: Path,
    progress: Progress | None = None,
) -> CosimReport:
    """Compare the Verilog of the configured engine with the golden engine, every output in every cycle.

    Random traffic with idle cycles and back-pressure, flushes, invalidations, TCAM writes, changes of the configuration
    and of the topology; a TCAM outside answers out of order. The run ends when nothing is left in the engine, and reads
    all counters.

    Parameters
    ----------
    config : Config
        Address and lookup sections give the engine; topology where its switch begins.
    simulator : str, optional
        ``icarus`` (with cocotb) or ``verilator`` (a loop in C++, for long runs); default from the configuration.
    lookups : int, optional
        Requests; default from the configuration.
    seed : int, optional
        Of the traffic; default from the configuration.
    waves : bool
        Record all signals.
    output : Path
        Folder of everything; ``cosim.json`` is the report.
    progress : callable, optional
        Called with (cycles done, cycles in all).

    Returns
    -------
    CosimReport

    Raises
    ------
    UserError
        If the hardware cannot do what the configuration wants, or a tool is missing or fails.
    """
    simulator = chosen_simulator(config, simulator)
    folder = output
    (params, registers), top = prepare_engine(config), lookup_name(config)
    traffic = engine_traffic(config, lookups or config.cosim.lookups, config.seed if seed is None else seed)
    start = time.perf_counter()
    recorded = stimulus(params, traffic, registers)
    replay = lookup_replay(recorded)
    golden = time.perf_counter()
    verilog = to_verilog(lookup_engine(params=params), top)
    written = time.perf_counter()
    with report_in(folder, config) as facts:
        run = play(simulator, verilog, top, replay, folder / simulator, waves=waves, progress=progress)
        report = CosimReport(
            top, simulator, traffic.seed, run.result, recorded.totals, golden - start, written - golden, run.build_s,
            run.run_s, run.waves,
        )  # fmt: skip
        facts.update(_facts(report))
    return report


def engine_traffic(config: Config, lookups: int, seed: int) -> Traffic:
    """Return the traffic for `config`: three quarters of the destinations are hosts of its network."""
    addresses = build(config.topology, config.address).host_address
    if len(addresses) > _MOST_ADDRESSES:
        addresses = np.random.default_rng(seed).choice(addresses, _MOST_ADDRESSES, replace=False)
    return Traffic(lookups=lookups, seed=seed, pool=_POOL, addresses=tuple(int(address) for address in addresses))


def _facts(report: CosimReport) -> dict[str, object]:
    first = report.result.first
    return {
        "top": report.name,
        "simulator": report.simulator,
        "seed": report.seed,
        "cycles": report.result.cycles,
        "mismatches": report.result.mismatches,
        "first_mismatch": None if first is None else first._asdict(),
        "counters": report.totals,
        "seconds": {
            "golden": report.golden_s, "verilog": report.verilog_s, "build": report.build_s, "run": report.run_s,
        },
    }  # fmt: skip
