"""Files of a user's own import from two places only."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLACES = {"hopforge.model.routing", "hopforge.sim.traffic"}


def test_our_examples_import_from_the_two_places_only() -> None:
    files = sorted((ROOT / "configs").glob("*.py"))
    assert len(files) >= 3
    for path in files:
        found = {
            node.module
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.startswith("hopforge")
        }
        assert found and found <= PLACES, path.name
