"""The whole engine against the golden one, every output in every cycle, on three simulators."""

import re
from pathlib import Path
from typing import Any

import pytest

from hopforge.gen.verilog.writer import to_verilog
from hopforge.hw.lookup.engine import lookup_engine
from hopforge.model.lookup.params import LookupParams
from hopforge.sim.benches.lookup import lookup_replay
from hopforge.sim.drive.replay import Replay, replay_amaranth
from hopforge.sim.drive.runner import replay_cocotb, replay_verilator
from hopforge.sim.drive.stimulus import stimulus
from hopforge.sim.drive.stimulus_traffic import Traffic

ENGINES: list[dict[str, Any]] = [
    {"pipeline_depth": 1, "tcam_kind": "external", "epoch_bits": 1, "entries": 8, "ways": 2, "mshrs": 3},
    {"pipeline_depth": 1, "tcam_kind": "flops", "tcam_latency_cycles": 1, "epoch_bits": 2, "entries": 6, "ways": 3,
     "policy": "fifo", "tcam_rows": 8},
    {"pipeline_depth": 2, "tcam_kind": "external", "epoch_bits": 2, "entries": 16, "ways": 4, "policy": "plru"},
    {"pipeline_depth": 2, "tcam_kind": "sram", "tcam_latency_cycles": 2, "entries": 4, "ways": 4, "tcam_rows": 5},
    {"pipeline_depth": 3, "tcam_kind": "external", "epoch_bits": 1, "entries": 16, "ways": 4, "mshrs": 1},
    {"pipeline_depth": 3, "tcam_kind": "flops", "tcam_latency_cycles": 4, "entries": 16, "ways": 2, "policy": "random",
     "skewed": True, "max_members": 5, "tcam_rows": 8},
    {"pipeline_depth": 3, "functions": ("arbitrary",), "address_bits": 12, "chunk_bits": (4,), "tcam_rows": 4,
     "entries": 1, "ways": 1},
    {"pipeline_depth": 4, "tcam_kind": "external", "epoch_bits": 1, "entries": 8, "ways": 2, "address_bits": 40,
     "output_bits": 64, "request_tag_bits": 32},
    {"pipeline_depth": 4, "tcam_kind": "sram", "tcam_latency_cycles": 9, "entries": 32, "ways": 8, "policy": "random",
     "chunk_bits": (8, 3), "comparators": 3, "tcam_rows": 5},
    {"pipeline_depth": 5, "tcam_kind": "external", "epoch_bits": 1, "entries": 8, "ways": 2, "mshrs": 5},
    {"pipeline_depth": 8, "tcam_kind": "flops", "tcam_latency_cycles": 4, "entries": 16, "ways": 4, "policy": "plru",
     "max_members": 5, "tcam_rows": 8},
    {"pipeline_depth": 6, "memory_stage": True, "tcam_kind": "external", "epoch_bits": 1, "entries": 8, "ways": 4},
]  # fmt: skip


def recorded(params: LookupParams, lookups: int, seed: int = 1) -> Replay:
    return lookup_replay(stimulus(params, Traffic(lookups=lookups, seed=seed, pool=24, quiet_cycles=25)))


#: either kind of TCAM, one set, many members; tests/hw/lookup has every depth
SHORT = (3, 5)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param(
            changes, id=f"{changes['pipeline_depth']}-{len(changes)}", marks=() if k in SHORT else pytest.mark.study
        )
        for k, changes in enumerate(ENGINES)
    ],
)
def test_engine_on_amaranths_simulator(changes: dict[str, Any]) -> None:
    params = LookupParams(**changes)
    replay = recorded(params, 100)
    result = replay_amaranth(lookup_engine(params=params), replay)
    assert result.first is None, str(result.first)
    assert result.cycles == replay.cycles > 100


@pytest.mark.parametrize("number", [2, *(pytest.param(number, marks=pytest.mark.study) for number in (7, 10))])
def test_verilog_on_icarus(number: int, tmp_path: Path) -> None:
    params = LookupParams(**ENGINES[number])
    replay = recorded(params, 400, seed=2)
    verilog = to_verilog(lookup_engine(params=params), "engine")
    run = replay_cocotb(verilog, "engine", replay, tmp_path, simulator="icarus", waves=number == 2)
    assert run.result.first is None, str(run.result.first)
    assert run.result.cycles == replay.cycles
    if number == 2:
        assert run.waves is not None
        assert run.waves.stat().st_size > 1000
    else:
        assert run.waves is None


def test_verilog_on_verilator(tmp_path: Path) -> None:
    """The loop in C++: many lookups; the compiled model is used again; a fault in the design is found."""
    params = LookupParams(**ENGINES[4])
    replay = recorded(params, 20_000, seed=3)
    verilog = to_verilog(lookup_engine(params=params), "engine")
    first = replay_verilator(verilog, "engine", replay, tmp_path)
    assert first.result.first is None, str(first.result.first)
    assert first.result.cycles == replay.cycles
    built = [program.parent for program in tmp_path.glob("**/Vengine")]
    assert len(built) == 1
    again = recorded(params, 500, seed=4)
    again.expected[100, 0] ^= 1  # req_ready
    second = replay_verilator(verilog, "engine", again, tmp_path)
    assert [program.parent for program in tmp_path.glob("**/Vengine")] == built
    assert second.result.mismatches == 1
    assert second.result.first is not None
    assert second.result.first[:2] == (100, "req_ready")


@pytest.mark.study
def test_verilator_with_cocotb(tmp_path: Path) -> None:
    params = LookupParams(**ENGINES[7])
    replay = recorded(params, 2000, seed=5)
    run = replay_cocotb(
        to_verilog(lookup_engine(params=params), "engine"), "engine", replay, tmp_path, simulator="verilator"
    )
    assert run.result.first is None, str(run.result.first)


def test_a_fault_in_the_verilog_is_found(tmp_path: Path) -> None:
    params = LookupParams(**ENGINES[0])
    replay = recorded(params, 300, seed=6)
    verilog = to_verilog(lookup_engine(params=params), "engine")
    broken, count = re.subn(r"(resp_hit <= )(.*);", r"\1~(\2);", verilog, count=1)
    assert count == 1
    run = replay_cocotb(broken, "engine", replay, tmp_path, simulator="icarus")
    assert run.result.first is not None
    assert run.result.first.signal == "resp_hit"
