import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib.wiring import Component, In, Out, Signature

from hopforge.gen.verilog.writer import to_verilog
from hopforge.sim.drive import runner
from hopforge.sim.drive.replay import Mismatch, Output, Replay, ReplayResult, Scoreboard, as_words, replay_amaranth
from hopforge.sim.drive.runner import replay_cocotb, replay_verilator


class Accumulator(Component):
    """Adds `data` to `total` at every edge; `even` means something while `total` is not 0."""

    data: In(8)
    total: Out(8)
    even: Out(1)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.sync += self.total.eq(self.total + self.data)
        m.d.comb += self.even.eq(~self.total[0])
        return m


class Inverter(Component):
    data: In(4)
    inverse: Out(4)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        unused = Signal()
        m.d.comb += [self.inverse.eq(~self.data), unused.eq(0)]
        return m


class Wide(Component):
    """Complements two ports of 70 and 130 bits; the second a cycle later."""

    narrow: In(3)
    pair: Out(Signature({"low": In(70), "high": In(130)}))
    shorter: Out(70)
    longer: Out(130)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += self.shorter.eq(self.pair.low ^ self.narrow)
        m.d.sync += self.longer.eq(~self.pair.high)
        return m


def complements(cycles: int = 20) -> Replay:
    rng = np.random.default_rng(6)
    limits = np.array([1 << 3, 1 << 63, 1 << 6, 1 << 63, 1 << 63, 1 << 2], np.uint64)
    driven = rng.integers(0, limits, (cycles, 6), np.uint64) * np.array([1, 2, 1, 2, 2, 1], np.uint64)
    expected = np.zeros((cycles, 5), np.uint64)
    expected[:, 0], expected[:, 1] = driven[:, 1] ^ driven[:, 0], driven[:, 2]
    expected[1:, 2:] = ~driven[:-1, 3:] & np.array([-1, -1, 3], np.int64).view(np.uint64)
    return Replay(
        ("narrow", "pair__low", "pair__low", "pair__high", "pair__high", "pair__high"),
        tuple(map(Output, ("shorter", "shorter", "longer", "longer", "longer"))),
        driven,
        expected,
    )


PLAYERS: dict[str, Callable[[Replay, Path], ReplayResult]] = {
    "amaranth": lambda replay, folder: replay_amaranth(Wide(), replay),
    "icarus": lambda replay, folder: (
        replay_cocotb(to_verilog(Wide(), "wide"), "wide", replay, folder, simulator="icarus").result
    ),
    "verilator": lambda replay, folder: replay_verilator(to_verilog(Wide(), "wide"), "wide", replay, folder).result,
}


@pytest.mark.parametrize("player", list(PLAYERS))
def test_ports_of_more_than_64_bits(player: str, tmp_path: Path) -> None:
    replay = complements()
    assert PLAYERS[player](replay, tmp_path) == ReplayResult(20, 0, None)
    replay.expected[7, 3] ^= 1 << 40
    result = PLAYERS[player](replay, tmp_path)
    right = int(replay.expected[7, 3]) ^ 1 << 40
    assert result == ReplayResult(20, 1, Mismatch(7, "longer", int(replay.expected[7, 3]), right))


@pytest.mark.parametrize(
    ("characters", "cycles", "short"),
    [
        (10**7, 19_999, True), (10**7, 20_000, False), (10**5, 999_999, True), (10**5, 1_000_000, False),
        (399_999, 200_000, True), (400_000, 200_000, False), (1, 10**11, False), (1, 10**11 - 1, True),
    ],
)  # fmt: skip
def test_which_runs_take_a_program_that_is_not_optimised(characters: int, cycles: int, short: bool) -> None:
    assert runner.is_short(characters, cycles) is short


