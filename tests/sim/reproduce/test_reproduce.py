"""Reproduced figures: the machinery (resume, interruption, files) and each figure's numbers against its definition."""

import dataclasses
import json
import math

import pandas as pd
import pytest

from hopforge.model.errors import UserError
from hopforge.model.output.plots import new_figure
from hopforge.sim.reproduce import (
    REPRODUCTIONS,
    Comparison,
    Options,
    Reproduction,
    run_reproduction,
    select,
    wanted_point,
)
from hopforge.sim.reproduce.pages import deviation_text, figure_section, paper_text
from hopforge.sim.reproduce.registry import index_by_name, integer, number, pick
from hopforge.sim.reproduce.report import outcome_group

FILES = {"data.csv", "figure.png", "comparison.csv", "metadata.json"}


class Squares:
    """A reproduction of four points that counts what it measures and can be interrupted."""

    def __init__(self):
        self.measured = []
        self.stop_at = None
        self.reproduction = Reproduction(
            "test.squares",
            "Squares",
            "nowhere",
            ("none",),
            points=lambda options: [{"x": x} for x in range(8 if options.full else 4)],
            measure=self.measure,
            compare=lambda data, _options: [Comparison("sum", "", 14.0, float(data["y"].sum()), "")],
            draw=lambda _data, _options: new_figure()[0],
            uses=("liberty",),
        )

    def measure(self, point, options):
        if point["x"] == self.stop_at:
            raise KeyboardInterrupt
        self.measured.append(point["x"])
        return [{"x": point["x"], "y": point["x"] ** 2, "seed": options.seed}]


def test_a_run_writes_four_files_and_keeps_its_points(tmp_path):
    squares = Squares()
    outcome = run_reproduction(squares.reproduction, tmp_path, Options())
    assert {p.name for p in outcome.files} == FILES
    assert {p.name for p in outcome.folder.iterdir()} == FILES | {"points"}
    assert len(list((outcome.folder / "points").iterdir())) == 4
    assert pd.read_csv(outcome.folder / "data.csv")["y"].tolist() == [0, 1, 4, 9]
    comparison = pd.read_csv(outcome.folder / "comparison.csv")
    assert comparison.loc[0, ["paper", "ours", "deviation_percent"]].tolist() == [14, 14, 0]
    metadata = json.loads((outcome.folder / "metadata.json").read_text())
    assert metadata["seed"] == 1
    assert metadata["variant"] == "quick"
    assert len(metadata["program_digest"]) == 64


def test_an_interrupted_run_continues_where_it_was(tmp_path):
    squares = Squares()
    squares.stop_at = 2
    with pytest.raises(KeyboardInterrupt):
        run_reproduction(squares.reproduction, tmp_path, Options())
    assert squares.measured == [0, 1]
    assert not (tmp_path / "test.squares" / "data.csv").exists()
    squares.stop_at = None
    outcome = run_reproduction(squares.reproduction, tmp_path, Options())
    assert squares.measured == [0, 1, 2, 3]
    assert (outcome.points, outcome.resumed_points) == (4, 2)
    # the long variant shares what it has in common with the quick one
    assert run_reproduction(squares.reproduction, tmp_path, Options(full=True)).resumed_points == 4
    assert squares.measured == list(range(8))


def test_another_seed_or_library_is_measured_again(tmp_path):
    squares = Squares()
    library = tmp_path / "a.lib"
    library.write_text("one")
    run_reproduction(squares.reproduction, tmp_path, Options())
    run_reproduction(squares.reproduction, tmp_path, Options(seed=2))
    outcome = run_reproduction(squares.reproduction, tmp_path, Options(liberty=library))
    assert len(squares.measured) == 12
    inputs = json.loads((outcome.folder / "metadata.json").read_text())["inputs"]
    assert inputs["liberty"]["name"] == "a.lib"
    # a figure that takes no library does not care
    bare = dataclasses.replace(squares.reproduction, uses=())
    assert wanted_point(bare, {"x": 1}, Options()).key == wanted_point(bare, {"x": 1}, Options(liberty=library)).key


