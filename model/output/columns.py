"""Columns as CSV and Parquet, as pandas writes them, without pandas: its import takes longer than many a run."""

import csv
import json
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopforge.model.output.column_notes import ColumnNote

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

__all__ = ["Columns", "notes_of_file", "one_row", "write_csv", "write_frame", "write_parquet"]

#: name of a column → its values: whole numbers, floats (NaN: nothing there), truth values or texts
Columns = Mapping[str, ArrayLike]


def one_row(row: Mapping[str, Any]) -> Columns:
    """Return a table of one row."""
    return {name: [value] for name, value in row.items()}


def write_csv(columns: Columns, path: Path) -> None:
    """Write columns of the same length as CSV, floats in full precision; the same bytes as ``DataFrame.to_csv``."""
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(columns)
        texts = (_texts(np.asarray(values), name) for name, values in columns.items())
        rows.writerows(zip(*texts, strict=True))


def holds_whole_numbers(name: str, values: NDArray[Any]) -> bool:
    """Whether a column of floats holds whole numbers and gaps: the largest of latencies, where some have none.

    It is written as whole numbers, as the same column without a gap is.

    Examples
    --------
    >>> holds_whole_numbers("latency_max", np.array([7.0, np.nan]))
    True
    """
    if not name.endswith("latency_max") or values.dtype.kind != "f":
        return False
    there = values[~np.isnan(values)]
    return bool((there == np.floor(there)).all())


def _texts(values: NDArray[Any], name: str) -> list[str]:
    missing = _missing(values)
    whole = holds_whole_numbers(name, values)
    texts = (np.where(missing, 0, values).astype(np.int64) if whole else values).astype(str).astype(object)
    texts[missing] = ""
    found: list[str] = texts.tolist()
    return found


def write_parquet(columns: Columns, path: Path, notes: Mapping[str, ColumnNote]) -> None:
    """Write columns of the same length as Parquet; the same file as `write_frame` of the DataFrame.

    Parameters
    ----------
    columns : dict of str to array
        The table.
    path : Path
        The file.
    notes : dict of str to ColumnNote
        What is known of the columns: it goes into the metadata of the schema.
    """
    import pyarrow as pa  # noqa: PLC0415 - slow to import (tests/sim/start/test_start_up.py)
    from pyarrow import parquet  # noqa: PLC0415

    arrays = {name: np.asarray(values) for name, values in columns.items()}
    stored = {name: _stored(values, name) for name, values in arrays.items()}
    schema = pa.schema([pa.field(name, array.type) for name, array in stored.items()], {"pandas": _for_pandas(arrays)})
    parquet.write_table(_noted(pa.Table.from_arrays(list(stored.values()), schema=schema), notes), path)


def write_frame(frame: "pd.DataFrame", path: Path, notes: Mapping[str, ColumnNote]) -> None:
    """Write a DataFrame as Parquet, without its index, with what is known of its columns in the schema."""
    import pyarrow as pa  # noqa: PLC0415 - as above
    from pyarrow import parquet  # noqa: PLC0415

    parquet.write_table(_noted(pa.Table.from_pandas(frame, preserve_index=False), notes), path)


def _noted(table: "pa.Table", notes: Mapping[str, ColumnNote]) -> "pa.Table":
    """Put units and meanings into the schema: ``units`` and ``meanings`` (JSON), and in what pandas calls attrs."""
    if not notes:
        return table
    words = {
        "units": {name: note.unit for name, note in notes.items()},
        "meanings": {name: note.meaning for name, note in notes.items()},
    }
    held = {key: json.dumps(value, ensure_ascii=False) for key, value in words.items()}
    return table.replace_schema_metadata(
        {**(table.schema.metadata or {}), **held, "PANDAS_ATTRS": json.dumps(words, ensure_ascii=False)}
    )


def notes_of_file(path: Path) -> dict[str, ColumnNote]:
    """Return what a Parquet file says of its columns; nothing if there is no such file."""
    if not path.is_file():
        return {}
    from pyarrow import parquet  # noqa: PLC0415 - as above

    held = parquet.read_schema(path).metadata or {}
    units, meanings = (json.loads(held.get(key, b"{}")) for key in (b"units", b"meanings"))
    return {name: ColumnNote(unit, meanings[name]) for name, unit in units.items()}


def _stored(values: NDArray[Any], name: str) -> "pa.Array":
    """Return an Arrow array; ``pyarrow.array`` would import pandas."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    count, missing = len(values), _missing(values)
    valid = pa.py_buffer(np.packbits(~missing, bitorder="little")) if missing.any() else None
    if holds_whole_numbers(name, values):
        values = np.where(missing, 0, values).astype(np.int64)
    if values.dtype.kind == "U":
        texts = [text.encode() for text in values.tolist()]
        ends = np.cumsum([0, *map(len, texts)], dtype=np.int64)
        kind, buffers = pa.large_string(), [pa.py_buffer(ends), pa.py_buffer(b"".join(texts))]
    elif values.dtype.kind == "b":
        kind, buffers = pa.bool_(), [pa.py_buffer(np.packbits(values, bitorder="little"))]
    else:
        kind = pa.from_numpy_dtype(values.dtype)
        buffers = [pa.py_buffer(np.ascontiguousarray(values))]
    return pa.Array.from_buffers(kind, count, [valid, *buffers], int(missing.sum()))


def _missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    return np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), np.bool_)


def _for_pandas(arrays: Mapping[str, NDArray[Any]]) -> str:
    """Return what pandas notes of a table in its schema: the types of its columns, no index."""

    def notes() -> Iterator[dict[str, Any]]:
        for name, values in arrays.items():
            kinds = ("object", "str") if values.dtype.kind == "U" else (values.dtype.name, values.dtype.name)
            kinds = ("int64", "Int64") if holds_whole_numbers(name, values) else kinds
            yield dict(zip(
                ("name", "field_name", "pandas_type", "numpy_type", "metadata"), (name, name, *kinds, None), strict=True
            ))  # fmt: skip

    return json.dumps({
        "index_columns": [],
        "column_indexes": [],
        "columns": list(notes()),
        "attributes": {},
        "creator": {"library": "pyarrow", "version": version("pyarrow")},
        "pandas_version": version("pandas"),
    })  # fmt: skip
