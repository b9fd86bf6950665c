"""Files of an earlier run do not stand beside those of this one; what is not ours stays."""

import json
import os
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from hopforge.model.config import parse_config
from hopforge.model.input_file import remember_input
from hopforge.model.output.destination import check_destination, replace_anything
from hopforge.model.output.results import ResultError, run_metadata, said_command, staged, write_metadata
from hopforge.model.output.run_files import json_text, kind_of_run, listed_files

CONFIG = parse_config("name: t\nseed: 7\ntopology: {kind: torus, radices: [3, 3]}\n")


def run(folder: Path, files: Sequence[str], command: str = "net") -> None:
    with staged(folder) as scratch:
        for name in files:
            (scratch / name).parent.mkdir(exist_ok=True)
            (scratch / name).write_text(command)
        write_metadata(scratch, run_metadata(CONFIG, ["hopforge", command, "t.yml"]))


def there(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def test_the_next_run_removes_what_it_does_not_write(tmp_path: Path) -> None:
    run(tmp_path, ["a.csv", "b.csv", "frames/0.png", "frames/1.png", "more/x.csv"])
    (tmp_path / "mine.csv").write_text("mine")
    (tmp_path / "frames" / "mine.png").write_text("mine")
    run(tmp_path, ["a.csv", "frames/0.png"])
    assert there(tmp_path) == ["a.csv", "frames", "frames/0.png", "frames/mine.png", "metadata.json", "mine.csv"]
    assert listed_files(json.loads((tmp_path / "metadata.json").read_text())) == {
        "a.csv", "frames/0.png", "metadata.json"
    }  # fmt: skip


def test_another_command_removes_nothing_and_lists_only_its_own(tmp_path: Path) -> None:
    run(tmp_path, ["a.csv"])
    run(tmp_path, ["b.csv"], "series")
    assert there(tmp_path) == ["a.csv", "b.csv", "metadata.json"]
    assert listed_files(json.loads((tmp_path / "metadata.json").read_text())) == {"b.csv", "metadata.json"}


@pytest.mark.parametrize(
    "metadata",
    [
        {"note": "mine"},
        {"kind": "net", "files": "channels.png"},
        {"files": ["channels.png"]},
        {"kind": "series", "files": ["channels.png"]},
        {"kind": "net", "files": ["../out.png", "link.png", "sub", "/channels.png", "no/../channels.png", "nul\0.png"]},
    ],
    ids=["a note", "no list", "no command", "another", "other places"],
)  # fmt: skip
def test_what_is_not_ours_stays(tmp_path: Path, metadata: dict[str, object]) -> None:
    folder = tmp_path / "f"
    (folder / "sub").mkdir(parents=True)
    for path in (tmp_path / "out.png", folder / "channels.png"):
        path.write_text("mine")
    (folder / "link.png").symlink_to(tmp_path / "out.png")
    (folder / "metadata.json").write_text(json.dumps(metadata))
    run(folder, ["a.csv"])
    assert (tmp_path / "out.png").exists()
    assert there(folder) == ["a.csv", "channels.png", "link.png", "metadata.json", "sub"]


def test_an_input_is_not_removed(tmp_path: Path) -> None:
    run(tmp_path, ["a.csv", "trace.txt"])
    remember_input(tmp_path / "trace.txt")
    run(tmp_path, ["a.csv"])
    assert there(tmp_path) == ["a.csv", "metadata.json", "trace.txt"]


def test_an_input_is_known_from_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "in.csv").write_text("a")
    monkeypatch.chdir(tmp_path / "here")
    remember_input(Path("in.csv"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ResultError, match="is an input"):
        check_destination(tmp_path / "here" / "in.csv", "text")


def test_what_is_no_character_is_written_as_its_number(tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9.yml")
    write_metadata(tmp_path, run_metadata(CONFIG, ["hopforge", "net", name]))
    assert json.loads((tmp_path / "metadata.json").read_text())["command"][2] == "caf\\udce9.yml"
    assert json.loads(json_text({"a": '\ud800"', "ü": "\\"})) == {"a": '\\ud800"', "ü": "\\"}


def test_the_kind_is_what_python_says() -> None:
    assert kind_of_run(run_metadata(CONFIG, ["hopforge", "bench", "net"])) == "bench net"
    with said_command(["hopforge.simulate(...)"], "net"):
        found = run_metadata(CONFIG, seed=3)
    assert (found["command"], found["kind"], found["seed"]) == (["hopforge.simulate(...)"], "net", 3)
    assert kind_of_run(run_metadata(CONFIG, ["my program"])) is None


def test_a_thread_does_not_name_the_expression_of_another(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"\x89PNG")
    inside, over, found = threading.Event(), threading.Event(), []

    def other() -> None:
        with said_command(["other"], "net"):
            replace_anything(True)
            inside.set()
            over.wait(5)

    thread = threading.Thread(target=other)
    thread.start()
    assert inside.wait(5)
    with said_command(["mine"], "net"):
        found = run_metadata(CONFIG)["command"]
    with pytest.raises(ResultError, match="holds a PNG picture"):
        check_destination(tmp_path / "a.png", "text")
    over.set()
    thread.join()
    assert found == ["mine"]
