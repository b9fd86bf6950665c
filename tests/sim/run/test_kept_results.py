"""Kept results: nothing stale is handed out, and what is computed again is told with its reason."""

import dataclasses
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import hopforge
from hopforge.model.config import Config, parse_config
from hopforge.model.errors import UserError
from hopforge.model.output import program_digest
from hopforge.model.output.results import locked
from hopforge.sim.run import kept_file, kept_results, wanted_result
from hopforge.sim.run.flit_sweep import FLIT_SWEEP
from hopforge.sim.run.kept_results import LostRunsError
from hopforge.sim.run.sweep import Job
from hopforge.sim.run.wanted_result import Wanted, described, file_digest

CONFIG = """
name: small
topology: {kind: mesh, radices: [3, 3]}
simulation: {loads: [0.1], min_cycles: 1000, max_cycles: 1000, warmup_cycles: 500}
"""


class Runs:
    """A folder of kept results in which jobs are counted; a job's result is what the test says."""

    def __init__(self, store: Path) -> None:
        self.store = store
        self.done: list[str] = []
        self.said: list[str] = []

    def __call__(self, wanted: list[Wanted]) -> list[dict[str, str]]:
        self.done, self.said = [], []
        return kept_results.kept_results(
            [one.name for one in wanted], wanted, self._work, self.store, lambda done, total: None,
            tell=self.said.append, workers=1,
        )  # fmt: skip

    def _work(self, job: str) -> dict[str, str]:
        self.done.append(job)
        return {"job": job}


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(tmp_path / "runs")


def cases(count: int, **configuration: object) -> list[Wanted]:
    return [Wanted(f"seed {k}", {"seed": k, **configuration}, {"net.txt (topology.file)": "1"}) for k in range(count)]


def test_the_same_program_and_configuration_take_what_is_there(runs: Runs) -> None:
    first = runs(cases(3))
    assert runs.done == ["seed 0", "seed 1", "seed 2"]
    assert runs(cases(4)) == [*first, {"job": "seed 3"}]
    assert (runs.done, runs.said) == (["seed 3"], [])  # a run that is new is no news


def test_another_program_leaves_its_results_and_gets_none(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    runs(cases(2))
    for module in (kept_file, wanted_result):
        monkeypatch.setattr(module, "program_digest", lambda: "f" * 64)
    runs(cases(3))
    assert runs.done == ["seed 0", "seed 1", "seed 2"]
    before = program_digest.program_digest()[:8]
    version = hopforge.__version__
    assert runs.said == [f"2 of 3 runs computed again: made by another version of hopforge ({version}, {before})"]
    assert len(list(runs.store.glob("*.json"))) == 5
    runs(cases(3))
    monkeypatch.undo()
    runs(cases(2))
    assert (runs.done, runs.said) == ([], [])  # the older program finds its own again


def test_a_changed_configuration_or_file_is_named(runs: Runs) -> None:
    runs(cases(2))
    runs(cases(2, router={"vcs": 2}))
    assert runs.said == ["2 of 2 runs computed again: the configuration changed (router.vcs)"]
    changed = [Wanted(one.name, one.configuration, {"net.txt (topology.file)": "2"}) for one in cases(2)]
    runs([*cases(1), changed[1]])
    assert runs.done == ["seed 1"]
    assert runs.said == ["1 of 2 runs computed again: net.txt (topology.file) changed"]


class EditedMeanwhile(Runs):
    """A file that all jobs read is edited while the second one runs."""

    file: Path

    def _work(self, job: str) -> dict[str, str]:
        if job == "seed 1":
            self.file.write_text("another text\n")
        return super()._work(job)


@pytest.mark.parametrize("which", ["file", "in a folder", "hopforge"])
def test_a_file_that_is_edited_meanwhile_ends_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: str
) -> None:
    folder = tmp_path / "inputs"
    folder.mkdir()
    runs = EditedMeanwhile(tmp_path / "runs")
    runs.file = folder / "west.py"
    runs.file.write_text("text\n")
    paths = {"file": (runs.file,), "in a folder": (folder,), "hopforge": ()}[which]
    if which == "hopforge":
        monkeypatch.setattr("hopforge.sim.run.file_stamps.program_files", lambda: [runs.file])
    wanted = [dataclasses.replace(one, paths=paths) for one in cases(3)]
    with pytest.raises(kept_results.SweepError, match=r"west\.py changed while this command ran"):
        runs(wanted)
    assert runs.done == ["seed 0", "seed 1"]
    assert [path.name for path in runs.store.glob("*.json")] == [f"{wanted[0].key}.json"]


DAMAGE = [
    "",
    '{"name": "seed 0", "res',
    "[1]",
    '{"latency": 3.0}',
    '{"result": {"job": "x"}}',
    "null",
    "[" * 100_000,
    "NaN",
]


