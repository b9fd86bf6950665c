"""Lives of packets against the definition of the router (docs/definitions/router.md), cycle by cycle."""

import itertools
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from hopforge.model.config import Config, parse_config
from hopforge.model.errors import UserError
from hopforge.sim.run.network_latency import network_latencies
from hopforge.sim.run.packet_life import PacketKey, PacketLife, TraceError, packet_key
from hopforge.sim.run.packet_phases import bars
from hopforge.sim.run.packet_report import event_table, life_text, write_trace
from hopforge.sim.run.packet_trace import follow, list_packets, slowest
from hopforge.sim.run.simulation import Simulation


def config(*lines: str) -> Config:
    return parse_config("\n".join(("name: x", *lines)))


def script(*packets: tuple[int, int, int, int]) -> tuple[np.ndarray, ...]:
    """Packets as (host, cycle, destination, flits)."""
    return tuple(np.array(column) for column in zip(*packets, strict=True))


def lives(checked: Config, packets: tuple[np.ndarray, ...], *keys: PacketKey) -> tuple[Simulation, list[PacketLife]]:
    listed = list_packets(checked, 0.1, 1, 300, script=packets)
    return follow(checked, 0.1, 1, 300, listed, keys, script=packets)


def cycles(table: pd.DataFrame, event: str, flit: int = 0) -> list[int]:
    return table[(table["event"] == event) & (table["flit"] == flit)]["cycle"].tolist()


@pytest.mark.parametrize("speculation", [False, True])
@pytest.mark.parametrize("r", [0, 2])
def test_every_cycle_of_a_lonely_packet(r: int, speculation: bool) -> None:
    """docs/definitions/router.md, Stages of a flit: three routers, links of 3 cycles, host links of 2."""
    checked = config(
        "topology: {kind: mesh, radices: [3]}",
        f"router: {{rc_cycles: {r}, link_latency_cycles: 3, host_latency_cycles: 2, speculation: "
        f"{str(speculation).lower()}}}",
    )
    run, (life,) = lives(checked, script((0, 7, 2, 3)), PacketKey(0, 0))
    table = event_table(run, [life])
    assert cycles(table, "created") == [7]
    arrived, first = 7 + 2, 7 + 1 + 2
    want: dict[str, list[int]] = {name: [] for name in ("arrived", "rc", "va", "sa")}
    for _ in range(3):
        grant = first + r
        switch = grant if speculation else grant + 1
        for name, cycle in zip(want, (arrived, first, grant, switch), strict=True):
            want[name].append(cycle)
        arrived, first = switch + 1 + 3, switch + 2 + 3
    assert cycles(table, "arrived") == want["arrived"]
    assert cycles(table, "route computation") == (want["rc"] if r else [])
    assert cycles(table, "VC requested") == want["va"]
    assert cycles(table, "VC granted") == want["va"]
    for flit in range(3):
        # body flits follow the head cycle by cycle; with speculation they are still on their way when it leaves
        assert cycles(table, "injected", flit) == [7 + flit]
        assert cycles(table, "switch granted", flit) == [cycle + flit for cycle in want["sa"]]
        assert cycles(table, "link", flit) == [cycle + flit + 2 for cycle in want["sa"]]
        assert cycles(table, "arrived", flit) == [cycle + flit for cycle in want["arrived"]]
        assert cycles(table, "ejected", flit) == [want["sa"][-1] + flit + 2 + 2]
    head = table[table["event"] == "switch granted"].query("flit == 0")
    # ports: host 0, +x 1, −x 2
    assert head[["router", "port", "out_port"]].to_numpy().tolist() == [[0, 0, 1], [1, 2, 1], [2, 2, 0]]
    assert life.latency == want["sa"][-1] + 2 + 4 - 7


