"""Tables of spraying: what the points run, and how rows are told."""

import pandas as pd
import pytest

from hopforge.sim.reproduce import REPRODUCTIONS, Options
from hopforge.sim.reproduce.routing.spraying import configuration

ORDER = {
    "accepted": 0.2, "message_latency": 100.0, "message_latency_p99": 300.0, "reordered_share": 0.25,
    "three_reordered_share": 0.05, "reorder_extent": 2.5, "reorder_extent_max": 9, "reorder_buffer_p99": 4.0,
    "reorder_buffer_max": 7, "host_buffer_max": 12, "host_buffer_flits_max": 48, "reorder_delay": 3.0,
}  # fmt: skip


@pytest.mark.parametrize("name", ["fat_tree", "dragonfly"])
def test_all_points_are_what_they_say(name: str) -> None:
    points = REPRODUCTIONS[f"spraying.{name}"].points(Options())
    assert len(points) > 20
    for point in points:
        config = configuration(name, point, full=False, seed=3)
        assert (config.traffic.entropy is None) == (config.routing.spread is None)
        assert config.traffic.reorder is not None
        assert config.traffic.reorder.buffer_packets == point.get("buffer_packets")
        assert (config.traffic.source == "program") == (point["load"] is None)
        assert bool(config.simulation.failures) == point["fails"]


def test_rows_are_told_beside_one_way_a_flow() -> None:
    common = {"buffer_packets": None, "at_once": False, "fails": False, "makespan": None, "saturated": False, **ORDER}
    rows = [
        {"way": "one way a flow", "load": 0.2, **common, "message_latency": 200.0, "reordered_share": 0.0},
        {"way": "packet", "load": 0.2, **common},
        {"way": "packet", "load": 0.2, **common, "buffer_packets": 4},
        {"way": "one way a flow", "load": None, **common, "makespan": 900},
        {"way": "packet", "load": None, **common, "makespan": 600},
    ]
    study, data = REPRODUCTIONS["spraying.fat_tree"], pd.DataFrame(rows)
    found = [(each.quantity, each.paper, each.ours) for each in study.compare(data, Options())]
    assert found == [
        ("packet, load 0.2: latency of messages", 200.0, 100.0), ("packet, all-to-all: makespan", 900.0, 600.0),
    ]  # fmt: skip
    assert study.table is not None
    table = study.table(data, Options())
    assert table["run"].tolist() == ["load 0.2", "load 0.2", "load 0.2, 4 places", "all-to-all", "all-to-all"]
    assert table["makespan"].tolist() == ["–", "–", "–", "900", "600"]
    assert table["extent: mean, max"].tolist()[:2] == ["–", "2.5, 9"]
