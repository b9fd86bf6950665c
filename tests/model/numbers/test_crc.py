"""CRCs: published check values, the golden file, and every faster form against the definition."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopforge.model.config.lookup import CrcConfig
from hopforge.model.numbers.crc import (
    crc,
    crc_address,
    crc_addresses,
    crc_matrix,
    crc_tables,
    table_crc,
)
from hopforge.model.numbers.crc_catalogue import CRC, CrcSpec, crc_spec

GOLDEN = json.loads((Path(__file__).parents[2] / "data" / "crc_vectors.json").read_text())


@st.composite
def specs(draw: st.DrawFn) -> CrcSpec:
    width = draw(st.integers(1, 64))
    word = st.integers(0, (1 << width) - 1)
    return CrcSpec(width, draw(word), draw(word), draw(st.booleans()), draw(st.booleans()), draw(word))


def test_catalogue_is_the_golden_one() -> None:
    assert set(CRC) == set(GOLDEN["params"])
    assert len(CRC) == 6


@pytest.mark.parametrize("name", CRC)
def test_parameters_and_check_value(name: str) -> None:
    width, poly, init, refin, refout, xorout, check = GOLDEN["params"][name]
    assert CRC[name] == CrcSpec(width, poly, init, refin, refout, xorout)
    assert crc(name, b"123456789") == check


@pytest.mark.parametrize(
    ("spec", "check"),
    [  # from the catalogue of Greg Cook: narrow, odd, wide, reflected in and out differently
        (CrcSpec(3, 0x3, 0, False, False, 0x7), 0x4),  # CRC-3/GSM
        (CrcSpec(5, 0x05, 0x1F, True, True, 0x1F), 0x19),  # CRC-5/USB
        (CrcSpec(12, 0x80F, 0, False, True, 0), 0xDAF),  # CRC-12/UMTS
        (CrcSpec(16, 0x1021, 0xFFFF), 0x29B1),  # CRC-16/IBM-3740
        (CrcSpec(64, 0x42F0E1EBA9EA3693, (1 << 64) - 1, True, True, (1 << 64) - 1), 0x995DC9BBDF1939FA),  # CRC-64/XZ
    ],
)
def test_other_published_check_values(spec: CrcSpec, check: int) -> None:
    assert crc(spec, b"123456789") == check


@pytest.mark.parametrize("name", CRC)
def test_golden_addresses(name: str) -> None:
    vectors = {int(address, 16): int(value, 16) for address, value in GOLDEN["vectors"][name].items()}
    assert len(vectors) == 6
    for address, value in vectors.items():
        assert crc_address(name, address) == value
    assert crc_addresses(name, list(vectors)).tolist() == list(vectors.values())


@settings(deadline=None)  # the first call compiles
@given(specs(), st.integers(1, 60), st.data())
def test_every_form_equals_the_definition(spec: CrcSpec, width_bits: int, data: st.DataObject) -> None:
    addresses = data.draw(st.lists(st.integers(0, (1 << width_bits) - 1), min_size=1, max_size=8))
    expected = [crc(spec, address.to_bytes(-(-width_bits // 8), "big")) for address in addresses]
    matrix, tables = crc_matrix(spec, width_bits), crc_tables(spec, width_bits)
    assert [crc_address(spec, address, width_bits) for address in addresses] == expected
    assert crc_addresses(spec, addresses, width_bits).tolist() == expected
    assert [int(table_crc(tables, address)) for address in addresses] == expected
    for address, value in zip(addresses, expected, strict=True):
        bits = [((address & mask).bit_count() ^ matrix.constant >> row) & 1 for row, mask in enumerate(matrix.masks)]
        assert sum(bit << row for row, bit in enumerate(bits)) == value


def test_addresses_keep_their_shape() -> None:
    assert crc_addresses("CRC-32C", np.zeros((2, 3), dtype=np.int64)).shape == (2, 3)
    assert crc_addresses("CRC-32C", []).shape == (0,)


def test_matrix_of_a_configured_crc() -> None:
    section = CrcConfig(width=32, poly=0x1EDC6F41, init=0xFFFFFFFF, refin=True, refout=True, xorout=0xFFFFFFFF)
    assert crc_spec(section) == CRC["CRC-32C"]
    assert crc_matrix(section, 24) == crc_matrix("CRC-32C", 24)


def test_low_bits_of_the_default_are_independent_and_those_of_ble_are_not() -> None:
    def rank(name: str, rows: int) -> int:
        matrix = np.array([[mask >> bit & 1 for bit in range(24)] for mask in crc_matrix(name, 24).masks[:rows]])
        found = 0
        for column in range(24):
            pivots = [row for row in range(found, rows) if matrix[row, column]]
            if pivots:
                matrix[[found, pivots[0]]] = matrix[[pivots[0], found]]
                for row in range(rows):
                    if row != found and matrix[row, column]:
                        matrix[row] ^= matrix[found]
                found += 1
        return found

    assert rank("CRC-32C", 11) == 11
    sequential = 1 << 11  # addresses below 2048: the low bits of BLE hardly depend on them
    assert len({crc_address("CRC-24/BLE", address) & 511 for address in range(sequential)}) == 64
    assert len({crc_address("CRC-32C", address) & 511 for address in range(sequential)}) == 512


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"width": 0, "poly": 0}, "width must be 1 to 64, not 0"),
        ({"width": 65, "poly": 0}, "width must be 1 to 64, not 65"),
        ({"width": 8, "poly": 0x107}, r"poly must be less than 2\^8 \(width=8\), not 0x107"),
        ({"width": 8, "poly": 7, "init": 256}, r"init must be less than 2\^8 \(width=8\), not 0x100"),
        ({"width": 8, "poly": 7, "xorout": -1}, r"xorout must be less than 2\^8 \(width=8\), not -0x1"),
    ],
)
def test_bad_parameters(arguments: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CrcSpec(**arguments)


def test_bad_name_and_address() -> None:
    with pytest.raises(ValueError, match=r"crc must be one of CRC-24/OPENPGP, CRC-24/BLE, .*, not 'CRC-33'"):
        crc_spec("CRC-33")
    message = r"address must be less than 2\^24 \(width_bits=24\), not 0x1000000"
    with pytest.raises(ValueError, match=message):
        crc_address("CRC-32C", 1 << 24)
    with pytest.raises(ValueError, match=message):
        crc_addresses("CRC-32C", [0, 1 << 24])
    with pytest.raises(ValueError, match="not -0x1"):
        crc_addresses("CRC-32C", [-1])
