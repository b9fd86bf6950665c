"""Keys that no engine reads with the program of a file are told, or refused where they would mean something else."""

from pathlib import Path

import pytest

from hopforge.model.config import parse_config
from hopforge.model.errors import UserError
from hopforge.sim.start.preparation import for_command, prepare

GOAL = "num_ranks 2\nrank 0 {\na: calc 5\n}\n"
LOGGOPS = "loggops: {L: 5, G: 3, o: 2, machine: ai}"


def text(folder: Path, app: str, workload: str = "") -> str:
    (folder / "a.goal").write_text(GOAL)
    return (
        "name: x\ntopology: {kind: torus, radices: [4]}\n"
        f"workload: {{kind: trace, file: {folder / 'a.goal'}{workload}}}\napp: {{{app}}}\n"
    )


def unused(words: str, command: str = "app") -> tuple[str, ...]:
    return for_command(command, parse_config(words, keys=False)).unused


@pytest.mark.parametrize("engine", ["flow", "packet"])
def test_a_network_takes_the_place_of_latency_and_gap(tmp_path: Path, engine: str) -> None:
    assert unused(text(tmp_path, f"engine: {engine}, {LOGGOPS}")) == ("app.loggops.L", "app.loggops.G")


def test_loggops_reads_its_machine(tmp_path: Path) -> None:
    assert unused(text(tmp_path, f"engine: loggops, {LOGGOPS}")) == ()


def test_a_key_that_a_variant_reads_is_read(tmp_path: Path) -> None:
    words = text(tmp_path, f"engine: flow, {LOGGOPS}")
    variants = "simulation: {variants: {a: {}, b: {app.engine: loggops}}}\n"
    assert unused(words, "sweep") == ("app.loggops.L", "app.loggops.G")
    assert unused(words + variants, "sweep") == ()


def test_schedules_have_no_collectives(tmp_path: Path) -> None:
    words = text(tmp_path, "engine: loggops", ", collectives: {allreduce: ring}")
    assert unused(words) == ("workload.collectives",)


def test_messages_of_loggops_are_not_cut(tmp_path: Path) -> None:
    words = text(tmp_path, "engine: loggops", ", mtu_bytes: 512")
    assert unused(words) == unused(words, "sweep") == ("workload.mtu_bytes",)
    assert unused(words.replace("loggops", "flow")) == ()
    assert "workload.mtu_bytes" not in unused(words, "hits")


def test_traces_have_no_cpus_on_a_network(tmp_path: Path) -> None:
    words = text(tmp_path, LOGGOPS).replace("a.goal", "trace")
    assert unused(words) == ("app.loggops",)
    assert unused(words.replace("app: {", "app: {engine: loggops, ")) == ()


@pytest.mark.parametrize("engine", ["flow", "packet", "loggops"])
def test_times_are_no_operations(tmp_path: Path, engine: str) -> None:
    config = for_command("app", parse_config(text(tmp_path, f"engine: {engine}, host_gflops: 3"), keys=False))
    with pytest.raises(UserError, match=r"app\.host_gflops: is not for a schedule of GOAL: it has times"):
        prepare("app", config)


def test_traces_of_chakra_have_collectives_and_times(tmp_path: Path) -> None:
    words = text(tmp_path, f"engine: flow, {LOGGOPS}", ", collectives: {allreduce: ring}").replace("trace", "chakra")
    assert unused(words) == ("app.loggops.L", "app.loggops.G")
    assert unused(words.replace("flow", "loggops")) == ()
    timed = parse_config(text(tmp_path, "engine: flow, host_gflops: 3").replace("trace", "chakra"), keys=False)
    (tmp_path / "a.goal.0.et").write_bytes(b"\x02\x18\x01")  # a node of metadata
    with pytest.raises(UserError, match=r"app\.host_gflops: is not for traces of Chakra: it has times"):
        prepare("app", for_command("app", timed))
