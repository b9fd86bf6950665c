"""Programs and what they start: ended together, given the time to tidy up, and no longer than that."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from hopforge.gen.fpga.boards import BOARDS
from hopforge.gen.fpga.tools import run_tools
from hopforge.gen.tools import verilated_runtime
from hopforge.gen.tools.process_group import in_group, run_in_group

#: ends at SIGTERM, and says so in a file; its child takes no notice of it
PARENT = """\
import signal, subprocess, sys
subprocess.Popen([sys.executable, "-c", {child!r}])
def tidy(*_):
    open("tidied", "w").close()
    sys.exit()
signal.signal(signal.SIGTERM, tidy)
open("parent", "w").close()
signal.pause()
"""
CHILD = """\
import os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
with open("child.part", "w") as file:
    file.write(str(os.getpid()))
os.rename("child.part", "child")
signal.pause()
"""


def wait_for(*files: Path) -> None:
    last = time.monotonic() + 60
    while not all(file.exists() for file in files):
        assert time.monotonic() < last
        time.sleep(0.01)


def lives(pid: int) -> bool:
    """Tell whether a process is there, and no remains that nobody has asked for."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="asks /proc")
def test_all_are_ended_the_first_is_asked(tmp_path: Path) -> None:
    def interrupted() -> None:
        with in_group([sys.executable, "-c", PARENT.format(child=CHILD)], cwd=tmp_path) as process:
            wait_for(tmp_path / "parent", tmp_path / "child")
            started.append(process)
            raise KeyboardInterrupt

    started: list[subprocess.Popen[str]] = []
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert (tmp_path / "tidied").exists()
    assert started[0].returncode == 0
    pid = int((tmp_path / "child").read_text())
    last = time.monotonic() + 60  # the system may take a moment
    while lives(pid) and time.monotonic() < last:
        time.sleep(0.01)
    assert not lives(pid)


def test_what_it_prints_and_how_it_ends(tmp_path: Path) -> None:
    environment = {**os.environ, "WORD": "said"}
    command = ["sh", "-c", "echo $WORD; read nothing; echo err >&2; pwd; exit 3"]
    done = run_in_group(command, tmp_path, environment=environment, output=subprocess.PIPE)
    assert (done.returncode, done.stdout) == (3, f"said\nerr\n{tmp_path.resolve()}\n")


def test_a_limit(tmp_path: Path) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        run_in_group(["sleep", "100"], tmp_path, environment=os.environ, output=subprocess.PIPE, timeout_s=0.1)


def test_an_interrupted_build_leaves_no_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be taken for one that was linked to its end."""

    def linking(_arguments: list[str], folder: Path, *, timeout_s: float) -> None:
        (folder / "obj_dir").mkdir(exist_ok=True)
        (folder / "obj_dir" / "Vtop").write_bytes(b"half of it")
        raise KeyboardInterrupt

    monkeypatch.setattr(verilated_runtime, "run_verilator", linking)
    with pytest.raises(KeyboardInterrupt):
        verilated_runtime.build_model(["--cc", "--top-module", "top"], tmp_path)
    assert not (tmp_path / "obj_dir").exists()


def test_temporary_files_of_fpga_tools_go_with_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are killed in the middle of their work, and so cannot delete them."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr("tempfile.tempdir", None)
    (tmp_path / "build.sh").write_text('echo $$ > "$TMPDIR/left"; touch begun; exec "$TOOL" 100\n')

    def interrupt() -> None:
        wait_for(tmp_path / "begun")
        assert len(list((tmp_path / "tmp").glob("*/left"))) == 1
        os.kill(os.getpid(), 2)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        run_tools("build", tmp_path, {"TOOL": "sleep"}, name="top", board=BOARDS["icebreaker"])
    thread.join()
    assert list((tmp_path / "tmp").iterdir()) == []
