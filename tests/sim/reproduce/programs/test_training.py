"""`hopforge reproduce training.*`: a reduced instance on every network, and what is put beside what."""

from functools import partial

import pandas as pd
import pytest

from hopforge.sim.reproduce import REPRODUCTIONS
from hopforge.sim.reproduce.programs import training
from hopforge.sim.reproduce.registry import Options

SMALL = {"shrink": 65536, "layers": 8, "microbatches": 8}


def test_points_are_the_whole_step_on_every_network_then_a_part_with_both_engines():
    for name, networks in (("llama7b", 5), ("moe", 5)):
        points = REPRODUCTIONS[f"training.{name}"].points(Options())
        assert [point["shrink"] == 1 for point in points] == [True] * 5 + [False] * 2 * networks
        assert {point["engine"] for point in points[:5]} == {"flow"}
        assert [point["engine"] for point in points[5:]] == ["flow", "packet"] * networks
        assert all("layers" in point for point in points[5:])
        whole = REPRODUCTIONS[f"training.{name}"].points(Options(full=True))
        assert len(whole) == 15
        assert not any("layers" in point for point in whole)


@pytest.mark.parametrize("name", ["moe", pytest.param("llama7b", marks=pytest.mark.study)])
def test_a_reduced_step_on_every_network(name):
    measure, rows = partial(training._measure, name), []
    for network in training._STEPS[name].networks:
        rows += measure({"network": network, "engine": "flow", **SMALL}, Options())
    table = pd.DataFrame(rows)
    assert table["makespan_s"].ge(table["ideal_s"]).all()
    shares = table[["computing_share", "exposed_share", "idle_share"]].sum(axis=1)
    assert shares.to_numpy() == pytest.approx(1.0)
    assert table["busiest_share"].between(0, 1).all()
    # the network changes how long a step takes, not what it sends or computes
    assert table["ideal_s"].max() == pytest.approx(table["ideal_s"].min())
    assert table["payload_bytes"].max() == pytest.approx(table["payload_bytes"].min(), rel=1e-3)
    computed = table["computing_share"] * table["makespan_s"]
    assert computed.max() == pytest.approx(computed.min())


def test_packet_stands_beside_flow_of_the_same_part():
    row = {"messages": 1, "payload_bytes": 1, "computing_share": 0.5, "exposed_share": 0.25, "idle_share": 0.25,
           "busiest_link": "router 1 to router 2, port 3", "busiest_share": 0.5,
           "busiest_host_share": 0.75}  # fmt: skip
    data = pd.DataFrame([
        {**row, "network": "torus", "engine": "flow", "shrink": 1, "makespan_s": 4.0, "ideal_s": 2.0},
        {**row, "network": "torus", "engine": "flow", "shrink": 8, "layers": 4, "makespan_s": 1.0, "ideal_s": 0.5},
        {**row, "network": "torus", "engine": "packet", "shrink": 8, "layers": 4, "makespan_s": 1.1, "ideal_s": 0.5},
    ])  # fmt: skip
    whole, part = training._compare("moe", data, Options())
    assert (whole.quantity, whole.paper, whole.ours) == ("torus: flow beside no time for messages", 2000, 4000)
    assert whole.assumption.startswith("computing 50.0 %, exposed 25.0 %, neither 25.0 %; router 1 to router 2, port 3")
    assert whole.assumption.endswith(" port 3 50.0 % busy, a host's 75.0 %")
    assert part.quantity == "torus, a part with 1/8 of the bytes: packet beside flow"
    assert part.deviation_percent == pytest.approx(10)
    assert training._draw("moe", data, Options()).axes


@pytest.mark.study
def test_engine_packet_on_a_small_part():
    point = {"network": "torus", "shrink": 65536, "layers": 4, "microbatches": 1}
    flow, packet = (
        training._measure("llama7b", {**point, "engine": engine}, Options())[0] for engine in ("flow", "packet")
    )
    assert packet["messages"] == flow["messages"]
    assert packet["makespan_s"] == pytest.approx(flow["makespan_s"], rel=0.1)
    assert packet["busiest_share"] is None
