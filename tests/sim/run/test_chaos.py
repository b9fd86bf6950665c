"""Chaos: processes killed at random moments, a full disk, a folder that cannot be written, two at once.

After each, the same command gives the bits of a run that nobody disturbed, and leaves nothing else.
"""

import contextlib
import errno
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hopforge import cli
from hopforge.model.errors import UserError
from hopforge.sim.run import kept_results
from hopforge.sim.run.wanted_result import Wanted

SWEEPS = {
    "flit": """\
name: flit
topology: {kind: mesh, radices: [4, 4]}
simulation: {loads: [0.1, 0.2, 0.3, 0.4], seeds: 4, min_cycles: 100000, max_cycles: 100000, warmup_cycles: 500}
""",
    "packet": """\
name: packet
topology: {kind: torus, radices: [8, 8]}
router: {model: packet}
routing: {algorithm: ofr}
packet: {messages: 20}
simulation: {loads: [0.1, 0.2, 0.3, 0.4], seeds: 4}
""",
    "app": """\
name: app
topology: {kind: torus, radices: [4, 4]}
workload: {kind: collective, operation: alltoall, ranks: 16, bytes: 4096}
app: {engine: packet}
simulation:
  seeds: 3
  variants: {a: {}, b: {workload.mapping.kind: random}, c: {seed: 7}, d: {traffic.flit_bytes: 32}}
""",
}
TIMES = ("times.csv", "times.parquet")


def tree(folder: Path) -> dict[str, bytes]:
    """Return all that must not depend on what happened: every file but times and the words of the command."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.is_file() and path.name not in TIMES and "times" not in name.parts:
            found[str(name)] = path.read_bytes()
    content = json.loads(found["metadata.json"])
    del content["command"]
    found["metadata.json"] = json.dumps(content).encode()
    return found


def words(folder: Path, kind: str, out: str = "out") -> list[str]:
    return [sys.executable, "-m", "hopforge", "sweep", str(folder / f"{kind}.yml"), "-o", str(folder / out)]


def undisturbed(folder: Path, kind: str) -> dict[str, bytes]:
    (folder / f"{kind}.yml").write_text(SWEEPS[kind])
    done = subprocess.run(
        [*words(folder, kind, "whole"), "--workers", "1"], capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stderr
    return tree(folder / "whole")


@contextlib.contextmanager
def begun(folder: Path, kind: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [*words(folder, kind), "--workers", "2"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.kill()


def processes_of(session: int) -> list[int]:
    """Return the processes of a session but its first and multiprocessing's tracker."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
            works = b"spawn_main" in (folder / "cmdline").read_bytes()
            if int(fields[3]) == session and fields[0] != "Z" and works:
                found.append(int(folder.name))
    return found


def kill_worker(process: subprocess.Popen[str], rng: random.Random) -> None:
    workers = processes_of(process.pid)
    if workers:
        with contextlib.suppress(ProcessLookupError):
            os.kill(rng.choice(workers), signal.SIGKILL)


def kill_parent(process: subprocess.Popen[str], rng: random.Random) -> None:
    process.kill()


def end_parent(process: subprocess.Popen[str], rng: random.Random) -> None:
    process.send_signal(rng.choice([signal.SIGTERM, signal.SIGHUP]))


BLOWS = (kill_worker, kill_parent, end_parent)


def struck(folder: Path, kind: str, rng: random.Random, blows: int, most_s: float) -> None:
    """Disturb one command; returns when it and its processes have ended."""
    with begun(folder, kind) as process:
        for _ in range(blows):
            time.sleep(rng.uniform(0, most_s))
            rng.choice(BLOWS)(process, rng)
        err = process.communicate(timeout=600)[1]
        assert "Traceback" not in err or process.returncode == -signal.SIGKILL, err
        assert process.returncode in (0, 1, -9, 143, 129, -15, -1), (process.returncode, err)
        last = time.monotonic() + 60
        while processes_of(process.pid) and time.monotonic() < last:
            time.sleep(0.05)
        assert processes_of(process.pid) == []


def ends_like(folder: Path, kind: str, whole: dict[str, bytes], *, workers: int = 2) -> None:
    """Run the command to its end, and compare."""
    done = subprocess.run(
        [*words(folder, kind), "--workers", str(workers)], capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    found = tree(folder / "out")
    assert found.keys() == whole.keys()
    assert [name for name in whole if found[name] != whole[name]] == []


needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="asks /proc")