@pytest.mark.parametrize("text", DAMAGE, ids=range(len(DAMAGE)))
def test_a_damaged_result_is_computed_again_with_a_word(runs: Runs, text: str) -> None:
    whole = runs(cases(2))
    path = runs.store / f"{cases(1)[0].key}.json"
    path.write_text(text)
    assert runs(cases(2)) == whole
    assert runs.done == ["seed 0"]
    assert runs.said == [f"{path}: damaged; computed again"]
    assert runs(cases(2)) == whole
    assert runs.done == []


def no_text(path: Path) -> None:
    path.write_bytes(b"\xff\xfe\x00")


def without_a_key(path: Path) -> None:
    kept = json.loads(path.read_text())
    path.write_text(json.dumps({key: value for key, value in kept.items() if key != "files"}))


def other_program(path: Path) -> None:
    path.write_text(path.read_text().replace(program_digest.program_digest(), "0" * 64))


def of_another_run(path: Path) -> None:
    shutil.copy(path.with_name(f"{cases(2)[1].key}.json"), path)


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "precious").write_text("x")


def dangling(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)  # reading it would wait for ever


def unreadable(path: Path) -> None:
    path.chmod(0)


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "damage", [no_text, without_a_key, other_program, of_another_run, folder, dangling, pipe, unreadable]
)
def test_every_kind_of_damage(runs: Runs, damage: Callable[[Path], None]) -> None:
    if damage is unreadable and os.geteuid() == 0:
        pytest.skip("root reads everything")
    whole = runs(cases(2))
    path = runs.store / f"{cases(1)[0].key}.json"
    damage(path)
    assert runs(cases(2)) == whole
    assert (runs.done, runs.said) == (["seed 0"], [f"{path}: damaged; computed again"])
    assert runs(cases(2)) == whole
    assert runs.done == []
    if damage is folder:  # nothing of the user's is lost
        assert (path.with_name(f"{path.name}.damaged1") / "precious").read_text() == "x"


def test_an_empty_result_is_whole(tmp_path: Path) -> None:
    for again in (False, True):
        done: list[int] = []
        found = kept_results.kept_results(
            [0], cases(1), lambda job, done=done: done.append(job) or [], tmp_path, lambda *counts: None, workers=1
        )
        assert (found, done) == ([[]], [] if again else [0])


def test_a_result_that_somebody_edited_is_damaged(runs: Runs) -> None:
    whole = runs(cases(1))
    path = runs.store / f"{cases(1)[0].key}.json"
    kept = json.loads(path.read_text())
    for wrong in ({"a": 1}, [1], "x", {**kept["result"], "more": 1}):
        path.write_text(json.dumps({**kept, "result": wrong}))
        assert runs(cases(1)) == whole
        assert (runs.done, runs.said) == (["seed 0"], [f"{path}: damaged; computed again"])


def test_results_of_an_older_form_are_counted(runs: Runs) -> None:
    runs.store.mkdir()
    (runs.store / "0123.json").write_text('{"load": 0.1, "latency": 12.5}')
    runs(cases(1))
    assert runs.said == [f"{runs.store}: 1 files are damaged or of an older hopforge, and not used"]


def test_a_kept_result_tells_who_made_it_of_what(runs: Runs) -> None:
    runs(cases(1))
    (path,) = runs.store.iterdir()  # no temporary file is left
    kept = json.loads(path.read_text())
    assert kept["hopforge"] == kept["versions"]["hopforge"] == hopforge.__version__
    assert {"python", "numpy", "numba"} <= set(kept["versions"])
    assert kept["program_digest"] == program_digest.program_digest()
    assert (kept["configuration"], kept["files"]) == ({"seed": 0}, {"net.txt (topology.file)": "1"})


