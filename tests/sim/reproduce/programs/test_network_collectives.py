"""What `hopforge reproduce collectives.*` compares, from rows made by hand and from the data that are kept."""

import csv
from pathlib import Path

import pandas as pd
import pytest

from hopforge.sim.reproduce import REPRODUCTIONS, Options
from hopforge.sim.reproduce.programs.network_collectives import network_config, unit_config
from hopforge.sim.reproduce.programs.unit_programs import program_config

KEPT = Path(__file__).parents[4] / "docs" / "results" / "data" / "collectives.cycles.csv"
POINTS = REPRODUCTIONS["collectives.cycles"].points(Options())


def test_the_best_algorithm_stands_beside_the_network() -> None:
    row = {"network": "4x4 mesh", "depth": 4, "operation": "barrier", "words": 0}
    data = pd.DataFrame([row | {"by": by, "cycles": n} for by, n in (("network", 20), ("slow", 90), ("fast", 40))])
    first, second = REPRODUCTIONS["collectives.cycles"].compare(data, Options())
    assert (first.paper, first.ours, first.deviation_percent) == (40, 20, -50)
    assert first.assumption == "depth 4; by hosts: fast 40, slow 90"
    assert (second.ours, second.bounds, second.no_deviation) == (20, (10, 100), "kept")


def test_the_router_stands_beside_the_unit() -> None:
    row = {"unit": "u", "area_um2": None, "period_ns": None}
    data = pd.DataFrame([
        row | {"block": "collective_unit", "cells": 30, "flops": 4}, row | {"block": "router", "cells": 60, "flops": 8},
    ])  # fmt: skip
    found = REPRODUCTIONS["collectives.area"].compare(data, Options())
    assert [(each.unit, each.paper, each.ours) for each in found] == [("gates", 60, 30), ("flip-flops", 8, 4)]


@pytest.mark.parametrize(("network", "depth", "link", "host"), [("16x16 mesh", 16, 1, 1), ("4x4x4 torus", 6, 17, 13)])
def test_kept_barriers_are_those_of_the_definition(network: str, depth: int, link: int, host: int) -> None:
    with KEPT.open(newline="") as file:
        ours = {row["quantity"]: float(row["ours"]) for row in csv.DictReader(file)}
    assert ours[f"barrier, {network}"] == 4 * (depth + 1) + 2 * depth + 2 * depth * (link - 1) + 2 * (host - 1) + 1


def test_configurations_are_read() -> None:
    assert len(POINTS) == 6
    for point in POINTS:
        assert network_config(str(point["network"])).collective_plane.words == (1, 16, 256)
    for point in REPRODUCTIONS["collectives.area"].points(Options()):
        assert unit_config(str(point["unit"])).router.flit_buffers == "flip_flops"


def test_programs_by_units_stand_beside_those_by_hosts() -> None:
    row = {"network": "n", "program": "p", "engine": "flow"}
    data = pd.DataFrame([
        row | {"by": "units", "makespan_us": 30.0, "messages": 5, "unit_collectives": 4},
        row | {"by": "hosts", "makespan_us": 40.0, "messages": 9, "unit_collectives": 0},
    ])  # fmt: skip
    (found,) = REPRODUCTIONS["collectives.programs"].compare(data, Options())
    assert (found.paper, found.ours, found.deviation_percent) == (40, 30, -25)
    assert found.assumption == "4 collectives by units; 9 messages become 5"
    for point in REPRODUCTIONS["collectives.programs"].points(Options()):
        units, hosts = (
            program_config(str(point["network"]), str(point["program"]), "flow", units=units) for units in (True, False)
        )
        assert units.workload.collectives.in_network == ("barrier", "bcast", "allreduce")
        assert hosts.workload.collectives.in_network == ()
