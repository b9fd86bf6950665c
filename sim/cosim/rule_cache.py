"""Co-simulation of a rule cache with its golden model: `hopforge cosim --part rule_cache`."""

from pathlib import Path

from hopforge.gen.packages.rule_cache import rule_cache_name
from hopforge.hw.rules.rule_cache import RuleCache
from hopforge.model.config import Config
from hopforge.model.lookup.rules.rule_cache_params import RuleCacheParams
from hopforge.sim.benches.rule_cache import RuleCacheTraffic, rule_cache_run
from hopforge.sim.cosim.block import BlockReport, compare_block
from hopforge.sim.cosim.run import chosen_simulator
from hopforge.sim.drive.replay import Progress
from hopforge.sim.drive.runner import SimulatorName

__all__ = ["cosim_rule_cache"]

_UPDATES = ("insertions", "removals", "changes", "flushes", "refused")


def cosim_rule_cache(
    config: Config,
    *,
    simulator: SimulatorName | None = None,
    lookups: int | None = None,
    seed: int | None = None,
    waves: bool = False,
    output: Path,
    progress: Progress | None = None,
) -> BlockReport:
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
    counts, sets = recorded.counts, "" if params.ways is None else f" in {params.sets} sets of {params.ways}"
    words = (
        (
            "size",
            f"{params.entries} lines{sets}, policy {params.policy}, invalidation {params.invalidation}; "
            f"{params.rows} rules of {params.address_bits} bits, {params.tcam_cycles} cycles",
        ),
        (
            "lookups",
            f"{counts['lookups']:,}, {counts['hits']:,} of them hits, each answer compared with the longest prefix",
        ),
        ("lines", f"{counts['fills']:,} filled, {counts['evictions']:,} evicted, {counts['drops']:,} dropped"),
        ("updates", ", ".join(f"{counts[name]:,} {name}" for name in _UPDATES)),
    )
    return compare_block(
        config, "rule cache", RuleCache(params), top, recorded.replay, words,
        simulator=chosen, seed=traffic.seed, waves=waves, output=output, progress=progress,
    )  # fmt: skip
