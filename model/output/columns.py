"""Columns as CSV and Parquet, as pandas writes them, without pandas: its import takes longer than many a run."""

import csv
import json
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Columns", "one_row", "write_csv", "write_parquet"]

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
        rows.writerows(zip(*(_texts(np.asarray(values)) for values in columns.values()), strict=True))


def _texts(values: NDArray[Any]) -> list[str]:
    texts = values.astype(str).astype(object)
    texts[_missing(values)] = ""
    found: list[str] = texts.tolist()
    return found


def write_parquet(columns: Columns, path: Path) -> None:
    """Write columns of the same length as Parquet; the same schema and values as ``DataFrame.to_parquet``."""
    import pyarrow as pa  # noqa: PLC0415 - slow to import (tests/sim/start/test_start_up.py)
    from pyarrow import parquet  # noqa: PLC0415

    arrays = {name: np.asarray(values) for name, values in columns.items()}
    stored = {name: _stored(values) for name, values in arrays.items()}
    schema = pa.schema([pa.field(name, array.type) for name, array in stored.items()], {"pandas": _for_pandas(arrays)})
    parquet.write_table(pa.Table.from_arrays(list(stored.values()), schema=schema), path)


def _stored(values: NDArray[Any]) -> "pa.Array":
    """Return an Arrow array; ``pyarrow.array`` would import pandas."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    count, missing = len(values), _missing(values)
    valid = pa.py_buffer(np.packbits(~missing, bitorder="little")) if missing.any() else None
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
