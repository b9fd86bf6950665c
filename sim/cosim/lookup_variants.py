"""Co-simulation of lookup engines drawn at random: `hopforge cosim --part lookup --variants`."""

import hashlib
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from hopforge.gen.design.configured import engine_parameters
from hopforge.gen.verilog.writer import to_verilog
from hopforge.hw.lookup.engine import is_deep, lookup_engine
from hopforge.model.config import Config
from hopforge.model.errors import UserError
from hopforge.model.output.destination import check_destination
from hopforge.model.output.results import check_writable
from hopforge.sim.benches.lookup import lookup_replay
from hopforge.sim.cosim.fault_campaign import FaultReport, cosim_faults
from hopforge.sim.cosim.lookup import CosimReport, cosim
from hopforge.sim.cosim.run import chosen_simulator, play, report_in
from hopforge.sim.drive.engine_variants import engine_variant
from hopforge.sim.drive.replay import Progress
from hopforge.sim.drive.runner import SimulatorName
from hopforge.sim.drive.stimulus import stimulus
from hopforge.sim.drive.stimulus_traffic import Traffic

__all__ = ["EngineRun", "VariantsReport", "cosim_engines", "cosim_variants"]

_LEDGER = "runs.jsonl"
_POOLS = (12, 64, 256)
_QUIET_CYCLES = (8, 40, 200)


@dataclass(frozen=True)
class EngineRun:
    """One recording played to one engine.

    Attributes
    ----------
    variant, seed : int
        Of the engine and of the traffic.
    design : str
        Digest of the Verilog.
    depth : int
        Of its pipeline.
    wanted : int
        Lookups that were asked for.
    cycles, mismatches : int
        Cycles compared, and those that differ.
    first : str
        The first difference; empty if there is none.
    counters : dict
        Of the golden engine.
    """

    variant: int
    seed: int
    design: str
    depth: int
    wanted: int
    cycles: int
    mismatches: int
    first: str
    counters: dict[str, int]


