"""The first screen of the report, and faults of plots and tables that it had: seen in a browser."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hopforge.sim.pages.explore import explorer
from hopforge.sim.pages.find import ResultSet
from hopforge.sim.pages.glance import glance
from hopforge.sim.pages.report import Column, Explorer, Fact, Report, Section, Table, bars, render

CONFIG = {
    "name": "a", "topology": {"kind": "torus", "radices": [4, 4]}, "router": {"vcs": 2, "buffer_flits": 8},
    "traffic": {"pattern": "uniform", "packet_flits": 4}, "routing": {"algorithm": "dor"},
}  # fmt: skip


def sweep(saturated: list[bool]) -> ResultSet:
    curve = pd.DataFrame({
        "variant": [""] * 3, "load": [0.1, 0.2, 0.3], "saturated": saturated, "accepted": [0.1, 0.2, 0.25]
    })  # fmt: skip
    return ResultSet("s", {"command": ["hopforge", "sweep", "x.yml"], "config": CONFIG}, {"curve": curve})


def test_variants_that_change_network_or_traffic_are_told_apart() -> None:
    """Once all variants of a sweep stood below the traffic of the file that they change."""
    variants = {
        "plain": {}, "long": {"traffic.packet_flits": 16},
        "small": {"topology": {"kind": "hyperx", "sizes": [3, 3]}, "routing.algorithm": "dor", "router.vcs": 4},
    }  # fmt: skip
    config = {**CONFIG, "name": "s", "simulation": {"load": 0.1, "variants": variants}}
    result = sweep([False, False, True])
    result.metadata["config"] = config
    section = glance([result])
    assert section is not None
    facts = {fact.label: (fact.value, fact.note) for fact in section.facts}
    torus = "torus, radices 4 x 4, 2 VCs, buffers of 8 flits"
    assert facts["network"] == (
        "torus, hyperx", f"plain, long: {torus}; small: hyperx, sizes 3 x 3, 4 VCs, buffers of 8 flits"
    )
    assert facts["traffic"] == (
        "uniform",
        "plain, small: uniform, packets of 4 flits, routing dor; long: uniform, packets of 16 flits, routing dor",
    )
    config["simulation"]["variants"]["unknown"] = {"traffic.of_tomorrow": 1}  # of another version
    assert not {"network", "traffic"} & {fact.label for fact in glance([result]).facts}  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("saturated", "value", "note"),
    [
        ([False, False, True], "0.2 to 0.3", "known within 33.3 % (simulation.knee_percent)"),
        ([False, False, False], "above 0.3", "the loads end before the knee (simulation.knee_percent adds more)"),
        ([True, True, True], "below 0.1", "the loads begin beyond the knee (simulation.knee_percent adds more)"),
    ],
)
def test_a_sweep_tells_between_which_loads_it_saturates(saturated: list[bool], value: str, note: str) -> None:
    section = glance([sweep(saturated)])
    assert section is not None
    facts = {fact.label: fact for fact in section.facts}
    assert facts["saturates"].value == value
    assert facts["saturates"].note == f"accepts at most 0.25; {note}"
    assert (facts["network"].value, facts["network"].note) == ("torus", "radices 4 x 4, 2 VCs, buffers of 8 flits")
    assert facts["traffic"].note == "packets of 4 flits, routing dor"
    assert facts["cost of the hardware"].value == "not measured"


def test_several_results_are_a_table() -> None:
    run = pd.DataFrame([{"load": 0.2, "latency": 20.0, "accepted": 0.2, "saturated": False}])
    net = ResultSet("n", {"command": ["hopforge", "net", "x.yml"], "config": CONFIG}, {"measurement": run})
    section = glance([sweep([False, False, True]), net, ResultSet("other")])
    assert section is not None
    (table,) = section.items
    assert isinstance(table, Table)
    assert [row[0] for row in table.rows] == ["s", "n"]
    assert "latency 20 cycles" in table.rows[1][3]
    assert glance([ResultSet("other")]) is None


def test_a_legend_names_only_what_has_a_bar() -> None:
    chart = bars("t", ["a", "b"], {"one": [1, 2], "none": np.zeros(2)}, y="y", caption="Words.")
    assert [trace["name"] for trace in chart.traces] == ["one"]
    assert chart.caption == "Words. All zero: none."
    assert chart.half
    assert len(bars("t", ["a"], {"one": [0], "none": [0]}, y="y").traces) == 2
    assert not bars("t", list("abcdefg"), {"one": range(7)}, y="y").half


def test_rates_near_one_are_no_bars_from_zero() -> None:
    table = pd.DataFrame({"port_class": ["host", "up"], "hit_rate": [0.9991, 0.9999]})
    near, far = explorer("x", table), explorer("x", table.assign(hit_rate=[0.2, 0.9]))
    assert near is not None
    assert far is not None
    assert (near.style, far.style) == ("markers", "bars")


SCRIPT = """
<script>
window.addEventListener("load", function () { setTimeout(function () {
  var told = {}, plots = document.querySelectorAll(".js-plotly-plot");
  told.lies = plots[0].data[0].orientation;
  told.blocks = plots[2].getBoundingClientRect().width > 600;
  told.ticks = Array.from(plots[2].querySelectorAll(".ytick text"), function (text) { return text.textContent; }).pop();
  told.names = plots[1].data.map(function (trace) { return trace.name; });
  told.dash = plots[1].data[1].line.dash;
  told.turned = Array.from(document.querySelectorAll(".xtick text")).filter(function (text) {
    return /rotate\\((?!0[,)])/.test(text.getAttribute("transform") || "");
  }).length;
  var bar = plots[1].querySelector(".modebar").getBoundingClientRect(), clash = 0;
  plots[1].querySelectorAll("text").forEach(function (text) {
    var one = text.getBoundingClientRect();
    if (one.width && one.left < bar.right && bar.left < one.right && one.top < bar.bottom && bar.top < one.bottom) {
      clash++;
    }
  });
  told.clash = clash;
  var outcome = document.querySelector("table.words").parentNode;
  told.hidden = outcome.scrollWidth - outcome.clientWidth > 1;
  told.hint = document.querySelector(".hint").textContent;
  document.body.innerHTML = "<pre id=told>" + JSON.stringify(told) + "</pre>";
}, 500); });
</script></body>"""


def _told(folder: Path, file: Path) -> dict[str, object]:
    """Return what the script of a page wrote."""
    run = subprocess.run(
        ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-sync", "--disable-background-networking", "--disable-component-update",
         f"--user-data-dir={folder / 'profile'}", "--window-size=1200,1200", "--virtual-time-budget=15000",
         "--dump-dom", file.as_uri()],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    return json.loads(re.search(r'<pre id="told">(.*?)</pre>', run.stdout, re.DOTALL)[1])  # type: ignore[index]


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium (make setup installs it)")
def test_faults_of_plots_and_tables_in_a_browser(tmp_path: Path) -> None:
    names = [f"a long name of a bar {number}" for number in range(9)]
    curve = Explorer(
        "curves", {"load": [1, 2, 3, 4] * 3, "latency": [*[1, 2, 3, 4] * 2, 1, 2, 3, 9],
                   "by": [name for name in "pqr" for _ in range(4)]}, "load", "latency", "by",
        ["load"], ["latency"], ["by"],
    )  # fmt: skip
    wide = Table("wide", [Column(f"a column of number {k}") for k in range(20)], [list(range(20))] * 40)
    said = ["runs/of_today/first", "torus (radices 4 x 4 x 4, 4 VCs, 8 fl.)", "mg.A.64 and others (64 ranks), linear",
            "makespan 1.516 ms (79896 messages)", "energy 0.01657 J (without 0.02676 J)"]
    words = Table("words", [Column(name) for name in ("result", "network", "traffic", "outcome", "costs")], [said])
    two = Explorer("two", {"x": ["first", "second"], "bytes": [2e9, 4e9]}, "x", "bytes", "", ["x"], ["bytes"],
                   style="bars")
    page = Report("t", "s", [Section("x", items=[bars("b", names, {"one": range(9)}, y="y"), curve, two, wide, words])])
    file = tmp_path / "page.html"
    file.write_text(render(page).replace("</body>", SCRIPT), encoding="utf-8")
    told = _told(tmp_path, file)
    assert told == {
        "lies": "h", "names": ["p", "q (on p)", "r (partly on p)"], "dash": "dot", "turned": 0, "clash": 0,
        "blocks": False, "ticks": "4G", "hidden": False,
        "hint": "Scroll: more columns at the right, more rows below (40 in all).",
    }  # fmt: skip


PHONE = """
<script>
window.addEventListener("load", function () { setTimeout(function () {
  var tables = document.querySelectorAll("table"), boxes = document.querySelectorAll(".scroll");
  var cells = Array.from(tables[1].querySelectorAll("td")), range = document.createRange();
  var broken = cells.filter(function (cell) {
    range.selectNodeContents(cell);
    return range.getClientRects().length > 1;
  });
  parent.postMessage({
    hidden: Array.from(boxes, function (box) { return box.scrollWidth > box.clientWidth + 1; }),
    heads: Array.from(tables[0].querySelectorAll("td"), function (cell) {
      return getComputedStyle(cell, "::before").content;
    }),
    broken: broken.map(function (cell) { return cell.textContent; }), width: window.innerWidth,
    cut: Array.from(document.querySelectorAll(".bartext, .legendtext"), function (text) {
      return text.getBoundingClientRect().right > text.ownerSVGElement.getBoundingClientRect().right;
    }),
    wide: document.documentElement.scrollWidth > window.innerWidth,
    command: Array.from(document.querySelectorAll(".command code"), function (code) {
      return [code.scrollWidth > code.clientWidth + 1, code.textContent];
    }),
    names: document.querySelectorAll(".js-plotly-plot")[2].querySelectorAll(".ytick").length,
    left: Array.from(document.querySelectorAll(".ytick text")).some(function (text) {
      return text.getBoundingClientRect().left < text.ownerSVGElement.getBoundingClientRect().left - 1;
    }),
    clash: Array.from(document.querySelectorAll(".js-plotly-plot")[2].querySelectorAll(".ytick text")).some(
      function (text, row, all) {
        return row && text.getBoundingClientRect().top < all[row - 1].getBoundingClientRect().bottom;
      }
    ),
    room: document.querySelectorAll(".js-plotly-plot .nsewdrag")[1].getBoundingClientRect().height > 180
  }, "*");
}, 500); });
</script></body>"""
COMMAND = "hopforge bench lookup --booksim /a/folder/with/a/long/name/booksim --repetitions 3 -o a/folder/of/results"
FRAME = """<iframe src="page.html" style="width:390px;height:800px;border:0"></iframe><script>
window.onmessage = function (event) {
  document.body.innerHTML = "<pre id=told>" + JSON.stringify(event.data) + "</pre>";
};</script>"""


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium (make setup installs it)")
def test_tables_on_a_phone_hide_and_break_nothing(tmp_path: Path) -> None:
    heads = [Column(name) for name in ("result", "network", "traffic", "what came out")]
    glanced = Table("a", heads, [["runs/first", "torus of 8x8x8", "uniform, 4 flits", "saturates between 0.2 and 0.3"]])
    pair = Table("b", [Column("a quantity with a long name in words, flits"), Column("value")],
                 [["flits that left the network in the measurement", number] for number in ("12345678901", 123456789)]
                 + [["digest", "0123456789abcdef" * 4]])
    three = Table("c", [Column("quantity"), Column("one"), Column("two")],
                  [["mean latency of a packet with its lookups, ns", 1234.5, 12345.6]])
    names = ["a long name of a bar", "another long name of a bar"]
    chart = bars("d", names, {"one": [0.357, 87.536]}, y="W")
    series = [f"a folder/sweep variant_with_a_long_name_{number}" for number in range(8) for _ in "12"]
    many = Explorer(
        "e", {"load": [1, 2] * 8, "latency": list(range(16)), "by": series}, "load", "latency", "by",
        ["load"], ["latency"], ["by"],
    )  # fmt: skip
    longer = Table("f", heads, [[f"runs/{k}", "torus of 8x8x8", "uniform", "saturates at 0.3"] for k in range(20)])
    # several series: each has other bars, whose names are longer than a phone is wide
    parts = {"case": [f"messages to packets of a program of 64 ranks, {k}" for k in range(60)], "s": list(range(60)),
             "by": ["p", "q"] * 30}  # fmt: skip
    lying = Explorer("g", parts, "case", "s", "by", ["case"], ["s"], ["by"], "bars", command=COMMAND)
    facts = [Fact("of", "a_name_that_is_long_and_has_no_space_in_it", f"of /{'folder' * 12}"), Fact("b", "1 %")]
    page = Report("t", "s", [Section("x", "", facts, [glanced, pair, three, chart, many, lying, longer])])
    (tmp_path / "page.html").write_text(render(page).replace("</body>", PHONE), encoding="utf-8")
    (tmp_path / "frame.html").write_text(FRAME, encoding="utf-8")
    told = _told(tmp_path, tmp_path / "frame.html")
    assert told == {
        "hidden": [False] * 4, "heads": ["none", '"network"', '"traffic"', '"what came out"'], "width": 390,
        "broken": [*["flits that left the network in the measurement"] * 2, "0123456789abcdef" * 4],
        "cut": [False] * 12, "room": True, "wide": False, "command": [[False, COMMAND]],
        "names": 60, "left": False, "clash": False,
    }  # fmt: skip


@pytest.mark.parametrize(
    "broken",
    [
        ResultSet(".", {"kind": "hits", "config": {"topology": {"kind": "mesh"}}, "totals": {"lookups": 3}}),
        ResultSet("b", {"command": "hopforge net x.yml", "config": {"topology": {"kind": "mesh"}, "routing": []}},
                  {"measurement": pd.DataFrame({"latency": ["x"], "accepted": ["y"], "load": [0.1]})}),
    ],
    ids=["totals without a hit rate", "text where numbers belong"],
)  # fmt: skip
def test_what_cannot_be_told_hides_nothing_else(broken: ResultSet) -> None:
    assert glance([broken]) is None
    together = glance([broken, sweep([False, False, True])])
    assert together is not None and together == glance([sweep([False, False, True])])


def test_lengths_of_packets_are_those_of_the_run() -> None:
    for traffic, words in (
        ({"packet_flits": 1, "packet_range": [2, 258]}, "packets of 2 to 258 flits"),
        ({"packet_flits": 1, "packet_lengths": [1, 5]}, "packets of 1, 5 flits"),
        ({"packet_flits": 4}, "packets of 4 flits"),
    ):
        result = sweep([False, False, True])
        result.metadata["config"] = CONFIG | {"traffic": traffic}
        section = glance([result])
        assert section is not None
        assert any(words in fact.note for fact in section.facts)


def test_a_run_without_packets_has_a_dash() -> None:
    table = pd.DataFrame({"latency": [np.nan], "accepted": [0.0], "load": [0.0]})
    result = ResultSet(".", {"config": {"topology": {"kind": "mesh"}}}, {"measurement": table})
    section = glance([result])
    assert section is not None
    assert ("latency", "–") in [(fact.label, fact.value) for fact in section.facts]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["hopforge.simulate(hopforge.load('a b.yml'), load=0.1)"],
            "hopforge.simulate(hopforge.load('a b.yml'), load=0.1)",
        ),
        (["hopforge", "net", "a b.yml"], "hopforge net 'a b.yml'"),
    ],
)
def test_what_repeats_a_run_can_be_pasted(words: list[str], said: str) -> None:
    """A call of Python is shown as Python reads it: quotes of a shell around it would run nowhere."""
    assert ResultSet("a", {"command": words}).command == said
