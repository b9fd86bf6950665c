"""The language of keys: golden and kernel on random expressions, mistakes, limits."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hopforge.model.expression.compile import compile_expression
from hopforge.model.expression.golden import evaluate
from hopforge.model.expression.names import Digit, Names
from hopforge.model.expression.parse import parse
from hopforge.model.expression.syntax import ExpressionError

A = 16
NAMES = Names(
    A, (Digit(1, 16), Digit(16, 5), Digit(80, 100)), (Digit(1, 16), Digit(16, 5)), Digit(3, 7),
    {"n": 2, "table": (3, 1, 4, 1, 5, 9, 2, 6), "wide": ((1, 2, 3, 4), (9, 8, 7, 6), (0, 5, 5, 0))},
)  # fmt: skip


def texts(depth: int, index: bool = False) -> st.SearchStrategy[str]:
    """Expressions that are right: each value that could grow is cut."""
    leaves = ["dst", "own", "level", "terminal", "d[0]", "d[1]", "d[2]", "c[0]", "c[1]", "7", "0", "n", "0x1f"]
    leaf = st.sampled_from([*leaves, "i", "c[i]", "d[i + 1]", "table[i]"] if index else leaves)
    if not depth:
        return leaf
    e = texts(depth - 1, index)
    truth = st.builds(
        lambda a, op, b: f"({a}) {op} ({b})", e, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), e
    )
    truth |= st.builds(lambda a, op, b: f"({a}) {op} not ({b})", truth, st.sampled_from(["and", "or"]), truth)
    inner = texts(depth - 1, index=True)
    inside = st.builds(lambda a, b: f"({a}) < ({b})", inner, inner)
    one = st.sampled_from
    return st.one_of(
        leaf,
        st.builds(lambda a, op, b: f"({a}) {op} ({b})", e, one(["+", "-"]), e),
        st.builds(lambda a, b: f"(({a}) % 9) * (({b}) % 11)", e, e),
        st.builds(lambda a, op, m: f"({a}) {op} {m}", e, one(["/", "%"]), one([1, 2, 3, 8, 10, 64])),
        st.builds(lambda a, h, w: f"(({a}) % 64 + 64)[{h + w}:{h}]", e, st.integers(0, 2), st.integers(0, 3)),
        st.builds(lambda a, b: f"{{({a}) % 8:3, ({b}) % 5:4}}", e, e),
        st.builds(lambda a: f"table[({a}) % 8]", e),
        st.builds(lambda a, b: f"wide[({a}) % 3][({b}) % 4]", e, e),
        st.builds(lambda f, a, b: f"{f}({a}, {b})", one(["min", "max"]), e, e),
        st.builds(lambda c, a, b: f"(if {c} then {a} else {b})", truth, e, e),
        st.builds(lambda f, c, a, b: f"({f} i < n where {c} then {a} else {b})", one(["first", "last"]), inside,
                  inner, e),
        st.builds(lambda f, c: f"({f} i < n where {c})", one(["any", "all"]), inside),
        st.builds(lambda a: f"-({a})", e),
        truth.map(lambda text: f"({text})"),
    )  # fmt: skip


@given(text=texts(3), seed=st.integers(0, 1 << 20))
@settings(max_examples=300, deadline=None)
def test_golden_and_kernel(text: str, seed: int) -> None:
    try:
        compiled = compile_expression(f"let x = {text}; {{1:1, x % 1000:10}}", NAMES)
    except ExpressionError as error:
        assert "bits" in error.reason or "inside each other" in error.reason, (text, error)
        assume(False)
        raise
    rng = np.random.default_rng(seed)
    own, dst = rng.integers(0, 1 << A, (2, 20))
    level = rng.integers(0, 32, 20)
    dst[:5] = own[:5]
    found = compiled.program.values(own, level, dst)
    for step in compiled.program.steps:
        assert step.low <= step.high
    for index in range(20):
        place = {"dst": int(dst[index]), "own": int(own[index]), "level": int(level[index])}
        assert evaluate(compiled.expression, NAMES, **place) == found[index], (text, place)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7 / 2 + 10 % 4", 5), ("(0 - 7) / 2 + 10", 6), ("(0 - 7) % 4", 1), ("-1 + 2", 1), ("2 + 3 * 4", 14),
        ("1 - 1 - 1 + 9", 8), ("0b101 + 0x10", 21), ("dst[7:4]", 0xC), ("{dst[3:0]:4, 1:2}", 0xD << 2 | 1),
        ("if 1 then 2 else d[9]", 2), ("first i < 3 where i * i > 0 then i else 9", 1),
        ("last i < 3 where i < 2 then i else 9", 1), ("first i < 0 where 1 then 1 else 9", 9),
        ("any i < 3 where table[i] == 4", 1), ("all i < 3 where table[i] > 1", 0), ("all i < 0 where 0", 1),
        ("not 0 and 1 or 0", 1), ("min(3, 4) + max(3, 4)", 7), ("bits(n) + bits(dst) + bits(d[1])", 2 + 16 + 3),
        ("wide[1][2] + table[5]", 16), ("let a = 3; let b = a + 1; a * b # words\n", 12), ("d[1]", 0xABCD // 16 % 5),
        ("terminal", 0xABCD // 3 % 7), ("level", 3), ("own + 1", 6),
        ("first i < 2 where (first i < 2 where i == 1 then i else 5) == i then i else 7", 1),
    ],
)  # fmt: skip
def test_values(text: str, value: int) -> None:
    compiled = compile_expression(f"({text}) % 512" if "let" not in text else text, NAMES)
    place = {"dst": 0xABCD, "own": 5, "level": 3}
    assert evaluate(compiled.expression, NAMES, **place) == value
    assert compiled.program.values(*(np.array([place[key]]) for key in ("own", "level", "dst"))) == [value]


@pytest.mark.parametrize(
    ("text", "column", "reason"),
    [
        ("", 1, "expected a value, not the end"),
        ("d[0", 4, "expected ']' after an index, not the end"),
        ("1 + + 2", 5, "expected a value, not '+'"),
        ("d[3]", 3, "'d' has digits 0 to 2, not 3"),
        ("d[0 - 1]", 5, "'d' has digits 0 to 2, not -1"),
        ("d", 1, "expected a value, not digits 'd'; choose one by [ ]"),
        ("table", 1, "expected a value, not a table; choose one by [ ]"),
        ("table[d[0]]", 7, "the table has numbers 0 to 7; the index is 0 to 15"),
        ("wide[1][4]", 9, "the table has numbers 0 to 3; the index is 4"),
        ("d[d[0]]", 3, "the number of a digit must be a constant, not a value of 0 to 15"),
        ("foo", 1, "unknown name 'foo'; known: address_bits, c, d, dst, level, n, own, table, terminal, wide"),
        ("{d[0]:3}", 2, "a value of 0 to 15 needs 4 bits, more than its width 3"),
        ("{d[0] - 1:9}", 7, "a field must be at least 0; this one is -1 to 14"),
        ("{d[0]:0}", 7, "a width must be 1 to 62, not 0"),
        ("{d[0]:c[0]}", 7, "a width must be a constant, not a value of 0 to 15"),
        ("{d[0]}", 6, "expected ':' and a width after a value in '{ }', not '}'"),
        ("dst / 0", 5, "division by 0"),
        ("dst % (n - 2)", 5, "division by 0"),
        ("dst % (0 - 2)", 10, "expected a number of at least 1, not -2"),
        ("dst % d[0]", 7, "expected a constant after '%', not a value of 0 to 15"),
        ("dst", 1, "the key must have at most address_bits - 4 = 12 bits, not 16"),
        ("d[0] - c[0]", 6, "the key must be at least 0; this one is -15 to 15"),
        ("if d[0] then 1 else 2", 4, "expected a truth (0 or 1), not a value of 0 to 15; compare it"),
        ("if 1 then 2", 12, "expected 'else' after the value of 'then', not the end"),
        ("1 < 2 < 3", 7, "comparisons do not chain; join two by 'and'"),
        ("first i < d[0] where 1 then 1 else 2", 11, "the limit of 'first' must be a constant, not a value of 0 to 15"),
        ("first i < 5000 where 1 then 1 else 2", 11, "the limit of 'first' must be 0 to 4096, not 5000"),
        ("first d < 2 where 1 then 1 else 2", 1, "'d' is no name for an index; it has a value already"),
        ("first i < 4 where d[i] == 3 then i else 5", 21, "'d' has digits 0 to 2, not 3"),
        ("let n = 3; n", 5, "'n' has a value already"),
        ("let if = 3; n", 5, "expected a name after 'let', not 'if'"),
        ("let x = 3 x", 11, "expected ';' at the end of 'let x =', not 'x'"),
        ("dst[16:0]", 5, "the value has bits 0 to 15, not 16"),
        ("dst[3:4]", 7, "expected a bit from 0 to 3, not 4"),
        ("(d[0] - 1)[2:0]", 7, "bits of a value that can be negative (-1 to 14)"),
        ("dst * dst * dst * dst", 17, "a value of 0 to 18445618199572250625 needs more than 62 bits"),
        ("min(1)", 1, "'min' takes 2 values, not 1"),
        ("bits(dst + 1)", 10, "what 'bits' is asked of (if no address or digit) must be a constant, not"),
        ("12ab", 3, "expected the end of the number 12, not 'a'"),
        ("a ? b", 3, "character '?' has no meaning here"),
        ("1 2", 3, "expected an operator or the end, not '2'"),
        ("(" * 40, 31, "expressions inside each other: more than 30"),
        ("not " * 40 + "1", 117, "expressions inside each other: more than 30"),
        ("dst[0:0]" + "+ 1" * 300, 306, "operations on operations: more than 200"),
        ("any i < 4096 where any j < 4096 where (dst + i * 9 + j) % 7 == 3", 20, "more than 20000 operations"),
        ("1" * 10_001, 10_001, "an expression has at most 10000 characters, not 10001"),
    ],
)  # fmt: skip
def test_mistakes(text: str, column: int, reason: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        compile_expression(text, NAMES)
    assert caught.value.reason.startswith(reason)
    assert caught.value.position == column - 1
    assert caught.value.placed(text).startswith(f"column {column}: ")


def test_place_in_many_lines() -> None:
    text = "let x = 1;\n  foo + x\n"
    with pytest.raises(ExpressionError) as caught:
        compile_expression(text, NAMES)
    assert caught.value.placed(text).startswith("line 2, column 3: unknown name 'foo'")


def test_equal_operations_are_one_step() -> None:
    once = compile_expression("let x = (dst + own) % 7; x * x % 100", NAMES).program
    twice = compile_expression("((dst + own) % 7) * ((dst + own) % 7) % 100", NAMES).program
    assert once == twice
    assert [step.late for step in once.steps] == sorted(step.late for step in once.steps)


def test_the_tree_knows_where_it_stands() -> None:
    tree = parse("let x = 1; x + dst[3:0]")
    assert tree.lets[0][:2] == (4, "x")
    assert tree.result.position == 13
