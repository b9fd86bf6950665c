"""Caches of rules with their dependencies against golden cases and brute force (docs/definitions/rule-caches.md)."""

import json
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopforge.model.lookup.rules.dependencies import Dependencies
from hopforge.model.lookup.rules.dependency_cache import (
    DEPENDENCY_POLICIES,
    DependencyCache,
    DependencySettings,
)
from hopforge.model.lookup.rules.rule_table import Rule, RuleTable, Update
from hopforge.model.lookup.rules.static_choice import STATIC_WAYS, choose, static_hits

_PLACES = [folder / "shared" / "beyond" / "ternary.json" for folder in Path(__file__).parents]
GOLDEN = next((place for place in _PLACES if place.exists()), None)
needs_golden = pytest.mark.skipif(GOLDEN is None, reason="the folder shared is not beside this checkout")
CASES = json.loads(GOLDEN.read_text())["cases"] if GOLDEN else []


def table_of(case):
    return RuleTable([Rule(*rule) for rule in case["rules"]], case["width"])


def events_of(case):
    table = {rule[0]: Rule(*rule) for rule in case["rules"]}
    for kind, *words in case["events"]:
        if kind == "L":
            yield words[0]
            continue
        if kind == "mod":
            table[words[0]] = table[words[0]]._replace(out=words[1])
        elif kind == "add":
            table[words[0]] = Rule(*words)
        yield Update(kind, table[words[0]])


@needs_golden
def test_golden_graphs():
    assert CASES
    for case in CASES:
        dependencies = Dependencies(table_of(case))
        for which in ("direct", "overlap", "closure"):
            for number, wanted in case[which].items():
                assert sorted(getattr(dependencies, which)(int(number))) == wanted, (case["name"], which, number)


@needs_golden
def test_golden_counts():
    compared = 0
    for case in CASES:
        for want in case["results"]:
            if want["policy"] not in DEPENDENCY_POLICIES:
                continue
            settings = DependencySettings(want["policy"], case["size"], want["invalidate"], want["exact_graph"])
            found = DependencyCache(table_of(case), settings).run(events_of(case))._asdict()
            assert {key: want[key] for key in found} == found, (case["name"], want)
            compared += 1
    assert compared > 20


@needs_golden
def test_golden_static_choices():
    for case in CASES:
        table = table_of(case)
        weights = {int(number): weight for number, weight in case["weights"].items()}
        addresses = [event[1] for event in case["events"] if event[0] == "L"]
        for want in case["static"]:
            choice = choose(table, weights, want["size"], want["how"])
            assert sorted(choice.real) == want["real"], (case["name"], want)
            assert sorted(choice.cover) == want["cover"], (case["name"], want)
            assert static_hits(table, choice, addresses) == want["hits"], (case["name"], want)


cubes = st.tuples(st.integers(0, 31), st.integers(0, 31)).map(lambda pair: (pair[0] & pair[1], pair[1]))
rules = st.lists(st.tuples(cubes, st.integers(0, 3), st.integers(0, 3)), max_size=8)


def _table(drawn):
    return RuleTable([Rule(n, *cube, priority, out) for n, (cube, priority, out) in enumerate(drawn)], 5)


@given(rules)
def test_direct_by_every_address(drawn):
    table = _table(drawn)
    dependencies = Dependencies(table)
    for place, rule in enumerate(table.rules):
        wanted = set()
        for address in range(32):
            if address & rule.mask == rule.value:
                above = [one.id for one in table.rules[:place] if address & one.mask == one.value]
                wanted |= set(above[-1:])
        assert dependencies.direct(rule.id) == wanted


@given(
    rules, st.lists(st.integers(0, 31) | st.sampled_from(["add", "del", "mod"]), max_size=30),
    st.sampled_from(DEPENDENCY_POLICIES), st.booleans(), st.integers(1, 5), st.sampled_from(["overlap", "flush"]),
    st.randoms(use_true_random=False),
)  # fmt: skip
def test_a_hit_is_never_wrong(drawn, words, policy, exact, size, invalidation, random):
    table = _table(drawn)
    kept = DependencyCache(table, DependencySettings(policy, size, invalidation, exact or policy == "dependent"))
    for number, word in enumerate(words):
        if isinstance(word, int):
            kept.look_up(word)
        elif word == "add":
            mask = random.randrange(32)
            kept.update(Update("add", Rule(50 + number, random.randrange(32) & mask, mask, random.randrange(4), 5)))
        elif len(table):
            victim = random.choice(table.rules)
            kept.update(Update(word, victim._replace(out=6)))
    counts = kept.counts()
    assert counts.wrong == 0
    assert counts.peak <= size
    assert counts.installs + counts.hits + counts.uncacheable <= counts.lookups


def spread(number, places):
    """Put bit k of a number into bit `places[k]`."""
    return sum(1 << place for k, place in enumerate(places) if number >> k & 1)


def spread_rule(rule, places):
    return rule._replace(value=spread(rule.value, places), mask=spread(rule.mask, places))


