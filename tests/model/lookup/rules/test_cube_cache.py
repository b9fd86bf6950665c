"""Cube caches against the golden cases (docs/definitions/rule-caches.md), and by brute force on small tables."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopforge.model.lookup.rules.cube_cache import INVALIDATIONS, CubeCache, CubeSettings
from hopforge.model.lookup.rules.cube_policies import CUBE_POLICIES
from hopforge.model.lookup.rules.rule_table import Rule, RuleTable, Update

_PLACES = [folder / "shared" / "beyond" for folder in Path(__file__).parents]
GOLDEN = next((place for place in _PLACES if place.exists()), None)
needs_golden = pytest.mark.skipif(GOLDEN is None, reason="the folder shared is not beside this checkout")


def cases(name):
    found = json.loads((GOLDEN / f"{name}.json").read_text())["cases"] if GOLDEN else []
    assert found or not GOLDEN
    return found


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


def settings_of(want, case):
    return CubeSettings(
        want["policy"], case["size"], want["invalidate"], want.get("fill", 1), want.get("guard", True)
    )  # fmt: skip


@needs_golden
@pytest.mark.parametrize("name", ["lpm", "ternary"])
def test_golden_answers(name):
    for case in cases(name):
        table, answers = table_of(case), []
        for event in events_of(case):
            if isinstance(event, Update):
                table.apply(event)
            else:
                answers.append(table.answer(event))
        assert answers == case["answers"], case["name"]


@needs_golden
def test_golden_cubes():
    for case in cases("lpm"):
        table = table_of(case)
        for address, *wanted in case["entries_at_start"]:
            rule = table.match(address)
            for policy, cube in zip(("host", "mep", "uniform", "megaflow"), wanted, strict=True):
                assert CUBE_POLICIES[policy](table, address, rule) == tuple(cube), (case["name"], address, policy)


@needs_golden
@pytest.mark.parametrize("name", ["lpm", "ternary"])
def test_golden_counts(name):
    for case in cases(name):
        for want in case["results"]:
            if want["policy"] not in CUBE_POLICIES:
                continue
            found = CubeCache(table_of(case), settings_of(want, case)).run(events_of(case))._asdict()
            assert {key: want[key] for key in found} == found, (case["name"], want)


cubes = st.tuples(st.integers(0, 31), st.integers(0, 31)).map(lambda pair: (pair[0] & pair[1], pair[1]))
rules = st.lists(st.tuples(cubes, st.integers(0, 3), st.integers(0, 3)), max_size=8)


def _table(drawn):
    return RuleTable([Rule(n, *cube, priority, out) for n, (cube, priority, out) in enumerate(drawn)], 5)


def _top(length):
    return (31 << (5 - length)) & 31


def _prefixes(drawn):
    """The same rules as prefixes."""
    found = []
    for number, ((value, mask), _, out) in enumerate(drawn):
        length = mask.bit_count()
        found.append(Rule(number, value & _top(length), _top(length), length, out))
    return RuleTable(found, 5)


def brute(table, address):
    matching = [rule for rule in table.rules if address & rule.mask == rule.value]
    return min(matching, key=lambda rule: (-rule.priority, rule.id), default=None)


@given(rules, st.integers(0, 31))
def test_cubes_hold_one_answer(drawn, address):
    for table in (_table(drawn), _prefixes(drawn)):
        rule = brute(table, address)
        assert table.match(address) == rule
        for policy, cube_of in CUBE_POLICIES.items():
            if policy == "naive" or (policy == "mep" and not table.is_prefix_table):
                continue
            value, mask = cube_of(table, address, rule)
            assert address & mask == value, policy
            out = None if rule is None else rule.out
            assert all(table.answer(one) == out for one in range(32) if one & mask == value), policy
            if policy == "uniform":  # no shorter prefix is right
                wider = (mask << 1) & 31
                outs = {table.answer(one) for one in range(32) if one & wider == address & wider}
                assert mask == 0 or len(outs) > 1


@given(rules, cubes, st.none() | st.integers(0, 3))
def test_all_answer_looks_at_every_address(drawn, cube, out):
    table, (value, mask) = _table(drawn), cube
    wanted = all(table.answer(one) == out for one in range(32) if one & mask == value)
    assert table.all_answer(value, mask, out) == wanted


@st.composite
def streams(draw):
    drawn = draw(rules)
    present, events = dict(enumerate(drawn)), []
    for number in range(draw(st.integers(0, 12))):
        events += draw(st.lists(st.integers(0, 31), max_size=6))
        what = draw(st.sampled_from(["add", "del", "mod"]))
        if what == "add":
            present[100 + number] = draw(st.tuples(cubes, st.integers(0, 3), st.integers(0, 3)))
            events.append((what, 100 + number, present[100 + number]))
        elif present:
            victim = draw(st.sampled_from(sorted(present)))
            if what == "mod":
                present[victim] = (*present[victim][:2], draw(st.integers(0, 3)))
            events.append((what, victim, present[victim]))
            if what == "del":
                del present[victim]
    return drawn, events


def _event(event, prefix):
    if isinstance(event, int):
        return event
    kind, number, ((value, mask), priority, out) = event
    if prefix:
        priority = mask.bit_count()
        mask = _top(priority)
    return Update(kind, Rule(number, value & mask, mask, priority, out))


@given(
    streams(), st.sampled_from([name for name in CUBE_POLICIES if name != "naive"]), st.integers(1, 4),
    st.integers(1, 3), st.sampled_from([how for how in INVALIDATIONS if how != "none"]),
)  # fmt: skip
def test_a_hit_is_never_wrong(stream, policy, size, fill, invalidation):
    drawn, events = stream
    prefix = policy == "mep"
    routing_cache = CubeCache(
        (_prefixes if prefix else _table)(drawn), CubeSettings(policy, size, invalidation, fill)
    )
    counts = routing_cache.run([_event(event, prefix) for event in events])
    assert counts.wrong == 0
    assert counts.peak <= size
    assert counts.lookups == sum(isinstance(event, int) for event in events)


def test_naive_is_found_out():
    table = RuleTable([Rule(0, 0, 0, 0, 1), Rule(1, 4, 7, 3, 2)], 3)
    assert CubeCache(table, CubeSettings("naive", 4)).run([0, 4]).wrong == 1


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        (CubeSettings("best", 4), "policy must be one of exact, host, mep, uniform, megaflow, naive, not best"),
        (CubeSettings("exact", 0), "size must be at least 1, not 0"),
        (CubeSettings("exact", 1, fill=0), "fill must be at least 1, not 0"),
        (CubeSettings("exact", 1, "all"), "invalidation must be one of overlap, changed, flush, none, not all"),
        (CubeSettings("mep", 1), "policy mep needs a prefix table"),
    ],
)
def test_bad_settings(settings, text):
    with pytest.raises(ValueError, match=text):
        CubeCache(RuleTable([Rule(0, 1, 1, 0, 1)], 3), settings)


@pytest.mark.parametrize(
    ("rules", "width", "text"),
    [
        ([], 0, "width must be 1 to 128 bits, not 0"),
        ([(0, 8, 8, 0, 1)], 3, r"rule 0: value and mask must be below 2\^3"),
        ([(0, 3, 1, 0, 1)], 3, "rule 0: value 0x3 has bits outside mask 0x1"),
        ([(0, 1, 1, 0, 1)] * 2, 3, "two rules have the same id"),
    ],
)
def test_bad_tables(rules, width, text):
    with pytest.raises(ValueError, match=text):
        RuleTable([Rule(*rule) for rule in rules], width)


def test_bad_updates():
    rule = Rule(0, 1, 1, 0, 1)
    with pytest.raises(ValueError, match="add of rule 0, which is there"):
        RuleTable([rule], 3).apply(Update("add", rule))
    with pytest.raises(ValueError, match="del of rule 0, which is not there"):
        RuleTable([], 3).apply(Update("del", rule))


@pytest.mark.parametrize("priority", [-1, 1, 40])
def test_a_priority_that_is_no_length(priority):
    assert not RuleTable([Rule(0, 0, 0, priority, 1)], 3).is_prefix_table
