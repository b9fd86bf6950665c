"""Acknowledges: golden routers, hosts and service hosts against the simulator, every flit sent and taken by cycle."""

from collections import Counter

import numpy as np
import pytest

from hopforge.model.config import parse_config
from hopforge.model.network.parts.trail_tables import trail_counts
from hopforge.model.router.configured import network_links, network_params
from hopforge.model.router.factor import compile_tables
from hopforge.model.router.flit import PortInputs
from hopforge.model.router.links import End, topology_hosts
from hopforge.model.router.network import HostModel, NetworkModel, Packet
from hopforge.model.router.service_host import Mail, ServiceHost, acknowledge_rules, tables_with_service
from hopforge.sim.run.simulation import Simulation

SENT, TAKEN = 2, 3  # kinds of the simulator's log
NETWORKS = {
    "torus": ("{kind: torus, radices: [3, 3]}", "{algorithm: dor}", 2),
    "adaptive mesh": (
        "{kind: mesh, radices: [3, 2], hosts_per_router: 2}", "{algorithm: star_channel, check: false}", 3,
    ),
    "hyperx": ("{kind: hyperx, sizes: [3, 2]}", "{algorithm: dor}", 2),
}  # fmt: skip
ALL_SET_ASIDE = {"table_full", "acks_no_entry"}
#: network, acknowledges, router, rare events that must happen
CASES: list[tuple[str, str, str, set[str]]] = [
    ("torus", "{}", "", set()),
    (
        "torus", "{flits: 1, queue: 1, ratio: 2}", "switching: vct, buffer_flits: 6, vc_release: credits",
        {"acks_queue_full"},
    ),
    ("torus", "{queue: 1, table: 3, delay_cycles: 9}", "", {"acks_queue_full", *ALL_SET_ASIDE}),
    (
        "torus", "{vcs: own, age_limit_cycles: 120}",
        "vcs: 3, link_latency_cycles: 3, host_latency_cycles: 2, rc_cycles: 1", set(),
    ),
    (
        "adaptive mesh", "{queue: 2, table: 6}", "buffer_flits: 3, credit_delay_cycles: 1",
        {"acks_queue_full", *ALL_SET_ASIDE},
    ),
    (
        "adaptive mesh", "{flits: 5, vcs: own, own_queue: 1, table: 8, age_limit_cycles: 150}",
        "vcs: 4, va: free_queue, buffer_flits: 2", {"acks_own_full", "expired_entries", *ALL_SET_ASIDE},
    ),
    ("hyperx", "{flits: 2, delay_cycles: 4, table: 2}", "speculation: true, arbiter: matrix", ALL_SET_ASIDE),
]  # fmt: skip
COUNTERS = (
    "delivered", "acks_made", "acks_sent", "acks_home", "acks_no_entry", "acks_queue_full", "acks_own_full",
    "entries", "table_full", "expired_entries",
)  # fmt: skip