def test_a_damaged_point_is_measured_again(tmp_path):
    squares = Squares()
    outcome = run_reproduction(squares.reproduction, tmp_path, Options())
    paths = sorted((outcome.folder / "points").iterdir())
    paths[0].write_text('{"point": {"x"')
    paths[1].write_text('{"rows": []}')
    outcome = run_reproduction(squares.reproduction, tmp_path, Options())
    assert outcome.resumed_points == 2
    assert pd.read_csv(outcome.folder / "data.csv")["y"].tolist() == [0, 1, 4, 9]


def test_progress_counts_up_to_the_number_of_points(tmp_path):
    seen = []
    run_reproduction(Squares().reproduction, tmp_path, Options(), lambda _, done, total: seen.append((done, total)))
    assert seen == [(i, 4) for i in range(5)]


def test_mistakes_are_one_line(tmp_path):
    squares = Squares()
    with pytest.raises(UserError, match=r"--liberty: no such file: .*none\.lib$"):
        run_reproduction(squares.reproduction, tmp_path, Options(liberty=tmp_path / "none.lib"))
    with pytest.raises(UserError, match=r"--traces: no such folder: .*none$"):
        run_reproduction(squares.reproduction, tmp_path, Options(traces=tmp_path / "none"))
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"file.*(Not a directory|File exists)"):
        run_reproduction(squares.reproduction, tmp_path / "file", Options())
    assert squares.measured in ([], [0])


def test_selection_by_pattern_is_in_the_order_of_the_table_and_unique():
    chosen = [r.name for r in select(["lookup.fig5.?", "lookup.fig4.10", "lookup.fig4.1*"], REPRODUCTIONS)]
    assert chosen == [n for n in REPRODUCTIONS if n in {*chosen}]
    assert len(chosen) == len(set(chosen)) >= 4
    with pytest.raises(UserError, match=r"no reproduction is named 'figure 9'; known: .*lookup\.fig4\.10, "):
        select(["figure 9"], REPRODUCTIONS)
    with pytest.raises(UserError, match=r"no reproduction is named 'lokup.fig4.10'; did you mean 'lookup.fig4.10'\?$"):
        select(["lokup.fig4.10"], REPRODUCTIONS)
    with pytest.raises(ValueError, match=r"name must be unique, not 'test\.squares' twice"):
        index_by_name([Squares().reproduction], [Squares().reproduction])


def test_every_name_is_its_key_and_says_where_it_comes_from():
    assert sum(name.startswith("lookup.") for name in REPRODUCTIONS) == 18
    for name, reproduction in REPRODUCTIONS.items():
        assert reproduction.name == name
        assert reproduction.source
        assert not name.startswith("lookup.") or reproduction.source.startswith("seed 004")
        assert reproduction.assumptions
        assert reproduction.points(Options())


def test_deviation_and_texts():
    assert Comparison("q", "%", 20.0, 19.0, "").deviation_percent == pytest.approx(-5.0)
    assert deviation_text(Comparison("q", "%", 20.0, 19.0, ""), None) == "−5.0 %"
    assert deviation_text(Comparison("q", "%", 20.0, 19.0, ""), -5.04) == "−5.0 %"  # kept data: of exact values
    for paper, ours, why in (
        (None, 1.0, "no value"),
        (1.0, None, "not measured"),
        (0.0, 1.0, "from 0"),
        (0.0, 0.0, "equal"),
    ):
        missing = Comparison("q", "", paper, ours, "")
        assert missing.deviation_percent is None
        assert deviation_text(missing, None) == why
    for claim, ours, text in (
        ("less than 0.1 %", 0.4521, "+352.1 %"),
        ("less than 0.1 %", 0.078, "kept"),
        ("at most 3.0", 6.0, "+100.0 %"),
        ("at least 4.0", 1.0, "−75.0 %"),
        ("at least 4.0", 5.0, "kept"),
        ("99.7 % to 100 %", 99.7, "kept"),
        ("99.7 % to 100 %", 49.85, "−50.0 %"),
        ("within 500 µs", 600.0, "+20.0 %"),
        ("smaller area", 4.0, "no number"),
    ):
        assert deviation_text(Comparison("q", "", None, ours, "", claim=claim), None) == text, claim
    assert paper_text(Comparison("q", "Gbps", 0.1, 0.4, "", claim="less than 0.1 %")) == "less than 0.1 %"
    assert paper_text(Comparison("q", "Gbps", 933.0, 1.0, "")) == "933 Gbps"


