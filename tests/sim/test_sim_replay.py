import re
from pathlib import Path

import numpy as np
import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib.wiring import Component, In, Out

from hopforge.sim.replay import Mismatch, Output, Replay, ReplayResult, Scoreboard, as_words, replay_amaranth


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
