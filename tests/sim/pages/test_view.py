"""The viewer: what results give it, what it refuses, and that it works in a real browser."""

import base64
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import hopforge
from hopforge import cli
from hopforge.model.config import parse_config
from hopforge.model.errors import UserError
from hopforge.model.output.results import run_metadata, write_metadata, write_tables
from hopforge.sim.failures.record import FailureRecord
from hopforge.sim.pages.network_view import network_view
from hopforge.sim.pages.view_page import one_result
from hopforge.sim.run.flit_runs import FLIT_RUNS
from hopforge.sim.run.packet_report import write_trace
from hopforge.sim.run.packet_trace import follow, list_packets, slowest
from hopforge.sim.run.time_series import write_series

TORUS = """\
name: small
topology: {kind: torus, radices: [4, 4]}
router: {vcs: 2, buffer_flits: 4}
simulation:
  {load: 0.3, warmup_cycles: 500, min_cycles: 1000, max_cycles: 5000, series_bins: 8}
"""
FAILING = """\
name: small
topology: {kind: mesh, radices: [3, 3]}
routing: {algorithm: up_down}
simulation:
  failures: [{cycle: 100, links: [[0, 1]], detection_cycles: 10, reprogram_cycles: 10, repair_cycles: 100}]
"""
SEVERAL = """\
name: small
topology: {kind: hyperx, sizes: [2, 2, 2]}
tables: {scheme: k_shortest, lmc: 1, layers: fewest}
routing: {algorithm: tables, spread: flow}
"""
KINDS = {"u1": "<u1", "u2": "<u2", "u4": "<u4", "f4": "<f4"}


def numbers(packed: dict[str, str]) -> np.ndarray:
    return np.frombuffer(base64.b64decode(packed["data"]), KINDS[packed["type"]])


def values(measure: dict) -> np.ndarray:
    """Numbers of a measure as the viewer understands them: [frame, link or router]."""
    raw = numbers(measure["values"]).reshape(measure["frames"], -1).astype(float)
    scaled = measure["low"] + raw / measure["top"] * (measure["high"] - measure["low"])
    return np.where(raw > measure["top"], np.nan, scaled)


def of(view: dict, name: str) -> dict:
    (found,) = [measure for measure in view["measures"] if measure["name"] == name]
    return found


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("view") / "build"
    config = parse_config(TORUS)
    net = FLIT_RUNS.net(config, None, None)
    net.run(lambda done, total: None)
    net.write(folder / "net")
    series = FLIT_RUNS.series(config, 0.3, 1)
    found, _ = series.run(lambda done, total: None)
    write_series(config, found, folder / "series")
    packets = list_packets(config, 0.3, 1, 200)
    run, lives = follow(config, 0.3, 1, 200, packets, slowest(packets, 1))
    write_trace(run, lives, packets, folder / "trace")
    for name in ("net", "series", "trace"):  # as the commands would
        metadata = json.loads((folder / name / "metadata.json").read_text())
        write_metadata(folder / name, metadata | {"command": ["hopforge", name, "small.yml"]})
    return folder


def view_of(folder: Path) -> dict:
    return network_view(one_result(folder, folder / "view.html"))


def test_net_gives_loads_and_filled_buffers(results: Path) -> None:
    view = view_of(results / "net")
    channels = pd.read_parquet(results / "net" / "channels.parquet")
    buffers = pd.read_parquet(results / "net" / "buffers.parquet")
    assert (view["routers"], view["channels"], view["hosts"]) == (16, 64, 16)
    assert numbers(view["from"]).tolist() == channels["router"].tolist()
    load = of(view, "load")
    assert load["low"] == 0.0
    assert channels["load"].max() <= load["high"] < 2 * channels["load"].max()
    assert values(load)[0] == pytest.approx(channels["load"].to_numpy(), abs=load["high"] / 60_000)
    fill = buffers.groupby("router")[["flits", "places"]].sum()
    measured = values(of(view, "buffers filled"))[0]
    assert measured == pytest.approx((100 * fill["flits"] / fill["places"]).to_numpy(), abs=1e-2)
    assert numbers(view["tables"]["buffers"]["places"]).tolist() == [4] * len(buffers)


