"""The kernel of cube caches on prefix tables has the counts of the golden model, and is right in long runs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopforge.model.lookup.rules.cube_cache import INVALIDATIONS, CubeCache, CubeSettings
from hopforge.model.lookup.rules.cube_kernel import KERNEL_POLICIES, KINDS, PrefixEvents, PrefixRules, run_prefixes
from hopforge.model.lookup.rules.cubes import prefix_mask
from hopforge.model.lookup.rules.rule_table import Rule, RuleTable, Update

WIDTH = 6
prefixes = st.integers(0, WIDTH).flatmap(
    lambda length: st.integers(0, (1 << length) - 1).map(lambda top: (top << (WIDTH - length), length))
)


@st.composite
def runs(draw):
    """Rules, and events: addresses, or (kind, prefix, out)."""
    start = draw(st.dictionaries(prefixes, st.integers(0, 2), max_size=10))
    live, events = dict(start), []
    for _ in range(draw(st.integers(0, 12))):
        events += draw(st.lists(st.integers(0, (1 << WIDTH) - 1), max_size=8))
        kind, out = draw(st.sampled_from(KINDS)), draw(st.integers(0, 2))
        prefix = draw(prefixes if kind == "add" or not live else st.sampled_from(sorted(live)))
        if (prefix in live) == (kind == "add"):
            continue
        events.append((kind, prefix, out))
        if kind == "del":
            del live[prefix]
        else:
            live[prefix] = out
    return start, events


def golden(start, events, chosen):
    ids = {prefix: number for number, prefix in enumerate(start)}

    def rule(prefix, out):
        return Rule(ids[prefix], prefix[0], prefix_mask(prefix[1], WIDTH), prefix[1], out)

    routing_cache = CubeCache(RuleTable([rule(*one) for one in start.items()], WIDTH), chosen)
    for number, event in enumerate(events):
        if isinstance(event, int):
            routing_cache.look_up(event)
            continue
        kind, prefix, out = event
        if kind == "add":
            ids[prefix] = 100 + number
        routing_cache.update(Update(kind, rule(prefix, out)))
    return routing_cache.counts()


def by_kernel(start, events, chosen):
    addresses, before, updates = [], [], []
    for event in events:
        if isinstance(event, int):
            addresses.append(event)
        else:
            before.append(len(addresses))
            updates.append((KINDS.index(event[0]), *event[1], event[2]))
    kinds, values, lengths, outs = np.array(updates, np.int64).reshape(-1, 4).T.copy()
    pairs = np.array(list(start), np.int64).reshape(-1, 2)
    rules = PrefixRules(pairs[:, 0].copy(), pairs[:, 1].copy(), np.array(list(start.values()), np.int32), WIDTH)
    addresses, before = np.array(addresses, np.int64), np.array(before, np.int64)
    return run_prefixes(rules, PrefixEvents(addresses, before, kinds, values, lengths, outs.astype(np.int32)), chosen)


@settings(max_examples=400, deadline=None)
@given(
    runs(), st.sampled_from(KERNEL_POLICIES), st.integers(1, 5), st.sampled_from(INVALIDATIONS), st.integers(1, 4),
    st.booleans(),
)  # fmt: skip
def test_counts_are_those_of_the_golden_model(run, policy, size, invalidation, fill, guard):
    start, events = run
    chosen = CubeSettings(policy, size, invalidation, fill, guard)
    found = by_kernel(start, events, chosen)
    assert found == golden(start, events, chosen)
    assert found.wrong == 0 or not chosen.is_correct


def test_bad_arguments():
    rules = PrefixRules(np.array([4, 4]), np.array([5, 5]), np.zeros(2, np.int32), WIDTH)
    none = np.zeros(0, np.int64)
    events = PrefixEvents(none, none, none, none, none, none.astype(np.int32))
    with pytest.raises(ValueError, match="prefix 0x4/5 is there twice"):
        run_prefixes(rules, events, CubeSettings("exact", 4))
    with pytest.raises(ValueError, match="policy must be one of exact, host, mep, naive, not uniform"):
        run_prefixes(rules, events, CubeSettings("uniform", 4))