def test_point_and_table_accessors():
    assert integer({"a": 3}, "a") == 3
    assert number({"a": 3}, "a") == 3.0
    for bad in (True, "3", None):
        with pytest.raises(AssertionError, match="not a number"):
            number({"a": bad}, "a")
    with pytest.raises(AssertionError, match="not an integer"):
        integer({"a": 3.0}, "a")
    with pytest.raises(AssertionError, match="selects 2 rows, not 1"):
        pick(pd.DataFrame({"x": [1, 1], "y": [1, 2]}), "y", x=1)


# --- the formulas' figures


def run(name, tmp_path, **options):
    outcome = run_reproduction(REPRODUCTIONS[name], tmp_path, Options(**options))
    assert outcome.comparisons
    assert (outcome.folder / "figure.png").stat().st_size > 10_000
    assert outcome_group(outcome)
    section = figure_section(outcome.folder / "metadata.json", outcome.folder / "comparison.csv")
    assert sum(line.startswith("| ") for line in section.splitlines()) == len(outcome.comparisons) + 1
    return outcome, pd.read_csv(outcome.folder / "data.csv")


def test_figure_4_10_and_4_11_against_the_written_out_sum(tmp_path):
    for name in ("lookup.fig4.10", "lookup.fig4.11"):
        _, data = run(name, tmp_path)
        assert len(data) >= 18
        for row in data.itertuples():
            base, penalty, conventional = (51, 25, 75) if row.latencies == "consistent" else (51, 10, 60)
            half, nodes = row.radix // 2, row.radix**3
            hits = [row.entries / (nodes - 1)] + [row.entries / (row.radix ** (3 - i) * half) for i in (1, 2, 3)]
            expected = 50.0
            for hops, hit in zip((1, half, half, half), hits, strict=True):
                expected += hops * (base + penalty * (1 - min(1, hit)) + 50)
            assert row.equation_ns == pytest.approx(expected)
            assert row.conventional_ns == (1 + 3 * half) * (conventional + 50) + 50
            assert row.equation_ns >= row.lru_ns >= (1 + 3 * half) * (base + 50) + 50


def test_figure_4_12_against_equation_4_5(tmp_path):
    outcome, data = run("lookup.fig4.12", tmp_path)
    for row in data.itertuples():
        n = row.load_gbps * 1e9 / 672
        expected = {
            "no cache": n * 42e-9 + 0.036,
            "cache, 1 % misses": n * (0.039e-9 + 0.42e-9) + 0.127,
            "cache, 0 % misses": n * 0.039e-9 + 0.127,
        }[row.case]
        assert row.power_w == pytest.approx(expected)
    stated = [c for c in outcome.comparisons if c.unit == "Mpps"]
    assert len(stated) == 3
    assert all(c.deviation_percent == pytest.approx(0) for c in stated)


def test_figure_5_1_separates_the_ports(tmp_path):
    _, data = run("lookup.fig5.1", tmp_path)
    assert set(data["model"]) == {"equation", "lru"}
    at_64 = data[data["radix"] == 64]
    assert (at_64["injection_percent"] > 99.9).all()
    assert (at_64["dimension_1_percent"] > 99.9).all()
    assert (at_64["dimension_4_percent"] == 0).all()
    assert (data[data["radix"] <= 6]["mean_percent"] == 0).all()  # 6⁴ = 1296 nodes fit in 2048 entries