def test_series_gives_a_moment_for_each_bin(results: Path) -> None:
    view = view_of(results / "series")
    bins = pd.read_parquet(results / "series" / "series.parquet")
    assert view["time"]["until"] == bins["time"].tolist()
    load = values(of(view, "load"))
    assert load.shape == (8, 64)
    assert load.mean(axis=1) == pytest.approx(bins["channel_load_mean"].to_numpy(), abs=1e-3)
    assert load.max(axis=1) == pytest.approx(bins["channel_load_max"].to_numpy(), abs=1e-3)
    assert values(of(view, "flits in buffers")).shape == (8, 16)


def test_trace_gives_the_way_of_a_packet(results: Path) -> None:
    (way,) = view_of(results / "trace")["packets"]
    packets = pd.read_parquet(results / "trace" / "packets.parquet")
    host, number = way["name"].split(".")
    (row,) = packets[(packets["host"] == int(host)) & (packets["number"] == int(number))].to_dict("records")
    stops = way["stops"]
    assert [stops[0]["router"], stops[-1]["router"]] == [-1, -1]
    assert stops[1]["router"] == int(host)  # one host at each router of a torus
    assert stops[-2]["router"] == row["dst"]
    assert stops[0]["start"] == row["created"]
    assert stops[-1]["end"] == row["arrived"]
    assert way["cycles"] == row["latency"] == stops[-1]["end"] - stops[0]["start"]
    # the head's phases follow each other without a gap
    phases = [phase for stop in stops for phase in stop["phases"]]
    assert [one[1] + one[2] for one in phases[:-1]] == [one[1] for one in phases[1:]]


@pytest.mark.parametrize(("router", "per_cycle", "unit", "moment"), [
    ("", 1, "cycles", 1.0),
    ("router: {model: input_output_queued, flit_ns: 32}\n", 80, "µs", 0.032),  # cycles of .4 ns, all times' divisor
])  # fmt: skip
def test_failures_are_down_from_their_cycle_to_their_repair(
    tmp_path: Path, router: str, per_cycle: int, unit: str, moment: float
) -> None:
    config = parse_config(FAILING + router)
    cycles = {"cycle": 100, "stopped_cycle": 110, "empty_cycle": 130, "reprogrammed_cycle": 131}
    record = FailureRecord(what="link 0-1", **{name: cycle * per_cycle for name, cycle in cycles.items()})
    write_tables(tmp_path, {"failures": pd.DataFrame([vars(record)])})
    write_metadata(tmp_path, run_metadata(config, ["hopforge", "net", "x.yml"]))
    view = view_of(tmp_path)
    (down,) = view["time"]["down"]
    ends = [(numbers(view["from"])[c], numbers(view["to"])[c]) for c in down["links"]]
    assert ends == [(0, 1), (1, 0)]
    assert view["time"]["unit"] == unit
    assert [down["from"], down["to"]] == pytest.approx([100 * moment, 200 * moment])
    assert view["time"]["moments"] == pytest.approx([0.0, 100 * moment, 200 * moment])
    assert view["time"]["tables"] == [pytest.approx([cycle * moment for cycle in cycles.values()])]


def next_channel(view: dict, path: int, router: int, destination: int) -> int:
    """Channel by which the tables of a path number leave a router, as the viewer finds it."""
    table = view["ways"][path]
    rank = numbers(table).reshape(view["routers"], -1)[router, destination]
    assert rank != table["none"]
    return int(np.searchsorted(numbers(view["from"]), router)) + int(rank)


def way(view: dict, path: int, source: int, target: int) -> list[int]:
    routers = [source]
    while routers[-1] != target:
        routers.append(int(numbers(view["to"])[next_channel(view, path, routers[-1], target)]))
        assert len(routers) <= view["routers"]
    return routers


def routed(folder: Path, fail_switch: tuple[str, ...] = ()) -> Path:
    (folder / "small.yml").write_text(SEVERAL)
    with pytest.warns(hopforge.HopforgeWarning, match="does not use routing"):
        hopforge.route(folder / "small.yml", fail_switch=fail_switch, progress=False).write(folder / "route")
    return folder / "route"


