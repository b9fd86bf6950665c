"""Networks of RTL routers against the network simulator: every flit in its cycle."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from hopforge.cli import app
from hopforge.gen.design.configured import whole_network_design
from hopforge.model.config import Config, load_config, parse_config
from hopforge.model.errors import UserError
from hopforge.model.network.core.kinds import RECEIVED, SENT
from hopforge.model.router.reply_rules import reply_rules
from hopforge.sim.benches.network import NetworkTraffic, RecordedNetwork, record_network
from hopforge.sim.cosim import network as module
from hopforge.sim.cosim.network import cosim_network
from hopforge.sim.cosim.parts import cosim_part
from hopforge.sim.drive.replay import Replay, ReplayResult, replay_amaranth
from hopforge.sim.drive.runner import SimulatorRun
from hopforge.sim.run.packet_script import draw_packets
from hopforge.sim.run.simulation import Simulation

MESH = """
name: mesh
topology: {kind: mesh, radices: [2, 2]}
router: {vcs: 2, buffer_flits: 3}
traffic: {packet_range: [1, 4]}
"""
RING = "name: ring\ntopology: {kind: torus, radices: [3]}\nrouter: {vcs: 2, buffer_flits: 3}\n"
CONFIGS = Path(__file__).parents[3] / "configs" / "cosim"
TRAFFIC = NetworkTraffic(load=0.5, cycles=60, seed=4)


def mesh(**router: object) -> Config:
    more = "".join(f", {name}: {str(value).lower()}" for name, value in router.items())
    return parse_config(MESH.replace("buffer_flits: 3}", f"buffer_flits: 6{more}}}" if router else "buffer_flits: 3}"))


def column(replay: Replay, name: str) -> np.ndarray:
    if name in replay.inputs:
        return replay.driven[:, replay.inputs.index(name)]
    return replay.expected[:, [output.name for output in replay.outputs].index(name)]


@pytest.fixture(scope="module")
def recorded() -> RecordedNetwork:
    return record_network(mesh(), TRAFFIC)


def test_channels_carry_what_the_simulator_sends_and_takes(recorded: RecordedNetwork) -> None:
    """Flits and their cycles against the simulator's own run of the same traffic, not the recorded one."""
    run = Simulation(mesh(), TRAFFIC.load, TRAFFIC.seed, log_events=10000)
    run.advance(TRAFFIC.cycles)
    rows = run.state["log"].reshape(-1, 6)[: int(run.state["log_length"])]
    latency = 1
    assert (rows[:, 1] == RECEIVED).sum() > 40
    for host in range(4):
        sent = rows[(rows[:, 1] == SENT) & (rows[:, 2] == host), 0]
        taken = rows[(rows[:, 1] == RECEIVED) & (rows[:, 2] == host), 0]
        stands = np.flatnonzero(column(recorded.replay, f"host__{host}__in_valid"))
        assert stands[stands < TRAFFIC.cycles + latency].tolist() == (sent + latency).tolist()
        leaves = np.flatnonzero(column(recorded.replay, f"host__{host}__out_valid"))
        assert leaves[leaves < TRAFFIC.cycles - latency].tolist() == (taken - latency).tolist()
        back = np.flatnonzero(column(recorded.replay, f"host__{host}__out_credit_valid"))
        assert back.tolist() == (leaves + 2 * latency).tolist()


def test_everything_is_delivered(recorded: RecordedNetwork) -> None:
    script = draw_packets(Simulation(mesh(), TRAFFIC.load, TRAFFIC.seed), TRAFFIC.cycles)
    flits = int(script[3].sum())
    assert (recorded.packets, recorded.flits) == (len(script[0]), flits)
    for direction in ("in", "out", "in_credit", "out_credit"):
        assert sum(int(column(recorded.replay, f"host__{h}__{direction}_valid").sum()) for h in range(4)) == flits


def test_counters_of_the_engines_are_read_at_the_end() -> None:
    """Every router on the way of a packet, one more than its hops in a mesh, looks it up once."""
    lookup = "\nlookup: {reduction: false, mshrs: 2, cache: {entries: 2, ways: 2}, tcam: {kind: flops, rows: 16}}\n"
    config = parse_config(MESH.replace("buffer_flits: 3}", f"buffer_flits: 6, route_computation: lookup}}{lookup}"))
    recorded = record_network(config, TRAFFIC)
    source, _, destination, _ = draw_packets(Simulation(config, TRAFFIC.load, TRAFFIC.seed), TRAFFIC.cycles)
    hops = sum((host ^ other).bit_count() for host, other in zip(source.tolist(), destination.tolist(), strict=True))
    assert recorded.lookups == len(source) + hops > 50
    assert 0 < recorded.hits < recorded.lookups
    # 0x0200 + 0x80·P: engine of port P; its counters: 0x40 lookups, 0x41 hits, 0x42 misses, 0x43 merges
    address, read = column(recorded.replay, "csr__addr"), column(recorded.replay, "csr__re") == 1
    shown = dict(
        zip(address[read].tolist(), column(recorded.replay, "csr__rdata")[1:][read[:-1]].tolist(), strict=True)
    )
    total = [
        sum(shown[router << 14 | 0x200 + 0x80 * port + 0x40 + count] for router in range(4) for port in range(5))
        for count in range(4)
    ]
    assert total[0] == recorded.lookups
    assert total[1] == recorded.hits
    assert total[1] + total[2] + total[3] == total[0]


