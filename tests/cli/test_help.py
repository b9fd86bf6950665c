"""Help texts: every command begins with a verb, shows one example that can be typed, and names its folder."""

import re
import shlex
from pathlib import Path

import click
import pytest
import typer.main

from hopforge import cli
from hopforge.commands.terminal import output_folder

ROOT = Path(__file__).parents[2]


def commands(group: click.Group | None = None, name: str = "") -> dict[str, click.Command]:
    """Every command by its words, those of groups as ``gen lookup``."""
    found = {}
    for word, command in (group or typer.main.get_command(cli.app)).commands.items():  # type: ignore[attr-defined]
        if hasattr(command, "commands"):
            found |= commands(command, f"{name}{word} ")
        else:
            found[f"{name}{word}"] = command
    return found


COMMANDS = commands()
#: of these the folder of the results is told, but is not that of the scheme, or there is none
WITHOUT_FOLDER = {"doctor", "check", "explain", "init", "schema", "report", "view", "lint", "prove"}
#: take no YAML file, or need none
WITHOUT_FILE = {"compare", "demo", "reproduce"} | {name for name in COMMANDS if name.startswith("bench ")}


def test_all_commands_are_looked_at() -> None:
    assert {"net", "sweep", "gen q-table", "bench app", "reproduce", "demo"} <= set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_one_example_that_the_command_understands(name: str) -> None:
    command = COMMANDS[name]
    lines = [line for line in (command.help or "").splitlines() if line.startswith("hopforge ")]
    assert [line for line in lines if line.startswith(f"hopforge {name}")] == lines
    assert len(lines) == 1
    assert len(lines[0]) <= 78  # a terminal of 80 columns shows it in one line
    words = shlex.split(lines[0].split(" > ")[0])[1 + len(name.split()) :]
    with click.Context(command, resilient_parsing=True) as context:
        command.make_parser(context).parse_args(list(words))  # an unknown option is an error here
    files = [word for word in words if word.startswith("configs/")]
    assert all((ROOT / file).is_file() for file in files)
    others = {"doctor", "explain", "init", "jobs", "schema", "report", "view", "prove"}
    assert files or name in WITHOUT_FILE | others


@pytest.mark.parametrize("name", COMMANDS)
def test_help_begins_with_a_verb(name: str) -> None:
    first = (COMMANDS[name].help or "").split()[0]
    assert first in {
        "Check", "Compare", "Compute", "Draw", "Follow", "Gather", "List", "Measure", "Print", "Prove", "Put", "Replay",
        "Run", "Show", "Simulate", "Summarise", "Time", "Translate", "Write",
    }  # fmt: skip


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - WITHOUT_FOLDER))
def test_help_tells_the_folder_of_the_scheme(name: str) -> None:
    (output,) = (one for one in COMMANDS[name].params if "--output" in one.opts)
    folder = output_folder(None, name, None if name in WITHOUT_FILE else Path("some/NAME.yml"))
    told = re.search(r"default: ([\w/-]+)", str(output.help))  # type: ignore[attr-defined]
    assert told is not None
    assert told[1] in (str(folder), f"{folder}/PART", f"{folder}/NAME")
    assert output.default is None


def test_folders() -> None:
    assert output_folder(None, "net", Path("a/b.c.yml")) == Path("build/b.c/net")
    assert output_folder(None, "gen q-table", Path("x.yml")) == Path("build/x/gen/q-table")
    assert output_folder(None, "bench net") == Path("build/bench/net")
    assert output_folder(Path("mine"), "net", Path("x.yml")) == Path("mine")