def spread_event(event, places, noise):
    """Spread an event; bits of an address that no rule looks at are anything."""
    if isinstance(event, Update):
        return event._replace(rule=spread_rule(event.rule, places))
    return spread(event, places) | noise.getrandbits(128) & ~spread(-1, places)


def wide(table, width, places):
    return RuleTable([spread_rule(rule, places) for rule in table.rules], width)


@needs_golden
@pytest.mark.parametrize("width", [62, 63, 64, 124, 125, 128])
def test_golden_cases_with_their_bits_all_over_a_wide_address(width):
    """Which bits of an address rules look at does not matter: counts, graphs and choices are those of the file."""
    random, compared = Random(width), 0
    for case in CASES:
        places = random.sample(range(width), case["width"])
        mask = (1 << width) - 1
        for want in case["results"]:
            if want["policy"] in DEPENDENCY_POLICIES:
                settings = DependencySettings(want["policy"], case["size"], want["invalidate"], want["exact_graph"])
                table = wide(table_of(case), width, places)
                events = [spread_event(event, places, random) for event in events_of(case)]
                events = [event if isinstance(event, Update) else event & mask for event in events]
                found = DependencyCache(table, settings).run(events)._asdict()
                assert {key: want[key] for key in found} == found, (case["name"], want)
                compared += 1
        table = wide(table_of(case), width, places)
        weights = {int(number): weight for number, weight in case["weights"].items()}
        addresses = [spread(event[1], places) for event in case["events"] if event[0] == "L"]
        for want in case["static"]:
            choice = choose(table, weights, want["size"], want["how"])
            found = sorted(choice.real), sorted(choice.cover), static_hits(table, choice, addresses)
            assert found == (want["real"], want["cover"], want["hits"]), (case["name"], want)
        dependencies = Dependencies(table)
        for which in ("direct", "overlap", "closure"):
            for number, wanted in case[which].items():
                assert sorted(getattr(dependencies, which)(int(number))) == wanted
    assert compared > 20


@given(rules, st.sampled_from(STATIC_WAYS), st.integers(1, 6))
def test_static_choices_answer_as_the_table(drawn, how, size):
    table = _table(drawn)
    weights = {}
    for address in range(32):
        rule = table.match(address)
        if rule is not None:
            weights[rule.id] = weights.get(rule.id, 0) + 1
    choice = choose(table, weights, size, how)
    assert len(choice.real) + len(choice.cover) <= size
    assert not choice.real & choice.cover
    static_hits(table, choice, range(32))  # raises if one is not the table's


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        (DependencySettings("all", 4), "policy must be one of cover, dependent, not all"),
        (DependencySettings("cover", 0), "size must be at least 1, not 0"),
        (DependencySettings("cover", 4, "none"), "must be one of overlap, flush with policy cover, not none"),
        (DependencySettings("dependent", 4, exact_graph=False), "exact_graph must be true with policy dependent"),
    ],
)
def test_bad_settings(settings, text):
    with pytest.raises(ValueError, match=text):
        DependencyCache(RuleTable([], 3), settings)


def test_bad_choices():
    with pytest.raises(ValueError, match="how must be one of dependent, cover, mixed, not best"):
        choose(RuleTable([], 3), {}, 1, "best")
    with pytest.raises(ValueError, match="size must be at least 1, not 0"):
        choose(RuleTable([], 3), {}, 0, "cover")


@given(data=st.data())
def test_rules_are_found_in_blocks_as_by_looking_at_each(data):
    """Blocks of 2, 6, 24 … rules, from a table that changes; every rule, and every number that would be too many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hopforge.model.lookup.rules.rule_table._FIRST_BLOCK", 2)
        cubes = st.tuples(st.integers(0, 63), st.integers(0, 63), st.integers(0, 5))
        rules = [Rule(n, v & m, m, p, n) for n, (v, m, p) in enumerate(data.draw(st.lists(cubes, max_size=30)))]
        table = RuleTable(rules, 6)
        assert len(table.columns) == len(rules)
        for number, (value, mask, priority) in enumerate(data.draw(st.lists(cubes, max_size=4)), 100):
            table.apply(Update("add", Rule(number, value & mask, mask, priority, 0)))
        for rule in data.draw(st.lists(st.sampled_from(rules), max_size=4, unique=True)) if rules else []:
            table.apply(Update("del", rule))
        order = sorted(table.rules, key=lambda rule: (-rule.priority, rule.id))
        values, masks = table.columns.numbers(list(range(len(order))))
        assert list(zip(values.tolist(), masks.tolist(), strict=True)) == [(rule.value, rule.mask) for rule in order]
        for address in range(64):
            assert table.match(address) == next((rule for rule in order if address & rule.mask == rule.value), None)
        for place, rule in enumerate(order):
            above = [
                other.id for other in order[:place]
                if any(a & other.mask == other.value and a & rule.mask == rule.value for a in range(64))
            ]  # fmt: skip
            for most in (0, max(len(above) - 1, 0), len(above), len(above) + 3):
                wanted = None if len(above) > most else sorted(above)
                found = Dependencies(table).overlap(rule.id, most)
                assert (None if found is None else sorted(found)) == wanted
