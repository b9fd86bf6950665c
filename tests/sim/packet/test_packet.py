"""The packet network: kernel equal to the golden network packet by packet; bubbles, detours, deadlock, conservation."""

import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopforge.model.config import Config, ConfigError, parse_config
from hopforge.model.errors import UserError
from hopforge.model.routing.grids.intermediate import Grid, Place
from hopforge.model.routing.proof.deadlock import DeadlockError
from hopforge.sim.packet import records as r
from hopforge.sim.packet.escape import check_escape
from hopforge.sim.packet.golden import GoldenNetwork
from hopforge.sim.packet.golden_credits import GoldenCreditNetwork
from hopforge.sim.packet.network import PacketNetwork
from hopforge.sim.packet.saturation import find_saturation
from hopforge.sim.packet.settings import packet_settings, unit_period_ns
from hopforge.sim.packet.simulation import measurement_rows, run_packets, write_packets
from hopforge.sim.packet.state import port_bits


def config(
    radices: tuple[int, ...], algorithm: str, packet: str = "{}", pattern: str = "uniform", message_packets: int = 6,
    kind: str = "torus",
) -> Config:  # fmt: skip
    return parse_config(
        "\n".join(
            (
                "name: test",
                f"topology: {{kind: {kind}, radices: {list(radices)}}}",
                "router: {model: packet}",
                f"routing: {{algorithm: {algorithm}}}",
                f"traffic: {{pattern: {pattern}, message_packets: {message_packets}}}",
                f"packet: {packet}",
            )
        )
    )


def places(network: PacketNetwork) -> list[Place]:
    found = []
    for node in range(network.topology.routers):
        place, rest = [], node
        for k in network.grid.radices:
            place.append(rest % k)
            rest //= k
        found.append(tuple(place))
    return found


def golden_of(network: PacketNetwork) -> GoldenNetwork:
    kind = GoldenCreditNetwork if network.settings.queues == "receiving" else GoldenNetwork
    nodes = places(network)
    pairs = [(h, m) for h in range(len(nodes)) for m in range(network.settings.messages)]
    return kind(
        network.grid,
        network.settings,
        {(nodes[h], m): nodes[int(network.destinations[h, m])] for h, m in pairs},
        {(nodes[h], m): int(network.births[h, m]) for h, m in pairs},
    )


def assert_equal_to_golden(checked: Config, load: float, seed: int = 1) -> list[int]:
    """Run both to the end; returns how many packets went minimally, by outflank and by wraparound destinations."""
    network = PacketNetwork(checked, load, seed, log=True)
    assert network.advance(10**7)
    golden = golden_of(network)
    golden.run(network.cycle)
    nodes = places(network)
    number = {node: k for k, node in enumerate(nodes)}
    assert len(golden.packets) == len(network.log)
    assert golden.refused == int(network.counters["refused"])
    kinds = [0, 0, 0]
    for packet in golden.packets:
        serial = number[packet.source] * network.settings.messages + packet.message
        row = network.log[serial * network.settings.message_packets + packet.number]
        kind = 0 if packet.via is None else 1 if packet.via.outflanks else 2
        via = -1 if packet.via is None or packet.via.directions else number[packet.via.place]
        assert row.item() == (packet.accepted, packet.delivered, packet.hops, kind, via), packet
        kinds[kind] += 1
    return kinds


