"""Blocks of lookup engines of every kind can be built."""

import json
from typing import Any

import pytest
from amaranth.back import rtlil

from hopforge.gen.design.blocks import lookup_blocks
from hopforge.gen.design.configured import engine_parameters
from hopforge.model.config import parse_config

SMALL = {"entries": 4, "ways": 2}
ENGINES: dict[str, dict[str, Any]] = {
    "keys by an expression": {"reduction": {"name": "torus"}, "cache": SMALL},
    "an expression beside members": {
        "reduction": {"expression": "dst[19:0]"}, "cache": SMALL, "lag": {"max_members": 3, "members": 2},
    },
    "addresses, one line": {
        "reduction": False, "functions": ["arbitrary"], "chunk_bits": [2], "comparators": 1, "mshrs": 1,
        "cache": {"entries": 1, "ways": 1}, "pipeline_depth": 1, "tcam": {"kind": "flops", "rows": 1},
    },
    "two levels, deep": {
        "cache": {**SMALL, "second_level": {"entries": 6, "ways": 3, "policy": "fifo"}}, "pipeline_depth": 7,
        "memory_stage": True, "tcam": {"kind": "sram", "rows": 2},
    },
    "skewed, another hash": {
        "cache": {"entries": 8, "ways": 4, "policy": "random", "skewed": True, "crc": {"width": 9, "poly": 0x1D}},
    },
    "protected": {"cache": {**SMALL, "protection": "secded"}, "pipeline_depth": 5},
}  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.thinned(2)
def test_every_block_is_built(engine: str) -> None:
    content = {"name": "x", "topology": {"kind": "torus", "radices": [3, 2]}, "lookup": ENGINES[engine]}
    blocks = lookup_blocks(engine_parameters(parse_config(json.dumps(content))))
    assert {"reduction", "stage_a1", "stage_a2", "setup", "engine", "engine_deep"} <= set(blocks)
    for name, block in blocks.items():
        if not name.startswith(("engine", "tcams")):  # others build these
            assert rtlil.convert(block.build()), name
