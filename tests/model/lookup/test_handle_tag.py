"""Handle and getTag on networks: golden cases of shared/beyond, the built-in reductions, cases by hand, limits."""

import json
from pathlib import Path

import pytest

from hopforge.model.lookup import handle_tag
from hopforge.model.lookup.handle_tag import HandleTag, HandleTagError, check_on
from hopforge.model.lookup.node_reduction import NodeReduction
from hopforge.model.numbers.address import AddressFormat

_PLACES = [folder / "shared" / "beyond" / "reduce.json" for folder in Path(__file__).parents]
GOLDEN = next((place for place in _PLACES if place.exists()), None)
MESH = HandleTag("d[i] != c[i]", "(i, sign(d[i] - c[i]))", "(n, 0)")
TORUS = HandleTag(
    "d[i] != c[i]", "(i, sign(d[i] - c[i]) * (1 if abs(d[i] - c[i]) <= k[i] // 2 else -1))", "(n, 0)"
)  # fmt: skip
TREE = HandleTag(
    "i >= l and i < n - 1 and j == i + 1 and c[i] != d[j]", "(1, d[l])", "(0, d[l])", loop="ij"
)  # fmt: skip


def bad(found):
    return found.bad and [[found.bad.level, found.bad.switch], found.bad.first, found.bad.second]


@pytest.mark.skipif(GOLDEN is None, reason="shared/beyond is not here")
def test_cases_of_the_reference():
    cases = json.loads(GOLDEN.read_text())["cases"]
    assert len(cases) == 11
    for case in cases:
        found = check_on(HandleTag(**case["function"]), case["kind"], case["k"])
        tags = [list(tag) if isinstance(tag, tuple) else tag for tag in found.tags]
        assert (tags, found.table.tolist()) == (case["tags"], case["table"]), case
        assert (found.per_switch, found.ok, bad(found)) == (case["per_switch"], case["ok"], case["bad"]), case


def human(key, n):
    """A key of the built-in reduction as the functions above say it."""
    if key[0] in ("U", "D"):
        return (int(key[0] == "U"), key[1])
    return (n, 0) if key[0] == "L" else (key[1], 1 if key[2] == "+" else -1)


@pytest.mark.parametrize(
    ("kind", "function", "k"),
    [("mesh", MESH, (4, 3)), ("torus", TORUS, (5, 4, 2)), ("torus", TORUS, (6,)), ("fattree", TREE, (3, 3, 3))],
)
def test_the_built_in_reductions_say_the_same(kind, function, k):
    address = AddressFormat(16, 3)
    reduction = {
        "mesh": lambda: NodeReduction.mesh(k, address=address),
        "torus": lambda: NodeReduction.torus(k, address=address),
        "fattree": lambda: NodeReduction.fat_tree(k[0], len(k) - 1, address=address),
    }[kind]()  # fmt: skip
    found = check_on(function, kind, k)
    assert found.ok
    for router, row in enumerate(found.table.tolist()):
        for host, tag in enumerate(row):
            digits, rest = 0, host
            for place, radix in enumerate(k):
                digits |= rest % radix << 3 * place
                rest //= radix
            assert found.tags[tag] == human(reduction.human(router, digits), len(k)), (router, host)


def test_the_first_handle_decides():
    assert MESH((0, 0), (1, 1), (3, 3)) == (0, 1)  # the printed algorithm would say (1, 1)
    rounds = [(handle, HandleTag(handle, "(i, j)", "n", loop="ij")((0, 0), (0, 0), (2, 2))) for handle in (
        "1", "j == 1", "i == 1", "i + j == 2", "i > 1")]  # fmt: skip
    assert [tag for _, tag in rounds] == [(0, 0), (0, 1), (1, 0), (1, 1), 2]
    assert HandleTag("i == j and i == 1", "(i, j)", "n")((0, 0), (0, 0), (2, 2)) == (1, 1)
    assert HandleTag("-1", "i", "9")((0,), (0,), (2,)) == 0  # any number but 0