@pytest.mark.parametrize(
    "radices, algorithm, packet, pattern, kind",
    [
        ((5,), "abr", "{messages: 6, queue_packets: 2}", "uniform", "torus"),
        ((4, 4), "abr", "{messages: 3}", "transpose", "torus"),
        ((4, 4), "ofr", "{messages: 4, queue_packets: 3}", "uniform", "torus"),
        ((5, 3), "por", "{messages: 4, queue_packets: 2, feed_waits: true, ties: both}", "uniform", "torus"),
        ((3, 4, 5), "ofr", "{messages: 2, process: exponential, eta: 1.5}", "uniform", "torus"),
        ((8, 4), "ofr", "{messages: 3, queue_packets: 3, congestion: adaptive, idle_ratio: one, full_profit: zero}",
         "tornado", "torus"),
        ((2, 6), "por", "{messages: 3, queue_packets: 3, inject_slots: 2}", "uniform", "torus"),
        ((6, 5), "ofr", "{messages: 3, queue_packets: 2, outflank_distance: 1, eta: 0.5}", "uniform", "mesh"),
        ((6, 4, 3), "por", "{messages: 3, queue_packets: 2, wraparound: directions, ties: both}", "uniform", "torus"),
        ((8, 4), "ofr", "{messages: 3, queue_packets: 3, wraparound: directions}", "tornado", "torus"),
        ((5,), "abr", "{messages: 6, queue_packets: 2, queues: receiving}", "uniform", "torus"),
        ((4, 4), "ofr", "{messages: 4, queue_packets: 3, queues: receiving}", "uniform", "torus"),
        ((3, 4, 2), "por", "{messages: 3, queue_packets: 4, queues: receiving, inject_slots: 3, phase: random}",
         "uniform", "torus"),
        ((6, 5), "ofr", "{messages: 3, queue_packets: 2, queues: receiving, outflank_distance: 1, eta: 0.5}", "uniform",
         "mesh"),
        ((4, 4, 4), "ofr", "{messages: 3, link_ns: 33.3, host_ns: 0, link_gbps: 17}", "butterfly_stages", "torus"),
        ((3, 2, 3, 2), "ofr", "{messages: 2, queue_packets: 2}", "uniform", "torus"),
        ((2, 3, 2, 2, 2), "por", "{messages: 2, queue_packets: 2, queues: receiving}", "uniform", "torus"),
        ((8, 5), "ofr", "{messages: 3, queue_packets: 2, outflank_share: 0.35}", "tornado", "torus"),
        ((4, 4), "ofr", "{messages: 4, queue_packets: 3, switching: vct}", "uniform", "torus"),
        ((5, 3), "por", "{messages: 4, queue_packets: 2, switching: vct, feed_waits: true, host_gbps: 9, link_ns: 10}",
         "uniform", "torus"),
        ((6, 5), "ofr", "{messages: 3, queue_packets: 2, switching: vct, head_bytes: 100, queues: receiving, eta: 0.5,"
         " outflank_distance: 1}", "uniform", "mesh"),
        ((3, 4, 2), "por", "{messages: 3, queue_packets: 2, switching: vct, queues: receiving, host_gbps: 9,"
         " link_ns: 5}", "uniform", "torus"),
    ],
)  # fmt: skip
def test_every_packet_as_in_the_golden_network(
    radices: tuple[int, ...], algorithm: str, packet: str, pattern: str, kind: str
) -> None:
    kinds = assert_equal_to_golden(config(radices, algorithm, packet, pattern, kind=kind), 1.0)
    assert kinds[0] > 0
    if algorithm != "abr":
        assert kinds[1] + kinds[2] > 0, "no packet took a detour: nothing of it was compared"


@settings(max_examples=8, deadline=None, derandomize=True)
@given(
    radices=st.lists(st.integers(2, 5), min_size=2, max_size=3).map(tuple),
    algorithm=st.sampled_from(["abr", "por", "ofr"]),
    slots=st.integers(2, 4),
    queues=st.sampled_from(["sending", "receiving"]),
    ties=st.sampled_from(["plus", "both"]),
    load=st.floats(0.2, 1.5),
    head=st.sampled_from([0, 8, 64, 300]),
)
def test_random_networks_as_in_the_golden_network(
    radices: tuple[int, ...], algorithm: str, slots: int, queues: str, ties: str, load: float, head: int
) -> None:
    switching = f"switching: vct, head_bytes: {head}" if head else "switching: saf"
    sizes = f"messages: 2, queue_packets: {slots}, queues: {queues}"
    packet = f"{{{sizes}, ties: {ties}, process: exponential, {switching}}}"
    assert_equal_to_golden(config(radices, algorithm, packet, message_packets=3), load)


def test_times_of_the_paper() -> None:
    found = packet_settings(config((8, 8, 8), "ofr", message_packets=96))
    # 512 B at 20 Gb/s and 64 Gb/s; 200 and 80 ns
    times = (found.send_cycles, found.link_cycles, found.host_send_cycles, found.host_cycles)
    assert [time * found.cycle_ns for time in times] == pytest.approx([204.8, 200, 64, 80])
    # a packet in 204.8 ns of a node at load 1 for k = 8, half of that for k = 16
    assert unit_period_ns(config((8, 8, 8), "abr")) == pytest.approx(204.8)
    assert unit_period_ns(config((16, 8, 8), "abr")) == pytest.approx(409.6)
    network = PacketNetwork(config((8, 8, 8), "abr", "{messages: 3}", message_packets=96), 0.5, 1)
    assert np.diff(network.births[0]) == pytest.approx(96 * 204.8 / 0.5 / found.cycle_ns, abs=1)