def test_route_gives_the_paths_over_links_and_the_way_of_each_pair(tmp_path: Path) -> None:
    view = view_of(routed(tmp_path))
    assert len(view["ways"]) == 2
    over = np.zeros(view["channels"], int)
    for path, name in enumerate(("next_hops.csv", "next_hops_1.csv")):
        hops = np.loadtxt(tmp_path / "route" / name, int, delimiter=",")
        for source, target in np.argwhere(~np.eye(8, dtype=bool)).tolist():
            found_way = way(view, path, source, target)
            assert found_way[1] == hops[source, target]
            for router in found_way[:-1]:
                over[next_channel(view, path, router, target)] += 1
    paths = of(view, "paths")
    assert paths["whole"]
    assert values(paths)[0] == pytest.approx(over, abs=paths["high"] / 60_000)
    assert [measure["name"] for measure in view["measures"]] == ["paths"]  # all tables have 7 entries


def test_route_with_a_failed_switch_has_no_way_to_it(tmp_path: Path) -> None:
    view = view_of(routed(tmp_path, ("3",)))
    ends = numbers(view["from"]), numbers(view["to"])
    touches = (ends[0] == 3) | (ends[1] == 3)
    assert np.isnan(values(of(view, "paths"))[0])[touches].all()
    assert not np.isnan(values(of(view, "paths"))[0])[~touches].any()
    table = numbers(view["ways"][0]).reshape(8, 8)
    assert (table[:, 3] == view["ways"][0]["none"]).all()
    assert (table[3] == view["ways"][0]["none"]).all()
    assert 3 not in way(view, 0, 0, 7)
    written = values(of(view, "entries written"))[0]
    assert np.isnan(written[3])
    routers = pd.read_parquet(tmp_path / "route" / "routers.parquet")
    rest = routers[routers["router"] != 3]
    assert written[rest["router"]] == pytest.approx(rest["written"].to_numpy(), abs=1e-3)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("next_hops.csv", "1,2\n", "next_hops.csv:1: must have 8 numbers, not 2"),
        ("next_hops.csv", "-1,1,1,1,1,1,1,1\n" + "0,-1,2,2,2,2,2,2\n" * 7, "has no link from router "),
        ("channels.csv", "router,to_router,paths\n0,99,4\n", "has no link from router 0 to router 99"),
        ("routers.csv", "router,entries\n0.5,7\n1,8\n", "routers.csv: routers must be whole numbers, not 0.5"),
    ],
)
def test_damaged_tables_of_routes_are_one_line(tmp_path: Path, name: str, text: str, words: str) -> None:
    routed(tmp_path)
    (tmp_path / "route" / name).with_suffix(".parquet").unlink(missing_ok=True)
    (tmp_path / "route" / name).write_text(text)
    run = CliRunner().invoke(cli.app, ["view", str(tmp_path / "route")])
    assert isinstance(run.exception, UserError), run.output
    assert words in str(run.exception)
    assert name in str(run.exception)
    assert "\n" not in str(run.exception)


def test_a_column_of_entries_that_is_empty_colours_no_router(tmp_path: Path) -> None:
    routed(tmp_path)
    (tmp_path / "route" / "routers.parquet").unlink()
    (tmp_path / "route" / "routers.csv").write_text("router,entries\n0,\n1,\n")
    assert [measure["name"] for measure in view_of(tmp_path / "route")["measures"]] == ["paths"]


def used(folder: Path, links: dict[str, list[object]]) -> Path:
    write_tables(folder, {"links": pd.DataFrame(links)})
    write_metadata(folder, run_metadata(parse_config(TORUS), ["hopforge", "app", "x.yml"]))
    return folder


def test_app_gives_how_busy_each_link_was(tmp_path: Path) -> None:
    # port 1 of the torus leads to +x, from router 5 to router 6
    links: dict[str, list[object]] = {
        "link": ["router 5 to router 6, port 1", "host 3 to router 3"], "between_routers": [True, False],
        "bytes": [10, 4], "busy_share": [0.25, 0.1],
    }  # fmt: skip
    view = view_of(used(tmp_path, links))
    busy = of(view, "busy")
    (channel,) = np.flatnonzero(values(busy)[0])
    assert (numbers(view["from"])[channel], numbers(view["port"])[channel]) == (5, 1)
    assert values(busy)[0, channel] == pytest.approx(25, abs=0.01)


