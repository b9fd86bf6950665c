"""Results of any kind in one page: what is read, what cannot be, what the reader sees in a browser."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from hopforge import cli
from hopforge.model.config import parse_config
from hopforge.model.errors import UserError
from hopforge.model.output.plots import Line, draw_lines, new_figure, save_figure
from hopforge.model.output.results import said_command, write_metadata, write_tables
from hopforge.sim.hits.hit_rates import run_hits, write_report
from hopforge.sim.pages import ResultSet, find_results, result_page
from hopforge.sim.pages.explore import LARGEST_PLOT, explorer
from hopforge.sim.pages.export import export_file
from hopforge.sim.pages.report import Column, Explorer, Fact, Figure, Listing, Picture, Report, Section, Table, render
from hopforge.sim.pages.report_data import page_from_data, write_page_data

HITS = """\
name: small
topology: {kind: torus, radices: [3, 3]}
lookup: {cache: {entries: 4, ways: 2}}
workload: {kind: all_to_all, order: random, rounds: 2}
"""


def curve(shift: float) -> pd.DataFrame:
    return pd.DataFrame({
        "variant": ["a"] * 3 + ["b"] * 3,
        "load": [0.1, 0.2, 0.3] * 2,
        "saturated": [False, False, True] * 2,
        "latency": [shift + 1, shift + 2, 900.0, shift + 3, shift + 4, 900.0],
        "latency_interval": [0.1] * 6,
        "accepted": [0.1, 0.2, 0.25] * 2,
    })  # fmt: skip


def write_set(folder: Path, tables: dict[str, pd.DataFrame], metadata: dict[str, object]) -> None:
    folder.mkdir(parents=True)
    write_tables(folder, tables)
    write_metadata(folder, metadata)


def write_sweep(folder: Path, shift: float) -> None:
    write_set(folder, {"curve": curve(shift)}, {"command": ["hopforge", "sweep", "my net.yml"], "seed": 7})
    figure, (axes,) = new_figure()
    draw_lines(axes, [Line("x", [1, 2], [1, 2])])
    save_figure(figure, folder / "latency_load.png")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gather") / "build"
    write_sweep(folder / "sweep" / "case2", 10)
    write_sweep(folder / "sweep" / "case10", 20)
    write_report(run_hits(parse_config(HITS)), folder / "hits" / "small")
    ranks = pd.DataFrame({"rank": np.arange(1000), "finish_s": np.linspace(0, 1, 1000)})
    app = pd.DataFrame([{"program": "</script><b>", "makespan_s": 0.25, "nothing": None}])
    write_set(folder / "app", {"app": app, "ranks": ranks}, {"command": ["hopforge", "app", "x.yml"]})
    return folder


def items(report: Report, section: str) -> dict[str, object]:
    (found,) = [one for one in report.sections if one.title == section]
    return {item.title: item for item in found.items}


def test_everything_is_found_in_a_sensible_order(results: Path) -> None:
    found = find_results(results)
    assert [result.folder for result in found.sets] == ["app", "hits/small", "sweep/case2", "sweep/case10"]
    assert found.problems == []
    assert found.others == {}
    assert [sorted(result.tables) for result in found.sets[:2]] == [["app", "ranks"], ["classes", "ports", "switches"]]
    assert [result.kind for result in found.sets][0::2] == ["app", "sweep"]
    assert found.sets[2].command == "hopforge sweep 'my net.yml'"
    assert [len(result.pictures) for result in found.sets] == [0, 2, 1, 1]


def test_every_table_has_its_plot_its_rows_and_the_command(results: Path) -> None:
    page = result_page(find_results(results), "hopforge report build")
    sweep = items(page, "sweep/case2 (sweep)")
    plot = sweep["curve"]
    assert isinstance(plot, Explorer)
    assert (plot.x, plot.y, plot.by, plot.style) == ("load", "latency", "variant", "lines")
    assert plot.columns["latency"] == [11, 12, None, 13, 14, None]  # no latency where saturated
    assert plot.columns["accepted"] == [0.1, 0.2, 0.25] * 2
    assert plot.command == "hopforge sweep 'my net.yml'"
    assert isinstance(sweep["curve, rows"], Table)
    assert isinstance(sweep["latency_load.png (as the command drew it)"], Picture)
    app = items(page, "app (app)")["app"]
    assert isinstance(app, Table)
    assert app.rows == [["program", "</script><b>"], ["makespan_s", 0.25], ["nothing", None]]
    assert "&lt;/script&gt;&lt;b&gt;" in render(page)


def test_units_stand_in_titles_of_axes_and_headings(tmp_path: Path) -> None:
    units = {"saturated": "", "load": "flits per host and cycle", "accepted": "1", "warmup_cycles": "cycles"}
    for name, latency in (("a", "cycles"), ("b", "ns")):
        units["latency"] = latency
        notes = {column: {"unit": unit, "meaning": "m"} for column, unit in units.items()}
        metadata = {"command": ["hopforge", "sweep", "x.yml"], "columns": {"curve": notes, "measurement": notes}}
        row = {"load": 0.1, "latency": 9.5, "accepted": 0.1, "saturated": name == "b", "warmup_cycles": 4}
        run = pd.DataFrame([row])
        (tmp_path / name).mkdir()
        write_tables(tmp_path / name, {"curve": curve(1), "measurement": run})
        (tmp_path / name / "metadata.json").write_text(json.dumps(metadata))
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "metadata.json").write_text('{"columns": {"curve": 3}}')
    write_tables(tmp_path / "c", {"curve": curve(1)})
    page = result_page(find_results(tmp_path), "x")
    found = items(page, "a (sweep)")
    plot, rows, one = found["curve"], found["curve, rows"], found["measurement"]
    assert isinstance(plot, Explorer)
    assert isinstance(rows, Table)
    assert isinstance(one, Table)
    assert (plot.units["latency"], plot.units["load"]) == ("cycles", "flits per host and cycle")
    assert [column.name for column in rows.columns] == [
        "variant", "load, flits per host and cycle", "saturated", "latency, cycles", "latency_interval", "accepted",
    ]  # fmt: skip
    assert [row[0] for row in one.rows] == [
        "load, flits per host and cycle", "latency, cycles", "accepted", "saturated", "warmup_cycles",
    ]  # fmt: skip
    other = items(page, "c")["curve"]
    assert isinstance(other, Explorer)
    assert other.units == {}
    together = items(page, "Side by side")  # cycles and ns have no unit in common
    table = together["All runs: measurement"]
    assert isinstance(table, Table)
    assert [column.name for column in table.columns] == [
        "result", "load, flits per host and cycle", "latency", "accepted", "saturated", "warmup_cycles",
    ]  # fmt: skip
    overview = items(page, "Overview")["All results"]
    assert isinstance(overview, Table)  # no latency of what is saturated
    assert [row[4] for row in overview.rows[:2]] == ["latency, cycles 9.5, accepted 0.1", "accepted 0.1"]


def test_hits_are_shown_as_in_the_demo(results: Path) -> None:
    page = result_page(find_results(results), "x")
    (section,) = [one for one in page.sections if one.title.startswith("hits/small")]
    figures = [item.title for item in section.items if isinstance(item, Figure)]
    assert figures[:2] == ["Misses by cause", "Hit rate of every input port, hits/small"]
    assert [fact.label for fact in section.facts] == ["hit rate", "misses", "lookups", "no TCAM row"]
    assert any(isinstance(item, Listing) and "radices" in item.text for item in section.items)


def test_sweeps_stand_side_by_side(results: Path) -> None:
    plot = items(result_page(find_results(results), "x"), "Side by side")["All sweeps"]
    assert isinstance(plot, Explorer)
    assert list(dict.fromkeys(plot.columns["variant"])) == [
        "sweep/case2 a", "sweep/case2 b", "sweep/case10 a", "sweep/case10 b",
    ]  # fmt: skip


def test_long_tables_are_cut_and_say_so(results: Path) -> None:
    page = result_page(find_results(results), "x", rows=30)
    ranks = items(page, "app (app)")
    table, plot = ranks["ranks, rows"], ranks["ranks"]
    assert isinstance(table, Table)
    assert isinstance(plot, Explorer)
    assert len(table.rows) == 30
    assert table.caption.startswith("The first 30 of 1000 rows")
    assert table.caption.endswith("All are in app/ranks.parquet.")
    assert len(plot.columns["rank"]) == 1000  # the plot has them all


def test_plots_of_very_long_tables_are_thinned_and_say_so() -> None:
    rows = 2 * LARGEST_PLOT + 1
    plot = explorer("x", pd.DataFrame({"rank": np.arange(rows), "finish_s": np.arange(rows) / 2}))
    assert plot is not None
    assert plot.columns["rank"] == list(range(0, rows, 3))
    assert plot.caption == f"One of every 3 rows, of {rows} in all."


def test_what_is_plotted_first() -> None:
    loads = {"router": [0, 0, 1, 1], "port": [1, 2, 1, 2], "to_router": [1, 2, 0, 3], "load": [0.1, 0.2, 0.1, 0.3]}
    plot = explorer("channels", pd.DataFrame(loads))
    assert plot is not None
    assert (plot.x, plot.y, plot.by) == ("router", "load", "port")
    plot = explorer("curve", pd.DataFrame({"load": [0.1, 0.2], "accepted": [0.1, 0.2], "latency": [9.5, 9.7]}))
    assert plot is not None
    assert (plot.x, plot.y) == ("load", "latency")
    # what was chosen is whole, what was measured is not
    plot = explorer("data", pd.DataFrame({"targets": [64, 64, 128], "ways": [1, 2, 1], "evictions": [5.5, 0.5, 6.25]}))
    assert plot is not None
    assert (plot.x, plot.y, plot.by) == ("targets", "evictions", "ways")


@pytest.mark.parametrize(
    ("tables", "found"),
    [
        ({"variants": {"variant": ["a", "b"], "makespan_s": [1e-5, 8e-6], "gain": [1.0, 1.25]}},
         "makespan, a 10 µs, makespan, b 8 µs"),
        ({"bench": {"case": ["a", "b"], "engine_ratio": [2.5, None]}}, "as fast as SimGrid 2.5 times"),
        ({"summary": {"subject": ["entries", "bits"], "value": ["18 at most, 17.5 on average", "12 an entry"]}},
         "entries 18 at most"),
        ({"measurement": {"latency": [9.5], "hit_rate": [0.0], "lookups": [0]}}, "latency, cycles 9.5"),
        ({"other": {"a": [1, 2], "b": [3, 4]}}, ""),
    ],
)  # fmt: skip
def test_the_overview_tells_what_matters_most(
    tmp_path: Path, tables: dict[str, dict[str, list[float]]], found: str
) -> None:
    for name, columns in tables.items():
        pd.DataFrame(columns).to_csv(tmp_path / f"{name}.csv", index=False)
    overview = items(result_page(find_results(tmp_path), "x"), "Overview")["All results"]
    assert isinstance(overview, Table)
    assert overview.rows[0][4] == found


@pytest.mark.parametrize(
    "table",
    [
        {"a": []}, {"a": [1]}, {"a": [1, 1], "b": [2, 2]}, {"a": ["x", "y"]}, {"a": [1, 2]},
        {"a": [True, False], "b": ["x", "y"]}, {"a": [[1], [2]], "b": [None, None]},
    ],
)  # fmt: skip
def test_nothing_to_plot(table: dict[str, list[object]]) -> None:
    assert explorer("x", pd.DataFrame(table)) is None


BAD = {
    "empty.csv": (b"", "No columns to parse from file"),
    "latin.csv": (b"a,b\n1,\xe9\n", "is no UTF-8 text"),
    "ragged.csv": (b"a,b\n1,2\n1,2,3\n", "line 3 has 3 columns, not 2"),
    "longer.csv": (b"a,b\n1,2,3\n4,5,6\n", "Length of header"),
    "broken.parquet": (b"PAR1 no", "Parquet"),
    "metadata.json": (b"[1, 2]", "must hold an object, not list"),
    "sub/metadata.json": (b"{", "Expecting"),
    "deep/metadata.json": (b"[" * 100_000, "nested too deeply"),
    "page.json": (b'{"sections": 3}', "holds no page of this version of hopforge"),
    "cut.png": (b"\x89PNG\r\n\x1a\n123", "is no complete PNG picture"),
    "text.png": (b"hello", "is no complete PNG picture"),
}


def test_unreadable_files_are_named_and_the_rest_is_shown(tmp_path: Path) -> None:
    folder = tmp_path / "mixed"
    write_sweep(folder / "good", 0)
    for name, (data, _) in BAD.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(data)
    (folder / "loop").symlink_to(folder)
    (folder / "gone.csv").symlink_to(folder / "nowhere")
    os.mkfifo(folder / "pipe.csv")
    (folder / ".hidden").mkdir()
    (folder / ".hidden" / "x.csv").write_text("")
    (folder / "matrix.csv").write_text("1,2\n3,4\n")
    (folder / "router.sv").write_text("module x; endmodule\n")
    found = find_results(folder)
    assert [result.folder for result in found.sets] == ["good"]
    told = {problem.path: problem.reason for problem in found.problems}
    expected = {name: reason for name, (_, reason) in BAD.items()}
    expected |= {"loop": "a link to a folder", "gone.csv": "No such file", "pipe.csv": "is no file"}
    assert told.keys() == expected.keys()
    for name, reason in expected.items():
        assert reason in told[name], name
    assert found.others == {".csv": 1, ".sv": 1}  # a table without headings is data for another program
    run = CliRunner().invoke(cli.app, ["report", str(folder)])
    assert run.exit_code == 0
    assert "hopforge: not shown: latin.csv: is no UTF-8 text" in run.output
    text = (folder / "report.html").read_text(encoding="utf-8")
    assert "14 files could not be shown" in text
    assert "is no complete PNG picture" in text


def test_csv_stands_in_for_a_broken_parquet(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"no")
    (tmp_path / "a.csv").write_text("x,y\n1,2\n3,4\n")
    found = find_results(tmp_path)
    assert found.sets[0].tables["a"]["y"].tolist() == [2, 4]
    assert [problem.path for problem in found.problems] == ["a.parquet"]


def test_names_that_are_no_text(tmp_path: Path) -> None:
    name = os.fsdecode(b"bad\xff.csv")
    (tmp_path / name).write_text("x,y\n1,2\n3,5\n")
    (result,) = find_results(tmp_path).sets
    assert list(result.tables) == ["bad\\udcff"]
    assert "bad\\udcff" in render(result_page(find_results(tmp_path), "x"))


def test_files_of_an_earlier_run_are_told_and_not_shown(tmp_path: Path) -> None:
    table = pd.DataFrame({"load": [0.1, 0.2], "latency": [1.0, 2.0]})
    metadata = {"command": ["hopforge", "net", "a.yml"], "files": ["new.csv", "new.parquet", "metadata.json"]}
    write_set(tmp_path / "r", {"new": table, "old": table}, metadata)
    (tmp_path / "r" / "old.png").write_bytes(b"no picture")
    found = find_results(tmp_path)
    (result,) = found.sets
    assert (list(result.tables), result.pictures) == (["new"], {})
    assert found.unlisted == ["r/old.parquet", "r/old.csv", "r/old.png"]
    assert "not shown: r/old.parquet, r/old.csv, r/old.png" in render(result_page(found, "c"))
    (tmp_path / "r" / "cosim.json").write_text('{"result": {}}')  # of a command that lists nothing
    assert sorted(find_results(tmp_path).sets[0].tables) == ["new", "old"]


def test_facts_are_not_what_columns_mean(tmp_path: Path) -> None:
    metadata = {"command": ["hopforge", "net", "a.yml"], "digest": "0a1b", "columns": {"new": {"load": {"unit": "1"}}}}
    write_set(tmp_path / "r", {"new": pd.DataFrame({"load": [0.1, 0.2]})}, metadata)
    text = render(result_page(find_results(tmp_path), "c"))
    facts = text[text.index("What the run wrote about itself") :]
    assert ("0a1b" in facts, "columns.new" in text) == (True, False)
    assert '<table class="pair">' in facts  # wraps on a phone


def test_results_of_python_are_what_their_kind_says(tmp_path: Path) -> None:
    metadata = {"command": ["hopforge.sweep(hopforge.load('a.yml'))"], "kind": "sweep"}
    write_set(tmp_path / "r", {"curve": curve(0.0)}, metadata)
    assert find_results(tmp_path).sets[0].kind == "sweep"


def test_a_picture_of_a_network_names_its_command_and_leaves_other_formats(tmp_path: Path) -> None:
    config = parse_config("name: ring\ntopology: {kind: torus, radices: [4]}\n")
    base, command = tmp_path / "ring" / "topology" / "ring", ["hopforge", "topology", "ring.yml", "--export", "png"]
    for form in ("edges", "png", "png"):
        with said_command(command, "topology"):
            export_file(config, form, None, base)
    (found,) = find_results(tmp_path).sets
    assert (found.kind, found.command) == ("topology", "hopforge topology ring.yml --export png")
    assert set(found.pictures) == {"ring.png"} and base.with_suffix(".edges").is_file()
    assert export_file(config, None, tmp_path / "mine" / "ring.png", base).parent.name == "mine"
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["ring.png"]  # where the user wants it, alone


def test_metadata_with_what_is_no_character(tmp_path: Path) -> None:
    write_set(tmp_path / "r", {"curve": curve(0.0)}, {})
    (tmp_path / "r" / "metadata.json").write_text('{"command": ["hopforge", "net", "\\ud800.yml"], "\\udfff": 1}')
    assert b"ud800.yml" in render(result_page(find_results(tmp_path), "c")).encode("utf-8")


def test_a_row_of_lookups_without_a_hit_rate_is_shown(tmp_path: Path) -> None:
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "t.csv").write_text("lookups,x\n0,7\n")
    assert "lookups" in render(result_page(find_results(tmp_path), "c"))


def test_tables_of_others_do_not_break_the_page(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"when,huge,mixed,</script>\n2024-01-01,{'9' * 400},1,inf\n,,x,-inf\n")
    frame = pd.DataFrame({"list": [[1], [2, 3]], "when": pd.to_datetime(["2024-01-01", None]), "n": [1, None]})
    frame.to_parquet(tmp_path / "b.parquet")
    (tmp_path / "metadata.json").write_text('{"command": 3, "huge": ' + "9" * 400 + ', "nan": NaN, "config": [1]}')
    (result,) = find_results(tmp_path).sets
    assert result.command == ""
    text = render(result_page(find_results(tmp_path), "x"))
    assert "No file here says which command made it." in text
    assert "2024-01-01" in text
    assert text.count("</script>") == text.count("<script")


def test_the_page_is_the_same_again_and_elsewhere(results: Path, tmp_path: Path) -> None:
    copy = tmp_path / "build"
    shutil.copytree(results, copy)
    first = CliRunner().invoke(cli.app, ["report", str(copy)])
    assert first.exit_code == 0, first.output
    text = (copy / "report.html").read_text(encoding="utf-8")
    assert CliRunner().invoke(cli.app, ["report", str(copy)]).exit_code == 0  # its own page is no result
    assert (copy / "report.html").read_text(encoding="utf-8") == text
    assert render(result_page(find_results(copy, copy / "report.html"), "x")) == render(
        result_page(find_results(results), "x")
    )
    assert [path.name for path in copy.iterdir() if path.name.startswith(".")] == []


def test_nothing_foreign_is_overwritten(results: Path, tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    target.write_text("<p>mine</p>")
    run = CliRunner().invoke(cli.app, ["report", str(results), "-o", str(target)])
    assert isinstance(run.exception, UserError)
    assert str(run.exception) == (
        f"{target}: holds XML, not a page of hopforge, and is not overwritten; name another place, or add --force"
    )
    assert target.read_text() == "<p>mine</p>"


def test_mistakes(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "empty").mkdir()
    for folder, words in (
        (tmp_path / "none", "no such folder"),
        (tmp_path / "file", "is no folder"),
        (tmp_path / "empty", "no results of hopforge below it"),
    ):
        run = CliRunner().invoke(cli.app, ["report", str(folder)])
        assert isinstance(run.exception, UserError)
        assert words in str(run.exception)
    assert list((tmp_path / "empty").iterdir()) == []


def test_pages_of_runs_are_shown_again(tmp_path: Path) -> None:
    table = Table("t", [Column("a", 2, bar=True)], [[1.5], [None]], "c", "x")
    bars = Figure("f", [{"type": "bar", "x": [1], "y": np.array([2.0])}], {"xaxis": {}}, command="y")
    explore = Explorer("e", {"p": [1, 2], "q": [3, 4]}, "p", "q", x_choices=["p"], y_choices=["q"])
    section = Section(
        "One", "text", [Fact("l", "v", "n")], [table, bars, explore, Picture("p", b"123"), Listing("l", "x")]
    )
    page = Report("title", "summary", [section], {"k": "v"})
    write_page_data(page, tmp_path / "page.json", ["inner"])
    again, covers = page_from_data(json.loads((tmp_path / "page.json").read_text()))
    assert render(again) == render(page)
    assert covers == ("inner",)
    write_sweep(tmp_path / "inner", 0)
    assert render(result_page(find_results(tmp_path), "x")) == render(page)
    write_sweep(tmp_path / "other", 0)
    titles = [one.title for one in result_page(find_results(tmp_path), "x").sections]
    assert titles == ["At a glance", "Overview", "Side by side", ".: One", "other (sweep)"]


@pytest.mark.parametrize(
    "content", [None, [], {}, {"sections": [{}]}, {"title": 1, "summary": "", "sections": [], "provenance": {}}]
)
def test_data_that_are_no_page(content: object) -> None:
    with pytest.raises(ValueError, match="holds no page of this version of hopforge"):
        page_from_data(content)


def test_what_the_metadata_may_say_of_the_command() -> None:
    assert ResultSet("x", {"command": ["hopforge", "bench", "net", "a b"]}).command == "hopforge bench net 'a b'"
    assert ResultSet("x", {"command": ["hopforge", "bench", "net"]}).kind == "bench net"
    assert ResultSet("x", {"command": [1]}).kind == "tables"
    old = ResultSet("x", {"name": "lookup.fig4.5", "assumptions": [], "seed": 3})
    assert old.command == "hopforge reproduce lookup.fig4.5 --seed 3"


def test_explorers_are_checked() -> None:
    with pytest.raises(ValueError, match="columns must have one length"):
        Explorer("t", {"a": [1], "b": []}, "a", "b")
    with pytest.raises(ValueError, match=r"'c' must be one of the columns \['a'\]"):
        Explorer("t", {"a": [1]}, "a", "c")
    with pytest.raises(ValueError, match="style must be one of lines, markers, bars, not 'pie'"):
        Explorer("t", {"a": [1]}, "a", "a", style="pie")


BROWSER_SCRIPT = """
<script>
window.addEventListener("load", function () { setTimeout(function () {
  var box = document.querySelector(".axes"), plot = document.getElementById("figure-" + box.dataset.plot), told = {};
  function set(name, value) {
    var control = box.querySelector("[name=" + name + "]");
    if (control.type === "checkbox") { control.checked = value; } else { control.value = value; }
    control.dispatchEvent(new Event("change", { bubbles: true }));
  }
  function shown() { return plot.data.map(function (trace) { return [trace.name, trace.y]; }); }
  told.atFirst = shown();
  set("y", "accepted"); told.other = plot.data[0].y; told.title = plot.layout.yaxis.title.text;
  set("by", ""); told.together = plot.data.length;
  set("style", "bars"); told.style = plot.data[0].type;
  set("logy", true); told.axis = plot.layout.yaxis.type;
  told.theme = document.documentElement.dataset.theme;
  document.getElementById("theme").click();
  told.ink = plot.layout.font.color === getComputedStyle(document.documentElement).getPropertyValue("--ink").trim();
  told.overflow = document.documentElement.scrollWidth > window.innerWidth;
  told.errors = window.failures;
  document.body.innerHTML = "<pre id=told>" + JSON.stringify(told) + "</pre>";
}, 500); });
</script></body>"""


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium (make setup installs it)")
@pytest.mark.parametrize(("width_px", "scheme"), [(500, "dark"), (1200, "light")])
def test_in_a_browser(results: Path, tmp_path: Path, width_px: int, scheme: str) -> None:
    text = render(result_page(find_results(results), "hopforge report build")).replace(
        "<script>",
        "<script>window.failures=[];window.onerror=function(m){window.failures.push(m);};</script><script>",
        1,
    )
    page = tmp_path / "report.html"
    page.write_text(text.replace("</body>", BROWSER_SCRIPT), encoding="utf-8")
    run = subprocess.run(
        ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-sync", "--disable-background-networking", "--disable-component-update",
         f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={width_px},1200",
         f"--blink-settings=preferredColorScheme={['dark', 'light'].index(scheme)}",
         "--virtual-time-budget=15000", "--dump-dom", page.as_uri()],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    told = json.loads(re.search(r'<pre id="told">(.*?)</pre>', run.stdout, re.DOTALL)[1])  # type: ignore[index]
    assert told == {
        "atFirst": [
            ["sweep/case2 a", [11, 12, None]], ["sweep/case2 b", [13, 14, None]],
            ["sweep/case10 a", [21, 22, None]], ["sweep/case10 b", [23, 24, None]],
        ],
        "other": [0.1, 0.2, 0.25], "title": "accepted, flits per host and cycle", "together": 1, "style": "bar",
        "axis": "log", "theme": scheme, "ink": True, "overflow": False, "errors": [],
    }  # fmt: skip
