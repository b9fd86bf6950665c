import re
from typing import Any

import pytest

from hopforge.model.config import CrcConfig, parse_config
from hopforge.model.lookup.params import LookupParams

CONFIG = """
name: small
topology: {{kind: torus, radices: [4, 4]}}
lookup:
  reduction: {reduction}
  cache: {{entries: 64, ways: 2, policy: plru}}
  tcam: {{kind: {kind}, rows: {rows}, latency_cycles: {latency}}}
"""


def parsed(*, reduction: str = "true", kind: str = "auto", rows: int = 64, latency: int = 8) -> LookupParams:
    text = CONFIG.format(reduction=reduction, kind=kind, rows=rows, latency=latency)
    return LookupParams.from_config(parse_config(text))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"address_bits": 11}, "address_bits must be 12 to 48, not 11"),
        ({"ways": 3}, "ways must divide entries=2048, not 3"),
        ({"entries": 12, "ways": 2}, "entries must give a power of two of sets, not 12/2 = 6"),
        ({"entries": 0, "ways": 1}, "entries must be at least 1, not 0"),
        ({"entries": 6, "ways": 3, "policy": "plru"}, "policy plru needs a power of two of ways, not ways=3"),
        ({"policy": "mru"}, "policy must be lru, plru, fifo or random, not 'mru'"),
        ({"skewed": True}, "policy must be random with skewed association in hardware, not lru"),
        ({"tag_bits": 27}, "tag_bits must be address_bits + 4 = 28 to 64, not 27"),
        ({"crc": CrcConfig(width=8, poly=7)}, "crc must have at least the 9 bits of a set index, not 8"),
        ({"crc": "CRC-7"}, "crc must be one of"),
        ({"random_seed": 0}, "random_seed must be 1 to 65535, not 0"),
        ({"functions": ("torus",)}, "functions must contain 'arbitrary'"),
        ({"functions": ("arbitrary", "ring")}, "functions must be of arbitrary, mesh"),
        ({"functions": ("arbitrary", "arbitrary")}, "functions must name each only once"),
        ({"chunk_bits": ()}, "chunk_bits must hold 1 to 5 widths, not 0"),
        ({"chunk_bits": (5,)}, "chunk_bits must be of 2, 3, 4, 6 and 8, not 5"),
        ({"address_bits": 12, "chunk_bits": (8,)}, "chunk_bits must be at most address_bits - 6 = 6, not 8"),
        ({"mshrs": 65}, "mshrs must be 1 to 64, not 65"),
        ({"pipeline_depth": 9}, "pipeline_depth must be 1 to 8, not 9"),
        ({"pipeline_depth": 4, "memory_stage": True}, "pipeline_depth must be 5 to 8 with a memory stage, not 4"),
        ({"tcam_kind": "dram"}, "tcam_kind must be flops, sram or external, not 'dram'"),
        (
            {"tcam_kind": "sram", "tcam_latency_cycles": 1},
            "tcam_latency_cycles must be at least 2 for tcam_kind=sram, not 1",
        ),
    ],
)
def test_impossible_parameters(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        LookupParams(**changes)


def test_derived_values() -> None:
    params = LookupParams(entries=512, ways=4, mshrs=5, chunk_bits=(8, 3), comparators=6)
    assert (params.key_bits, params.value_bits, params.sets, params.index_bits) == (28, 18, 128, 7)
    assert params.mshr_id_bits == 3
    assert (params.digits(8), params.digits(3)) == (3, 6)
    assert params.comparator_bits == (8, 8, 8, 3, 3, 3)
    assert LookupParams(entries=1, ways=1, mshrs=1).mshr_id_bits == 1


def test_one_wide_chunk_is_fine_when_nothing_is_reduced() -> None:
    assert LookupParams(address_bits=12, chunk_bits=(8,), functions=("arbitrary",)).radices == 1


@pytest.mark.parametrize(
    ("rows", "latency", "kind"), [(128, 8, "flops"), (129, 8, "sram"), (129, 1, "flops"), (1, 2, "flops")]
)
def test_auto_chooses_the_tcam(rows: int, latency: int, kind: str) -> None:
    assert parsed(rows=rows, latency=latency).tcam_kind == kind


def test_a_given_kind_is_kept() -> None:
    assert parsed(kind="sram", rows=4).tcam_kind == "sram"


def test_without_reduction_there_is_one_function() -> None:
    assert parsed(reduction="false").functions == ("arbitrary",)
    assert "torus" in parsed().functions


def test_an_engine_needs_a_cache() -> None:
    text = CONFIG.format(reduction="true", kind="auto", rows=64, latency=8)
    with pytest.raises(ValueError, match=re.escape("lookup.cache.enabled: must be true for a lookup engine")):
        LookupParams.from_config(parse_config(text.replace("cache: {", "cache: {enabled: false, ")))


def test_skewed_lru_is_no_hardware() -> None:
    text = CONFIG.format(reduction="true", kind="auto", rows=64, latency=8)
    with pytest.raises(ValueError, match=re.escape("lookup.cache.policy: must be random with skewed association")):
        LookupParams.from_config(parse_config(text.replace("policy: plru", "policy: lru, skewed: true")))
