"""A command imports what it uses: libraries that take a tenth of a second and more stay out of the others."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

#: numba itself imports the top of scipy
SLOW = ["matplotlib", "networkx", "pandas", "plotly", "scipy.linalg", "scipy.sparse", "scipy.special", "scipy.stats"]
CONFIG = """\
name: t
topology: {kind: mesh, radices: [3, 2]}
simulation: {min_cycles: 1000, max_cycles: 1000}
"""


def run(code: str, *arguments: str) -> str:
    """Return what `code` prints in a process of its own."""
    words = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False, env=os.environ)
    assert done.returncode == 0, done.stderr
    return done.stdout


def imported(code: str, *arguments: str) -> list[str]:
    """Return those of `SLOW` that `code` imports."""
    last = f"\nimport json, sys\nprint(json.dumps([name for name in {SLOW} if name in sys.modules]))"
    found: list[str] = json.loads(run(code + last, *arguments).splitlines()[-1])
    return found


COMMAND = "import sys\nfrom hopforge.cli import app\napp(sys.argv[1:], standalone_mode=False)"

#: as typed: results note the command, whose next run removes what this one leaves
MAIN = "import sys\nfrom hopforge.cli import main\nsys.argv[0] = 'hopforge'\nmain()"


def test_the_list_is_of_modules_that_are_seen() -> None:
    assert imported("\n".join(f"import {name}" for name in SLOW)) == SLOW


def test_the_simulator_needs_none_of_them() -> None:
    assert imported("import hopforge.sim.run.simulation, hopforge.sim.run.measurement") == []


def test_a_configuration_needs_none_of_them_and_no_simulator() -> None:
    shipped = Path(__file__).parents[3] / "configs" / "demo.yml"
    code = "import sys\nfrom hopforge.model.config import load_config\nload_config(sys.argv[1])\n"
    assert imported(code, str(shipped)) == []
    assert not {"numba", "hopforge.model.network"} & set(run(code + "print(*sys.modules)", str(shipped)).split())


def test_a_quick_check_needs_no_compiler() -> None:
    shipped = Path(__file__).parents[3] / "configs" / "demo.yml"
    modules = run(f"{COMMAND}\nprint(*sys.modules)", "check", "--quick", str(shipped)).split()
    assert "hopforge.sim.start.key_summary" in modules
    assert "numba" not in modules


@pytest.mark.parametrize("words", [["check"], ["check", "--quick"], ["net", "--load", "0.1"]], ids=" ".join)
def test_commands_need_none_of_them(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "c.yml").write_text(CONFIG)
    output = ["-o", str(tmp_path / "out")] if words[0] == "net" else []
    assert imported(COMMAND, words[0], str(tmp_path / "c.yml"), *words[1:], *output) == []


@pytest.mark.parametrize("name", ["demo", "app_jobs"])
def test_a_check_of_engines_and_programs_needs_none_of_them(name: str) -> None:
    assert imported(COMMAND, "check", str(Path(__file__).parents[3] / "configs" / f"{name}.yml")) == []


def test_plots_are_drawn_on_demand(tmp_path: Path) -> None:
    (tmp_path / "c.yml").write_text(CONFIG)
    words = ["net", str(tmp_path / "c.yml"), "--load", "0.1"]
    run(MAIN, *words, "-o", str(tmp_path / "plots"), "--plots")
    names = {path.name for path in (tmp_path / "plots").iterdir()}
    drawn = (tmp_path / "plots/channels.csv").read_bytes()
    stems = ("measurement", "channels", "buffers", "times")
    tables = {f"{stem}.{ending}" for stem in stems for ending in ("csv", "parquet")}
    assert names == {*tables, "metadata.json", "channels.png"}
    run(MAIN, *words, "-o", str(tmp_path / "plots"))  # the old pictures would stand beside the new tables
    assert {path.name for path in (tmp_path / "plots").iterdir()} == {*tables, "metadata.json"}
    assert (tmp_path / "plots/channels.csv").read_bytes() == drawn
