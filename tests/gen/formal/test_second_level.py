"""The proof about the second level holds, and fails on planted faults."""

import pytest

from hopforge.gen.formal.second_level import SECOND_MUTANTS, prove_second_level, refute_second_level


@pytest.mark.parametrize(
    ("latency", "deep"),
    [(4, False), pytest.param(4, True, marks=pytest.mark.study), pytest.param(6, False, marks=pytest.mark.study)],
)
def test_to_the_engine_a_second_level_is_a_tcam(latency: int, deep: bool) -> None:
    assert prove_second_level(latency_cycles=latency, deep=deep)


MUTANTS = list(SECOND_MUTANTS)
#: abc found no run of 40 cycles in which lines of an old epoch answer
SHOWN = [name for name in MUTANTS if name != "the scrubber leaves old lines"]


@pytest.mark.parametrize(
    "mutant", [*MUTANTS[:2], *(pytest.param(name, marks=pytest.mark.study) for name in MUTANTS[2:])]
)
def test_no_proof_of_a_mutant(mutant: str) -> None:
    assert not prove_second_level(mutant=mutant)


@pytest.mark.parametrize(
    "mutant", [SHOWN[0], *(pytest.param(name, marks=pytest.mark.study) for name in SHOWN[1:])]
)
def test_a_mutant_gives_a_wrong_answer(mutant: str) -> None:
    """A proof may fail in a state that is never reached; here a run from reset ends with a wrong answer at the port."""
    assert refute_second_level(20, mutant)


def test_what_has_a_proof_is_not_refuted() -> None:
    assert not refute_second_level(5)
