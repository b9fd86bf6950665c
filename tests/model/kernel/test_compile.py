"""Entry points of kernels: compiled when first called."""

import subprocess
import sys


def test_nothing_is_compiled_before_it_is_called():
    """Commands that simulate no network, such as `hopforge cosim` of a lookup engine, do not wait for its kernel."""
    script = (
        "import hopforge.sim.cosim.parts; from hopforge.model.network.kernel import run_cycles;"
        "assert 'compiled' not in vars(run_cycles); run_cycles.compiled; assert 'compiled' in vars(run_cycles)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
