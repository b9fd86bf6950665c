"""Processes that do jobs: killed ones are noticed, no one hangs, none is left. Jobs are expressions for `eval`."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hopforge.sim.run.worker_processes import done_by_processes

KILL = "__import__('os').kill(__import__('os').getpid(), 9)"
LEAVE = "__import__('os')._exit(3)"
#: killed, but not when it is done again
ONCE = "__import__('os').path.exists({0!r}) or (open({0!r}, 'w').close(), " + KILL + ")"


@pytest.fixture
def told() -> list[tuple[int, str, bool]]:
    return []


def run(jobs: list[str], told: list[tuple[int, str, bool]], count: int = 2) -> dict[int, object]:
    before = multiprocessing.active_children()
    found = dict(done_by_processes(eval, jobs, count, lambda *death: told.append(death)))
    assert multiprocessing.active_children() == before
    return found


@pytest.mark.timeout(60)  # it waited for ever
def test_a_job_that_kills_its_process_is_tried_twice_and_the_others_are_done(told: list[tuple[int, str, bool]]) -> None:
    assert run([KILL, "1 + 1", "2 + 2", LEAVE, "3 + 3"], told) == {1: 2, 2: 4, 4: 6}
    assert sorted(told) == [
        (0, "killed by SIGKILL", False), (0, "killed by SIGKILL", True),
        (3, "ended with exit status 3", False), (3, "ended with exit status 3", True),
    ]  # fmt: skip


@pytest.mark.timeout(60)
def test_a_job_whose_process_was_killed_is_done_by_another(tmp_path: Path, told: list[tuple[int, str, bool]]) -> None:
    assert run([ONCE.format(str(tmp_path / "x")), "5"], told) == {0: True, 1: 5}
    assert told == [(0, "killed by SIGKILL", True)]


#: SIGTERM comes while code runs whose exceptions Python throws away; with no second one the job would take a minute
SWALLOWED = {
    "destructor": "type('A', (), {'__del__': lambda self: end()})()",
    "weakref": "one = type('A', (), {})(); there = ref(one, lambda _: end()); del one",
}
IN_A_CALLBACK = """exec('''
import os, signal, time
from weakref import ref
def end():
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0)
{}
time.sleep(60)
''', {{}})"""


@pytest.mark.parametrize("place", SWALLOWED)
@pytest.mark.timeout(40)
def test_a_process_leaves_when_python_throws_away_what_sigterm_raised(
    place: str, told: list[tuple[int, str, bool]], capfd: pytest.CaptureFixture[str]
) -> None:
    assert run([IN_A_CALLBACK.format(SWALLOWED[place])], told) == {}
    assert told == [(0, "ended with exit status 0", True), (0, "ended with exit status 0", False)]
    assert capfd.readouterr().err == ""


#: SIGTERM comes before `pointer` is there, and the destructor asks for it, as those of llvmlite do
HALF_MADE = """exec('''
import os, signal
class A:
    def __init__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        self.pointer = 0
    def __del__(self):
        self.pointer
A()
''', {})"""


@pytest.mark.timeout(40)
def test_a_process_says_nothing_of_an_object_that_sigterm_left_half_made(
    told: list[tuple[int, str, bool]], capfd: pytest.CaptureFixture[str]
) -> None:
    assert run([HALF_MADE], told) == {}
    assert capfd.readouterr().err == ""


def test_what_else_is_raised_in_a_callback_is_told(
    told: list[tuple[int, str, bool]], capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["type('A', (), {'__del__': lambda self: 1 / 0})() and 5", "6"], told) == {0: 5, 1: 6}
    assert "ZeroDivisionError" in capfd.readouterr().err


@pytest.mark.parametrize("job", ["1 / 0", "[].pop()", "exec('class A(Exception): pass\\nraise A(1)')"])
def test_what_a_job_raises_is_raised_here(job: str, told: list[tuple[int, str, bool]]) -> None:
    with pytest.raises((ZeroDivisionError, IndexError, RuntimeError), match=r"division by zero|pop from empty|^A: 1$"):
        run([job, "1"], told)
    assert told == [] and multiprocessing.active_children() == []


def test_a_large_answer_and_many_jobs(told: list[tuple[int, str, bool]]) -> None:
    found = run(["bytes(3_000_000)", *(f"{k} ** 2" for k in range(1, 40))], told)
    assert found == {0: bytes(3_000_000), **{k: k * k for k in range(1, 40)}}


def test_processes_end_when_the_caller_stops(told: list[tuple[int, str, bool]]) -> None:
    begun = time.monotonic()
    jobs = ["1", *["__import__('time').sleep(60)"] * 3]
    done = done_by_processes(eval, jobs, 2, lambda *death: told.append(death))
    assert next(done) == (0, 1)
    done.close()
    assert multiprocessing.active_children() == []
    assert time.monotonic() - begun < 20


def test_an_interrupt_does_not_reach_the_processes(told: list[tuple[int, str, bool]]) -> None:
    """They ignore Ctrl-C and the end of the terminal from their begin; here both work as before."""
    of = "[str(__import__('signal').getsignal(getattr(__import__('signal'), name))) for name in ('SIGINT', 'SIGHUP')]"
    held = "len(__import__('signal').pthread_sigmask(__import__('signal').SIG_BLOCK, []))"
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGHUP)]
    found = run([of, held], told)
    ignored = "Handlers.SIG_IGN"
    assert found in ({0: [ignored, ignored], 1: 0}, {0: ["1", "1"], 1: 0})  # the words of Python 3.11 and of later
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGHUP)] == before
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == set()


def living(marker: str) -> list[str]:
    found = []
    for line in Path("/proc").glob("[0-9]*/environ"):
        try:
            if marker.encode() in line.read_bytes():
                found.append(line.parent.name)
        except OSError:
            continue
    return found


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="asks /proc")
def test_processes_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    marker = f"HOPFORGE_TEST={tmp_path.name}-{os.getpid()}"
    code = (
        "from hopforge.sim.run.worker_processes import done_by_processes\n"
        "if __name__ == '__main__':\n"
        "    jobs = ['1'] + [\"__import__('time').sleep(60)\"] * 4\n"
        "    for _ in done_by_processes(eval, jobs, 3, print): print('one', flush=True)\n"
    )
    (tmp_path / "parent.py").write_text(code)
    name, _, value = marker.partition("=")
    with subprocess.Popen(
        [sys.executable, str(tmp_path / "parent.py")], stdout=subprocess.PIPE, env={**os.environ, name: value}
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"one\n"
        assert len(living(marker)) >= 3
        parent.kill()
    last = time.monotonic() + 20
    while living(marker) and time.monotonic() < last:
        time.sleep(0.1)
    assert living(marker) == []