@pytest.mark.parametrize("algorithm", ["abr", "por", "ofr"])
def test_lifetime_of_a_packet_alone(algorithm: str) -> None:
    checked = config((8, 8), algorithm, "{messages: 1}", "tornado", message_packets=1)
    found = run_packets(PacketNetwork(checked, 0.001, 1))
    # tornado: 3 hops in each dimension; internal link, links, internal link, one after the other
    assert found.complete
    assert found.hops == 6 + 1
    assert found.lifetime_ns == found.lifetime_max_ns == pytest.approx((64 + 80) + 6 * (204.8 + 200) + (64 + 80))


@pytest.mark.parametrize("queues", ["sending", "receiving"])
@pytest.mark.parametrize("packet, host_head, head, tail", [
    # 512 B at 20 Gb/s: 204.8 ns; a head of 16 B 6.4 ns, at 64 Gb/s 2 ns: 3.2 ns in cycles of 1.6 ns.
    # The sink's link takes 64 ns, but its last byte comes 204.8 − 6.4 ns after the head
    ("", 3.2, 6.4, 204.8 - 6.4),
    ("head_bytes: 512", 64, 204.8, 64),
    # a source's link slower than the links: 204.8 ns at 20 Gb/s behind 409.6 ns at 10 Gb/s; at the sink it is 409.6
    ("host_gbps: 10", 409.6 - 204.8, 6.4, 409.6),
])  # fmt: skip
def test_lifetime_of_a_packet_alone_with_cut_through(
    queues: str, packet: str, host_head: float, head: float, tail: float
) -> None:
    words = f"{{messages: 1, switching: vct, queues: {queues}{', ' if packet else ''}{packet}}}"
    found = run_packets(PacketNetwork(config((8, 8), "ofr", words, "tornado", message_packets=1), 0.001, 1))
    assert found.hops == 6 + 1
    # store-and-forward: (64 + 80) + 6 · (204.8 + 200) + (64 + 80)
    assert found.lifetime_ns == pytest.approx((host_head + 80) + 6 * (head + 200) + (tail + 80))


@pytest.mark.parametrize("queues", ["sending", "receiving"])
def test_a_head_as_long_as_its_packet_is_store_and_forward(queues: str) -> None:
    logs = []
    for switching in ("switching: saf", "switching: vct, head_bytes: 512"):
        packet = f"{{messages: 4, queue_packets: 2, queues: {queues}, {switching}}}"
        network = PacketNetwork(config((4, 5), "ofr", packet, message_packets=12), 2.0, 2, log=True)
        assert network.advance(10**7)
        logs.append((network.log.tolist(), int(network.counters["refused"])))
    assert logs[0] == logs[1]


@pytest.mark.parametrize("queues", ["sending", "receiving"])
def test_long_gaps_between_messages_are_no_standstill(queues: str) -> None:
    # a message of one packet each 204.8 · 4/8 / 10⁻⁴ ns = 1.02 ms; a standstill is 2000 packets of 204.8 ns = 0.41 ms
    checked = config((4, 4), "abr", f"{{messages: 3, queues: {queues}}}", "tornado", message_packets=1)
    found = run_packets(PacketNetwork(checked, 1e-4, 1))
    assert found.complete
    # a source offers in every 1/2.4 of the time between two packets at load 1
    assert 0 <= found.lifetime_max_ns - (144 + 2 * 404.8 + 144) + 1e-6 < 204.8 * 4 / 8 / 2.4 + 1.6


