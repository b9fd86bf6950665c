"""Failures in packet networks: kernel equal to a golden network packet by packet, nothing lost or doubled silently."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st
from tests.sim.packet.test_packet import places

from hopforge.model.config import Config, parse_config
from hopforge.model.config.uses import unused_sections
from hopforge.model.errors import UserError
from hopforge.model.topology.failed import FailureError
from hopforge.sim.packet import failures, golden_failures
from hopforge.sim.packet import records as r
from hopforge.sim.packet.golden_credit_failures import GoldenCreditFailures
from hopforge.sim.packet.golden_failures import Change, GoldenFailures
from hopforge.sim.packet.network import PacketNetwork, RouterNetwork
from hopforge.sim.packet.simulation import measurement_rows, message_table, run_packets
from hopforge.sim.pages.find import ResultSet
from hopforge.sim.pages.network_view import _clock, _new_tables


def config(
    radices: tuple[int, ...], algorithm: str, failures: str, packet: str = "messages: 4, queue_packets: 2",
    kind: str = "torus", message_packets: int = 6, pattern: str = "uniform",
) -> Config:  # fmt: skip
    return parse_config(
        f"name: test\ntopology: {{kind: {kind}, radices: {list(radices)}}}\nrouter: {{model: packet}}\n"
        f"routing: {{algorithm: {algorithm}}}\n"
        f"traffic: {{pattern: {pattern}, message_packets: {message_packets}}}\n"
        f"packet: {{{packet}}}\nsimulation: {{failures: [{failures}]}}\n"
    )


def changes_of(network: RouterNetwork) -> list[Change]:
    """What the golden network is told of the failures of a network."""
    assert network.failures is not None
    nodes, grid = places(network), network.grid
    changes = []
    for epoch in network.failures.epochs:
        gone = {nodes[n] for n in np.flatnonzero(epoch.switches)}
        links = {
            (nodes[n], p - 1)
            for n, p in zip(*np.nonzero(epoch.ports), strict=True)
            if p > 0 and grid.neighbour(nodes[n], int(p) - 1)
        }
        links = {(n, int(p)) for n, p in links}
        known = epoch.cycle + epoch.detection_cycles + epoch.reprogram_cycles
        changes.append(Change(epoch.cycle, frozenset(links), frozenset(gone), known))
    return changes


def golden_of(network: PacketNetwork) -> GoldenFailures | GoldenCreditFailures:
    nodes = places(network)
    pairs = [(h, m) for h in range(len(nodes)) for m in range(network.settings.messages)]
    kind = GoldenCreditFailures if network.settings.queues == "receiving" else GoldenFailures
    return kind(
        network.grid,
        network.settings,
        {(nodes[h], m): nodes[int(network.destinations[h, m])] for h, m in pairs},
        {(nodes[h], m): int(network.births[h, m]) for h, m in pairs},
        changes_of(network),
    )


def assert_equal_to_golden(checked: Config, load: float = 1.0) -> Counter[str]:
    """Run both to the end, looking at every queue now and then; returns what happened."""
    network = PacketNetwork(checked, load, 1, log=True)
    golden = golden_of(network)
    nodes = places(network)
    number = {node: k for k, node in enumerate(nodes)}
    stride, done = 1 << int(network.state.record["port_bits"]), False
    while not done:
        assert network.cycle < 10**6
        done = network.advance(network.cycle + 331)
        golden.run(network.cycle - (not done))
        network.check_conservation()
        if done and network.settings.queues == "receiving":
            break  # what was lost in the last cycle may still have to leave its queue in that cycle
        for (node, port, vc), queue in golden.queues.items():
            place = port if port >= 0 else stride - 2  # −1: of the source
            q = (number[node] * stride + place) * r.VC_STRIDE + vc
            assert network.state["queue_count"][q] == len(queue.packets)
    counters, found = network.counters, network.failures
    assert found is not None
    names = ["on_links", "in_switches", "unsent", "unroutable", "undrained"]
    expected = [[*(getattr(one, name) for name in names), one.in_force] for one in golden.losses]
    columns = [*(f"packets_{name}" for name in names), "reprogrammed_cycle"]
    assert found.table()[columns].to_numpy().tolist() == expected
    assert golden.refused == int(counters["refused"])
    what: Counter[str] = Counter()
    for packet in golden.packets:
        serial = number[packet.source] * network.settings.messages + packet.message
        row = network.log[serial * network.settings.message_packets + packet.number]
        kind = 0 if packet.via is None else 1 if packet.via.outflanks else 2
        via = -1 if packet.via is None or packet.via.directions else number[packet.via.place]
        hops = packet.hops if packet.delivered >= 0 else -1
        assert row.item() == (packet.accepted, packet.delivered, hops, kind, via), packet
        what["detours"] += kind > 0
        what["arrived"] += packet.delivered >= 0
    losses = found.records
    what["lost"] = sum(one.packets_lost for one in losses)
    what["unsent"] = sum(one.packets_unsent for one in losses)
    what["unroutable"] = sum(one.packets_unroutable for one in losses)
    what["undrained"] = sum(one.packets_undrained for one in losses)
    what["around"] = sum(one.reprogrammed_cycle >= 0 for one in losses)
    # every packet of every message is accounted for, once
    assert len(network.log) == what["arrived"] + what["lost"] + what["unsent"]
    assert what["arrived"] == int(counters["delivered"]) == int((network.log["delivered"] >= 0).sum())
    return what


SOON = "detection_cycles: 2, reprogram_cycles: 3"


@pytest.mark.parametrize("radices, algorithm, failures, packet, kind", [
    ((4, 4), "abr", f"{{cycle: 6, links: [[0, 1]], {SOON}}}", "", "torus"),
    ((4, 4), "ofr", f"{{cycle: 6, links: [[0, 1], [5, 9]], {SOON}, repair_cycles: 9}}", "", "torus"),
    ((5, 4), "ofr", f"{{cycle: 5, switches: [7], {SOON}, repair_cycles: 12}}", "switching: vct", "torus"),
    ((5, 3), "por", f"{{cycle: 4, switches: [7], {SOON}}}, {{cycle: 12, links: [[0, 1]], {SOON}, repair_cycles: 9}}",
     "process: exponential, feed_waits: true", "torus"),
    ((5, 4), "ofr", f"{{cycle: 4, links: [[6, 7]], {SOON}}}, {{cycle: 5, switches: [12], {SOON}, repair_cycles: 8}}, "
     f"{{cycle: 14, links: [[0, 1]], {SOON}, repair_cycles: 6}}", "outflank_share: 0.3, eta: 0.5", "mesh"),
    ((4, 4), "ofr", f"{{cycle: 6, links: [[0, 1], [5, 9]], {SOON}, repair_cycles: 9}}", "queues: receiving", "torus"),
    ((5, 3), "por", f"{{cycle: 4, switches: [7], {SOON}, repair_cycles: 14}}, {{cycle: 12, links: [[0, 1]], {SOON}}}",
     "queues: receiving, switching: vct, head_bytes: 40, link_ns: 20, wraparound: directions", "torus"),
    # who keeps to the directions of a detour gives them up where it is next taken; after the repair others keep to them
    ((5, 3), "por", f"{{cycle: 6, links: [[0, 1], [5, 10]], {SOON}, repair_cycles: 9}}", "wraparound: directions",
     "torus"),
    pytest.param(
        (3, 4, 2), "ofr", f"{{cycle: 4, links: [[6, 7]], {SOON}, repair_cycles: 6}}, {{cycle: 7, links: [[1, 2]], "
        f"{SOON}, repair_cycles: 6}}", "congestion: adaptive, inject_slots: 2", "torus", marks=pytest.mark.study,
    ),
])  # fmt: skip
def test_every_packet_as_in_the_golden_network(
    radices: tuple[int, ...], algorithm: str, failures: str, packet: str, kind: str
) -> None:
    words = f"messages: 5, queue_packets: 2{', ' if packet else ''}{packet}"
    what = assert_equal_to_golden(config(radices, algorithm, failures, words, kind))
    assert what["lost"] > 0
    assert what["around"] > 0


def test_packets_that_would_block_the_third_set_of_ways_for_ever_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    # packets of the rings on VS1 wait for VC 3, which waits for a link of switch 2, whose new ways need VS1 empty
    for module in (failures, golden_failures):
        monkeypatch.setattr(module, "DRAIN_PACKETS", 20)
    parts = ("cycle: 28, switches: [9]", "cycle: 34, ports: [[12, 2]]", "cycle: 38, switches: [2]")
    words = ", ".join(f"{{{one}, detection_cycles: 1, reprogram_cycles: 2}}" for one in parts)
    checked = config((4, 4), "ofr", words, "messages: 3, queue_packets: 2", message_packets=20)
    what = assert_equal_to_golden(checked, 3.0)
    assert what["undrained"] > 0
    assert what["around"] == 3


@st.composite
def failing(draw: st.DrawFn, radices: tuple[int, ...]) -> str:
    """Up to four failures of links and switches of a torus, most of them repaired."""
    nodes = int(np.prod(radices))
    found = []
    for _ in range(draw(st.integers(1, 4))):
        cycle, detection, reprogram = draw(st.integers(0, 25)), draw(st.integers(0, 4)), draw(st.integers(0, 6))
        if draw(st.booleans()):
            ports = [[draw(st.integers(0, nodes - 1)), draw(st.integers(1, 2 * len(radices)))] for _ in range(2)]
            parts = f"ports: {ports}"
        else:
            parts = f"switches: [{draw(st.integers(0, nodes - 1))}]"
        repair = draw(st.integers(0, 12))
        words = f", repair_cycles: {detection + reprogram + repair}" if repair else ""
        found.append(
            f"{{cycle: {cycle}, {parts}, detection_cycles: {detection}, reprogram_cycles: {reprogram}{words}}}"
        )
    return ", ".join(found)


def check_random(data: st.DataObject) -> Counter[str]:
    radices = data.draw(st.sampled_from([(4, 4), (5, 3), (2, 4), (3, 2, 3)]))
    kind = data.draw(st.sampled_from(["torus", "torus", "mesh"]))
    algorithm = data.draw(st.sampled_from(["abr", "ofr"] if kind == "mesh" else ["abr", "por", "ofr"]))
    switching = data.draw(st.sampled_from(["saf", "vct"]))
    slots = data.draw(st.integers(2, 3))
    packet = f"messages: 5, queue_packets: {slots}, switching: {switching}"
    extras = ["", ", feed_waits: true", ", inject_slots: 2", ", link_ns: 20, ties: both", ", wraparound: directions",
              ", full_profit: zero"]  # fmt: skip
    extra = data.draw(st.sampled_from(extras)) + data.draw(st.sampled_from(["", ", queues: receiving"]))
    checked = config(radices, algorithm, data.draw(failing(radices)), packet + extra, kind, message_packets=4)
    try:
        return assert_equal_to_golden(checked, data.draw(st.sampled_from([0.3, 1.0, 3.0])))
    except FailureError as error:  # no such link, or the network falls apart
        assert str(error).startswith("simulation.failures[")
        reject()


@settings(max_examples=5, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.filter_too_much])
@given(data=st.data())
def test_random_failures_as_in_the_golden_network(data: st.DataObject) -> None:
    check_random(data)


@pytest.mark.study
@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(data=st.data())
def test_many_random_failures_as_in_the_golden_network(data: st.DataObject) -> None:
    check_random(data)


# ---- known times, and what is refused -------------------------------------------------------------------------------

#: 64 + 80 ns at both ends, 204.8 + 200 ns for a link
ENDS, HOP = 144, 404.8


@pytest.mark.parametrize("known, longest, others", [
    # 0 → 2 and 4 → 1 go the other way round from the start: 3 links instead of 2
    (0, 2 * ENDS + 3 * HOP, 3 * (2 * ENDS + 2 * HOP) + 2 * ENDS + 3 * HOP),
    # both wait at router 0 until 10 · 204.8 ns, come back one after the other, and have 3 and 4 links before them
    (10, 10 * 204.8 + 204.8 + HOP + 4 * HOP + ENDS, 3 * (2 * ENDS + 2 * HOP) + 10 * 204.8 + HOP + 3 * HOP + ENDS),
])  # fmt: skip
def test_times_of_packets_that_go_around_a_failed_link(known: int, longest: float, others: float) -> None:
    failures = f"{{cycle: 0, links: [[0, 1]], detection_cycles: {known}, reprogram_cycles: 0}}"
    checked = config((5,), "abr", failures, "messages: 1", message_packets=1, pattern="tornado")
    found = run_packets(PacketNetwork(checked, 0.01, 1))
    assert (found.packets, found.lost, found.complete) == (5, 0, True)
    assert found.lifetime_max_ns == pytest.approx(longest)
    assert 5 * found.lifetime_ns == pytest.approx(longest + others)
    # what comes back has passed no link; n links are n + 1 routers
    assert found.hops == pytest.approx((3 * 2 + 3 + (4 + 1 if known else 3)) / 5 + 1)


def test_a_switch_that_fails_takes_its_messages_along() -> None:
    # router 2 fails before anything is sent and works again before the second of three messages is created
    failures = "{cycle: 0, switches: [2], detection_cycles: 0, reprogram_cycles: 0, repair_cycles: 1}"
    checked = config((5,), "abr", failures, "messages: 3", message_packets=1, pattern="tornado")
    network = PacketNetwork(checked, 0.01, 1)
    found = run_packets(network)
    assert network.failures is not None
    first, second = network.failures.records
    # what 2 would have sent, and what 0 sends to 2: dropped at its router or on the way
    assert (first.packets_unsent, found.lost, found.packets) == (1, 2, 13)
    assert first.packets_unroutable + second.packets_unroutable == 1
    assert found.complete
    # what `hopforge view` shows: failures and new ways, in ns here
    result = ResultSet("", tables={"failures": network.failures.table()})
    assert _clock(checked, network.topology) == (128, 1.6)
    ready = [one.reprogrammed_cycle * 1.6 for one in (first, second)]
    assert _new_tables(result, 1.6) == [[0, -1, -1, ready[0]], [128 * 1.6, -1, -1, ready[1]]]


@pytest.mark.parametrize("radices, algorithm, pattern, packet, seed", [
    ((6, 3), "ofr", "uniform", "eta: 0.3, wraparound: directions", 3231),
    ((4, 4), "ofr", "hotspot", "feed: 10, queues: receiving", 3261),
])  # fmt: skip
def test_before_its_failures_a_run_is_as_without(
    radices: tuple[int, ...], algorithm: str, pattern: str, packet: str, seed: int
) -> None:
    # queues that are all full, without the fourth of failures
    words = f"messages: 8, queue_packets: 2, full_profit: zero, {packet}"
    logs, plain = [], []
    for parts in ("", "{cycle: 1000000, links: [[0, 1]]}"):
        checked = config(radices, algorithm, parts, words, pattern=pattern)
        network = PacketNetwork(checked, 3.0, seed, log=True)
        network.advance(100_000)
        logs.append(network.log.tolist())
        plain.append(config(radices, algorithm, parts, words.replace("zero", "formula"), pattern=pattern))
    assert logs[0] == logs[1]
    network = PacketNetwork(plain[0], 3.0, seed, log=True)
    network.advance(100_000)
    assert network.log.tolist() != logs[0]  # the rule decides something here


@pytest.mark.parametrize("queues", ["sending", "receiving"])
def test_detours_are_shares_of_the_packets_that_chose_a_way(queues: str) -> None:
    failures = "{cycle: 3, switches: [2, 7], detection_cycles: 0, reprogram_cycles: 1}"
    checked = config((4, 4), "ofr", failures, f"messages: 5, queue_packets: 3, queues: {queues}")
    network = PacketNetwork(checked, 1.0, 1, log=True)
    found = run_packets(network)
    assert network.failures is not None
    assert network.failures.table()["packets_unroutable"].sum() > 0  # most at their first router
    chose = network.log[network.log["accepted"] >= 0]
    shares = [float((chose["kind"] == kind).mean()) for kind in (1, 2)]
    assert min(shares) > 0
    assert [found.outflanked, found.wrapped] == pytest.approx(shares)


@pytest.mark.parametrize("known", [5, 10**6])
def test_links_are_busy_over_the_time_of_the_run(known: int) -> None:
    # routers send what waits again and again, after the last arrival, too: until the last loss, or the end of the run
    failures = f"{{cycle: 20, switches: [2], detection_cycles: {known}, reprogram_cycles: 1}}"
    checked = config((5,), "abr", failures, "messages: 4, queue_packets: 2")
    network = PacketNetwork(checked, 1.0, 1, log=True)
    found = run_packets(network)
    assert found.complete == (known == 5)
    last = network.log["delivered"].max()
    assert found.cycles == max(network.cycle, last)
    assert found.complete or network.cycle > 2 * last
    busy = network.channel_packets() * network.settings.send_cycles / found.cycles
    assert 0 < busy.max() <= 1
    assert found.link_load == pytest.approx(busy.mean())
    assert found.accepted == pytest.approx(found.packets / 5 / found.cycles * network.period_cycles / 6)


def test_a_run_in_which_nothing_arrives_says_so() -> None:
    # only router 0 is left, and sends to router 2
    failures = "{cycle: 0, switches: [1, 2, 3, 4], detection_cycles: 0, reprogram_cycles: 0}"
    network = PacketNetwork(config((5,), "abr", failures, "messages: 2", pattern="tornado"), 0.1, 1)
    found = run_packets(network)
    assert (found.packets, found.lost, found.accepted) == (0, 5 * 2 * 6, 0)
    assert np.isnan([found.lifetime_ns, found.lifetime_max_ns, found.hops, found.refused]).all()
    assert message_table(network)["packets"].tolist() == [0, 0]
    assert message_table(network)["lifetime_ns"].isna().all()
    rows = dict(measurement_rows(found))
    assert rows["lifetime"] == "no packet arrived"
    assert not any("nan" in words for words in rows.values())


@pytest.mark.parametrize("radices, algorithm, failures, packet, words", [
    ((4, 4), "ofr", "{cycle: 3, links: [[0, 6]]}", "messages: 1",
     r"^simulation.failures\[0\]: there is no link between routers 0 and 6 of the "),
    ((4,), "abr", "{cycle: 3, links: [[0, 1], [2, 3]]}", "messages: 1",
     r"^simulation.failures\[0\]: the network falls apart: no path from router 0 to router 1 "),
])  # fmt: skip
def test_what_cannot_fail_is_refused(
    radices: tuple[int, ...], algorithm: str, failures: str, packet: str, words: str
) -> None:
    with pytest.raises(UserError, match=words):
        PacketNetwork(config(radices, algorithm, failures, packet), 1.0, 1)


def test_memory_for_the_ways_is_asked_for_before_it_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hopforge.model.free_memory.free_memory", lambda: 1 << 13)
    with pytest.raises(UserError, match=r"^tables of ways around failures need \S+ GiB of memory; there are"):
        PacketNetwork(config((4, 4), "ofr", "{cycle: 3, links: [[0, 1]]}", "messages: 1"), 1.0, 1)


def test_unread_keys_are_told() -> None:
    checked = config((4, 4), "ofr", "{cycle: 3, links: [[0, 1]]}")
    assert unused_sections(checked, ["net"]) == []
    runs = checked.simulation.model_copy(update={"failure_series_cycles": 7})
    told = checked.model_copy(update={"simulation": runs})
    assert unused_sections(told, ["net"]) == ["simulation.failure_series_cycles"]