def test_figure_5_2_bounds(tmp_path):
    _, data = run("lookup.fig5.2", tmp_path)
    for row in data.itertuples():
        first, second = max(0, 1 - 512 / row.nodes), max(0, 1 - 8192 / row.nodes)
        assert row.real_serial_gbps == pytest.approx(672 / (0.4 + 4 * first + 25 * second))
        assert row.real_pipelined_gbps == pytest.approx(672 / max(0.4, 4 * first, 25 * second))
    assert math.isclose(data["tcam_25ns_gbps"].iloc[0], 26.88)


# --- conflicts


@pytest.mark.parametrize("ways", [1, 4])
def test_a_point_of_figure_4_5_meets_the_exact_binomial_within_its_error(ways):
    point = {"targets": 512, "ways": ways, "addresses": "random", "trials": 40}
    (row,) = REPRODUCTIONS["lookup.fig4.5"].measure(point, Options())
    error = row["standard_error_percent"]
    assert 0 < error < 2
    assert abs(row["evictions_percent"] - row["expected_percent"]) < 5 * error


@pytest.mark.study
def test_figure_4_5_meets_the_exact_binomial_within_its_error(tmp_path):
    _, data = run("lookup.fig4.5", tmp_path)
    random = data[data["addresses"] == "random"]
    assert len(random) == 20
    wide = random[random["standard_error_percent"] > 0]
    assert len(wide) >= 15
    deviations = (wide["evictions_percent"] - wide["expected_percent"]) / wide["standard_error_percent"]
    assert (deviations.abs() < 5).all()  # rare events have skewed errors
    assert deviations.pow(2).mean() < 3
    contiguous = data[data["addresses"] == "contiguous"]
    assert len(contiguous) == 4
    # addresses from 0 on fill the sets of the default geometry evenly; with 1 way only up to 1024 of them
    assert (contiguous[contiguous["ways"] == 4]["evictions_percent"] == 0).all()


def test_a_point_of_figure_4_6_counts_every_lookup_once():
    figure = REPRODUCTIONS["lookup.fig4.6"]
    small, large = (
        figure.measure({"program": "is.A.64", "entries": entries, "ways": 4}, Options())[0] for entries in (16, 2048)
    )
    for row in (small, large):
        assert row["hits"] + row["compulsory"] + row["capacity"] + row["conflict"] == row["lookups"]
    assert small["compulsory"] == large["compulsory"] > 0
    assert (large["capacity"], large["conflict"]) == (0, 0)
    assert small["capacity"] + small["conflict"] > 0


@pytest.mark.study
def test_figure_4_6_counts_every_lookup_once(tmp_path):
    outcome, data = run("lookup.fig4.6", tmp_path)
    assert set(data["program"]) == {"is.A.64", "ft.A.64"}
    assert (data["hits"] + data["compulsory"] + data["capacity"] + data["conflict"] == data["lookups"]).all()
    # what is compulsory does not depend on the cache, and 2048 entries hold all 64 destinations
    assert (data.groupby("program")["compulsory"].nunique() == 1).all()
    large = data[data["entries"] == 2048]
    assert (large["capacity"] == 0).all()
    assert [c.ours for c in outcome.comparisons if c.quantity.startswith("conflict")] == [0, 0, 0, 0]


def test_more_traces_are_found_by_name(tmp_path):
    (tmp_path / "lu.A.64.tar.xz").write_bytes(b"")
    (tmp_path / "is.A.64.tar.xz").write_bytes(b"")
    points = REPRODUCTIONS["lookup.fig4.6"].points(Options(traces=tmp_path))
    assert list(dict.fromkeys(point["program"] for point in points)) == ["is.A.64", "ft.A.64", "lu.A.64"]


# --- gates (generic ones: no cell library belongs to the project)


def gates(data, **where):
    for key, value in where.items():
        data = data[data[key] == value]
    assert len(data) == 1
    return int(data["gates"].iloc[0])


