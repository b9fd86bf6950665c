"""Co-simulation of a rule cache with its golden model: `hopforge cosim --part rule_cache`."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hopforge.gen.packages.rule_cache import rule_cache_name
from hopforge.gen.verilog.writer import to_verilog
from hopforge.hw.rules.rule_cache import RuleCache
from hopforge.model.config import Config
from hopforge.model.lookup.rules.rule_cache_params import RuleCacheParams
from hopforge.sim.benches.rule_cache import RuleCacheTraffic, rule_cache_run
from hopforge.sim.cosim.run import chosen_simulator, play, report_in
from hopforge.sim.drive.replay import Progress, ReplayResult
from hopforge.sim.drive.runner import SimulatorName

__all__ = ["RuleCacheReport", "cosim_rule_cache"]

_UPDATES = ("insertions", "removals", "changes", "flushes", "refused")


@dataclass(frozen=True)
class RuleCacheReport:
    """What a co-simulation found.

    Attributes
    ----------
    name, simulator : str
        Top module and the simulator that ran it.
    params : RuleCacheParams
        The block.
    seed : int
        Of the traffic.
    counts : Counter
        Of `hopforge.sim.benches.rule_cache.RuleCacheRun`.
    result : ReplayResult
        Cycles compared, cycles that differ, the first difference.
    """

    name: str
    simulator: SimulatorName
    params: RuleCacheParams
    seed: int
    counts: Counter[str]
    result: ReplayResult

    @property
    def passed(self) -> bool:
        """Whether every output was as expected in every cycle."""
        return self.result.mismatches == 0

    def rows(self) -> Iterator[tuple[str, str]]:
        """Return the report as (subject, words) for a table."""
        p, counts, result = self.params, self.counts, self.result
        sets = "" if p.ways is None else f" in {p.sets} sets of {p.ways}"
        yield "rule cache", f"{self.name} on {self.simulator}, seed {self.seed}"
        yield (
            "size",
            f"{p.entries} lines{sets}, policy {p.policy}, invalidation {p.invalidation}; {p.rows} rules of "
            f"{p.address_bits} bits, {p.tcam_cycles} cycles",
        )
        yield "cycles", f"{result.cycles}, every output compared in each"
        yield (
            "lookups",
            f"{counts['lookups']:,}, {counts['hits']:,} of them hits, each answer compared with the longest prefix",
        )
        yield "lines", f"{counts['fills']:,} filled, {counts['evictions']:,} evicted, {counts['drops']:,} dropped"
        yield "updates", ", ".join(f"{counts[name]:,} {name}" for name in _UPDATES)
        yield "mismatches", result.words


def cosim_rule_cache(
    config: Config,
    *,
    simulator: SimulatorName | None = None,
    lookups: int | None = None,
    seed: int | None = None,
    waves: bool = False,
    output: Path,
    progress: Progress | None = None,
) -> RuleCacheReport:
    """Compare the Verilog of the configured rule cache with the golden one, every output in every cycle.

    Parameters
    ----------
    config : Config
        With section `rule_cache`.
    lookups : int, optional
        Accepted; by default those of the configuration (``cosim.lookups``).
    simulator, seed, waves, output, progress
        As in `hopforge.sim.cosim.lookup.cosim`.

    Raises
    ------
    UserError
        A tool that is missing or fails.
    """
    params, top = RuleCacheParams.from_config(config), rule_cache_name(config)
    chosen = chosen_simulator(config, simulator)
    traffic = RuleCacheTraffic(
        lookups=config.cosim.lookups if lookups is None else lookups, seed=config.seed if seed is None else seed
    )
    recorded = rule_cache_run(params, traffic)
    verilog = to_verilog(RuleCache(params), top)
    with report_in(output, config) as facts:
        run = play(chosen, verilog, top, recorded.replay, output / chosen, waves=waves, progress=progress)
        report = RuleCacheReport(top, chosen, params, traffic.seed, recorded.counts, run.result)
        facts.update(dict(report.rows()))
        facts["cycles"], facts["mismatches"] = run.result.cycles, run.result.mismatches
    return report
