"""The command line as a user meets it: help, exit status, and one line for whatever goes wrong."""

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hopforge import __version__, cli
from hopforge.commands.terminal import complain, show_rows, show_table
from hopforge.model.errors import UserError
from hopforge.sim.start import doctor

GOOD = "name: demo\ntopology: {kind: torus, radices: [4, 4, 4]}\n"
EDGES = "name: x\ntopology: {{kind: edge_list, file: {}}}\n"
Done = subprocess.CompletedProcess[str]
OWN = "hopforge: error in hopforge itself: ZeroDivisionError: by 0; please report it (--debug shows where)\n"


def hopforge(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the installed command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "hopforge", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "COLUMNS": "120", "HOPFORGE_TRACEBACK": "", **environment},
    )


def run_main(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int | str | None:
    monkeypatch.setattr(sys, "argv", ["hopforge", *arguments])
    monkeypatch.delenv("HOPFORGE_TRACEBACK", raising=False)
    with pytest.raises(SystemExit) as caught:
        cli.main()
    return caught.value.code


@pytest.fixture
def within(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """Run the command in this process: a new one loads everything again, for one line of text."""

    def run(*arguments: str) -> Done:
        status = run_main(monkeypatch, *arguments)
        told = capsys.readouterr()
        return Done(list(arguments), int(status or 0), told.out, told.err)

    return run


def test_version() -> None:
    run = hopforge("--version")
    assert (run.returncode, run.stdout, run.stderr) == (0, f"hopforge {__version__}\n", "")


def test_help_names_every_command_and_each_has_its_own() -> None:
    run = hopforge("--help")
    assert run.returncode == 0
    names = [command.name or command.callback.__name__ for command in cli.app.registered_commands if command.callback]
    names += [group.name for group in cli.app.registered_groups if group.name]
    assert {"doctor", "check", "schema", "demo"} <= set(names)
    for name in names:
        assert f" {name} " in run.stdout
        inner = CliRunner().invoke(cli.app, [name, "--help"])
        assert inner.exit_code == 0
        assert "Usage:" in inner.output


def test_no_command_shows_help() -> None:
    assert "Start here" in hopforge().stdout


def test_unknown_command_and_option(within: Callable[..., Done]) -> None:
    for arguments in (["chek"], ["check", "--nonsense"], ["check"]):
        run = within(*arguments)
        assert run.returncode == 2
        assert run.stderr.startswith("hopforge: ")
        assert run.stderr.endswith("--help)\n")
        assert run.stderr.count("\n") == 1


def test_doctor() -> None:
    run = hopforge("doctor")
    assert run.returncode == 0
    for name in ("iverilog", "verilator", "cocotb", "pyosys", "sta", "dask", "smpirun", "chromium", "liberty"):
        assert name in run.stdout


def test_doctor_says_how_to_get_what_is_missing(tmp_path: Path) -> None:
    run = hopforge("doctor", PATH=str(tmp_path))
    assert run.returncode == 0
    assert "iverilog: apt-get install iverilog" in run.stdout
    assert "sta: apt-get install opensta" in run.stdout


def test_doctor_names_the_requirement_of_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_package_version", lambda name: None)
    findings = {finding.name: finding for finding in doctor.survey()}
    assert findings["cocotb"].found is None
    assert findings["cocotb"].remedy == "pip install 'cocotb<3,>=2.1'"
    assert findings["dask"].remedy == "pip install 'dask[distributed]>=2025.1'"


def test_doctor_survives_a_tool_that_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "iverilog"
    broken.write_text("no program")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    findings = {finding.name: finding for finding in doctor.survey()}
    assert findings["iverilog"].found == f"{broken} (does not start)"


def test_check(tmp_path: Path) -> None:
    path = tmp_path / "x.yml"
    path.write_text(GOOD)
    run = hopforge("check", str(path))
    assert run.returncode == 0
    assert "4x4x4 torus: 64 routers of 7 ports, 64 hosts" in run.stdout
    assert "2048 lines, 4-way set-associative (512 sets), lru, 20.0 KiB" in run.stdout


def test_quick_check_prepares_no_network(tmp_path: Path, within: Callable[..., Done]) -> None:
    path = tmp_path / "x.yml"
    path.write_text(EDGES.format("none.txt"))
    assert within("check", str(path)).returncode == 2
    run = hopforge("check", "--quick", str(path))
    assert (run.returncode, run.stderr) == (0, "")
    assert "edge_list, not prepared: only keys and limits are checked" in run.stdout
    assert "2048 lines, 4-way set-associative (512 sets), lru, 20.0 KiB" in run.stdout
    path.write_text(GOOD + "lookup: {cache: {ways: 3}}\n")
    whole, quick = within("check", str(path)), within("check", "--quick", str(path))
    assert (quick.returncode, quick.stdout, quick.stderr) == (2, "", whole.stderr)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (GOOD + "lookup: {cache: {ways: 3}}\n", ["x.yml:3: lookup.cache.ways: must divide entries=2048, not 3"]),
        ("nmae: x\nname: x\n", ["x.yml:1: nmae: unknown key; did you mean 'name'?", "x.yml:1: topology: missing"]),
        ("", ["x.yml:1: the file is empty"]),
        (EDGES.format("none.txt"), ["none.txt: No such file or directory"]),
        (EDGES.format("split.txt"), ["the graph is disconnected"]),
        (EDGES.format("bad.txt"), ["bad.txt:2: expected two router numbers, not '1 x'"]),
        (GOOD.replace("4, 4, 4", "256, 256, 256") + "address: {chunk_bits: 8}\n", ["16777216 routers are more"]),
    ],
)  # fmt: skip
def test_bad_configuration_is_one_line_for_each_problem_and_status_2(
    tmp_path: Path, within: Callable[..., Done], text: str, expected: list[str]
) -> None:
    path = tmp_path / "x.yml"
    path.write_text(text)
    (tmp_path / "split.txt").write_text("0 1\n2 3\n")
    (tmp_path / "bad.txt").write_text("0 1\n1 x\n")
    run = within("check", str(path))
    assert run.returncode == 2
    assert run.stdout == ""
    lines = run.stderr.splitlines()
    assert len(lines) == len(expected)
    for line, part in zip(lines, expected, strict=True):
        assert line.startswith("hopforge: ")
        assert part in line