@pytest.mark.study
def test_reduction_cost_without_a_library_says_how_to_get_areas(tmp_path):
    outcome, data = run("lookup.fig5.23", tmp_path)
    assert data["area_um2"].isna().all()
    areas = [c for c in outcome.comparisons if c.quantity.startswith("area, ")]
    assert len(areas) == 10
    assert all(c.ours is None and "give --liberty" in c.assumption for c in areas)
    assert {c.paper for c in areas} == {300.0, 352.0, 114.0, 165.0, None}
    combinational = data[data["variant"] == "combinational"].set_index("block")["gates"]
    assert combinational["6-cubes only"] < combinational["k-ary n-cubes"] < combinational["all topologies"]
    assert combinational["5-D fat tree"] < combinational["6-cubes only"]


def test_fewer_comparators_are_smaller_and_less_general(tmp_path):
    (by_alias,) = select(["lookup.fig6.2"], REPRODUCTIONS)
    outcome, data = run(by_alias.name, tmp_path)
    assert outcome.reproduction.name == "lookup.table6.1"
    general, special, narrow = data["hardware"]
    assert gates(data, hardware=special) < gates(data, hardware=narrow) < gates(data, hardware=general)
    networks = data.set_index("hardware")["networks"]
    assert networks[general] == "4-ary 12-cube, 8-ary 8-cube, 16-ary 6-cube"
    assert networks[special] == networks[narrow] == "16-ary 6-cube"


@pytest.mark.study
def test_mapping_without_a_cache_grows_with_the_patterns(tmp_path, monkeypatch):
    monkeypatch.setattr("hopforge.sim.reproduce.lookup.direct_mapping._PATTERNS", (1, 2, 4))
    _, data = run("lookup.fig5.30", tmp_path)
    sizes = [gates(data, hardware="without cache", patterns=patterns) for patterns in (1, 2, 4)]
    steps = [(b - a) / more for a, b, more in zip(sizes, sizes[1:], (1, 2), strict=False)]
    assert max(steps) < 2 * min(steps)  # about the same number of gates for every pattern
    assert min(steps) > 25 * 6  # at least a select gate per bit of a pattern's table, besides the registers


def test_cache_cost_adds_memory_and_logic(tmp_path):
    outcome, data = run("lookup.fig4.4", tmp_path)
    assert data["entries"].tolist() == [256, 512, 1024, 2048, 4096, 8192, 16384]
    assert (data["way_access_ns"].diff().dropna() > 0).all()
    at_2048 = data[data["entries"] == 2048].iloc[0]
    assert at_2048["way_access_ns"] == pytest.approx(0.278, abs=0.001)  # the specification's CACTI figures
    assert at_2048["cacti_cache_access_ns"] == pytest.approx(0.395, abs=0.001)
    assert at_2048["cacti_cache_area_mm2"] == pytest.approx(0.127, abs=0.001)
    assert [c.paper for c in outcome.comparisons[:3]] == [0.41] * 3


TINY_LIBERTY = """
library (tiny) {
  delay_model : table_lookup; time_unit : "1ns"; capacitive_load_unit (1, ff); voltage_unit : "1V";
  current_unit : "1mA"; pulling_resistance_unit : "1kohm"; leakage_power_unit : "1nW"; nom_voltage : 1.0;
  nom_temperature : 25.0; nom_process : 1.0; default_max_transition : 1.0;
  input_threshold_pct_rise : 50; input_threshold_pct_fall : 50;
  output_threshold_pct_rise : 50; output_threshold_pct_fall : 50;
  slew_lower_threshold_pct_rise : 30; slew_upper_threshold_pct_rise : 70;
  slew_lower_threshold_pct_fall : 30; slew_upper_threshold_pct_fall : 70;
  %s
}
"""


