"""The examples in docstrings do what they say."""

import doctest
import importlib
import pkgutil
from importlib.util import find_spec
from pathlib import Path

import pytest

import hopforge


def has_examples(name: str) -> bool:
    """Look for a prompt in the source: only such modules are imported and searched."""
    spec = find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    return ">>> " in Path(spec.origin).read_text()


MODULES = [each.name for each in pkgutil.walk_packages(hopforge.__path__, "hopforge.") if has_examples(each.name)]


def test_there_are_examples() -> None:
    finder = doctest.DocTestFinder(exclude_empty=True)
    assert sum(len(test.examples) for name in MODULES for test in finder.find(importlib.import_module(name))) > 5


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE).failed == 0
