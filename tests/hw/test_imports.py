"""The hardware is described without the network simulator: nothing of it is loaded, or even compiled, for Verilog."""

import pkgutil
import subprocess
import sys

import hopforge.hw

_PROGRAM = """
import sys
from importlib import import_module

for name in sys.argv[1:]:
    import_module(name)
print(*sorted(sys.modules), sep="\\n")
"""
SIMULATOR = ("hopforge.model.network", "hopforge.model.routing", "hopforge.model.irregular")


def test_hardware_needs_no_part_of_the_simulator() -> None:
    names = [module.name for module in pkgutil.walk_packages(hopforge.hw.__path__, "hopforge.hw.")]
    assert len(names) > 100
    done = subprocess.run([sys.executable, "-c", _PROGRAM, *names], capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()
    assert set(names) <= set(loaded)
    assert [name for name in loaded if name == "hopforge.sim" or name.startswith(SIMULATOR)] == []
