"""`reproduce routing.qos`: points, and the table from made-up rows."""

import pandas as pd
import pytest

from hopforge.model.config import parse_config
from hopforge.sim.reproduce import REPRODUCTIONS
from hopforge.sim.reproduce.registry import Options
from hopforge.sim.reproduce.routing.qos import FLOODS, NETWORKS, ROUTERS, isolation_text, shares_text
from hopforge.sim.run.simulation import Simulation


def test_points() -> None:
    figure = REPRODUCTIONS["routing.qos"]
    short, full = figure.points(Options()), figure.points(Options(full=True))
    assert len([point for point in short if point["what"] == "isolation"]) == len(ROUTERS) * len(FLOODS)
    assert len(full) - len(short) == (len(NETWORKS) - 1) * len(ROUTERS) * len(FLOODS)


@pytest.mark.parametrize("network", list(NETWORKS))
def test_every_network_is_proved(network: str) -> None:
    for router in ("no classes", "strict"):
        run = Simulation(parse_config(isolation_text(network, router)), 0.2, 1)
        run.advance(200)
        run.check_conservation()
        assert int(run.state["packets_ejected"]) > 50


def test_shares_are_compared_with_weights() -> None:
    config = parse_config(shares_text((1, 2, 5)))
    assert [each.weight for each in config.traffic.classes] == [1, 2, 5]
    rows: list[dict[str, object]] = [
        {"what": "isolation", "network": "8x8 mesh", "router": router, "flood": flood, "urgent_latency": 20.0 + flood,
         "urgent_latency_p99": 50.0, "flood_accepted": flood}
        for router in ROUTERS for flood in FLOODS
    ]  # fmt: skip
    rows += [
        {"what": "shares", "weights": "1 3", "weight": 1, "share_percent": 26.0},
        {"what": "shares", "weights": "1 3", "weight": 3, "share_percent": 74.0},
    ]
    found = REPRODUCTIONS["routing.qos"].compare(pd.DataFrame(rows), Options())
    by_name = {comparison.quantity: comparison for comparison in found}
    mean = by_name["latency of the urgent class, mean, 8x8 mesh, strict, flood 0.5"]
    assert (mean.paper, mean.ours) == (20.0, 20.5)
    share = by_name["share of the class of weight 3, weights 1:3"]
    assert (share.paper, share.ours) == (75.0, 74.0)
