"""Pages of results: the committed ones are what the generator makes of the committed data."""

import csv
import json
import re
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from hopforge.model.errors import UserError
from hopforge.model.output.plots import new_figure
from hopforge.sim.reproduce import REPRODUCTIONS, Options
from hopforge.sim.reproduce.pages import (
    WIDTH,
    data_names,
    figure_section,
    main,
    results_pages,
    run_page,
    table,
    wrapped,
)
from hopforge.sim.reproduce.registry import Comparison, Point
from hopforge.sim.reproduce.report import page_command
from hopforge.sim.reproduce.runner import run_reproduction

RESULTS = next(p for p in Path(__file__).parents if (p / "pyproject.toml").exists()) / "docs" / "results"


def test_committed_pages_are_what_the_data_say() -> None:
    pages = results_pages(RESULTS)
    assert len(pages) > 5
    assert sorted(path.name for path in RESULTS.glob("*.md")) == sorted(pages)
    for name, text in pages.items():
        assert (RESULTS / name).read_text(encoding="utf-8") == text, f"docs/results/{name} is out of date: make docs"
        assert "written by `make docs`" in "".join(text.splitlines(keepends=True)[:4]), name
    cells = [c for text in pages.values() for line in text.splitlines() if line[:2] == "| " for c in line.split(" | ")]
    assert len(cells) > 1000
    assert [c for c in cells if len(c.strip("| ").replace(r"\|", "|")) > WIDTH] == []


def test_figures_of_a_kept_run_are_on_their_page() -> None:
    """Every value that the data of a figure hold stands on its page as it was measured."""
    (page,) = [text for name, text in results_pages(RESULTS).items() if name == "reproduced-figures.md"]
    kept = [path for path in sorted((RESULTS / "data").glob("lookup.*.csv"))]
    assert len(kept) == 17
    for path in kept:
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                ours = f"{row['ours'].removesuffix('.0')} {row['unit']}".strip()
                assert f"| {row['quantity']} | " in page
                assert f" | {ours} | " in page.replace("−", "-"), (path.name, row)


#: entries of `reproduce --list` that no section of data holds or names, and why
WITHOUT_DATA = {
    "booksim.*": "beside BookSim's recorded runs, which booksim-reference holds",
    "loren.fig6.2": "loren-figures names it as one of loren.fig6.1 to loren.fig6.4; values: loren-throughput",
    "loren.fig6.3": "as loren.fig6.2",
    "dqn.fig4.4": "a curve of training, described in docs/guides/learned-routing.md",
    "dqn.fig4.5": "as dqn.fig4.4",
    "dqn.fig4.6": "agents of the reduced run have hardly learned; at load .8: learned-search and learned-best",
    "dqn.fig4.7": "as dqn.fig4.6",
    "dqn.table4.1": "agents of the reduced run have hardly learned",
}


def test_every_entry_of_the_list_has_its_data_on_a_page() -> None:
    """It has a section of its own, or a section beside the coverage names its command; else the reason stands above."""
    data, named = RESULTS / "data", set[str]()
    for path in data.iterdir():
        if path.suffix in (".csv", ".md") and not path.stem.startswith(("coverage-", "README")):
            named |= set(re.findall(r"[a-z]+\.[a-z\d][\w.-]*\w", path.read_text(encoding="utf-8")))
    stems = {name: (name, name.replace(".", "-", 1)) for name in REPRODUCTIONS}  # routing.torus: routing-torus.csv
    own = {name for name, found in stems.items() if any((data / f"{stem}.csv").exists() for stem in found)}
    assert len(own) > 45 and {"lookup.help", "outflank.eta", "routing.qos", "routing.torus"} <= own
    without = set(REPRODUCTIONS) - own - named
    told = {name for name in REPRODUCTIONS if any(fnmatchcase(name, pattern) for pattern in WITHOUT_DATA)}
    assert without == told


def write_figure(folder: Path, metadata_name: str, comparison_name: str, assumption: str = "none") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    metadata = {
        "name": "test.one",
        "title": "One",
        "source": "seed 004, figure 1",
        "command": ["hopforge", "reproduce", "test.one", "--seed", "1"],
        "assumptions": ["nothing moves"],
    }
    (folder / metadata_name).write_text(json.dumps(metadata), encoding="utf-8")
    with (folder / comparison_name).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["quantity", "unit", "paper", "ours", "assumption", "claim", "deviation_percent"])
        writer.writerow(["area", "µm²", "100.0", "90.0", assumption, "", "-10.0"])


