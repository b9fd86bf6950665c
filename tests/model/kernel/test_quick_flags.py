"""Compiler flags compare as numba compares them: option by option, one that was never set has its default."""

from itertools import product

import pytest
from numba.core.compiler import Flags
from numba.core.targetconfig import TargetConfig

from hopforge.model.kernel.compile import PARTS

FLAGS = (
    {}, {"nrt": False}, {"nrt": True}, {"boundscheck": True}, {"nrt": True, "boundscheck": True},
    {"boundscheck": True, "nrt": True}, {"nrt": False, "boundscheck": False}, {"error_model": "numpy"},
)  # fmt: skip


def flags(values: dict[str, object]) -> Flags:
    made = Flags()
    for name, value in values.items():
        setattr(made, name, value)
    return made


@pytest.mark.parametrize(("one", "other"), list(product(FLAGS, FLAGS)))
def test_equal_flags_are_those_with_equal_options(one: dict[str, object], other: dict[str, object]) -> None:
    mine, others = flags(one), flags(other)
    assert (mine == others) == (mine.values() == others.values())
    assert hash(mine) == hash(others) == hash(tuple(sorted(mine.values())))


def test_flags_of_another_class_may_be_equal_and_others_are_not() -> None:
    class Other(Flags):
        """The same options."""

    assert flags({"nrt": True}) == Other(flags({"nrt": True}))
    assert flags({}) != {}


@pytest.mark.skipif(not PARTS, reason="another numba")
def test_they_are_compared_quickly() -> None:
    assert TargetConfig.__eq__.__module__ == TargetConfig.__hash__.__module__ == "hopforge.model.kernel.quick_flags"
