"""Check bits find or correct every changed bit of words, lines and flits; faulty ones have no proof."""

import pytest

from hopforge.gen.formal.protection import protection_proofs
from hopforge.gen.formal.reduction import prove


@pytest.mark.parametrize("proof", list(protection_proofs()), ids=lambda proof: proof.name)
@pytest.mark.thinned(2)
def test_changed_bits_are_found_or_corrected(proof):
    assert prove(proof).passed


@pytest.mark.study
@pytest.mark.parametrize("proof", list(protection_proofs(wide=True)), ids=lambda proof: proof.name)
def test_changed_bits_of_words_of_every_width(proof):
    assert prove(proof).passed
