"""Limits of processor time: what sleeps is not ended, what works is, children included."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hopforge.gen.tools import processor_time as module
from hopforge.gen.tools.processor_time import processor_seconds, run_within

needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc")


@needs_proc
def test_sleep_is_no_processor_time(tmp_path: Path) -> None:
    done = run_within(["sh", "-c", "sleep 0.5; echo out; echo err >&2; pwd >&2; exit 3"], tmp_path, 0.3)
    assert (done.returncode, done.stdout, done.stderr) == (3, "out\n", f"err\n{tmp_path.resolve()}\n")


@pytest.mark.parametrize("kind", ["itself", "child"])
def test_work_is_ended(kind: str, tmp_path: Path) -> None:
    """Also what the program has started: nothing of it writes on."""
    work = f"open({str(tmp_path / 'begun')!r}, 'w').close()\nwhile True: pass"
    command = [sys.executable, "-c", work]
    if kind == "child":
        command = [sys.executable, "-c", f"import subprocess; subprocess.run({command!r})"]
    with pytest.raises(subprocess.TimeoutExpired):
        run_within(command, tmp_path, 0.5)
    assert (tmp_path / "begun").exists()


def test_temporary_files_go_with_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    work = "echo 1 > $TMPDIR/left; cat $TMPDIR/left; "
    assert run_within(["sh", "-c", work], tmp_path, 9).stdout == "1\n"
    with pytest.raises(subprocess.TimeoutExpired):
        run_within(["sh", "-c", f"{work}while true; do true; done"], tmp_path, 0.3)
    assert list((tmp_path / "tmp").iterdir()) == []


@needs_proc
def test_a_session_that_has_ended_takes_nothing(tmp_path: Path) -> None:
    process = subprocess.Popen(["true"], start_new_session=True)
    process.wait()
    assert processor_seconds(process.pid) == 0


@needs_proc
def test_a_program_ends_also_when_its_watcher_was_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BEYOND_S", 1)
    monkeypatch.setattr(module, "processor_seconds", lambda session: 0.0)  # nobody watches
    done = run_within([sys.executable, "-c", "while True: pass"], tmp_path, 0.5)
    assert done.returncode in (-signal.SIGKILL, -signal.SIGXCPU)