@pytest.mark.parametrize("router", [16, 99999999999999999999])
def test_busy_links_of_another_network_are_one_line(tmp_path: Path, router: int) -> None:
    folder = used(tmp_path, {"link": [f"router {router} to router 1, port 0"], "busy_share": [0.5]})
    run = CliRunner().invoke(cli.app, ["view", str(folder)])
    assert isinstance(run.exception, UserError), run.output
    assert f"links.parquet: the 4x4 torus has no link at port 0 of router {router}" in str(run.exception)


def test_the_same_result_gives_the_same_page(results: Path, tmp_path: Path) -> None:
    pages = []
    for _ in range(2):
        run = CliRunner().invoke(cli.app, ["view", str(results / "net"), "-o", str(tmp_path / "view.html")])
        assert run.exit_code == 0, run.output
        pages.append((tmp_path / "view.html").read_text(encoding="utf-8"))
    assert pages[0] == pages[1]
    assert re.findall(r"(?:src|href)=\"(?!#|data:)[^\"]*\"", pages[0]) == []  # nothing from outside
    assert len(pages[0]) < 100_000


def damaged(results: Path, folder: Path, name: str, change: dict[str, object] | None) -> Path:
    shutil.copytree(results / "net", folder / "net")
    for file in (folder / "net").glob(f"{name}.*"):
        file.unlink()
    table = pd.read_parquet(results / "net" / f"{name}.parquet")
    table = table.iloc[:-1] if change is None else table.assign(**change)
    table.to_parquet(folder / "net" / f"{name}.parquet")
    return folder / "net"


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("channels", None, "channels.parquet: must have a row for each of the 64 channels of the 4x4 torus, not 63"),
        ("channels", {"load": "high"}, "channels.parquet: column load must hold numbers"),
        ("buffers", {"router": 99}, "buffers.parquet: routers must be 0 to 15, those of the 4x4 torus, not 99 to 99"),
        ("channels", {"router": np.nan}, "channels.parquet: column router has fields without a number"),
    ],
)
def test_damaged_tables_are_one_line(
    results: Path, tmp_path: Path, name: str, change: dict[str, object] | None, words: str
) -> None:
    folder = damaged(results, tmp_path, name, change)
    run = CliRunner().invoke(cli.app, ["view", str(folder)])
    assert isinstance(run.exception, UserError)
    assert words in str(run.exception)
    assert "\n" not in str(run.exception)
    assert not (folder / "view.html").exists()


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({}, "no result of net, series, trace, hits, route, app of a graph in it"),
        ({"metadata.json": "{"}, "no result of net, series, trace, hits, route, app of a graph in it; metadata.json: "),
        ({"metadata.json": '{"command": ["hopforge", "net"]}'}, "no result of net"),
        # the network of a sweep stands for many runs
        (
            {"metadata.json": '{"command": ["hopforge", "sweep"], "config": {"name": "a", "topology": '
                              '{"kind": "torus", "radices": [3, 3]}}}'},
            "no result of net, series, trace, hits, route, app of a graph in it",
        ),
        (
            {"metadata.json": '{"command": ["hopforge", "net"], "config": {"name": "a", "topology": '
                              '{"kind": "cube"}}}'},
            "metadata.json: topology.kind: ",
        ),
        (
            {"metadata.json": '{"command": ["hopforge", "net"], "config": {"name": "a", "topology": '
                              '{"kind": "torus", "radices": [3, 3]}}}', "channels.parquet": "PAR1"},
            "channels.parquet: ",
        ),
    ],
)  # fmt: skip
def test_folders_without_a_network_are_one_line(tmp_path: Path, files: dict[str, str], words: str) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    run = CliRunner().invoke(cli.app, ["view", str(tmp_path)])
    assert isinstance(run.exception, UserError), run.output
    assert words in str(run.exception)
    assert "\n" not in str(run.exception)


def test_one_of_several_results_is_asked_for(results: Path) -> None:
    run = CliRunner().invoke(cli.app, ["view", str(results)])
    assert isinstance(run.exception, UserError)
    assert "holds 3 results with a network; name one of" in str(run.exception)


