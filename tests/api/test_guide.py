"""The code of the guide runs as it stands."""

import re
import warnings
from pathlib import Path

import pytest

import hopforge as hf

ROOT = Path(__file__).parents[2]


def blocks(page: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


@pytest.mark.study
@pytest.mark.parametrize("page", ["docs/guides/compare-results.md", "README.md"])
def test_the_code_of_other_pages_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "configs").symlink_to(ROOT / "configs")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    text = re.findall(r"^```yaml\n(.*?)^```", readme, re.DOTALL | re.MULTILINE)
    (tmp_path / "torus.yml").write_text(text[0], encoding="utf-8")
    names: dict[str, object] = {}
    for block in blocks(page):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", hf.HopforgeWarning)
            exec(compile(block, page, "exec"), names)
    assert isinstance(names["found"], (hf.Comparison, hf.SimulationResult))


def test_the_code_of_the_guide_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = blocks("docs/guides/python.md")
    assert len(found) >= 7
    monkeypatch.chdir(tmp_path)
    (tmp_path / "configs").symlink_to(ROOT / "configs")
    names: dict[str, object] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hf.HopforgeWarning)
        for block in found:
            exec(compile(block, "python.md", "exec"), names)
    assert isinstance(names["result"], hf.SimulationResult)
    latency = names["latency"]
    assert isinstance(latency, dict) and latency.keys() == {1, 2, 4}
    assert str(names["files"]).count("\n") > 5 and (tmp_path / "build" / "wide.yml").exists()
    assert names["ring"]["topology.hosts_per_router"] == 2  # type: ignore[index]
