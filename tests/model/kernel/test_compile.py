"""Entry points of kernels: compiled when first called, in one way, also by a numba without the parts that are used."""

import ast
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import hopforge
from hopforge.model.config import parse_config
from hopforge.model.kernel.compile import PARTS, both, inner_views, kernel
from hopforge.sim.run.simulation import Simulation

ROOT = Path(hopforge.__file__).parent
SOURCES = [path for package in ("model", "sim", "gen", "hw") for path in sorted((ROOT / package).rglob("*.py"))]


def test_nothing_is_compiled_before_it_is_called():
    """Commands that simulate no network, such as `hopforge cosim` of a lookup engine, do not wait for its kernel."""
    script = (
        "import hopforge.sim.cosim.parts; from hopforge.model.network.kernel import PLAIN_KERNEL as kernel;"
        "assert 'compiled' not in vars(kernel); kernel.compiled; assert 'compiled' in vars(kernel)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_machine_code_is_kept_by_one_module_only():
    own = ROOT / "model" / "kernel" / "compile.py"
    assert [path for path in SOURCES if _asks_for_cache_and_imports(path)[0]] == [own]


@cache
def _asks_for_cache_and_imports(path: Path) -> tuple[bool, list[str]]:
    """Whether a file hands `cache` to a call, as numba's decorators take it; modules from which it imports names."""
    text = path.read_text()
    if "cache" not in text and "numba" not in text and "hopforge.model.kernel" not in text:
        return False, []  # neither of the two
    nodes = list(ast.walk(ast.parse(text)))
    asks = any(keyword.arg == "cache" for node in nodes if isinstance(node, ast.Call) for keyword in node.keywords)
    return asks, [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]


def test_no_file_with_kernels_uses_packages_that_their_cache_does_not_look_at():
    """The folder of machine code is named by the files of `model` and `sim`."""
    for path in SOURCES:
        _, modules = _asks_for_cache_and_imports(path)
        kernels = [name for name in modules if name != "hopforge.model.kernel.user_folders"]  # which compiles nothing
        compiles = any(name.startswith(("numba", "hopforge.model.kernel")) for name in kernels)
        outside = [name for name in modules if name.startswith(("hopforge.hw", "hopforge.gen", "hopforge.commands"))]
        assert not (compiles and outside), f"{path}: {outside}"


def _powers(number, count):
    """A sum whose bits tell in which order it was made."""
    found = 0.0
    for k in range(count):
        found += number**k / 3
    return found


def _left(numbers, place):
    """A view, and a number that lies behind it."""
    return numbers[:place], numbers[place]


@pytest.mark.parametrize("whole", [np.int32, np.int64])
def test_a_function_is_the_same_for_python_and_inside_of_a_kernel(whole):
    powers, left = both()(_powers), inner_views(_left)

    @kernel
    def outer(numbers, place):
        view, number = left(numbers, place)
        view[0] = powers(number, place)
        return powers(number, len(view))

    numbers = np.array([2.0, 3.0, 0.7, 5.0])
    found = outer(numbers, whole(2))
    assert len(powers.overloads) == (0 if PARTS else 1), "what Python does not call is not compiled for it"
    assert numbers[0] == found == powers(0.7, whole(2)) == _powers(0.7, 2)
    assert len(powers.overloads) == 1
    assert outer(numbers, whole(2)) == found, "nor does that change what the kernel calls"


CONFIG = """\
name: mesh
topology: {kind: mesh, radices: [2, 2]}
router: {vcs: 2}
traffic: {pattern: uniform}
"""

#: as a numba whose inner parts have other names
WITHOUT_INNER_PARTS = f"""
import sys, numba.core.codegen
del numba.core.codegen.JITCodeLibrary
sys.modules["numba.core.typeconv.rules"] = None
from hopforge.model.config import parse_config
from hopforge.model.kernel import compile, constant_record
from hopforge.sim.run.simulation import Simulation
assert not compile.PARTS and constant_record.constant_type is None
run = Simulation(parse_config('''{CONFIG}'''), 0.3, 1)
run.advance(500)
print([int(run.state[name]) for name in ("packets_ejected", "latency_sum", "flits_injected")])
"""


@pytest.mark.study
def test_results_are_the_same_without_inner_parts_of_numba(tmp_path):
    run = Simulation(parse_config(CONFIG), 0.3, 1)
    run.advance(500)
    expected = [int(run.state[name]) for name in ("packets_ejected", "latency_sum", "flits_injected")]
    assert expected[0] > 100
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    other = subprocess.run(
        [sys.executable, "-c", WITHOUT_INNER_PARTS], env=environment, check=True, capture_output=True, text=True
    )
    assert other.stdout.strip() == str(expected)
