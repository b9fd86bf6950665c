"""The commands of DQN-Routing's searches and of its hardware, whole, on points that are as small as can be."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from hopforge import cli
from hopforge.sim.reproduce import REPRODUCTIONS
from hopforge.sim.reproduce.agents import dqn_beyond

SHORT = {"seed": 1, "warmup": 500, "cycles": 2000}
SCENES = ("uniform", "transpose")
#: figure → points and lines of its comparison
POINTS: dict[str, tuple[list[dict[str, Any]], int]] = {
    "dqn.search": (
        [
            {"setting": name, "train": 1000, "width": 4, **SHORT}
            for name in ("star-channel", "no routing can be faster", "document", "silent at the end")
        ],
        4,
    ),
    "dqn.beyond": (
        [
            {"scene": scene, "routing": name, "train": 1000, **SHORT}
            for scene in SCENES
            for name in dqn_beyond._NAMES
        ],
        8,
    ),
    "dqn.dragonfly": (
        [
            {"case": "ADV+1 at 0.25", "routing": name, "h": 1, "train": 1000 if name.startswith("DQN") else 0, **SHORT}
            for name in ("minimal", "Q-adaptive", "DQN, all ways")
        ],
        3,
    ),
    "dqn.failures": (
        [
            {"routing": name, "links": links, "train": 1000, "seed": 1, "warmup": 3000, "cycles": 2000}
            for name, links in (("shortest, up*/down* as escape", 2), ("DQN, nearer", 2), ("DQN, nearer", 0))
        ],
        3,
    ),
    "dqn.decision_delay": (
        [
            {"algorithm": "DOR", **SHORT},
            {"algorithm": "DQN", "width": 4, "delay": 0, "blocks": 1, **SHORT},
            {"algorithm": "DQN", "width": 4, "delay": 40, "blocks": 4, **SHORT},
        ],
        3,
    ),
    "dqn.int8": ([{"width": 4, "seed": 6, "learning": 2000, "decisions": 150, "loads": 2}], 14),
}  # fmt: skip


@pytest.mark.parametrize("name", list(POINTS))
def test_command(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    points, lines = POINTS[name]
    small = replace(REPRODUCTIONS[name], points=lambda options: points, parallel=False)
    monkeypatch.setattr("hopforge.sim.reproduce.REPRODUCTIONS", {name: small})
    monkeypatch.setattr(dqn_beyond, "SCENES", {scene: dqn_beyond.SCENES[scene] for scene in SCENES})
    monkeypatch.setattr("sys.argv", ["hopforge", "reproduce", name, "-o", str(tmp_path)])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert not stopped.value.code, capsys.readouterr().err
    data = pd.read_csv(tmp_path / name / "data.csv")
    assert len(data) >= len(points)
    assert (data["network_latency"] > 77).any()
    found = pd.read_csv(tmp_path / name / "comparison.csv")
    assert len(found) == lines
    assert found["ours"].notna().any()