def test_missing_file_and_directory(tmp_path: Path, within: Callable[..., Done]) -> None:
    for path, reason in ((tmp_path / "none.yml", "No such file or directory"), (tmp_path, "Is a directory")):
        run = (hopforge if path == tmp_path else within)("check", str(path))
        assert run.returncode == 2
        assert run.stderr == f"hopforge: {path}: cannot read the configuration: {reason}\n"


def test_too_little_memory_is_one_line_that_says_how_much_there_was(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise MemoryError

    monkeypatch.setattr(doctor, "survey", fail)
    assert run_main(monkeypatch, "doctor") == 2
    wanted = r"hopforge: not enough memory(: there were [\d.e+]+ GiB for this process)?\n"
    assert re.fullmatch(wanted, capsys.readouterr().err)


@pytest.mark.parametrize(
    ("error", "status", "told"),
    [
        (UserError("first\nsecond"), 2, "hopforge: first\nhopforge: second\n"),
        (OSError(28, "No space left on device", "build/x"), 2, "hopforge: build/x: No space left on device\n"),
        (PermissionError(13, "Permission denied"), 2, "hopforge: Permission denied\n"),
        (KeyboardInterrupt(), 130, "hopforge: interrupted\n"),
        (ValueError("SchemaError:\n  KeyboardInterrupt: "), 130, "hopforge: interrupted\n"),
        (ZeroDivisionError("by 0"), 1, OWN),
    ],
)  # fmt: skip
def test_every_error_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: BaseException, status: int, told: str
) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setattr(doctor, "survey", fail)
    assert run_main(monkeypatch, "doctor") == status
    output = capsys.readouterr()
    assert output.err == told
    assert output.out == ""


def test_traceback_only_when_asked_for(tmp_path: Path) -> None:
    path = str(tmp_path / "none.yml")
    assert "Traceback" not in hopforge("check", path).stderr
    assert "Traceback" in hopforge("--debug", "check", path).stderr
    assert "Traceback" in hopforge("check", path, HOPFORGE_TRACEBACK="1").stderr


