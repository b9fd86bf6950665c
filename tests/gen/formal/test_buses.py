"""Protocol rules of the bridges, proven; every fault is found."""

import pytest

from hopforge.gen.formal.buses import BUS_MUTANTS, prove_bus
from hopforge.hw.buses.on_bus import BRIDGES


@pytest.mark.parametrize("bus", BRIDGES)
def test_rules_hold(bus: str) -> None:
    assert prove_bus(bus)


@pytest.mark.parametrize("mutant", BUS_MUTANTS)
def test_a_fault_is_found(mutant: str) -> None:
    assert not prove_bus(BUS_MUTANTS[mutant][0], mutant=mutant)
