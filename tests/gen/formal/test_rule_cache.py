"""The proof about the rule cache holds, and fails on planted faults."""

import pytest

from hopforge.gen.formal.rule_cache import (
    RULE_EVENTS,
    RULE_MUTANTS,
    prove_rule_cache,
    reaches_rule_event,
    refute_rule_cache,
)
from hopforge.gen.formal.rule_sets import (
    SET_EVENTS,
    SET_MUTANTS,
    prove_rule_sets,
    reaches_set_event,
    refute_rule_sets,
)


@pytest.mark.parametrize(
    "policy", ["mep", *(pytest.param(policy, marks=pytest.mark.study) for policy in ("exact", "host"))]
)
def test_a_hit_is_what_the_tcam_answers(policy: str) -> None:
    assert prove_rule_cache(policy)


@pytest.mark.study
def test_of_other_sizes() -> None:
    assert prove_rule_cache("mep", wide=True)
    assert prove_rule_cache("mep", invalidation="flush")
    assert prove_rule_cache("host", tcam_cycles=7)


MUTANTS = list(RULE_MUTANTS)


@pytest.mark.parametrize(
    "mutant", [*MUTANTS[1:3], *(pytest.param(name, marks=pytest.mark.study) for name in (MUTANTS[0], *MUTANTS[3:]))]
)
def test_a_mutant_gives_a_wrong_answer(mutant: str) -> None:
    """A run from reset ends with a wrong answer at the port; the proof fails, too."""
    assert refute_rule_cache(mutant=mutant)
    assert not prove_rule_cache(mutant=mutant)


def test_what_has_a_proof_is_not_refuted() -> None:
    assert not refute_rule_cache("mep", 8)


@pytest.mark.parametrize(
    "event", [RULE_EVENTS[2], *(pytest.param(name, marks=pytest.mark.study) for name in RULE_EVENTS if name != "drop")]
)
def test_the_proof_speaks_of_something(event: str) -> None:
    assert reaches_rule_event(event)


@pytest.mark.parametrize("policy", [pytest.param(policy, marks=pytest.mark.study) for policy in ("exact", "host")])
def test_a_hit_in_sets_is_what_the_tcam_answers(policy: str) -> None:
    assert prove_rule_sets(policy)


@pytest.mark.study
def test_of_other_sizes_of_sets() -> None:
    assert prove_rule_sets("mep")
    assert prove_rule_sets("mep", wide=True)
    assert prove_rule_sets("mep", invalidation="flush")
    assert prove_rule_sets("mep", tcam_cycles=7)


SETS = list(SET_MUTANTS)


@pytest.mark.parametrize("mutant", [SETS[0], *(pytest.param(name, marks=pytest.mark.study) for name in SETS[1:])])
def test_a_mutant_of_sets_gives_a_wrong_answer(mutant: str) -> None:
    assert refute_rule_sets(mutant=mutant)


@pytest.mark.study
def test_the_proof_of_sets_needs_what_the_mutants_lack() -> None:
    assert not any(prove_rule_sets(mutant=mutant) for mutant in SETS)
    assert all(reaches_set_event(event) for event in SET_EVENTS)
    assert not refute_rule_sets("mep", 8)
