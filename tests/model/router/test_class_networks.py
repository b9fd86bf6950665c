"""Classes of traffic: networks of golden routers and hosts against the simulator, every flit in its cycle."""

import numpy as np
import pytest

from hopforge.model.config import parse_config
from hopforge.model.router.class_host import ClassHost
from hopforge.model.router.flit import PortInputs
from hopforge.model.router.links import End, topology_hosts, topology_links
from hopforge.model.router.network import NetworkModel, Packet
from hopforge.model.router.params import Route, RouterParams
from hopforge.model.router.quality import Quality
from hopforge.model.topology import Topology
from hopforge.sim.run.simulation import Simulation

SENT, TAKEN = 2, 3  # kinds of the simulator's log
#: VCs, priority and weight of each class
CLASSES = ((1, 2, 1), (2, 0, 3), (1, 1, 2))
VCS = ((0,), (1, 2), (3,))
ROUTERS = {
    "islip": {},
    "input first": {"va": "input_first", "sa": "input_first", "rc_cycles": 1},
    "wavefront": {"va": "wavefront", "sa": "wavefront", "rc_cycles": 2},
    "matrix": {"arbiter": "matrix", "sa": "input_first"},
    "cut-through": {"switching": "vct", "buffer_flits": 6, "vc_release": "credits"},
    "free queue": {"va": "free_queue", "credit_delay_cycles": 2},
    "free queue, wavefront": {"va": "free_queue", "sa": "wavefront"},
}


def mesh_routes(topology: Topology, router: int) -> tuple[Route, ...]:
    """Dimension order on a mesh of 3 × 2 routers with a host each: ports host, x+, x−, y+, y−."""
    routes = [Route(0)] * (int(topology.host_address.max()) + 1)
    (x, y), hosts = (router % 3, router // 3), range(topology.hosts)
    for host, (to_x, to_y) in ((host, (host % 3, host // 3)) for host in hosts):
        port = 1 + (to_x < x) if to_x != x else 3 + (to_y < y) if to_y != y else 0
        routes[int(topology.host_address[host])] = Route(1 << port)
    return tuple(routes)


def run_both(settings: dict, qos: str, *, seed: int, load: float, latency: int, cycles: int = 1500) -> None:
    settings = {"vcs": 4, "buffer_flits": 4} | settings
    words = settings | {"link_latency_cycles": latency, "host_latency_cycles": latency, "qos": qos}
    classes = ", ".join(
        f"{{name: c{c}, share: {share}, vcs: {vcs}, priority: {priority}, weight: {weight}}}"
        for c, (share, (vcs, priority, weight)) in enumerate(zip((0.2, 0.5, 0.3), CLASSES, strict=True))
    )
    config = parse_config(
        "name: test\ntopology: {kind: mesh, radices: [3, 2]}\n"
        f"router: {{{', '.join(f'{key}: {value}' for key, value in words.items())}}}\n"
        f"traffic: {{classes: [{classes}]}}\n"
    )
    rng = np.random.default_rng(seed)
    hosts, count, last = 6, int(load * 6 * 120), 120
    script = (
        rng.integers(0, hosts, count),
        np.sort(rng.integers(0, last, count)),
        rng.integers(0, hosts, count),
        rng.integers(1, 5, count),
    )
    number = rng.integers(0, 3, count)
    run = Simulation(config, 0.1, 1, script=script, script_class=number, log_events=100000)
    while run.state["cycle"] < cycles and run.state["flits_ejected"] < script[3].sum():
        run.advance(25)
    run.advance(25)  # nothing comes after the last flit
    assert run.state.flits_in_flight == 0
    want: dict[int, list[tuple[int, ...]]] = {SENT: [], TAKEN: []}
    log = run.state["log"].reshape(-1, 6)[: int(run.state["log_length"])]
    for cycle, kind, source, _, packet, flit in log.tolist():
        if kind in want:
            want[kind].append((cycle, source, packet, flit))
    assert len(want[TAKEN]) == int(script[3].sum())

    topology = run.topology
    ports = int(topology.ports[0])
    of_vc = tuple(c for c, vcs in enumerate(VCS) for _ in vcs)
    masks = [sum(1 << v for v in VCS[c]) for c in of_vc]
    rule = (tuple(tuple((masks[v],) * ports for v in range(4)) for _ in range(ports)),)
    quality = None
    if qos != "none":
        _, priorities, weights = zip(*CLASSES, strict=True)
        quality = Quality(kind=qos, of_vc=of_vc, priorities=priorities, weights=weights)  # type: ignore[arg-type]
    params = [
        RouterParams(
            ports=ports, tag_bits=16, width_bits=80, routes=mesh_routes(topology, r), vc_rule=rule,
            quality=quality, **settings,
        )
        for r in range(topology.routers)
    ]  # fmt: skip
    network = NetworkModel(params, topology_links(topology, latency))
    queues: list[list[list[Packet]]] = [[[], [], []] for _ in range(hosts)]
    for host, created, target, flits, c in zip(*(column.tolist() for column in (*script, number)), strict=True):
        tag = c << 14 | len(queues[host][c])
        dst = int(topology.host_address[target])
        queues[host][c].append(Packet(created, dst | host << 24 | tag << 48 | flits << 64, flits))
    ends = topology_hosts(topology)
    models = [ClassHost(params[end.router], queue, VCS, latency) for end, queue in zip(ends, queues, strict=True)]
    for cycle in range(int(run.state["cycle"])):
        visible = network.visible()
        outside: dict[End, PortInputs] = {}
        for model, end in zip(models, ends, strict=True):
            outside[end] = model.step(cycle, visible[end.router][end.port])
        network.step(outside)
    assert all(model.idle for model in models)
    for kind, what in ((SENT, "sent"), (TAKEN, "received")):
        got = []
        for host, model in enumerate(models):
            current: dict[int, int] = {}
            for cycle, flit in getattr(model, what):
                if flit.is_head:
                    tag = flit.data >> 48 & 0xFFFF
                    current[flit.vc] = (flit.data >> 24 & 0xFFFFFF) << 40 | tag >> 14 << 34 | tag & 0x3FFF
                got.append((cycle, host, current[flit.vc], flit.kind))
        assert sorted(got) == sorted(want[kind]), what


@pytest.mark.parametrize("qos", ["strict", "weighted"])
@pytest.mark.parametrize("name", list(ROUTERS))
@pytest.mark.thinned(2)
def test_simulator_equals_golden_routers_and_hosts(name: str, qos: str) -> None:
    run_both(ROUTERS[name], qos, seed=len(name), load=0.5, latency=1 + len(name) % 2)


def test_without_quality_classes_take_turns() -> None:
    run_both({"buffer_flits": 3}, "none", seed=1, load=0.3, latency=1)