BROWSER_SCRIPT = """
<script>
window.addEventListener("load", function () { setTimeout(function () {
  var box = document.querySelector(".network"), canvas = box.querySelector("canvas"), told = {};
  function ink() {
    var data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data, found = 0;
    for (var k = 3; k < data.length; k += 4) { if (data[k] > 40) { found++; } }
    return found / (data.length / 4);
  }
  function key(name) { canvas.dispatchEvent(new KeyboardEvent("keydown", { key: name, cancelable: true })); }
  function press(type, x, y) {
    canvas.dispatchEvent(new PointerEvent(type, { pointerId: 1, clientX: x, clientY: y, bubbles: true }));
  }
  function title() { var found = box.querySelector(".panel h4"); return found ? found.textContent : ""; }
  told.ink = ink() > 0.01;
  var foot = box.querySelector(".foot");
  told.foot = [foot.offsetHeight > 0, foot.textContent !== ""];
  told.drawn_ms = Number(box.dataset.drawn);
  key("ArrowRight"); told.first = title();
  key("ArrowRight"); told.next = title();
  told.rows = box.querySelectorAll(".panel tbody tr").length;
  key("Escape"); told.none = title();
  var number = box.querySelector("input[type=number]");
  number.value = "5"; number.dispatchEvent(new Event("change")); told.typed = title();
  var area = canvas.getBoundingClientRect(), hit = "";
  key("Escape");
  for (var x = 5; x < area.width && !hit; x += 9) { for (var y = 5; y < area.height && !hit; y += 9) {
    press("pointerdown", area.left + x, area.top + y); press("pointerup", area.left + x, area.top + y); hit = title();
  } }
  told.clicked = /^Router [0-9]+$/.test(hit);
  var time = box.querySelector("input.long");
  if (time) {
    time.value = time.max; time.dispatchEvent(new Event("input"));
    told.time = box.querySelector(".told").textContent;
  }
  key("+"); key("0");
  document.getElementById("theme").click();
  var fold = box.querySelector(".fold");
  told.folded = !fold.open;
  told.picture_first = canvas.getBoundingClientRect().top < fold.getBoundingClientRect().top;
  told.strokes = [[1000, 20], [10, 20], [100, 80]].map(function (one) {  // one[0] links of length 10 on a square of 100
    var zeros = new Array(one[0]).fill(0), ones = new Array(one[0]).fill(1);
    var net = { data: { spacing: 1 }, from: zeros, to: ones, x: [0, 10], y: [0, 0], area: 100 };
    var found = HopforgeView.strokes(net, one[1], one[0]);
    return [Math.round(100 * found.width), Math.round(100 * found.solid)];
  });
  var bow = { data: { spacing: 1, bend: 0.5 }, from: [0], to: [1], lane: [0], group: [0, 0], x: [0, 10], y: [0, 0] };
  bow.low = [0, 0]; bow.high = [10, 0]; bow.centre = [5, 0]; bow.bows = HopforgeView.bows(bow);
  told.bow = bow.bows.concat(HopforgeView.fit(bow, 1000, 104).scale.toFixed(3));
  told.words = [...box.querySelectorAll(".controls label")].map(function (one) { return one.firstChild.textContent; });
  told.overflow = document.documentElement.scrollWidth > window.innerWidth;
  told.errors = window.failures;
  document.body.innerHTML = "<pre id=told>" + JSON.stringify(told) + "</pre>";
}, 300); });
</script></body>"""


#: types two routers, goes one stop back, then clicks nothing
WAY_SCRIPT = """
<script>
window.addEventListener("load", function () { setTimeout(function () {
  var box = document.querySelector(".network"), told = {}, canvas = box.querySelector("canvas");
  var fields = box.querySelectorAll("input[type=number]");
  function text(name) { var found = box.querySelector(name); return found ? found.textContent : ""; }
  function type(field, value) { field.value = value; field.dispatchEvent(new Event("change")); }
  function key(name) { canvas.dispatchEvent(new KeyboardEvent("keydown", { key: name, cancelable: true })); }
  type(fields[1], "0"); told.half = text(".panel h4");
  type(fields[2], "7"); told.pair = text(".panel h4");
  told.stops = [...box.querySelectorAll(".panel tbody tr")].map(function (row) { return row.children[1].textContent; });
  told.now = text(".panel tr.now td");
  key("ArrowLeft"); told.before = text(".panel tr.now td");
  key("Escape"); told.none = [text(".panel h4"), fields[1].value, fields[2].value];
  told.errors = window.failures;
  document.body.innerHTML = "<pre id=told>" + JSON.stringify(told) + "</pre>";
}, 300); });
</script></body>"""


