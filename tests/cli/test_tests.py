"""The tests themselves: each of them can fail."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
CHECKS = {"raises", "warns", "fail"}  # of pytest


def without_assertion(text: str) -> list[str]:
    """Names of the test functions of a file that, with the functions of the file that they call, assert nothing."""
    tree = ast.parse(text)
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    asserting = {name for name, function in functions.items() if any(_asserts(node) for node in ast.walk(function))}
    called = {name: set(_called(function)) & set(functions) for name, function in functions.items()}
    before = -1
    while len(asserting) != before:
        before = len(asserting)
        asserting |= {name for name, names in called.items() if names & asserting}
    return [name for name in functions if name.startswith("test_") and name not in asserting]


def _asserts(node: ast.AST) -> bool:
    """Whether a statement or call can make a test fail: an exception that is on its way anyhow does not count."""
    if isinstance(node, ast.Raise):
        raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        return isinstance(raised, ast.Name) and raised.id == "AssertionError"
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        return name in CHECKS or name.startswith("assert_")
    return isinstance(node, ast.Assert)


def _called(function: ast.AST) -> Iterator[str]:
    """Names of the functions, and of the methods of its own class, that a function calls."""
    for node in ast.walk(function):
        match node:
            case ast.Call(func=ast.Name(id=name)):
                yield name
            case ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=name)):
                yield name


def test_every_test_asserts_something() -> None:
    files = sorted(TESTS.rglob("test_*.py"))
    assert len(files) > 50
    empty = [f"{file.relative_to(TESTS)}: {name}" for file in files for name in without_assertion(file.read_text())]
    assert empty == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("def test_a():\n    run()\n", ["test_a"]),
        ("def test_a():\n    def broken():\n        raise OSError\n    run(broken)\n", ["test_a"]),
        ("def test_a():\n    assert run()\n", []),
        ("def test_a():\n    with pytest.raises(OSError):\n        run()\n", []),
        ("def both():\n    inner()\ndef inner():\n    assert run()\ndef test_a():\n    both()\n", []),
        ("class TestB:\n def test_b(self):\n  np.testing.assert_equal(a, b)\n def test_c(self): run()\n", ["test_c"]),
        ("def run():\n    assert True\ndef test_a():\n    tool.run()\n", ["test_a"]),
    ],
)  # fmt: skip
def test_of_the_scan(text: str, found: list[str]) -> None:
    assert without_assertion(text) == found
