"""`hopforge prove --config`: the expression of a file, and files that have none."""

from pathlib import Path

import pytest

from hopforge import cli

HYPERX = "name: x\ntopology: {kind: hyperx, sizes: [4, 2], hosts_per_router: 2}\naddress: {width_bits: 16}\n"


@pytest.mark.parametrize(
    ("text", "words", "message"),
    [
        (HYPERX, (), "x.yml:1: lookup.reduction: has no expression to prove"),
        (HYPERX + "lookup: {reduction: {expression: 'dst +'}}\n", (), "x.yml:4: lookup.reduction.expression: "),
        (HYPERX + "lookup: {reduction: {name: hyperx}}\n", ("crc",), "give no subject and no --wide with it"),
        (HYPERX + "lookup: {reduction: {name: hyperx}}\n", ("--wide",), "give no subject and no --wide with it"),
    ],
)
def test_what_cannot_be_proved(text, words, message, tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.yml").write_text(text)
    monkeypatch.setattr("sys.argv", ["hopforge", "prove", *words, "--config", "x.yml"])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 2
    assert message in capsys.readouterr().err


def test_an_expression_is_proved_and_unused_sections_are_named(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.yml").write_text(HYPERX + "lookup: {reduction: {expression: 'dst[0:0]'}}\nworkload: {kind: uniform}\n")
    monkeypatch.setattr("sys.argv", ["hopforge", "prove", "--config", "x.yml"])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 0
    said = capsys.readouterr()
    assert said.out.startswith("proved ") and "expression of the file" in said.out
    assert "hopforge prove does not use workload" in said.err