@needs_proc
@pytest.mark.study
@pytest.mark.parametrize("kind", SWEEPS)
@pytest.mark.parametrize("seed", range(10))
def test_killed_at_random_moments(tmp_path: Path, kind: str, seed: int) -> None:
    rng = random.Random(1000 * seed + len(kind))
    whole = undisturbed(tmp_path, kind)
    for _ in range(3):
        struck(tmp_path, kind, rng, rng.randint(1, 3), 4.0)
    ends_like(tmp_path, kind, whole)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Yield a file system of 64 KiB."""
    place = tmp_path / "disk"
    place.mkdir()
    try:
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(place)], check=False)
    except FileNotFoundError:
        pytest.skip("no mount here")
    if done.returncode != 0:
        pytest.skip("file systems cannot be mounted here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.study
@pytest.mark.parametrize("kind", SWEEPS)
def test_a_disk_that_is_full_and_then_larger(tmp_path: Path, small_disk: Path, kind: str) -> None:
    whole = undisturbed(tmp_path, kind)
    (tmp_path / "out").symlink_to(small_disk)
    done = subprocess.run(
        [*words(tmp_path, kind), "--workers", "2"], capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith("hopforge: ") and done.stderr.count("\n") == 1
    assert "No space left on device" in done.stderr
    assert [path for path in small_disk.rglob(".*")] == []
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    ends_like(tmp_path, kind, whole)


@pytest.mark.study
def test_a_disk_that_cannot_be_written(tmp_path: Path, small_disk: Path) -> None:
    whole = undisturbed(tmp_path, "flit")
    (tmp_path / "out").symlink_to(small_disk)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    done = subprocess.run(words(tmp_path, "flit"), capture_output=True, text=True, timeout=900, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "Read-only file system" in done.stderr
    subprocess.run(["mount", "-o", "remount,rw,size=64m", str(small_disk)], check=True)
    with begun(tmp_path, "flit") as process:  # and one that becomes so while it runs
        while not list(small_disk.glob("runs/*.json")) and process.poll() is None:
            time.sleep(0.02)
        subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=False)
        err = process.communicate(timeout=600)[1]
    subprocess.run(["mount", "-o", "remount,rw,size=64m", str(small_disk)], check=True)
    assert process.returncode in (0, 2) and "Traceback" not in err
    ends_like(tmp_path, "flit", whole)


@pytest.mark.study
@pytest.mark.parametrize("kind", SWEEPS)
def test_two_writers(tmp_path: Path, kind: str) -> None:
    whole = undisturbed(tmp_path, kind)
    for pause in (0.0, 0.5, 2.0):
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        with begun(tmp_path, kind) as first:
            time.sleep(pause)
            with begun(tmp_path, kind) as second:
                errors = [process.communicate(timeout=900)[1] for process in (first, second)]
        for process, err in zip((first, second), errors, strict=True):
            refused = f"hopforge: {tmp_path}/out/runs: another hopforge is at work here; "
            assert (process.returncode == 0 and not err) or (process.returncode == 2 and err.startswith(refused)), err
        assert 0 in (first.returncode, second.returncode)
        assert tree(tmp_path / "out").keys() == whole.keys()
        ends_like(tmp_path, kind, whole)


# --- the same in small: what writes fails at every place in turn


TINY = """\
name: tiny
topology: {kind: mesh, radices: [2, 2]}
simulation: {loads: [0.1], seeds: 2, min_cycles: 1000, max_cycles: 1000, warmup_cycles: 100}
"""


def command(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> object:
    monkeypatch.setattr(sys, "argv", ["hopforge", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return ended.value.code


def full_disk() -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def stopped() -> None:
    signal.raise_signal(signal.SIGTERM)


def fails_everywhere(
    folder: Path, monkeypatch: pytest.MonkeyPatch, blow: Callable[[], None], some: int
) -> list[object]:
    """Let `blow` come at every file that is put in its place, or at `some` of them; returns the exit statuses."""
    (folder / "c.yml").write_text(TINY)
    words = ["sweep", str(folder / "c.yml"), "--workers", "1", "-o"]
    replace, out = Path.replace, folder / "out"
    count, struck = 0, 0

    def counted(path: Path, target: Path) -> Path:
        nonlocal count
        count += 1
        if count == struck:
            blow()
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", counted)
    assert command(monkeypatch, *words, str(folder / "whole")) == 0
    whole, places = tree(folder / "whole"), count
    assert places >= len(whole)
    chosen = range(1, places + 1)
    ended = []
    for place in chosen if some == 0 else sorted({1, places, *random.Random(places).sample(chosen, some)}):
        shutil.rmtree(out, ignore_errors=True)
        count, struck = 0, place
        ended.append(command(monkeypatch, *words, str(out)))
        assert [path for path in folder.rglob(".*")] == []
        struck = 0
        assert command(monkeypatch, *words, str(out)) == 0
        assert tree(out) == whole
    return ended


@pytest.mark.parametrize(("blow", "status", "some"), [
    (full_disk, 2, 1),
    *(pytest.param(*each, marks=pytest.mark.study)
      for each in ((full_disk, 2, 0), (stopped, 143, 1), (stopped, 143, 0))),
])  # fmt: skip
def test_any_file_that_is_written_may_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    blow: Callable[[], None], status: int, some: int,
) -> None:  # fmt: skip
    assert set(fails_everywhere(tmp_path, monkeypatch, blow, some)) == {status}
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises((OSError, UserError), match=r"Permission denied"):
        kept_results.kept_results([1], [Wanted("a")], str, tmp_path / "runs", lambda *counts: None)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="asks /proc")
@pytest.mark.study
def test_a_sweep_whose_process_and_parent_are_killed(tmp_path: Path) -> None:
    """The reduced form of the study above: one command, a process of it killed, then all of it, then to its end."""
    (tmp_path / "flit.yml").write_text(SWEEPS["flit"].replace("100000", "30000").replace("seeds: 4", "seeds: 2"))
    with begun(tmp_path, "flit") as process:
        while not (found := processes_of(process.pid)) and process.poll() is None:
            time.sleep(0.02)
        os.kill(found[0], signal.SIGKILL)
        while not list(tmp_path.glob("out/runs/*.json")) and process.poll() is None:
            time.sleep(0.02)
        process.kill()
        assert process.stderr is not None
        assert "its process was killed by SIGKILL; it is done again" in process.stderr.read()
    kept = {path.name for path in tmp_path.glob("out/runs/*.json")}
    done = subprocess.run(
        [*words(tmp_path, "flit"), "--workers", "1"], capture_output=True, text=True, timeout=600, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    found_now = tree(tmp_path / "out")
    assert kept <= {Path(name).name for name in found_now} and not [name for name in found_now if "/." in name]
    shutil.move(tmp_path / "out", tmp_path / "first")
    ends_like(tmp_path, "flit", found_now, workers=1)
