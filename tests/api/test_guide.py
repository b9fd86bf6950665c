"""The code of the guide runs as it stands."""

import re
import warnings
from pathlib import Path

import pytest

import hopforge as hf

ROOT = Path(__file__).parents[2]


def test_the_code_of_the_guide_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "docs" / "guides" / "python.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 7
    monkeypatch.chdir(tmp_path)
    (tmp_path / "configs").symlink_to(ROOT / "configs")
    names: dict[str, object] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hf.HopforgeWarning)
        for block in blocks:
            exec(compile(block, "python.md", "exec"), names)
    assert isinstance(names["result"], hf.SimulationResult)
    latency = names["latency"]
    assert isinstance(latency, dict) and latency.keys() == {1, 2, 4}
    assert str(names["files"]).count("\n") > 5 and (tmp_path / "build" / "wide.yml").exists()
    assert names["ring"]["topology.hosts_per_router"] == 2  # type: ignore[index]
