"""Results on the pages are those of this program: a short run of each study gives what it gave when they were made."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from hopforge.model.errors import UserError
from hopforge.model.output.program_digest import program_digest
from hopforge.sim.reproduce import REPRODUCTIONS, Options
from hopforge.sim.reproduce.origins import NOT_RECORDED, Origin, origins_rows, origins_text, read_origins, small_line
from hopforge.sim.reproduce.pages import data_names
from hopforge.sim.run import simulation

ROOT = next(p for p in Path(__file__).parents if (p / "pyproject.toml").exists())
sys.path.insert(0, str(ROOT / ".ci"))

import origins  # noqa: E402 - .ci/origins.py
import witnesses  # noqa: E402

DATA = ROOT / "docs/results/data"
KEPT = read_origins(DATA)


@pytest.mark.parametrize("study", witnesses.STUDIES)
def test_the_program_gives_what_the_data_were_made_with(study: str) -> None:
    assert origins.changed(KEPT, {study: witnesses.witness(study)}) == []


def test_every_data_set_has_its_origin_and_is_watched_or_says_why_not() -> None:
    assert origins.gaps(DATA, KEPT) == []
    watched = {study for origin in KEPT.values() for study in origin.witness}
    assert watched == set(witnesses.STUDIES), "a witness that watches nothing"
    assert sum(bool(origin.witness) for origin in KEPT.values()) > 100
    assert all(origin.program or not origin.commit for origin in KEPT.values())


def test_every_reproduction_that_has_data_of_its_own_is_in_one_of_the_lists() -> None:
    own = [name for name in REPRODUCTIONS if {name, name.replace(".", "-", 1)} & set(data_names(DATA))]
    assert len(own) > 45
    for name in own:
        data = name if name in KEPT else name.replace(".", "-", 1)
        assert bool(KEPT[data].witness) != bool(KEPT[data].not_watched), name


@pytest.mark.parametrize("name", ["new.study", "speed-lookup.fig4.5"])
def test_a_new_data_set_must_be_put_in_a_list(name: str) -> None:
    if name.startswith("speed"):
        assert witnesses.studies_of(name) == ()
        return
    with pytest.raises(ValueError, match=r"new\.study: must be in one place of \.ci/witnesses\.py.*not 0"):
        witnesses.studies_of(name)


def test_another_program_is_told_with_both_witnesses_and_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """One random draw less at the start of a run is another program."""
    name = "booksim.mesh8x8_uniform_p4"
    before = witnesses.witness(name)
    assert before == witnesses.witness(name)
    usual = simulation.source_parameters
    monkeypatch.setattr(simulation, "source_parameters", lambda config, load, *rest: usual(config, 0.99 * load, *rest))
    now = witnesses.witness(name)
    assert now != before
    kept = {"booksim-cases": Origin(command="hopforge x", witness={name: before, "other": "1"})}
    (line,) = origins.changed(kept, {name: now})
    assert line.startswith("docs/results/data/booksim-cases was made by a program that gave other results: witness ")
    assert repr(before) in line and repr(now) in line and "run hopforge x again" in line
    assert "\n" not in line


def test_a_witness_ends_its_runs_early_and_leaves_the_program_as_it_was() -> None:
    whole = simulation.Simulation.advance
    with witnesses.short_runs(), pytest.raises(witnesses.Enough) as ended:
        point = REPRODUCTIONS["booksim.torus8x8_uniform_p1"].points(Options())[-1]
        REPRODUCTIONS["booksim.torus8x8_uniform_p1"].measure(point, Options())
    assert simulation.Simulation.advance is whole
    numbers = ended.value.numbers
    # at most one packet of one flit for each of 64 hosts and cycle, and every packet that arrives has crossed a link
    assert 0 < int(numbers["packets"]) < 64 * witnesses.CYCLES
    assert int(numbers["flits"]) >= int(numbers["hops"]) - int(numbers["packets"])


def test_long_witnesses_keep_a_digest_of_all() -> None:
    short, long = "a 1, b 2", "a 1, " * 100
    assert witnesses.shortened(short) == short
    assert witnesses.shortened(long) != witnesses.shortened(long[:-2] + "2,")
    assert len(witnesses.shortened(long)) < 200


def small_data(folder: Path, program: str = "") -> Path:
    folder.mkdir()
    (folder / "speed-a.csv").write_text("what,s\nslow,1.5\n")
    (folder / "lookup.help.csv").write_text("quantity,ours\nhits,12\n")
    metadata = {"command": ["hopforge", "reproduce", "lookup.help"], "program_digest": program or program_digest()}
    (folder / "lookup.help.json").write_text(json.dumps(metadata))
    return folder


def test_edited_numbers_and_copied_runs_need_a_new_origin(tmp_path: Path) -> None:
    data = small_data(tmp_path / "data")
    command = "hopforge reproduce lookup.help"
    kept = {name: origins.seen(data, name, Origin(command=command), {}) for name in ("speed-a", "lookup.help")}
    kept["lookup.help"] = replace(kept["lookup.help"], program=program_digest()[:12])
    assert origins.gaps(data, kept) == []
    (data / "speed-a.csv").write_text("what,s\nvery slow,1.5\n")  # words are no results
    assert origins.gaps(data, kept) == []
    (data / "speed-a.csv").write_text("what,s\nvery slow,1.6\n")
    assert origins.gaps(data, kept)[0].startswith("docs/results/data/speed-a has other numbers than its origin knows")
    del kept["speed-a"]
    assert "docs/results/data/speed-a: nothing says what made it: " in origins.gaps(data, kept)[0]
    (data / "speed-a.csv").unlink()
    small_data(tmp_path / "other", program="f" * 64)
    (tmp_path / "other/lookup.help.json").replace(data / "lookup.help.json")
    assert "lookup.help.json is of program ffffffffffff, its origin of " in origins.gaps(data, kept)[0]
    (data / "lookup.help.json").unlink()
    (data / "lookup.help.csv").unlink()
    assert origins.gaps(data, kept) == ["origins.yml names lookup.help, of which there are no data"]


def test_only_data_of_this_program_are_noted_as_renewed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = small_data(tmp_path / "data", program="f" * 64)
    monkeypatch.setattr(origins, "DATA", data)
    monkeypatch.setattr(origins, "_commit", lambda: "0123456789abcdef")
    assert origins.main(["renewed", "lookup.help"]) == 2
    assert "lookup.help.json: made by another program than this one: hopforge reproduce" in capsys.readouterr().err
    assert origins.main(["renewed", "speed-a"]) == 2
    assert "speed-a: needs --run FOLDER or --command TEXT, to say what made it" in capsys.readouterr().err
    assert origins.main(["renewed", "speed-b", "--command", "x"]) == 2
    assert "no data speed-b in " in capsys.readouterr().err
    assert origins.main(["same", "speed-a", "--because", "x"]) == 2
    assert "speed-a has no origin yet" in capsys.readouterr().err
    assert not (data / "origins.yml").exists()
    assert origins.main(["renewed", "speed-a", "--command", "hopforge bench"]) == 0
    assert origins.main(["same", "speed-a", "--because", "only words have changed."]) == 0
    (origin,) = read_origins(data).values()
    assert (origin.commit, origin.program) == ("0123456789abcdef", program_digest()[:12])
    assert small_line(origin) == (
        "\n<sub>Made by commit `01234567`. The program has changed since; only words have changed.</sub>\n"
    )


def test_origins_survive_their_file_and_say_what_is_not_recorded(tmp_path: Path) -> None:
    known = {"a": Origin(command="x", witness={"s": "links 00000012; ö"}), "b": Origin(not_watched="times")}
    (tmp_path / "origins.yml").write_text(origins_text(known), encoding="utf-8")
    assert read_origins(tmp_path) == known
    assert small_line(known["a"]) == small_line(None) == ""
    columns, rows = origins_rows(known)
    assert columns == ("data", "command", "made by", "watched by")
    assert rows == [("a", "`x`", NOT_RECORDED, "s"), ("b", "see its section", NOT_RECORDED, "not watched: times")]
    (tmp_path / "origins.yml").write_text("a: {comand: x}\n")
    with pytest.raises(UserError, match=r"origins\.yml: a: .*comand"):
        read_origins(tmp_path)
