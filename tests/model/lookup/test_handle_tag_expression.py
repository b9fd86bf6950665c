"""Expressions of Handle and getTag against the golden cases of shared/beyond and Python itself; what is refused."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopforge.model.expression.syntax import ExpressionError
from hopforge.model.lookup.handle_tag_expression import HandleTagExpression

_PLACES = [folder / "shared" / "beyond" / "reduce.json" for folder in Path(__file__).parents]
GOLDEN = next((place for place in _PLACES if place.exists()), None)
needs_golden = pytest.mark.skipif(GOLDEN is None, reason="shared/beyond is not here")
NAMES = {"c": (1, 0), "d": (2, 3), "k": (4, 4), "n": 2, "l": 1, "i": 0, "j": 1}


def golden(key):
    return json.loads(GOLDEN.read_text())[key]


def environment():
    found = golden("values")["env"]
    return {name: tuple(value) if isinstance(value, list) else value for name, value in found.items()}


def plain(value):
    return [plain(each) for each in value] if isinstance(value, tuple) else value


@needs_golden
def test_values_of_the_reference():
    cases = golden("values")["cases"]
    assert len(cases) == 10
    for text, value in cases:
        assert plain(HandleTagExpression(text)(environment())) == value, text


@needs_golden
def test_what_the_reference_refuses():
    cases, names = golden("rejected"), environment()
    assert len(cases) == 17
    for text in cases:
        with pytest.raises(ExpressionError, match=r"."):
            HandleTagExpression(text)(names)


def test_nothing_is_executed(monkeypatch):
    monkeypatch.setattr("builtins.open", lambda *_: pytest.fail("executed"))
    with pytest.raises(ExpressionError, match="only the functions"):
        HandleTagExpression("open(1)")(NAMES)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("-7 % -(-2)", 1), ("7 // 2 * 2", 6), ("-1 >> 62", -1), ("1 << 61", 1 << 61), ("~0", -1), ("+3", 3),
        ("0x1f ^ 0b1", 30), ("sign(0) + sign(9)", 1), ("3 and 4", 1), ("0 or 5", 1), ("not 7", 0), ("3 > 2 > 1", 1),
        ("3 > 2 > 2", 0), ("1 == 1 != 0", 1), ("max(d[0], d[1], c[0])", 3), ("(i, (j, l), n)", (0, (1, 1), 2)),
        ("(1, 2) if 0 else (3,)", (3,)), ("()", ()), ("d[c[0]]", 3), ("(1 if d[0] else 0) + 1", 2), (" 1 ", 1),
        ("(1\n + 2)\n", 3), ("k[n - 1] << l", 8), ("2 # two", 2),
        ("n < 2 and d[2]", 0), ("1 or d[9]", 1), ("5 if n else d[9]", 5), ("9 < 1 < d[9]", 0),  # not computed
    ],
)  # fmt: skip
def test_values(text, value):
    assert HandleTagExpression(text)(NAMES) == value


OPERATORS = ["+", "-", "*", "&", "|", "^", "<", "<=", "==", "!=", ">", ">="]


@given(st.recursive(
    st.integers(0, 99).map(str) | st.sampled_from(["d[0]", "c[1]", "k[i]", "n", "l", "j"]),
    lambda inner: st.tuples(inner, st.sampled_from(OPERATORS), inner).map(
        lambda parts: f"({' '.join(parts)})") | inner.map(lambda text: f"(-~{text} // 7 % 5)"),
    max_leaves=8,
))  # fmt: skip
def test_arithmetic_is_that_of_python(text):
    assert HandleTagExpression(text)(NAMES) == int(eval(text, {}, NAMES))


@pytest.mark.parametrize(
    ("text", "column", "reason"),
    [
        ("", 1, "no expression"), ("d[0] +", 1, "no expression"), ("1 +\n+", 1, "no expression"),
        ("1 + e", 5, "'e' is no name: only n, l, i, j"), ("1 + c", 5, "c is a vector: name one of its digits, as c"),
        ("1 + d[2]", 5, "subscript of d must be 0 to 1, not 2"), ("d[0 - 1]", 1, "must be 0 to 1, not -1"),
        ("c[0] // (1 - 1)", 1, "a divisor must be at least 1, not 0"), ("1 % -3", 1, "at least 1, not -3"),
        ("1 << 63", 1, "a shift must be 0 to 62, not 63"), ("1 >> -1", 1, "a shift must be 0 to 62, not -1"),
        ("1 << 62", 1, "at most 62 bits"), ("1 << 60 << 60", 1, "at most 62 bits"),
        ("9999999999 * 9999999999", 1, "at most 62 bits"), ("9" * 900, 1, "at most 62 bits"),
        ("d[0] ** 2", 1, r"operator \*\* is not accepted"), ("1 / 2", 1, r"operator / \(// rounds down\)"),
        ("(1, 2) + 1", 1, "a tuple has no place in arithmetic"), ("not (1,)", 5, "a tuple has no place"),
        ("1 if (1,) else 2", 6, "a tuple has no place"), ("((1,) if n else 1) + 1", 2, "not a tuple"),
        ("d[0:1]", 1, "a subscript is one whole number"), ("(1, 2)[0]", 1, "only c, d and k have subscripts"),
        ("(*d,)", 2, "is not accepted"), ("max(1)", 1, "max takes 2 to 99 values, not 1"),
        ("abs(1, 2)", 1, "abs takes 1 value, not 2"), ("min(*d, 1)", 5, "is not accepted"),
        ("abs(x=1)", 1, "only the functions abs, sign, min, max"), ("abs", 1, "'abs' is no name"),
        ("().__class__", 1, "is not accepted"), ("c[0](1)", 1, "only the functions"), ("1 is 1", 1, "comparison Is"),
        ("1 in (1,)", 1, "comparison In"), ("[d for d in k]", 1, "is not accepted"), ("(i := 1)", 2, "is not accepted"),
        ("f'{n}'", 1, "is not accepted"), ("False", 1, "is not accepted"), ("1j", 1, "is not accepted"),
        ("ｄ[0]", 1, "character"), ("1\0", 2, "character"), ("1if 2else 3", 1, "no expression"),
        ("(i, foo(\n1))", 5, "only the functions"), ("1 + " * 50 + "1", 1, "more than 40"),
        ("-" * 900 + "1", 42, "more than 40"), ("1, " * 17, 1, "items of tuples: more than 16"),
        ("1 + " * 250 + "1", 1001, "at most 1000 characters, not 1001"), ("(" * 400 + "1" + ")" * 400, None, "."),
    ],
)  # fmt: skip
def test_mistakes_name_their_place(text, column, reason):
    with pytest.raises(ExpressionError, match=reason) as caught:
        HandleTagExpression(text)(NAMES)
    assert "\n" not in caught.value.placed(text)
    if column is not None and "no expression" not in reason:
        assert f"column {column}:" in caught.value.placed(text)