@pytest.mark.parametrize(("network", "acknowledge", "router", "rare"), CASES)
def test_simulator_equals_golden_service_hosts(network: str, acknowledge: str, router: str, rare: set[str]) -> None:
    topology_text, routing, vcs = NETWORKS[network]
    own_vcs = "" if "vcs:" in router else f"vcs: {vcs}, "
    config = parse_config(
        f"name: test\ntopology: {topology_text}\nrouting: {routing}\n"
        f"router: {{{own_vcs}flit_bits: 96, tag_bits: 24, {router}}}\ntraffic: {{acknowledge: {acknowledge}}}\n"
    )
    rules = acknowledge_rules(config)
    assert rules is not None
    rng = np.random.default_rng(5)
    run = Simulation(config, 0.1, 1, check=False)
    hosts = run.topology.hosts
    count = 25 * hosts
    script = (
        rng.integers(0, hosts, count), np.sort(rng.integers(0, 250, count)), rng.integers(0, hosts, count),
        rng.integers(1, 5, count),
    )  # fmt: skip
    run = Simulation(config, 0.1, 1, script=script, log_events=200_000, check=False)
    run.advance(20_000)
    run.check_conservation()
    assert run.state.flits_in_flight == 0
    assert int(run.state["packets_ejected"]) == count
    log = run.state["log"].reshape(-1, 6)[: int(run.state["log_length"])]
    want = {kind: sorted(map(tuple, log[log[:, 1] == kind][:, [0, 2, 3, 5]].tolist())) for kind in (SENT, TAKEN)}

    topology, vcs = run.topology, config.router.vcs
    ack_mask = (1 << vcs) - 1 if run.plan.ack_mask is None else run.plan.ack_mask
    tables = tables_with_service(
        topology, compile_tables(topology, run.plan, vcs, config.routing.algorithm), vcs, ack_mask
    )
    params = network_params(config, topology, tables)
    model = NetworkModel(params, network_links(config, topology))
    p = params[0]
    allowed = (1 << vcs) - 1 if run.plan.inject_mask is None else int(run.plan.inject_mask)
    queues: list[list[Packet]] = [[] for _ in range(hosts)]
    for host, created, target, flits in zip(*(column.tolist() for column in script), strict=True):
        head = target | host << p.address_bits | len(queues[host]) << 2 * p.address_bits
        head |= flits << 2 * p.address_bits + p.tag_bits if p.switching == "vct" else 0
        queues[host].append(Packet(created, head, flits))
    ends = topology_hosts(topology)
    latency = config.router.host_latency_cycles

    class Host(HostModel):
        def _sender_vcs(self) -> list[int]:
            return [v for v in range(vcs) if allowed >> v & 1]

    models = [Host(params[e.router], queue, latency) for e, queue in zip(ends, queues, strict=True)]
    mail: Mail = {}
    service_port = topology.max_ports - 1
    services = [
        ServiceHost(
            params[r], rules, hosts + r, [hosts + q if q >= 0 else -1 for q in topology.peer_router[r].tolist()],
            [v for v in range(vcs) if ack_mask >> v & 1], mail, latency,
        )
        for r in range(topology.routers)
    ]  # fmt: skip
    address, tag = (1 << p.address_bits) - 1, (1 << p.tag_bits) - 1
    last_port: dict[tuple[int, int], int | None] = {}
    arriving: list[dict[int, tuple[int, int]]] = [{} for _ in range(hosts)]  # packets whose tails have not come, by VC
    for cycle in range(int(run.state["last_move"]) + 20):
        visible = model.visible()
        outside: dict[End, PortInputs] = {
            end: host.step(cycle, visible[end.router][end.port]) for end, host in zip(ends, models, strict=True)
        }
        for r, service in enumerate(services):
            heads = []
            for port, given in enumerate(model.inputs[r] if model.inputs else ()):
                if given.flit is None or not given.flit.is_head or port == service_port:
                    continue
                target, data = given.flit.data & address, given.flit.data
                if target >= hosts:
                    continue
                packet = (data >> p.address_bits & address, data >> 2 * p.address_bits & tag)
                from_port = None if topology.host_at[r, port] >= 0 else port
                if topology.host_router[target] == r:
                    last_port[packet] = from_port
                else:
                    heads.append((from_port, packet))
            service.heads_came(cycle, heads)
        for number, host in enumerate(models):
            if not host.received or host.received[-1][0] != cycle:
                continue
            flit = host.received[-1][1]
            if flit.is_head:
                arriving[number][flit.vc] = (
                    flit.data >> p.address_bits & address, flit.data >> 2 * p.address_bits & tag
                )  # fmt: skip
            if flit.is_tail:
                packet = arriving[number].pop(flit.vc)
                services[int(topology.host_router[number])].packet_taken(cycle, last_port.pop(packet), packet)
        for r, service in enumerate(services):
            outside[End(r, service_port)] = service.step(cycle, visible[r][service_port])
        model.step(outside)
    assert all(host.idle for host in [*models, *services])
    counts = sum((service.counts for service in services), Counter())
    found = trail_counts(run.state)
    assert {name: counts[name] for name in COUNTERS} == {name: found[name] for name in COUNTERS}
    assert counts["acks_home"] > 20
    assert all(counts[name] > 5 for name in rare)
    assert [len(service.table) for service in services] == run.state["trail_fill"].tolist()
    for kind, what in ((SENT, "sent"), (TAKEN, "received")):
        got = [
            (cycle, number, flit.vc, flit.kind)
            for number, host in enumerate([*models, *services])
            for cycle, flit in getattr(host, what)
        ]
        assert sorted(got) == want[kind], what
    assert len(want[SENT]) > int(script[3].sum())
