"""The hardware is described without the network simulator: nothing of it is loaded, or even compiled, for Verilog."""

import subprocess
import sys
from pathlib import Path

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
    folder = Path(str(hopforge.hw.__file__)).parent
    names = [f"hopforge.hw.{path.stem}" for path in sorted(folder.glob("*.py")) if path.stem != "__init__"]
    assert len(names) > 20
    done = subprocess.run([sys.executable, "-c", _PROGRAM, *names], capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()
    assert set(names) <= set(loaded)
    assert [name for name in loaded if name == "hopforge.sim" or name.startswith(SIMULATOR)] == []
