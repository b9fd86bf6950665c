"""Numbers of the interpreted relation against those of its machine code: the same, or not covered."""

import math

import numba
import numpy as np
import pytest
from numba import int8, int16, int32, int64, uint8, uint32

from hopforge.model.routing.proof.every_answer import Unknown
from hopforge.model.routing.proof.machine_numbers import (
    BUILTINS,
    MOST,
    Module,
    NotCoveredError,
    Whole,
    cast,
    code_of,
    number,
    of_library,
)

#: expressions in two integers
EXPRESSIONS = [
    "a + b", "a - b", "a * b", "a // b", "a % b", "a & b", "a | b", "a ^ b", "-a", "~a", "abs(a)", "a << (b & 63)",
    "a << b", "a >> b", "a ** (b & 3)", "a ** b", "int8(a)", "int16(a) * int8(b)", "int32(a) + int32(b)", "uint8(a)",
    "uint8(a) - uint8(b)", "uint8(a) - b", "uint32(a) * uint32(b)", "uint32(a) // (1 + uint8(b))", "int8(a) << 8",
    "int(a / (abs(b) + 1))", "int(a * 0.75)", "int64(b * 1.5)", "min(a, b) - max(a, 3)", "(a > b) + (a < 3) * b",
    "True * a + (b == 2)", "round(a / 7)", "divmod(a, 1 + abs(b))[1]", "bool(a) - bool(b)", "math.floor(b / 3)",
    "np.sign(a) * b", "np.int8(a) + np.int8(b)", "np.minimum(a, b)", "table[a % 4] * table[b % 4]",
    "~(a < b)", "~((a < b) & (b < 3))", "~((a < b) & b)", "~bool(a)", "~int(a < b)", "~max(a < b, b < 3)",
    "np.invert(a < b)", "~np.logical_not(a)", "~(a / 2 < 1.5)", "(a / 2 < 1.5) + 1", "(a / 2 < 1.5) << 62",
    "~math.isnan(a / 2)",
    "~(True if a > 1 else False)", "2 ** (a > b)", "(1.5 < a) * b", "1 if ~(a == b) else 0", "math.floor(a / 2) * 3",
    "bytes_of[a % 3] - bytes_of[b % 3]", "sum((a, b, 1))", "0x7FFFFFFFFFFFFFFF + a", "int32(a * 3000000000)",
]  # fmt: skip
NAMES = {
    "int8": int8, "int16": int16, "int32": int32, "int64": int64, "uint8": uint8, "uint32": uint32, "math": math,
    "np": np, "table": np.array([2**30, -(2**31), 7, 2**31 - 1], np.int32), "bytes_of": np.array([0, 255, 3], np.uint8),
}  # fmt: skip
VALUES = [0, 1, -1, 2, 3, -7, 63, 64, 70, 127, 128, 255, 256, -129, 40_000, 2**31 - 1, -(2**31), 2**32 + 5, MOST, -MOST]


def replaced(value: object) -> object:
    if isinstance(value, numba.types.Type) or value is int or value is float:
        return cast(value, Unknown)
    if isinstance(value, type(math)):
        return Module(value, replaced)  # type: ignore[arg-type]
    return of_library(value, Unknown) if callable(value) else None


def test_arithmetic_is_that_of_machine_code_or_is_not_covered() -> None:
    text = "def compute(a, b, out, text):\n" + "".join(
        f"    {'if' if k == 0 else 'elif'} text == {k}:\n        out[0] = {one}\n" for k, one in enumerate(EXPRESSIONS)
    )
    plain: dict[str, object] = dict(NAMES)
    exec(text, plain)
    compiled = numba.njit("void(int64, int64, int64[:], int64)")(plain["compute"])
    covered = 0
    for k, expression in enumerate(EXPRESSIONS):
        names = {**BUILTINS, "int": replaced(int), "table": NAMES["table"], "bytes_of": NAMES["bytes_of"]}
        names = {name: replaced(one) for name, one in NAMES.items()} | names
        for name in ("table", "bytes_of"):
            names[name] = [number(one) for one in NAMES[name]]  # type: ignore[attr-defined]
        if "7FFF" in expression:
            with pytest.raises(NotCoveredError, match="63 bits"):
                code_of(compile(expression, "own.py", "eval"))
            continue
        code = code_of(compile(expression, "own.py", "eval"))
        for a in VALUES:
            for b in VALUES:
                try:
                    ours = eval(code, names, {"a": Whole(a), "b": Whole(b)})
                except (NotCoveredError, ZeroDivisionError):
                    continue
                out = np.zeros(1, np.int64)
                compiled(a, b, out, k)
                assert int(ours) == int(out[0]), (expression, a, b)
                covered += 1
    assert covered > 0.6 * len(EXPRESSIONS) * len(VALUES) ** 2


@pytest.mark.parametrize("body", ["return not a", "return a in (1, 2)", "return a is None", "x = not a\nreturn x"])
def test_truth_values_that_are_kept_are_not_covered(body: str) -> None:
    names: dict[str, object] = {}
    exec("def f(a):\n " + body.replace("\n", "\n "), names)
    with pytest.raises(NotCoveredError, match="write x == 0"):
        code_of(names["f"].__code__)  # type: ignore[attr-defined]
