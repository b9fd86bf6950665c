"""What thorough traffic adds for the benches of mutants."""

import numpy as np

from hopforge.model.lookup.csr import COUNTERS, csr_map
from hopforge.model.lookup.params import LookupParams
from hopforge.sim.drive.stimulus_software import bus_program
from hopforge.sim.drive.stimulus_traffic import Traffic

PARAMS = LookupParams(address_bits=16, chunk_bits=(4,), functions=("arbitrary", "torus"), entries=16, ways=2)


def program(*, thorough: bool) -> np.ndarray:
    """Rows of (cycles before, write, read, address, data, whose word)."""
    traffic = Traffic(lookups=10, thorough=thorough)
    rng = np.random.default_rng(3)
    return bus_program(PARAMS, traffic, (), rng, np.array([0x1234]))[0]


def test_all_counters_are_read_before_anything_happens() -> None:
    registers = csr_map(PARAMS)
    counters = [registers[f"COUNT_{name.upper()}"].address for name, _ in COUNTERS]
    first = program(thorough=True)[: len(counters)]
    assert first[:, 3].tolist() == counters
    assert not first[:, 1].any() and first[:, 2].all()


def test_writes_beside_registers_are_one_bit_away_from_one() -> None:
    taken = {register.address for register in csr_map(PARAMS)}
    rows = program(thorough=True)
    strays = [int(address) for _, write, _, address, *_ in rows if write and int(address) not in taken]
    assert len(strays) > 20
    near = [any(bin(address ^ other).count("1") == 1 for other in taken) for address in strays]
    assert sum(near) / len(near) > 0.9
    usual = program(thorough=False)
    assert sum(bool(row[1]) and int(row[3]) not in taken for row in usual) < len(strays) / 4


def test_bounds_of_other_networks_are_in_the_range_of_a_digit() -> None:
    radix = csr_map(PARAMS)["RADIX0"].address
    rows = program(thorough=True)
    words = [int(data) for _, write, _, address, data, _ in rows if write and address == radix]
    assert sum(1 <= word <= 17 for word in words) / len(words) > 0.7
    assert len(set(words)) > 5
