"""Proof about look-ahead with lookup engines; a faulty choice or a faulty head has none."""

import pytest

from hopforge.gen.formal.next_lookup import NEXT_MUTANTS, prove_next_lookup, refute_next_lookup


def test_heads_leave_with_the_answer_about_their_own_destination():
    assert prove_next_lookup()


@pytest.mark.parametrize("mutant", NEXT_MUTANTS)
@pytest.mark.thinned(2)
def test_faulty_look_ahead_has_no_proof(mutant):
    assert not prove_next_lookup(mutant=mutant)
    assert refute_next_lookup(8, mutant), "fails where no run comes to"


def test_what_has_a_proof_is_not_refuted():
    assert not refute_next_lookup(4)
