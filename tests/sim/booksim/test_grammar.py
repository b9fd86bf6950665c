"""The text of BookSim's configurations: what its scanner and parser take, and one clear line for the rest."""

from pathlib import Path

import pytest

from hopforge.sim.booksim.grammar import BooksimError, read_settings
from hopforge.sim.booksim.keys import Settings, items, with_parameters


def read(folder: Path, text: str | bytes, *parameters: str) -> list[tuple[str, str | int | float, str]]:
    file = folder / "a.cfg"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    settings = read_settings([str(file), *parameters])
    return [(one.key, one.value, one.where.removeprefix(f"{folder}/")) for one in settings]


def test_keys_values_comments_and_parameters(tmp_path: Path) -> None:
    text = "// topology = mesh;\nk = 8;n=2 ; // both\n\ninternal_speedup\t=\n1.5;\r\npacket_size = {{1,5}};\n"
    found = read(tmp_path, text, "injection_rate=.2", "seed=-3", "warmup_thres=1e-2", "traffic=hotspot({{1,2},{3}})")
    assert found == [
        ("k", 8, "a.cfg:2"), ("n", 2, "a.cfg:2"), ("internal_speedup", 1.5, "a.cfg:4"),
        ("packet_size", "{{1,5}}", "a.cfg:6"), ("injection_rate", 0.2, "parameter injection_rate=.2"),
        ("seed", -3, "parameter seed=-3"), ("warmup_thres", 0.01, "parameter warmup_thres=1e-2"),
        ("traffic", "hotspot({{1,2},{3}})", "parameter traffic=hotspot({{1,2},{3}})"),
    ]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), [
    ("", ": no setting in it: expected key = value; at least once"),
    ("// k = 8;\n", ": no setting in it: expected key = value; at least once"),
    ("k = 8; n", ":1: expected = after n, not the end of the text"),
    ("k = 8\nn = 2;", ":2: expected ; after k = 8, not n"),
    ("k = ;", ":1: expected a value after k =, not ;"),
    ("k 8;", ":1: expected = after k, not 8"),
    ("packet_size = {1, 5};", r":1: expected a value after packet_size =, not \{ \(a list has no spaces\)"),
    ("include other.cfg;", ":1: expected = after include, not other.cfg"),
    ("k = 99999999999;", ":1: k: 99999999999 does not fit 32 bits"),
    ("injection_rate = 1e999;", ":1: injection_rate: 1e999 is too large a number"),
    (b"// caf\xe9\nk = 8;", ": not UTF-8 text"),
    (b"k = 8;\0", ": not UTF-8 text"),
    (b"\xef\xbb\xbfk = 8;", ":1: BookSim takes no byte-order mark before the text"),
    ("k = 8;" * 200_000, ": holds more than 1 MiB"),
])  # fmt: skip
def test_what_booksim_does_not_take_is_one_line_with_its_place(tmp_path: Path, text: str | bytes, message: str) -> None:
    with pytest.raises(BooksimError, match=rf"^{tmp_path}/a.cfg{message}") as caught:
        read(tmp_path, text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("words", [["injection_rate"], ["seed=3", "injection_rate"], ["injection_rate", ".2"]])
def test_a_parameter_without_its_value_is_told_how_to_write_it(tmp_path: Path, words: list[str]) -> None:
    with pytest.raises(BooksimError) as told:
        read(tmp_path, "k = 8;\n", *words)
    assert str(told.value) == (
        "import booksim: injection_rate is no file; write a parameter as KEY=VALUE, such as injection_rate=.2"
    )


@pytest.mark.parametrize(("words", "message"), [
    (["k=8"], "name a configuration file before parameters"),
    (["none.cfg"], "none.cfg: No such file"),
])  # fmt: skip
def test_a_file_is_needed(words: list[str], message: str) -> None:
    with pytest.raises(BooksimError, match=message):
        read_settings(words)


@pytest.mark.parametrize(("text", "message"), [
    ("n = 2;\nkk = 8;", r":2: kk = 8: BookSim has no such key"),
    ("seedd = 8;", r"no such key; did you mean 'seed'\?"),
    ("injection_rate = 1;", "injection_rate = 1: BookSim refuses a whole number here; write 1.0"),
    ("k = 8.0;", "k = 8.0: BookSim takes no number with a point here"),
    ("k = eight;", "k = eight: BookSim takes a number here"),
    ("topology = 3;", "topology = 3: BookSim refuses a whole number here; it takes a word"),
])  # fmt: skip
def test_unknown_keys_and_types(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "a.cfg").write_text(text)
    with pytest.raises(BooksimError, match=message):
        Settings(read_settings([str(tmp_path / "a.cfg")]))


def test_lists() -> None:
    assert items("{{1,5},{2}}") == ["{1,5}", "{2}"]
    assert items("7") == ["7"]
    assert items("") == items("{}") == []
    assert with_parameters("hotspot({{27,36},{1,2}})") == ("hotspot", ["{27,36}", "{1,2}"])
    assert with_parameters("islip(2)") == ("islip", ["2"])
