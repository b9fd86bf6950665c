"""What all tests share: the long ones run only when asked for; no test fails because the machine is busy."""

import os
import signal

import pytest
from hypothesis import HealthCheck, settings

# how long an example takes says something about the machine, not about the code
settings.register_profile("hopforge", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("hopforge")

# a job that a shell starts with & or nohup ignores these, and hands that down to the programs that the tests interrupt
for _number, _usual in {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: signal.SIG_DFL}.items():
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _usual)

#: a study takes as long as it takes; this only ends one that hangs
STUDY_TIMEOUT_S = 4 * 3600


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests marked ``study`` unless HOPFORGE_STUDY=1 (make study), and give them time."""
    wanted = os.environ.get("HOPFORGE_STUDY") == "1"
    mark = pytest.mark.timeout(STUDY_TIMEOUT_S) if wanted else pytest.mark.skip(reason="long: set HOPFORGE_STUDY=1")
    for item in items:
        if item.get_closest_marker("study"):
            item.add_marker(mark)
