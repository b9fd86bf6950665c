"""Runs in which no packet arrives: every table and every picture is written, and no figure is invented."""

import math

import hopforge as hf

MESH = """
name: quiet
topology: {kind: mesh, radices: [3, 3]}
simulation: {min_cycles: 1000, max_cycles: 1000, warmup_cycles: 100}
"""


def test_a_run_without_packets_is_written(tmp_path):
    config = hf.loads(MESH)
    for found in (hf.simulate(config, load=0, progress=False), hf.series(config, load=0, progress=False)):
        folder = found.write(tmp_path / type(found).__name__, plots=True)
        assert found.pictures and {path.stem for path in folder.glob("*.png")} == set(found.pictures)
        words = " ".join(words for _, words in found.rows)
        assert "nan" not in words.split()
        assert {path.stem for path in folder.glob("*.parquet")} == set(found.tables)
    table = hf.simulate(config, load=0, progress=False).table
    assert table["packets"][0] == 0 and math.isnan(table["latency"][0]) and math.isnan(table["hops"][0])
