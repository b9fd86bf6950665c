"""Proofs about the choice between ports that share a lookup engine; a faulty choice has none."""

import pytest

from hopforge.gen.formal.shared_lookup import SHARING_MUTANTS, prove_sharing


@pytest.mark.parametrize("members", [2, 4])
def test_ports_share_an_engine_fairly_and_without_loss(members):
    assert prove_sharing(members)


@pytest.mark.parametrize("mutant", SHARING_MUTANTS)
def test_a_faulty_choice_has_no_proof(mutant):
    assert not prove_sharing(4, mutant=mutant)
