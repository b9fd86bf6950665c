"""Computations of a program that take no time are told by `hopforge app` and `net`."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from hopforge import cli

TORUS = "topology: {kind: torus, radices: [2, 2]}"
PACKET = "router: {model: packet}\nrouting: {algorithm: ofr}\n"


def run(folder: Path, command: str, text: str, computing: str) -> str:
    trace = folder / "trace"
    trace.mkdir()
    for rank in range(4):
        there, back = (rank + 1) % 4, (rank - 1) % 4
        lines = ["init", f"send {there} 0 10 2", f"recv {back} 0 10 2", computing, "finalize"]
        (trace / f"{rank}.txt").write_text("".join(f"{rank} {line}\n" for line in lines if line))
    (folder / "mine.yml").write_text(f"name: mine\n{TORUS}\nworkload: {{kind: trace, file: trace}}\n{text}")
    done = CliRunner().invoke(cli.app, [command, str(folder / "mine.yml"), "-o", str(folder / "out")])
    assert done.exit_code == 0, done.output
    return " ".join(done.stdout.split())


@pytest.mark.parametrize(("command", "text", "key", "timed"), [
    ("app", "", "app.host_gflops", "app: {host_gflops: 1}\n"),
    ("app", "app: {engine: packet}\n", "app.host_gflops", "app: {engine: packet, host_gflops: 1}\n"),
    ("net", "traffic: {source: program}\n", "traffic.cycles_per_flop",
     "traffic: {source: program, cycles_per_flop: 0.01}\n"),
    ("net", "traffic: {source: program}\n" + PACKET, "traffic.cycles_per_flop",
     "traffic: {source: program, cycles_per_flop: 0.01}\n" + PACKET),
])  # fmt: skip
def test_computing_without_a_speed_is_told(tmp_path: Path, command: str, text: str, key: str, timed: str) -> None:
    said = f"computing takes no time without {key}; the program has 4,000 operations"
    for name, keys, computing, told in (
        ("without", text, "compute 1e3", True), ("timed", timed, "compute 1e3", False), ("nothing", text, "", False)
    ):  # fmt: skip
        folder = tmp_path / name
        folder.mkdir()
        assert (said in run(folder, command, keys, computing)) == told, name


@pytest.mark.parametrize(("keys", "computing", "told"), [
    ("", "compute 1e3", True), ("host_gflops: 1, ", "compute 1e3", False), ("", "", True)
])  # fmt: skip
def test_a_program_that_becomes_a_graph(tmp_path: Path, keys: str, computing: str, told: bool) -> None:
    said = "computing takes no time without app.host_gflops, if anything computes"
    assert (said in run(tmp_path, "app", f"app: {{{keys}engine: loggops}}\n", computing)) == told


@pytest.mark.parametrize("engine", ["flow", "packet", "loggops"])
def test_a_schedule_has_times_of_its_own(tmp_path: Path, engine: str) -> None:
    (tmp_path / "mine.goal").write_text("num_ranks 1\nrank 0 {\nl1: calc 100\n}\n")
    text = f"name: mine\n{TORUS}\nworkload: {{kind: trace, file: mine.goal}}\napp: {{engine: {engine}}}\n"
    (tmp_path / "mine.yml").write_text(text)
    done = CliRunner().invoke(cli.app, ["app", str(tmp_path / "mine.yml"), "-o", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert "a rank" in done.stdout and "takes no time" not in done.stdout
