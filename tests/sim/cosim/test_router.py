"""RTL of one router against the golden router in long runs, and the checks of packets and credits."""

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hopforge.gen.verilog.writer import to_verilog
from hopforge.hw.router.router import Router
from hopforge.model.config import load_config, parse_config
from hopforge.model.router.params import Route, RouterParams
from hopforge.sim.cosim import router as module
from hopforge.sim.cosim.router import cosim_router, run_router
from hopforge.sim.drive.held_stimulus import held_stimulus
from hopforge.sim.drive.replay import Mismatch, Replay, ReplayResult, replay_amaranth
from hopforge.sim.drive.router import router_replay
from hopforge.sim.drive.router_packets import check_packets
from hopforge.sim.drive.router_stimulus import router_stimulus
from hopforge.sim.drive.router_traffic import (
    C_ENABLE,
    I_CREDIT_VALID,
    I_DATA,
    I_VALID,
    O_DATA,
    O_DROPS,
    O_VALID,
    RouterStimulus,
    RouterTraffic,
)
from hopforge.sim.drive.router_variants import router_variant
from hopforge.sim.drive.runner import SimulatorRun

DEMO = Path(__file__).parents[3] / "configs" / "demo.yml"
SMALL: dict[str, Any] = {"ports": 3, "vcs": 2, "width_bits": 32, "buffer_flits": 3}

LONG = {
    "islip": {"va": "output_first", "sa": "output_first", "arbiter": "round_robin", "speculation": False},
    "wavefront": {"va": "wavefront", "sa": "wavefront", "speculation": True, "vc_release": "credits", "rc_cycles": 0},
    "matrix": {"va": "input_first", "sa": "input_first", "arbiter": "matrix", "credit_delay_cycles": 2,
               "flit_buffers": "latches"},
    "free queue": {"va": "free_queue", "sa": "input_first", "rc_cycles": 0, "speculation": False,
                   "flit_buffers": "flip_flops"},
    "choice ahead": {"va": "free_queue", "sa": "input_ahead", "rc_cycles": 0, "speculation": False},
    "look-ahead": {"lookahead": True, "speculation": False, "width_bits": 40},
    "lookup": {"rc": "lookup", "ports": 2, "vcs": 2},
}  # fmt: skip


STUDIED = ("matrix", "wavefront", "free queue", "choice ahead", "look-ahead", "lookup")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.study) if name in STUDIED else name for name in LONG]
)
def test_long_runs(name: str, tmp_path: Path) -> None:
    """Together more than 100 000 cycles of RTL, 17 000 here, every output in each."""
    given = {"rc": "table", "switching": "vct" if name == "wavefront" else "wormhole"} | SMALL | LONG[name]
    params = router_variant(len(name), **given)
    verilog = to_verilog(Router(params=params), "router")
    run, _ = run_router(params, RouterTraffic(cycles=17_000), name, verilog, "router", tmp_path, "verilator")
    assert run.mismatches == 0, run.first
    assert run.cycles >= 17_000
    assert run.received > 500
    assert run.dropped > 5


@pytest.mark.study
@pytest.mark.parametrize("seed", [2, 4, 5, 21])
def test_long_runs_of_engines_that_answer_for_the_next_router(seed: int, tmp_path: Path) -> None:
    """Together more than 100 000 cycles of RTL; with and without VC allocator, speculation, a TCAM outside."""
    params = router_variant(seed, rc="lookup", lookahead=True)
    verilog = to_verilog(Router(params=params), "router")
    traffic = RouterTraffic(cycles=34_000, seed=seed)
    run, _ = run_router(params, traffic, "ahead", verilog, "router", tmp_path, "verilator")
    assert run.mismatches == 0, run.first
    assert run.lookups > 1000
    assert run.dropped > 10


@pytest.mark.study
@pytest.mark.parametrize(("seed", "given"), [
    (1, {"rc": "table", "lookahead": True}), (2, {"rc": "table", "lookahead": True}), (15, {"rc": "lookup"}),
    (1, {"rc": "lookup", "lookahead": True}), (48, {"rc": "lookup", "lookahead": True}),
])  # fmt: skip
def test_long_runs_of_routers_that_take_one_of_several_ports(seed: int, given: dict[str, Any], tmp_path: Path) -> None:
    params = router_variant(seed, width_bits=64, **given)
    assert params.spread_router is not None
    verilog = to_verilog(Router(params=params), "router")
    run, _ = run_router(params, RouterTraffic(cycles=17_000), "spread", verilog, "router", tmp_path, "verilator")
    assert run.mismatches == 0, run.first
    assert run.received > 500


