"""Hosts that answer: golden routers and hosts against the simulator, every flit is sent and taken in the same cycle."""

import numpy as np
import pytest

from hopforge.model.config import parse_config
from hopforge.model.router.configured import network_links, network_params
from hopforge.model.router.factor import compile_tables
from hopforge.model.router.flit import PortInputs
from hopforge.model.router.links import End, topology_hosts
from hopforge.model.router.network import NetworkModel, Packet
from hopforge.model.router.reply_rules import reply_rules
from hopforge.model.router.replying_host import ReplyingHost
from hopforge.model.topology.configured import network_topology
from hopforge.sim.run.simulation import Simulation

SENT, TAKEN = 2, 3  # kinds of the simulator's log
REPLY = 1 << 38  # of a packet's number in the log
NETWORKS = {
    "torus": ("{kind: torus, radices: [3, 2]}", "{algorithm: dor}", 4),
    "adaptive mesh": ("{kind: mesh, radices: [3, 2]}", "{algorithm: star_channel, check: false}", 4),
    "fat tree": ("{kind: fat_tree, k: 2, n: 2}", "{algorithm: d_mod_k}", 2),
}
REPLIES = {
    "own": "{flits: 3, delay_cycles: 4}",
    "own, one place": "{flits: 4, queue: 1}",
    "own, two places": "{flits: 2, delay_cycles: 9, queue: 2}",
    "shared": "{flits: 3, vcs: shared}",
    "shared, places": "{flits: 1, vcs: shared, queue: 60}",
    "at once": "{flits: 2, delay_cycles: 0, queue: 3}",
    "by the request": "{lengths: [2, 1, 6, 3], delay_cycles: 0, queue: 2}",
    "shared, by the request": "{lengths: [4, 2, 1, 1], vcs: shared}",
    "one sender": "{lengths: [5, 1, 3, 2], delay_cycles: 0, sender: shared}",
    "one sender, later": "{flits: 2, delay_cycles: 7, vcs: shared, sender: shared}",
}
BY_REQUEST = "packet_lengths: [1, 2, 3, 4], packet_weights: [1, 1, 1, 1], "
ROUTERS = {
    "wormhole": "",
    "cut-through": "switching: vct, buffer_flits: 6, vc_release: credits",
    "slow": "link_latency_cycles: 3, host_latency_cycles: 3, credit_delay_cycles: 1, buffer_flits: 3, rc_cycles: 1",
    "free queue": "va: free_queue, buffer_flits: 2",
}
CASES = [
    *(("torus", reply, "wormhole") for reply in REPLIES),
    *(("torus", "own, one place", router) for router in ("cut-through", "slow", "free queue")),
    *(("torus", "by the request", router) for router in ("cut-through", "slow", "free queue")),
    *(("torus", "one sender", router) for router in ("cut-through", "slow", "free queue")),
    ("adaptive mesh", "one sender, later", "slow"),
    ("torus", "shared", "cut-through"),
    ("adaptive mesh", "own, two places", "wormhole"),
    ("fat tree", "own, one place", "slow"),
]


@pytest.mark.parametrize(("network", "reply", "router"), CASES)
def test_simulator_equals_golden_hosts(network: str, reply: str, router: str) -> None:
    topology_text, routing, vcs = NETWORKS[network]
    config = parse_config(
        f"name: test\ntopology: {topology_text}\nrouting: {routing}\n"
        f"router: {{vcs: {vcs}, flit_bits: 96, tag_bits: 16, {ROUTERS[router]}}}\n"
        f"traffic: {{{BY_REQUEST if 'lengths' in REPLIES[reply] else ''}reply: {REPLIES[reply]}}}\n"
    )
    rules = reply_rules(config)
    assert rules is not None
    rng = np.random.default_rng(7)
    hosts = network_topology(config).hosts
    count = 40 * hosts
    script = (
        rng.integers(0, hosts, count), np.sort(rng.integers(0, 150, count)), rng.integers(0, hosts, count),
        rng.integers(1, 5, count),
    )  # fmt: skip
    run = Simulation(config, 0.1, 1, script=script, log_events=200_000, check=False)
    run.advance(6000)
    run.check_conservation()
    total = int(script[3].sum()) + sum(map(rules.reply_flits, script[3].tolist()))
    assert run.state.flits_in_flight == 0
    assert int(run.state["flits_ejected"]) == total
    log = run.state["log"].reshape(-1, 6)[: int(run.state["log_length"])]
    want = {
        kind: sorted(map(tuple, log[log[:, 1] == kind][:, [0, 2, 3, 5]].tolist())) for kind in (SENT, TAKEN)
    }
    assert len(want[SENT]) == len(want[TAKEN]) == total

    topology = run.topology
    tables = compile_tables(topology, run.plan, vcs, config.routing.algorithm)
    params = network_params(config, topology, tables)
    model = NetworkModel(params, network_links(config, topology))
    queues: list[list[Packet]] = [[] for _ in range(hosts)]
    p = params[0]
    for host, created, target, flits in zip(*(column.tolist() for column in script), strict=True):
        head = target | host << p.address_bits | len(queues[host]) << 2 * p.address_bits
        head |= flits << 2 * p.address_bits + p.tag_bits if p.switching == "vct" else 0
        queues[host].append(Packet(created, head, flits))
    ends = topology_hosts(topology)
    latency = config.router.host_latency_cycles
    models = [ReplyingHost(params[e.router], queue, rules, latency) for e, queue in zip(ends, queues, strict=True)]
    for cycle in range(int(run.state["last_move"]) + 20):
        visible = model.visible()
        outside: dict[End, PortInputs] = {
            end: host.step(cycle, visible[end.router][end.port]) for end, host in zip(ends, models, strict=True)
        }
        model.step(outside)
    assert all(host.idle for host in models)
    for kind, what in ((SENT, "sent"), (TAKEN, "received")):
        got = [
            (cycle, number, flit.vc, flit.kind)
            for number, host in enumerate(models)
            for cycle, flit in getattr(host, what)
        ]
        assert sorted(got) == want[kind], what
