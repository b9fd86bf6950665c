"""A function and the command of the same purpose give the same: figures, tables, pictures, files, warnings."""

import json
import warnings
from pathlib import Path

import pandas as pd
import pytest
from amaranth.hdl import UnusedElaboratable
from typer.testing import CliRunner

import hopforge as hf
from hopforge.cli import app

MESH = """\
name: mesh
topology: {kind: mesh, radices: [4, 4]}
router: {vcs: 2}
workload: {kind: npb, benchmark: is, class: S, ranks: 4}
simulation: {load: 0.2, loads: [0.1, 0.4], min_cycles: 1000, max_cycles: 1000, series_bins: 8}
"""
TORUS = """\
name: torus
topology: {kind: torus, radices: [4, 4]}
router: {model: packet}
routing: {algorithm: ofr}
packet: {messages: 2}
simulation: {load: 0.2}
"""
PLANE = """\
name: plane
topology: {kind: mesh, radices: [2, 2]}
traffic: {flit_bytes: 8}
collective_plane: {words: [2]}
"""
GRAPH = """\
name: graph
topology: {kind: random_regular, routers: 16, degree: 4}
tables: {scheme: loren, patterns: 2}
"""
CLOCKWISE = """\
import numpy as np
from hopforge.model.routing import RoutingPlan, candidate, relation


def clockwise(router, in_port, in_vc, packet, net, table, memory, out):
    out[0] = candidate(0 if packet.dst == router else 1, table[0])
    return 1


def prepare(topology, vcs, options):
    return RoutingPlan(relation(clockwise), np.array([(1 << vcs) - 1], np.int32), max_candidates=1)
"""


def files(folder: Path) -> dict[str, bytes]:
    """What a command wrote, but for how it was called and how long it took."""
    found = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for name in list(found):
        if name.startswith(("times", ".finished", "runs/")):
            del found[name]
        elif name == "metadata.json":
            known = json.loads(found[name])
            del known["command"]
            known.pop("kind", None)  # Python says it, the command is in `command`
            found[name] = json.dumps(known).encode()
    return found


