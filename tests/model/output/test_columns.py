"""Tables written without pandas are those that pandas writes."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from hopforge.model.output.columns import Columns, one_row
from hopforge.model.output.results import write_tables

VALUES = {
    "float64": st.floats(),
    "float32": st.floats(width=32),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "uint8": st.integers(0, 255),
    "bool": st.booleans(),
    "str": st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
}


def columns_of(kinds: list[str], count: int) -> st.SearchStrategy[dict[str, np.ndarray]]:
    made = [
        st.lists(VALUES[kind], min_size=count, max_size=count).map(lambda values, kind=kind: np.array(values, kind))
        for kind in kinds
    ]
    return st.tuples(*made).map(lambda arrays: {f"{k} {kinds[k]}, x": array for k, array in enumerate(arrays)})


TABLES = st.tuples(st.lists(st.sampled_from(list(VALUES)), min_size=2, max_size=5), st.integers(0, 20)).flatmap(
    lambda drawn: columns_of(*drawn)
)


def assert_same_files(columns: Columns) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        write_tables(folder, {"ours": columns, "theirs": pd.DataFrame(columns)})
        assert (folder / "ours.csv").read_bytes() == (folder / "theirs.csv").read_bytes()
        ours, theirs = (parquet.read_table(folder / f"{who}.parquet") for who in ("ours", "theirs"))
        ours.validate(full=True)
        assert ours.schema.equals(theirs.schema, check_metadata=True)
        both = (pd.read_parquet(folder / f"{who}.parquet") for who in ("ours", "theirs"))
        pd.testing.assert_frame_equal(*both, check_exact=True)
        assert [column.null_count for column in ours.columns] == [column.null_count for column in theirs.columns]


@given(TABLES)
@settings(deadline=None, max_examples=60)
def test_the_files_are_those_of_pandas(columns: dict[str, np.ndarray]) -> None:
    assert_same_files(columns)


def test_a_row_of_plain_values() -> None:
    row = {"text": 'a "b", ü', "n": 3, "yes": True, "rate": 0.1 + 0.2, "none": np.nan, "inf": np.inf}
    assert_same_files(one_row(row))


def test_columns_that_are_not_contiguous() -> None:
    table = np.arange(12, dtype=np.int32).reshape(6, 2)
    assert_same_files({"even": table[:, 0], "odd": table[::-1, 1]})


def test_largest_latencies_are_whole_numbers_with_and_without_gaps(tmp_path: Path) -> None:
    """One type in every file; before, a run in which nothing arrived made the whole column floats."""
    for k, values in enumerate(([7, 9], [7.0, np.nan], [np.nan, np.nan])):
        columns = {"latency_max": np.array(values), "urgent_latency_max": np.array(values), "mean": np.array(values)}
        assert_same_files(columns)
        write_tables(tmp_path, {f"t{k}": columns})
        schema = parquet.read_schema(tmp_path / f"t{k}.parquet")
        assert [str(schema.field(name).type) for name in ("latency_max", "urgent_latency_max")] == ["int64"] * 2
    assert (tmp_path / "t0.csv").read_text().splitlines()[1:] == ["7,7,7", "9,9,9"]
    assert (tmp_path / "t1.csv").read_text().splitlines()[1:] == ["7,7,7.0", ",,"]
    read = pd.read_parquet(tmp_path / "t1.parquet")["latency_max"]
    assert read[0] == 7 and read.isna().tolist() == [False, True]
    assert_same_files({"x_latency_max": np.array([1.5, np.nan])})  # no whole number: left alone
