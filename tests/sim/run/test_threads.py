"""`hopforge net --threads`: the same results, the reason for one thread, mistakes in one line."""

import csv
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hopforge import cli
from hopforge.model.config import Config, parse_config
from hopforge.model.network.core.event_log import put_log
from hopforge.model.network.core.kinds import RECEIVED
from hopforge.sim.run import threads as threads_module
from hopforge.sim.run.prepared import prepare_net
from hopforge.sim.run.simulation import Simulation
from hopforge.sim.run.threads import parts_for

FILE = """\
name: threads
topology: {kind: torus, radices: [8, 4]}
router: {vcs: 2}
simulation: {load: 0.3, warmup_cycles: 600, min_cycles: 1000, max_cycles: 1000}
"""
ROUTERS = "router: {vcs: 2}\n"


def run(tmp_path: Path, text: str, *options: str) -> tuple[int, str, Path]:
    tmp_path.mkdir(exist_ok=True)
    path = tmp_path / "threads.yml"
    path.write_text(text)
    folder = tmp_path / "-".join(("out", *options)).replace("--", "")
    result = CliRunner().invoke(cli.app, ["net", str(path), "-o", str(folder), *options])
    return result.exit_code, " ".join((result.output + str(result.exception or "")).split()), folder


def rows(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return [{k: v for k, v in row.items() if k != "cpu_seconds"} for row in csv.DictReader(file)]


def test_results_are_the_same_and_threads_are_told(tmp_path: Path) -> None:
    found = {}
    for threads in ("1", "2", "4"):
        status, output, folder = run(tmp_path, FILE, "--threads", threads)
        assert status == 0, output
        assert (f"threads {threads}, with {threads} parts of the network" in output) == (threads != "1")
        found[threads] = [rows(folder / name) for name in ("measurement.csv", "channels.csv", "buffers.csv")]
    assert len(found["1"][1]) == 128
    assert found["1"] == found["2"] == found["4"]


@pytest.mark.parametrize(
    "more, words",
    [
        ("router: {model: input_output_queued}", "1: router.model is input_output_queued"),
        ("router: {vcs: 12}\nrouting: {algorithm: ugal_global}", "1: the routing algorithm looks"),
        (
            "simulation: {failures: [{cycle: 500, switches: [3]}]}\nrouting: {algorithm: shortest}\nrouter: {vcs: 8}",
            "1: links or routers fail",
        ),
    ],
)
def test_a_run_that_stays_on_one_thread_says_why_if_it_was_asked_for_more(more: str, words: str) -> None:
    config = parse_config(f"name: t\ntopology: {{kind: torus, radices: [8, 4]}}\n{more}\n")
    for threads, told in ((2, words), (1, ""), (None, "")):
        found = Simulation(config, 0.1, 1, check=False, threads=threads).threads
        assert found.threads == 1
        assert found.words.startswith(told) and bool(found.words) == bool(told)


def test_packet_routers_stay_on_one_thread() -> None:
    routers = "router: {model: packet}\nrouting: {algorithm: por}\n"
    config = parse_config(f"name: t\ntopology: {{kind: torus, radices: [4, 4]}}\n{routers}")
    assert prepare_net(config, threads=2).threads == "1: router.model is packet"


@pytest.mark.parametrize(
    "wanted, words",
    [
        ("5", "--threads must be at most 4 for 32 routers, as a part has 8 or more, not 5"),
        ("0", "Invalid value for '--threads'"),
        ("-3", "Invalid value for '--threads'"),
    ],
)
def test_threads_that_cannot_be_are_refused(tmp_path: Path, wanted: str, words: str) -> None:
    status, output, folder = run(tmp_path, FILE, "--threads", wanted)
    assert status != 0
    assert words in output
    assert not folder.exists()


def torus(radices: str) -> Config:
    topology = f"topology: {{kind: torus, radices: {radices}}}"
    return parse_config(f"name: t\n{topology}\naddress: {{chunk_bits: 6}}\nrouter: {{vcs: 2}}\n")


def _chosen(radices: str, threads: int | None) -> tuple[int, str]:
    found = Simulation(torus(radices), 0.1, 1, check=False, threads=threads).threads
    return found.threads, found.words


def test_as_many_threads_as_pay_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(8))
    monkeypatch.setattr(os, "getloadavg", lambda: (2.4, 0.0, 0.0))
    assert _chosen("[16, 16]", None) == (1, "")  # 256 routers
    assert _chosen("[32, 24]", None)[0] == 3  # 768
    assert _chosen("[64, 64]", None)[0] == 6  # two of eight cores are busy
    assert _chosen("[32, 24]", 1) == (1, "")
    monkeypatch.setattr(threads_module, "free_memory", lambda: 1 << 20)
    assert _chosen("[32, 24]", None) == (1, "")
    monkeypatch.setattr(os, "getloadavg", lambda: (9.0, 0.0, 0.0))
    assert _chosen("[64, 64]", None) == (1, "")