def test_two_packets_that_want_the_same_link() -> None:
    """iSLIP by hand: output VCs prefer the first host, then the second; the output port takes turns."""
    checked = config("topology: {kind: mesh, radices: [2], hosts_per_router: 2}", "router: {vcs: 2}")
    packets = script((0, 0, 2, 2), (1, 0, 2, 2))
    run, (a, b) = lives(checked, packets, PacketKey(0, 0), PacketKey(1, 0))
    table = event_table(run, [a, b])
    first = table[table["router"] == 0]
    assert cycles(first[first["packet"] == "0.0"], "VC requested") == [2]
    assert cycles(first[first["packet"] == "0.0"], "VC granted") == [2]
    assert cycles(first[first["packet"] == "1.0"], "VC requested") == [2]
    assert cycles(first[first["packet"] == "1.0"], "VC granted") == [3]
    grants = {
        (row.packet, row.flit): (row.cycle, row.out_vc)
        for row in first[first["event"] == "switch granted"].itertuples()
    }
    assert grants == {("0.0", 0): (3, 0), ("1.0", 0): (4, 1), ("0.0", 1): (5, 0), ("1.0", 1): (6, 1)}


LOADED = [
    "topology: {kind: torus, radices: [4, 3]}",
    "router: {rc_cycles: 1, vcs: 2, buffer_flits: 4}",
    "traffic: {packet_range: [1, 5]}",
]


def test_the_list_of_packets_is_that_of_the_counters() -> None:
    packets = list_packets(config(*LOADED), 0.5, 3, 600)
    run = Simulation(config(*LOADED), 0.5, 3)
    run.advance(600)
    arrived = packets[packets["arrived"] >= 0]
    assert len(arrived) == int(run.state["packets_ejected"]) > 500
    assert arrived["latency"].sum() == int(run.state["latency_sum"])
    in_network = (arrived["arrived"] - arrived["sent"]).to_numpy()
    found = network_latencies(run.state, 1)
    assert found["network_latency"] == in_network.sum() / len(in_network)
    assert found["network_latency_std"] == pytest.approx(in_network.std(), rel=1e-12)
    assert found["network_latency_max"] == in_network.max()
    for name, share in (("median", 0.5), ("p95", 0.95), ("p99", 0.99)):
        assert found[f"network_latency_{name}"] == np.quantile(in_network, share, method="inverted_cdf")
    run.reset_measures()
    nothing = network_latencies(run.state, 1)
    assert np.isnan(list(nothing.values())).all()
    assert (packets["latency"] == -1).equals(packets["arrived"] == -1)
    for host, sent in packets.groupby("host"):
        assert sent["number"].tolist() == list(range(len(sent)))
        assert sent["created"].is_monotonic_increasing
        assert int(run.state["host"]["flits_sent"][host]) <= sent["flits"].sum()


def test_lives_under_load_are_without_gaps() -> None:
    checked = config(*LOADED)
    packets = list_packets(checked, 0.6, 5, 700)
    keys = slowest(packets, 8, after=100)
    run, found = follow(checked, 0.6, 5, 700, packets, keys)
    table = event_table(run, found)
    waits = 0
    for life in found:
        row = packets[(packets["host"] == life.key.host) & (packets["number"] == life.key.number)].iloc[0]
        assert (life.latency, life.flits, life.dst) == (row["latency"], row["flits"], row["dst"])
        mine = table[table["packet"] == str(life.key)]
        assert mine["cycle"].is_monotonic_increasing
        stops = int((mine["event"] == "VC granted").sum())
        routers = mine[mine["event"] == "VC granted"]["router"].tolist()
        assert (routers[0], routers[-1]) == (
            run.topology.host_router[life.key.host],
            run.topology.host_router[life.dst],
        )
        for flit in range(life.flits):
            sent, grants = cycles(mine, "injected", flit), cycles(mine, "switch granted", flit)
            arrived, ejected = cycles(mine, "arrived", flit), cycles(mine, "ejected", flit)
            assert (len(sent), len(grants), len(arrived), len(ejected)) == (1, stops, stops, 1)
            # one cycle on the link of the host, s + 1 + L to the next router, s + 2 + L to the host
            assert arrived == [sent[0] + 1, *(cycle + 2 for cycle in grants[:-1])]
            assert ejected == [grants[-1] + 3]
        for rc, asked, granted, switch, arrived in zip(
            *(cycles(mine, name) for name in ("route computation", "VC requested", "VC granted", "switch granted")),
            cycles(mine, "arrived"), strict=True,
        ):  # fmt: skip
            assert arrived + 1 <= rc == asked - 1 <= granted - 1
            assert granted < switch
            waits += granted - asked
        # the phases of every flit join without gap from its creation to its arrival
        for flit in range(life.flits):
            phases = [bar for bar in bars(run, life) if bar.flit == flit]
            assert phases[0].start == life.created
            assert all(a.end == b.start for a, b in itertools.pairwise(phases))
            assert phases[-1].phase == "ejected"
    assert waits > 0  # there was something to wait for
    # no input port has two switch grants in a cycle, and no output port
    grants = table[table["event"] == "switch granted"]
    for side in (["router", "port", "cycle"], ["router", "out_port", "cycle"]):
        assert not grants.duplicated(side).any()


