"""The page shows the counts of the runs, and edge cases of a run do not break it."""

import json

import numpy as np
import pytest

from hopforge.model.config import parse_config
from hopforge.sim.hits.hit_rates import run_hits
from hopforge.sim.pages.hit_page import HitRun, consequence_section, hit_run, hit_section
from hopforge.sim.pages.report import Figure, Report, Section, Table, render

BASE = """\
name: x
topology: {kind: torus, radices: [3, 3]}
lookup: {reduction: R, cache: {entries: 4, ways: 2}}
workload: {kind: all_to_all, order: random, rounds: 2}
"""


@pytest.fixture(scope="module")
def runs() -> dict[str, HitRun]:
    texts = {"reduced": BASE.replace("R", "true"), "whole": BASE.replace("R", "false")}
    return {label: hit_run(run_hits(parse_config(text))) for label, text in texts.items()}


def commands(runs: dict[str, HitRun]) -> dict[str, str]:
    return {label: f"hopforge hits {label}.yml" for label in runs}


def item(section: Section, title: str) -> Table | Figure:
    (found,) = [one for one in section.items if one.title == title]
    return found


def test_misses_by_cause_add_up(runs: dict[str, HitRun]) -> None:
    figure = item(hit_section(runs, commands(runs)), "Misses by cause")
    assert isinstance(figure, Figure)
    assert [trace["name"] for trace in figure.traces] == ["compulsory misses", "capacity misses", "conflict misses"]
    classes, labels = figure.traces[0]["x"]
    assert len(set(zip(classes, labels, strict=True))) == len(classes) == 2 * 5  # host and 4 directions, twice
    for label, run in runs.items():
        table = run.classes.set_index("port_class")
        for trace in figure.traces:
            cause = trace["name"].split()[0]
            for name, which, value in zip(classes, labels, trace["y"], strict=True):
                if which == label:
                    assert value * table.lookups[name] / 1000 == pytest.approx(table[cause][name])


def test_every_port_has_a_row_with_its_counts(runs: dict[str, HitRun]) -> None:
    table = item(hit_section(runs, commands(runs)), "Every port")
    assert isinstance(table, Table)
    heads = [column.name for column in table.columns]
    for label, run in runs.items():
        rows = [dict(zip(heads, row, strict=True)) for row in table.rows if row[0] == label]
        assert len(rows) == (run.ports["lookups"] > 0).sum() == 9 * 5
        assert sum(row["lookups"] for row in rows) == run.totals["lookups"]
        assert sum(row["misses of 1000"] * row["lookups"] / 1000 for row in rows) == pytest.approx(run.totals["misses"])


def test_maps_share_their_colours(runs: dict[str, HitRun]) -> None:
    section = hit_section(runs, commands(runs))
    maps = [one for one in section.items if isinstance(one, Figure) and one.title.startswith("Hit rate of")]
    assert [one.command for one in maps] == ["hopforge hits reduced.yml", "hopforge hits whole.yml"]
    lowest = min(np.nanmin(one.traces[0]["z"]) for one in maps)
    assert {(one.traces[0]["zmin"], one.traces[0]["zmax"]) for one in maps} == {(lowest, 100.0)}
    assert maps[0].traces[0]["y"] == ["0 host", "1 dim0+", "2 dim0-", "3 dim1+", "4 dim1-"]


def test_consequences_are_those_of_the_runs(runs: dict[str, HitRun]) -> None:
    table = item(consequence_section(runs, commands(runs)), "With and without the cache")
    assert isinstance(table, Table)
    rows = {row[0]: row[1:] for row in table.rows}
    assert rows["mean lookup time, ns"] == [
        runs["reduced"].totals["lookup_ns"],
        runs["whole"].totals["lookup_ns"],
        25.0,
    ]


def test_network_whose_ports_differ_and_runs_without_any_miss() -> None:
    text = """\
name: tree
topology: {kind: fat_tree, k: 2, n: 1}
workload: {kind: permutation, permutation: bit_complement, packets_per_host: 3}
"""
    runs = {"only": hit_run(run_hits(parse_config(text)))}
    section = hit_section(runs, {"only": "hopforge hits tree.yml"})
    assert section.facts[0].note == ""
    page = render(Report("t", "s", [section, consequence_section(runs, {"only": "hopforge hits tree.yml"})]))
    data = json.loads(page.split('id="figures">')[1].split("</script>")[0])
    assert [figure["title"] for figure in data][:2] == ["Misses by cause", "Hit rate of every input port, only"]


def test_no_runs() -> None:
    with pytest.raises(ValueError, match="runs must have at least 1 entry, not 0"):
        hit_section({}, {})