def test_interrupt_of_a_running_command() -> None:
    # a background job inherits that the signal is ignored, and these tests may be part of one
    restore = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    slow = "import time; from hopforge.sim.start import doctor as d; d.survey = lambda: time.sleep(60 + bool(print()))"
    code = f"{restore}; {slow}; from hopforge.cli import main; main()"
    with subprocess.Popen(
        [sys.executable, "-u", "-c", code, "doctor"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "\n"  # it runs
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=30)
        finally:
            process.kill()
    assert (process.returncode, out, err) == (130, "", "hopforge: interrupted\n")


def test_closed_output_is_no_error() -> None:
    run = subprocess.run(
        f"set -o pipefail; {sys.executable} -m hopforge schema | head -1", shell=True, executable="/bin/bash",
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert run.stdout == "{\n"
    assert "Traceback" not in run.stderr


def test_help_is_fast() -> None:
    """Commands import what they need: help does not load numpy."""
    code = "import sys, hopforge.cli; sys.exit('numpy' in sys.modules or 'amaranth' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0


def test_long_messages_are_cut(capsys: pytest.CaptureFixture[str]) -> None:
    complain("\n".join(f"x.yml:{line}: key{line}: unknown key" for line in range(1, 100)))
    lines = capsys.readouterr().err.splitlines()
    assert (len(lines), lines[-2:]) == (
        21, ["hopforge: x.yml:20: key20: unknown key", "hopforge: and 79 more"],
    )  # fmt: skip
    complain(f"x.yml:1: {'a' * 100_000}b: unknown key")
    line = capsys.readouterr().err
    assert line.startswith("hopforge: x.yml:1: aaaa")
    assert line.endswith("aaab: unknown key\n")
    assert "…[99762 more]…" in line
    assert len(line) < 400
    complain("word " * 10_000)
    assert len(capsys.readouterr().err) < 2100
    complain("x: expected a rank, not '\x1b[2J\r\x85'")
    assert capsys.readouterr().err == "hopforge: x: expected a rank, not '\\x1b[2J\\r\\x85'\n"


def test_without_a_home(tmp_path: Path) -> None:
    """Neither a home nor its caches: nothing is said about them beyond one line on kernels, and commands work."""
    (tmp_path / "x.yml").write_text("name: x\ntopology: {kind: mesh, radices: [2, 2]}\n")
    nowhere = {name: "/proc/none" for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")}
    run = hopforge("topology", str(tmp_path / "x.yml"), "-o", str(tmp_path / "x.png"), **nowhere)
    assert run.returncode == 0
    assert run.stderr.count("\n") <= 1
    assert "atplotlib" not in run.stderr
    assert (tmp_path / "x.png").exists()


def test_an_output_that_cannot_be_written_is_one_line(tmp_path: Path, within: Callable[..., Done]) -> None:
    (tmp_path / "x.yml").write_text("name: x\ntopology: {kind: mesh, radices: [2, 2]}\nworkload: {kind: uniform}\n")
    for command in (("hits", "-o", "/proc/none/x"), ("topology", "--export", "edges", "-o", "/proc/none/x")):
        run = within(command[0], str(tmp_path / "x.yml"), *command[1:])
        assert (run.returncode, run.stdout) == (2, "")
        assert run.stderr.startswith("hopforge: /proc/none")
        assert run.stderr.count("\n") == 1


def test_a_table_in_a_file_is_never_cut(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A number with its last digits cut is another number: a row is one line, however narrow the terminal was."""
    monkeypatch.setenv("COLUMNS", "40")
    rows = [["load", *(f"class {name} accepted" for name in "abcdef")], ["0.1", *(f"0.123456{k}" for k in range(6))]]
    show_table(rows)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert lines[1].split() == rows[1]
    assert "…" not in lines[0]


def test_a_table_on_a_narrow_terminal_keeps_every_digit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes the output for a terminal
    show_table([["load", *"abcdef"], ["0.1", *(f"0.123456{k}" for k in range(6))]])
    told = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    assert "…" not in told
    assert sum(character.isdigit() for character in told) == 2 + 6 * 8


def test_no_path_in_a_row_is_cut(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """What is longer than the terminal goes on in the next line: a path with … in it opens nothing."""
    monkeypatch.setenv("COLUMNS", "80")
    path = "/a/folder/" + "of/results/" * 12 + "demo_lookup.fst"
    show_rows([("waves", path), ("mismatches", "0")])
    told = capsys.readouterr().out
    assert path in "".join(line.removeprefix("waves").strip() for line in told.splitlines())
    assert "…" not in told


@pytest.mark.parametrize(("words", "said"), [
    (["gen", "rule-cache", "configs/rule_cache.yml", "-o", "FOLDER"], b"writing Verilog of"),
    pytest.param(["lint", "configs/rule_cache.yml", "--what", "rule_cache"], b"looking at", marks=pytest.mark.study),
])  # fmt: skip
def test_a_terminal_shows_what_goes_on_while_it_takes_long(tmp_path: Path, words: list[str], said: bytes) -> None:
    screen, terminal = os.openpty()
    words = [str(tmp_path / "out") if word == "FOLDER" else word for word in words]
    command, environment = [sys.executable, "-m", "hopforge", *words], os.environ | {"TERM": "xterm"}
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=terminal, env=environment) as process:
        os.close(terminal)
        shown = b""
        with contextlib.suppress(OSError):  # at the end of the process
            while part := os.read(screen, 1024):
                shown += part
    os.close(screen)
    assert process.returncode == 0
    assert said in shown