def test_a_fresh_run_and_kept_data_give_the_same_section(tmp_path: Path) -> None:
    write_figure(tmp_path / "run" / "test.one", "metadata.json", "comparison.csv")
    write_figure(tmp_path / "results" / "data", "test.one.json", "test.one.csv")
    (tmp_path / "results" / "data" / "pages.yml").write_text("figures: {title: F, sections: ['test.*']}\n")
    command = page_command(["test.*"], Options(full=True, liberty=Path("cells/a.lib")))
    assert command == "hopforge reproduce 'test.*' --liberty a.lib --full --page FILE"
    fresh = run_page([tmp_path / "run" / "test.one"], command)
    kept = results_pages(tmp_path / "results")["figures.md"]
    assert f"`{command}`" in fresh
    section = kept[kept.index("## test.one: One") :]
    assert fresh.endswith(section)
    assert "Seed 004, figure 1. `hopforge reproduce test.one --seed 1`\n\n- nothing moves\n\n| quantity |" in section
    assert "| area | 100 µm² | 90 µm² | −10.0 % | none |\n" in section


@pytest.mark.parametrize("measured", [False, pytest.param(True, marks=pytest.mark.study)])
def test_what_is_no_paper_has_its_own_name(tmp_path: Path, measured: bool) -> None:
    point: Point = {"network": "one switch", "program": "ring", "ranks": 8, "simgrid": False}
    figure = REPRODUCTIONS["apps.engines"]
    engines = replace(figure, points=lambda _: [point], draw=lambda *_: new_figure()[0])
    if not measured:  # the engines compile for a minute
        times = {f"{name}_s": 0.0007023 for name in ("flow", "packet", "calculated")} | {"simgrid_s": None}
        engines = replace(engines, measure=lambda *_: [{**point, "start": None, **times}])
    folder = run_reproduction(engines, tmp_path, Options()).folder
    section = figure_section(folder / "metadata.json", folder / "comparison.csv")
    assert "| quantity | calculated or flow | ours | deviation | assumption |\n" in section
    # measured, its sign is that of the last bit
    assert re.search(r"\| ring, one switch: flow \| 0\.7023 ms \| 0\.7023 ms \| [+−]0\.0 % \|", section)
    assert "paper" not in section.lower().replace("not in a paper", "")
    assert "paper" not in (folder / "comparison.csv").read_text(encoding="utf-8")


def test_every_deviation_of_a_figure_is_there_or_says_why_not() -> None:
    cells = []
    for page in results_pages(RESULTS).values():
        inside = False
        for line in page.splitlines():
            inside = line.endswith("| deviation | assumption |") or (inside and line.startswith("|"))
            if inside and line.count(" | ") == 4:
                cells.append(line.split(" | ")[3])
    assert len(cells) > 100
    assert {"kept", "no value", "equal"} < set(cells)
    assert [cell for cell in cells if cell in ("", "–", "-")] == []


def test_tables_keep_long_remarks_below_them(tmp_path: Path) -> None:
    long = "word " * 30 + "end"
    text = table(("a", "note"), [("1|2", "short"), (long, ""), ("3", "short")])
    assert r"| 1\|2 | 1 |" in text
    assert "| note 2 |  |\n| 3 | 1 |\n\nNotes\n\n1. short\n2. word word" in text
    assert max(map(len, text.splitlines())) <= WIDTH
    assert table(("a", "note"), [("1", "")]) == "| a |\n|---|\n| 1 |\n"


def test_wrapped_lines_begin_no_list_and_break_no_code() -> None:
    text = "x" * 117 + " + y `a b c` - 1. [a link](to.md) " + "z" * 60
    lines = wrapped(text).splitlines()
    assert " ".join(lines) == text.strip()
    assert len(lines) > 1
    assert not any(line.startswith(("+ ", "- ", "1. ")) for line in lines)
    assert any("`a b c`" in line for line in lines)


