"""Whether cubes cover a cube, beside every address."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopforge.model.errors import UserError
from hopforge.model.lookup.rules import cubes
from hopforge.model.lookup.rules.cubes import uncovered
from hopforge.model.lookup.rules.dependencies import Dependencies
from hopforge.model.lookup.rules.rule_table import Rule, RuleTable

_BITS = 6
cube = st.tuples(st.integers(0, 63), st.integers(0, 63)).map(lambda drawn: (drawn[0] & drawn[1], drawn[1]))


def columns(others: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([v for v, _ in others], np.int64), np.array([m for _, m in others], np.int64)


@given(cube, st.lists(cube, max_size=12))
def test_every_address(of: tuple[int, int], others: list[tuple[int, int]]) -> None:
    inside = [a for a in range(1 << _BITS) if a & of[1] == of[0]]
    wanted = any(all(a & mask != value for value, mask in others) for a in inside)
    assert uncovered(*of, *columns(others)) == wanted


def fields(count: int) -> list[tuple[int, int]]:
    """Rules that fix a field of eight bits each: what is left of a rule behind them is 8^count cubes."""
    return [(0x5A << 8 * field, 0xFF << 8 * field) for field in range(count)]


def test_many_fields_need_no_list_of_what_is_left() -> None:
    table = RuleTable([Rule(k, *of, 9, k) for k, of in enumerate([*fields(7), (0, 0)])], 56)
    assert Dependencies(table).direct(7) == set(range(7))


def test_what_nobody_wants_to_know() -> None:
    """More dependencies than asked for are None; a change of the table forgets that, too."""
    rules = [Rule(k, *of, 9, k) for k, of in enumerate([*fields(4), (0, 0)])]
    table = RuleTable(rules, 32)
    dependencies = Dependencies(table)
    assert dependencies.direct(4, 3) is None
    assert dependencies.closure(4, 3) is None
    assert dependencies.direct(4, 2) is None
    assert dependencies.direct(4, 4) == dependencies.closure(4, 4) == {0, 1, 2, 3}
    assert dependencies.direct(4, 3) is None
    assert dependencies.direct(4) == {0, 1, 2, 3}


def test_too_many_parts_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cubes, "MOST_PARTS", 3)
    halves = [(0, 1 << bit) for bit in range(_BITS)]
    with pytest.raises(UserError, match="more than 3 parts of a rule"):
        uncovered(0, 0, *columns([*halves, (63, 63)]))
