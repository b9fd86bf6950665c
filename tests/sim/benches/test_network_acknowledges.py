"""Networks with service hosts at their routers: generated hardware against the simulator, every flit in its cycle."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hopforge.gen.design.configured import network_design, whole_network_design
from hopforge.gen.verilog.writer import to_verilog
from hopforge.model.config import Config, parse_config
from hopforge.model.errors import UserError
from hopforge.sim.benches.network import NetworkTraffic, RecordedNetwork, record_network
from hopforge.sim.benches.network_setup import network_setup
from hopforge.sim.benches.repeated_tags import refuse_early_tags
from hopforge.sim.drive.replay import replay_amaranth
from hopforge.sim.drive.runner import replay_verilator

TEXT = """name: acks
topology: {{kind: {kind}}}
router: {{vcs: {vcs}, buffer_flits: 3, flit_bits: 64, tag_bits: {tags}{router}}}
routing: {{{routing}}}
traffic: {{include_self: false, packet_flits: 2, acknowledge: {{queue: 1, own_queue: {own}, table: 3{acknowledge}}}}}
"""


def configuration(
    kind: str = "mesh, radices: [3]", router: str = "", acknowledge: str = "", routing: str = "algorithm: dor",
    vcs: int = 2, own: int | str = 16, tags: int = 6,
) -> Config:  # fmt: skip
    names = {"kind": kind, "router": router, "acknowledge": acknowledge, "routing": routing, "vcs": vcs, "own": own}
    names["tags"] = tags
    return parse_config(TEXT.format(**names))


def recorded(config: Config, cycles: int, load: float = 0.3) -> RecordedNetwork:
    return record_network(config, NetworkTraffic(load=load, cycles=cycles, seed=2))


@pytest.mark.study
def test_on_amaranth() -> None:
    """Acknowledges share channels with packets, so a flit of theirs too many, too few or too late is seen."""
    run = recorded(configuration(), 60, 0.15)
    assert run.packets > 8
    result = replay_amaranth(run.component, run.replay)
    assert result.first is None, str(result.first)


def test_acknowledges_move_packets() -> None:
    """What the hosts of the network see is not the same with half as many acknowledges."""
    run, other = recorded(configuration(), 60), recorded(configuration(acknowledge=", ratio: 2"), 60)
    assert run.packets == other.packets
    assert not np.array_equal(run.replay.expected[:60], other.replay.expected[:60])


LONG_RUNS = pytest.mark.parametrize(
    ("kind", "router", "acknowledge"),
    [
        ("torus, radices: [3, 3]", "", ", age_limit_cycles: 60"),  # tags come again
        ("mesh, radices: [3, 3]", ", switching: vct, vc_release: credits", ", flits: 2, ratio: 4, delay_cycles: 5"),
        ("mesh, radices: [4, 2]", ", host_latency_cycles: 3, link_latency_cycles: 2, va: free_queue", ""),
        ("torus, radices: [4]", ", speculation: true", ", vcs: own"),
    ],
)


def long_run(kind: str, router: str, acknowledge: str) -> RecordedNetwork:
    vcs, tags = 3 if "own" in acknowledge else 2, 6 if "age_limit" in acknowledge else 8
    run = recorded(configuration(kind, router, acknowledge, vcs=vcs, tags=tags), 3000, 0.1)
    assert run.packets > 400
    return run


@LONG_RUNS
def test_long_runs_are_taken(kind: str, router: str, acknowledge: str) -> None:
    """What only `make study` plays on hardware is recorded here, too."""
    assert len(long_run(kind, router, acknowledge).replay.driven) > 3000


@pytest.mark.study
@LONG_RUNS
def test_on_verilator(kind: str, router: str, acknowledge: str, tmp_path: Path) -> None:
    run = long_run(kind, router, acknowledge)
    result = replay_verilator(to_verilog(run.component, "acks"), "acks", run.replay, tmp_path).result
    assert result.first is None, str(result.first)


@pytest.mark.study
def test_more_of_its_own_than_a_router_can_send(tmp_path: Path) -> None:
    """At load .3 queues of their own fill: hardware and simulator make none in the same cycles.

    Entries of packets that nobody acknowledges stay, so no tag may come again.
    """
    run = recorded(configuration(own=2, tags=8), 1300, 0.3)
    result = replay_verilator(to_verilog(run.component, "acks"), "acks", run.replay, tmp_path).result
    assert result.first is None, str(result.first)
    assert run.packets > 500


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"kind": "mesh, radices: [3], hosts_per_router: 2"}, r"other than one host at a router \(router 0 has 2\)"),
        ({"kind": "torus, radices: [3, 2]"}, r"several links between two .* \(router 0 has 2 to router 3\)"),
        (
            {"kind": "torus, radices: [3]", "routing": "algorithm: valiant", "vcs": 4},
            "valiant cannot be a table of a router",
        ),
        ({"acknowledge": ", ratio: 3"}, r"traffic.acknowledge: ratio must be a power of two up to 2\^tag_bits = 64"),
        ({"own": "null"}, "traffic.acknowledge: own_queue must be 1 or more in hardware, not null"),
        ({"acknowledge": ", flits: 1"}, "traffic.acknowledge: flits must be 2 or more in hardware"),
    ],
)
def test_refused_in_hardware(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        whole_network_design(configuration(**changed))


def test_a_router_by_itself() -> None:
    with pytest.raises(UserError, match=r"traffic.acknowledge must be null for hardware other than a whole network"):
        network_design(configuration())


def test_tags_that_come_again() -> None:
    """Entries may stay, so hardware would acknowledge other packets than the simulator. 33 packets, 32 tags."""
    again = r"^router.tag_bits must be at least 6 for the 33 packets of host 2, .*age_limit_cycles, not 5$"
    with pytest.raises(UserError, match=again):
        network_setup(configuration(tags=5), 0.3, 2, 160)
    for others in ({"tags": 6}, {"acknowledge": ", ratio: 2"}, {"acknowledge": ", age_limit_cycles: 9"}):
        setup = network_setup(configuration(**{"tags": 5, **others}), 0.3, 2, 160)
        assert np.bincount(setup.script[0]).max() == 33


@pytest.mark.parametrize(("ratio", "gap", "refused"), [(1, 9, True), (1, 10, False), (2, 9, True), (4, 9, False)])
def test_tags_that_come_again_too_early(ratio: int, gap: int, refused: bool) -> None:
    """Host 1 sends 6 packets with 4 tags: its second tag comes again, and that packet asks if one of each pair does."""
    config = configuration(tags=2, acknowledge=f", ratio: {ratio}, age_limit_cycles: 9")
    source = np.array([0, 0, 1, 1, 1, 1, 1, 1])
    sent = np.arange(8) * 100
    taken = sent + 1
    taken[3] = sent[7] - gap
    message = f"^router.tag_bits must be above 2, or .* below {gap}: a tag of host 1 comes again {gap} cycles "
    with pytest.raises(UserError, match=message) if refused else nullcontext():
        refuse_early_tags(config, source, 2, sent, taken)


def test_tags_of_a_run_that_come_again_too_early() -> None:
    """What the log says of packets is what counts."""
    assert recorded(configuration(tags=4, acknowledge=", age_limit_cycles: 20"), 160).packets > 60
    with pytest.raises(UserError, match=r"^router.tag_bits must be above 4.*: a tag of host .* live for 200$"):
        recorded(configuration(tags=4, acknowledge=", age_limit_cycles: 200"), 160)


def test_tags_that_come_again_before_a_late_acknowledge() -> None:
    """Its entries are gone: in hardware such an acknowledge would take the entry of the packet that has its tag now."""
    late = ", age_limit_cycles: 10, delay_cycles: "
    told = r"^router.tag_bits must be above 3: a tag of host .* acknowledges come up to \d+ cycles after their packet, "
    with pytest.raises(UserError, match=told):
        recorded(configuration(tags=3, acknowledge=f"{late}40"), 300, 0.15)
    assert recorded(configuration(tags=4, acknowledge=f"{late}40"), 300, 0.15).packets > 3 * 16


@pytest.mark.parametrize("latest", [10, 11])
def test_a_tag_comes_again_behind_the_latest_acknowledge(latest: int) -> None:
    """Of one host: two tags, so the third packet has that of the first, 11 cycles after that has arrived."""
    config = configuration(tags=1, acknowledge=", age_limit_cycles: 9")
    sent, taken = np.array([0, 5, 21]), np.array([10, 20, 30])
    with pytest.raises(UserError, match="up to 11 cycles") if latest == 11 else nullcontext():
        refuse_early_tags(config, np.zeros(3, np.int64), 1, sent, taken, latest)