def tiny_cell(name, area, function, pins, delay):
    table = "".join(
        f'{kind} (scalar) {{ values ("{delay if kind.startswith("cell") else 0.01}"); }} '
        for kind in ("cell_rise", "cell_fall", "rise_transition", "fall_transition")
    )
    inputs = "".join(f"pin ({pin}) {{ direction : input; capacitance : 1.0; }} " for pin in pins)
    arcs = "".join(f'timing () {{ related_pin : "{pin}"; timing_sense : non_unate; {table} }} ' for pin in pins)
    output = f'pin (Y) {{ direction : output; max_capacitance : 100.0; function : "{function}"; {arcs} }}'
    return f"cell ({name}) {{ area : {area}; {inputs} {output} }}"


@pytest.mark.study
def test_a_library_gives_areas_and_delays(tmp_path):
    cells = [
        tiny_cell("BUF", 2.0, "A", "A", 0.02), tiny_cell("INV", 1.0, "!A", "A", 0.01),
        tiny_cell("NAND", 2.0, "!(A & B)", "AB", 0.02),
    ]  # fmt: skip
    flop = (
        'cell (DFF) { area : 8.0; ff (IQ, IQN) { clocked_on : "CK"; next_state : "D"; } '
        "pin (CK) { direction : input; clock : true; capacitance : 1.0; } "
        'pin (D) { direction : input; capacitance : 1.0; } pin (Q) { direction : output; function : "IQ"; } }'
    )
    library = tmp_path / "tiny.lib"
    library.write_text(TINY_LIBERTY % "\n".join([*cells, flop]))
    outcome, data = run("lookup.table6.1", tmp_path, liberty=library)
    assert (data["area_um2"] > 100).all()
    assert (data["area_um2"] <= data["area_of_fastest_um2"]).all()
    assert (data["delay_ns"] > 0.05).all()
    assert {c.unit for c in outcome.comparisons} == {"", "µm²", "ns", "%"}
    assert all("tiny.lib" in c.assumption for c in outcome.comparisons if c.unit == "ns")


# --- the command


def command(arguments, monkeypatch):
    from hopforge import cli

    monkeypatch.setattr("sys.argv", ["hopforge", "reproduce", *arguments])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    return stopped.value.code or 0


def test_list_and_run_and_unknown_name(tmp_path, monkeypatch, capsys):
    assert command(["--list"], monkeypatch) == 0
    listed = capsys.readouterr().out
    assert all(listed.count(f"{name} ") >= 1 for name in REPRODUCTIONS)
    assert max(map(len, listed.splitlines())) <= 80
    flags = listed.partition("\nwith --")[2]  # which figures take which option, two lines or so each
    assert listed.count("\n") - flags.count("\n") <= len(REPRODUCTIONS) + 2
    assert flags.count("\n") <= 12
    assert "…" not in listed
    assert "\nwith --traces: lookup.fig4.6, loren.cache\n" in listed
    page = tmp_path / "page.md"
    assert command(["lookup.fig5.?", "lookup.fig4.12", "-o", str(tmp_path), "--page", str(page)], monkeypatch) == 0
    assert page.read_text().count("\n## lookup.fig") == 3
    assert "`hopforge reproduce 'lookup.fig5.?' lookup.fig4.12 --page FILE`" in page.read_text()
    assert (tmp_path / "lookup.fig5.2" / "figure.png").exists()
    assert command(["lookup.fig0", "-o", str(tmp_path)], monkeypatch) == 2
    complaint = capsys.readouterr().err.strip()
    assert complaint.startswith("hopforge: no reproduction is named 'lookup.fig0'; did you mean 'lookup.fig")
    assert "\n" not in complaint


def test_ctrl_c_says_that_points_are_kept(tmp_path, monkeypatch, capsys):
    squares = Squares()
    squares.stop_at = 1
    monkeypatch.setattr("hopforge.sim.reproduce.REPRODUCTIONS", {"test.squares": squares.reproduction})
    assert command(["test.squares", "-o", str(tmp_path)], monkeypatch) == 130
    output = capsys.readouterr()
    assert "stopped; finished points are kept" in output.out
    assert len(list((tmp_path / "test.squares" / "points").iterdir())) == 1
