"""Ctrl-C, SIGTERM and SIGHUP at any time: one line, the status that a shell expects, nothing left behind."""

import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hopforge import interrupts

CONFIG = """\
name: long
topology: {kind: mesh, radices: [4, 4]}
simulation: {loads: [0.1], seeds: 40, min_cycles: 1000000, max_cycles: 1000000}
"""
WORDS = {
    signal.SIGINT: "hopforge: interrupted\n",
    signal.SIGTERM: "hopforge: ended by SIGTERM\n",
    signal.SIGHUP: "hopforge: ended by SIGHUP\n",
}


def _defaults() -> None:
    """A background job inherits that signals are ignored, and these tests may be part of one."""
    for number in WORDS:
        signal.signal(number, signal.SIG_DFL)


@contextmanager
def begun(folder: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """Start a command with a folder for temporary files of its own."""
    (folder / "tmp").mkdir(exist_ok=True)
    with subprocess.Popen(
        [sys.executable, "-m", "hopforge", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=_defaults,  # noqa: PLW1509 - no threads here
        start_new_session=True, cwd=folder, env={**os.environ, "TMPDIR": str(folder / "tmp")},
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.kill()


def members(session: int) -> list[str]:
    """Return the processes of a session that live."""
    found = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = file.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(file.parent.name)
    return found


needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="asks /proc")


@needs_proc
@pytest.mark.parametrize(
    "number",
    [
        pytest.param(number, id=number.name, marks=() if number is signal.SIGTERM else pytest.mark.study)
        for number in WORDS
    ],
)
def test_a_sweep_keeps_what_is_finished(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "c.yml").write_text(CONFIG)
    with begun(tmp_path, "sweep", "c.yml", "-o", "out", "--workers", "2") as process:
        last = time.monotonic() + 100
        while not list((tmp_path / "out" / "runs").glob("*.json")) and time.monotonic() < last:
            time.sleep(0.05)
        assert len(members(process.pid)) >= 3
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
        kept = len(list((tmp_path / "out" / "runs").glob("*.json")))
        assert (process.returncode, out) == (128 + number, "")
        assert err == (
            f"hopforge: {kept} of 40 runs are finished and kept in out; the same command goes on\n{WORDS[number]}"
        )
        while members(process.pid) and time.monotonic() < last:
            time.sleep(0.05)
        assert members(process.pid) == []
    assert [path.name for path in tmp_path.rglob(".*")] == []
    assert list((tmp_path / "tmp").iterdir()) == []


MOMENTS = [0.02, 0.06, 0.1, 0.15, 0.2, 0.3]


def interrupted_early(folder: Path, moment: float, *words: str, number: signal.Signals = signal.SIGINT) -> bool:
    """Send a signal; returns whether hopforge was there: until then Python tells the world itself."""
    with begun(folder, *words) as process:
        time.sleep(moment)
        process.send_signal(number)
        _, err = process.communicate(timeout=100)
    assert "hopforge/" not in err, (moment, words, err)
    if process.returncode == 128 + number:
        assert err == WORDS[number]
    else:  # before, or at the end
        assert process.returncode in (0, -number) or "KeyboardInterrupt" in err, (moment, words, err)
    return process.returncode == 128 + number


def test_a_signal_while_a_command_begins(tmp_path: Path) -> None:
    (tmp_path / "c.yml").write_text(CONFIG)
    words = [["--help"], ["check", "c.yml"], ["sweep", "c.yml", "-o", "out", "--workers", "2"], ["hits", "c.yml"]]
    for k, moment in enumerate(MOMENTS):
        interrupted_early(tmp_path, moment, *words[k % len(words)], number=list(WORDS)[k % len(WORDS)])


def test_hopforge_listens_before_it_loads_anything() -> None:
    """Also by the entry point that a package installs."""
    code = (
        "import sys; sys.argv = ['/bin/hopforge']; import signal; from hopforge import interrupts\n"
        "print(signal.getsignal(signal.SIGTERM) is interrupts._end)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, preexec_fn=_defaults
    )  # fmt: skip
    assert done.stdout == "True\n"
    project = Path(__file__).parents[2] / "pyproject.toml"
    assert 'hopforge = "hopforge.__main__:main"' in project.read_text()


@pytest.mark.study
def test_a_signal_at_any_moment_of_every_command(tmp_path: Path) -> None:
    (tmp_path / "c.yml").write_text(CONFIG)
    commands = [
        "--help", "doctor", "check c.yml", "net c.yml", "series c.yml", "sweep c.yml --workers 2", "trace c.yml",
        "hits c.yml", "topology c.yml", "route c.yml", "workload c.yml", "gen lookup c.yml", "lint c.yml", "schema",
        "report build", "reproduce --list", "demo", "cosim c.yml", "bench lookup c.yml", "synth c.yml", "prove c.yml",
    ]  # fmt: skip
    heard = 0
    for command in commands:
        for step in range(12):
            heard += interrupted_early(
                tmp_path, 0.025 * step, *command.split(), number=list(WORDS)[step % len(WORDS)]
            )  # fmt: skip
            assert list((tmp_path / "tmp").iterdir()) == []
            assert list(tmp_path.rglob(".unfinished-*")) == []
    assert heard > len(commands)
    for step in range(40):  # while processes begin, compile, run
        number = list(WORDS)[step % len(WORDS)]
        line = ("sweep c.yml --workers 2", "net c.yml", "demo", "reproduce lookup.fig4.5")[step % 4]
        with begun(tmp_path, *line.split()) as process:
            time.sleep(0.3 + 0.15 * step)
            process.send_signal(number)
            _, err = process.communicate(timeout=100)
            assert "Traceback" not in err, (line, step, err)
            assert process.returncode in (0, 128 + number), (line, step, err)
            last = time.monotonic() + 20
            while members(process.pid) and time.monotonic() < last:
                time.sleep(0.05)
            assert members(process.pid) == [], (line, step)
        assert list((tmp_path / "tmp").iterdir()) == [], (line, step)
        assert [*tmp_path.rglob(".unfinished-*"), *tmp_path.rglob(".*.part")] == [], (line, step)


def test_the_exit_status_is_that_of_the_signal(tmp_path: Path) -> None:
    """Also when the interrupt came through `exec` of a text: Python would end itself by SIGINT."""
    (tmp_path / "sitecustomize.py").write_text(
        "import signal, sys\n"
        "class Late:\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'hopforge.model.config.load':\n"
        "            exec('signal.raise_signal(signal.SIGTERM)')\n"
        "sys.meta_path.insert(0, Late())\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "hopforge", "check", "c.yml"], capture_output=True, text=True, check=False,
        preexec_fn=_defaults, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (143, WORDS[signal.SIGTERM])


def test_an_ignored_signal_stays_ignored() -> None:
    code = (
        "import os, signal; from hopforge import interrupts\n"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "with interrupts.raised():\n"
        "    os.kill(os.getpid(), signal.SIGHUP); print('here')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "here\n", "")


def test_the_second_signal_at_once_is_the_same_one() -> None:
    with pytest.raises(KeyboardInterrupt), interrupts.raised():
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            signal.raise_signal(signal.SIGTERM)
            assert interrupts.exit_status() == 143
    assert interrupts.received()


def test_a_signal_in_a_callback_is_not_lost(capsys: pytest.CaptureFixture[str]) -> None:
    class Late:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGTERM)

    late: list[Late] = [Late()]
    with pytest.raises(KeyboardInterrupt), interrupts.raised():
        late.clear()
        assert interrupts.received()  # what fails for the lost exception is its doing, too
        time.sleep(10)
    assert capsys.readouterr().err == ""


class HalfMade:
    """A signal comes before `pointer` is there, and the destructor asks for it, as those of llvmlite do."""

    def __init__(self) -> None:
        signal.raise_signal(signal.SIGTERM)
        self.pointer = 0

    def __del__(self) -> None:
        assert self.pointer == 0


def test_nothing_is_said_of_an_object_that_a_signal_left_half_made(capfd: pytest.CaptureFixture[str]) -> None:
    with interrupts.raised():
        with pytest.raises(KeyboardInterrupt):
            HalfMade()
        gc.collect()
    assert capfd.readouterr().err == ""
    code = (
        "import signal; from hopforge import interrupts; from tests.cli.test_interrupts import HalfMade\n"
        "kept = []\n"
        "try:\n"
        "    with interrupts.raised():\n"
        "        HalfMade()\n"
        "except KeyboardInterrupt as error:\n"
        "    interrupts.leave(interrupts.exit_status())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, preexec_fn=_defaults, timeout=60,
        cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (143, "", "")


def test_a_broken_destructor_is_told_where_no_signal_came(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def __del__(self) -> None:
            raise ValueError("nobody sent a signal")

    told: list[str] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: told.append(str(unraisable.exc_value)))
    with interrupts.raised():
        Broken()
        gc.collect()
    assert told == ["nobody sent a signal"]


def test_handlers_are_put_back() -> None:
    before = [signal.getsignal(number) for number in WORDS]
    with interrupts.raised():
        assert [signal.getsignal(number) for number in WORDS] != before
    assert [signal.getsignal(number) for number in WORDS] == before
