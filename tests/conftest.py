"""What all tests share: the long ones run only when asked for."""

import os

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests marked ``study`` unless HOPFORGE_STUDY=1 (make study)."""
    if os.environ.get("HOPFORGE_STUDY") == "1":
        return
    skip = pytest.mark.skip(reason="long: set HOPFORGE_STUDY=1")
    for item in items:
        if item.get_closest_marker("study"):
            item.add_marker(skip)
