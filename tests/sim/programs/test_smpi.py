"""Engine flow by SimGrid: what we give it and read from it; with SimGrid, the same times as the embedded engine."""

import shutil
import stat
import subprocess
import typing
from pathlib import Path

import numpy as np
import pytest

from hopforge.model.config import Config, parse_config
from hopforge.model.config.workload import CollectivesConfig
from hopforge.model.network.parts.program_arrays import ProgramError
from hopforge.model.topology import build
from hopforge.model.workload.compiled_program import compile_program
from hopforge.model.workload.read_trace import read_trace
from hopforge.sim.programs.app_setup import flow_backend
from hopforge.sim.programs.application import app_rows, run_app, write_app
from hopforge.sim.programs.simgrid import MAX_FULL_HOSTS
from hopforge.sim.programs.smpi_command import SmpiError, run_smpi, settings
from hopforge.sim.programs.smpi_execution import execution_rows, run_executable, write_execution
from hopforge.sim.programs.smpi_replay import computed_seconds, own_names, simgrid_trace
from hopforge.sim.traffic.placed import program_trace

TORUS = "{kind: torus, radices: [4, 3]}"
EXAMPLE = Path(__file__).parents[3] / "configs" / "halo.c"
simgrid = pytest.mark.skipif(shutil.which("smpirun") is None, reason="SimGrid is not installed")


def config_of(workload: str, topology: str = TORUS, app: str = "{}", more: str = "") -> Config:
    return parse_config(f"name: x\ntopology: {topology}\nworkload: {workload}\napp: {app}\n{more}")


def by(config: Config, backend: str) -> Config:
    return config.model_copy(update={"app": config.app.model_copy(update={"backend": backend})})


# ---- the trace that SimGrid gets -----------------------------------------------------------------------------------


def messages(program) -> list[tuple[int, int, int]]:
    return sorted(zip(program.source.tolist(), program.destination.tolist(), program.size_bytes.tolist(), strict=True))


ALGORITHMS = [
    (operation, algorithm)
    for operation in CollectivesConfig.operations()
    for algorithm in typing.get_args(CollectivesConfig.model_fields[operation].annotation)
    if algorithm not in ("by_rules", "in_network")
]


@pytest.mark.parametrize(("operation", "algorithm"), ALGORITHMS)
def test_collectives_become_the_same_messages(operation: str, algorithm: str) -> None:
    text = f"{{kind: collective, operation: {operation}, bytes: 1000, ranks: 6, repeat: 2, root: 0,"
    config = config_of(f"{text} collectives: {{{operation}: {algorithm}}}}}")
    trace = program_trace(config.workload, 12, 1)
    program = compile_program(trace, config.workload.collectives)
    given = simgrid_trace(trace, program, set(), computing=True)
    assert {action.name for program in given.actions for action in program} <= {
        "init", "finalize", "isend", "irecv", "wait", "compute"
    }
    again = compile_program(given, config.workload.collectives)
    assert program.messages > 0
    assert messages(again) == messages(program)


def test_what_simgrid_does_by_itself_stays(tmp_path: Path) -> None:
    lines = ["allreduce 10 500 0", "compute 1e6", "sleep 2", "allgather 5 5 0 0"]
    (tmp_path / "t").write_text("".join(f"{rank} {line}\n" for rank in range(3) for line in lines))
    trace = read_trace(tmp_path / "t")
    program = compile_program(trace, CollectivesConfig())
    names = [item.removeprefix("smpi/").partition(":")[0] for item in own_names(3, CollectivesConfig())]
    assert names == ["barrier", "bcast", "reduce", "allreduce", "alltoall", "alltoallv"]
    given = simgrid_trace(trace, program, set(names), computing=True).actions[0]
    assert [action.name for action in given[:4]] == ["init", "allreduce", "compute", "sleep"]  # init: SimGrid needs it
    assert {action.name for action in given[4:]} == {"isend", "irecv", "wait"}
    idle = simgrid_trace(trace, program, set(names), computing=False).actions[0]
    assert [(action.name, action.amount) for action in idle[:3]] == [("init", 0), ("allreduce", 0), ("sleep", 2)]
    assert computed_seconds(program, 1.0).tolist() == [2 + 1e-3 + 500e-9] * 3
    assert computed_seconds(program, None).tolist() == [2] * 3
    assert "smpi/alltoall:ring" in own_names(6, CollectivesConfig())
    assert "smpi/alltoall:pair" in own_names(8, CollectivesConfig())
    assert not any(item.startswith("smpi/bcast") for item in own_names(8, CollectivesConfig(bcast="ring")))