def test_hyperx_by_hand():
    found = check_on(HandleTag("d[i] ^ c[i]", "(i, d[i])", "(n, 0)"), "hyperx", (4,))
    assert found.tags == [(1, 0), (0, 1), (0, 2), (0, 3), (0, 0)]
    assert found.table.tolist() == [[0, 1, 2, 3], [4, 0, 2, 3], [4, 1, 0, 3], [4, 1, 2, 0]]
    assert (found.per_switch, found.ok) == (4, True)
    wrong = check_on(HandleTag("d[i] ^ c[i]", "i", "-1"), "hyperx", (3, 2))
    assert bad(wrong) == [[0, 0], 1, 2]  # both in dimension 0
    assert wrong.bad.ports == ((0, 1), (0, 2)) and wrong.bad.tag == 0


@pytest.mark.parametrize(
    ("handle", "conflict"),
    [
        ("0", [[0, 0], 0, 2]),  # at a leaf: down 0 beside up 0
        ("l == 0 and (c[0] != d[1] or c[1] != d[2])", [[1, 0], 0, 4]),  # right at leaves, not above
        ("l < 2 and (l == 0 and c[0] != d[1] or c[1] != d[2])", None),
    ],
)
def test_a_fat_tree_by_hand(handle, conflict):
    found = check_on(HandleTag(handle, "(1, d[l])", "(0, d[l])"), "fattree", (2, 2, 2))
    assert bad(found) == conflict
    assert found.levels == [(level, number) for level in range(3) for number in range(4)]


def test_a_tag_that_says_too_much_is_right_and_wide():
    found = check_on(HandleTag("0", "0", "d[0]"), "torus", (7,))
    assert (found.ok, found.per_switch, len(found.tags)) == (True, 7, 7)
    alone = check_on(HandleTag("0", "0", "0"), "mesh", (1,))
    assert (alone.ok, alone.per_switch, alone.table.tolist()) == (True, 1, [[0]])


@pytest.mark.parametrize(
    ("kind", "k", "reason"),
    [
        ("ring", (3,), "kind: must be one of mesh, torus, hyperx, fattree, not 'ring'"),
        ("mesh", (), "k: must have 1 to 16 radices, not 0"),
        ("mesh", (2,) * 17, "k: must have 1 to 16 radices, not 17"),
        ("fattree", (3,), "k: must have 2 to 16 radices, not 1"), ("fattree", (2, 3), "k: radices must be the same"),
        ("mesh", (3, 0), r"k: radices must be whole numbers from 1 to 1048576, not \[3, 0\]"),
        ("mesh", (True,), "k: radices must be whole numbers"), ("mesh", (2.0,), "k: radices must be whole numbers"),
        ("torus", (1025,), "k: at most 1,048,576 pairs of switch and destination, not 1,050,625"),
        ("mesh", (1 << 20,) * 16, "k: at most 1,048,576 pairs"),
    ],
)  # fmt: skip
def test_networks_that_are_none(kind, k, reason):
    with pytest.raises(HandleTagError, match=reason):
        check_on(MESH, kind, k)


def test_limits_of_time_and_memory(monkeypatch):
    long = HandleTag("+".join(["1"] * 30), "0", "0", loop="ij")
    with pytest.raises(HandleTagError, match="k: at most 500,000,000 operations, not"):
        check_on(long, "mesh", (2,) * 10)
    monkeypatch.setattr(handle_tag, "MAX_TAGS", 5)
    with pytest.raises(HandleTagError, match=r"function.tag: more than 5 tags: this reduces nothing"):
        check_on(HandleTag("1", "d[0]", "0"), "mesh", (6,))


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"loop": "j"}, "function.loop: must be one of i, ij, not 'j'"),
        ({"tag": "1 +"}, "function.tag: column .: no expression"),
        ({"default": "(n, i)"}, "function.default: column 5: 'i' has a value in handle and tag only"),
        ({"handle": "(1, 0)"}, "function.handle: column 1: must be a whole number, not a tuple"),
        ({"tag": "d[i + 1]"}, r"function.tag: column 1: subscript of d must be 0 to 1, not 2 \(with c = \(0, 0\), d = "
                              r"\(0, 1\), l = 0, i = 1, j = 1\)"),
        ({"default": "1 // c[0]"}, r"function.default: column 1: a div.* \(with c = \(0, 0\), d = \(0, 0\), l = 0"),
    ],
)  # fmt: skip
def test_functions_that_are_none(parts, reason):
    given = {"handle": "d[i] != c[i]", "tag": "i", "default": "n", **parts}
    with pytest.raises(HandleTagError, match=reason):
        check_on(HandleTag(**given), "mesh", (2, 2))
