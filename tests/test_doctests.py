"""The examples in docstrings do what they say."""

import doctest
import importlib
import pkgutil

import pytest

import hopforge

MODULES = [module.name for module in pkgutil.walk_packages(hopforge.__path__, "hopforge.")]


def test_there_are_examples() -> None:
    finder = doctest.DocTestFinder(exclude_empty=True)
    assert sum(len(test.examples) for name in MODULES for test in finder.find(importlib.import_module(name))) > 5


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE).failed == 0
