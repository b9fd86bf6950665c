"""A rule cache with its TCAM as a generated package, and its blocks to synthesize."""

import dataclasses
from functools import partial
from pathlib import Path

from hopforge.gen.design.blocks import Block
from hopforge.gen.packages.package import Package, package_files, write_package
from hopforge.hw.rules.cube_lines import CubeLines
from hopforge.hw.rules.cube_sets import CubeSets
from hopforge.hw.rules.prefix_rules import PrefixRules
from hopforge.hw.rules.rule_cache import RuleCache
from hopforge.model.config import Config
from hopforge.model.lookup.rules.rule_cache_params import RuleCacheParams

__all__ = ["generate_rule_cache", "rule_cache_blocks", "rule_cache_files", "rule_cache_name", "rule_cache_package"]

PERIOD_NS = 1.5
"""Clock period of the constraints."""
_RECIPES = ("lut-buffered", "lut-fast")


def rule_cache_name(config: Config) -> str:
    """Name of the top module, and stem of every file."""
    return f"{config.name}_rule_cache"


def generate_rule_cache(config: Config, folder: Path, *, period_ns: float | None = None) -> list[Path]:
    """Write the rule cache of section `rule_cache`; the files appear together, complete.

    Parameters
    ----------
    config : Config
        Checked configuration.
    folder : Path
        For all files.
    period_ns : float
        Clock period of the constraints, ns; by default that of the package.

    Returns
    -------
    list of Path
        Verilog, lint waivers, constraints, FuseSoC core, documentation, manifest.

    Raises
    ------
    UserError
        A folder that cannot be written.
    """
    return write_package(rule_cache_files(config, period_ns=period_ns), folder)


def rule_cache_files(config: Config, *, period_ns: float | None = None) -> dict[str, str]:
    """Text of every generated file by its name, Verilog first."""
    return package_files(rule_cache_package(config), period_ns=period_ns)


def rule_cache_package(config: Config) -> Package:
    """Return what is generated of section `rule_cache`."""
    params, name = RuleCacheParams.from_config(config), rule_cache_name(config)
    return Package(
        name=name,
        kind="rule_cache",
        description="Cache before a TCAM of prefix rules",
        component=RuleCache(params),
        through=(("update_valid", "req_ready"),),
        period_ns=PERIOD_NS,
        manifest={
            "definition": "docs/definitions/rule-caches.md",
            "parameters": dataclasses.asdict(params),
            "derived": {"hit_cycles": 2, "miss_cycles": 2 + params.tcam_cycles},
            "registers": [],
        },
        documentation=_documentation(name, params),
    )


def _documentation(name: str, p: RuleCacheParams) -> str:
    """Return what a user of the module must know, as Markdown."""
    return "\n".join(
        [
            f"# `{name}`",
            "",
            f"Cache of {p.entries} lines{_sets(p)}, policy {p.policy}, before a TCAM of {p.rows} prefix rules. The "
            "module has no registers of a bus; `docs/definitions/rule-caches.md` of hopforge says what its ports mean.",
            "",
            "| constant | value |",
            "|---|---|",
            f"| bits of an address, an answer, a request number | {p.address_bits}, {p.output_bits}, {p.id_bits} |",
            "| cycles from a request to the answer of a hit | 2 |",
            f"| to the answer of a miss | {2 + p.tcam_cycles} |",
            *_walk_rows(p),
            f"| what an update removes | {'all lines' if p.invalidation == 'flush' else 'lines that overlap'} |",
            "",
        ]
    )


def _walk_rows(p: RuleCacheParams) -> list[str]:
    if p.ways is None:
        return []
    return [
        f"| cycles of a walk through all sets, after reset, a flush, and an update of less than {p.hashed_bits} bits "
        f"| {p.sets + 1}, with lookups at most {3 * p.sets + 3} |"
    ]


def _sets(p: RuleCacheParams) -> str:
    if p.ways is None:
        return ""
    return f" in {p.sets} sets of {p.ways} by the highest {p.hashed_bits} bits of an address"


def rule_cache_blocks(config: Config) -> dict[str, Block]:
    """Return the whole block, its lines and its TCAM."""
    p = RuleCacheParams.from_config(config)
    block = partial(Block, clocked=True, recipes=_RECIPES, efforts=False, clock_gates=True)
    lines, rules = f"{p.entries} lines{_sets(p)} of {p.address_bits} bits, {p.policy}", f"{p.rows} prefix rules"
    cache = (
        block(name="cube_lines", what=f"its cache, {lines}", build=partial(CubeLines, p))
        if p.ways is None
        else block(name="cube_sets", what=f"its cache, {lines}", build=partial(CubeSets, p))
    )
    found = [
        block(name="rule_cache", what=f"rule cache, {lines}, {rules}", build=partial(RuleCache, p)),
        cache,
        block(name="prefix_rules", what=f"its TCAM, {rules}", build=partial(PrefixRules, p)),
    ]
    return {each.name: each for each in found}
