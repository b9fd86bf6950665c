"""Arrays that kernels get as one pointer."""

import copy
from typing import Any

import numpy as np
import pytest

from hopforge.model.kernel.array_record import ArrayRecord
from hopforge.model.kernel.compile import kernel


class Inside(ArrayRecord):
    row: np.ndarray
    number: int


class Whole(ArrayRecord):
    table: np.ndarray
    cube: np.ndarray
    share: float
    inside: Inside
    rows: tuple[Inside, ...]


@kernel
def _sum(record: Any, other: int) -> Any:
    total = record.share + record.inside.number + record.rows[other].number
    for a in range(record.cube.shape[0]):
        for b in range(record.cube.shape[1]):
            for c in range(record.cube.shape[2]):
                total += record.cube[a, b, c]
    record.table[1, 2] = 7
    record.rows[other].row[:] = record.inside.row
    return total


def whole() -> Whole:
    insides = tuple(Inside(row=np.arange(3) + 10 * k, number=100 * k) for k in range(3))
    return Whole(
        table=np.zeros((2, 3), np.int64), cube=np.arange(24, dtype=np.uint8).reshape(2, 3, 4), share=0.5,
        inside=insides[2], rows=insides,
    )  # fmt: skip


def test_kernels_read_and_write_what_python_sees() -> None:
    record = whole()
    assert _sum(record, 1) == sum(range(24)) + 0.5 + 200 + 100
    assert record.table.tolist() == [[0, 0, 0], [0, 0, 7]]
    assert [one.row.tolist() for one in record.rows] == [[0, 1, 2], [20, 21, 22], [20, 21, 22]]


def test_records_of_equal_fields_have_one_type_and_others_another() -> None:
    assert whole().numba_type == whole().numba_type
    assert Inside(row=np.zeros(1), number=1).numba_type != Inside(row=np.zeros(1, np.int64), number=1).numba_type


def test_what_kernels_would_not_notice_is_refused() -> None:
    record = whole()
    with pytest.raises(AttributeError, match=r"Whole\.table stays the same array: write its entries"):
        record.table = np.zeros((2, 3), np.int64)
    with pytest.raises(TypeError, match="Whole holds addresses, which cannot be copied"):
        copy.deepcopy(record)
    with pytest.raises(ValueError, match="arrays of a record must be contiguous"):
        Inside(row=np.arange(6)[::2], number=1)
    with pytest.raises(TypeError, match="fields of Inside are row, number, not row"):
        Inside(row=np.arange(6))
    with pytest.raises(TypeError, match="records of a tuple must have fields of the same types"):
        Whole(**vars_of(record) | {"rows": (record.inside, record)})
    with pytest.raises(TypeError, match="a number of 64 bits, not int32"):
        _ = Inside(row=np.arange(3), number=np.int32(1)).numba_type


def test_classes_whose_fields_would_be_lost_or_hidden_are_refused() -> None:
    with pytest.raises(TypeError, match="More: fields of Inside would be lost"):
        type("More", (Inside,), {"__annotations__": {"further": int}})
    with pytest.raises(TypeError, match=r"Own\.address: a record has this itself"):
        type("Own", (ArrayRecord,), {"__annotations__": {"address": int}})


def test_a_record_with_other_fields_keeps_the_rest_and_kernels_read_them() -> None:
    record = whole()
    other = record.with_fields(share=2.0, table=np.ones((2, 3), np.int64))
    assert _sum(other, 1) == _sum(record, 1) + 1.5
    assert other.cube is record.cube


def vars_of(record: Whole) -> dict[str, Any]:
    return {name: getattr(record, name) for name in Whole.names()}
