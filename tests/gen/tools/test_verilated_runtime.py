"""What all verilated models share is compiled once, and never taken for a model that needs another one."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from hopforge.gen.tools import verilated_runtime
from hopforge.gen.tools.verilated_runtime import OBJECTS, build_model

ARGUMENTS = ["--cc", "--exe", "--build", "-O3", "-CFLAGS", "-O1", "--top-module", "engine", "engine.sv", "player.cpp"]
KEEPS = [word for name in OBJECTS[:2] for word in ("-MAKEFLAGS", f"--assume-old={name}")]


class Verilator:
    """Builds objects, without a compiler; remembers what it was asked for and what it found."""

    def __init__(self) -> None:
        self.status = 0
        self.asked: list[str] = []
        self.found: dict[str, str] = {}

    def __call__(self, arguments: Sequence[str], folder: Path, *, timeout_s: float) -> subprocess.CompletedProcess[str]:
        self.asked = [*arguments]
        objects = folder / "obj_dir"
        objects.mkdir(exist_ok=True)
        self.found = {path.name: path.read_text() for path in objects.iterdir()}
        for name in (*OBJECTS[:2], "Vengine"):
            if not (objects / name).exists():
                (objects / name).write_text(f"made in {folder.name}")
        return subprocess.CompletedProcess([], self.status, "")


@pytest.fixture
def verilator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Verilator:
    (tmp_path / "root" / "include").mkdir(parents=True)
    (tmp_path / "root" / "include" / "verilated.cpp").write_text("x")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(verilated_runtime, "verilator_environment", lambda: {"VERILATOR_ROOT": str(tmp_path / "root")})
    monkeypatch.setattr(verilated_runtime.shutil, "which", lambda name: str(tmp_path / "root"))
    made = Verilator()
    monkeypatch.setattr(verilated_runtime, "run_verilator", made)
    return made


def build(tmp_path: Path, name: str, *arguments: str) -> None:
    (tmp_path / name).mkdir()
    build_model([*ARGUMENTS, *arguments], tmp_path / name)


def test_the_second_model_takes_the_objects_of_the_first(tmp_path: Path, verilator: Verilator) -> None:
    build(tmp_path, "first")
    assert (verilator.asked, verilator.found) == (ARGUMENTS, {})
    build(tmp_path, "second")
    assert verilator.asked == [*ARGUMENTS, *KEEPS]
    assert verilator.found == dict.fromkeys(OBJECTS[:2], "made in first")


def test_names_of_designs_do_not_matter_and_options_do(tmp_path: Path, verilator: Verilator) -> None:
    build(tmp_path, "first")
    other = [*ARGUMENTS[:7], "router", "router.sv", "board.cpp"]
    (tmp_path / "second").mkdir()
    build_model(other, tmp_path / "second")
    assert verilator.asked == [*other, *KEEPS]
    for k, option in enumerate(("--trace", "-O0")):
        build(tmp_path, f"other{k}", option)
        assert verilator.found == {}


@pytest.mark.parametrize("change", ["verilated.cpp", "flags"])
def test_another_verilator_or_compiler_takes_nothing(
    tmp_path: Path, verilator: Verilator, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    build(tmp_path, "first")
    if change == "flags":
        monkeypatch.setenv("CXXFLAGS", "-march=native")
    else:
        os.utime(tmp_path / "root" / "include" / "verilated.cpp", (9, 9))
    build(tmp_path, "second")
    assert verilator.found == {}


def test_a_build_that_failed_keeps_nothing(tmp_path: Path, verilator: Verilator) -> None:
    verilator.status = 1
    build(tmp_path, "first")
    verilator.status = 0
    build(tmp_path, "second")
    assert verilator.found == {}


def test_a_copy_that_fails_leaves_no_half_object(
    tmp_path: Path, verilator: Verilator, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(tmp_path, "first")

    def half(source: Path, target: Path) -> None:
        target.write_text("ha")
        raise OSError

    monkeypatch.setattr(verilated_runtime.shutil, "copy", half)
    build(tmp_path, "second")
    assert (verilator.asked, verilator.found) == (ARGUMENTS, {})


def test_only_so_many_are_kept(tmp_path: Path, verilator: Verilator) -> None:
    for k in range(verilated_runtime._MOST_KEPT + 3):
        build(tmp_path, f"b{k}", f"-DX={k}")
    kept = list((tmp_path / "cache" / "hopforge" / "verilator").iterdir())
    assert len(kept) == verilated_runtime._MOST_KEPT
    build(tmp_path, "again", f"-DX={verilated_runtime._MOST_KEPT + 2}")
    assert set(verilator.found) == set(OBJECTS[:2])


def test_without_a_cache_folder_it_is_compiled(
    tmp_path: Path, verilator: Verilator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verilated_runtime, "user_folder", lambda name: None)
    build(tmp_path, "first")
    build(tmp_path, "second")
    assert verilator.found == {}
