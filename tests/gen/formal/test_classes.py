"""The proofs of classes of traffic succeed, and fail with every mutant."""

import pytest

from hopforge.gen.formal.classes import CLASS_MUTANTS, prove_classes


@pytest.mark.parametrize("kind", ["strict", "weighted"])
def test_classes(kind: str) -> None:
    assert prove_classes(kind)


@pytest.mark.parametrize("mutant", list(CLASS_MUTANTS))
def test_mutants_of_classes(mutant: str) -> None:
    assert not prove_classes(CLASS_MUTANTS[mutant][0], mutant=mutant)
