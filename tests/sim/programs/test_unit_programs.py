"""Programs whose collectives are done by collective units: times by hand, and what units cannot do."""

import re
from pathlib import Path
from typing import Any

import pytest

from hopforge.model.config import Config, ConfigError, parse_config
from hopforge.model.config.uses import unused_sections
from hopforge.model.errors import UserError
from hopforge.model.topology import build
from hopforge.sim.programs.app_result import AppRun
from hopforge.sim.programs.app_setup import checked_program, prepare_app
from hopforge.sim.programs.application import app_rows, run_app
from hopforge.sim.run.prepared import prepare_net
from hopforge.sim.traffic.workload_packets import build_workload

# a cycle of 1 ns, links of a cycle: routers 0 1 / 2 3, of group 0 root 1, a link away from both members
CHIP = """
name: small
topology: {kind: mesh, radices: [2, 2]}
router: {vcs: 2, buffer_flits: 4}
traffic: {flit_bytes: 8}
timing: {link_gbps: 64, switch_base_ns: 3, cable_ns: 1}
"""
ALL = "{barrier: in_network, allreduce: in_network, bcast: in_network}"


def file(
    folder: Path, ranks: list[str], *, hosts: str = "0\n3\n", groups: str = "{hosts: [3, 0]}", collectives: str = ALL,
    rest: str = "app: {host_gflops: 1, engine: flow, backend: embedded}", chip: str = CHIP, plane: str = "",
) -> Config:
    for rank, calls in enumerate(ranks):
        text = "".join(f"{rank} {call}\n" for call in ["init", *calls.split("; "), "finalize"])
        (folder / f"rank-{rank + 1}.txt").write_text(text)
    (folder / "hosts").mkdir(exist_ok=True)
    (folder / "hosts" / "list").write_text(hosts)
    return parse_config(
        f"{chip}collective_plane: {{groups: [{groups}]{plane}}}\n{rest}\n"
        f"workload: {{kind: trace, file: {folder}, mapping: {{kind: file, file: {folder}/hosts/list}}, "
        f"collectives: {collectives}}}\n"
    )  # fmt: skip


def finished(config: Config, engine: str) -> AppRun:
    found = run_app(config.model_copy(update={"app": config.app.model_copy(update={"engine": engine})}))
    assert isinstance(found, AppRun)
    return found


@pytest.mark.parametrize("engine", ["flow", "packet"])
def test_times_by_hand(tmp_path: Path, engine: str) -> None:
    """One word up and down again takes 4·2 + 2 + 1 = 11 cycles, each further one a cycle."""
    config = file(tmp_path, [
        # rank 0 is late for the barrier: 20 + 11; four words: 31 + 14; at the root of the broadcast rank 1 is late
        "compute 20; barrier; allreduce 4 100 1; bcast 3 1 1; barrier",
        "barrier; allreduce 4 100 1; compute 30; bcast 3 1 1; compute 50; barrier",
    ])  # fmt: skip
    found = finished(config, engine)
    # 45 + 30 + 13 = 88; then 88 + 50 + 11
    assert found.ranks["finish_s"].tolist() == pytest.approx([149e-9, 149e-9], rel=1e-12)
    assert found.ranks["waiting_s"].tolist() == pytest.approx([129e-9, (149 - 80) * 1e-9], rel=1e-12)
    assert found.ranks["compute_s"].tolist() == pytest.approx([20e-9, 80e-9], rel=1e-12)
    assert found.row()["unit_collectives"] == 4 and found.row()["unit_overlaps"] == 0
    assert ("in the network", "4 collectives by units, in 1 group") in app_rows(found)


@pytest.mark.parametrize("engine", ["flow", "packet"])
@pytest.mark.parametrize(("calls", "exact"), [
    ("barrier", 11), ("barrier; compute 300; barrier; compute 70", 392), ("barrier; " * 60 + "barrier", 671),
])  # fmt: skip
def test_who_only_waits_for_units_does_not_stand_still(tmp_path: Path, engine: str, calls: str, exact: int) -> None:
    """No message moves in the network: of more barriers than `simulation.deadlock_cycles` has room for, all end."""
    config = file(tmp_path, [calls, calls], rest="app: {host_gflops: 1}\nsimulation: {deadlock_cycles: 100}")
    assert finished(config, engine).found.makespan_s == pytest.approx(exact * 1e-9, rel=1e-12)


@pytest.mark.parametrize("engine", ["flow", "packet"])
def test_a_late_receiver_of_broadcasts(tmp_path: Path, engine: str) -> None:
    """The source goes on after 11 cycles each; rank 1 finds both results when it asks for them."""
    config = file(tmp_path, ["bcast 4 0; bcast 4 0", "compute 100; bcast 4 0; bcast 4 0; compute 5"])
    found = finished(config, engine)
    assert found.ranks["finish_s"].tolist() == pytest.approx([22e-9, 105e-9], rel=1e-12)
    early = file(tmp_path, ["bcast 4 0; bcast 4 0", "compute 15; bcast 4 0; bcast 4 0"])
    assert finished(early, engine).ranks["finish_s"].tolist() == pytest.approx([22e-9, 22e-9], rel=1e-12)


