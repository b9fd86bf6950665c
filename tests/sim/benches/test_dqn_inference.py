"""Decisions of an agent on Amaranth's simulator and on Verilator, every output in every cycle."""

from pathlib import Path

import numpy as np
import pytest

from hopforge.gen.verilog.writer import to_verilog
from hopforge.hw.agents.dqn_inference import DqnInference
from hopforge.model.dqn.int8_network import Int8Network, quantised
from hopforge.model.dqn.shape import NetworkShape
from hopforge.sim.benches.dqn_inference import inference_replay
from hopforge.sim.drive.replay import Replay, replay_amaranth
from hopforge.sim.drive.runner import replay_verilator


def decisions(widths: tuple[int, ...], lanes: int, count: int, bits: int = 8) -> tuple[DqnInference, Replay]:
    shape, rng = NetworkShape(*widths), np.random.default_rng(sum(widths))
    seen = rng.random((count, widths[0]))
    network: Int8Network = quantised(shape, shape.drawn(rng, 0.5), seen, bits)
    block = DqnInference(widths=widths, lanes=lanes, activation_bits=bits)
    return block, inference_replay(block, network, network.whole(seen), rng)


def test_on_amaranth() -> None:
    block, replay = decisions((5, 9, 8, 7, 4), 4, 3)
    assert replay_amaranth(block, replay).first is None
    wrong = replay.expected.copy()
    wrong[-40:, 4] ^= np.uint64(1)  # of the advantages
    again = Replay(replay.inputs, replay.outputs, replay.driven, wrong)
    assert replay_amaranth(decisions((5, 9, 8, 7, 4), 4, 3)[0], again).mismatches > 0


def test_more_actions_than_multipliers() -> None:
    with pytest.raises(ValueError, match="actions must be at most lanes=2, not 4"):
        decisions((5, 9, 8, 7, 4), 2, 1)


@pytest.mark.study
@pytest.mark.parametrize(
    ("widths", "lanes", "count", "bits"),
    [((13, 32, 32, 32, 4), 8, 500, 8), ((13, 32, 32, 32, 4), 8, 500, 12), ((13, 256, 256, 256, 4), 16, 30, 8)],
)
def test_on_verilator(widths: tuple[int, ...], lanes: int, count: int, bits: int, tmp_path: Path) -> None:
    block, replay = decisions(widths, lanes, count, bits)
    run = replay_verilator(to_verilog(block, "inference"), "inference", replay, tmp_path)
    assert (run.result.first, run.result.cycles) == (None, replay.cycles)
    actions = replay.expected[:, [output.name for output in replay.outputs].index("action")]
    assert len(np.unique(actions)) > 1
