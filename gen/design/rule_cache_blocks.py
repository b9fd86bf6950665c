"""The blocks of a rule cache that can be synthesized."""

from functools import partial

from hopforge.gen.design.blocks import Block
from hopforge.hw.rules.cube_lines import CubeLines
from hopforge.hw.rules.cube_sets import CubeSets
from hopforge.hw.rules.prefix_rules import PrefixRules
from hopforge.hw.rules.rule_cache import RuleCache
from hopforge.model.config import Config
from hopforge.model.lookup.rules.rule_cache_params import RuleCacheParams

__all__ = ["rule_cache_blocks", "sets_in_words"]

_RECIPES = ("lut-buffered", "lut-fast")


def sets_in_words(p: RuleCacheParams) -> str:
    """Return how the lines lie in sets; nothing where each may hold any address."""
    if p.ways is None:
        return ""
    return f" in {p.sets} sets of {p.ways} by the highest {p.hashed_bits} bits of an address"


def rule_cache_blocks(config: Config) -> dict[str, Block]:
    """Return the whole block, its lines and its TCAM."""
    p = RuleCacheParams.from_config(config)
    block = partial(Block, clocked=True, recipes=_RECIPES, efforts=False, clock_gates=True)
    lines, rules = f"{p.entries} lines{sets_in_words(p)} of {p.address_bits} bits, {p.policy}", f"{p.rows} prefix rules"
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