@pytest.mark.parametrize(
    ("app", "message"),
    [
        ("{envelope_bytes: 0}", r"^app.envelope_bytes: SimGrid has no 0; app.backend: embedded has$"),
        ("{sharing: equal}", r"^app.sharing: SimGrid has no equal; app.backend: embedded has$"),
        ("{injection: queued}", r"^app.injection: SimGrid has no queued; app.backend: embedded has$"),
        ("{lookup: cache}", r"^app.lookup: SimGrid has no cache; app.backend: embedded has$"),
    ],
)
def test_what_simgrid_cannot_do(app: str, message: str) -> None:
    with pytest.raises(SmpiError, match=message):
        settings(config_of("{kind: collective, operation: barrier}", app=app))


def test_settings() -> None:
    chosen = settings(config_of("{kind: uniform}", app="{buffered_bytes: 5, eager_bytes: 70, tcp_window_bytes: null}"))
    assert {"smpi/async-small-thresh:5", "smpi/send-is-detached-thresh:70", "network/TCP-gamma:0"} <= set(chosen)


# ---- what smpirun says ---------------------------------------------------------------------------------------------


def pretend(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Put a command `smpirun` on the path that says what the real one says; \\037 separates the fields of its log."""
    folder.mkdir(exist_ok=True)
    command = folder / "smpirun"
    command.write_text(f"#!/bin/sh\n{script}\n")
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def log(priority: str, category: str, clock: str, text: str) -> str:
    return f"printf '%s\\037%s\\0370\\037%s\\037%s\\n' {priority} {category} {clock} '{text}' >&2"


def test_ends_of_ranks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [
        log("WARNING", "smpi_config", "0.0", "You did not set the power"),
        log("DEBUG", "smpi_process", "0.0", "<1> SMPI process has been initialized"),
        log("DEBUG", "smpi_process", "1.25", "<2> Process left the game"),
        log("DEBUG", "smpi_process", "2.5", "<1> Process left the game"),
    ]
    pretend(tmp_path, monkeypatch, "\n".join(lines) + "\nexit 3")
    told = []
    ended = run_smpi([], 2, tmp_path, lambda done, total: told.append((done, total)))
    assert (ended.ended.tolist(), ended.status) == ([2.5, 1.25], 3)
    assert told == [(1, 2), (2, 2)]


def test_failure_shows_its_own_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(
        tmp_path, monkeypatch,
        "echo 'smpirun: no hosts [1]' >&2\necho '/x/smpimain --cfg=smpi/privatization:1 a b'\n"
        + log("CRITICAL", "xbt", "0.0", "unknown link") + "\necho '  ->  0# smx_ctx in lib.so' >&2\nexit 1",
    )
    with pytest.raises(SmpiError) as error:
        run_smpi([], 2, tmp_path)
    first, *rest = str(error.value).splitlines()
    assert first == "smpirun failed (exit status 1):"
    assert sorted(rest) == ["smpirun: no hosts [1]", "unknown link"]


def test_ranks_that_wait_for_ever_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = "waiting for communication activity 0x1 () in state WAITING to finish"
    lines = [log("CRITICAL", "ker_engine", "0.1", "Oops! Deadlock detected")]
    lines += [log("INFO", "ker_engine", "0.1", f"Actor {rank + 1} ({rank}@h5): {waiting}") for rank in range(1, 11)]
    pretend(tmp_path, monkeypatch, "\n".join(lines))
    with pytest.raises(ProgramError) as error:
        run_smpi([], 12, tmp_path)
    assert str(error.value) == (
        "workload: the program cannot end: 10 of 12 ranks wait for ever: ranks 1, 2, 3, 4, 5, 6, 7, 8 and 2 more"
    )


def test_without_simgrid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    config = config_of("{kind: collective, operation: barrier}", app="{backend: simgrid}")
    with pytest.raises(SmpiError, match=r"app.backend: simgrid needs smpirun.*\(apt-get install libsimgrid-dev\)$"):
        run_app(config)
    default = config_of("{kind: collective, operation: barrier}")
    assert default.app.backend == "auto"
    assert flow_backend(default, 12) == "embedded"
    pretend(tmp_path, monkeypatch, "")
    assert flow_backend(default, 12) == flow_backend(default, MAX_FULL_HOSTS) == "simgrid"
    # what SimGrid cannot do
    assert flow_backend(default, MAX_FULL_HOSTS + 1) == "embedded"
    for app in ("{envelope_bytes: 0}", "{sharing: equal}", "{lookup: cache}"):
        assert flow_backend(config_of("{kind: collective, operation: barrier}", app=app), 12) == "embedded"
    with pytest.raises(SmpiError, match=r"^--program: .*/nothing is no program that can be run$"):
        run_executable(config, tmp_path / "nothing")


# ---- with SimGrid --------------------------------------------------------------------------------------------------


@simgrid
@pytest.mark.parametrize(("operation", "algorithm"), ALGORITHMS)
def test_collectives_take_the_same_time(operation: str, algorithm: str) -> None:
    text = f"{{kind: collective, operation: {operation}, bytes: 30000, ranks: 8, repeat: 2,"
    config = config_of(f"{text} collectives: {{{operation}: {algorithm}}}}}")
    ours, theirs = (run_app(by(config, backend)).ranks["finish_s"].tolist() for backend in ("embedded", "simgrid"))
    assert ours == pytest.approx(theirs, rel=1e-9)


PLACES = [
    ("{kind: npb, benchmark: is, class: S, ranks: 8}", "{kind: torus, radices: [2, 2, 2]}", ""),
    ("{kind: npb, benchmark: ft, class: S, ranks: 16}", "{kind: mesh, radices: [4, 4]}", ""),
    ("{kind: npb, benchmark: mg, class: S, ranks: 16, iterations: 2}", "{kind: fat_tree, k: 2, n: 3}", ""),
    ("{kind: npb, benchmark: cg, class: S, ranks: 16, iterations: 2}", "{kind: dragonfly, p: 2, a: 4, h: 2}", ""),
    ("{kind: npb, benchmark: ep, class: S, ranks: 20}", "{kind: random_regular, routers: 20, degree: 3}", ""),
    (
        "{kind: npb, benchmark: dt, class: S, ranks: 12, graph: SH}", "{kind: torus, radices: [16]}",
        "routing: {algorithm: tables}\ntables: {scheme: up_down}\n",
    ),
]


@simgrid
@pytest.mark.parametrize("lookup", ["hit", "miss"])
@pytest.mark.parametrize(("workload", "topology", "more"), PLACES)
def test_programs_take_the_same_time(workload: str, topology: str, more: str, lookup: str) -> None:
    config = config_of(workload, topology, f"{{host_gflops: 50, lookup: {lookup}}}", more)
    ours, theirs = run_app(by(config, "embedded")), run_app(by(config, "simgrid"))
    assert ours.found.makespan_s == pytest.approx(theirs.found.makespan_s, rel=0.02)  # most are equal
    columns = ["rank", "host", "compute_s", "sent_messages", "sent_bytes"]
    assert ours.ranks[columns].to_dict("list") == {
        name: pytest.approx(values) for name, values in theirs.ranks[columns].to_dict("list").items()
    }


@simgrid
@pytest.mark.study
@pytest.mark.parametrize(("workload", "topology", "limit"), [
    ("{kind: trace, file: 'shipped:is.A.64'}", "{kind: torus, radices: [4, 4, 4]}", 0.002),
    ("{kind: trace, file: 'shipped:ft.A.64'}", "{kind: dragonfly, p: 2, a: 4, h: 2}", 0.002),
    ("{kind: npb, benchmark: mg, class: A, ranks: 64}", "{kind: fat_tree, k: 4, n: 2}", 0.002),
    ("{kind: npb, benchmark: cg, class: W, ranks: 32}", "{kind: random_regular, routers: 32, degree: 4}", 0.02),
    ("{kind: npb, benchmark: sp, class: S, ranks: 16}", "{kind: mesh, radices: [4, 4]}", 0.002),
    ("{kind: npb, benchmark: lu, class: S, ranks: 16}", "{kind: mesh, radices: [4, 4]}", 0.002),
    ("{kind: npb, benchmark: ft, class: A, ranks: 8}", "{kind: mesh, radices: [4, 2]}", 0.002),
])
def test_large_programs_take_the_same_time(workload: str, topology: str, limit: float) -> None:
    """Promised are 2 %, the limit on random networks (docs/guides/applications.md); regular ones agree far better."""
    config = config_of(workload, topology, "{host_gflops: 10}")
    ours, theirs = (run_app(by(config, backend)).found.makespan_s for backend in ("embedded", "simgrid"))
    assert ours == pytest.approx(theirs, rel=limit)


@simgrid
def test_ranks_of_one_host_compute_side_by_side(tmp_path: Path) -> None:
    (tmp_path / "map").write_text("3\n3\n0\n")
    lines = [["compute 1e6", "send 1 0 500 6"], ["compute 1e6", "recv 0 0 500 6"], ["compute 5e5"]]
    (tmp_path / "t").write_text("".join(f"{r} {line}\n" for r, own in enumerate(lines) for line in own))
    text = f"{{kind: trace, file: {tmp_path / 't'}, mapping: {{kind: file, file: {tmp_path / 'map'}}}}}"
    config = config_of(text, app="{host_gflops: 1, backend: simgrid}")
    assert run_app(config).ranks["finish_s"].tolist() == pytest.approx([1e-3, 1e-3, 5e-4])


@simgrid
def test_a_deadlock_names_the_ranks(tmp_path: Path) -> None:
    lines = [["send 1 0 70000 6", "recv 1 0 70000 6"], ["send 0 0 70000 6", "recv 0 0 70000 6"], ["init"]]
    (tmp_path / "t").write_text("".join(f"{r} {line}\n" for r, own in enumerate(lines) for line in own))
    config = config_of(f"{{kind: trace, file: {tmp_path / 't'}}}", app="{backend: simgrid}")
    expected = r"cannot end: .* 2 of 3 ranks wait: rank 0 waits until rank 1 takes its message \(send, .*rank 1 waits"
    with pytest.raises(ProgramError, match=expected):
        run_app(config)


@simgrid
def test_results_are_those_of_the_other_engines(tmp_path: Path) -> None:
    config = config_of("{kind: collective, operation: alltoall, bytes: 100}")
    for backend in ("embedded", "simgrid"):
        run = run_app(by(config, backend))
        write_app(run, tmp_path / backend)
    ours, theirs = ({item.name for item in (tmp_path / name).iterdir()} for name in ("embedded", "simgrid"))
    assert "app.csv" in ours
    assert ours == theirs
    rows = dict(app_rows(run))
    assert rows["engine"] == "flow (simgrid)"
    assert run_app(config).found.backend == "simgrid"  # the default, where it is installed
    assert "message latency" not in rows


def compiled(folder: Path, source: Path | str) -> Path:
    path = source if isinstance(source, Path) else folder / "program.c"
    if isinstance(source, str):
        path.write_text(source)
    target = folder / path.stem
    subprocess.run(["smpicc", "-O2", "-o", target, path], check=True, capture_output=True)
    return target


@simgrid
def test_the_example_and_its_trace(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The program takes as long as its recorded calls in the embedded engine, if computing takes no time."""
    config = config_of("{kind: uniform}")
    run = run_executable(config, compiled(tmp_path, EXAMPLE), 12, ["100", "5"])
    assert "3 x 4 ranks, 5 steps" in capfd.readouterr().out
    assert (run.found.messages, run.found.ranks, run.found.status) == (5 * (12 * 4 + 32), 12, 0)  # allreduce: 32
    assert dict(execution_rows(run))["messages"].startswith("400 with ")
    write_execution(config, run, tmp_path / "out")
    assert len(list((tmp_path / "out" / "trace").iterdir())) == 12
    replay = run_app(config_of(f"{{kind: trace, file: {tmp_path / 'out' / 'trace'}}}"))
    assert replay.ranks["finish_s"].tolist() == pytest.approx(run.ranks["finish_s"].tolist(), rel=1e-9)
    assert replay.found.messages == run.found.messages


@simgrid
def test_computing_takes_time_if_hosts_have_a_speed(tmp_path: Path) -> None:
    program = compiled(tmp_path, EXAMPLE)
    slow, fast = (
        run_executable(config_of("{kind: uniform}", app=f"{{host_gflops: {speed}, machine_gflops: 10}}"), program, 4)
        for speed in (0.01, 1000)
    )
    assert slow.ranks["compute_s"].min() > 100 * fast.ranks["compute_s"].max() > 0


@simgrid
def test_calls_in_other_communicators_count(tmp_path: Path) -> None:
    source = """#include <mpi.h>
int main(int c, char **v) {
    int rank, one = 1, all; MPI_Comm half;
    MPI_Init(&c, &v); MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 3 == 0, rank, &half);
    if (rank % 3) MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, half);
    MPI_Finalize(); return 0;
}
"""
    run = run_executable(config_of("{kind: uniform}"), compiled(tmp_path, source), 6)
    assert run.found.messages == 4 * 2  # ranks 1, 2, 4 and 5 by recursive doubling
    assert dict(execution_rows(run))["messages"] == "8 with 32 bytes"
    assert run.found.makespan_s > 0
    assert np.isfinite(run.ranks["finish_s"]).all()


@simgrid
def test_a_program_of_another_compiler(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SmpiError, match=r"(?s)^smpirun failed \(exit status \d+\):.*"):
        run_executable(config_of("{kind: uniform}"), Path("/bin/true"), 2)
    assert "SMPI-specific compiler" in capfd.readouterr().err


def test_hosts_of_the_network_bound_the_ranks(tmp_path: Path) -> None:
    program = tmp_path / "a"
    program.write_text("")
    program.chmod(0o755)
    config = config_of("{kind: uniform}")
    with pytest.raises(Exception, match=r"^workload: 13 ranks are more than the 12 hosts of the 4x3 torus$"):
        run_executable(config, program, 13)
    assert build(config.topology, config.address).hosts == 12
