"""Every kind of result says what came out of it, and the plot that is drawn first shows what was measured."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from hopforge.sim.pages.bench_outcome import bench_facts
from hopforge.sim.pages.compare import Subject, compare_results
from hopforge.sim.pages.compare_write import comparison_rows, write_comparison
from hopforge.sim.pages.explore import explorer, side_by_side
from hopforge.sim.pages.find import Found, ResultSet, find_results
from hopforge.sim.pages.glance import glance
from hopforge.sim.pages.outcome import outcome
from hopforge.sim.pages.page import result_page
from hopforge.sim.pages.plotted import plotted
from hopforge.sim.pages.report import Explorer, Fact, Report, Section, Table

MESH = {
    "topology": {"kind": "mesh", "radices": [4, 4]}, "router": {"vcs": 2, "buffer_flits": 8},
    "lookup": {"cache": {"entries": 16}}, "traffic": {"pattern": "uniform", "packet_flits": 1},
}  # fmt: skip
APP = {"program": ["mg.A.64"], "engine": ["flow"], "ranks": [64], "makespan_s": [0.0015159], "messages": [79896],
       "energy_j": [0.0166], "conventional_energy_j": [0.0268]}  # fmt: skip
COLLECTIVES = {"group": [0] * 3, "operation": ["bcast"] * 3, "words": [1] * 3, "bytes": [4] * 3,
               "by": ["network", "ring", "binomial"], "cycles": [20, 60, 50]}  # fmt: skip
SAID = {"subject": ["network", "path length", "entries"],
        "value": ["mesh", "2.5 hops on average, 6 at most", "15 at most, 15.0"]}  # fmt: skip


#: the best recipe of a block is its first row, not its smallest or fastest
SYNTH = {"block": ["crc", "crc", "engine", "engine"], "recipe": list("abcd"), "area_um2": [50.0, 40, 1234.4, 1300],
         "delay_ns": [0.7, 0.1, 0.4, 0.1], "sta_ns": [np.nan, np.nan, 0.5, 0.2], "levels": [np.nan] * 4,
         "cells": [20, 10, 900, 950], "flops": [0, 0, 64, 64], "aim_ns": [np.nan, np.nan, 0.45, 0.45]}  # fmt: skip


@pytest.mark.parametrize(
    ("command", "tables", "metadata", "cards"),
    [
        ("app", {"app": APP}, {}, ["network mesh", "traffic mg.A.64", "makespan 1.516 ms",
                               "energy of all switches 0.0166 J"]),
        ("sweep", {"variants": {"variant": ["a", "b"], "makespan_s": [2e-4, 1e-4], "gain": [1.0, 2.0]}}, {},
         ["network mesh", "traffic uniform", "makespan, a 200 µs", "makespan, b 100 µs"]),
        ("series",
         {"series": {"time": [1, 2], "load": [0.2, 0.2], "accepted": [0.1, 0.19], "latency": [np.nan, 9]}}, {},
         ["network mesh", "traffic uniform", "accepted in the last bin 0.19"]),
        ("trace", {"packets": {"created": [0, 1], "latency": [12, -1]}}, {},
         ["network mesh", "traffic uniform", "longest latency 12 cycles"]),
        ("cosim", {}, {"top": "x_lookup", "mismatches": 0, "cycles": 3372, "simulator": "icarus"},
         ["network mesh", "hardware x_lookup", "mismatches 0"]),
        ("route", {"summary": SAID}, {}, ["network mesh", "path length 2.5 hops on average", "entries 15 at most"]),
        ("bounds", {"bounds": {"routing": ["dor"], "traffic_throughput": [0.5]}}, {},
         ["network mesh", "traffic uniform", "throughput at most 0.5"]),
        ("collectives", {"collectives": COLLECTIVES}, {}, ["network mesh", "as fast as by hosts 2.5 to 2.5 times"]),
        ("hits", {}, {"totals": {"lookups": 8, "hit_rate": 0.75}, "workload": {"name": "is.A.64", "ranks": 64}},
         ["network mesh", "traffic is.A.64", "hit rate 75 %"]),
        ("wavelengths", {"arrangements": {"lanes": [1, 2], "hit_rate": [0.5, 0.75]}},
         {"totals": {"traffic": "uniform", "links": 4, "lookups": 9}},
         ["network mesh", "traffic uniform", "hit rate 50 to 75 %"]),
        ("synth", {"synth": SYNTH}, {"library": {"name": "cells", "corner": "slow"}},
         ["network mesh", "hardware ?", "clock of engine 2000 MHz", "delay of crc, the slowest block 0.7 ns",
          "area of engine 1\u202f234 µm²"]),
    ],
)  # fmt: skip
def test_the_first_screen_says_what_came_out_of_each_kind(
    command: str, tables: dict[str, Any], metadata: dict[str, Any], cards: list[str]
) -> None:
    config = MESH | {"workload": {"kind": "trace"}}
    result = ResultSet(
        ".", {"command": ["hopforge", command, "x.yml"], "config": config, **metadata},
        {name: pd.DataFrame(table) for name, table in tables.items()},
    )  # fmt: skip
    section = glance([result])
    assert section is not None
    unknown = [] if command in ("app", "synth") else ["cost of the hardware not measured"]
    assert [f"{fact.label} {fact.value}" for fact in section.facts] == [*cards, *unknown]
    words = " ".join(fact.note for fact in section.facts)
    assert ("2 VCs" in words) == (command in ("sweep", "series", "trace"))  # the others read no buffers
    assert ("caches of 16 entries" in words) == (command in ("hits", "wavelengths"))


def test_results_without_a_network_say_what_came_out() -> None:
    compared = ResultSet("c", {"command": ["hopforge", "compare", "a", "b"], "changed": {"router.vcs": [2, 4]}},
                         {"comparison": pd.DataFrame({"figure": ["a", "b"], "verdict": ["differs", "equal"]})})
    mutants = ResultSet("m", {"command": ["hopforge", "mutate", "a.yml"]}, {"blocks": pd.DataFrame(
        {"block": ["x", "all"], "mutants": [4, 5], "killed": [3, 4], "equivalent": [1, 1], "survived": [0, 0]})})
    jobs = ResultSet("j", {"command": ["hopforge", "jobs"], "machine": {"dims": [2, 2], "ppn": 1}}, {
        "schedules": pd.DataFrame({"scheduler": ["easy"], "placement": ["linear"], "mean_wait": [71086.8],
                                   "utilisation": [0.5614]})})  # fmt: skip
    rules = ResultSet("r", {"command": ["hopforge", "rules", "a.csv"]}, {"rule_caches": pd.DataFrame(
        {"policy": ["exact", "mega"], "entries": [64, 64], "hit_rate": [0.25, 0.5], "wrong": [0, 0]})})
    said = [[f"{fact.label} {fact.value}" for fact in outcome(each)] for each in (compared, mutants, jobs, rules)]
    assert said == [["figures that differ 1 of 2"], ["mutants found 4 of 5"], ["easy, linear 71\u202f087 s"],
                    ["best hit rate 50 %"]]  # fmt: skip
    for each in (compared, mutants, jobs, rules):
        each.files.update({name: f"{name}.csv" for name in each.tables})
    section = glance([compared, mutants, jobs, rules])
    assert section is not None
    (table,) = section.items
    assert isinstance(table, Table)
    assert [row[1] for row in table.rows] == ["–", "–", "2 x 2 nodes (processors each: 1)", "–"]
    page = result_page(Found("x", [compared, mutants, jobs, rules], [], {}, []), "x")
    assert [row[4] for row in items(page, "Overview")["All results"].rows] == [one[0] for one in said]


def said(result: ResultSet) -> list[str]:
    section = glance([result])
    assert section is not None
    return [f"{fact.label} {fact.value}" for fact in section.facts]


def measured(of: str, table: dict[str, Any], words: list[str], **metadata: Any) -> ResultSet:
    return ResultSet(".", {"command": ["hopforge", *words], **metadata}, {of: pd.DataFrame(table)})


@pytest.mark.parametrize(
    ("columns", "cards"),
    [
        ({"case": ["a", "b"], "million_flit_hops_per_s": [10.0, 20], "booksim_million_flit_hops_per_s": [1.0, 4],
          "ratio": [10.0, 5]}, ["as fast as BookSim 5 to 10 times",
                                "flits times routers visited, a second 10 to 20 million"]),
        ({"case": ["a", "b"], "against_ns_per_flit_hop": [3.0, 4], "ratio": [1.5, 1.25], "same_results": [True, False]},
         ["as fast as the other version 1.25 to 1.5 times", "cases with other results 1"]),
        ({"case": ["a", "b", "c"], "unit": ["lookup", "step", "lookup"], "million_per_s": [3.0, 4, 5]},
         ["lookups a second 3 to 5 million", "steps a second 4 million"]),
        ({"case": ["a"], "threads": [2], "wall_ratio_median": [1.5], "same_results": [True]},
         ["as fast as one thread 1.5 times", "cases with other results 0"]),
        ({"method": ["acro", "lash"], "routers": [64, 64], "degree": [8, 8], "cpu_s": [0.5, 1.5]},
         ["processor time 0.5 to 1.5 s"]),
        ({"case": ["a"], "guard_percent": [3.5]}, ["longer with checks 3.5 %"]),
        ({"case": ["a", "b"], "engine_s": [0.5, 2.0], "packet_s": [np.nan, 3.0]},
         ["time of the engine 0.5 to 2 s", "time of engine packet 3 s"]),
    ],
)  # fmt: skip
def test_a_bench_says_what_it_is_about(columns: dict[str, Any], cards: list[str]) -> None:
    machine = {"machine": "x86_64", "processor": "", "system": "Linux", "python": "3.11", "clock": "process time"}
    result = measured("bench", columns, ["bench", "net"], **machine)
    assert said(result) == ["machine x86_64", *cards]


@pytest.mark.parametrize(("same", "value", "note"), [
    ([True, np.nan, False, np.nan], "1", "of 2, 2 not compared"), ([np.nan] * 4, "0", "of 0, 4 not compared"),
    ([True] * 4, "0", "of 4"),
])  # fmt: skip
def test_cases_that_were_not_compared_are_not_the_same(same: list[Any], value: str, note: str) -> None:
    assert list(bench_facts(pd.DataFrame({"same_results": same}))) == [Fact("cases with other results", value, note)]


def reproduced(name: str, of: str, deviation: list[float]) -> ResultSet:
    table = {"quantity": list("pqr")[: len(deviation)], "unit": "", of: 10.0, "ours": [10 + d / 10 for d in deviation],
             "claim": "", "deviation_percent": deviation}  # fmt: skip
    return measured("comparison", table, ["reproduce", name], name=name, title="T", source="S")


def test_a_reproduced_figure_says_how_far_it_is_off() -> None:
    paper = reproduced("a.fig1", "paper", [3.0, -40.0, np.nan])
    assert said(paper) == ["figure a.fig1", "worst deviation from the paper −40 %"]
    assert outcome(paper)[0].note == "q: ours 6, paper 10; 2 of 3 compared"
    other = reproduced("b.fig2", "reference", [1050.0])
    assert said(other) == ["figure b.fig2", "largest difference from the reference +1\u202f050 %"]
    kept = reproduced("c.fig3", "paper", [np.nan] * 2)
    assert said(kept) == ["figure c.fig3", "deviations none"]
    section = glance([paper, other, kept])
    assert section is not None
    assert [(fact.label, fact.value) for fact in section.facts] == [
        ("figures of papers", "2"), ("worst deviation of all", "−40 %")
    ]  # fmt: skip
    (table,) = section.items
    assert isinstance(table, Table)
    assert [column.name for column in table.columns] == ["result", "of what", "what came out"]  # no empty columns


def test_synthesis_without_cells_counts_gates_and_a_fixed_table_has_no_network() -> None:
    table = {name: values[:1] for name, values in SYNTH.items()} | {
        "area_um2": [np.nan], "delay_ns": [np.nan], "levels": [7.0]
    }  # fmt: skip
    result = measured("synth", table, ["synth", "x.yml", "--blocks", "allocators"], config=MESH, library=None)
    assert said(result) == ["hardware ?", "logic of crc 7 levels", "size of crc 20 gates"]


def test_a_comparison_says_of_which_networks_its_results_are(tmp_path: Path) -> None:
    table = pd.DataFrame({"load": [0.0], "latency": [9.0], "accepted": [0.1]})
    torus = MESH | {"topology": {"kind": "torus", "radices": [8]}}
    found = compare_results(Subject("a", {"measurement": table}, MESH), Subject("b", {"measurement": table * 2}, torus))
    assert comparison_rows(found)[:2] == [
        ("first", "a: mesh, radices 4 x 4, 2 VCs, buffers of 8 flits"),
        ("second", "b: torus, radices 8, 2 VCs, buffers of 8 flits"),
    ]
    write_comparison(found, tmp_path / "c")
    (result,) = find_results(tmp_path / "c").sets
    result.metadata["command"] = ["hopforge", "compare", "a", "b"]
    assert said(result) == ["first network mesh", "second network torus", "figures that differ 0 of 2"]
    assert "; of a" in glance([result]).facts[0].note  # type: ignore[union-attr]
    assert outcome(result)[0].note == "no interval: 2; changed: topology.kind, topology.radices"


def items(report: Report, title: str) -> dict[str, Any]:
    sections: list[Section] = [one for one in report.sections if one.title == title]
    return {item.title: item for item in sections[0].items}


def test_the_overview_tells_the_latency_of_packets_not_of_acknowledges() -> None:
    tables = {
        "acknowledges": pd.DataFrame({"latency": [422.0]}),
        "measurement": pd.DataFrame({"latency": [1269.0], "accepted": [0.5], "load": [0.6]}),
    }
    page = result_page(Found("x", [ResultSet(".", {"config": MESH}, tables)], [], {}, []), "x")
    assert items(page, "Overview")["All results"].rows[0][4] == "latency, cycles 1269, accepted 0.5"


def test_only_what_the_paper_says_is_compared_with_the_paper() -> None:
    ours = pd.DataFrame({"figure": ["a"], "verdict": ["equal"], "first": [1.0], "second": [1.0]})
    paper = pd.DataFrame({"quantity": ["a"], "paper": [100.0], "ours": [101.0], "deviation_percent": [1.0]})
    said = [
        items(result_page(Found("x", [ResultSet(".", {}, {"comparison": table})], [], {}, []), "x"), "Overview")
        for table in (ours, paper)
    ]
    found = [one["All results"].rows[0][4] for one in said]
    assert found == ["figures that differ 0 of 1", "worst deviation from the paper +1 %"]


@pytest.mark.parametrize(
    ("name", "table", "drawn"),
    [
        ("worst_permutation", {"host": [0, 1], "minimal_single": [1, 0], "dor": [1, 0]},
         ("host", "destination", "routing", "markers")),
        ("collectives", COLLECTIVES | {"cycles": [20, 60, 50]}, None),  # one point
        ("events", {"packet": ["0.1", "0.1"], "cycle": [1, 2], "flit": [0, 1]}, None),
        ("comparison", {"quantity": ["a", "b"], "unit": ["s", "m"], "ours": [1.0, 2]}, None),
        ("synth", SYNTH, ("block", "area_um2", "", "bars")),
        ("bench", {"case": ["a", "b"], "load": [0.3, 0.5], "makespan_s": [1.0, 2], "engine_s": [0.5, 0.25]},
         ("case", "engine_s", "", "bars")),
        ("hosts", {"host": [0, 1], "wait": [1.5, 2.5]}, ("host", "wait", "", "markers")),
    ],
)  # fmt: skip
def test_a_plot_shows_what_the_table_is(name: str, table: dict[str, Any], drawn: tuple[str, ...] | None) -> None:
    plot = plotted(name, pd.DataFrame(table), "", {})
    assert (None if plot is None else (plot.x, plot.y, plot.by, plot.style)) == drawn


def test_collectives_are_drawn_beside_the_best_of_the_hosts() -> None:
    rows = [("bcast", size, by, cycles) for size, each in ((4, (20, 60, 50)), (8, (10, 40, 80)))
            for by, cycles in zip(("network", "ring", "binomial"), each, strict=True)]  # fmt: skip
    table = pd.DataFrame(rows, columns=["operation", "bytes", "by", "cycles"]).assign(group=0)
    plot = plotted("collectives", table, "", {})
    assert plot is not None
    assert (plot.x, plot.style) == ("bytes", "bars")
    assert list(zip(plot.columns["bytes"], plot.columns[plot.y], strict=True)) == [("4", 2.5), ("8", 4.0)]


COMPARED = pd.DataFrame([
    {"variant": variant, "load": load, "figure": figure, "first": 1 + load, "second": 2 + load, "difference": 1.0,
     "difference_percent": 50.0, "interval": 0.1, "verdict": verdict}
    for variant in ("p", "q") for load in (0.1, 0.2)
    for figure, verdict in (("latency", "saturated" if load == 0.2 else "differs"), ("hops", "differs"))
])  # fmt: skip


def test_a_comparison_is_drawn_as_two_curves_of_one_figure() -> None:
    wide = side_by_side(COMPARED)
    plot = explorer("c", wide)
    assert isinstance(plot, Explorer)
    assert (plot.x, plot.y, plot.by, plot.style) == ("load", "latency", "result", "lines")
    found = {(row["result"], row["load"]): (row["latency"], row["hops"]) for row in wide.to_dict("records")}
    assert found["q second", 0.1] == (2.1, 2.1)
    assert np.isnan(found["q first", 0.2][0])  # saturated
    assert len(found) == len(wide) == 8
    one = COMPARED[(COMPARED["variant"] == "p") & (COMPARED["load"] == 0.1)]
    assert list(side_by_side(one).columns) == ["figure", "difference_percent"]
    full = COMPARED[(COMPARED["variant"] == "p") & (COMPARED["load"] == 0.2)]
    assert side_by_side(full)["figure"].tolist() == ["hops"]  # the difference of saturated latencies means nothing


def test_no_axis_shows_the_noise_of_sums() -> None:
    table = pd.DataFrame({"router": [0, 1, 2], "a": [0.1 + 0.2, 0.3, 0.3], "b": [1.0, 2e-300, 3.123456789e20]})
    plot = explorer("t", table)
    assert plot is not None
    assert plot.y == "b" and "a" not in plot.columns
    assert plot.columns["b"] == pytest.approx([1.0, 2e-300, 3.123456789e20], rel=1e-9, abs=0)


@pytest.mark.parametrize(
    "table",
    [
        COLLECTIVES | {"cycles": [1, 2, 3], "by": ["network"] * 3, "operation": ["a", "b", "c"]},
        {"load": [1, 1, 2, 2], "variant": ["a"] * 4, "first": [1.5, 2.5, 3.5, 4.5]},
        {"router": [0, 0, 1, 1], "flits": [1.5, 2, 3, 4]},
        {"load": [1, 2, 1, 2], "variant": ["a", "a", "b", "b"], "latency": [1.5, 2.5, 3.5, 4.5]},
    ],
)
def test_no_line_runs_through_two_values_at_one_place(table: dict[str, list[Any]]) -> None:
    plot = explorer("t", pd.DataFrame(table))
    assert plot is not None
    places = list(zip(plot.columns[plot.x], plot.columns[plot.by] if plot.by else plot.columns[plot.x], strict=True))
    assert plot.style != "lines" or len(set(places)) == len(places)


def test_numbers_that_are_names_are_no_plot() -> None:
    events = {"cycle": [1, 2, 3], "event": ["a", "b", "c"], "router": [0, 1, 2], "vc": [3, -1, 2], "bit": [1, 2, 0]}
    assert explorer("events", pd.DataFrame(events)) is None


def test_the_latency_of_what_did_not_arrive_is_no_value() -> None:
    plot = explorer("packets", pd.DataFrame({"host": [0, 1, 2], "latency": [12, -1, 9]}))
    assert plot is not None
    assert plot.columns["latency"] == [12, None, 9]


def test_latencies_of_saturated_points_are_left_out_and_the_caption_says_so() -> None:
    rows = pd.DataFrame({"load": [0.1, 0.2, 0.3], "saturated": [False, False, True], "latency": [9.0, 10.0, 900.0]})
    plot, stable = explorer("curve", rows), explorer("curve", rows[:2])
    assert plot is not None
    assert stable is not None
    assert plot.columns["latency"] == [9.0, 10.0, None]
    assert "Latencies of saturated points are left out." in plot.caption
    assert "saturated" not in stable.caption


@pytest.mark.parametrize("whole", [False, True])
def test_a_sweep_of_bursts_ends_at_the_most_that_they_offer(whole: bool) -> None:
    """As the command says: pauses of a cycle leave 9/10 of .3; the other variant ends before its knee."""
    bursts = {"source": "on_off", "burst_load": 0.3, "burst_cycles": 9}
    changes = {"traffic": bursts} if whole else {f"traffic.{key}": value for key, value in bursts.items()}
    config = MESH | {"name": "x", "simulation": {"variants": {"zebra": changes, "ant": {}}}}
    curve = {"variant": ["zebra", "ant"], "load": [0.27, 0.27], "saturated": [False] * 2, "accepted": [0.27] * 2}
    metadata = {"config": config, "command": ["hopforge", "sweep", "x.yml"]}
    found = outcome(ResultSet("x", metadata, {"curve": pd.DataFrame(curve)}))
    said = [(fact.label, fact.value) for fact in found]
    assert said == [("zebra saturates", "never"), ("ant saturates", "above 0.27")]
