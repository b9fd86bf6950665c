"""Each command that reads a configuration says which sections of it it does not use."""

import ast
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hopforge import cli, commands

FILE = (
    "name: f\ntopology: {kind: torus, radices: [3, 3]}\nrouter: {vcs: 2, buffer_flits: 2}\n"
    "routing: {algorithm: up_down}\nfailed: {links: [[0, 1]]}\n"
)


def calls(function: ast.FunctionDef) -> set[str]:
    found = [node.func for node in ast.walk(function) if isinstance(node, ast.Call)]
    return {each.id for each in found if isinstance(each, ast.Name)}


def test_what_reads_a_file_says_what_it_does_not_use() -> None:
    found = {}
    for path in Path(commands.__file__).parent.glob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and "read" in calls(node):
                found[f"{path.stem}.{node.name}"] = "say_unused" in calls(node)
    assert len(found) >= 20
    assert [name for name, says in found.items() if not says] == []


@pytest.mark.parametrize(("command", "words"), [
    pytest.param("mutate mine.yml --block router --count 1",
                 "hopforge mutate --block router mine.yml does not use failed\n", marks=pytest.mark.study),
    ("synth mine.yml --blocks router --block switch_allocator --recipe lut-fast",
     "hopforge synth --blocks router does not use failed\n"),
    ("synth mine.yml --blocks allocators --block arbiter4 --recipe lut-fast",
     "hopforge synth --blocks allocators measures a fixed table; it uses no section of the file\n"),
])  # fmt: skip
def test_links_that_failed_are_not_silently_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.yml").write_text(FILE)
    done = CliRunner().invoke(cli.app, command.split())
    assert done.exit_code == 0, done.output
    assert words in done.stderr


def test_a_router_that_is_measured_alone_has_no_adapters_and_registers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ports = "router: {vcs: 2, host_ports: axi_stream"
    Path("mine.yml").write_text(FILE.replace("router: {vcs: 2", ports) + "csr: {}\n")
    done = CliRunner().invoke(
        cli.app, ["synth", "mine.yml", "--blocks", "router", "--block", "crossbar", "--recipe", "lut-fast"]
    )
    assert done.exit_code == 0, done.output
    assert "hopforge synth --blocks router does not use failed, csr, router.host_ports\n" in done.stderr