def ring_loads(network: PacketNetwork) -> dict[tuple[int, int, tuple[int, ...]], int]:
    """Slots taken in every ring of both escape networks: (VC, port, coordinates of the line) → number."""
    nodes = places(network)
    if network.settings.queues == "receiving":
        held = network.state["held"]
        taken = np.repeat(np.arange(len(held)), held).tolist()
    else:
        taken = [int(network.state["packet"]["queue"][packet]) for packet in network.live_packets()]
    loads: dict[tuple[int, int, tuple[int, ...]], int] = {}
    stride = 1 << port_bits(len(network.grid.radices))
    for q in taken:
        vc, (node, port) = q % r.VC_STRIDE, divmod(q // r.VC_STRIDE, stride)
        if vc != r.ADAPTIVE and port < 2 * len(network.grid.radices):
            line = tuple(x for i, x in enumerate(nodes[node]) if i != port // 2)
            loads[vc, port, line] = loads.get((vc, port, line), 0) + 1
    return loads


@pytest.mark.parametrize("radices, algorithm, queues", [
    ((4, 5), "abr", "sending"), ((4, 5), "ofr", "sending"), ((4, 5), "ofr", "receiving"),
    ((4, 2, 2, 2), "ofr", "sending"), ((4, 5), "ofr", "sending, switching: vct"),
    ((4, 5), "ofr", "receiving, switching: vct"),
])  # fmt: skip
def test_every_ring_of_the_escape_network_keeps_a_bubble(
    radices: tuple[int, ...], algorithm: str, queues: str
) -> None:
    packet = f"{{messages: 12, queue_packets: 2, queues: {queues}}}"
    network = PacketNetwork(config(radices, algorithm, packet, message_packets=12), 3.0, 2, log=True)
    done, fullest = False, 0
    while not done:
        done = network.advance(network.cycle + 97)
        network.check_conservation()
        for (_, port, _), load in ring_loads(network).items():
            fullest = max(fullest, load)
            assert load <= 2 * network.grid.radices[port // 2] - 1
        assert (network.state["queue_count"] <= 2).all()
    assert fullest >= 3, "the escape network was never under pressure"
    assert (network.log["delivered"] > 0).all()
    assert int(network.counters["delivered"]) == len(network.log)


@pytest.mark.parametrize("n, minimal, detours", [(2, 4, 8 + 16), (3, 12, 24 + 36), (4, 24, 48 + 64), (5, 40, 80 + 100)])
def test_the_proof_looks_at_all_classes_of_rings(n: int, minimal: int, detours: int) -> None:
    """4 · n (n − 1) / 2 pairs of directions upwards; with detours in both networks, and each class before each."""
    grid = Grid((3,) * n)
    for queues in ("sending", "receiving"):
        for algorithm, found in (("abr", minimal), ("por", detours), ("ofr", detours)):
            settings = packet_settings(config(grid.radices, algorithm, f"{{queues: {queues}}}"))
            assert check_escape(grid, settings) == found
            with pytest.raises(DeadlockError, match=r"^packet.enter_slots must be at least 2 on a torus, not 1"):
                check_escape(grid, dataclasses.replace(settings, enter_slots=1))


@pytest.mark.parametrize("queues", ["sending", "receiving"])
def test_without_the_rule_a_ring_loses_its_bubble(queues: str) -> None:
    packet = f"{{messages: 20, queue_packets: 2, enter_slots: 1, queues: {queues}}}"
    network = PacketNetwork(config((7,), "abr", packet, message_packets=24), 50.0, 1, check=False)
    fullest = 0
    with pytest.raises(DeadlockError, match=r"packets are inside and no router has taken one since"):
        while not network.advance(network.cycle + 97):
            fullest = max([fullest, *ring_loads(network).values()])
    assert fullest == 2 * 7


@pytest.mark.parametrize(
    "radices, kind, algorithm, queues",
    [
        ((6, 5, 3), "torus", "por", "sending"),
        ((6, 5, 3), "torus", "ofr", "sending"),
        ((6, 5, 3), "torus", "ofr", "receiving"),
        ((8, 7), "mesh", "ofr", "sending"),
        ((5, 5, 4), "mesh", "ofr", "sending"),
    ],
)
def test_one_detour_at_most_and_both_parts_minimal(
    radices: tuple[int, ...], kind: str, algorithm: str, queues: str
) -> None:
    distance = 1 if kind == "mesh" else 2
    packet = f"{{messages: 4, queue_packets: 3, queues: {queues}, outflank_distance: {distance}}}"
    checked = config(radices, algorithm, packet, message_packets=16, kind=kind)
    network = PacketNetwork(checked, 2.0, 3, log=True)
    assert network.advance(10**7)
    nodes, packets = places(network), network.settings.message_packets
    detours = 0
    for serial, (_, delivered, hops, detour, via) in enumerate(network.log.tolist()):
        message = serial // packets
        s, m = divmod(message, network.settings.messages)
        t = int(network.destinations[s, m])
        assert delivered > 0
        direct = network.grid.distance(nodes[s], nodes[t])
        if via < 0:
            assert (hops, detour) == (direct, r.MINIMAL)
            continue
        detours += 1
        through = network.grid.distance(nodes[s], nodes[via]) + network.grid.distance(nodes[via], nodes[t])
        assert hops == through
        if algorithm == "ofr":
            assert through < 2 * direct
            assert detour != r.OUTFLANK or through <= direct + 4 * distance
        if kind == "mesh" or algorithm == "por":
            assert detour == (r.OUTFLANK if kind == "mesh" else r.WRAPAROUND)
    assert detours > 20


def overload(
    radices: tuple[int, ...], algorithm: str, seed: int, *, enter_slots: int = 2, queues: str = "sending",
    wraparound: str = "middle",
) -> int:  # fmt: skip
    """Run far beyond saturation to the end; returns the packets delivered."""
    packet = (
        f"{{messages: 20, queue_packets: 2, enter_slots: {enter_slots}, queues: {queues}, wraparound: {wraparound}}}"
    )
    checked = config(radices, algorithm, packet, message_packets=24)
    network = PacketNetwork(checked, 50.0, seed, check=enter_slots > 1)
    assert network.advance(10**9)
    return int(network.counters["delivered"])


def test_no_deadlock_in_small_full_networks() -> None:
    generator = np.random.default_rng(7)
    for algorithm in ("abr", "por", "ofr"):
        for seed in range(6):
            dims = int(generator.integers(1 if algorithm == "abr" else 2, 4))
            radices = tuple(int(k) for k in generator.integers(2, 6 if dims < 3 else 4, dims))
            nodes = int(np.prod(radices))
            queues, wraparound = generator.choice(["sending", "receiving"]), generator.choice(["middle", "directions"])
            delivered = overload(radices, algorithm, seed, queues=queues, wraparound=wraparound)
            assert delivered == nodes * 20 * 24, (radices, algorithm, queues, wraparound)


def test_a_planted_deadlock_is_found() -> None:
    # without the bubble rule packets fill the rings of the escape network
    found = 0
    for algorithm, radices, queues in (
        ("abr", (7,), "sending"), ("ofr", (5, 4), "sending"), ("por", (5, 5), "sending"), ("abr", (7,), "receiving"),
    ):  # fmt: skip
        try:
            overload(radices, algorithm, 1, enter_slots=1, queues=queues)
        except DeadlockError as error:
            assert "packets are inside and no router has taken one since" in str(error)
            found += 1
    assert found == 4


def test_the_rules_are_proved_before_the_run() -> None:
    checked = config((4, 4), "ofr", "{enter_slots: 1}")
    with pytest.raises(DeadlockError, match=r"^packet.enter_slots must be at least 2 on a torus, not 1: "):
        PacketNetwork(checked, 0.5, 1)
    # a line has no ring that could fill
    PacketNetwork(config((4, 4), "ofr", "{enter_slots: 1}", kind="mesh"), 0.5, 1)


@pytest.mark.parametrize(
    "pattern, packet",
    [
        ("tornado", "{messages: 12}"),
        ("butterfly_stages", "{messages: 10}"),
        ("uniform", "{messages: 8}"),
        ("butterfly_stages", "{messages: 9, phase: random, queues: receiving}"),
        ("tornado", "{messages: 12, process: exponential}"),
    ],
)
def test_the_search_finds_what_running_everything_tells(pattern: str, packet: str) -> None:
    checked = config((4, 4), "ofr", packet, pattern, message_packets=24)
    loads = tuple(round(0.05 * k, 2) for k in range(1, 61))
    found = find_saturation(checked, 1, loads=loads)
    whole = [run_packets(PacketNetwork(checked, load, 1)) for load in loads]
    # at equal distances only one of each kind of message is run at the lowest load
    assert found.lowest_ns == pytest.approx(whole[0].lifetime_ns, rel=0.02)
    kept = [run.complete and run.lifetime_ns <= 1.2 * found.lowest_ns for run in whole]
    assert loads[0] < found.load < loads[-1]
    assert found.load == loads[kept.index(False) - 1]
    assert found.at_load.row()["load"] == found.load
    assert {run.load for run in found.runs if found.sustained(run)} == {
        run.load for run in found.runs if run.load <= found.load
    }


def test_a_lost_packet_is_noticed() -> None:
    network = PacketNetwork(config((4, 4), "abr", "{messages: 2}"), 2.0, 1)
    network.advance(600)
    network.check_conservation()
    last = max(network.live_packets())
    network.state["packet"]["queue"][last] = -1
    with pytest.raises(AssertionError, match=r"packets should be inside"):
        network.check_conservation()


def test_nodes_that_are_ahead_send_later_messages_first() -> None:
    same, ahead = (
        PacketNetwork(config((4, 4), "abr", f"{{messages: 12, phase: {phase}}}", "butterfly_stages"), 1.0, 1)
        for phase in ("same", "random")
    )
    first = {int(s ^ t) for s, t in enumerate(ahead.destinations[:, 0])}
    assert first == {1, 2, 4, 8}
    for rows, other in zip(ahead.destinations, same.destinations, strict=True):
        # the same cycle of four, from another place on
        assert any(np.array_equal(rows, np.roll(other, -k)) for k in range(4))


def test_results_are_written(tmp_path: Path) -> None:
    checked = config((4, 4), "ofr", "{messages: 3}", "tornado")
    network = PacketNetwork(checked, 1.0, 1)
    seen: list[tuple[int, int]] = []
    found = run_packets(network, lambda done, whole: seen.append((done, whole)))
    write_packets(checked, network, found, tmp_path / "out", plots=True)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "measurement.csv", "measurement.parquet", "messages.csv", "messages.parquet", "messages.png", "metadata.json",
        "times.csv", "times.parquet",
    }  # fmt: skip
    messages = pd.read_csv(tmp_path / "out" / "messages.csv")
    assert messages["packets"].tolist() == [16 * 6] * 3
    assert messages["lifetime_ns"].mean() == pytest.approx(found.lifetime_ns)
    assert seen[-1] == (found.packets, found.packets) == (3 * 16 * 6, 3 * 16 * 6)
    # every packet at least passes one hop in each dimension and both internal links
    assert 2 * 144 + 2 * 404.8 <= found.lifetime_median_ns <= found.lifetime_p95_ns <= found.lifetime_p99_ns
    assert found.lifetime_p99_ns <= found.lifetime_max_ns
    assert dict(measurement_rows(found))["accepted"] == f"{found.accepted:.4g}"


def test_mistakes_are_told() -> None:
    def refused(match: str, *args: str | tuple[int, ...], **more: str) -> None:
        with pytest.raises(UserError, match=match):
            PacketNetwork(config(*args, **more), 0.5, 1)  # type: ignore[arg-type]

    refused(r"^routing.algorithm must be one of abr, por, ofr for router.model packet, not dor$", (4, 4), "dor")
    refused(r"^topology.radices must have 2 to 6 dimensions for routing.algorithm ofr, not 1$", (4,), "ofr")
    six = config((2,) * 6, "abr")
    seven = six.model_copy(update={"topology": six.topology.model_copy(update={"radices": (2,) * 7})})
    with pytest.raises(UserError, match=r"^topology.radices must have 1 to 6 dimensions for .* abr, not 7$"):
        packet_settings(seven)
    with pytest.raises(ConfigError, match=r"packet.outflank_share: cannot stand together with outflank_distance$"):
        config((4, 4), "ofr", "{outflank_share: 0.5, outflank_distance: 2}")
    refused(r"^routing.algorithm por goes round a ring: .* torus, not mesh$", (4, 4), "por", kind="mesh")
    refused(r"^packet.inject_slots must be at most packet.queue_packets=4, not 5$", (4, 4), "abr",
            "{queue_packets: 4, inject_slots: 5}")  # fmt: skip
    with pytest.raises(UserError, match=r"^the load must be above 0, not 0$"):
        PacketNetwork(config((4, 4), "abr"), 0, 1)
    with pytest.raises(ConfigError, match=r"router.vcs: is for other models than model=packet; see section packet"):
        parse_config("name: t\ntopology: {kind: torus, radices: [4]}\nrouter: {model: packet, vcs: 3}")
    from hopforge.sim.run.simulation import Simulation

    with pytest.raises(UserError, match=r"^router.model packet cannot run this, because it has no flits; it runs hop"):
        Simulation(config((4, 4), "abr"), 0.1, 1)
