"""Tables and layers of one's own: what is wrong is named with key, file and line, pair and path or cycle."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopforge.model.config import load_config, parse_config
from hopforge.model.config.load import with_place
from hopforge.model.errors import UserError
from hopforge.model.irregular.files import read_next_hops
from hopforge.model.irregular.tables import build_tables
from hopforge.model.topology import build
from hopforge.sim.start.summary import summarize

TORUS = "name: x\ntopology: {kind: torus, radices: [4]}\n"
GOOD = "-1,1,1,3\n0,-1,2,2\n1,1,-1,3\n0,0,2,-1\n"  # two ways to go half around: 0 → 2 over 1, 1 → 3 over 2
RING = "-1,1,1,1\n2,-1,2,2\n3,3,-1,3\n0,0,0,-1\n"  # all packets go round one way


def _tables(folder, keys):
    config = parse_config(f"{TORUS}tables: {{{keys}}}\n", "test.yml", folder=folder)
    return build_tables(config.tables, build(config.topology, config.address), config.seed)


def test_table_file_errors(tmp_path):
    path = tmp_path / "hops.csv"
    with pytest.raises(UserError, match=r"^tables.file: cannot read .*hops.csv: No such file"):
        read_next_hops(path, 2)
    path.write_bytes(b"\xff\xfe,1\n")
    with pytest.raises(UserError, match=r"^tables.file: cannot read .*hops.csv: not UTF-8 text"):
        read_next_hops(path, 2)
    path.write_text("-1,1\n0,x\n")
    with pytest.raises(UserError, match=r"^tables.file: .*hops.csv:2: expected router numbers, not '0,x'"):
        read_next_hops(path, 2)
    path.write_text("-1,1\n0\n")
    with pytest.raises(UserError, match=r"hops.csv:2: must have 2 numbers, not 1"):
        read_next_hops(path, 2)
    path.write_text("-1,1\n")
    with pytest.raises(UserError, match="must have 2 lines, one per router, not 1"):
        read_next_hops(path, 2)
    for number in ("99999999999", "2", "-2"):
        path.write_text(f"-1,1\n{number},-1\n")
        with pytest.raises(UserError, match=rf"hops.csv:2: must be router numbers from 0 to 1, not {number}"):
            read_next_hops(path, 2)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("0,-1,2,2", "0,-1,0,2", "hops.csv:3: from router 0 to router 2 packets go in a circle: 0 → 1 → 0"),
        ("0,0,2,-1", "0,-1,2,-1", r"hops.csv:5: the entry of router 3 for destination 1 is missing \(path 3 → \?\)"),
        ("-1,1,1,3", "-1,1,2,3", r"hops.csv:1: the entry of router 0 for destination 2 names router 2, which is no"),
    ],
)
def test_wrong_tables_are_refused_with_line_pair_and_path(tmp_path, old, new, words):
    text = GOOD.replace("\n", "\n\n", 1)  # an empty line is skipped and counts
    (tmp_path / "hops.csv").write_text(text)
    assert _tables(tmp_path, "scheme: file, file: hops.csv").hops.max() == 2
    assert old in text
    (tmp_path / "hops.csv").write_text(text.replace(old, new))
    with pytest.raises(UserError, match=f"^tables.file: .*{words}"):
        _tables(tmp_path, "scheme: file, file: hops.csv")


ONE_EACH = "".join(f"{s},{d},0\n" for s in range(4) for d in range(4) if s != d)
#: the ring needs two layers: hops after router 0 is passed are in layer 1
TWO = "".join(
    f"{s},{d}," + ",".join("1" if s + hop >= 4 else "0" for hop in range((d - s) % 4)) + "\n"
    for s in range(4) for d in range(4) if s != d
)  # fmt: skip


def test_layers_of_a_file(tmp_path):
    (tmp_path / "hops.csv").write_text(RING)
    (tmp_path / "layers.csv").write_text(TWO)
    keys = "scheme: file, file: hops.csv, layers: file, layers_file: layers.csv"
    layers = _tables(tmp_path, keys).layers
    assert layers.count == 2
    assert layers.of_path(2, 1) == [0, 0, 1]
    assert layers.of_path(0, 3) == [0, 0, 0]
    (tmp_path / "layers.csv").write_text(ONE_EACH)
    with pytest.raises(UserError, match="can deadlock") as caught:
        _tables(tmp_path, keys)
    message = str(caught.value)
    assert message.startswith("tables.layers_file: ")
    waiting = re.findall(r"(\d)→(\d) layer 0", message)
    assert waiting[0] == waiting[-1]
    assert sorted(waiting[1:]) == [("0", "1"), ("1", "2"), ("2", "3"), ("3", "0")]
    found = re.search(r"layers.csv:(\d+): .* path from router (\d) to router (\d)$", message)
    assert found is not None
    line, s, d = map(int, found.groups())
    assert ONE_EACH.splitlines()[line - 1] == f"{s},{d},0"
    assert (d - s) % 4 > 1  # a path of at least two hops


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("0,3,0,0,0", "0,3,0,0", r"layers.csv:3: must have 1 or 3 layers \(hops of the path\), not 2"),
        ("0,3,0,0,0", "0,3", "layers.csv:3: must have source, destination and at least one layer, not 2 numbers"),
        ("0,3,0,0,0", "0,4,0,0,0", "layers.csv:3: must begin with two different routers from 0 to 3, not 0,4"),
        ("0,3,0,0,0", "0,2,0,0", "layers.csv:3: routers 0,2 are already in line 2"),
        ("0,3,0,0,0", "0,3,0,64,0", "layers.csv:3: layers must be from 0 to 63, not 64"),
        ("0,3,0,0,0", "0,3,0,a,0", "layers.csv:3: expected source, destination and layers, not '0,3,0,a,0'"),
        ("0,3,0,0,0", "", "layers.csv: no line for source 0 and destination 3"),
    ],
)
def test_layer_file_errors(tmp_path, old, new, words):
    (tmp_path / "hops.csv").write_text(RING)
    assert old in TWO
    (tmp_path / "layers.csv").write_text(TWO.replace(old, new))
    with pytest.raises(UserError, match=f"^tables.layers_file: .*{words}"):
        _tables(tmp_path, "scheme: file, file: hops.csv, layers: file, layers_file: layers.csv")


def test_keys_of_layers():
    for keys, words in (
        ("layers: file", "layers_file: missing; layers=file needs it"),
        ("layers_file: x.csv", "layers_file: is for layers=file only, not layers=acro"),
    ):
        with pytest.raises(UserError, match=words):
            parse_config(f"{TORUS}tables: {{{keys}}}\n", "test.yml")


def test_check_names_the_line_of_the_configuration_too(tmp_path):
    (tmp_path / "hops.csv").write_text(GOOD)
    path = tmp_path / "mine.yml"
    path.write_text(TORUS + "tables:\n  scheme: file\n  file: hops.csv\n")
    rows = dict(summarize(load_config(path)))
    assert rows["tables"] == "file, 3 entries at most; checked: every pair is delivered"
    assert rows["virtual layers"].endswith("(acro), checked: no cycle")
    (tmp_path / "hops.csv").write_text(GOOD.replace("0,0,2,-1", "0,0,1,-1"))
    with pytest.raises(UserError) as caught:
        summarize(load_config(path))
    assert with_place(str(caught.value)).startswith(f"{path}:5: tables.file: {tmp_path / 'hops.csv'}:4: the entry of")


@given(st.integers(0, 3), st.integers(0, 3), st.integers(-1, 3))
@settings(max_examples=60, deadline=None)
def test_a_table_is_accepted_exactly_if_it_delivers(tmp_path_factory, router, destination, entry):
    rows = [[int(word) for word in line.split(",")] for line in GOOD.split()]
    rows[router][destination] = entry
    folder = tmp_path_factory.mktemp("tables")
    (folder / "hops.csv").write_text("".join(",".join(map(str, row)) + "\n" for row in rows))

    def arrives(s, d):
        for _ in range(4):
            if s == d:
                return True
            if rows[s][d] not in ((s + 1) % 4, (s - 1) % 4):
                return False
            s = rows[s][d]
        return s == d

    good = all(arrives(s, d) for s in range(4) for d in range(4))
    try:
        _tables(folder, "scheme: file, file: hops.csv")
    except UserError as error:
        assert not good
        assert f"router {router}" in str(error) or " → " in str(error)
    else:
        assert good