def test_a_run_that_is_stopped_while_it_writes_leaves_nothing(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(path: Path, target: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", stop)
    with pytest.raises(KeyboardInterrupt):
        runs(cases(1))
    assert list(runs.store.iterdir()) == []


@pytest.mark.parametrize("before", [0, 1])
def test_a_result_that_is_kept_when_the_signal_comes_is_counted(
    runs: Runs, monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    """The signal falls between a result's being written and its being counted."""
    wanted, counted = cases(3), []
    keep = kept_results.write_result

    def keep_then_stop(path: Path, one: Wanted, result: object) -> object:
        found = keep(path, one, result)
        if one is wanted[before]:
            raise KeyboardInterrupt
        return found

    monkeypatch.setattr(kept_results, "write_result", keep_then_stop)
    with pytest.raises(KeyboardInterrupt):
        kept_results.kept_results(
            ["a", "b", "c"], wanted, str, runs.store, lambda done, total: counted.append((done, total)), workers=1
        )
    assert counted[-1] == (before + 1, 3)
    assert len(list(runs.store.glob("*.json"))) == before + 1


def test_what_a_killed_process_has_left_goes(runs: Runs) -> None:
    runs(cases(1))
    left = [runs.store / ".0123.json.77.part", runs.store / "times" / ".0123.json.77.part"]
    left[1].parent.mkdir(exist_ok=True)
    for path in left:
        path.write_text("{")
    runs(cases(1))
    assert (runs.done, [path for path in left if path.exists()]) == ([], [])


def test_two_at_once_in_one_folder_are_refused(runs: Runs) -> None:
    runs(cases(1))
    with locked(runs.store, wait=True), pytest.raises(UserError) as refused:
        runs(cases(2))
    assert str(refused.value) == (
        f"{runs.store}: another hopforge is at work here; wait for its end, or name another folder (--output)"
    )
    assert runs(cases(2)) == [{"job": "seed 0"}, {"job": "seed 1"}]


def test_times_of_runs_are_kept_beside_them(tmp_path: Path) -> None:
    def run(seconds: float, damage: str | None = None) -> tuple[list[list[dict[str, object]]], list[bytes]]:
        if damage is not None:
            for path in (tmp_path / "times").iterdir():
                path.write_text(damage)
        found = kept_results.kept_results(
            [0, 1], cases(2), lambda job: [{"a": job, "cpu_seconds": seconds}, {"a": 2}], tmp_path,
            lambda *counts: None, workers=1,
        )  # fmt: skip
        return found, [path.read_bytes() for path in sorted(tmp_path.glob("*.json"))]

    whole, files = run(0.5)
    assert whole == [[{"a": k, "cpu_seconds": 0.5}, {"a": 2}] for k in (0, 1)]
    assert run(9.0) == (whole, files)  # kept
    for path in tmp_path.glob("*.json"):
        path.unlink()
    assert run(0.25)[1] == files
    for damage in ("", "{}", "[1, 2]", '[{"cpu_seconds": "x"}, {"a": 7.0}]', "[]"):
        assert run(9.0, damage) == ([[{"a": k}, {"a": 2}] for k in (0, 1)], files)


@pytest.mark.timeout(60)
def test_a_run_that_kills_its_process_is_named_and_the_others_are_kept(tmp_path: Path) -> None:
    said: list[str] = []

    def run(jobs: list[str]) -> list[object]:
        return kept_results.kept_results(
            jobs, cases(4), eval, tmp_path, lambda *counts: None, tell=said.append, workers=2
        )  # fmt: skip

    with pytest.raises(LostRunsError) as lost:
        run(["1", "__import__('os').kill(__import__('os').getpid(), 9)", "3", "4"])
    assert str(lost.value) == (
        "1 of 4 runs failed, and no table is written: seed 1 (its process was killed by SIGKILL); the others are kept"
        f" in {tmp_path}, and the same command tries again"
    )
    assert (lost.value.exit_status, UserError.exit_status) == (1, 2)
    assert said == [
        "seed 1: its process was killed by SIGKILL; it is done again",
        "seed 1: its process was killed by SIGKILL; it is left out",
    ]
    assert len(list(tmp_path.glob("*.json"))) == 3
    assert run(["0", "2", "0", "0"]) == [1, 2, 3, 4]


@pytest.mark.study
def test_a_run_that_kills_the_workers_of_dask_is_named_too(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    import dask

    jobs = ["1", "__import__('os').kill(__import__('os').getpid(), 9)", "3", "4"]
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster,
        pytest.raises(LostRunsError, match=r"^1 of 4 runs failed, .*: seed 1 \(its process was killed by its work\);"),
    ):
        kept_results.kept_results(
            jobs, cases(4), eval, tmp_path, lambda *counts: None, dask=cluster.scheduler_address
        )  # fmt: skip
    assert len(list(tmp_path.glob("*.json"))) == 3


# --- what decides a run


def key(config: Config) -> str:
    return FLIT_SWEEP.wanted([Job(config, 0.1, 1)])[0].key


def test_the_contents_of_every_file_that_a_run_reads_are_in_its_key(tmp_path: Path) -> None:
    named = {
        "topology: {kind: edge_list, file: net.txt}": "net.txt",
        "tables: {scheme: file, file: hops.csv}": "hops.csv",
        "tables: {layers: file, layers_file: layers.csv}": "layers.csv",
        "routing: {algorithm: file, file: way.py}": "way.py",
        "traffic: {pattern: file, file: where.py}": "where.py",
    }
    for lines, file in named.items():
        text = f"name: x\n{lines}\n" + ("" if "topology" in lines else "topology: {kind: mesh, radices: [3]}\n")
        keys = []
        for contents in ("1\n", "2\n"):
            (tmp_path / file).write_text(contents)
            keys.append(key(parse_config(text, folder=tmp_path)))
        assert len(set(keys)) == 2, lines
        # where the files stand plays no part
        elsewhere = tmp_path / file.replace(".", "_")
        elsewhere.mkdir()
        shutil.copy(tmp_path / file, elsewhere)
        assert key(parse_config(text, folder=elsewhere)) == keys[1], lines


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_a_trace_counts_by_its_contents(tmp_path: Path, kind: str) -> None:
    trace = tmp_path / "trace"
    lines = CONFIG + "workload: {kind: trace, file: trace, mapping: {kind: file, file: hosts}}\n"
    (tmp_path / "hosts").write_text("0\n1\n")
    found = []
    for text in ("0 barrier\n", "0 barrier\n0 barrier\n"):
        if kind == "folder":
            trace.mkdir(exist_ok=True)
            (trace / "rank-1.txt").write_text(text)
        else:
            trace.write_text(text)
        found.append(described(parse_config(lines, folder=tmp_path))[1])
    assert found[0].keys() == {"trace (workload.file)", "hosts (workload.mapping.file)"}
    assert found[0]["trace (workload.file)"] != found[1]["trace (workload.file)"]
    assert found[0]["hosts (workload.mapping.file)"] == found[1]["hosts (workload.mapping.file)"]


def test_modules_that_a_file_of_the_user_imports_count_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = tmp_path / "path"
    (elsewhere / "tools").mkdir(parents=True)
    (elsewhere / "tools" / "__init__.py").write_text("")
    (elsewhere / "tools" / "ways.py").write_text("from . import deep\n")
    (elsewhere / "tools" / "deep.py").write_text("A = 1\n")
    monkeypatch.syspath_prepend(str(elsewhere))
    (tmp_path / "near.py").write_text("import mine\n")  # in a circle
    (tmp_path / "mine.py").write_text(
        "import json, numpy\nfrom hopforge.model.routing import RoutingPlan\n"
        "def prepare(*arguments):\n    import near\n    from tools.ways import anything\n"
    )
    config = parse_config(CONFIG + "routing: {algorithm: file, file: mine.py}", folder=tmp_path)
    names = {name.split(" ")[0] for name in described(config)[1]}
    assert names == {"mine.py", "near.py", "path/tools/__init__.py", "path/tools/ways.py", "path/tools/deep.py"}
    before = key(config)
    (elsewhere / "tools" / "deep.py").write_text("A = 2\n")
    assert key(config) != before


def test_a_folder_and_a_missing_file_have_digests(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    before = file_digest(tmp_path)
    (tmp_path / "a").rename(tmp_path / "b")
    assert file_digest(tmp_path) != before
    assert file_digest(tmp_path / "none") == ""


# --- the command


#: in place of `hopforge/__init__.py`, which is no part of the digest: the same version with longer links
SLOWER_LINKS = f"""
__version__ = {hopforge.__version__!r}

import dataclasses

from hopforge.model.network import settings

_of_the_file = settings.router_parameters


def _slower(config, topology):
    found = _of_the_file(config, topology)
    return dataclasses.replace(found, link_latency_cycles=found.link_latency_cycles + 7)


settings.router_parameters = _slower
"""


def sweep(source: Path, *words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hopforge", "sweep", *map(str, words), "--workers", "1"],
        capture_output=True, text=True, timeout=300, check=False,
        env={**os.environ, "PYTHONPATH": str(source)},
    )  # fmt: skip


def test_a_sweep_does_not_hand_out_results_of_an_older_program(tmp_path: Path) -> None:
    package = Path(hopforge.__file__).parent
    copy = tmp_path / "source" / "hopforge"
    shutil.copytree(package, copy)
    (tmp_path / "c.yml").write_text(CONFIG)
    first = sweep(copy.parent, tmp_path / "c.yml", "-o", tmp_path / "out")
    assert first.returncode == 0, first.stderr
    again = sweep(copy.parent, tmp_path / "c.yml", "-o", tmp_path / "out")
    assert (again.stdout, again.stderr) == (first.stdout, "")
    (copy / "__init__.py").write_text(SLOWER_LINKS)
    with (copy / "hw" / "router" / "router.py").open("a") as file:  # no kernel is made of it: none is compiled again
        file.write("# another program\n")
    changed = sweep(copy.parent, tmp_path / "c.yml", "-o", tmp_path / "out")
    fresh = sweep(copy.parent, tmp_path / "c.yml", "-o", tmp_path / "fresh")
    assert changed.returncode == 0, changed.stderr
    assert changed.stdout.splitlines()[:-1] == fresh.stdout.splitlines()[:-1] != first.stdout.splitlines()[:-1]
    assert changed.stderr.startswith(
        f"hopforge: 1 of 1 runs computed again: made by another version of hopforge ({hopforge.__version__}, "
    )
    assert len(list((tmp_path / "out" / "runs").glob("*.json"))) == 2
