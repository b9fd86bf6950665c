"""Types of operators are those that numba finds."""

import operator
from itertools import product
from typing import Any

import pytest
from numba import types
from numba.core.registry import cpu_target
from numba.core.types.functions import BaseFunction, Function

from hopforge.model.kernel.compile import PARTS

ROW = types.Array(types.int64, 1, "C")
TABLE = types.Array(types.uint64, 2, "C")
KINDS = (types.int64, types.uint64, types.float64, types.boolean, types.literal(3))


def found(function: Any, *arguments: types.Type) -> tuple[Any, Any]:
    """Return what numba finds, and what it is given."""
    context = cpu_target.typing_context
    context.refresh()
    kind = context.resolve_value_type(function)
    return (
        BaseFunction.get_call_type(kind, context, arguments, {}),
        [kind.get_call_type(context, arguments, {}) for _ in range(2)],
    )


@pytest.mark.parametrize("function", [operator.add, operator.floordiv, operator.and_, operator.lt, operator.eq])
def test_operators_on_numbers_have_the_types_that_numba_finds(function: Any) -> None:
    pairs = [pair for pair in product(KINDS, KINDS) if function is not operator.and_ or types.float64 not in pair]
    assert len(pairs) >= 16
    for pair in pairs:
        plain, quick = found(function, *pair)
        assert quick == [plain, plain], pair


@pytest.mark.parametrize(
    ("array", "index"),
    [(ROW, types.int64), (ROW, types.literal(2)), (ROW, types.slice2_type), (TABLE, types.int64),
     (TABLE, types.UniTuple(types.int64, 2))],
)  # fmt: skip
def test_so_have_entries_of_arrays(array: types.Type, index: types.Type) -> None:
    plain, quick = found(operator.getitem, array, index)
    assert quick == [plain, plain]


@pytest.mark.skipif(not PARTS, reason="another numba")
def test_numba_is_asked_once_for_each_combination() -> None:
    found(operator.getitem, ROW, types.int32)
    kind = cpu_target.typing_context.resolve_value_type(operator.getitem)
    assert (cpu_target.typing_context, (ROW, types.int32)) in vars(kind)["_known_signatures"]
    assert vars(Function)["get_call_type"].__module__ == "hopforge.model.kernel.quick_operators"
