"""The examples of keys.md, lookup-path.md and handle-tag.md in docs/definitions do what they say."""

import doctest
from pathlib import Path

import pytest

ROOT = next(folder for folder in Path(__file__).parents if (folder / "pyproject.toml").exists())


@pytest.mark.parametrize(("name", "examples"), [("keys.md", 15), ("lookup-path.md", 30), ("handle-tag.md", 3)])
def test_examples_of_the_page(name: str, examples: int) -> None:
    page = ROOT / "docs" / "definitions" / name
    result = doctest.testfile(str(page), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.attempted > examples
    assert result.failed == 0
