"""Tables with the names and columns of ours that hold something else: a page is made of them all the same."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from hopforge.sim.pages.explore import LARGEST_PLOT, explorer
from hopforge.sim.pages.find import Found, ResultSet
from hopforge.sim.pages.page import result_page
from hopforge.sim.pages.plotted import plotted
from hopforge.sim.pages.report import Table

CURVE = {"load": [0.1, 0.2], "saturated": [False, True], "accepted": [0.1, 0.2]}
DEVIATIONS = {"quantity": ["q", "r"], "unit": "", "paper": [1.0, 2], "ours": [1.0, 3], "claim": "",
              "deviation_percent": [0.0, 50]}  # fmt: skip
#: words of the command -> its tables
SAMPLES: dict[str, dict[str, dict[str, Any]]] = {
    "bounds": {"worst_permutation": {"host": [0, 1], "dor": [1, 0], "valiant": [1, 0]}},
    "collectives": {"collectives": {"group": [0, 0], "operation": ["a", "a"], "words": [1, 1], "bytes": [4, 4],
                                    "by": ["network", "ring"], "cycles": [20, 60]}},
    "synth": {"synth": {"block": ["a", "b"], "recipe": ["x", "x"], "area_um2": [5.0, 9], "delay_ns": [0.2, 0.3],
                        "sta_ns": [0.4, 0.5], "levels": [3, 4], "cells": [7, 8], "flops": [0, 9]}},
    "bench net": {"bench": {"case": ["a", "b"], "against_ns_per_flit_hop": [3.0, 4], "ratio": [1.5, 1.25],
                            "same_results": [True, False]}},
    "compare": {"comparison": {"figure": ["a", "b"], "load": [0.1, 0.1], "first": [1.0, 2], "second": [1.0, 3],
                               "difference": [0.0, 1], "difference_percent": [0.0, 50], "interval": [1.0, 1],
                               "verdict": ["same", "differs"]}},
    "reproduce a.fig1": {"comparison": DEVIATIONS, "curve": CURVE},
    "rules": {"rule_caches": {"zipf": [1.0, 0.8], "updates": [0, 1], "lookups": [9, 9], "hit_rate": [0.5, 0.6]}},
    "wavelengths": {"cheapest": {"link_gbps": [100.0, 200], "arrangements": [5, 5], "keep_up": [2, 1],
                                 "least": ["area", "area"], "switch_area_mm2": [1.0, 2],
                                 "switch_power_w": [1.0, 2]}},
}  # fmt: skip
CHANGES = {"words": ["x", "y"], "numbers": [1, 2], "nothing": [None, None], "unlimited": [np.inf, -np.inf]}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("words", SAMPLES)
def test_a_page_is_made_whatever_a_column_holds(words: str, change: str) -> None:
    for name, columns in SAMPLES[words].items():
        for column in columns:
            found = Found("r", [], [], {}, [])
            for folder in ("a", "b"):
                tables = {of: pd.DataFrame(table) for of, table in SAMPLES[words].items()}
                tables[name][column] = CHANGES[change]
                files = {of: f"{of}.csv" for of in tables}
                metadata = {"command": ["hopforge", *words.split()], "name": "n", "title": "T", "source": "S"}
                found.sets.append(ResultSet(folder, metadata, tables, files))
            page = result_page(found, "hopforge report r")
            shown = [item for section in page.sections for item in section.items if isinstance(item, Table)]
            assert any(str(each.name).startswith(column) for table in shown for each in table.columns), (name, column)


@pytest.mark.parametrize("networks", [[], [[], []], [["mesh"], ["mesh", "radices 4"]], ["mesh", None]])
def test_metadata_of_a_comparison_that_hold_something_else(networks: list[Any]) -> None:
    table = pd.DataFrame(SAMPLES["compare"]["comparison"])
    metadata = {"command": ["hopforge", "compare"], "first": "a", "second": "b", "networks": networks}
    result = ResultSet(".", metadata, {"comparison": table}, {"comparison": "comparison.csv"})
    page = result_page(Found("r", [result], [], {}, []), "hopforge report r")
    assert any("figures that differ" in fact.label for section in page.sections for fact in section.facts)


def test_columns_may_have_any_name() -> None:
    plot = explorer("mine", pd.DataFrame({"self": [1.5, 2.5], "table": [1.0, 2.0]}))
    assert plot is not None and set(plot.columns) == {"self", "table"}
    other = plotted("worst_permutation", pd.DataFrame({"host": [0, 1], "destination": [1, 0]}), "", {})
    assert other is not None and set(other.columns) == {"host", "destination"}


def test_a_permutation_of_many_hosts_is_thinned() -> None:
    hosts = np.arange(LARGEST_PLOT + 1)
    plot = plotted("worst_permutation", pd.DataFrame({"host": hosts, "dor": hosts[::-1]}), "", {})
    assert plot is not None and len(plot.columns["host"]) <= LARGEST_PLOT
    assert plot.caption.endswith("One of every 2 points, of 20001 in all.")
