"""Rates of input-output-queued routers are counted in the time of a packet on a link: units say so in every result."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from hopforge.cli import app
from hopforge.model.output.column_notes import all_notes, column_notes

FILE = """
name: rates
topology: {{kind: mesh, radices: [2, 2]}}
router: {{model: {model}, vcs: 2, {more}}}
routing: {{algorithm: dor}}
traffic: {{packet_flits: 1}}
simulation: {{load: 0.2, loads: [0.1, 0.2], warmup_cycles: 100, min_cycles: 1000, max_cycles: 1000}}
"""
MODELS = {"input_queued": "buffer_flits: 4", "input_output_queued": "buffer_flits: 4, output_buffer_flits: 4"}
COMMANDS = {
    "net": (["net", "FILE"], {"measurement": ["load", "accepted"], "channels": ["load"]}),
    "sweep": (
        ["sweep", "FILE", "--workers", "1"],
        {"runs": ["load", "accepted", "channel_load_max"], "curve": ["accepted"]},
    ),
    "series": (["series", "FILE"], {"series": ["load", "accepted"]}),
}


def units_of(folder: Path) -> dict[str, dict[str, dict[str, str]]]:
    columns: dict[str, dict[str, dict[str, str]]] = json.loads((folder / "metadata.json").read_text())["columns"]
    return columns


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("model", MODELS)
def test_units_of_rates_name_the_time_that_is_counted(tmp_path: Path, model: str, command: str) -> None:
    path, out = tmp_path / "net.yml", tmp_path / "out"
    path.write_text(FILE.format(model=model, more=MODELS[model]))
    words, tables = COMMANDS[command]
    said = CliRunner().invoke(app, [*(str(path) if w == "FILE" else w for w in words), "-o", str(out)])
    assert said.exit_code == 0, said.output
    time, other = ("flit_ns", "cycle") if model == "input_output_queued" else ("cycle", "flit_ns")
    found = units_of(out)
    for table, columns in tables.items():
        for column in columns:
            assert found[table][column]["unit"].startswith("flits per "), (table, column)
            assert found[table][column]["unit"].endswith(time), (table, column)
    rates = [note["unit"] for of in found.values() for note in of.values() if note["unit"].startswith("flits per ")]
    assert not [unit for unit in rates if unit.endswith(other)]
    if command == "net":
        assert f"flits per host and {time}" in " ".join(said.output.split())
        assert f"flits per {time}" in " ".join(said.output.split())


def test_units_are_replaced_by_column_before_that_of_the_note() -> None:
    units: dict[str, Any] = {"flits per host and cycle": "flits per host and flit_ns", "accepted": "own"}
    found = column_notes("curve", ["load", "accepted", "latency"], units)
    assert [note.unit for note in found.values()] == ["flits per host and flit_ns", "own", "cycles"]


def test_all_rates_of_the_notes_are_known() -> None:
    """A new unit of rates must be told for input-output-queued routers, too."""
    rates = {note.unit for note in all_notes().values() if note.unit.startswith("flits per ")}
    assert {unit for unit in rates if unit.endswith("cycle")} == {"flits per host and cycle", "flits per cycle"}


@pytest.mark.parametrize("command", ["net", "series", "sweep"])
def test_packet_routers_count_no_flits(tmp_path: Path, command: str) -> None:
    """Their loads are factors of the load that saturates the bisection, or shares of the time of a link."""
    path, out = tmp_path / "net.yml", tmp_path / "out"
    path.write_text(
        "name: rates\ntopology: {kind: torus, radices: [4, 4]}\nrouter: {model: packet}\nrouting: {algorithm: abr}\n"
        "packet: {messages: 4}\nsimulation: {load: 0.2, loads: [0.2], series_bins: 8}\n"
    )
    more = ["--workers", "1"] if command == "sweep" else []
    said = CliRunner().invoke(app, [command, str(path), *more, "-o", str(out)])
    assert said.exit_code == 0, said.output
    tables = units_of(out)
    units = {f"{table}.{name}": note["unit"] for table, of in tables.items() for name, note in of.items()}
    assert not [name for name, unit in units.items() if "flit" in unit]
    table = {"net": "measurement", "series": "series", "sweep": "curve"}[command]
    assert {units[f"{table}.{name}"] for name in ("load", "accepted")} == {"1"}
    assert "in units of the load 1" in tables[table]["accepted"]["meaning"]
