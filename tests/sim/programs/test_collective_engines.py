"""Rules of MPI libraries in every engine, in `hits`, in what is written, and in the errors of the command line."""

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from hopforge import cli
from hopforge.model.config import parse_config
from hopforge.model.topology import build
from hopforge.model.workload.schedule import SEND
from hopforge.sim.programs.application import run_app
from hopforge.sim.programs.smpi_replay import own_names
from hopforge.sim.traffic.placed import place_program
from hopforge.sim.traffic.scheduled import workload_schedule
from hopforge.sim.traffic.workload_packets import program_packets

GB = 1e9  # bytes a second of a link of 8 Gbit/s
TIMING = "timing: {link_gbps: 8, switch_base_ns: 51, cable_ns: 50}"
ONE_SWITCH = "topology: {kind: mesh, radices: [1], hosts_per_router: 8}"
ENVELOPE = 16


def config(workload: str, engine: str = "flow", more: str = "") -> str:
    return (
        f"name: x\n{ONE_SWITCH}\nworkload: {workload}\n{TIMING}\n"
        f"app: {{engine: {engine}, backend: embedded, buffered_bytes: 65536}}\n{more}"
    )


def of_mpich(operation: str, size: int, ranks: int, collectives: str = "rules: mpich") -> str:
    what = f"operation: {operation}, bytes: {size}, ranks: {ranks}"
    return f"{{kind: collective, {what}, collectives: {{{collectives}}}}}"


def makespan(text: str) -> float:
    return run_app(parse_config(text)).found.makespan_s


def test_rabenseifner_by_hand() -> None:
    # four exchanges of a half, a quarter, a quarter and a half of 32 KiB, each over one switch and two cables
    alone = sum((51 + 100) * 1e-9 + (size + ENVELOPE) / GB for size in (16384, 8192, 8192, 16384))
    assert makespan(config(of_mpich("allreduce", 32768, 4))) == pytest.approx(alone, rel=1e-9)


@pytest.mark.parametrize("engine", ["flow", "packet", "loggops"])
@pytest.mark.parametrize(("size", "algorithm"), [
    (12288, "binomial"), (12289, "scatter_doubling_allgather"), (524288, "scatter_doubling_allgather"),
    (524289, "scatter_ring_allgather"),
])  # fmt: skip
def test_each_engine_runs_what_the_rule_names(engine: str, size: int, algorithm: str) -> None:
    if engine == "packet" and size > 20000:
        pytest.skip("takes long, and shows nothing more")
    by_rule = makespan(config(of_mpich("bcast", size, 8), engine))
    assert by_rule == makespan(config(of_mpich("bcast", size, 8, f"bcast: {algorithm}"), engine))
    others = {"binomial", "scatter_doubling_allgather", "scatter_ring_allgather"} - {algorithm}
    assert all(by_rule != makespan(config(of_mpich("bcast", size, 8, f"bcast: {name}"), engine)) for name in others)


def test_simgrid_does_by_itself_only_what_is_named() -> None:
    both = parse_config(config(of_mpich("bcast", 1, 8, "rules: mpich, reduce: binomial"))).workload
    assert own_names(8, both.collectives) == ["smpi/reduce:binomial"]


def test_the_name_tells_the_rules() -> None:
    read = [
        parse_config(config(of_mpich("bcast", 1, 8, keys))) for keys in ("rules: open_mpi", "rules: mpich, bcast: ring")
    ]
    names = [place_program(each.workload, build(each.topology, each.address), 1).trace.name for each in read]
    assert names == ["bcast (rules of open_mpi)", "bcast (ring)"]


def test_written_as_goal_and_as_chakra_and_read_again(tmp_path: Path) -> None:
    file = tmp_path / "x.yml"
    file.write_text(config(of_mpich("bcast", 12289, 8)))
    runner = CliRunner()
    for form, target in (("goal", "x.goal"), ("chakra", "x_traces")):
        done = runner.invoke(cli.app, ["workload", str(file), "--to", form, "-o", str(tmp_path / target)])
        assert done.exit_code == 0, done.output
    lines = (tmp_path / "x.goal").read_text().split("rank 1 {")[0]
    # pieces of ⌈12289/8⌉ = 1537 bytes, the last 1530: rank 0 scatters 4, 2 and 1 of them, then exchanges 1, 2 and 4
    sizes = [int(line.split("send ")[1].split("b")[0]) for line in lines.splitlines() if "send " in line]
    assert sizes == [3 * 1537 + 1530, 2 * 1537, 1537, 1537, 2 * 1537, 4 * 1537]
    back = parse_config(config(f"{{kind: chakra, file: {tmp_path / 'x_traces' / 'trace'}}}"))
    schedule = workload_schedule(back.workload, 8, 1, None)
    # 7 pieces of 1537 and one of 1530 in the scatter: 3·1537 + 1530, …; then everybody gets 7 of the 8
    scattered = (3 * 1537 + 1530) + 2 * 1537 + (1537 + 1530) + 3 * 1537 + 1530
    assert schedule.size[schedule.kind == SEND].sum() == scattered + 7 * 12289


def test_hits_replays_what_the_rule_names(tmp_path: Path) -> None:
    text = "name: x\ntopology: {{kind: torus, radices: [3, 3]}}\nworkload: {}\n"
    def packets(collectives: str) -> np.ndarray:
        read = parse_config(text.format(of_mpich("allgather", 9103, 9, collectives)))
        found = program_packets(read.workload, place_program(read.workload, build(read.topology, read.address), 1))
        return np.concatenate([np.stack(chunk) for chunk in found.make_chunks()], axis=1)

    # 9 · 9103 = 81 927 bytes: from 81 920 on MPICH takes the ring
    assert (packets("rules: mpich") == packets("allgather: ring")).all()


@pytest.mark.parametrize(("keys", "words"), [
    ("rules: file, rules_file: none.yml", "none.yml: No such file"),
    ("rules: file, rules_file: rules.yml", "rules.yml:1: "),
    ("bcast: by_rules", "by_rules needs rules=mpich, open_mpi or file, not named"),
])  # fmt: skip
def test_errors_of_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], keys: str, words: str
) -> None:
    (tmp_path / "rules.yml").write_text("library: x\n")
    file, out = tmp_path / "x.yml", tmp_path / "out"
    file.write_text(config(of_mpich("bcast", 1, 8, keys)))
    monkeypatch.setattr("sys.argv", ["hopforge", "app", str(file), "-o", str(out)])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == 2
    error = capsys.readouterr().err
    assert words in error
    assert "Traceback" not in error
    assert not out.exists()