@pytest.mark.study
@pytest.mark.parametrize(("seed", "ports", "tcam"), [(6, 2, "external"), (101, 3, "flops")])
def test_long_runs_of_lookup_routers(seed: int, ports: int, tcam: str, tmp_path: Path) -> None:
    params = router_variant(seed, rc="lookup", ports=ports, vcs=2, width_bits=32, buffer_flits=3)
    assert params.lookup is not None
    assert params.lookup.tcam_kind == tcam
    verilog = to_verilog(Router(params=params), "router")
    run, _ = run_router(params, RouterTraffic(cycles=200_000), "lookup", verilog, "router", tmp_path, "verilator")
    assert run.mismatches == 0, run.first
    assert run.cycles >= 200_000
    assert run.lookups > 10_000


@pytest.mark.study
@pytest.mark.parametrize(("ports", "vcs"), [(8, 4), (16, 2), (64, 1), (2, 16)])
def test_large_routers(ports: int, vcs: int, tmp_path: Path) -> None:
    params = router_variant(1, ports=ports, vcs=vcs, rc="table", switching="wormhole", width_bits=48)
    verilog = to_verilog(Router(params=params), "router")
    run, _ = run_router(params, RouterTraffic(cycles=300), "large", verilog, "router", tmp_path, "icarus")
    assert run.mismatches == 0, run.first


@pytest.mark.study
def test_ten_million_cycles() -> None:
    """50 routers; a second call goes on where the first one ended."""
    report = cosim_router(
        load_config(DEMO, hardware=True), simulator="verilator", variants=50, cycles=10_000_000,
        output=Path("build/study/router"),
    )  # fmt: skip
    assert report.passed
    assert sum(run.cycles for run in report.runs) >= 10_000_000


def test_enable_holds_packets_back() -> None:
    params = router_variant(2, **SMALL, rc="table", switching="wormhole", rc_cycles=1, flit_buffers="memory")
    stimulus = held_stimulus(params, RouterTraffic(cycles=150))
    assert 0.2 < stimulus.control[:, C_ENABLE].mean() < 0.98
    assert check_packets(stimulus).sent == stimulus.packets > 10
    replay = router_replay(stimulus)
    assert replay_amaranth(Router(params=params), replay) == ReplayResult(replay.cycles, 0, None)


@pytest.fixture(scope="module")
def recording() -> RouterStimulus:
    params = RouterParams(ports=2, vcs=2, buffer_flits=3, routes=(Route(1), Route(2), Route(0)))
    return router_stimulus(params, RouterTraffic(cycles=400))


def flits(rows: np.ndarray, valid: int) -> list[tuple[int, int]]:
    """Cycle and port of flits with two flits before and behind them on their port."""
    return [(int(cycle), int(port)) for cycle, port in np.argwhere(rows[:, :, valid] == 1)][8:-8]


def without_a_flit(seen: np.ndarray, _rows: np.ndarray) -> None:
    seen[(*flits(seen, O_VALID)[0], O_VALID)] = 0


def another_word(seen: np.ndarray, _rows: np.ndarray) -> None:
    seen[(*flits(seen, O_VALID)[0], O_DATA)] ^= 1


def exchanged(seen: np.ndarray, _rows: np.ndarray) -> None:
    """Two body flits of a packet change places."""
    for port in (0, 1):
        for vc in (0, 1):
            row = seen[:, port]
            at = np.flatnonzero((row[:, O_VALID] == 1) & (row[:, O_VALID + 2] == vc))
            for a, b in pairwise(at):
                if row[a, O_VALID + 1] == row[b, O_VALID + 1] == 0:
                    row[[a, b], O_DATA] = row[[b, a], O_DATA]
                    return
    raise AssertionError("no body flits")


def one_credit_less(_seen: np.ndarray, rows: np.ndarray) -> None:
    cycle, port = (int(index) for index in np.argwhere(rows[:, :, I_CREDIT_VALID] == 1)[-1])
    rows[cycle, port, I_CREDIT_VALID] = 0


def too_many_flits(_seen: np.ndarray, rows: np.ndarray) -> None:
    cycle, port = flits(rows, I_VALID)[0]
    rows[cycle + 1 : cycle + 9, port] = rows[cycle, port]


