"""What all tests share: the long ones run only when asked for; no test fails because the machine is busy."""

import faulthandler
import os
import signal
import sys
from collections.abc import Iterator

import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key
from hypothesis import HealthCheck, Phase, settings

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

#: a study takes as long as it takes; this only ends one that hangs
STUDY_TIMEOUT_S = 4 * 3600
#: what goes on for so long after its time is up does not hear of it: machine code, or hypothesis that sees a failure
DEAF_S = 120


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests marked ``study`` unless HOPFORGE_STUDY=1 (make study), and give them time."""
    mark = pytest.mark.timeout(STUDY_TIMEOUT_S) if STUDY else pytest.mark.skip(reason="long: set HOPFORGE_STUDY=1")
    for item in items:
        if item.get_closest_marker("study"):
            item.add_marker(mark)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """End the process of a test that hangs and cannot be told so: its stacks are printed, the others go on."""
    mark = item.get_closest_marker("timeout")
    limit = float(mark.args[0] if mark else item.config.getini("timeout"))
    screen = item.config.stash.get(fault_handler_stderr_fd_key, sys.__stderr__)
    faulthandler.dump_traceback_later(limit + DEAF_S, exit=True, file=screen)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()
