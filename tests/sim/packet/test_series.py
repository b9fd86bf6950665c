"""Packet routers in bins of time: changes of the load in the middle of a run."""

import numpy as np
import pytest

from hopforge.model.config import parse_config
from hopforge.model.errors import UserError
from hopforge.sim.packet.network import PacketNetwork
from hopforge.sim.packet.prepared import series_network
from hopforge.sim.packet.series import run_packet_series
from hopforge.sim.run.time_series import series_rows

CONFIG = """
name: steps
topology: {kind: torus, radices: [4, 4]}
router: {model: packet}
routing: {algorithm: ofr}
packet: {messages: 16, process: %s}
traffic: {pattern: uniform, message_packets: 24}
simulation: {series_bins: 16, load_steps: [{bin: 8, load: %s}, {bin: 12, load: 0.2}]}
"""


def nothing(done: int, total: int) -> None:
    assert done <= total


@pytest.mark.parametrize("process", ["periodic", "exponential"])
def test_messages_follow_the_changes_of_the_load(process: str) -> None:
    network = series_network(parse_config(CONFIG % (process, 0.4)), 0.2, 1)
    period = network.period_cycles
    bins = run_packet_series(network, nothing).bins
    assert bins["load"].tolist() == [0.2] * 8 + [0.4] * 4 + [0.2] * 4
    parts = [bins["accepted"].iloc[a:b].mean() for a, b in ((0, 8), (8, 12), (12, 16))]
    assert parts == pytest.approx([0.2, 0.4, 0.2], rel=0.1 if process == "periodic" else 0.35)
    # 8 messages at the first load, 8 at twice this load in half the time, 4 at the first
    total = 16 * period
    created = (network.births < total).sum(axis=1)
    if process == "periodic":
        assert set(created.tolist()) == {20}
        gaps = np.diff(network.births[0][:20])
        assert gaps == pytest.approx([period] * 8 + [period / 2] * 8 + [period] * 3, abs=2)
    else:
        assert created.mean() == pytest.approx(20, rel=0.2)
        # no node runs out of messages
        assert (network.births[:, -1] > total).all()


def test_a_higher_load_takes_longer_from_its_bin_on() -> None:
    config = parse_config(CONFIG % ("periodic", 1.0))
    found = run_packet_series(series_network(config, 0.2, 1), nothing)
    latency = found.bins["latency"].to_numpy()
    assert latency[8:12].max() > 1.5 * latency[:8].mean()
    assert [begin for begin, _ in found.converged] == pytest.approx(
        [0, found.bins["time"].iloc[7], found.bins["time"].iloc[11]]
    )


@pytest.mark.parametrize("process", ["periodic", "exponential"])
@pytest.mark.parametrize("load, repair", [(0.8, 120), (0.1, 120), (0.8, None)])
def test_failed_switches_abandon_what_they_create_until_the_repair_at_the_loads_of_that_time(
    process: str, load: float, repair: int | None
) -> None:
    # a message each 60 packet times, and others from 180 on
    text = (CONFIG % (process, load)).replace("messages: 16", "messages: 6").replace(", {bin: 12, load: 0.2}", "")
    works = f", repair_cycles: {repair}" if repair else ""
    failure = f"{{cycle: 150, switches: [5, 6], detection_cycles: 1, reprogram_cycles: 2{works}}}"
    config = parse_config(text.replace("series_bins: 16", f"series_bins: 16, failures: [{failure}]"))
    messages = series_network(config, 0.2, 1).settings.messages
    network = PacketNetwork(config, 0.2, 1, messages=messages, log=True)
    run_packet_series(network, nothing)
    assert network.failures is not None
    end = network.cycle
    back = (150 + repair) * 128 if repair else end
    accepted = network.log["accepted"].reshape(16, messages, 24)[[5, 6]]
    births = network.births[[5, 6]]
    created = births < back
    assert not created.all()
    assert sum(one.packets_unsent for one in network.failures.records) == (accepted[created] < 0).sum() > 0
    assert (accepted[(births > 150 * 128) & created] < 0).all()
    later = (births >= back) & (births < end - 40 * 128)
    assert later.any() == (repair is not None)
    assert (accepted[later][:, 0] >= 0).all()


def test_the_end_is_of_the_last_load_alone() -> None:
    late = (CONFIG % ("periodic", 0.4)).replace("bin: 12, load: 0.2", "bin: 14, load: 0.1")
    found = run_packet_series(series_network(parse_config(late), 0.2, 1), nothing)
    said = dict(series_rows(found))
    last = found.bins.iloc[-1]  # the last quarter of two bins
    assert last["load"] == 0.1
    assert said["accepted at the end"] == f"{last['accepted']:.4g}"
    assert said["latency at the end"] == f"{last['latency']:.1f} ns, 99 % {last['latency_p99']:.1f}"
    assert said["routers visited"] == f"{last['hops']:.3f}"  # no packet set out: no share of detours


@pytest.mark.parametrize("queues", ["sending", "receiving"])
def test_detours_are_shares_of_the_packets_that_chose_their_way_in_the_bin(queues: str) -> None:
    """With queues behind the links that is later than the source begins to send them."""
    text = (CONFIG % ("exponential", 0.9)).replace("messages: 16", f"messages: 16, queues: {queues}")
    network = PacketNetwork(parse_config(text.replace("message_packets: 24", "message_packets: 1")), 0.4, 1, log=True)
    bins = run_packet_series(network, nothing).bins
    log, total, count = network.log, int(network.period_cycles * 16 * network.load / 0.4), len(bins)
    shares = []
    for k in range(count):
        begin, end = total * k // count, total * (k + 1) // count
        chosen = (log["accepted"] >= max(begin, 1)) & (log["accepted"] < end)
        shares.append((log["kind"][chosen] != 0).sum() / max(chosen.sum(), 1) if chosen.any() else np.nan)
    assert np.nanmax(shares) > 0
    assert bins["derouted_share"].tolist() == pytest.approx(shares, nan_ok=True)


def test_two_changes_in_one_bin_are_refused() -> None:
    with pytest.raises(UserError, match=r"load_steps\[1\].bin: must differ from those before, not 12 again"):
        parse_config((CONFIG % ("periodic", 0.1)).replace("bin: 8", "bin: 12"))


def test_no_load_is_refused() -> None:
    with pytest.raises(UserError, match=r"^the load must be above 0, not 0$"):
        series_network(parse_config(CONFIG % ("periodic", 0.4)), 0, 1)