#: chooses a router where its tables have room for one row or for all, and tells what is said under each
HINTS_SCRIPT = """
<style>.network .panel .scroll { max-height: HEIGHT !important; }</style>
<script>
window.addEventListener("load", function () { setTimeout(function () {
  var number = document.querySelector(".network input[type=number]");
  number.value = "5"; number.dispatchEvent(new Event("change"));
  setTimeout(function () {
    var told = [...document.querySelectorAll(".network .panel .scroll")].map(function (box) {
      return [box.nextElementSibling.textContent, box.classList.contains("more-below")];
    });
    document.body.innerHTML = "<pre id=told>" + JSON.stringify({ hints: told, errors: window.failures }) + "</pre>";
  }, 500);
}, 300); });
</script></body>"""


#: what numbers look like, large and small, with and without a unit
SAY_SCRIPT = """
<script>
window.addEventListener("load", function () {
  var said = [0, 0.0004, 0.00144, 0.0123, 0.25, 7, 12345.6].map(function (one) { return HopforgeView.say(one, ""); });
  said = said.concat([0.04, 41.26, 99.9512].map(function (one) { return HopforgeView.say(one, "%"); }));
  document.body.innerHTML = "<pre id=told>" + JSON.stringify({ said: said, errors: window.failures }) + "</pre>";
});
</script></body>"""


PRINT_SCRIPT = """
<script>
window.addEventListener("load", function () {
  var box = document.querySelector(".network"), before = Boolean(box.started);
  window.dispatchEvent(new Event("beforeprint"));
  var told = { begun: [before, Boolean(box.started)], errors: window.failures };
  document.body.innerHTML = "<pre id=told>" + JSON.stringify(told) + "</pre>";
});
</script></body>"""