def test_heads_hold_destination_source_and_number(recorded: RecordedNetwork) -> None:
    script = draw_packets(Simulation(mesh(), TRAFFIC.load, TRAFFIC.seed), TRAFFIC.cycles)
    for host in range(4):
        words = column(recorded.replay, f"host__{host}__in_flit")[
            column(recorded.replay, f"host__{host}__in_valid") == 1
        ]
        heads = words[words & 1 == 1] >> 3  # kind and VC in front of it
        mine = script[0] == host
        assert (heads & 0xFFFFFF).tolist() == script[2][mine].tolist()
        assert set((heads >> 24 & 0xFFFFFF).tolist()) == {host}
        assert (heads >> 48 & 0xFF).tolist() == list(range(mine.sum()))


@pytest.mark.parametrize(
    "router",
    [
        {"switching": "vct", "speculation": True, "host_latency_cycles": 2, "link_latency_cycles": 2},
        pytest.param(
            {"rc_cycles": 1, "va": "wavefront", "vc_release": "credits", "credit_delay_cycles": 1, "flit_bits": 130},
            marks=pytest.mark.study,
        ),
    ],
    ids=["vct", "wide"],
)
def test_hardware_delivers_every_flit_in_its_cycle(router: dict[str, object]) -> None:
    network = record_network(mesh(**router), NetworkTraffic(load=0.6, cycles=30))
    result = replay_amaranth(network.component, network.replay)
    assert result.first is None, str(result.first)
    assert result.cycles > network.simulated_cycles > 30


GROUP = """
name: group
topology: {kind: fully_connected, routers: 2, hosts_per_router: 2}
routing: {algorithm: up_down}
router: {vcs: 2, buffer_flits: 3, route_computation: lookup}
lookup:
  reduction: false
  functions: [arbitrary]
  pipeline_depth: 1
  mshrs: 2
  lag: {members: 2, max_members: 2, hash: modulo}
  cache: {entries: 2, ways: 2}
  tcam: {kind: flops, rows: 4, latency_cycles: 1}
traffic: {packet_range: [1, 3]}
"""


TORUS = """
name: ring
topology: {kind: torus, radices: [3]}
routing: {ties: key}
router: {vcs: 2, buffer_flits: 3, route_computation: lookup, va: free_queue, flit_bits: 72}
lookup:
  functions: [arbitrary, torus]
  pipeline_depth: 2
  mshrs: 2
  comparators: 2
  cache: {entries: 2, ways: 2}
  tcam: {kind: flops, rows: 4, latency_cycles: 1}
traffic: {packet_range: [1, 3]}
"""


@pytest.mark.study
def test_hardware_chooses_the_members_of_a_group() -> None:
    config = parse_config(GROUP)
    run = Simulation(config, 0.6, 4)
    run.advance(60)
    assert (run.state["output_port"]["flits"].reshape(2, 4)[:, 2:] > 0).all(), "both members in both directions"
    network = record_network(config, NetworkTraffic(load=0.6, cycles=60, seed=4))
    assert 0 < network.hits < network.lookups
    result = replay_amaranth(network.component, network.replay)
    assert result.first is None, str(result.first)
    assert result.cycles > network.simulated_cycles > 60


REPLIES = {
    "wormhole": ("vcs: 2, buffer_flits: 3", "flits: 3, delay_cycles: 2, queue: 1"),
    "cut-through, long links": (
        "vcs: 4, buffer_flits: 5, switching: vct, vc_release: credits, host_latency_cycles: 2, link_latency_cycles: 3",
        "flits: 4, delay_cycles: 1, queue: 3",
    ),
    "by the request": ("vcs: 2, buffer_flits: 3", "lengths: [4, 1, 2, 6], delay_cycles: 0, queue: 2"),
}


