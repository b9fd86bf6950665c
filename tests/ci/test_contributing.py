"""The walk of CONTRIBUTING.md: each of its steps is done in a copy of the repository."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
CODE = re.findall(r"^```python\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
CHANGES = re.findall(r"^```diff\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
#: what each change of the walk changes
CHANGED = ("model/routing/__init__.py", "model/routing/__init__.py", "tests/model/routing/test_routing.py")
MESH = "name: m\ntopology: {kind: mesh, radices: [4, 3]}\nrouter: {vcs: 1}\nrouting: {algorithm: west_first}\n"


def after(path: Path, change: str) -> str:
    """Text of a file after a change: its lines without a sign must stand there, in this order."""
    lines = change.splitlines()
    old = "\n".join(line[1:] for line in lines if line[0] != "+")
    new = "\n".join(line[1:] for line in lines if line[0] != "-")
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{path}: CONTRIBUTING.md changes what is not there once: {old}"
    return text.replace(old, new)


def test_the_walk_fits_the_code() -> None:
    assert len(CODE) == 1 and len(CHANGES) == len(CHANGED)
    compile(CODE[0], "turns.py", "exec")
    for name, change in zip(CHANGED, CHANGES, strict=True):
        assert after(ROOT / name, change) != (ROOT / name).read_text(encoding="utf-8")
    # the study chooses the new line by its words
    assert re.search(r'west_first\}".*?\], ids=" "\.join\)', after(ROOT / CHANGED[-1], CHANGES[-1]), re.DOTALL)
    named = set(re.findall(r"`((?:model|tests|docs)/[\w/.-]+)`", TEXT)) - {"model/routing/grids/turns.py"}
    assert named >= {"model/routing/contract/plan.py", *CHANGED}
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


@pytest.mark.study
def test_the_walk_adds_an_algorithm(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_symlink():
            (copy / name).symlink_to((ROOT / name).readlink())
        else:
            shutil.copyfile(ROOT / name, copy / name)
    (copy / "model/routing/grids/turns.py").write_text(CODE[0], encoding="utf-8")
    for name, change in zip(CHANGED, CHANGES, strict=True):
        (copy / name).write_text(after(copy / name, change), encoding="utf-8")
    (tmp_path / "mesh.yml").write_text(MESH, encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": str(copy / "src"), "NUMBA_NUM_THREADS": "1"}
    environment.pop("HOPFORGE_STUDY", None)

    def run(*words: str, folder: Path) -> str:
        done = subprocess.run(
            [sys.executable, "-m", *words], cwd=folder, capture_output=True, text=True, check=False, env=environment
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout

    assert "latency" in run("hopforge", "net", "mesh.yml", folder=tmp_path)
    tests = ["tests/model/routing/test_routing.py", "-k", "delivers and west_first", "-p", "no:cacheprovider"]
    assert " passed" in run("pytest", *tests, "-n0", "-rN", folder=copy)
    run("ruff", "check", "model/routing", folder=copy)
    broken = CODE[0].replace("if dx < 0:", "if dx < -99:").replace("if dx > 0:", "if dx != 0:")
    broken = broken.replace("candidate(first, vcs)", "candidate(first + (0 if dx > 0 else 1), vcs)")
    (copy / "model/routing/grids/turns.py").write_text(broken, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "hopforge", "net", "mesh.yml"], cwd=tmp_path, capture_output=True, text=True,
        check=False, env=environment,
    )  # fmt: skip
    assert done.returncode == 2 and "VC0" in done.stderr
