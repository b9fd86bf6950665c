"""Machine code on disk: never that of another state of the program, nor of a user's modules."""

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from numba.core import config

import hopforge
from hopforge.model.config import parse_config
from hopforge.model.kernel import program_cache
from hopforge.model.kernel.program_cache import KEPT, Program, UserModules, cache_folder, delete_unused, folder_of
from hopforge.model.routing.proof.deadlock import check_routing
from hopforge.sim.run.simulation import Simulation

ROOT = Path(hopforge.__file__).parent

MESH = "name: mesh\ntopology: {kind: mesh, radices: [3, 2]}\nrouter: {vcs: 2}\nrouting: {algorithm: %s}"

CHECK = """
from hopforge.model.config import parse_config
from hopforge.model.routing.proof.deadlock import check_routing
from hopforge.sim.run.simulation import Simulation
for name in {names}:
    run = Simulation(parse_config({mesh!r} % name), 0.1, 1, check=False)
    print(name, check_routing(run.topology, run.plan, run.state, name))
"""

#: level and port of a candidate change places, in what packs and in what unpacks
OTHER_PACKING = {
    "return port | (level << LEVEL_AT) |": "return level | (port << LEVEL_AT) |",
    "return packed & (PORT_VALUES - 1)": "return (packed >> LEVEL_AT) & 255  # the port",
    "return (packed >> LEVEL_AT) & 255\n": "return packed & 255\n",
}


@pytest.mark.parametrize("names", [["dor"], pytest.param(["dor", "valiant"], marks=pytest.mark.study)])
def test_a_change_of_a_called_file_is_seen(tmp_path, names):
    """Code of the old packing found no dependencies in what a new one gave, or a deadlock without a cycle."""
    package = tmp_path / "hopforge"
    unused = shutil.ignore_patterns("*.nb[ic]", "kernels", "hw", "gen", "configs", "data")
    shutil.copytree(ROOT, package, ignore=unused)
    expected = []
    for name in names:
        run = Simulation(parse_config(MESH % name), 0.1, 1, check=False)
        expected.append(f"{name} {check_routing(run.topology, run.plan, run.state, name)}")
    assert _run(CHECK.format(mesh=MESH, names=["dor"]), tmp_path) == expected[:1]
    code = _machine_code(tmp_path)
    other = shutil.copytree(package, tmp_path / "elsewhere" / "hopforge").parent
    assert _run(CHECK.format(mesh=MESH, names=["dor"]), other, cache=tmp_path) == expected[:1]
    assert _machine_code(tmp_path) == code != {}, "the same program at another place compiles nothing"
    candidates = package / "model" / "network" / "core" / "candidates.py"
    text = candidates.read_text()
    for old, new in OTHER_PACKING.items():
        assert text.count(old) == 1
        text = text.replace(old, new)
    candidates.write_text(text)
    assert _run(CHECK.format(mesh=MESH, names=names), tmp_path) == expected
    assert len(list((tmp_path / "cache" / "hopforge").iterdir())) == 2


PATTERN = """
from hopforge.sim.traffic.patterns import TrafficPlan, destination_rule
from user_rules import TARGET
import numpy as np

def rule(host, number, net, table):
    return TARGET

plan = TrafficPlan(destination_rule(rule), np.zeros(1, np.int32))
"""

DRAW = """
from pathlib import Path
import numpy as np
from hopforge.model.routing.contract.user import load_user_file
from hopforge.sim.packet.network import draw_destinations
plan = load_user_file(Path("pattern.py"), "plan", "traffic.pattern")
print(draw_destinations(plan, np.zeros(1, np.int64), 1, 1)[0, 0])
"""


def test_a_change_of_what_a_users_file_imports_is_seen(tmp_path):
    (tmp_path / "pattern.py").write_text(PATTERN)
    for target in (3, 4, 3):
        (tmp_path / "user_rules.py").write_text(f"TARGET = {target}  {'#' * target}\n")
        assert _run(DRAW, tmp_path) == [str(target)]
    assert len(list((tmp_path / "cache" / "hopforge").iterdir())) == 3  # the program's, and one for each target


HALF = """
from hopforge.model.kernel.compile import kernel

@kernel
def half(x):
    return x / 2
"""

HALVE = """
import sys, time
from numba.core.caching import IndexDataCacheFile
from half import half

number_of = IndexDataCacheFile._data_name
def slowly(self, number):
    time.sleep(1)  # between reading the index and writing it
    return number_of(self, number)
IndexDataCacheFile._data_name = slowly
print("ready", flush=True)
sys.stdin.readline()
half({value})
"""