def test_the_slowest() -> None:
    packets = pd.DataFrame(
        {"host": [4, 0, 2, 1], "number": [0, 0, 0, 0], "created": [9, 5, 5, 2], "arrived": [19, 15, -1, 30],
         "latency": [10, 10, -1, 28]}
    )  # fmt: skip
    assert slowest(packets, 2) == [PacketKey(1, 0), PacketKey(0, 0)]
    assert slowest(packets, 9, after=5) == [PacketKey(0, 0), PacketKey(4, 0)]
    with pytest.raises(TraceError, match=r"^--slowest: no packet that was created from cycle 10 on has arrived"):
        slowest(packets, 1, after=10)


def test_a_packet_that_has_not_arrived_and_one_that_was_not_sent(tmp_path: Path) -> None:
    checked = config("topology: {kind: mesh, radices: [3]}")
    packets = script((0, 0, 2, 3))
    listed = list_packets(checked, 0.1, 1, 8, script=packets)
    run, (life,) = follow(checked, 0.1, 1, 8, listed, [PacketKey(0, 0)], script=packets)
    assert life.latency is None
    assert life_text(run, life).splitlines()[0].endswith("sent from 0 on, has not arrived")
    assert listed["arrived"].tolist() == [-1]
    # a cycle earlier the head has its VC in router 1, and not yet the switch
    run, (life,) = follow(checked, 0.1, 1, 7, listed, [PacketKey(0, 0)], script=packets)
    assert life_text(run, life).splitlines()[-1].split() == ["1", "2", "0", "5", "-", "6", "6", "-", "-", "-", "-", "-"]
    assert bars(run, life)[-1] == (2, 0, "VC allocation", 6, 7)
    write_trace(run, [life], listed, tmp_path)
    with pytest.raises(TraceError, match=r"^--packet 0.1: host 0 sent 1 packet in 8 cycles$"):
        follow(checked, 0.1, 1, 8, listed, [PacketKey(0, 1)], script=packets)
    with pytest.raises(TraceError, match=r"^--packet 3.0: the host must be 0 to 2, not 3$"):
        list_packets(checked, 0.1, 1, 8, script=packets, keys=[PacketKey(2, 0), PacketKey(3, 0)])
    for text in ("5", "5.", "a.1", "1.2.3", "-1.2", "1.1099511627776"):
        with pytest.raises(TraceError, match=f"^--packet: expected HOST.NUMBER, not '{text}'$"):
            packet_key(text)


@pytest.mark.parametrize(
    ("traffic", "number"),
    [
        ("{classes: [{name: a, share: 0.5, vcs: 2}, {name: b, share: 0.5, vcs: 2}]}", 1 << 34),
        ("{reply: {flits: 2}}", 1 << 38),
    ],
)  # fmt: skip
def test_packets_of_classes_and_replies_are_named_as_they_are_shown(traffic: str, number: int) -> None:
    checked = config(f"topology: {{kind: mesh, radices: [3]}}\nrouter: {{vcs: 4}}\ntraffic: {traffic}")
    listed = list_packets(checked, 0.3, 1, 60)
    shown = [key for key in slowest(listed, len(listed)) if key.number >= number]
    assert shown and [packet_key(str(key)) for key in shown] == shown
    _, found = follow(checked, 0.3, 1, 60, listed, shown[:2])
    assert all(life.received for life in found)


