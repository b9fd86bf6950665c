"""Measures of packet routers, counted anew from what happened to every packet (docs/definitions/torus-router.md)."""

import math

import numpy as np
import pytest

from hopforge.model.config import parse_config
from hopforge.sim.packet.network import PacketNetwork
from hopforge.sim.packet.simulation import message_table, run_packets


@pytest.mark.parametrize(
    ("radices", "algorithm", "packet", "load"),
    [
        ("[4, 4]", "ofr", "messages: 3, queues: receiving", 1.0),
        ("[5, 3]", "por", "messages: 4, queues: receiving, switching: vct, process: exponential", 0.6),
        ("[8]", "abr", "messages: 5", 0.2),
    ],
)
def test_measures_are_those_of_the_packets(radices: str, algorithm: str, packet: str, load: float) -> None:
    network = PacketNetwork(
        parse_config(
            f"name: t\ntopology: {{kind: torus, radices: {radices}}}\nrouter: {{model: packet}}\n"
            f"routing: {{algorithm: {algorithm}}}\ntraffic: {{message_packets: 6}}\npacket: {{{packet}}}\n"
        ),
        load, 3, log=True,
    )  # fmt: skip
    found, log = run_packets(network), network.log
    ns, nodes, each = network.settings.cycle_ns, network.topology.routers, network.settings.message_packets
    life = log["delivered"] - np.repeat(network.births.reshape(-1), each)
    assert found.packets == len(log) > 100
    assert found.lifetime_ns == pytest.approx(life.mean() * ns)
    assert found.lifetime_max_ns == pytest.approx(life.max() * ns)
    assert message_table(network)["lifetime_ns"].tolist() == pytest.approx(
        (life.reshape(nodes, -1, each).mean(axis=(0, 2)) * ns).tolist()
    )
    for share, told in ((0.5, found.lifetime_median_ns), (0.95, found.lifetime_p95_ns), (0.99, found.lifetime_p99_ns)):
        exact = np.sort(life)[math.ceil(share * len(life)) - 1]
        assert told == pytest.approx(min(exact // 16 * 16 + 16, life.max()) * ns)  # the end of a bin of 16 cycles
    assert found.hops == pytest.approx(log["hops"].mean() + 1)
    # rates are over the cycles that are told, which end with the last arrival
    assert found.cycles == log["delivered"].max()
    assert found.refused == 0, "what is sent back uses links, too"
    links = int((network.topology.peer_router >= 0).sum())
    busy = log["hops"].sum() * network.settings.send_cycles
    assert found.link_load == pytest.approx(busy / links / found.cycles)
    at_load_1 = network.period_cycles * load / each  # cycles between two packets of a node
    assert found.accepted == pytest.approx(len(log) / nodes * at_load_1 / found.cycles)