def test_two_processes_that_compile_two_signatures_at_once(tmp_path):
    """Both took the same number of a file: one signature found the other's machine code."""
    (tmp_path / "half.py").write_text(HALF)
    paths = os.pathsep.join([str(tmp_path), str(ROOT.parent)])
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": paths}
    both = [
        subprocess.Popen(
            [sys.executable, "-c", HALVE.format(value=value)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
        )
        for value in ("3.0", "1 + 2j")
    ]  # fmt: skip
    for process in both:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in both:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    for process in both:
        process.communicate(timeout=120)
        assert process.returncode == 0
    again = "from half import half; print(half(3.0), half(1 + 2j), sum(half.stats.cache_hits.values()))"
    assert _run(again, tmp_path) == ["1.5 (0.5+1j) 2"]
    assert len(_machine_code(tmp_path)) == 2


def _machine_code(folder: Path) -> dict[str, int]:
    """Return the files of compiled kernels, and when they were written."""
    return {str(path): path.stat().st_mtime_ns for path in (folder / "cache").rglob("*.nbc")}


def _run(script: str, folder: Path, *, cache: Path | None = None) -> list[str]:
    paths = [str(folder), str(ROOT.parent)]
    kept = str((cache or folder) / "cache")
    environment = {**os.environ, "NUMBA_CACHE_DIR": kept, "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def package(tmp_path):
    """Return a folder with a program of two files."""
    for path in (tmp_path / "model" / "one.py", tmp_path / "sim" / "two.py"):
        path.parent.mkdir()
        path.write_text("VALUE = 1\n")
    return tmp_path


def test_slow_machine_code_is_not_kept_for_others(package, monkeypatch):
    first = Program(package).digest
    monkeypatch.setattr(config, "BOUNDSCHECK", 1)
    assert Program(package).digest != first


def test_digest_depends_on_names_and_contents_of_all_files(package):
    first = Program(package).digest
    assert Program(package).digest == first
    (package / "sim" / "two.py").write_text("VALUE = 2\n")
    second = Program(package).digest
    (package / "sim" / "two.py").rename(package / "sim" / "three.py")
    third = Program(package).digest
    assert len({first, second, third}) == 3
    assert Program(package / "nothing").digest == ""


def test_modules_that_were_edited_before_they_were_loaded_are_noticed(package, monkeypatch, capsys):
    program = Program(package)
    path = package / "sim" / "two.py"
    os.utime(path)  # the same contents
    loaded = ModuleType("loaded_after_the_start")
    loaded.__file__ = str(path)
    monkeypatch.setitem(sys.modules, loaded.__name__, loaded)
    assert program.unchanged()
    path.write_text("VALUE = 2\n")
    again = ModuleType("loaded_later")
    again.__file__ = str(path)
    monkeypatch.setitem(sys.modules, again.__name__, again)
    assert not program.unchanged()
    assert capsys.readouterr().err == f"hopforge: {path} has changed since the start: kernels are not kept on disk\n"


def test_a_users_module_counts_as_it_was_loaded(tmp_path, monkeypatch):
    path = tmp_path / "rules.py"
    path.write_text("VALUE = 1\n")
    modules, program = UserModules(), Program()
    before = modules.digest(program, str(path))
    loaded = ModuleType("rules_of_a_user")
    loaded.__file__ = str(path)
    monkeypatch.setitem(sys.modules, loaded.__name__, loaded)
    first = modules.digest(program, __file__)
    path.write_text("VALUE = 2\n")
    assert modules.digest(program, __file__) == first  # its functions are still the old ones
    loaded = ModuleType("rules_of_a_user")
    loaded.__file__ = str(path)
    monkeypatch.setitem(sys.modules, loaded.__name__, loaded)
    assert len({before, first, modules.digest(program, __file__)}) == 3


@pytest.mark.parametrize(
    ("before", "after"),
    [(3, 4), (True, False), ("x", "y"), (1.0, 1.5), ((1, (2, 3)), (1, (2, 4))), (np.zeros(2000), np.ones(2000)),
     ((np.arange(2000),), (np.arange(2000)[::-1].copy(),)), (np.int32(1), np.int64(1)), ((1, 2), (1, 2, 0))],
)  # fmt: skip
def test_values_that_are_frozen_into_machine_code_count(tmp_path, monkeypatch, before, after):
    path = tmp_path / "mine.py"
    path.write_text("")
    module = ModuleType("mine_with_values")
    module.__file__ = str(path)
    monkeypatch.setitem(sys.modules, "mine_with_values", module)
    modules, program = UserModules(), Program()
    module.WIDTH = before
    first = modules.digest(program, str(path))
    assert modules.digest(program, str(path)) == first
    module.WIDTH = after
    assert modules.digest(program, str(path)) != first


def test_functions_without_a_file_are_not_kept():
    names: dict[str, object] = {}
    exec("def function(): return 1", names)
    assert folder_of(names["function"]) is None
    assert folder_of(parse_nothing) is not None


def parse_nothing() -> None:
    """Stand for a user's function."""


@pytest.fixture
def fresh(tmp_path, monkeypatch):
    """Forget where machine code is kept, and know no folder for it."""
    program_cache._base.cache_clear()
    program_cache._folder.cache_clear()
    monkeypatch.setattr(config, "CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    monkeypatch.setattr(program_cache, "_ROOT", tmp_path / "package")
    (tmp_path / "package").mkdir()
    monkeypatch.setattr(program_cache.tempfile, "gettempdir", lambda: str(tmp_path))
    yield tmp_path
    program_cache._base.cache_clear()
    program_cache._folder.cache_clear()


def test_kept_in_the_users_cache_folder(fresh):
    assert program_cache._base() == (fresh / "user" / "hopforge" / "kernels", False)
    assert (fresh / "user" / "hopforge" / "kernels").stat().st_mode & 0o777 == 0o700


def test_numbas_own_setting_comes_first(fresh, monkeypatch):
    monkeypatch.setattr(config, "CACHE_DIR", str(fresh / "numba"))
    assert program_cache._base() == (fresh / "numba" / "hopforge", False)


def test_package_comes_second(fresh):
    (fresh / "user").write_text("not a folder")
    assert program_cache._base() == (fresh / "package" / "__pycache__" / "kernels", False)


def test_private_folder_comes_last(fresh, capsys):
    (fresh / "user").write_text("not a folder")
    (fresh / "package" / "__pycache__").write_text("not a folder")
    path, passing = program_cache._base()
    assert (path.parent, passing) == (fresh, False)
    assert path.stat().st_mode & 0o777 == 0o700
    assert capsys.readouterr().err.startswith(f"hopforge: kernels are kept in {path}: neither ")
    # somebody else could have written it: numba would unpickle what is there
    path.chmod(0o777)
    program_cache._base.cache_clear()
    other, passing = program_cache._base()
    assert other != path
    assert passing
    shutil.rmtree(other)
    path.rmdir()
    path.symlink_to(fresh / "package")
    program_cache._base.cache_clear()
    assert program_cache._base()[1]


def test_old_folders_that_nobody_uses_are_deleted(tmp_path):
    folders = [tmp_path / f"{k:02}" for k in range(KEPT + 4)]
    for k, folder in enumerate(folders):
        folder.mkdir()
        (folder / "in-use").touch()
        os.utime(folder, (k, k))
    stranger = tmp_path / "not-ours"
    stranger.mkdir()
    os.utime(stranger, (0, 0))
    hold = "import sys; from pathlib import Path; from hopforge.model.kernel.program_cache import _hold;"
    hold += "_hold(Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()"
    user = subprocess.Popen(
        [sys.executable, "-c", hold, str(folders[1])], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert user.stdout is not None
        assert user.stdout.readline() == "held\n"
        os.utime(folders[1], (1, 1))
        delete_unused(tmp_path)
        assert sorted(tmp_path.iterdir()) == [folders[1], *folders[4:], stranger]
    finally:
        user.communicate("")
    delete_unused(tmp_path)
    assert not folders[1].exists()


def test_one_thread_at_a_time_sets_the_folder():
    """Two at once left machine code in the working folder: one took the setting back while the other read it."""
    before, found = config.CACHE_DIR, []

    def other():
        with cache_folder(check_routing):
            found.append(config.CACHE_DIR)

    thread = threading.Thread(target=other)
    with cache_folder(check_routing):
        inside = config.CACHE_DIR
        thread.start()
        thread.join(0.3)
        assert found == []
        assert config.CACHE_DIR == inside != before
    thread.join()
    assert found == [inside]
    assert before == config.CACHE_DIR
