"""The proof about the lookup engine holds, is not vacuous, and fails on planted faults."""

import pytest

from hopforge.gen.formal_lookup import MUTANTS, prove_lookup, refute_lookup


@pytest.mark.parametrize("depth", [1, 2, 3, pytest.param(4, marks=pytest.mark.study)])
def test_a_hit_is_the_answer_of_the_current_epoch(depth: int) -> None:
    assert prove_lookup(depth)


@pytest.mark.parametrize("mutant", list(MUTANTS))
def test_no_proof_of_a_mutant(mutant: str) -> None:
    assert not prove_lookup(3, mutant)


@pytest.mark.parametrize("mutant", ["MSHRs do not hear of a flush", "an answer of before an invalidation is taken"])
def test_counterexample_at_the_ports(mutant: str) -> None:
    assert refute_lookup(10, mutant=mutant)


def test_hits_are_reached() -> None:
    assert refute_lookup(10, no_hit=True)
    assert not refute_lookup(6)