def test_acknowledges_are_named_as_they_are_shown() -> None:
    checked = config(
        "topology: {kind: mesh, radices: [3]}\nrouter: {vcs: 3, switching: vct}\nrouting: {algorithm: star_channel}\n"
        "traffic: {acknowledge: {}}"
    )
    listed = list_packets(checked, 0.3, 1, 60)
    shown = next(key for key in slowest(listed, len(listed)) if key.host >= 3)
    assert list_packets(checked, 0.3, 1, 60, keys=[shown]).equals(listed)
    _, (life,) = follow(checked, 0.3, 1, 60, listed, [shown])
    assert life.received
    with pytest.raises(TraceError, match=r"^--packet 6.0: the host must be 0 to 5, not 6$"):
        list_packets(checked, 0.3, 1, 60, keys=[PacketKey(6, 0)])


def test_files_of_a_long_packet(tmp_path: Path) -> None:
    checked = config("topology: {kind: mesh, radices: [3]}")
    packets = script((0, 0, 2, 30), (0, 1, 1, 40))
    listed = list_packets(checked, 0.1, 1, 300, script=packets)
    run, found = follow(checked, 0.1, 1, 300, listed, [PacketKey(0, 0), PacketKey(0, 1)], script=packets)
    write_trace(run, found, listed, tmp_path)
    table = pd.read_csv(tmp_path / "events.csv")
    assert (table["event"] == "ejected").sum() == 70
    text = (tmp_path / "trace.txt").read_text()
    assert "packet 0.0: host 0 to host 2, 30 flits, created in 0, sent from 0 on, arrived in " in text
    assert "29 in the source queue" in text
    for name in ("packet_0.0.png", "packet_0.1.png"):
        with Image.open(tmp_path / name) as image:
            assert min(image.size) > 300