@dataclass(frozen=True)
class VariantsReport:
    """What the co-simulation of engines found.

    Attributes
    ----------
    runs : tuple of EngineRun
        One for each engine, also those of an earlier call that are still valid.
    simulator : str
        Which ran them.
    seconds : float
        Wall-clock time of this call.
    """

    runs: tuple[EngineRun, ...]
    simulator: SimulatorName
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether every output was as expected in every cycle."""
        return all(run.mismatches == 0 for run in self.runs)

    def total(self, counter: str) -> int:
        """Return a counter, summed over all engines."""
        return sum(run.counters[counter] for run in self.runs)

    def rows(self) -> Iterator[tuple[str, str]]:
        """Return the report as (subject, words) for a table."""
        depths = sorted({run.depth for run in self.runs})
        yield "engines", f"{len(self.runs)} drawn at random, depths {', '.join(map(str, depths))}, on {self.simulator}"
        yield "cycles", f"{sum(run.cycles for run in self.runs)}, every output compared in each"
        names = ("hits", "misses", "merges", "fills", "evictions", "drops", "retries", "flushes", "invalidations")
        yield "lookups", f"{self.total('lookups')}: {', '.join(f'{self.total(name)} {name}' for name in names)}"
        yield "time", f"{self.seconds:.1f} s"
        wrong = [run for run in self.runs if run.mismatches]
        yield "mismatches", "0" if not wrong else f"variant {wrong[0].variant}, seed {wrong[0].seed}: {wrong[0].first}"


def cosim_engines(
    config: Config,
    *,
    simulator: SimulatorName | None = None,
    lookups: int | None = None,
    variants: int | None = None,
    faults: int | None = None,
    seed: int | None = None,
    waves: bool = False,
    output: Path,
    progress: Progress | None = None,
) -> CosimReport | VariantsReport | FaultReport:
    """Compare the configured engine, or `variants` engines drawn at random, with the golden engine.

    With `faults` as many bits of its lines are inverted (`hopforge.sim.cosim.fault_campaign`).

    The other parameters and the errors are those of `hopforge.sim.cosim.lookup.cosim`.

    Raises
    ------
    UserError
        Waves of variants or faults, faults with lookups or variants.
    """
    if faults is not None:
        for name, given in (("waves", waves or None), ("lookups", lookups), ("variants", variants)):
            if given is not None:
                raise UserError(f"--{name} is not for --faults")
        return cosim_faults(config, faults, simulator=simulator, seed=seed, output=output, progress=progress)
    if variants is None:
        return cosim(
            config, simulator=simulator, lookups=lookups, seed=seed, waves=waves, output=output, progress=progress
        )
    if waves:
        raise UserError("--waves is for one engine, not for --variants")
    return cosim_variants(
        config, variants, simulator=simulator, lookups=lookups, seed=seed, output=output, progress=progress
    )


def cosim_variants(
    config: Config,
    variants: int,
    *,
    simulator: SimulatorName | None = None,
    lookups: int | None = None,
    seed: int | None = None,
    output: Path,
    progress: Progress | None = None,
) -> VariantsReport:
    """Compare engines drawn at random with the golden engine, every output in every cycle.

    Runs that an earlier call has finished on the same Verilog are not repeated.

    Parameters
    ----------
    config : Config
        Its engine says whether all are deep, or have a memory stage, or none does; besides it gives simulator, lookups
        and seed.
    variants : int
        Engines (`hopforge.sim.drive.engine_variants`).
    lookups : int, optional
        Requests to each engine; default from the configuration.
    simulator, seed, output, progress
        As for `hopforge.sim.cosim.lookup.cosim`; progress counts engines.

    Raises
    ------
    UserError
        If a tool is missing or fails.
    """
    simulator = chosen_simulator(config, simulator)
    check_writable(output)
    seed = config.seed if seed is None else seed
    wanted = config.cosim.lookups if lookups is None else lookups
    own = engine_parameters(config)
    start = time.perf_counter()
    ledger = output / _LEDGER
    known = {(run.variant, run.seed, run.design, run.wanted): run for run in _finished(ledger)}
    done: list[EngineRun] = []
    for variant in range(1, variants + 1):
        params = engine_variant(variant, deep=is_deep(own), memory_stage=own.memory_stage)
        verilog = to_verilog(lookup_engine(params=params), "engine")
        design = hashlib.sha256(verilog.encode()).hexdigest()[:16]
        run = known.get((variant, seed, design, wanted))
        if run is None:
            traffic = Traffic(
                lookups=wanted, seed=1000 * seed + variant, pool=_POOLS[variant % len(_POOLS)],
                quiet_cycles=_QUIET_CYCLES[variant // len(_POOLS) % len(_QUIET_CYCLES)],
            )  # fmt: skip
            recorded = stimulus(params, traffic)
            result = play(simulator, verilog, "engine", lookup_replay(recorded), output / "work").result
            run = EngineRun(
                variant=variant, seed=seed, design=design, depth=params.pipeline_depth, wanted=wanted,
                cycles=result.cycles, mismatches=result.mismatches,
                first="" if result.first is None else str(result.first), counters=recorded.totals,
            )  # fmt: skip
            check_destination(ledger, None)
            with ledger.open("a") as file:
                file.write(json.dumps(asdict(run)) + "\n")
        done.append(run)
        if progress is not None:
            progress(variant, variants)
    report = VariantsReport(tuple(done), simulator, time.perf_counter() - start)
    with report_in(output, config) as facts:
        facts.update({
            "simulator": simulator, "seed": seed, "lookups": report.total("lookups"),
            "cycles": sum(run.cycles for run in done), "mismatches": sum(run.mismatches for run in done),
            "runs": [asdict(run) for run in done], "seconds": report.seconds,
        })  # fmt: skip
    return report


def _finished(ledger: Path) -> Iterator[EngineRun]:
    """Yield the runs of earlier calls that were equal in every cycle."""
    if not ledger.exists():
        return
    for line in ledger.read_text().splitlines():
        try:
            run = EngineRun(**json.loads(line))
        except (ValueError, TypeError):
            continue  # cut off in the middle, or of another version
        if run.mismatches == 0:
            yield run
