"""Memory that is free: what the system tells, and a limit that makes too large arrays an error."""

import subprocess
import sys
from pathlib import Path

import pytest

from hopforge.model.free_memory import free_memory, limited_memory, out_of_memory

resource = pytest.importorskip("resource")
MEMINFO = "MemTotal:       1000 kB\nMemFree:  10 kB\nMemAvailable:   600 kB\nSwapFree:  40 kB\n"


def groups(folder: Path, limit: str, use: str) -> tuple[tuple[Path, Path], ...]:
    files = folder / "max", folder / "current"
    for file, text in zip(files, (limit, use), strict=True):
        file.write_text(text)
    return (files,)


@pytest.mark.parametrize(
    ("meminfo", "limit", "use", "free"),
    [
        (MEMINFO, "max\n", "5\n", 640 << 10),
        (MEMINFO, "5000\n", "1000\n", 4000),
        (MEMINFO, f"{1 << 62}\n", "0\n", 640 << 10),
        (MEMINFO, "100\n", "200\n", 1),
        ("", "5000\n", "1000\n", 4000),
        ("", "", "", 0),
        ("MemAvailable: many kB\n", "max\n", "", 0),
        ("MemAvailable\n", "max\n", "", 0),
    ],
)
def test_free_memory(tmp_path: Path, meminfo: str, limit: str, use: str, free: int) -> None:
    told = tmp_path / "meminfo"
    told.write_text(meminfo)
    assert free_memory(told, groups(tmp_path, limit, use)) == free


def test_a_system_that_tells_nothing(tmp_path: Path) -> None:
    assert free_memory(tmp_path / "none", ((tmp_path / "none", tmp_path / "none"),)) == 0


def test_a_limit_is_taken_back() -> None:
    before = resource.getrlimit(resource.RLIMIT_DATA)
    with limited_memory():
        assert 0 < resource.getrlimit(resource.RLIMIT_DATA)[0] <= max(free_memory(), 1) * 2
        assert "GiB for this process" in out_of_memory()
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


def test_a_lower_limit_stays() -> None:
    code = """
import resource
from hopforge.model.free_memory import limited_memory, out_of_memory
resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 31))
with limited_memory():
    print(resource.getrlimit(resource.RLIMIT_DATA) == (1 << 30, 1 << 31), out_of_memory())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True not enough memory: there were 1 GiB for this process\n"


def test_arrays_that_are_larger_together_than_the_memory_are_an_error() -> None:
    """The system itself would hand out each of them, and kill the process when they are written."""
    code = """
import numpy as np
from hopforge.model.free_memory import free_memory, limited_memory
kept, half = [], free_memory() * 6 // 80
with limited_memory():
    try:
        for _ in range(10):
            kept.append(np.empty(half, np.int64))
    except MemoryError:
        print("refused", len(kept))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout in {"refused 0\n", "refused 1\n"}