@pytest.mark.parametrize(
    "name", ["wormhole", pytest.param("cut-through, long links", marks=pytest.mark.study), "by the request"]
)
def test_hardware_answers_as_the_simulator(name: str) -> None:
    router, reply = REPLIES[name]
    config = parse_config(
        "name: pair\ntopology: {kind: mesh, radices: [2, 1]}\n"
        f"router: {{{router}}}\n"
        f"traffic: {{packet_lengths: [1, 2, 3, 4], packet_weights: [1, 1, 1, 1], reply: {{{reply}}}}}"
    )
    rules = reply_rules(config)
    assert rules is not None
    network = record_network(config, NetworkTraffic(load=0.4, cycles=60, seed=3))
    assert network.packets > 20
    requested = sum(int(column(network.replay, f"host__{h}__in_valid").sum()) for h in range(2))
    busy = sum(int(column(network.replay, f"host__{h}__busy").sum()) for h in range(2))
    assert busy == network.flits - requested > 0
    if not rules.lengths:
        assert busy == network.packets // 2 * rules.flits
    result = replay_amaranth(network.component, network.replay)
    assert result.first is None, str(result.first)


@pytest.mark.parametrize(
    ("traffic", "message"),
    [
        ("packet_range: [1, 5]", r"router\.length_bits must hold .* \(5 flits\) under vct; 2 bits hold 3$"),
        ("packet_flits: 3, acknowledge: {flits: 4, queue: 2, own_queue: 2, table: 8, age_limit_cycles: 400}",
         r"traffic\.acknowledge\.flits must be at most 3 in hardware \(router\.length_bits\), not 4$"),
    ],
)  # fmt: skip
def test_lengths_that_a_head_cannot_tell_are_refused(traffic: str, message: str) -> None:
    config = parse_config(
        "name: pair\ntopology: {kind: mesh, radices: [2, 1]}\n"
        "router: {vcs: 2, buffer_flits: 8, switching: vct, length_bits: 2}\n"
        f"traffic: {{{traffic}}}\n"
    )
    with pytest.raises(UserError, match=message):
        record_network(config, NetworkTraffic(load=0.2, cycles=60, seed=3))


@pytest.mark.parametrize("options", ["dor, ties: random", "nca, ties: random"])
def test_ties_that_draw(options: str) -> None:
    """The key that is at fault is named where another value of it makes tables; else it is the algorithm."""
    kind = "torus, radices: [4, 4]" if "dor" in options else "fat_tree, k: 2, n: 2"
    config = parse_config(f"name: x\ntopology: {{kind: {kind}}}\nrouting: {{algorithm: {options}}}\n")
    with pytest.raises(UserError, match=r"^routing\.ties random draws numbers, which no table of a router can"):
        whole_network_design(config)


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ("{sender: shared}", "traffic.reply.sender must be own in hardware, not shared"),
        ("{queue: 1, vcs: shared}", "traffic.reply.vcs must be own in hardware, not shared"),
        ("{}", "traffic.reply.queue must be set in hardware, not null"),
        ("{queue: 1, delay_cycles: 2000}", "traffic.reply.delay_cycles must be at most 1024 in hardware, not 2000"),
    ],
)
def test_replies_that_hardware_cannot_give(reply: str, message: str) -> None:
    config = parse_config(MESH.replace("packet_range: [1, 4]", f"reply: {reply}"))
    with pytest.raises(UserError, match=message):
        whole_network_design(config)


@pytest.mark.parametrize(
    "text", [pytest.param(GROUP, id="group"), pytest.param(TORUS, id="torus", marks=pytest.mark.study)]
)
def test_engines_at_outputs_deliver_every_flit_in_its_cycle(text: str) -> None:
    """Look-ahead: programs give the engine of an output the keys and rows of the router behind it."""
    config = parse_config(text.replace("route_computation: lookup", "route_computation: lookup, lookahead: true"))
    network = record_network(config, NetworkTraffic(load=0.5, cycles=40, seed=2))
    assert 0 < network.hits < network.lookups
    result = replay_amaranth(network.component, network.replay)
    assert result.first is None, str(result.first)
    assert result.cycles > network.simulated_cycles > 40


def test_report_on_icarus(tmp_path: Path) -> None:
    file = tmp_path / "mesh.yml"
    file.write_text(MESH)
    words = ["cosim", str(file), "--part", "network", "--load", "0.4", "--cycles", "60", "--seed", "4"]
    found = CliRunner().invoke(app, [*words, "--output", str(tmp_path / "out")])
    assert found.exit_code == 0, found.output
    assert "4 routers, 4 hosts" in found.output
    assert re.search(r"mismatches +0 *\n", found.output)
    written = json.loads((tmp_path / "out" / "cosim.json").read_text())
    assert (written["mismatches"], written["seed"], written["traffic_cycles"]) == (0, 4, 60)
    assert written["flits"] > 80


