"""Machine code is read from disk without numba's compiler; what is compiled after that finds all that it needs."""

import subprocess
import sys

import pytest

CODE = """\
import sys
import numpy as np
from hopforge.model.config import parse_config
from hopforge.model.kernel.compile import kernel
from hopforge.sim.run.simulation import Simulation

TEXT = "name: m\\ntopology: {kind: mesh, radices: [3, 3]}\\nsimulation: {min_cycles: 1000, max_cycles: 1000}"
print(Simulation(parse_config(TEXT), 0.2, 1).run().latency)
print(*(name in sys.modules for name in ("numba.np.linalg", "scipy.linalg")))

@kernel
def product(a, b, names):
    return a @ b * (names[0] == names[1]) + np.sort(a.ravel())[0] * hash(names[0] + "x")

numbers = np.arange(9.0).reshape(3, 3)
assert (product(numbers, numbers.T.copy(), ("ab", "ab")) == numbers @ numbers.T).all()
print(*(name in sys.modules for name in ("numba.np.linalg", "scipy.linalg")))
"""


def _run() -> tuple[str, str, str]:
    """Return what the code prints: a latency, and which modules were loaded before and after its own kernel."""
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    latency, before, after = done.stdout.splitlines()
    return latency, before, after


@pytest.mark.study
def test_only_what_is_compiled_loads_the_compiler() -> None:
    first = last = _run()
    if first[1] != "False False":  # the simulator's kernels had to be compiled
        assert first[1:] == ("True False", "True True")
        last = _run()
    assert last == (first[0], "False False", "True True")
