"""Hosts with several links: where they go, which of them a message takes, and what every engine makes of it."""

from pathlib import Path

import numpy as np
import pytest

from hopforge.model.config import ConfigError, parse_config
from hopforge.model.topology import build
from hopforge.sim.programs.application import run_app
from hopforge.sim.programs.smpi_command import SmpiError
from hopforge.sim.traffic.packet_stream import WorkloadError
from hopforge.sim.traffic.placed import place_program
from hopforge.sim.traffic.workload_packets import build_workload

ENVELOPE = 16
TIMING = "timing: {link_gbps: 8, switch_base_ns: 51, cable_ns: 50}"
TWO_LEAVES = "{kind: clos, hosts_per_router: 3, leaves: 2, middles: 1, host_links: 2}"
"""Three hosts, each linked to both leaves."""


def read(workload: str, topology: str = TWO_LEAVES, app: str = ""):
    return parse_config(
        f"name: x\ntopology: {topology}\nworkload: {workload}\n{TIMING}\nrouting: {{algorithm: up_down}}\n"
        f"app: {{backend: embedded, buffered_bytes: 65536{app}}}\n"
    )


def recorded(tmp_path: Path, *programs: list[str], mapping: str = "{}", app: str = ""):
    (tmp_path / "trace").mkdir(exist_ok=True)
    for rank, lines in enumerate(programs):
        (tmp_path / "trace" / f"rank-{rank + 1}.txt").write_text("".join(f"{rank} {line}\n" for line in lines))
    return read(f"{{kind: trace, file: {tmp_path / 'trace'}, mapping: {mapping}}}", app=app)


def ends(config):
    placed = place_program(config.workload, build(config.topology, config.address), 1)
    return list(zip(placed.source_host.tolist(), placed.destination_host.tolist(), strict=True))


def alone(size: int, routers: int) -> float:
    return (51 * routers + 50 * (routers + 1)) * 1e-9 + (size + ENVELOPE) / 1e9


def test_links_of_a_host_go_to_different_leaves() -> None:
    config = read("{kind: collective, operation: barrier}")
    assert build(config.topology, config.address).host_router.tolist() == [0, 1, 0, 1, 0, 1]
    four = read(
        "{kind: collective, operation: barrier}",
        "{kind: director, hosts_per_router: 2, racks: 4, uplinks: 1, lines: 2, fabrics: 1, host_links: 2}",
    )
    assert build(four.topology, four.address).host_router.tolist() == [0, 1, 0, 1, 2, 3, 2, 3]


def test_messages_take_links_in_turns_or_by_pair(tmp_path: Path) -> None:
    programs = (
        ["send 1 0 8 6", "send 1 0 8 6", "send 2 0 8 6", "recv 2 0 8 6"],
        ["recv 0 0 8 6", "recv 0 0 8 6"],
        ["recv 0 0 8 6", "send 0 0 8 6"],
    )
    assert ends(recorded(tmp_path, *programs)) == [(0, 2), (1, 3), (0, 4), (4, 0)]
    # hosts 0 and 1: link (0 + 1) mod 2; hosts 0 and 2: link 0
    assert ends(recorded(tmp_path, *programs, mapping="{links: pair}")) == [(1, 3), (1, 3), (0, 4), (4, 0)]


def test_turns_follow_the_program_not_the_numbers_of_messages(tmp_path: Path) -> None:
    # a collective's messages are numbered first, though the send goes before them
    found = ends(recorded(tmp_path, ["send 1 0 8 6", "barrier"], ["recv 0 0 8 6", "barrier"]))
    assert sorted(found) == [(0, 2), (1, 3), (2, 0)]


def test_there_are_as_many_ranks_as_hosts_not_links() -> None:
    config = read("{kind: collective, operation: allgather, bytes: 1}")
    placed = place_program(config.workload, build(config.topology, config.address), 1)
    assert placed.program.ranks == 3
    assert placed.host.tolist() == [0, 2, 4]
    with pytest.raises(WorkloadError, match="4 ranks are more than the 3 hosts"):
        ends(read("{kind: collective, operation: barrier, ranks: 4}"))