def commanded(words: list[str], text: str, folder: Path) -> tuple[str, str, dict[str, bytes]]:
    """Run a command; returns what it shows, what it says, what it writes."""
    folder.mkdir(exist_ok=True)
    (folder / "c.yml").write_text(text)
    where = words.index("CONFIG")
    words = [*words[:where], str(folder / "c.yml"), *words[where + 1 :], "-o", str(folder / "out")]
    done = CliRunner(env={"COLUMNS": "500"}).invoke(app, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout, done.stderr, files(folder / "out")


CASES = [
    (["net", "CONFIG", "--load", "0.3", "--seed", "5", "--plots"], MESH, "simulate", {"load": 0.3, "seed": 5}),
    (["net", "CONFIG", "--plots"], TORUS, "simulate", {}),
    (["net", "CONFIG", "--plots"], MESH + "traffic: {source: program}\n", "simulate", {}),
    (["series", "CONFIG"], MESH, "series", {}),
    (["sweep", "CONFIG", "--workers", "1"], MESH, "sweep", {"workers": 1}),
    (["hits", "CONFIG"], MESH, "hits", {}),
    pytest.param(["hits", "CONFIG", "--no-bounds", "--refill", "1", "--tcam-cycles", "4"], MESH, "hits", {
        "bounds": False, "refill": 1, "tcam_cycles": 4}, marks=pytest.mark.study),
    (["app", "CONFIG"], MESH, "app", {}),
    (["bounds", "CONFIG"], MESH, "bounds", {}),
    (["route", "CONFIG"], GRAPH, "route", {}),
    (["wavelengths", "CONFIG"], MESH + "wavelengths: {lanes: [1, 2], spread: [rr]}\n", "wavelengths", {}),
    (["collectives", "CONFIG"], PLANE, "collectives", {}),
]


@pytest.mark.parametrize(("words", "text", "function", "options"), CASES, ids=lambda value: str(value)[:30])
def test_the_same_as_the_command(
    tmp_path: Path, words: list[str], text: str, function: str, options: dict[str, object]
) -> None:
    shown, said, written = commanded(words, text, tmp_path / "command")
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", UnusedElaboratable)  # what other tests left, whenever Python clears it away
        found = getattr(hf, function)(hf.load(tmp_path / "command" / "c.yml"), progress=False, **options)
        assert files(found.write(tmp_path / "python", plots=True)) == written
    assert [f"hopforge: {one.message}\n" for one in warned] == said.splitlines(keepends=True)
    assert all(one.category is hf.HopforgeWarning and one.filename == __file__ for one in warned)
    for subject, value in found.rows:
        if subject not in {"processor time", "cycles"}:  # which tell how long it took
            assert value in shown, subject
    assert len(written) >= 3 and found.configuration.name in text


FILES = [
    ("jobs", "a.swf", "1 0 0 100 3\n2 0 0 50 4\n3 10 0 20 8\n",
     ["--dims", "4x2", "--placement", "block", "--scheduler", "easy", "--interference", "--seed", "3"],
     {"dims": (4, 2), "placements": ["block"], "schedulers": ["easy"], "interference": True, "seed": 3}),
    ("jobs", None, "", ["--generate", "batch", "--count", "20", "--nodes", "32", "--plots"],
     {"generate": "batch", "count": 20, "dims": 32}),
    ("rules", "r.txt", "10.0.0.0/8 1\n10.1.0.0/16 2\n0.0.0.0/0 0\n",
     ["--size", "2", "--policy", "mep", "--lookups", "500", "--updates", "20", "--flows", "64"],
     {"sizes": [2], "policies": ["mep"], "lookups": 500, "updates": 20, "flows": 64}),
]  # fmt: skip


@pytest.mark.parametrize(("function", "file", "text", "words", "options"), FILES, ids=["log", "drawn", "rules"])
def test_the_same_as_a_command_with_a_file(
    tmp_path: Path, function: str, file: str | None, text: str, words: list[str], options: dict[str, object]
) -> None:
    if file is not None:
        (tmp_path / file).write_text(text)
    names = [] if file is None else [str(tmp_path / file)]
    command = [function, *names, *words, "-o", str(tmp_path / "out")]
    done = CliRunner(env={"COLUMNS": "500"}).invoke(app, command, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    found = getattr(hf, function)(*names, progress=False, **options)
    plots = function == "rules" or "--plots" in words
    assert files(found.write(tmp_path / "python", plots=plots)) == files(tmp_path / "out")
    assert len(found.table) and all(value in done.stdout for _, value in found.rows)
    assert found.values and repr(found).startswith(f"<hopforge.{function}(")
    with pytest.raises(hf.UserError, match="this result has no configuration"):
        _ = found.configuration


def test_what_jobs_and_rules_refuse(tmp_path: Path) -> None:
    for words, options in [
        ("name either a log or generate", {}),
        ("generate needs a machine: dims", {"generate": "all"}),
        ("generate must be one of all, batch, interactive, typed, not 'x'", {"generate": "x", "dims": 16}),
        ("placements must be some of linear, .*, not 'linear'", {"generate": "all", "placements": "linear"}),
        (r"schedulers must be some of fcfs, easy, not \['lifo'\]", {"generate": "all", "schedulers": ["lifo"]}),
        (r"dims must be numbers from 1, not \(4, 0\)", {"generate": "all", "dims": (4, 0)}),
        ("count must be at least 1, not 0", {"generate": "all", "dims": 16, "count": 0}),
    ]:
        with pytest.raises(hf.UserError, match=words):
            hf.jobs(progress=False, **options)  # type: ignore[arg-type]
    (tmp_path / "r.txt").write_text("10.0.0.0/99 1\n")
    with pytest.raises(hf.UserError, match=r"r\.txt:1"):
        hf.rules(tmp_path / "r.txt", progress=False)


@pytest.mark.parametrize(("text", "function"), [(MESH, "simulate"), (MESH, "hits"), (MESH, "app")])
def test_tables_and_pictures_are_those_of_the_files(tmp_path: Path, text: str, function: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = getattr(hf, function)(hf.loads(text), progress=False)
    found.write(tmp_path, plots=True)
    tables = {path.stem: pd.read_parquet(path) for path in tmp_path.glob("*.parquet")}
    assert found.tables.keys() == tables.keys() and len(tables) > 2
    for name, table in found.tables.items():
        pd.testing.assert_frame_equal(table, tables[name])
        assert len(table)
    assert any(found.table is table for table in found.tables.values())
    pictures = {path.stem: path.read_bytes() for path in tmp_path.glob("*.png")}
    assert {name: picture.png for name, picture in found.pictures.items()} == pictures
    html = found._repr_html_()
    assert f"<td style=\"text-align:left\">{found.rows[1][1]}</td>" in html
    if pictures:
        saved = found.plot().save(tmp_path / "new" / "plot.png")
        assert saved.read_bytes() in pictures.values() and "data:image/png;base64," in html
        assert found.plot()._repr_png_() == saved.read_bytes() and "PNG" not in repr(found.plot())
    else:
        with pytest.raises(hf.UserError, match="this result has no picture"):
            found.plot()


def test_figures_have_names_and_types() -> None:
    found = hf.simulate(hf.loads(MESH.replace("workload", "# workload")), load=0.1, progress=False)
    row = found.table.iloc[0]
    assert (found.latency, found.accepted, found.hops) == (row["latency"], row["accepted"], row["hops"])
    assert (found.saturated, found.latency_interval) == (False, row["latency_interval"])
    assert found["latency_p99"] == row["latency_p99"] and found.values["stop"] == "max_cycles"
    with pytest.raises(KeyError, match="lifetime_ns; known: load, seed, saturated"):
        found["lifetime_ns"]
    with pytest.raises(hf.UserError, match="picture must be one of channels, not 'map'"):
        found.plot("map")
    assert f"latency {found.latency:.2f} ±" in " ".join(repr(found).split())
    command = "hopforge.simulate(hopforge.loads("
    assert repr(found).startswith(f"<{command}")


def test_a_sweep_goes_on_where_it_was(tmp_path: Path) -> None:
    config = hf.loads(MESH.replace("workload", "# workload"))
    seen: list[tuple[int, int]] = []
    first = hf.sweep(config, output=tmp_path, workers=1, progress=False)
    again = hf.sweep(config, output=tmp_path, workers=1, progress=lambda *counts: seen.append(counts))
    assert seen == [(2, 2)], "nothing was computed again"
    assert [first.rows, repr(first).split(")>")[1]] == [again.rows, repr(again).split(")>")[1]]
    assert (tmp_path / "curve.csv").exists()
    assert "0.4" in repr(first) and "<td>0.4</td>" in first._repr_html_()


@pytest.mark.parametrize("words", [["router", "--router", "5"], ["tables"]], ids=" ".join)
def test_the_same_files_as_gen(tmp_path: Path, words: list[str]) -> None:
    text = GRAPH if words == ["tables"] else MESH
    _, said, written = commanded(["gen", words[0], "CONFIG", *words[1:]], text, tmp_path / "command")
    options = {"router": 5} if words[0] == "router" else {}
    if said:
        with pytest.warns(hf.HopforgeWarning, match=said.removeprefix("hopforge: ").rstrip()):
            found = hf.generate(tmp_path / "command" / "c.yml", words[0], **options)
    else:
        found = hf.generate(tmp_path / "command" / "c.yml", words[0], **options)
    assert dict(found.files) == written and len(written) > 2
    assert files(found.write(tmp_path / "python")) == written
    if words == ["tables"]:
        with pytest.raises(hf.UserError, match="no Verilog is among"):
            _ = found.verilog
    else:
        assert "endmodule" in found.verilog


def test_what_cannot_be_generated_is_refused() -> None:
    config = hf.loads(MESH)
    known = "lookup, router, network, tables, q-table, collectives, rule-cache"
    with pytest.raises(hf.UserError, match=f"what must be one of {known}, not 'chip'"):
        hf.generate(config, "chip")
    with pytest.raises(hf.UserError, match="router is for router only, not for lookup"):
        hf.generate(config, "lookup", router=1)
    known = "lookup, router, network, q_table, service_host, collectives, rule_cache"
    with pytest.raises(hf.UserError, match=f"part must be one of {known}, not 'chip'"):
        hf.cosim(config, "chip")
    with pytest.raises(hf.UserError, match="waves needs output"):
        hf.cosim(config, waves=True)
    with pytest.raises(hf.UserError, match="lookups is for part lookup or rule_cache only, not part router"):
        hf.cosim(config, "router", lookups=3, progress=False)


def test_failures_are_arguments_of_route() -> None:
    found = hf.route(hf.loads(GRAPH), fail_switch=[3], progress=False)  # type: ignore[list-item]
    assert "fail_switch=['3']" in repr(found) and found["failed"]
    with pytest.raises(hf.UserError, match="5-5"):
        hf.route(hf.loads(GRAPH), fail=["5-5"])
    with pytest.raises(TypeError, match="fail must be a list of texts, not '0-1'"):
        hf.route(hf.loads(GRAPH), fail="0-1")


def test_a_network_that_can_deadlock_is_an_exception(tmp_path: Path) -> None:
    (tmp_path / "clockwise.py").write_text(CLOCKWISE)
    ring = hf.loads(
        "name: r\ntopology: {kind: torus, radices: [5]}\nrouting: {algorithm: file, file: clockwise.py}\n",
        folder=tmp_path,
    )
    with pytest.raises(hf.DeadlockError, match="can deadlock") as caught:
        hf.simulate(ring, progress=False)
    assert len(caught.value.mistakes) == 1


def test_what_a_run_did_not_measure_is_no_attribute() -> None:
    found = hf.simulate(hf.loads(TORUS), progress=False)
    with pytest.raises(AttributeError, match="this run did not measure latency; known: load, seed, complete, lifetime"):
        _ = found.latency
    assert not hasattr(found, "saturated") and found["lifetime_ns"] > 0


@pytest.mark.parametrize("routers", ["input_queued", "input_output_queued", "packet"])
def test_hops_are_routers_visited_in_every_router_model(routers: str) -> None:
    packets = "packet: {messages: 4}\n" if routers == "packet" else ""
    text = (
        f"name: five\ntopology: {{kind: torus, radices: [5]}}\nrouter: {{model: {routers}}}\n{packets}"
        f"routing: {{algorithm: {'abr' if packets else 'dor'}}}\ntraffic: {{pattern: tornado}}\n"
        "simulation: {load: 0.05, warmup_cycles: 500, min_cycles: 1000, max_cycles: 1000}\n"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hf.HopforgeWarning)
        found = hf.simulate(hf.loads(text), progress=False)
    assert found.hops == found["hops"] == 3  # two links further on, three routers
    assert ("routers visited", "3.000") in found.rows
