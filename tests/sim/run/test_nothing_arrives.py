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


def test_bins_without_packets_have_no_share_of_detours():
    """Every packet takes a detour: so it is in each bin in which one arrives, and at the end, whatever is empty."""
    network = "topology: {kind: slim_fly, q: 3}\nrouter: {model: input_output_queued, vcs: 3}\n"
    times = "simulation: {warmup_us: 1, measure_us: 4, series_bins: 40}\n"
    config = hf.loads(f"name: few\n{network}routing: {{algorithm: valiant}}\n{times}")
    series = hf.series(config, load=0.003, progress=False)
    empty = series.table["latency"].isna()
    assert 0 < empty.sum() < len(empty)
    assert (series.table["derouted_share"].isna() == empty).all()
    assert set(series.table["derouted_share"].dropna()) == {1.0}
    assert "derouted 100.00 %" in dict(series.rows)["routers visited"]
    assert math.isnan(hf.simulate(config, load=0, progress=False)["derouted_share"])


def test_what_routers_do_not_count_is_not_zero():
    config = hf.loads(MESH).replace({"routing.algorithm": "valiant", "traffic.pattern": "neighbour"})
    run, series = (each(config, load=0.1, progress=False) for each in (hf.simulate, hf.series))
    assert run.hops > 2.9  # neighbours are one link apart, two around the edge: most packets were on a detour
    assert math.isnan(run["derouted_share"]) and series.table["derouted_share"].isna().all()
    assert "derouted" not in dict(series.rows)["routers visited"]


def test_without_reordered_packets_there_is_no_extent():
    config = hf.loads(MESH + "router: {vcs: 1}\ntraffic: {reorder: {deliver: in_order}}\n")
    run, quiet = (hf.simulate(config, load=load, progress=False) for load in (0.2, 0))
    assert run["reordered_share"] == 0 and run["reorder_delay_max"] == 0
    assert all(math.isnan(run[f"reorder_extent{end}"]) for end in ("", "_p99", "_max"))
    assert math.isnan(quiet["reorder_delay_max"])
