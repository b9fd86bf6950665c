"""What a cube cache keeps of a miss: the cube around the address that is cached with the answer of its rule.

A policy takes the table, the address and the rule that matches it (None: no rule; its mask is 0 and it loses to every
rule) and returns value and mask. Definition: docs/definitions/rule-caches.md.
"""

from collections.abc import Callable

from hopforge.model.lookup.rules.cubes import overlap, prefix_mask
from hopforge.model.lookup.rules.rule_table import Rule, RuleTable

__all__ = ["CUBE_POLICIES", "PREFIX_POLICIES", "WRONG_POLICIES", "Cube"]

Cube = tuple[int, int]


def _exact(table: RuleTable, address: int, rule: Rule | None) -> Cube:
    return address, table.full_mask


def _naive(table: RuleTable, address: int, rule: Rule | None) -> Cube:
    return _exact(table, address, rule) if rule is None else (rule.value, rule.mask)


def _host(table: RuleTable, address: int, rule: Rule | None) -> Cube:
    cube = (0, 0) if rule is None else (rule.value, rule.mask)
    return _exact(table, address, rule) if table.has_winner(rule, *cube) else cube


def _mep(table: RuleTable, address: int, rule: Rule | None) -> Cube:
    """Minimal expansion of prefixes (RRC-ME, Akhbarizadeh and Nourani)."""
    shortest = 0 if rule is None else rule.mask.bit_count()
    for length in range(shortest, table.width):
        mask = prefix_mask(length, table.width)
        if not table.has_winner(rule, address & mask, mask):
            return address & mask, mask
    return _exact(table, address, rule)


def _uniform(table: RuleTable, address: int, rule: Rule | None) -> Cube:
    """Return the largest prefix that is right; whether a prefix is right is monotonous in its length."""
    out = None if rule is None else rule.out
    low, high = 0, table.width
    while low < high:
        length = (low + high) // 2
        mask = prefix_mask(length, table.width)
        if table.all_answer(address & mask, mask, out):
            high = length
        else:
            low = length + 1
    mask = prefix_mask(low, table.width)
    return address & mask, mask


def _megaflow(table: RuleTable, address: int, rule: Rule | None) -> Cube:
    """Add the highest bit that tells the address from every rule that wins, in the manner of Open vSwitch."""
    mask = 0 if rule is None else rule.mask
    for winner in table.winners(rule, address & mask, mask):
        if overlap(address & mask, mask, winner.value, winner.mask):
            mask |= 1 << (((winner.value ^ address) & winner.mask).bit_length() - 1)
    return address & mask, mask


CUBE_POLICIES: dict[str, Callable[[RuleTable, int, Rule | None], Cube]] = {
    "exact": _exact, "host": _host, "mep": _mep, "uniform": _uniform, "megaflow": _megaflow, "naive": _naive,
}  # fmt: skip
"""Policies by name."""

PREFIX_POLICIES = frozenset(["mep"])
"""Those that need a prefix table."""

WRONG_POLICIES = frozenset(["naive"])
"""Those that answer wrongly on purpose, to show that the check can fail."""