def wrong_count(seen: np.ndarray, _rows: np.ndarray) -> None:
    seen[-1, 0, O_DROPS] += 1


@pytest.mark.parametrize(
    ("tamper", "message"),
    [
        (without_a_flit, r"output \d VC \d: "),
        (another_word, "a packet came out that did not go in"),
        (exchanged, "a packet came out that did not go in"),
        (one_credit_less, r"output \d VC \d: \d+ flits but \d+ credits at the end"),
        (too_many_flits, r"input \d VC \d: "),
        (wrong_count, "a drop counter does not count the packets that were dropped"),
    ],
)
def test_packets_and_credits_are_checked(
    recording: RouterStimulus, tamper: Callable[[np.ndarray, np.ndarray], None], message: str
) -> None:
    sent, received, dropped = check_packets(recording)
    assert sent == received + dropped == recording.packets
    assert received > 10
    assert dropped > 0
    seen, rows = recording.outputs.copy(), recording.inputs.copy()
    tamper(seen, rows)
    with pytest.raises(ValueError, match=message):
        check_packets(replace(recording, outputs=seen, inputs=rows))


def test_wide_flits_are_cut_into_words() -> None:
    """100 bits of data, 2 of kind, 2 of VC: two words of which the second begins in the middle of the data."""
    params = RouterParams(ports=2, vcs=3, buffer_flits=2, width_bits=100, routes=(Route(2),))
    stimulus = router_stimulus(params, RouterTraffic(cycles=500))
    replay = router_replay(stimulus)
    columns = [column for column, name in enumerate(replay.inputs) if name == "port__0__in_flit"]
    assert len(columns) == 2
    cycle = int(np.flatnonzero(stimulus.inputs[:, 0, I_VALID])[0])
    low, high = (int(word) for word in replay.driven[cycle, columns])
    row = [int(word) & (1 << 64) - 1 for word in stimulus.inputs[cycle, 0]]
    assert low | high << 64 == row[1] | row[2] << 2 | (row[I_DATA] | row[I_DATA + 1] << 64) << 4


def played(result: ReplayResult | None, calls: list[Replay]) -> Callable[..., SimulatorRun]:
    def play(_simulator: str, _verilog: str, _top: str, replay: Replay, *_: object, **__: object) -> SimulatorRun:
        calls.append(replay)
        return SimulatorRun(result or ReplayResult(replay.cycles, 0, None), 0.1, 0.1, None)

    return play


def test_finished_runs_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Replay] = []
    monkeypatch.setattr(module, "play", played(None, calls))
    monkeypatch.setattr(module, "RUN_CYCLES", 100)
    monkeypatch.setattr(module, "router_variant", lambda number: router_variant(number, **SMALL, rc="table"))
    config = load_config(DEMO, hardware=True)
    seen: list[tuple[int, int]] = []
    first = cosim_router(config, simulator="verilator", variants=2, cycles=400, output=tmp_path)
    assert (len(first.runs), len(calls)) == (6, 6)
    assert [run.held for run in first.runs] == 2 * [True, False, False]
    (tmp_path / "runs.jsonl").write_text("".join((tmp_path / "runs.jsonl").read_text().splitlines(keepends=True)[:4]))
    again = cosim_router(
        config, simulator="verilator", variants=2, cycles=400, output=tmp_path, progress=lambda *n: seen.append(n)
    )
    assert len(calls) == 8
    assert [run.cycles for run in again.runs] == [run.cycles for run in first.runs]
    assert seen[-1][0] == sum(run.cycles for run in again.runs)
    rows = dict(again.rows())
    assert rows["router"] == "2 routers on verilator, 6 runs"
    assert re.fullmatch(r"\d+ sent: \d+ received whole and once, \d+ dropped as unroutable, 0 left", rows["packets"])
    assert rows["mismatches"] == "0"


def test_a_difference_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = ReplayResult(100, 3, Mismatch(17, "port__1__out_flit", 5, 7))
    monkeypatch.setattr(module, "play", played(wrong, []))
    config = parse_config(
        "name: line\ntopology: {kind: mesh, radices: [3]}\nrouter: {vcs: 1, buffer_flits: 2}\ncosim: {cycles: 50}\n"
    )
    report = cosim_router(config, simulator="verilator", output=tmp_path)
    assert not report.passed
    assert dict(report.rows())["mismatches"] == (
        "router line_router1, seed 1000: cycle 17: port__1__out_flit is 0x7, expected 0x5"
    )