@pytest.mark.parametrize(
    ("config", "blocks"),
    [(mesh(), ["mesh_network_router_core", "mesh_network_router_csr"]), (parse_config(RING), [])],
    ids=["four of a kind", "three kinds"],
)
def test_routers_of_a_kind_are_compiled_once(
    config: Config, blocks: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What Verilator is told to compile alone; the dateline's rules make every router of the ring another one."""
    told: list[object] = []

    def play(*arguments: object, blocks: object, **_: object) -> SimulatorRun:
        replay = arguments[3]
        assert isinstance(replay, Replay)
        told.append(blocks)
        return SimulatorRun(ReplayResult(replay.cycles, 0, None), 0.1, 0.1, None)

    monkeypatch.setattr(module, "play", play)
    assert cosim_network(config, simulator="verilator", load=0.3, cycles=30, output=tmp_path).passed
    assert told == [blocks]


@pytest.mark.study
def test_a_router_that_delivers_late_is_found(recorded: RecordedNetwork) -> None:
    """The second flit that host 2 takes, a cycle later: hardware that is right must not pass for it."""
    names = [output.name for output in recorded.replay.outputs]
    valid = names.index("host__2__out_valid")
    cycle = int(np.flatnonzero(recorded.replay.expected[:, valid])[1])
    replay = record_network(mesh(), TRAFFIC).replay
    replay.expected[cycle, valid], replay.expected[cycle + 1, valid] = 0, 1
    result = replay_amaranth(recorded.component, replay.head(cycle + 2))
    assert result.first is not None
    assert (result.first.cycle, result.first.signal) == (cycle, "host__2__out_valid")


@pytest.mark.parametrize(
    ("part", "given", "message"),
    [
        ("routers", {},
         "--part must be one of lookup, router, network, q_table, service_host, collectives, rule_cache, "
         "not 'routers'"),
        ("lookup", {"load": 0.1}, "--load is for --part network only, not --part lookup"),
        ("network", {"lookups": 5}, "--lookups is for --part lookup or rule_cache only, not --part network"),
        ("network", {"load": 0.001, "cycles": 1}, "no packet in 1 cycles at a load of 0.001: there is nothing"),
    ],
)
def test_errors(part: str, given: dict[str, float], message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=re.escape(message)):
        cosim_part(part, mesh(), given=given, output=tmp_path)


NETWORKS = {
    "mesh 2x2": ("{kind: mesh, radices: [2, 2]}", "dor"),
    "torus 4x4": ("{kind: torus, radices: [4, 4]}", "dor"),
    "2-ary 3-tree": ("{kind: fat_tree, k: 2, n: 2}", "nca"),
    "dragonfly 36": ("{kind: dragonfly, p: 2, a: 4, h: 2}", "dragonfly_min"),
    "LOREN 16": ("{kind: layout_random, n: 4, degree: 4, length: 2, seed: 1}", "tables"),
}


@pytest.mark.study
@pytest.mark.parametrize("name", list(NETWORKS))
def test_networks_on_verilator(name: str, tmp_path: Path) -> None:
    """Moderate and saturating load, packets of one and of several flits, on one model per kind of switching."""
    topology, algorithm = NETWORKS[name]
    for switching in ("wormhole", "vct"):
        for load, flits in ((0.15, "packet_flits: 1"), (0.15, "packet_range: [1, 5]"), (0.9, "packet_range: [1, 5]")):
            config = parse_config(
                f"name: study\ntopology: {topology}\nrouting: {{algorithm: {algorithm}}}\n"
                f"router: {{vcs: 2, buffer_flits: 5, switching: {switching}}}\ntraffic: {{{flits}}}\n"
                "tables: {scheme: loren, t_max: 9, layers: acro}\n"
            )
            report = cosim_network(
                config, simulator="verilator", load=load, cycles=3000, seed=7, output=tmp_path / switching
            )
            assert report.passed, report.result
            assert report.flits > 0.1 * 3000 * report.hosts


@pytest.mark.study
@pytest.mark.parametrize(
    "name", ["lookup2x2", "lookup_tree8", "lookup_lag", "lookup_torus_keys", "lookup_tree_keys", "lookup_shared"]
)
def test_networks_of_lookup_engines_on_verilator(name: str, tmp_path: Path) -> None:
    """Caches smaller than the number of keys; flits and the counters of the engines."""
    config = load_config(CONFIGS / f"{name}.yml")
    report = cosim_network(config, simulator="verilator", cycles=3000, output=tmp_path)
    assert report.passed, report.result
    assert 0 < report.hits < report.lookups
