"""Two runs of a command give the same bits, but for times: those stand in tables of their own."""

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hopforge import cli

FILES = {
    "flit.yml": """\
name: flit
topology: {kind: mesh, radices: [3, 3]}
simulation: {loads: [0.1, 0.2], min_cycles: 1000, max_cycles: 1000, warmup_cycles: 200, series_bins: 10}
workload: {kind: uniform, packets_per_host: 200}
""",
    "packet.yml": """\
name: packet
topology: {kind: torus, radices: [4, 4]}
router: {model: packet}
routing: {algorithm: ofr}
packet: {messages: 3}
simulation: {loads: [0.1, 0.2]}
""",
    "app.yml": """\
name: app
topology: {kind: torus, radices: [3, 3]}
workload: {kind: collective, operation: alltoall, ranks: 8, bytes: 512}
app: {engine: packet}
simulation: {variants: {a: {}, b: {app.engine: flow, app.backend: embedded}}}
""",
    "program.yml": """\
name: program
topology: {kind: torus, radices: [3, 3]}
workload: {kind: collective, operation: alltoall, ranks: 8, bytes: 512}
traffic: {source: program}
""",
    "handle_tag.yml": """\
kind: mesh
k: [3, 3]
function: {handle: "d[i] != c[i]", tag: "(i, sign(d[i] - c[i]))", default: "(n, 0)"}
""",
    "routes.txt": "0.0.0.0/0 a\n10.0.0.0/8 b\n10.1.0.0/16 a\n",
}
COMMANDS = {
    "net": "net flit.yml --plots",
    "net_packet": "net packet.yml",
    "net_program": "net program.yml",
    "series": "series flit.yml",
    "sweep": "sweep flit.yml --workers 1",
    "sweep_packet": "sweep packet.yml --workers 1",
    "sweep_app": "sweep app.yml --workers 1",
    "trace": "trace flit.yml --cycles 500",
    "hits": "hits flit.yml",
    "app": "app app.yml",
    "workload": "workload app.yml",
    "bounds": "bounds flit.yml",
    "route": "route flit.yml",
    "jobs": "jobs --generate typed --count 40 --nodes 64 --placement random --interference --plots",
    "rules": "rules routes.txt --size 4 --lookups 300 --updates 9",
    "wavelengths": "wavelengths flit.yml",
    "reduction": "reduction handle_tag.yml",
    "gen": "gen lookup flit.yml",
}
#: what `make test` leaves out: they take longest, and the others write tables by the same functions
LONG = {"sweep_packet", "sweep_app", "trace", "wavelengths", "gen"}
#: of commands that tell how long they took
TIMED = {"net", "net_packet", "net_program", "sweep", "sweep_packet", "sweep_app", "app"}
PROGRAM = """
import json, sys
from hopforge.cli import main
for words in json.loads(sys.argv[1]):
    sys.argv = ["hopforge", *words]
    try:
        main()
    except SystemExit as ended:
        assert ended.code == 0, words
"""


def bits(folder: Path) -> dict[str, bytes]:
    """Return every file but those of times, and the words of the command."""
    found = {}
    for path in folder.rglob("*"):
        name = path.relative_to(folder)
        if not path.is_file() or "times" in {path.stem, *name.parts}:
            continue
        found[str(name)] = path.read_bytes()
        if path.name == "metadata.json":
            found[str(name)] = json.dumps({**json.loads(found[str(name)]), "command": None}).encode()
    return found


@pytest.mark.parametrize("names", [
    pytest.param(COMMANDS.keys() - LONG, id="most"), pytest.param(COMMANDS.keys(), id="all", marks=pytest.mark.study),
])  # fmt: skip
def test_two_runs_of_every_command_give_the_same_bits(
    names: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    words = [[*line.split(), "-o", f"{{}}/{name}"] for name, line in COMMANDS.items() if name in names]
    for line in words:
        monkeypatch.setattr(sys, "argv", ["hopforge", *(word.format("one") for word in line)])
        with contextlib.suppress(SystemExit):
            cli.main()
    another = [[word.format("two") for word in line] for line in words]
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(another)], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONHASHSEED": "7"},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    for name in names:
        one, two = bits(tmp_path / "one" / name), bits(tmp_path / "two" / name)
        assert one and one.keys() == two.keys(), name
        assert [file for file in one if one[file] != two[file]] == [], name
        for file, text in one.items():
            if file.endswith((".csv", ".json")):
                assert file == "metadata.json" or b"cpu_seconds" not in text, (name, file)
        assert (name in TIMED) == (tmp_path / "one" / name / "times.csv").exists(), name
    assert set(COMMANDS) >= TIMED
