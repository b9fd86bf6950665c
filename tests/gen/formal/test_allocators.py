"""The proofs succeed, and fail with every mutant."""

import pytest

from hopforge.gen.formal.allocators import (
    ALLOCATOR_MUTANTS,
    ARBITER_MUTANTS,
    SWITCH_MUTANTS,
    prove_allocator,
    prove_arbiter,
    prove_switch_allocator,
)

SEPARABLE = [(kind, arbiter) for kind in ("input_first", "output_first") for arbiter in ("round_robin", "matrix")]


@pytest.mark.parametrize("width", [2, 3, 5])
@pytest.mark.parametrize("kind", ["round_robin", "matrix"])
def test_arbiters(kind: str, width: int) -> None:
    assert prove_arbiter(kind, width)


@pytest.mark.parametrize("width", [4, 6])
def test_arbiter_in_two_levels(width: int) -> None:
    assert prove_arbiter("two_level", width)


def test_arbiter_with_a_prefix() -> None:
    assert prove_arbiter("round_robin", 16)


@pytest.mark.parametrize("mutant", list(ARBITER_MUTANTS))
def test_mutants_of_arbiters(mutant: str) -> None:
    assert not prove_arbiter(ARBITER_MUTANTS[mutant][0], mutant=mutant)


@pytest.mark.parametrize(("kind", "arbiter"), [*SEPARABLE, ("wavefront", "round_robin")])
def test_allocators(kind: str, arbiter: str) -> None:
    assert prove_allocator(kind, arbiter, 2)
    assert prove_allocator(kind, arbiter, 3)


@pytest.mark.parametrize("mutant", list(ALLOCATOR_MUTANTS))
def test_mutants_of_allocators(mutant: str) -> None:
    kind = ALLOCATOR_MUTANTS[mutant][0]
    assert not prove_allocator(kind, mutant=mutant)


@pytest.mark.parametrize("kind", ["input_first", "output_first", "wavefront"])
def test_switch_allocators(kind: str) -> None:
    assert prove_switch_allocator(kind)


@pytest.mark.parametrize("mutant", list(SWITCH_MUTANTS))
def test_mutants_of_switch_allocators(mutant: str) -> None:
    assert not prove_switch_allocator("output_first", mutant=mutant)
