"""`hopforge import booksim`: what the command writes, and what it does not overwrite."""

import sys
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from hopforge.cli import app
from hopforge.model.output.destination import ResultError

sys.path.insert(0, str(Path(__file__).parent))
from booksim_cases import BUTTERFLY


def test_the_command_writes_what_net_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("case.cfg").write_text(f"{BUTTERFLY}routing_function = ugal; watch_out = -; latency_thres = 300.0;")
    runner = CliRunner()
    result = runner.invoke(app, ["import", "booksim", "case.cfg", "injection_rate=.2", "-o", "mine.yml"])
    assert result.exit_code == 0, result.output
    assert {path.name for path in tmp_path.iterdir()} == {"case.cfg", "mine.yml", "mine.anynet"}
    assert "watch_out (what BookSim prints or writes)" in " ".join(result.output.split())
    assert yaml.safe_load(Path("mine.yml").read_text())["topology"] == {"kind": "edge_list", "file": "mine.anynet"}
    result = runner.invoke(app, ["import", "booksim", "case.cfg"])
    assert result.exit_code == 0, result.output
    assert Path("build/case/import/booksim/case.yml").is_file()
    with pytest.raises(ResultError, match="name a YAML file"):
        runner.invoke(app, ["import", "booksim", "case.cfg", "-o", "/dev/stdout"], catch_exceptions=False)


def test_a_file_of_ones_own_is_not_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.cfg").write_text("topology = mesh; k = 3; n = 2; routing_function = dor;")
    own = "# mine\nname: mine\ntopology: {kind: mesh, radices: [4, 4]}\n"
    Path("mine.yml").write_text(own)
    done = CliRunner().invoke(app, ["import", "booksim", "x.cfg", "-o", "mine.yml"])
    assert isinstance(done.exception, ResultError)
    assert "mine.yml: holds YAML, not a translated configuration, and is not overwritten" in str(done.exception)
    assert Path("mine.yml").read_text() == own
    for words in (["mine.yml", "--force"], ["mine.yml"], ["other.yml"], ["other.yml"]):
        assert CliRunner().invoke(app, ["import", "booksim", "x.cfg", "-o", *words]).exit_code == 0
    assert "4, 4" not in Path("mine.yml").read_text()


@pytest.mark.parametrize("changed", ["case.yml", "case.anynet"])
def test_a_translated_file_that_was_changed_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("case.cfg").write_text(f"{BUTTERFLY}routing_function = ugal;")

    def translated(*words: str) -> str:
        done = CliRunner().invoke(app, ["import", "booksim", "case.cfg", *words, "-o", "case.yml"])
        assert done.exception is None or isinstance(done.exception, ResultError), done.output
        return str(done.exception or "")

    assert translated() == translated() == translated("vc_buf_size=9") == ""  # as written: replaced
    own = Path(changed).read_text() + ("# mine\n" if changed == "case.yml" else "\n")
    Path(changed).write_text(own)
    for words in ([], ["vc_buf_size=7"]):
        assert f"{changed}: is not as hopforge import wrote it, and is not overwritten" in translated(*words)
        assert Path(changed).read_text() == own
    assert translated("--force") == translated() == ""
    assert Path(changed).read_text() != own


def test_a_network_of_ones_own_beside_a_translated_file_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.cfg").write_text("topology = mesh; k = 3; n = 2; routing_function = dor;")
    Path("b.cfg").write_text(f"{BUTTERFLY}routing_function = ugal;")
    Path("x.anynet").write_text("router 0 node 0 router 1\nrouter 1 node 1\n")
    assert CliRunner().invoke(app, ["import", "booksim", "a.cfg", "-o", "x.yml"]).exit_code == 0
    done = CliRunner().invoke(app, ["import", "booksim", "b.cfg", "-o", "x.yml"])
    assert "x.anynet: is not as hopforge import wrote it" in str(done.exception)
    assert "radices" in Path("x.yml").read_text()
