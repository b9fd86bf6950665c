"""Computations of a program that take no time are told by every command that runs it."""

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
    said = f"computing takes no time without {key}; the program has 4000 operations"
    for name, keys, computing, told in (
        ("without", text, "compute 1e3", True), ("timed", timed, "compute 1e3", False), ("nothing", text, "", False)
    ):  # fmt: skip
        folder = tmp_path / name
        folder.mkdir()
        assert (said in run(folder, command, keys, computing)) == told, name
