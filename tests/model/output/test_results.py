"""Results appear whole or not at all."""

import json

import numpy as np
import pandas as pd
import pytest

from hopforge.model.config import parse_config
from hopforge.model.output.results import (
    ResultError,
    check_writable,
    run_metadata,
    staged,
    write_metadata,
    write_tables,
)

CONFIG = parse_config("name: t\nseed: 7\ntopology: {kind: torus, radices: [3, 3]}\n")


def test_tables_come_back_as_they_were(tmp_path):
    table = pd.DataFrame({"n": [1, 2], "rate": [0.1 + 0.2, np.nan], "name": ["a", "ü"]})
    write_tables(tmp_path, {"t": table})
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "t.csv"), table)
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "t.parquet"), table)
    assert (tmp_path / "t.csv").read_bytes() == b"n,rate,name\n1,0.30000000000000004,a\n2,,\xc3\xbc\n"


def test_metadata_repeats_the_run(tmp_path):
    write_metadata(tmp_path, run_metadata(CONFIG, ["hopforge", "hits", "t.yml"]) | {"n": np.int64(3)})
    read = json.loads((tmp_path / "metadata.json").read_text())
    assert read["command"] == ["hopforge", "hits", "t.yml"]
    assert read["seed"] == 7
    assert {"python", "hopforge", "numpy", "numba"} <= set(read["versions"])
    assert read["n"] == 3
    assert parse_config(json.dumps(read["config"])) == CONFIG  # YAML reads JSON


def test_staged_moves_everything_at_the_end(tmp_path):
    target = tmp_path / "a" / "b"
    with staged(target) as scratch:
        (scratch / "x.txt").write_text("new")
        (scratch / "deep").mkdir()
        (scratch / "deep" / "y.txt").write_text("y")
        assert not (target / "x.txt").exists()
    assert sorted(str(p.relative_to(target)) for p in target.rglob("*")) == ["deep", "deep/y.txt", "x.txt"]


def test_a_folder_in_the_place_of_a_file_stops_before_anything_moves(tmp_path):
    (tmp_path / "z.txt").mkdir()
    with pytest.raises(ResultError, match=r"cannot write results: z.txt is a folder"), staged(tmp_path) as scratch:
        (scratch / "a.txt").write_text("new")
        (scratch / "z.txt").write_text("new")
    assert [path.name for path in tmp_path.iterdir()] == ["z.txt"]


def test_staged_leaves_everything_as_it_was_on_failure(tmp_path):
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "x.txt").write_text("old")
    with pytest.raises(RuntimeError), staged(kept) as scratch:
        (scratch / "x.txt").write_text("new")
        raise RuntimeError
    assert [(p.name, p.read_text()) for p in kept.iterdir()] == [("x.txt", "old")]
    with pytest.raises(RuntimeError), staged(tmp_path / "fresh" / "folder"):
        raise RuntimeError
    assert not (tmp_path / "fresh").exists()


def test_a_full_disk_is_one_clear_error(tmp_path):
    with (
        pytest.raises(ResultError, match=r"out: cannot write results: No space left on device"),
        staged(tmp_path / "out"),
        open("/dev/full", "w") as full,  # noqa: PTH123
    ):
        full.write("x")
        full.flush()
    assert not (tmp_path / "out").exists()


def test_a_file_in_the_way_is_one_clear_error(tmp_path):
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(ResultError, match=r"file/out: cannot write results: Not a directory"),
        staged(tmp_path / "file" / "out"),
    ):
        pass


def test_asking_before_a_long_run_leaves_nothing(tmp_path):
    check_writable(tmp_path / "a" / "b")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("")
    with pytest.raises(ResultError, match=r"file/out: cannot write results: Not a directory"):
        check_writable(tmp_path / "file" / "out")