def test_the_command(tmp_path: Path) -> None:
    (tmp_path / "c.yml").write_text("\n".join(("name: x", *LOADED)))
    arguments = ["trace", str(tmp_path / "c.yml"), "--cycles", "300", "--packet", "3.1", "--slowest", "1"]
    run = subprocess.run(
        [sys.executable, "-m", "hopforge", *arguments, "-o", str(tmp_path / "out")],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("packet 3.1: host 3 to host ")
    assert run.stdout.count("packet ") == 2
    assert (tmp_path / "out" / "packet_3.1.png").is_file()


QUEUED = (
    "topology: {kind: dragonfly, p: 2, a: 2, h: 1}",
    "address: {chunk_bits: 4}",
    "router: {model: input_output_queued, vcs: 5, buffer_flits: 2, output_buffer_flits: 2}",
    "routing: {algorithm: q_adaptive}",
)


def test_every_cycle_of_a_lonely_packet_between_queues() -> None:
    """docs/definitions/router-models.md: cycles of 0.4 ns, matches each 8, flights of 75, 125 and 800."""
    checked = config(*QUEUED)
    listed = list_packets(checked, 0.1, 1, 1300, script=script((0, 3, 11, 1)))
    run, (life,) = follow(checked, 0.1, 1, 1300, listed, [PacketKey(0, 0)], script=script((0, 3, 11, 1)))
    table = event_table(run, [life])
    routers = table[table["event"] == "link"]["router"].tolist()
    flights = [125 if x // 2 == y // 2 else 800 for x, y in itertools.pairwise(routers)]
    arrived, granted = [3 + 75], []
    for flight in [*flights, 75]:
        granted.append(-(-arrived[-1] // 8) * 8)
        arrived.append(granted[-1] + flight)
    assert (routers[0], routers[-1], sorted(flights)[-1]) == (0, 5, 800)
    assert (cycles(table, "created"), cycles(table, "injected"), cycles(table, "ejected")) == ([3], [3], [arrived[-1]])
    assert cycles(table, "arrived") == cycles(table, "route computation") == arrived[:-1]
    assert cycles(table, "switch granted") == cycles(table, "link") == granted
    assert life_text(run, life).count("\n") == 2 + len(routers)


def test_lives_between_queues_under_load(tmp_path: Path) -> None:
    checked = config(*QUEUED, "traffic: {source: interval, pattern: adversarial, shift: 1}")
    packets = list_packets(checked, 0.9, 5, 2600)
    keys = slowest(packets, 3)
    latest = packets[packets["arrived"] < 0].iloc[-1:]
    keys += [PacketKey(int(host), int(number)) for host, number in zip(latest["host"], latest["number"], strict=True)]
    run, found = follow(checked, 0.9, 5, 2600, packets, keys)
    table = event_table(run, found)
    waited = 0
    for life in found[:3]:
        mine = table[table["packet"] == str(life.key)]
        assert life.latency == packets[packets["arrived"] >= 0]["latency"].sort_values().iloc[-1 - found.index(life)]
        arrived, routed = cycles(mine, "arrived"), cycles(mine, "route computation")
        granted, linked = cycles(mine, "switch granted"), cycles(mine, "link")
        assert len(arrived) == len(routed) == len(granted) == len(linked) == len(life.visits)
        for at, first, grant, leave in zip(arrived, routed, granted, linked, strict=True):
            assert at <= first <= grant <= leave
            assert grant % 8 == 0
            waited += leave - grant
        assert set(np.diff([*arrived, life.received[0]]) - np.array(linked) + np.array(arrived)) <= {75, 125, 800}
        drawn = sorted(bars(run, life), key=lambda bar: bar.start)
        assert all(one.end == other.start for one, other in itertools.pairwise(drawn))
        assert (drawn[0].start, drawn[-1].end) == (life.created, life.received[0] + 1)
    assert waited > 0
    write_trace(run, found, packets, tmp_path / "out")
    assert len(list((tmp_path / "out").glob("packet_*.png"))) == len(found)


def test_store_and_forward_routers_have_no_lives() -> None:
    checked = config("topology: {kind: torus, radices: [4, 4]}", "router: {model: packet}", "routing: {algorithm: por}")
    with pytest.raises(UserError, match=r"router.model packet cannot run hopforge trace, because it has no flits"):
        list_packets(checked, 0.1, 1, 10)


@pytest.mark.parametrize("layers", ["acro", "lash_tor"])
def test_a_packet_that_is_sent_again_is_listed_once(layers: str) -> None:
    failing = config(
        "topology: {kind: hyperx, sizes: [4], hosts_per_router: 2}", "routing: {algorithm: tables}", "router: {vcs: 4}",
        f"tables: {{scheme: shortest, layers: {layers}}}", "traffic: {packet_flits: 4}",
        "simulation: {failures: [{cycle: 300, detection_cycles: 50, reprogram_cycles: 50, links: [[0, 1]]}]}",
    )  # fmt: skip
    run = Simulation(failing, 0.8, 1)
    run.advance(900)
    assert run.reconfiguration is not None
    assert run.reconfiguration.records[0].packets_set_aside > 0
    packets = list_packets(failing, 0.8, 1, 900)
    assert len(packets) > 100 and not packets.duplicated(["host", "number"]).any()
    again = packets[packets["arrived"] > 400]
    assert (again["latency"] == again["arrived"] - again["created"]).all()
    for _, own in packets.groupby("host"):
        assert own["number"].tolist() == list(range(len(own)))
    early = packets[packets["sent"] < 360]
    keys = [PacketKey(int(host), int(number)) for host, number in zip(early["host"], early["number"], strict=True)]
    run, lives = follow(failing, 0.8, 1, 900, packets, keys)
    kept = [life for life in lives if any(visit.again is not None for visit in life.visits)]
    assert len(kept) == run.reconfiguration.records[0].packets_set_aside  # type: ignore[union-attr]
    for life in kept:
        assert len(life.sent) == 4 == len(life.received)
        at = next(k for k, visit in enumerate(life.visits) if visit.again is not None)
        _, cycles = life.visits[at].again or (-1, [])
        assert len(cycles) == 4 and life.visits[at].grants[-1] < cycles[0] < (life.visits[at + 1].requested or 0)
        table = event_table(run, [life])
        assert (table["event"] == "injected").sum() == 4
        arrived = table[(table["event"] == "arrived") & (table["flit"] == 0)]["cycle"].tolist()
        assert arrived[at + 1] >= cycles[0] and len(arrived) == len(life.visits)
        assert all(bar.start >= life.created for bar in bars(run, life))