def test_text_tables_and_remarks_of_a_section(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "pages.yml").write_text("p: {title: P, intro: Hello., sections: [x-one, 'x-*'], headings: {x-two: Two}}\n")
    (data / "x-one.md").write_text("# One\n\nBefore.\n\n{table}\n\nAfter.\n")
    (data / "x-one.csv").write_text("a,b\n1,2\n")
    (data / "x-two.csv").write_text("c\n3\n")
    (data / "x-notes.csv").write_text("about,note\nx-two,a remark\nmachines,two of them\n")
    (data / "README.md").write_text("about the data\n")
    assert data_names(data) == ["x-one", "x-two"]
    assert main([str(tmp_path)]) == 0
    assert (tmp_path / "p.md").read_text().split("\n\n", 2)[2] == (
        "Hello.\n\n## One\n\nBefore.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nAfter.\n\n"
        "## Two\n\n- a remark\n\n| c |\n|---|\n| 3 |\n\n## machines\n\n- two of them\n"
    )


@pytest.mark.parametrize(
    ("pages", "message"),
    [
        ("p: {title: P, sections: [y]}", "x-one: shown by no page; one page must show it"),
        ("p: {title: P, sections: [x-one]}\nq: {title: Q, sections: ['x*']}", "x-one: shown by p and q; one page"),
        ("p: {title: P, sections: [x-one], name: n}", "p: unknown key 'name'; known: headings, intro, sections, title"),
        ("p: {title: P}", "p: sections is missing"),
        ("p: {title: P, sections: [x-one]}", "x-one.csv:3: 1 cells under 2 columns"),
    ],
)
def test_data_that_no_page_or_two_pages_show_are_refused(
    tmp_path: Path, pages: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "x-one.csv").write_text("a,b\n1,2\n3\n")
    (data / "pages.yml").write_text(pages + "\n")
    with pytest.raises(UserError) as caught:
        results_pages(tmp_path)
    assert message in str(caught.value)
    assert main([str(tmp_path)]) == 2
    assert message in capsys.readouterr().err


def test_a_value_below_one_thousandth_keeps_its_digits() -> None:
    from hopforge.sim.reproduce.pages import cells

    assert cells(Comparison("q", "ns", None, 0.00012345, "a"), None) == ("q", "–", "0.0001234 ns", "no value", "a")
    assert cells(Comparison("q", "%", -3.0, 12345.6, "a"), -0.04) == ("q", "−3 %", "12346 %", "−0.0 %", "a")
    assert cells(Comparison("q", "%", -3.0, 12345.6, "a"), -1.4e-14) == ("q", "−3 %", "12346 %", "+0.0 %", "a")


def coverage() -> dict[str, list[dict[str, str]]]:
    """Return the rows of the page of coverage: document → rows."""
    found = {}
    for path in sorted((RESULTS / "data").glob("coverage-*.csv")):
        with path.open(newline="") as file:
            found[path.stem.removeprefix("coverage-")] = list(csv.DictReader(file))
    assert sorted(found) == ["cache", "dqn", "loren", "outflank", "qadaptive"]
    return found


def test_every_item_of_a_document_has_a_command_or_a_reason() -> None:
    for document, rows in coverage().items():
        items = [row["item"] for row in rows]
        assert len(set(items)) == len(items) > 5, document
        assert all(row["command"] or row["if there is none, or it differs"] for row in rows), document
        for kind in ("figure", "table"):  # in each chapter without a gap
            chapters: dict[str, list[int]] = {}
            for item in items:
                if item.startswith(kind):
                    chapter, _, number = item.removeprefix(kind).strip().rpartition(".")
                    chapters.setdefault(chapter, []).append(int(number))
            for chapter, numbers in chapters.items():
                assert numbers == list(range(1, len(numbers) + 1)), f"{document}: {kind} {chapter}"


def test_commands_of_the_coverage_exist_and_no_figure_of_a_paper_is_left_out() -> None:
    named = {
        word.strip("`").removeprefix("hopforge reproduce ")
        for rows in coverage().values()
        for row in rows
        for word in re.findall(r"`[^`]+`", row["command"])
        if not word.startswith(("`hopforge topology ", "`hopforge jobs ", "`--"))
    }
    assert named <= set(REPRODUCTIONS)
    papers = {name for name in REPRODUCTIONS if re.search(r"\.(fig|table)\d+(\.\d+)?$", name)}
    assert len(papers) > 40
    assert papers - named == set()