def test_a_large_state_has_more_parts() -> None:
    state = Simulation(torus("[32, 24]"), 0.1, 1, check=False).state
    parts = parts_for(state, 2)
    assert parts % 2 == 0
    assert state.nbytes / parts <= threads_module.PART_BYTES
    assert parts == 2 or state.nbytes / (parts - 2) > threads_module.PART_BYTES


def test_one_thread_simulates_the_parts_of_a_network_that_no_cache_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    def parts(radices: str = "[32, 24]", threads: int | None = 1, more: str = "") -> int:
        config = parse_config(
            f"name: t\ntopology: {{kind: torus, radices: {radices}}}\naddress: {{chunk_bits: 6}}\n{more or ROUTERS}"
        )
        found = Simulation(config, 0.1, 1, check=False, threads=threads).threads
        assert (found.threads, found.words) == (1, "")
        return found.parts

    assert parts() == 1
    monkeypatch.setattr(threads_module, "LARGE_STATE", 1 << 20)
    monkeypatch.setattr(threads_module, "PART_BYTES", 1 << 18)
    monkeypatch.setattr(os, "getloadavg", lambda: (99.0, 0.0, 0.0))
    assert parts() > 2
    assert parts(threads=None) == parts()
    assert parts("[2, 4]") == 1
    assert parts(more="router: {speculation: true}\n") == 1
    monkeypatch.setattr(threads_module, "free_memory", lambda: 1 << 20)
    assert parts() == 1
    monkeypatch.setattr(threads_module, "free_memory", lambda: 0)
    monkeypatch.setattr(threads_module, "LARGEST_STATE", 1 << 20)
    assert parts() == 1


def test_parts_on_one_thread_give_the_same_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = FILE.replace("[8, 4]", "[8, 8]")
    files = ("measurement.csv", "channels.csv", "buffers.csv")
    _, _, folder = run(tmp_path, text, "--threads", "1")
    whole = [rows(folder / name) for name in files]
    monkeypatch.setattr(threads_module, "LARGE_STATE", 0)
    monkeypatch.setattr(threads_module, "PART_BYTES", 1 << 16)
    assert Simulation(parse_config(text), 0.3, 1, check=False).threads.parts > 2
    status, output, folder = run(tmp_path / "parts", text, "--threads", "1")
    assert status == 0, output
    assert [rows(folder / name) for name in files] == whole


@pytest.mark.parametrize("threads", [1, 2])
def test_a_log_that_begins_after_the_threads_were_chosen_is_whole(
    monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    """`hopforge trace` asks for the log of a run that is built; the parts of a network write none."""
    monkeypatch.setattr(threads_module, "LARGE_STATE", 0)
    monkeypatch.setattr(threads_module, "PART_BYTES", 1 << 16)
    run = Simulation(torus("[8, 8]"), 0.3, 1, check=False, threads=threads)
    assert run.threads.parts > 1
    run.advance(100)
    before = int(run.state["flits_ejected"])
    put_log(run.state, 10**6)
    run.advance(100)
    log = run.state["log"].reshape(-1, 6)[: int(run.state["log_length"])]
    assert (log[:, 1] == RECEIVED).sum() == int(run.state["flits_ejected"]) - before > 500
