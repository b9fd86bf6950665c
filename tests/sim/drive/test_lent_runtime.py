"""What one short run of Verilator lends to the next: its compiled runtime, if that was built to its end."""

import os
from pathlib import Path

import pytest

from hopforge.sim.drive import runner

NAMES = ("verilated.o", "verilated_threads.o")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Verilator, and a folder with a model that it has built."""
    monkeypatch.setattr(runner, "verilator_environment", lambda: {"VERILATOR_ROOT": str(tmp_path)})
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "verilated.cpp").touch()
    built = tmp_path / "play" / "player-0-quick" / "obj_dir"
    built.mkdir(parents=True)
    for name in (*NAMES, "Vengine", "Vengine.cpp"):
        (built / name).touch()
        os.utime(built / name, (2**31, 2**31))
    return tmp_path / "play"


def lent(folder: Path) -> list[str]:
    build = folder / "player-1-quick"
    build.mkdir()
    options = runner._lend_runtime(folder, build)
    assert [word for word in options if word != "-MAKEFLAGS"] == [
        f"--assume-old={path.name}" for path in sorted((build / "obj_dir").iterdir())
    ]
    return options


def test_the_runtime_is_kept(folder: Path) -> None:
    assert lent(folder) == [word for name in NAMES for word in ("-MAKEFLAGS", f"--assume-old={name}")]


def test_what_was_stopped_lends_nothing(folder: Path) -> None:
    (folder / "player-0-quick" / "obj_dir" / "Vengine").unlink()
    assert lent(folder) == []


def test_another_verilator_takes_nothing(folder: Path) -> None:
    os.utime(folder.parent / "include" / "verilated.cpp", (2**31 + 9, 2**31 + 9))
    assert lent(folder) == []