def test_ranks_of_one_host_send_nothing(tmp_path: Path) -> None:
    (tmp_path / "map.txt").write_text("1\n1\n")
    mapping = f"{{kind: file, file: {tmp_path / 'map.txt'}}}"
    config = recorded(tmp_path, ["send 1 0 8 6"] * 2, ["recv 0 0 8 6"] * 2, mapping=mapping)
    placed = place_program(config.workload, build(config.topology, config.address), 1)
    assert placed.local.tolist() == [True, True]
    assert run_app(config).found.local_messages == 2
    (tmp_path / "map.txt").write_text("1\n3\n")
    with pytest.raises(WorkloadError, match=r"map.txt:2: host 3 is beyond the last host 2"):
        ends(config.model_copy(update={"name": "y", "workload": config.workload.model_copy(update={"mtu_bytes": 99})}))


@pytest.mark.parametrize(("links", "shared"), [("turns", 1), ("pair", 2)])
def test_flow_two_links_carry_two_messages_at_once(tmp_path: Path, links: str, shared: int) -> None:
    config = recorded(
        tmp_path, ["isend 1 0 50000 6", "isend 1 0 50000 6"], ["recv 0 0 50000 6"] * 2, mapping=f"{{links: {links}}}"
    )
    size = shared * (50000 + ENVELOPE) - ENVELOPE  # on one link both share the rate
    assert run_app(config).found.makespan_s == pytest.approx(alone(size, 1), rel=1e-9)


@pytest.mark.parametrize("engine", ["packet", "flow"])
def test_engines_gain_the_second_link(tmp_path: Path, engine: str) -> None:
    programs = ["isend 1 0 60000 6", "isend 1 0 60000 6"], ["recv 0 0 60000 6"] * 2
    turns, pair = (
        run_app(recorded(tmp_path, *programs, mapping=f"{{links: {how}}}", app=f", engine: {engine}")).found.makespan_s
        for how in ("turns", "pair")
    )
    assert 1.8 < pair / turns < 2.1


def test_hits_sees_packets_at_both_links(tmp_path: Path) -> None:
    config = recorded(tmp_path, ["send 1 0 8 6", "send 1 0 8 6"], ["recv 0 0 8 6"] * 2)
    source, destination = build_workload(config.workload, build(config.topology, config.address), 1).all_packets()
    assert np.stack([source, destination]).tolist() == [[0, 1], [2, 3]]


def test_schedules_of_goal(tmp_path: Path) -> None:
    text = (
        "num_ranks 2\nrank 0 {\na: send 50000b to 1 tag 0\nb: send 50000b to 1 tag 1\n}\n"
        "rank 1 {\na: recv 50000b from 0 tag 0\nb: recv 50000b from 0 tag 1\n}\n"
    )
    (tmp_path / "two.goal").write_text(text)
    times = {
        (engine, links): run_app(parse_config(
            f"name: x\ntopology: {TWO_LEAVES}\n{TIMING}\napp: {{engine: {engine}}}\n"
            f"routing: {{algorithm: up_down}}\n"
            f"workload: {{kind: trace, file: {tmp_path / 'two.goal'}, mapping: {{links: {links}}}}}\n"
        )).found.makespan_s
        for engine in ("flow", "packet") for links in ("turns", "pair")
    }  # fmt: skip
    for engine in ("flow", "packet"):
        assert 1.5 < times[engine, "pair"] / times[engine, "turns"] < 2.1


def test_simgrid_is_refused_by_name() -> None:
    workload = "{kind: collective, operation: barrier}"
    config = parse_config(f"name: x\ntopology: {TWO_LEAVES}\nworkload: {workload}\napp: {{backend: simgrid}}\n")
    with pytest.raises(SmpiError, match=r"topology.host_links: SimGrid gets one link of a host|smpirun"):
        run_app(config)


@pytest.mark.parametrize(("topology", "mapping", "message"), [
    ("{kind: clos, hosts_per_router: 1, leaves: 3, middles: 1, host_links: 2}", "{}",
     "host_links: must divide leaves=3, not 2"),
    ("{kind: director, hosts_per_router: 1, racks: 3, uplinks: 1, lines: 1, fabrics: 1, host_links: 2}", "{}",
     "host_links: must divide racks=3, not 2"),
    ("{kind: mesh, radices: [2]}", "{links: pair}",
     r"workload.mapping.links: needs hosts with several links \(topology.host_links\)"),
])  # fmt: skip
def test_bad_keys(topology: str, mapping: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read(f"{{kind: collective, operation: barrier, mapping: {mapping}}}", topology)
