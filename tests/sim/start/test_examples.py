"""`hopforge init examples`: the folder that guides and help name, where only the wheel is."""

import errno
import shlex
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

import hopforge as hf
from hopforge.cli import app
from hopforge.model.config import load_config

REPOSITORY = Path(__file__).parents[3]


def test_what_the_pages_name_can_be_used_after_one_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    hint = "'hopforge init examples' writes the folder configs"
    with pytest.raises(hf.ConfigError, match=rf"configs/demo.yml: cannot read .*: No such file or directory; {hint}$"):
        load_config(Path("configs/demo.yml"))
    run = CliRunner().invoke(app, ["init", "examples"], catch_exceptions=False)
    assert run.exit_code == 0 and run.stdout.endswith(" files to configs; next: hopforge net configs/net_anynet.yml\n")
    shipped = {path.relative_to(REPOSITORY) for path in (REPOSITORY / "configs").rglob("*") if path.is_file()}
    shipped = {path for path in shipped if "__pycache__" not in path.parts}
    assert len(shipped) > 100
    assert {path.relative_to(tmp_path) for path in Path.cwd().rglob("*") if path.is_file()} == shipped
    assert all((REPOSITORY / path).read_bytes() == path.read_bytes() for path in shipped)
    assert load_config(Path("configs/demo.yml")).name == "demo"
    with pytest.raises(hf.ConfigError, match=r"No such file or directory$"):  # the folder is there, the name is wrong
        load_config(Path("configs/dem.yml"))


def test_a_folder_that_is_there_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("configs").symlink_to("nowhere")
    run = CliRunner().invoke(app, ["init", "examples"])
    assert run.exit_code != 0 and isinstance(run.exception, (hf.UserError, SystemExit))
    assert list(tmp_path.iterdir()) == [tmp_path / "configs"] and not (tmp_path / "nowhere").exists()
    other = CliRunner().invoke(app, ["init", "examples", "--output", "new/mine"], catch_exceptions=False)
    assert other.exit_code == 0 and (tmp_path / "new" / "mine" / "demo.yml").is_file()
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["mine"]


@pytest.mark.parametrize(
    ("kind", "place", "file"),
    [("examples", "my own", "my own/net_anynet.yml"), ("torus", "my torus.yml", "my torus.yml")],
)
def test_the_next_command_can_be_pasted(
    kind: str, place: str, file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = CliRunner().invoke(app, ["init", kind, "-o", place], catch_exceptions=False)
    assert shlex.split(run.stdout.partition("; next: ")[2]) == ["hopforge", "net", file]
    assert Path(file).is_file()


def test_examples_read_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = CliRunner().invoke(app, ["init", "examples", "--file", "net.txt"])
    assert run.exit_code != 0 and str(run.exception) == "--file: examples reads no file"
    assert not list(tmp_path.iterdir())


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("mine")
    run = CliRunner().invoke(app, ["init", "examples", "-o", "file/configs"])
    assert isinstance(run.exception, hf.UserError), run.output
    assert str(run.exception).startswith("file/configs: cannot be written: ")

    def full(source: str, target: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", target)

    monkeypatch.setattr(shutil, "copyfile", full)
    run = CliRunner().invoke(app, ["init", "examples"])
    assert isinstance(run.exception, hf.UserError), run.output
    assert str(run.exception).startswith("configs: cannot be written: ")
    assert "No space left on device" in str(run.exception)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_the_word_is_suggested() -> None:
    run = CliRunner().invoke(app, ["init", "example"])
    assert str(run.exception) == "KIND: no network 'example'; did you mean 'examples'?"
