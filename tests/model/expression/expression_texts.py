"""Random expressions that are right, and names for them; for the tests of language and logic."""

from hypothesis import strategies as st

from hopforge.model.expression.names import Digit, Names

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