@pytest.mark.parametrize("short", [True, pytest.param(False, marks=pytest.mark.study)])
def test_the_optimised_and_the_unoptimised_build(short: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not short:
        monkeypatch.setattr(runner, "_SHORT_RUN_CYCLES", 0)
        monkeypatch.setattr(runner, "_SHORT_RUN_WORK", 0)
    replay = complements()
    replay.expected[7, 3] ^= 1 << 40
    result = PLAYERS["verilator"](replay, tmp_path)
    assert result.mismatches == 1
    assert result.first is not None
    assert (result.first.cycle, result.first.signal) == (7, "longer")
    log = next(tmp_path.glob("player-*/build.log")).read_text()
    compiled = [line for line in log.splitlines() if "-c -o" in line or " -c " in line]
    assert compiled
    assert all(("-O0" in line and "-Os" not in line) == short for line in compiled)


def accumulation(count: int = 40) -> Replay:
    data = [(7 * number + 3) % 256 for number in range(count)]
    totals = [sum(data[:number]) % 256 for number in range(count)]
    # `even` is wrong where its gate is 0: that must not matter
    even = [[total, int(total % 2 == 0) if total else 0] for total in totals]
    return Replay(("data",), (Output("total"), Output("even", "total")), as_words([[d] for d in data]), as_words(even))


def test_a_right_component_passes() -> None:
    seen: list[tuple[int, int]] = []
    result = replay_amaranth(Accumulator(), accumulation(), progress=lambda done, total: seen.append((done, total)))
    assert result == ReplayResult(40, 0, None)
    assert seen == [(0, 40)]


def test_a_cycle_of_the_report_stands_in_the_waves_where_the_guide_says(tmp_path: Path) -> None:
    replay = accumulation()
    run = replay_verilator(to_verilog(Accumulator(), "sums"), "sums", replay, tmp_path, waves=True)
    assert run.result.first is None and run.waves is not None
    text = run.waves.read_text()
    keys = {name: key for key, name in re.findall(r"\$var wire +\d+ (\S+) (data|total|rst)\b", text)}
    assert "scope module sums" in text and keys.keys() == {"data", "total", "rst"}
    now, seen = dict.fromkeys(keys, -1), {}
    for moment in re.split(r"^#", text.partition("$enddefinitions")[2], flags=re.MULTILINE)[1:]:
        time, *changes = moment.splitlines()
        for value, key in re.findall(r"^b?([01]+) ?(\S+)$", "\n".join(changes), re.MULTILINE):
            now.update({name: int(value, 2) for name in keys if keys[name] == key})
        seen[int(time)] = dict(now)
    for cycle in range(replay.cycles):
        data, total = int(replay.driven[cycle, 0]), int(replay.expected[cycle, 0])
        assert seen[2 * cycle + 4] == {"data": data, "total": total, "rst": 0}
    assert seen[3]["rst"] == 1


def test_a_combinational_component_needs_no_clock() -> None:
    words = as_words([[word] for word in range(16)])
    replay = Replay(("data",), (Output("inverse"),), words, 15 - words, clocked=False)
    assert replay_amaranth(Inverter(), replay) == ReplayResult(16, 0, None)


def test_the_first_difference_is_named() -> None:
    replay = accumulation()
    replay.expected[17, 0] += 1
    replay.expected[30, 0] += 1
    result = replay_amaranth(Accumulator(), replay)
    right = int(replay.expected[17, 0]) - 1
    assert result == ReplayResult(40, 2, Mismatch(17, "total", right + 1, right))
    assert str(result.first) == f"cycle 17: total is {right:#x}, expected {right + 1:#x}"
    assert replay_amaranth(Accumulator(), replay.head(17)).mismatches == 0
    assert replay_amaranth(Accumulator(), replay, to_first=True) == ReplayResult(18, 1, result.first)


def test_cycles_before_everything_has_settled_do_not_count() -> None:
    replay = accumulation()
    replay.expected[1, 0] += 1
    settled = Replay(replay.inputs, replay.outputs, replay.driven, replay.expected, settle_cycles=2)
    assert replay_amaranth(Accumulator(), settled).mismatches == 0
    assert replay_amaranth(Accumulator(), replay).mismatches == 1


def test_unknown_values_are_differences() -> None:
    scoreboard = Scoreboard(accumulation(2))
    assert scoreboard.columns() == [0]  # the gate of the other one is 0
    scoreboard.compare([0], [None])
    assert str(scoreboard.result.first) == "cycle 0: total is unknown, expected 0x0"


def test_saved_and_loaded(tmp_path: Path) -> None:
    replay = accumulation()
    replay.save(tmp_path / "replay.npz")
    loaded = Replay.load(tmp_path / "replay.npz")
    assert (loaded.inputs, loaded.outputs, loaded.gates) == (replay.inputs, replay.outputs, (-1, 0))
    assert np.array_equal(loaded.driven, replay.driven)
    assert np.array_equal(loaded.expected, replay.expected)
    assert [path.name for path in tmp_path.iterdir()] == ["replay.npz"]


def test_words_of_64_bits_are_bit_patterns() -> None:
    assert as_words(np.array([[-1]], np.int64))[0, 0] == (1 << 64) - 1
    assert as_words([[1 << 63]])[0, 0] == 1 << 63


def test_arrays_that_do_not_fit() -> None:
    words = as_words([[1]])
    with pytest.raises(ValueError, match=re.escape("driven must have shape [cycle, 2], not (1, 1)")):
        Replay(("a", "b"), (Output("c"),), words, words)
    with pytest.raises(ValueError, match=re.escape("expected must have shape [1, 2], not (1, 1)")):
        Replay(("a",), (Output("b"), Output("c")), words, words)
    with pytest.raises(ValueError, match="gate of b must be an output, not 'x'"):
        Replay(("a",), (Output("b", "x"),), words, words)
