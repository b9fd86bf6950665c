"""The golden engines against what a lookup means: every response is an answer that nobody had withdrawn yet."""

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from withdrawn_answers import STEADY, answered

OTHER_DEPTHS = ((4, True), (6, True), (8, False))


@pytest.mark.parametrize(
    "changes",
    [
        {"entries": 8, "ways": 2, "mshrs": 6, "epoch_bits": 1},
        {"entries": 1, "ways": 1, "mshrs": 1, "epoch_bits": 2},
        {"entries": 16, "ways": 4, "mshrs": 3, "policy": "plru"},
        {"entries": 8, "ways": 4, "mshrs": 9, "policy": "random", "skewed": True, "epoch_bits": 1},
    ],
    ids=lambda changes: f"{changes['mshrs']}-mshrs",
)
@pytest.mark.parametrize(
    ("depth", "mesh"),
    [(1, False), (5, False), (8, True), *(pytest.param(*more, marks=pytest.mark.study) for more in OTHER_DEPTHS)],
)
@pytest.mark.thinned(2)
def test_every_response_is_right_once(depth: int, mesh: bool, changes: dict[str, Any]) -> None:
    counters = answered(changes, depth, mesh=mesh).engine.counters
    assert counters["hits"] > 50 and counters["retries"] > 0 and counters["invalidations"] > 3
    assert changes["mshrs"] == 1 or counters["merges"] > 5


@pytest.mark.parametrize("changes", STEADY, ids=lambda changes: f"{changes['entries']}-lines")
@pytest.mark.parametrize(("depth", "mesh"), [(3, True), (5, True), (5, False), (7, True)])
def test_every_response_is_right_when_every_stage_is_full(depth: int, mesh: bool, changes: dict[str, Any]) -> None:
    counters = answered(changes, depth, mesh=mesh, steady=True).engine.counters
    assert counters["hits"] > 100 and counters["flushes"] + counters["invalidations"] > 10
