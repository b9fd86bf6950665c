"""An observed engine shows the keys and sets of the golden one, and a renaming that its ports do not show."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from amaranth.hdl import Module, Value

from hopforge.gen.design.configured import engine_parameters
from hopforge.hw.keys.maker import KeyMaker
from hopforge.model.config import load_config
from hopforge.model.lookup.params import LookupParams
from hopforge.sim.benches.lookup import observed_replay
from hopforge.sim.cosim.observed_engine import ObservedEngine
from hopforge.sim.drive.replay import Replay, replay_amaranth
from hopforge.sim.drive.stimulus import Stimulus, stimulus
from hopforge.sim.drive.stimulus_traffic import Traffic

CONFIGS = Path(__file__).parents[3] / "configs" / "mutation"


def played(name: str, lookups: int) -> tuple[LookupParams, Stimulus]:
    params = engine_parameters(load_config(CONFIGS / f"{name}.yml", hardware=True))
    traffic = Traffic(lookups=lookups, seed=5, quiet_cycles=6, pool=12, centres=1, locality=1.0, thorough=True)
    return params, stimulus(params, traffic)


@pytest.mark.parametrize("name", ["fat_tree", "deep/plru6"])
def test_what_the_engine_works_on_is_what_the_golden_one_does(name: str) -> None:
    params, recorded = played(name, 40)
    seen = recorded.operations
    assert len(seen) == recorded.cycles
    assert len(set(seen[:, 1].tolist())) > 3, "few keys"
    replay = observed_replay(recorded)
    wrong = replay.expected.copy()
    cycle = int(np.flatnonzero(seen[:, 0])[5])
    wrong[cycle, -2] ^= 1  # in one cycle only
    result = replay_amaranth(ObservedEngine(params=params), replace(replay, expected=wrong))
    assert result.mismatches == 1
    assert result.first is not None
    assert (result.first.cycle, result.first.signal) == (cycle, "seen_key")


def test_other_rows_for_all_keys_do_not_show_at_the_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    params, recorded = played("torus", 40)
    right = KeyMaker._index

    def inverted(self: KeyMaker, m: Module, payload: Value) -> Value:
        return ~right(self, m, payload)

    monkeypatch.setattr(KeyMaker, "_index", inverted)
    replay = observed_replay(recorded)
    rows = len(replay.outputs) - 1
    without = Replay(
        replay.inputs, replay.outputs[:rows], replay.driven, np.ascontiguousarray(replay.expected[:, :rows])
    )
    assert replay_amaranth(ObservedEngine(params=params), without).first is None, "ports and keys are as before"
    found = replay_amaranth(ObservedEngine(params=params), replay.head(200)).first
    assert found is not None
    assert found.signal == "seen_index"


def test_an_engine_without_a_register_for_the_operation_is_refused() -> None:
    params = replace(played("torus", 2)[0], pipeline_depth=1)
    with pytest.raises(ValueError, match="pipeline_depth must be at least 2 for an observed engine, not 1"):
        ObservedEngine(params=params)