@pytest.mark.parametrize("engine", ["flow", "packet"])
def test_two_groups_and_messages_between(tmp_path: Path, engine: str) -> None:
    """Groups whose trees share no unit run side by side; on one unit it is told that they do not wait."""
    halves = "{hosts: [0, 1]}, {hosts: [2, 3]}"
    own = "communicator 1 0 1; barrier@1", "communicator 2 2 3; barrier@2"
    calls = [f"{own[rank // 2]}; compute 10" for rank in range(4)]
    apart = finished(file(tmp_path, calls, hosts="0\n1\n2\n3\n", groups=halves), engine)
    # the root is the lower router, one member a link away: results at the root's own host 2 cycles earlier
    assert apart.ranks["finish_s"].tolist() == pytest.approx([19e-9, 21e-9] * 2, rel=1e-12)
    assert apart.row()["unit_overlaps"] == 0
    crossed = "{hosts: [0, 3], root: 1}, {hosts: [1, 2]}"
    own = "communicator 1 0 3; barrier@1", "communicator 2 1 2; barrier@2"
    calls = [f"{own[rank in (1, 2)]}" for rank in range(4)]
    shared = finished(file(tmp_path, calls, hosts="0\n1\n2\n3\n", groups=crossed), engine)
    assert shared.row()["unit_overlaps"] == 1
    assert "1 of them beside another group" in dict(app_rows(shared))["in the network"]


def test_net_runs_them_too(tmp_path: Path) -> None:
    chip = CHIP.replace("flit_bytes: 8", "flit_bytes: 8, source: program, cycles_per_flop: 1").replace("timing", "#")
    config = file(tmp_path, ["compute 20; barrier", "barrier"], rest="energy: {}", chip=chip)
    config = config.model_copy(update={"router": config.router.model_copy(update={"link_latency_cycles": 2})})
    run = prepare_net(config)
    run.run(lambda done, of: None)
    # links of two cycles: 2 D (L − 1) more
    assert run.values()["makespan"] == 20 + 11 + 2 and run.values()["unit_collectives"] == 1
    assert unused_sections(config, ["net"]) == ["energy"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"ranks": ["allreduce 4 1 0", "allreduce 4 1 0"]}, "units combine whole numbers, not DOUBLE"),
        ({"ranks": ["allreduce 4 1 4", "allreduce 4 1 4"]}, "LONG has 64 bits, a word 32 (collective_plane"),
        ({"hosts": "3\n3\n"}, "several of its ranks are on one host"),
        ({"groups": "{hosts: [0, 2]}"}, "no group of collective_plane.groups has just the 2 hosts of its ranks"),
        ({"groups": "{}"}, "no group of collective_plane.groups has just the 2 hosts of its ranks"),
    ],
)  # fmt: skip
def test_what_units_cannot_do_is_refused_or_left_to_hosts(
    tmp_path: Path, change: dict[str, Any], says: str
) -> None:
    ranks = change.pop("ranks", ["allreduce 4 1 1", "allreduce 4 1 1"])
    expected = rf"rank-1.txt:2: rank 0 calls allreduce in_network: {re.escape(says)}.*; .*by_hosts.allreduce names"
    with pytest.raises(UserError, match=expected):
        prepare_app(file(tmp_path, ranks, **change))
    left = file(tmp_path, ranks, **change, collectives="{allreduce: in_network, by_hosts: {allreduce: ring}}")
    as_hosts = file(tmp_path, ranks, **change, collectives="{allreduce: ring}")
    found, wanted = finished(left, "flow"), finished(as_hosts, "flow")
    assert found.ranks.equals(wanted.ranks) and found.found.messages == wanted.found.messages > 0
    assert "unit_collectives" not in found.row()


@pytest.mark.parametrize(
    ("rest", "says"),
    [
        ("app: {engine: loggops}", "in_network is not for graphs"),
        ("app: {backend: simgrid}", "app.backend: must be embedded or auto"),
        ("app: {lookup: cache}", "app.lookup: must be hit, miss or conventional"),
        ("app: {engine: packet}\nsimulation: {failures: [{cycle: 5, links: [[0, 1]]}]}", "simulation.failures"),
        ("app: {engine: packet}\nrouter: {model: input_output_queued}", "router.model: must be input_queued with"),
        ("app: {engine: flow}\nrouter: {model: input_output_queued}", "router.model: must be input_queued with"),
    ],
)  # fmt: skip
def test_engines_without_units(tmp_path: Path, rest: str, says: str) -> None:
    chip = CHIP.replace("router: {vcs: 2, buffer_flits: 4}\n", "") if "router" in rest else CHIP
    with pytest.raises(UserError, match=re.escape(says)):
        prepare_app(file(tmp_path, ["barrier", "barrier"], rest=rest, chip=chip))


def test_other_commands_refuse_them(tmp_path: Path) -> None:
    config = file(tmp_path, ["barrier", "barrier"])
    with pytest.raises(UserError, match=r"workload.collectives.barrier: in_network is for hopforge app"):
        build_workload(config.workload, build(config.topology, config.address), 1)
    with pytest.raises(UserError, match="in_network is not for graphs"):
        checked_program(config, "goal")
    with pytest.raises(ConfigError, match="barrier is for barrier=in_network only, not barrier=bruck"):
        file(tmp_path, ["barrier", "barrier"], collectives="{by_hosts: {barrier: bruck}}")


@pytest.mark.parametrize("engine", ["flow", "packet"])
def test_ranks_that_wait_for_ever(tmp_path: Path, engine: str) -> None:
    config = file(tmp_path, ["recv 1 7 4; barrier", "barrier; send 0 7 4"])
    with pytest.raises(UserError, match=r"2 of 2 ranks wait: .*rank 1 waits for the other ranks \(barrier, .*-2.txt:2"):
        finished(config, engine)


def test_too_many_words(tmp_path: Path) -> None:
    config = file(tmp_path, ["allreduce 4000000000 1 1", "allreduce 4000000000 1 1"])
    with pytest.raises(UserError, match=r"take 20,000,000,000 steps, more than 10,000,000,000"):
        prepare_app(config)
