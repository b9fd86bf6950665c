import re

import pytest

from hopforge.model.lookup.csr import COUNTERS, CSR_ADDR_BITS, ENGINE_ID, MODES, Field, Register, csr_map
from hopforge.model.lookup.params import LookupParams

ENGINES = [
    LookupParams(),
    LookupParams(address_bits=48, output_bits=64, tcam_kind="external", mshrs=64, ways=64, epoch_bits=1),
    LookupParams(address_bits=12, chunk_bits=(3,), functions=("arbitrary",), tcam_kind="sram", comparators=24),
    LookupParams(address_bits=33, output_bits=33, chunk_bits=(2,), comparators=24, entries=3, ways=3),
]


@pytest.mark.parametrize("params", ENGINES)
def test_addresses_and_fields_do_not_overlap(params: LookupParams) -> None:
    registers = list(csr_map(params))
    addresses = [register.address for register in registers]
    assert addresses == sorted(set(addresses))
    assert max(addresses) < 1 << CSR_ADDR_BITS
    assert len({register.name for register in registers}) == len(registers)
    for register in registers:
        used = 0
        for field in register.fields:
            assert not used & field.mask, (register.name, field.name)
            used |= field.mask
            assert field.reset < 1 << field.width, (register.name, field.name)
            assert field.description.endswith("."), (register.name, field.name)
        assert used < 1 << 32


def test_reset_values() -> None:
    registers = csr_map(LookupParams())
    assert registers["ID"].reset == ENGINE_ID
    assert registers["CTRL"].reset == registers["STATUS"].reset == registers["LEVEL"].reset == 0
    assert registers["MODE"].decode(registers["MODE"].reset) == {
        "mode": MODES.index("arbitrary"), "chunk_select": 0, "up_choice": 0, "member_hash": 0, "members": 1,
    }  # fmt: skip
    assert registers["RADIX0"].reset == 1


def test_constants_say_what_was_built() -> None:
    registers = csr_map(LookupParams(mshrs=64, ways=64, entries=64 * 4, tcam_kind="external", pipeline_depth=4))
    assert registers["PARAMS"].decode(registers["PARAMS"].reset) == {
        "address_bits": 24, "ways": 64, "index_bits": 2, "mshrs": 64, "pipeline_depth": 4, "tcam_kind": 2,
    }  # fmt: skip
    assert registers["FEATURES"].decode(registers["FEATURES"].reset) == {
        "functions": 0b11111, "comparators": 12, "max_members": 1, "epoch_bits": 8,
    }  # fmt: skip


def test_a_memory_stage_is_a_bit_of_its_own() -> None:
    params = csr_map(LookupParams(pipeline_depth=8, memory_stage=True))["PARAMS"]
    assert params.reset >> 30 == 1
    assert params.decode(params.reset)["pipeline_depth"] == 0


def test_high_words_exist_only_where_needed() -> None:
    narrow, wide = csr_map(ENGINES[0]), csr_map(ENGINES[3])
    names = ["OWN_HI", "INVALIDATE_HI", "TCAM_VALUE_HI", "TCAM_MASK_HI", "TCAM_OUTPUT_HI"]
    assert not any(name in narrow for name in names)
    assert all(name in wide and wide[name].write_mask == 1 for name in names)
    assert wide["OWN_LO"].write_mask == 0xFFFFFFFF
    assert not any(register.name.startswith("TCAM_") for register in csr_map(ENGINES[1]))


def test_a_radix_per_comparator_as_wide_as_its_widest_chunk() -> None:
    registers = csr_map(LookupParams(chunk_bits=(8, 4), comparators=5))
    widths = [registers[f"RADIX{index}"].fields[0].width for index in range(5)]
    assert widths == [9, 9, 9, 5, 5]  # 24 bits hold 3 digits of 8 bits
    assert "RADIX5" not in registers


def test_counters_are_in_order() -> None:
    registers = csr_map(LookupParams())
    assert [registers[f"COUNT_{name.upper()}"].address for name, _ in COUNTERS] == list(range(0x40, 0x4A))


def test_encode_and_decode_are_inverse() -> None:
    mode = csr_map(LookupParams())["MODE"]
    values = {"mode": 4, "chunk_select": 3, "up_choice": 1, "member_hash": 1, "members": 16}
    assert mode.decode(mode.encode(**values)) == values


def test_errors_name_what_is_there() -> None:
    register = Register(name="R", address=0, fields=(Field(name="a", lsb=4, width=3, access="rw"),))
    with pytest.raises(ValueError, match=re.escape("a must be 0 to 7, not 8")):
        register.encode(a=8)
    with pytest.raises(KeyError, match="register R has no field 'b'; it has a"):
        register.encode(b=1)
    assert "NOTHING" not in csr_map(LookupParams())
