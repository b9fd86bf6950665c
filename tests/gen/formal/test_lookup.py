"""The proof about the lookup engine holds, is not vacuous, and fails on planted faults."""

import pytest

from hopforge.gen.formal.deep_lookup import DEEP_MUTANTS
from hopforge.gen.formal.engines import prove_lookup, refute_lookup
from hopforge.gen.formal.lookup import MUTANTS


@pytest.mark.parametrize("depth", [1, 3, *(pytest.param(deep, marks=pytest.mark.study) for deep in (2, 4, 5, 6, 7, 8))])
def test_a_hit_is_the_answer_of_the_current_epoch(depth: int) -> None:
    assert prove_lookup(depth)


@pytest.mark.parametrize("depth", [5, *(pytest.param(deep, marks=pytest.mark.study) for deep in (6, 7, 8))])
def test_a_hit_is_the_answer_behind_a_memory_stage(depth: int) -> None:
    assert prove_lookup(depth, memory_stage=True)


@pytest.mark.parametrize(
    "mutant",
    [
        "nothing waits for a writer",
        *(pytest.param(mutant, marks=pytest.mark.study) for mutant in DEEP_MUTANTS if mutant[:7] != "nothing"),
    ],
)
def test_no_proof_of_a_mutant_behind_a_memory_stage(mutant: str) -> None:
    assert not prove_lookup(5, mutant, memory_stage=True)


@pytest.mark.parametrize("mutant", list(MUTANTS))
@pytest.mark.thinned(2)
def test_no_proof_of_a_mutant(mutant: str) -> None:
    assert not prove_lookup(3, mutant)


#: mutants whose counterexamples take long to find
SLOW = {
    "responses find a place that is taken", "the scrubber leaves old lines", "lines of every epoch are live",
    "a fill frees nothing", "a hit allocates an MSHR as well",
}  # fmt: skip


@pytest.mark.parametrize("depth", [5, pytest.param(8, marks=pytest.mark.study)])
@pytest.mark.parametrize(
    "mutant", [pytest.param(each, marks=pytest.mark.study) if each in SLOW else each for each in DEEP_MUTANTS]
)
@pytest.mark.thinned(2)
def test_no_proof_of_a_deep_mutant(depth: int, mutant: str) -> None:
    assert not prove_lookup(depth, mutant)


@pytest.mark.parametrize("mutant", ["MSHRs do not hear of a flush", "an answer of before an invalidation is taken"])
def test_counterexample_at_the_ports(mutant: str) -> None:
    assert refute_lookup(10, mutant=mutant)


def test_hits_are_reached() -> None:
    assert refute_lookup(10, no_hit=True)
    assert not refute_lookup(6)
