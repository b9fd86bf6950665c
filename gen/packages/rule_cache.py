"""A rule cache with its TCAM as a generated package."""

import dataclasses

from hopforge.gen.design.rule_cache_blocks import sets_in_words
from hopforge.gen.packages.package import Package
from hopforge.hw.rules.rule_cache import RuleCache
from hopforge.model.config import Config
from hopforge.model.lookup.rules.rule_cache_params import RuleCacheParams

__all__ = ["rule_cache_name", "rule_cache_package"]

PERIOD_NS = 1.5
"""Clock period of the constraints."""


def rule_cache_name(config: Config) -> str:
    """Name of the top module, and stem of every file."""
    return f"{config.name}_rule_cache"


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
            f"Cache of {p.entries} lines{sets_in_words(p)}, policy {p.policy}, before a TCAM of {p.rows} prefix rules. "
            "The module has no registers of a bus; `docs/definitions/rule-caches.md` of hopforge says what its ports "
            "mean.",
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
