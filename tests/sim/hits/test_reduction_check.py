"""`hopforge reduction`: what it shows and writes, its exit status, files that are no good."""

import csv
import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hopforge.cli import app
from hopforge.model.errors import UserError
from hopforge.model.lookup.handle_tag_file import read_handle_tag

SHIPPED = Path(__file__).parents[3] / "configs" / "reductions"
TEXT = 'kind: torus\nk: [5]\nfunction:\n  handle: d[i] != c[i]\n  tag: (i, sign(d[i] - c[i]))\n  default: "n"\n'


def run(path, output):
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, ["reduction", str(path), "-o", str(output)])


@pytest.mark.parametrize("path", sorted(SHIPPED.glob("*.yml")), ids=lambda path: path.stem)
def test_shipped_functions_are_right(path, tmp_path):
    done = run(path, tmp_path)
    assert done.exit_code == 0, done.output
    assert "equal tags have equal ports on every switch" in done.output


def test_a_function_that_is_wrong(tmp_path):
    """On a ring of 5 the sign alone sends the far half the long way: 3 is two hops the other way around."""
    path = tmp_path / "ring.yml"
    path.write_text(TEXT)
    done = run(path, tmp_path / "out")
    assert done.exit_code == 1
    assert "switch 0: destinations 1 and 3 have tag (0, 1), ports (0, +) and (0, -)" in done.output
    assert "3 in all, at most 3 on a switch" in done.output
    rows = list(csv.reader((tmp_path / "out" / "reduction.csv").read_text().splitlines()))
    assert rows[0] == ["level", "switch", "destination", "tag"]
    assert rows[1:6] == [["0", "0", str(d), tag] for d, tag in enumerate("01111")]
    assert len(rows) == 26
    assert (tmp_path / "out" / "tags.csv").read_text() == 'number,value\n0,1\n1,"(0, 1)"\n2,"(0, -1)"\n'
    held = json.loads((tmp_path / "out" / "metadata.json").read_text())
    assert held["totals"] == {
        "switches": 5, "destinations": 5, "tags": 3, "per_switch": 3, "ok": False, "bad": [[0, 0], 1, 3],
    }  # fmt: skip
    assert held["function"]["loop"] == "i" and held["columns"]["reduction"]["tag"]["meaning"]


def test_many_tags_and_levels_are_told(tmp_path):
    path = tmp_path / "x.yml"
    path.write_text("kind: mesh\nk: [50]\nfunction: {handle: 1, tag: 'd[0]', default: 0}\n")
    assert "and 10 more" in run(path, tmp_path / "a").output
    path.write_text("kind: fattree\nk: [2, 2]\nfunction: {handle: l, tag: 'd[0]', default: 0}\n")
    done = run(path, tmp_path / "b")
    assert "switch 0 of level 0: destinations 0 and 1 have tag 0, ports (down, 0) and (down, 1)" in done.output


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("kind: torus", "kind: ring", "x.yml:1: kind: must be one of mesh, torus, hyperx, fattree, not 'ring'"),
        ("kind: torus", "kind: 3", "x.yml:1: kind: must be text, not 3"),
        ("kind: torus", "kinds: torus", "x.yml:1: kinds: unknown key; known: kind, k, function"),
        ("kind: torus\n", "", "x.yml:1: kind: is missing"),
        ("k: [5]", "k: 5", "x.yml:2: k: must be a list of whole numbers, not 5"),
        ("k: [5]", "k: [5, true]", "x.yml:2: k: must be a list of whole numbers, not"),
        ("k: [5]", "k: [5000]", "x.yml:2: k: at most 1,048,576 pairs"),
        ("  handle", "  handel", "x.yml:4: function.handel: unknown key; known: loop, handle, tag, default"),
        ('  default: "n"\n', "", "x.yml:3: function.default: is missing"),
        ('"n"', "1.5", "x.yml:6: function.default: must be text, not 1.5"),
        ('"n"', "'1.5'", "x.yml:6: function.default: column 1: '1.5' is not accepted"),
        ('"n"', "c[1]", r"x.yml:6: function.default: column 1: subscript of c must be 0 to 0, not 1 \(with"),
        ("  handle", "  loop: 3\n  handle", "x.yml:4: function.loop: must be text, not 3"),
        ("  handle", "  loop: ji\n  handle", "x.yml:4: function.loop: must be one of i, ij, not 'ji'"),
        (TEXT, "- 1\n", "x.yml:1: must be a section with the keys kind, k, function"),
        (TEXT, "kind: mesh\nk: [2]\nfunction: 3\n", "x.yml:.: function: must be a section with the keys loop"),
        (TEXT, "", "x.yml:1: the file is empty"), (TEXT, "a: [", "x.yml:.: not valid YAML"),
    ],
)  # fmt: skip
def test_files_that_are_no_good(old, new, reason, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert old in TEXT
    Path("x.yml").write_text(TEXT.replace(old, new, 1))
    done = CliRunner().invoke(app, ["reduction", "x.yml"])
    assert isinstance(done.exception, UserError)
    assert re.match(reason, str(done.exception)), done.exception
    assert "\n" not in str(done.exception)
    assert not Path("build").exists()


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(UserError, match=r"none.yml: cannot read the function: No such file"):
        read_handle_tag(tmp_path / "none.yml")
    (tmp_path / "x.yml").write_bytes(b"kind: mesh\nk: \xff\n")
    with pytest.raises(UserError, match=r"x.yml:2: not UTF-8 text \(byte 0xff\)"):
        read_handle_tag(tmp_path / "x.yml")
