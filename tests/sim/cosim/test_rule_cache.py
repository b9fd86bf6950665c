"""`hopforge cosim --part rule_cache`, `hopforge gen rule-cache`."""

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hopforge.cli import app
from hopforge.commands.configuration import say_missing
from hopforge.model.config import load_config

FILE = """\
name: small
topology: {kind: mesh, radices: [2, 2]}
rule_cache: {entries: 2, rows: 4, address_bits: 5, output_bits: 3, id_bits: 3}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "small.yml"
    path.write_text(FILE)
    return path


@pytest.mark.skipif(shutil.which("iverilog") is None, reason="needs Icarus")
def test_cosimulation_on_icarus(file: Path) -> None:
    folder = file.parent / "out"
    given = ["--part", "rule_cache", "--lookups", "150", "--simulator", "icarus", "-o", str(folder)]
    result = CliRunner().invoke(app, ["cosim", str(file), *given])
    assert result.exit_code == 0, result.output
    report = json.loads((folder / "cosim.json").read_text())
    assert report["mismatches"] == 0 and report["lookups"].startswith("150, ")
    assert (report["top"], report["simulator"], report["first_mismatch"]) == ("small_rule_cache", "icarus", None)


@pytest.mark.skipif(shutil.which("iverilog") is None, reason="needs Icarus")
def test_cosimulation_of_sets_on_icarus(file: Path) -> None:
    """The memories are in modules of their own; their Verilog is played as well."""
    file.write_text(FILE.replace("entries: 2,", "entries: 8, ways: 2, index_bits: 3,"))
    folder = file.parent / "out"
    given = ["--part", "rule_cache", "--lookups", "150", "--simulator", "icarus", "-o", str(folder)]
    result = CliRunner().invoke(app, ["cosim", str(file), *given])
    assert result.exit_code == 0, result.output
    report = json.loads((folder / "cosim.json").read_text())
    assert report["mismatches"] == 0 and "8 lines in 4 sets of 2" in report["size"]


def test_an_option_of_another_part(file: Path) -> None:
    result = CliRunner().invoke(app, ["cosim", str(file), "--part", "rule_cache", "--cycles", "5"])
    assert result.exit_code != 0
    assert "--part rule_cache" in str(result.exception)


def test_a_package_and_a_section_that_it_does_not_use(file: Path) -> None:
    file.write_text(f"{FILE}traffic: {{}}\n")
    result = CliRunner().invoke(app, ["gen", "rule-cache", str(file), "-o", str(file.parent / "gen")])
    assert result.exit_code == 0, result.output
    manifest = json.loads((file.parent / "gen" / "small_rule_cache.json").read_text())
    assert manifest["parameters"]["rows"] == 4 and manifest["derived"] == {"hit_cycles": 2, "miss_cycles": 6}
    assert "traffic" in result.output and "there is no section" not in result.output


def test_a_section_that_is_missing_is_told(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of `gen rule-cache`, `cosim --part rule_cache` and `mutate`, which look at their file so."""
    say_missing(file, load_config(file), "rule_cache")
    assert capsys.readouterr().err == ""
    file.write_text("name: small\ntopology: {kind: mesh, radices: [2]}\n")
    say_missing(file, load_config(file), "rule_cache")
    assert capsys.readouterr().err == f"hopforge: {file}: there is no section rule_cache: its defaults are taken\n"


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("policy: uniform", "rule_cache.policy"),
        ("entries: 65", "rule_cache.entries: must be 1 to 64 without ways, not 65"),
        ("entries: 24, ways: 2", "rule_cache.entries: must be ways=2 times a power of two"),
        ("ways: 17", "rule_cache.ways"),
        ("index_bits: 8", "rule_cache.index_bits: needs ways"),
        ("ways: 4, index_bits: 33", "rule_cache.index_bits: must be at most address_bits=32, not 33"),
        ("tcam_cycles: 3", "rule_cache.tcam_cycles"),
        ("lines: 3", "rule_cache.lines"),
    ],
)
def test_bad_keys(file: Path, keys: str, message: str) -> None:
    file.write_text(f"name: small\ntopology: {{kind: mesh, radices: [2]}}\nrule_cache: {{{keys}}}\n")
    result = CliRunner().invoke(app, ["gen", "rule-cache", str(file), "-o", str(file.parent / "gen")])
    assert result.exit_code != 0 and message in str(result.exception)
    assert not (file.parent / "gen").exists()