def told_by_a_browser(page: Path, folder: Path, width_px: int, script: str = BROWSER_SCRIPT) -> dict:
    text = page.read_text(encoding="utf-8").replace(
        "<script>",
        "<script>window.failures=[];window.onerror=function(m){window.failures.push(m);};</script><script>",
        1,
    )
    copy = folder / "page.html"
    copy.write_text(text.replace("</body>", script), encoding="utf-8")
    run = subprocess.run(
        ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-sync", "--disable-background-networking", "--disable-component-update",
         f"--user-data-dir={folder / 'profile'}", f"--window-size={width_px},900",
         "--virtual-time-budget=15000", "--dump-dom", copy.as_uri()],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    found: dict = json.loads(re.search(r'<pre id="told">(.*?)</pre>', run.stdout, re.DOTALL)[1])  # type: ignore[index]
    return found


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium (make setup installs it)")
@pytest.mark.parametrize(("name", "width_px"), [("net", 1200), ("series", 500)])
def test_in_a_browser(results: Path, tmp_path: Path, name: str, width_px: int) -> None:
    page = tmp_path / "view.html"
    assert CliRunner().invoke(cli.app, ["view", str(results / name), "-o", str(page)]).exit_code == 0
    told = told_by_a_browser(page, tmp_path, width_px)
    assert told.pop("drawn_ms") >= 0  # that it was drawn: the browser's time is virtual
    assert told.pop("rows") >= 5
    assert told.pop("time", "until").startswith("until")
    # width and opacity in hundredths: too many links, few links, links that are thinned to cover a fifth of the square
    assert told.pop("strokes") == [[70, 25], [90, 100], [160, 100]]
    # the middle of a link of length 10 that bends by half of it lies 5 below the routers: 2 (5 + 0.2) fill the height
    assert told.pop("bow") == [0, 5, "10.000"]
    assert told.pop("words") == ["links", "routers", "router", "busiest links", *(["time"] if name == "series" else [])]
    small = width_px <= 800
    assert (told.pop("folded"), told.pop("picture_first")) == (small, small)
    assert told == {
        "ink": True, "first": "Router 0", "next": "Router 3", "none": "", "typed": "Router 5", "clicked": True,
        "overflow": False, "errors": [], "foot": [True, True],
    }  # fmt: skip


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium (make setup installs it)")
def test_small_numbers_are_not_said_to_be_zero(results: Path, tmp_path: Path) -> None:
    page = tmp_path / "view.html"
    assert CliRunner().invoke(cli.app, ["view", str(results / "net"), "-o", str(page)]).exit_code == 0
    assert told_by_a_browser(page, tmp_path, 1200, SAY_SCRIPT) == {"errors": [], "said": [
        "0", "0.0004", "0.00144", "0.0123", "0.25", "7", "12346", "0.04 %", "41.3 %", "99.951 %",
    ]}  # fmt: skip


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium (make setup installs it)")
def test_a_network_below_the_fold_is_drawn_when_the_page_is_printed(results: Path, tmp_path: Path) -> None:
    page = tmp_path / "view.html"
    assert CliRunner().invoke(cli.app, ["view", str(results / "net"), "-o", str(page)]).exit_code == 0
    text = page.read_text(encoding="utf-8")
    assert text.count('<body class="wide">') == 1
    page.write_text(text.replace('<body class="wide">', '<body><div style="height: 9000px"></div>'), encoding="utf-8")
    assert told_by_a_browser(page, tmp_path, 1200, PRINT_SCRIPT) == {"begun": [False, True], "errors": []}


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium (make setup installs it)")
def test_the_way_of_a_pair_in_a_browser(tmp_path: Path) -> None:
    routed(tmp_path)
    page = tmp_path / "view.html"
    assert CliRunner().invoke(cli.app, ["view", str(tmp_path / "route"), "-o", str(page)]).exit_code == 0
    stops = way(view_of(tmp_path / "route"), 0, 0, 7)
    assert told_by_a_browser(page, tmp_path, 1200, WAY_SCRIPT) == {
        "half": "", "pair": "From router 0 to router 7", "stops": [str(router) for router in stops],
        "now": str(len(stops) - 1), "before": str(len(stops) - 2), "none": ["", "", ""], "errors": [],
    }  # fmt: skip


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium (make setup installs it)")
@pytest.mark.parametrize(("height", "cut"), [("20px", True), ("none", False)])
def test_rows_that_a_table_of_the_panel_hides_are_told(results: Path, tmp_path: Path, height: str, cut: bool) -> None:
    page = tmp_path / "view.html"
    assert CliRunner().invoke(cli.app, ["view", str(results / "net"), "-o", str(page)]).exit_code == 0
    told = told_by_a_browser(page, tmp_path, 1200, HINTS_SCRIPT.replace("HEIGHT", height))
    assert told["errors"] == []
    assert len(told["hints"]) >= 1
    for hint, below in told["hints"]:
        assert below == cut
        assert hint.startswith("Scroll: more rows below (") if cut else hint == ""


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium (make setup installs it)")
def test_a_picture_without_a_scale_has_no_empty_strip_below_it(results: Path, tmp_path: Path) -> None:
    page = tmp_path / "view.html"
    assert CliRunner().invoke(cli.app, ["view", str(results / "trace"), "-o", str(page)]).exit_code == 0
    told = told_by_a_browser(page, tmp_path, 1200)
    assert (told["ink"], told["errors"], told["foot"]) == (True, [], [False, False])


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium (make setup installs it)")
def test_ten_thousand_routers_in_a_browser(tmp_path: Path) -> None:
    config = parse_config("name: large\ntopology: {kind: random_regular, routers: 10000, degree: 20, seed: 1}\n")
    from hopforge.model.topology.configured import network_topology

    ends = network_topology(config).channels()
    load = np.random.default_rng(1).random(len(ends.src_router))
    folder = tmp_path / "net"
    folder.mkdir()
    write_tables(folder, {"channels": {"router": ends.src_router, "port": ends.src_port, "load": load}})
    write_metadata(folder, run_metadata(config, ["hopforge", "net", "large.yml"]))
    assert CliRunner().invoke(cli.app, ["view", str(folder)]).exit_code == 0
    page = folder / "view.html"
    assert page.stat().st_size < 10 << 20
    told = told_by_a_browser(page, tmp_path, 1200)
    assert told["drawn_ms"] >= 0
    assert (told["ink"], told["errors"]) == (True, [])
