"""Runs in which nothing arrives, or is counted: tables and pictures are written, and no figure is invented."""

import math

import hopforge as hf

MESH = """
name: quiet
topology: {kind: mesh, radices: [3, 3]}
simulation: {min_cycles: 1000, max_cycles: 1000, warmup_cycles: 100}
"""


def test_a_run_without_packets_is_written(tmp_path):
    config = hf.loads(MESH)
    run, series = hf.simulate(config, load=0, progress=False), hf.series(config, load=0, progress=False)
    series.write(tmp_path)
    for found in (run, series):
        assert not {"nan", "inf"} & set(" ".join(words for _, words in found.rows).split())
    assert {path.stem for path in tmp_path.glob("*.png")} == {"series", "distribution"}
    assert run["packets"] == 0 and math.isnan(run["latency"]) and math.isnan(run["hops"])


def test_what_routers_do_not_count_is_not_zero():
    config = hf.loads(MESH).replace({"routing.algorithm": "valiant", "traffic.pattern": "neighbour"})
    run, series = (each(config, load=0.1, progress=False) for each in (hf.simulate, hf.series))
    assert run.hops > 2.9  # neighbours are one link apart, two around the edge: most packets were on a detour
    assert math.isnan(run["derouted_share"]) and series.table["derouted_share"].isna().all()
    assert "derouted" not in dict(series.rows)["routers visited"]
