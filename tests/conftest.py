"""What all tests share: the long ones run only when asked for; no test fails because the machine is busy."""

import faulthandler
import gc
import os
import re
import signal
import sys
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key
from amaranth.hdl import Shape, Value
from amaranth.hdl._ast import Concat, Operator, SwitchValue
from hypothesis import HealthCheck, Phase, settings

from hopforge.__main__ import GARBAGE_AFTER
from hopforge.model.output import results
from hopforge.model.output.column_notes import ColumnNote, column_notes

STUDY = os.environ.get("HOPFORGE_STUDY") == "1"

# How long an example takes says something about the machine, not about the code. Everybody sees the same examples, here
# and where CI runs; a study draws new ones. To explain a failure can take longer than all tests.
settings.register_profile(
    "hopforge",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=not STUDY,
    database=None,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
)
settings.load_profile("hopforge")

# a job that a shell starts with & or nohup ignores these, and hands that down to the programs that the tests interrupt
for _number, _usual in {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: signal.SIG_DFL}.items():
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _usual)

# Twelve thousand tests and their modules are millions of objects, and Python would look at all of them again and again:
# without that, tests that make designs take a quarter less. Nothing is collected until all tests are known.
gc.disable()


def _remember_shape(kind: type[Value]) -> None:
    """Let each value of a kind remember its shape, which never changes.

    Amaranth asks for it at every turn and computes it anew, down to the signals: without that, its simulator
    takes twice as long to begin.
    """
    computed = kind.shape

    def shape(value: Value) -> Shape:
        known: Shape | None = value.__dict__.get("_known_shape")
        if known is None:
            known = value.__dict__["_known_shape"] = computed(value)
        return known

    kind.shape = shape


for _kind in (Operator, Concat, SwitchValue):
    _remember_shape(_kind)


#: a study takes as long as it takes; this only ends one that hangs
STUDY_TIMEOUT_S = 4 * 3600
#: what goes on for so long after its time is up does not hear of it: machine code, or hypothesis that sees a failure
DEAF_S = 120


#: files that take long, in the order in which they begin: at the end no process waits for one of them. Those that
#: compile kernels stand between those that compile none, so that two processes do not compile the same at a time.
LONG = (
    "sim/start/test_demo.py", "hw/router/test_router.py", "model/network/test_lookup.py", "gen/formal/test_lookup.py",
    "ci/test_notebooks.py", "sim/cosim/test_hand_made.py", "sim/benches/test_failed_networks.py",
    "hw/buses/test_buses.py", "model/routing/contract/test_guard.py", "sim/benches/test_lookup.py",
    "sim/failures/test_failures.py", "sim/drive/test_replay.py", "cli/test_repeatable.py",
    "gen/packages/test_lookup.py", "api/test_same_as_commands.py", "sim/cosim/test_mutate.py",
    "sim/benches/test_network.py", "sim/benches/test_benches.py", "model/kernel/test_compile.py",
    "gen/packages/test_router.py", "sim/run/test_chaos.py", "sim/cosim/test_lookup_variants.py",
    "cli/test_malformed.py", "gen/synth/test_package_timing.py", "model/routing/proof/test_proof.py",
    "gen/formal/test_router.py", "model/network/test_golden_switch.py", "hw/lookup/test_lookup.py",
    "model/routing/proof/test_short_proof.py", "model/routing/test_too_few_vcs.py", "sim/run/test_kept_results.py",
    "model/router/test_network.py", "sim/start/test_checks.py", "sim/start/test_start_up.py", "sim/run/test_sweep.py",
    "cli/test_docs_commands.py", "sim/traffic/test_demand.py",
)  # fmt: skip


#: tables and columns that tests of writing make up
MADE_UP = re.compile(r"(ours|theirs|new|old|t\d?)\..*|measurement\.mine")


def _thin_out(items: Iterable[pytest.Item]) -> None:
    """Leave one in n of the cases of a test marked ``thinned(n)``, and mark the others ``study``.

    Which ones is drawn from their names, so that no value of a parameter goes with the order of the cases.
    """
    cases: defaultdict[tuple[str, int], list[pytest.Item]] = defaultdict(list)
    for item in items:
        mark = item.get_closest_marker("thinned")
        if mark and not item.get_closest_marker("study"):
            cases[item.nodeid.split("[")[0], mark.args[0]].append(item)
    for (_, one_in), alike in cases.items():
        alike.sort(key=lambda item: zlib.crc32(item.name.encode()))
        for item in alike[-(-len(alike) // one_in) :]:
            item.add_marker(pytest.mark.study)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests marked ``study`` unless HOPFORGE_STUDY=1 (make study), and give them time; begin with long files."""
    _thin_out(items)
    here = Path(__file__).parent
    place = {here / name: k for k, name in enumerate(LONG)}
    items.sort(key=lambda item: place.get(item.path, len(LONG)))  # the others stay in their order
    mark = pytest.mark.timeout(STUDY_TIMEOUT_S) if STUDY else pytest.mark.skip(reason="long: set HOPFORGE_STUDY=1")
    for item in items:
        if item.get_closest_marker("study"):
            item.add_marker(mark)


@pytest.fixture(autouse=True)
def _every_column_is_explained(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail a test in which a table of results is written with a column that `model/output/column_notes.csv` lacks."""
    unknown: set[str] = set()

    def noted(table: str, columns: Iterable[str], units: Mapping[str, str] | None = None) -> dict[str, ColumnNote]:
        columns = list(columns)
        found = column_notes(table, columns, units)
        unknown.update(f"{table}.{column}" for column in columns if column not in found)
        return found

    monkeypatch.setattr(results, "column_notes", noted)
    yield
    missing = [name for name in sorted(unknown) if not MADE_UP.fullmatch(name)]
    assert missing == [], "columns without a line in model/output/column_notes.csv"


def pytest_collection_finish() -> None:
    """Set aside what the tests themselves are made of, and collect from now on, as commands do."""
    gc.freeze()
    gc.set_threshold(GARBAGE_AFTER, 20, 20)
    gc.enable()


#: files whose tests are done, in this process
done: list[Path] = []
#: to look through all objects takes as long as some tests
COLLECTED_EVERY = 8


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """End the process of a test that hangs and cannot be told so: its stacks are printed, the others go on.

    Behind the last test of every eighth file what lives on (kernels, caches) is set aside, too.
    """
    mark = item.get_closest_marker("timeout")
    limit = float(mark.args[0] if mark else item.config.getini("timeout"))
    screen = item.config.stash.get(fault_handler_stderr_fd_key, sys.__stderr__)
    faulthandler.dump_traceback_later(limit + DEAF_S, exit=True, file=screen)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()
        if nextitem is None or nextitem.path != item.path:
            done.append(item.path)
            if len(done) % COLLECTED_EVERY == 0:
                gc.collect()
                gc.freeze()
