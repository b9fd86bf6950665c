"""The blocks alone: Amaranth's simulator for all variants, Icarus with cocotb for one of each."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hopforge.gen.verilog.writer import to_verilog
from hopforge.model.lookup.params import LookupParams
from hopforge.model.numbers.crc_catalogue import CRC
from hopforge.sim.benches.crc_hash import crc_hash_bench
from hopforge.sim.benches.node_reduction import node_reduction_bench
from hopforge.sim.benches.routing_cache import routing_cache_bench
from hopforge.sim.benches.tcam import tcam_bench
from hopforge.sim.drive.replay import Bench, replay_amaranth
from hopforge.sim.drive.runner import replay_cocotb

Maker = Callable[[LookupParams, int, np.random.Generator], Bench]


def crc_bench(params: LookupParams, count: int, rng: np.random.Generator) -> Bench:
    return crc_hash_bench(str(params.crc), params.address_bits, count, rng)


CASES: list[tuple[Maker, dict[str, Any]]] = [
    *((crc_bench, {"crc": name}) for name in CRC),
    (crc_bench, {"address_bits": 19}),
    (node_reduction_bench, {"max_members": 5}),
    (node_reduction_bench, {"address_bits": 40, "max_members": 16, "chunk_bits": (3, 8), "comparators": 4}),
    (node_reduction_bench, {"functions": ("arbitrary", "torus"), "chunk_bits": (4,)}),
    (node_reduction_bench, {"functions": ("arbitrary", "dragonfly"), "chunk_bits": (2, 6), "address_bits": 14}),
    (node_reduction_bench, {"functions": ("arbitrary", "fat_tree"), "comparators": 3}),
    (tcam_bench, {"tcam_kind": "flops", "tcam_latency_cycles": 1, "tcam_rows": 3}),
    (tcam_bench, {"tcam_kind": "flops", "tcam_latency_cycles": 6, "tcam_rows": 8}),
    (tcam_bench, {"tcam_kind": "sram", "tcam_latency_cycles": 2, "tcam_rows": 5}),
    (tcam_bench, {"tcam_kind": "sram", "tcam_latency_cycles": 7, "tcam_rows": 1, "address_bits": 19}),
    (routing_cache_bench, {"entries": 8, "ways": 2}),
    (routing_cache_bench, {"entries": 16, "ways": 4, "policy": "plru"}),
    (routing_cache_bench, {"entries": 6, "ways": 3, "policy": "fifo"}),
    (routing_cache_bench, {"entries": 16, "ways": 4, "policy": "random"}),
    (routing_cache_bench, {"entries": 16, "ways": 2, "policy": "random", "skewed": True}),
    (routing_cache_bench, {"entries": 4, "ways": 4, "epoch_bits": 2}),
    (routing_cache_bench, {"entries": 8, "ways": 1}),
]


#: wide keys and many comparators, which engines of tests/sim/benches/test_lookup.py have, too
WIDE_KEYS = 8


@pytest.mark.parametrize(
    ("maker", "changes"),
    [pytest.param(*case, marks=pytest.mark.study if k == WIDE_KEYS else ()) for k, case in enumerate(CASES)],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_block_equals_golden(maker: Maker, changes: dict[str, Any]) -> None:
    bench = maker(LookupParams(**changes), 800, np.random.default_rng(11))
    result = replay_amaranth(bench.component, bench.replay)
    assert result.first is None, str(result.first)
    assert result.cycles >= 800
    # a bench without variety proves nothing: every output takes at least two values (flops are never busy)
    for output, column in zip(bench.replay.outputs, bench.replay.expected.T, strict=True):
        always = changes.get("tcam_kind") == "flops" and output.name in {"req_ready", "busy", "overrun"}
        assert always or len(np.unique(column)) > 1, output


@pytest.mark.parametrize("number", [0, 7, 13, 17])
def test_verilog_on_icarus(number: int, tmp_path: Path) -> None:
    maker, changes = CASES[number]
    bench = maker(LookupParams(**changes), 300, np.random.default_rng(12))
    verilog = to_verilog(bench.component, bench.top)
    run = replay_cocotb(verilog, bench.top, bench.replay, tmp_path, simulator="icarus")
    assert run.result.first is None, str(run.result.first)
    assert run.result.cycles == bench.replay.cycles
