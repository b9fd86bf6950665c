"""What a command compiles is kept on disk: the same command compiles nothing the next time."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

NETWORKS = {
    "dragonfly": "{kind: dragonfly, p: 2, a: 4, h: 2}", "tree": "{kind: fat_tree, k: 2, n: 3}",
    "torus": "{kind: torus, radices: [4, 4]}", "graph": "{kind: slim_fly, q: 5}",
}  # fmt: skip
MORE = (
    "router: {vcs: 4}\nworkload: {kind: uniform, packets_per_host: 20}\n"
    "simulation: {loads: [0.1], warmup_cycles: 100, min_cycles: 1000, max_cycles: 1000}\n"
)
#: networks whose routing is a relation around another one
AROUND = {
    "members": "topology: {kind: mesh, radices: [2, 2]}\nrouter: {route_computation: lookup}\n"
    "lookup: {lag: {max_members: 2, members: 2}}\n",
    "halves": "topology: {kind: mesh, radices: [2, 2]}\nrouter: {vcs: 4}\n"
    "traffic: {reply: {flits: 2, delay_cycles: 5, vcs: own}}\n",
    "classes": "topology: {kind: mesh, radices: [2, 2]}\nrouter: {vcs: 4, qos: strict}\ntraffic: {classes: "
    "[{name: a, load: 0.02, vcs: 1, priority: 1}, {name: b, share: 1, vcs: 3, priority: 0}]}\n",
    "links": "topology: {kind: edge_list, file: edges.txt}\nrouter: {vcs: 4}\n"
    "routing: {algorithm: up_down, links: hash}\n",
}
COMMANDS = [
    *(["hits", f"{name}.yml"] for name in NETWORKS), ["net", "torus.yml"], ["route", "torus.yml"],
    ["bounds", "dragonfly.yml"], *(["net", f"{name}.yml"] for name in AROUND),
]  # fmt: skip
#: runs commands, then prints the functions that numba compiled for one of them, not as a part of another function
PROGRAM = """
import json, sys
from numba.core import event

class Listener(event.Listener):
    depth, compiled = 0, []
    def on_start(self, one):
        if self.depth == 0:
            self.compiled.append(one.data["dispatcher"].py_func.__qualname__)
        self.depth += 1
    def on_end(self, one):
        self.depth -= 1

event.register("numba:compile", Listener())
from hopforge.cli import main
for words in json.loads(sys.argv[1]):
    sys.argv = ["hopforge", *words]
    try:
        main()
    except SystemExit as ended:
        assert not ended.code, words
print(json.dumps(Listener.compiled))
"""


def compiled(folder: Path, commands: list[list[str]]) -> list[str]:
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(commands)], cwd=folder, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr[-2000:]
    found = json.loads(run.stdout.splitlines()[-1])
    assert isinstance(found, list)
    return found


@pytest.mark.parametrize("commands", [
    [one for one in COMMANDS if one in (["hits", "dragonfly.yml"], ["net", "halves.yml"])],
    pytest.param(COMMANDS, marks=pytest.mark.study),
], ids=["two", "all"])  # fmt: skip
def test_commands_compile_nothing_the_second_time(tmp_path: Path, commands: list[list[str]]) -> None:
    """Ports of the groups of a dragonfly, and relations around others, were compiled anew by every command."""
    for name, topology in NETWORKS.items():
        (tmp_path / f"{name}.yml").write_text(f"name: {name}\ntopology: {topology}\n{MORE}")
    for name, sections in AROUND.items():
        (tmp_path / f"{name}.yml").write_text(f"name: {name}\n{sections}simulation: {{max_cycles: 1000}}\n")
    (tmp_path / "edges.txt").write_text("0 1\n0 1\n1 2\n")
    compiled(tmp_path, commands)
    assert len(commands) > 1 and compiled(tmp_path, commands) == []
