"""What columns mean: in the schema of Parquet, in metadata.json for CSV, on the page; every table of every command."""

import csv
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pyarrow import parquet

import hopforge as hf
from hopforge.model.output import column_page
from hopforge.model.output.column_notes import ANY_TABLE, all_notes, column_notes
from hopforge.model.output.results import write_metadata, write_tables

ROOT = Path(__file__).parents[3]
SHORT = "warmup_cycles: 100, min_cycles: 1000, max_cycles: 1000, series_bins: 8, loads: [0.1], load: 0.1"
RUNS = {
    "simulate": f"topology: {{kind: mesh, radices: [3, 2]}}\nsimulation: {{{SHORT}}}\n",
    "series": f"topology: {{kind: mesh, radices: [3, 2]}}\nsimulation: {{{SHORT}}}\n",
    "hits": "topology: {kind: torus, radices: [3, 3]}\nworkload: {kind: uniform, packets_per_host: 20}\n",
    "bounds": "topology: {kind: hyperx, sizes: [3, 3]}\ntraffic: {pattern: tornado}\n",
    "route": "topology: {kind: layout_random, n: 4, degree: 3, length: 2}\ntables: {scheme: loren, t_max: 9}\n",
}


def test_every_note_has_a_meaning_and_a_known_unit() -> None:
    notes = all_notes()
    assert len(notes) > 200
    assert {note.unit for note in notes.values()} <= {
        "", "1", "%", "cycles", "ns", "s", "J", "nJ", "bytes", "flits", "flits per cycle", "flits per host and cycle",
        "million packets per second", "Gbit/s", "mm²", "W", "unit of the schedule", "ms", "MiB", "GiB", "1/s",
        "million/s",
    }  # fmt: skip
    assert [key for key, note in notes.items() if not note.meaning] == []
    assert {table for table, _ in notes} > {ANY_TABLE, "measurement", "runs", "curve", "classes", "comparison"}


def test_no_note_is_cut_at_a_comma_without_quotes() -> None:
    with (ROOT / "model/output/column_notes.csv").open(encoding="utf-8", newline="") as file:
        assert {len(row) for row in csv.reader(file)} == {4}
    assert [key for key, note in all_notes().items() if note.meaning.count("(") != note.meaning.count(")")] == []


def test_the_page_is_current() -> None:
    page = (ROOT / "docs" / "definitions" / "columns.md").read_text(encoding="utf-8")
    assert page == column_page.text().rstrip() + "\n", "make docs"


def test_what_is_derived_of_a_column_has_its_unit() -> None:
    found = column_notes("measurement", ["latency", "latency_p99", "network_latency_std", "hop", "latency_p98"])
    assert list(found) == ["latency", "latency_p99", "network_latency_std"]
    assert {note.unit for note in found.values()} == {"cycles"}
    assert column_notes("link_loads", ["frame_12"])["frame_12"].unit == "flits per cycle"
    assert column_notes("series", ["time"], {"time": "µs"})["time"].unit == "µs"
    assert column_notes("program", ["makespan"])["makespan"].unit == "cycles"


@pytest.mark.parametrize("frame", [True, False])
def test_files_tell_units_and_meanings(tmp_path: Path, frame: bool) -> None:
    columns = {"load": np.array([0.1]), "latency": np.array([20.0]), "mine": np.array([1])}
    write_tables(tmp_path, {"measurement": pd.DataFrame(columns) if frame else columns})
    write_metadata(tmp_path, {"seed": 1})
    held = parquet.read_schema(tmp_path / "measurement.parquet").metadata
    units = {"load": "flits per host and cycle", "latency": "cycles"}
    assert json.loads(held[b"units"]) == units
    assert pd.read_parquet(tmp_path / "measurement.parquet").attrs["units"] == units
    beside = json.loads((tmp_path / "metadata.json").read_text())["columns"]["measurement"]
    assert {name: note["unit"] for name, note in beside.items()} == units
    assert all(note["meaning"] for note in beside.values())


@pytest.mark.parametrize("function", RUNS)
def test_every_column_of_a_run_is_explained(function: str, tmp_path: Path) -> None:
    result = getattr(hf, function)(hf.loads(f"name: t\n{RUNS[function]}"), progress=False)
    result.write(tmp_path)
    beside = json.loads((tmp_path / "metadata.json").read_text())["columns"]
    tables = result.tables
    assert tables
    for name, table in tables.items():
        assert [column for column in table if column not in column_notes(name, table)] == [], name
        assert (tmp_path / f"{name}.csv").exists() is (name in beside), name
