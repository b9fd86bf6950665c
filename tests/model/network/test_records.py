"""Records with constant fields: kernels read them as any other, and cannot be compiled if they write one."""

import numpy as np
import pytest
from numba import int64, njit
from numba.core.errors import NumbaError

from hopforge.model.kernel.constant_record import constant_record
from hopforge.model.network.core.layouts import input_vc_type
from hopforge.model.network.core.net_record import NET, NET_RECORD
from hopforge.sim.queued.records import QUEUES, QUEUES_RECORD

DTYPE = np.dtype([("limit", "i8"), ("count", "i8"), ("sizes", "i4", (3,))], align=True)
RECORD = constant_record(DTYPE, ["limit", "sizes"])


def _run(function):
    return njit(int64(RECORD))(function)


def test_constant_fields_are_read_anew_in_every_call():
    def fill(record):
        while record.count < record.limit:
            record.count += record["sizes"][1]
        return record.count

    kernel = _run(fill)
    record = np.zeros(1, DTYPE)
    for limit, size, expected in [(10, 3, 12), (30, 5, 32), (7, 1, 32)]:
        record["limit"], record["sizes"] = limit, size
        assert kernel(record[0]) == expected
        assert record["count"][0] == expected


def test_a_kernel_that_writes_a_constant_field_is_refused():
    def by_attribute(record):
        record.limit = 3
        return record.count

    def by_key(record):
        record["limit"] = 3
        return record.count

    def in_a_loop(record):
        for k in range(record.count):
            record.limit -= k
        return record.count

    for function in (by_attribute, by_key, in_a_loop):
        with pytest.raises(NumbaError, match="must not write the field 'limit'"):
            _run(function)


@pytest.mark.parametrize("buffer", [1, 8, 9, 65535])
def test_input_vcs_stand_a_power_of_two_apart(buffer):
    """Kernels find them by a shift (`build._set_strides`)."""
    size = input_vc_type(buffer).itemsize
    assert size.bit_count() == 1 and np.zeros(2, input_vc_type(buffer)).strides == (size,)


def test_an_unknown_field_is_no_constant():
    with pytest.raises(ValueError, match="no field 'limits'"):
        constant_record(DTYPE, ["count", "limits"])


@pytest.mark.parametrize(("dtype", "record"), [(NET, NET_RECORD), (QUEUES, QUEUES_RECORD)], ids=["net", "queues"])
def test_settings_and_addresses_of_the_simulators_are_constant(dtype, record):
    counters = set(dtype.names) - record.constant
    assert counters
    field = sorted(record.constant)[0]
    text = f"def write(record):\n    record.{field} = 1\n    return 0\n"
    names = {}
    exec(text, names)
    with pytest.raises(NumbaError, match=f"must not write the field '{field}'"):
        njit(int64(record))(names["write"])
    assert {"cycle", "last_move", "flits_ejected"} <= counters or {"matches", "derouted"} <= counters
