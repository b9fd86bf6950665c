"""Rules of the AXI-Stream adapter, proven; every fault is found."""

import pytest

from hopforge.gen.formal.streams import STREAM_MUTANTS, prove_stream


@pytest.mark.parametrize("side", ["sender", "receiver"])
def test_rules_hold(side: str) -> None:
    assert prove_stream(side)


@pytest.mark.parametrize("mutant", STREAM_MUTANTS)
def test_a_fault_is_found(mutant: str) -> None:
    assert not prove_stream(STREAM_MUTANTS[mutant][0], mutant=mutant)
