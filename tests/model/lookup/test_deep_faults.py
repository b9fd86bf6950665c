"""Faults made by hand in the golden deep engine, which what a lookup means must show: without RTL, without kernel.

A fault is a change of the text of `model/lookup/golden/deep.py`. Each once survived, or is of a kind that did.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from hopforge.model.lookup.csr import csr_map
from hopforge.model.lookup.golden import build, deep
from hopforge.model.lookup.golden.ports import LookupInputs
from hopforge.model.lookup.params import LookupParams

sys.path.insert(0, str(Path(__file__).parent))
from withdrawn_answers import STEADY, answered

LOOKUPS = 6


class Fault(NamedTuple):
    """What is wrong, and the text that makes it so."""

    name: str
    right: str
    wrong: str
    check: Callable[[], object]


def full_stages() -> None:
    """Lookups in all stages when flushes and invalidations come: every response is one that nobody has withdrawn."""
    for depth, mesh in ((5, True), (7, True), (5, False)):
        for changes in STEADY:
            answered(changes, depth, mesh=mesh, steady=True)


def disabled() -> None:
    """An engine that is not enabled asks for every lookup, equal ones too, and keeps nothing."""
    engine = build.golden_engine(LookupParams(pipeline_depth=6, entries=16, ways=2, mshrs=8, tcam_kind="external"))
    waiting: list[int] = []
    asked = 0
    for cycle in range(120):
        outputs = engine.step(
            LookupInputs(
                req_valid=int(cycle < LOOKUPS or 60 <= cycle < 60 + LOOKUPS), req_dst=9, req_tag=cycle % 256,
                resp_ready=1, tcam_req_ready=1, tcam_resp_valid=int(bool(waiting)),
                tcam_resp_id=waiting.pop(0) if waiting else 0, tcam_resp_match=1, tcam_resp_output=77,
            )
        )  # fmt: skip
        if outputs.tcam_req_valid:
            waiting.append(outputs.tcam_req_id)
            asked += 1
        assert not (outputs.resp_valid and outputs.resp_hit)
    counters = engine.counters
    assert asked == counters["lookups"] == counters["misses"] == 2 * LOOKUPS
    assert counters["fills"] == counters["merges"] == 0


def turned_off() -> None:
    """A line that is there does not hit while the engine is off, and does again after."""
    engine = build.golden_engine(LookupParams(pipeline_depth=7, entries=16, ways=2, mshrs=4, tcam_kind="external"))
    ctrl = csr_map(engine.params)["CTRL"].address
    waiting: list[int] = []
    hits: list[int] = []
    for cycle in range(200):
        values = {"resp_ready": 1, "tcam_req_ready": 1, "req_valid": int(cycle in {20, 70, 120, 170}), "req_dst": 9}
        if cycle in {0, 60, 110, 160}:
            values |= {"csr_we": 1, "csr_addr": ctrl, "csr_wdata": int(cycle in {0, 160})}
        if waiting:
            values |= {"tcam_resp_valid": 1, "tcam_resp_id": waiting.pop(0), "tcam_resp_match": 1}
        outputs = engine.step(LookupInputs(**values))
        if outputs.tcam_req_valid:
            waiting.append(outputs.tcam_req_id)
        if outputs.resp_valid:
            hits.append(outputs.resp_hit)
    assert hits[:3] == [0, 0, 0] and len(hits) == 4, hits


def meets_an_answer() -> None:
    """An INVALIDATE meets the miss of its key at any time: the answer of before does not stay."""
    for gap in range(20):
        engine = build.golden_engine(LookupParams(pipeline_depth=5, entries=16, ways=2, mshrs=4, tcam_kind="external"))
        registers = csr_map(engine.params)
        asked: list[int] = []
        answers: list[int] = []
        for cycle in range(90):
            values = {"resp_ready": 1, "tcam_req_ready": 1, "req_valid": int(cycle in {10, 80}), "req_dst": 9}
            if cycle in {0, 30}:
                name, word = ("CTRL", 1) if cycle == 0 else ("INVALIDATE_LO", 9)
                values |= {"csr_we": 1, "csr_addr": registers[name].address, "csr_wdata": word}
            answered_before = len(answers) == 0 and asked and cycle == 24 + gap
            if answered_before or (len(answers) == 1 and len(asked) == 2):
                values |= {"tcam_resp_valid": 1, "tcam_resp_id": asked[len(answers)], "tcam_resp_match": 1}
                values["tcam_resp_output"] = 11 if not answers else 22
                answers.append(cycle)
            outputs = engine.step(LookupInputs(**values))
            if outputs.tcam_req_valid:
                asked.append(outputs.tcam_req_id)
            if outputs.resp_valid and cycle > 80:
                assert outputs.resp_output == 22, gap
        assert engine.counters["invalidations"] == 1


_FLUSHED = "(*self._a, *self._q, *self._c, self._m):\n            if operation is not None:\n"
FAULTS = [
    Fault("a flush misses stage A", _FLUSHED, _FLUSHED.replace("*self._a, ", ""), full_stages),
    Fault("a flush misses Q", _FLUSHED, _FLUSHED.replace("*self._q, ", ""), full_stages),
    Fault("a flush misses C1", _FLUSHED, _FLUSHED.replace("self._c,", "self._c[1:],"), full_stages),
    Fault("a flush misses C2", _FLUSHED, _FLUSHED.replace("self._c,", "self._c[:-1],"), full_stages),
    Fault("an MSHR is fresh whatever its lookup was", "fresh=lookup.fresh, key", "fresh=True, key", full_stages),
    Fault(
        "a lookup that must not use the cache merges", "if lookup.usable and lookup.fresh else None",
        "if lookup.fresh else None", disabled,
    ),
    Fault(
        "an answer in the cycle of its invalidation counts", "if old[index].stale or index in invalidated:",
        "if old[index].stale:", meets_an_answer,
    ),
    Fault(
        "an answer to a request of before an invalidation counts", "new[index].stale = True\n            else",
        "pass\n            else", meets_an_answer,
    ),
    Fault(
        "a lookup hits while the engine is off or waits for a flush",
        "if operation.usable and operation.fresh:", "if operation.fresh:", turned_off,
    ),
    Fault(
        "a line is written while the engine is off", "elif self._usable and operation.fresh:",
        "elif operation.fresh:", disabled,
    ),
]  # fmt: skip


def test_the_engine_itself_has_no_fault() -> None:
    full_stages()
    disabled()
    turned_off()
    meets_an_answer()


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_what_a_lookup_means_shows(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    text = Path(str(deep.__file__)).read_text()
    assert text.count(fault.right) == 1, "the text is not there, or not only once"
    changed = {**vars(deep)}
    exec(compile(text.replace(fault.right, fault.wrong), str(deep.__file__), "exec"), changed)
    monkeypatch.setattr(build, "DeepLookupEngine", changed["DeepLookupEngine"])
    with pytest.raises(AssertionError):
        fault.check()
