"""The report page: nothing from outside, everything escaped, and it works in a real browser."""

import errno
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from hopforge.sim.pages.report import Column, Fact, Figure, Report, Section, Table, bars, heatmap, render, write_report

TRICKY = "</script><b>&\"'"


def report() -> Report:
    table = Table(
        "Ports",
        [Column("port"), Column("lookups"), Column("hit rate, %", digits=1, bar=True), Column("never")],
        [["b", 9, 50.0, None], ["a", 1000, 99.95, None], ["c", 20, np.nan, None]],
        command="hopforge hits x.yml",
    )
    line = Figure(TRICKY, [{"type": "scatter", "x": np.arange(3), "y": np.array([1, np.nan, 2])}])
    chart = bars("Bars", ["x", "y"], {"one": [1, 2], "two": np.array([3.5, 4])}, y="share, %")
    grid = heatmap("Map", ["r0", "r1"], ["p0", "p1"], [[1, 2], [3, float("nan")]], x="port", y="router", unit="%")
    return Report(
        TRICKY,
        "summary",
        [
            Section("One", "First.\n\nSecond.", [Fact("rate", "99 %", TRICKY)], [table, line]),
            Section("Two", items=[chart, grid]),
        ],
        {"command": TRICKY},
    )


class Page(HTMLParser):
    """Collects text by element and every address that a browser would load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.texts: dict[str, list[str]] = {}
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loads += [
            str(value) for name, value in attrs if name in {"src", "href"} and not str(value).startswith(("#", "data:"))
        ]
        if tag not in {"meta", "input", "link", "br", "img"}:
            self.stack.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.stack and data.strip():
            self.texts.setdefault(self.stack[-1], []).append(data)


def test_page_is_well_formed_escaped_and_loads_nothing() -> None:
    page = Page(render(report()))
    assert page.stack == []
    assert page.loads == []
    assert page.texts["h1"] == [TRICKY]
    assert page.texts["title"] == [TRICKY]
    assert TRICKY in page.texts["h3"]
    assert page.texts["p"][2:4] == ["First.", "Second."]


def test_figures_are_embedded_as_finite_json() -> None:
    page = Page(render(report()))
    figures = next(json.loads(text) for text in page.texts["script"] if text.startswith("["))
    assert [figure["title"] for figure in figures] == [TRICKY, "Bars", "Map"]
    assert figures[0]["data"][0]["y"] == [1.0, None, 2.0]
    assert figures[1]["data"][1]["y"] == [3.5, 4.0]
    assert figures[2]["data"][0]["z"] == [[1, 2], [3, None]]


def test_cells() -> None:
    page = Page(render(report()))
    assert page.texts["td"] == ["b", "9", "50.0", "–", "a", "1\u202f000", "100.0", "–", "c", "20", "–", "–"]
    shares = re.findall(r"--share: ([\d.]+)%", render(report()))
    assert shares == ["50.0", "100.0"]


def test_page_without_figures_is_small() -> None:
    assert len(render(Report("t", "s", [Section("x")]))) < 20_000


def test_bad_parameters() -> None:
    with pytest.raises(ValueError, match=r"rows\[1\] must have columns=1 cells, not 2"):
        Table("t", [Column("a")], [[1], [1, 2]])
    with pytest.raises(ValueError, match=r"series 'one' must have groups=2 values, not 1"):
        bars("t", ["x", "y"], {"one": [1]}, y="y")


def test_nothing_half_written(tmp_path: Path) -> None:
    write_report(report(), tmp_path / "new" / "report.html")
    assert [file.name for file in (tmp_path / "new").iterdir()] == ["report.html"]
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(OSError, match="file"):
        write_report(report(), blocked / "report.html")


def test_full_disk_names_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, text: str, encoding: str) -> int:
        self.write_bytes(text[:10].encode())
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="No space left on device") as caught:
        write_report(report(), tmp_path / "report.html")
    assert caught.value.filename == str(tmp_path / "report.html")
    assert list(tmp_path.iterdir()) == []


BROWSER_SCRIPT = """
<script>
window.addEventListener("load", function () { setTimeout(function () {
  var told = { plots: document.querySelectorAll(".js-plotly-plot .svg-container").length };
  function first() {
    var cells = Array.from(document.querySelectorAll("tbody td:first-child"));
    return cells.map(function (cell) { return cell.textContent; }).join("");
  }
  var heads = document.querySelectorAll("th button");
  heads[0].click(); told.byName = first();
  heads[1].click(); told.byNumber = first();
  heads[1].click(); told.byNumberDown = first();
  heads[2].click(); told.byRate = first();
  var before = document.documentElement.dataset.theme;
  document.getElementById("theme").click();
  told.toggled = before !== document.documentElement.dataset.theme;
  told.overflow = document.documentElement.scrollWidth > window.innerWidth;
  told.errors = window.failures;
  document.body.innerHTML = "<pre id=told>" + JSON.stringify(told) + "</pre>";
}, 500); });
</script></body>"""


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium (make setup installs it)")
@pytest.mark.parametrize("width_px", [500, 1200])
def test_in_a_browser(tmp_path: Path, width_px: int) -> None:
    text = render(report()).replace(
        "<script>",
        "<script>window.failures=[];window.onerror=function(m){window.failures.push(m);};</script><script>",
        1,
    )
    page = tmp_path / "report.html"
    page.write_text(text.replace("</body>", BROWSER_SCRIPT), encoding="utf-8")
    run = subprocess.run(
        ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-sync",
         "--disable-background-networking", "--disable-component-update", f"--user-data-dir={tmp_path / 'profile'}",
         f"--window-size={width_px},1200", "--virtual-time-budget=15000", "--dump-dom", page.as_uri()],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    told = json.loads(re.search(r'<pre id="told">(.*?)</pre>', run.stdout, re.DOTALL)[1])  # type: ignore[index]
    assert told == {
        "plots": 3, "byName": "abc", "byNumber": "bca", "byNumberDown": "acb", "byRate": "bac", "toggled": True,
        "overflow": False, "errors": [],
    }  # fmt: skip
