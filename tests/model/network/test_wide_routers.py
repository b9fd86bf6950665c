"""Routers of more than 64 ports: masks of several words decide as those of one word do, and as golden routers do."""

from typing import Any

import numpy as np
import pytest

from hopforge.model.config import parse_config
from hopforge.model.errors import UserError
from hopforge.model.network import build
from hopforge.model.network.arrays import empty_sizes, state_bytes
from hopforge.model.network.core.candidates import candidate, with_port
from hopforge.model.network.parts.port_masks import place_of
from hopforge.model.network.settings import RouterParameters, Tables
from hopforge.model.router import params as router_params
from hopforge.model.router.links import End, topology_hosts, topology_links
from hopforge.model.router.network import HostModel, NetworkModel, Packet
from hopforge.model.router.params import Route, RouterParams
from hopforge.model.topology import Topology
from hopforge.sim.run.simulation import Simulation

SENT, TAKEN = 2, 3  # kinds of the simulator's log

NARROW = {
    "mesh": ("topology: {kind: mesh, radices: [5, 4]}", "routing: {algorithm: dor}"),
    "mesh, star channel": ("topology: {kind: mesh, radices: [4, 4]}", "routing: {algorithm: star_channel}"),
    "torus, hosts": ("topology: {kind: torus, radices: [4, 3], hosts_per_router: 3}", "routing: {algorithm: dor}"),
    "tree": ("topology: {kind: fat_tree, k: 4, n: 2}", "routing: {algorithm: anca}"),
    "dragonfly": ("topology: {kind: dragonfly, p: 2, a: 4, h: 2}", "routing: {algorithm: minimal}"),
    "full": ("topology: {kind: fully_connected, routers: 20, hosts_per_router: 3}", "routing: {algorithm: shortest}"),
    "hyperx": ("topology: {kind: hyperx, sizes: [4, 4], hosts_per_router: 4}", "routing: {algorithm: dor}"),
}
ADAPTIVE = {"mesh, star channel", "tree", "dragonfly"}
ROUTERS = {
    "plain": "vcs: 2",
    "one VC, one flit": "vcs: 3, buffer_flits: 1, credit_delay_cycles: 2",
    "cut-through": "vcs: 4, switching: vct, buffer_flits: 6, vc_release: credits",
    "input first": "vcs: 3, va: input_first, rc_cycles: 2",
    "wavefront": "vcs: 4, va: wavefront, cycles_per_flit: 2",
    "free queue": "vcs: 3, va: free_queue",
    "look-ahead": "vcs: 4, lookahead: true, rc_cycles: 1, sa: islip",
}


def run_of(lines: tuple[str, ...], load: float, seed: int = 3, **more: Any) -> Simulation:
    address, lengths = "address: {chunk_bits: 8, width_bits: 24}", "traffic: {packet_range: [1, 6]}"
    text = "\n".join(("name: test", address, *lines, lengths))
    return Simulation(parse_config(text), load, seed, **more)


def same_states(one: Simulation, other: Simulation) -> None:
    addresses = set(one.state.arrays) | {"switch_match", "vc_lists", "vc_match", "vc_queue"}
    for name in one.state.record.dtype.names:
        if name not in addresses:
            assert one.state.record[name] == other.state.record[name], name
    for name, array in one.state.arrays.items():
        assert array.tobytes() == other.state.arrays[name].tobytes(), name


@pytest.mark.parametrize("router", list(ROUTERS))
@pytest.mark.parametrize("network", list(NARROW))
def test_masks_of_words_decide_as_one_word_does(network: str, router: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every array of the state is the same, packets and pointers of all arbiters included."""
    lines = (*NARROW[network], f"router: {{{ROUTERS[router]}}}")
    if router == "look-ahead" and network in ADAPTIVE:
        pytest.skip("the next router is not known before allocation")
    runs = []
    for words in (False, True):
        monkeypatch.setattr(build, "ONE_WORD_PORTS", 0 if words else 64)
        run = run_of(lines, 0.5, log_events=1 << 16, check=False)
        assert (int(run.state["switch_match"]) != 0) == words
        for _ in range(3):
            run.advance(150)
        run.check_conservation()
        runs.append(run)
    assert runs[0].state["flits_ejected"] > 500
    same_states(*runs)


def test_masks_of_words_with_failures_and_acknowledges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Packets without a way are drained beside grants of the switch."""
    lines = (
        "topology: {kind: torus, radices: [4, 4], hosts_per_router: 2}",
        "routing: {algorithm: up_down}",
        "router: {vcs: 2}",
        "simulation: {failures: [{cycle: 200, links: [[0, 1], [5, 6], [9, 8]]}]}",
    )
    runs = []
    for most in (64, 0):
        monkeypatch.setattr(build, "ONE_WORD_PORTS", most)
        run = run_of(lines, 0.3, log_events=1 << 17)
        run.advance(900)
        run.check_conservation()
        runs.append(run)
    same_states(*runs)


def routes_of(topology: Topology, router: int) -> tuple[Route, ...]:
    """Along the only dimension of a mesh, straight to the router of the host in a HyperX."""
    peers = topology.peer_router[router].tolist()
    routes = [Route(0)] * (int(topology.host_address.max()) + 1)
    for host in range(topology.hosts):
        there = int(topology.host_router[host])
        if there == router:
            port = int(topology.host_port[host])
        else:
            step = (router + 1 if there > router else router - 1) if topology.kind == "mesh" else there
            port = peers.index(step)
        routes[int(topology.host_address[host])] = Route(1 << port)
    return tuple(routes)


WIDE = {
    "64 hosts": "{kind: mesh, radices: [2], hosts_per_router: 64}",
    "70 hosts": "{kind: mesh, radices: [2], hosts_per_router: 70}",
    "130 hosts": "{kind: mesh, radices: [2], hosts_per_router: 130}",
    "HyperX": "{kind: hyperx, sizes: [4], hosts_per_router: 64}",
}
# masks of two words and of three
GOLDEN = {
    "plain": {"vcs": 2, "buffer_flits": 4},
    "input first": {"vcs": 3, "buffer_flits": 3, "va": "input_first", "rc_cycles": 1},
    "wavefront": {"vcs": 2, "buffer_flits": 4, "va": "wavefront", "credit_delay_cycles": 1},
    "free queue": {"vcs": 2, "buffer_flits": 6, "va": "free_queue", "vc_release": "credits", "switching": "vct"},
    "inputs ask first, matrix": {"vcs": 2, "buffer_flits": 4, "sa": "input_first", "arbiter": "matrix"},
    "speculation, wavefront": {"vcs": 2, "buffer_flits": 4, "sa": "wavefront", "speculation": True},
    "speculation": {"vcs": 2, "buffer_flits": 4, "speculation": True},
    "most pairs": {"vcs": 2, "buffer_flits": 4, "sa": "max_size", "va": "max_size"},
    "chosen ahead": {"vcs": 2, "buffer_flits": 4, "va": "free_queue", "sa": "input_ahead"},
}


@pytest.mark.parametrize(
    ("network", "router"),
    [
        *(("70 hosts", router) for router in GOLDEN), ("64 hosts", "plain"), ("130 hosts", "wavefront"),
        ("130 hosts", "most pairs"), ("HyperX", "plain"),
        *(pytest.param("130 hosts", router, marks=pytest.mark.study) for router in GOLDEN
          if router not in ("wavefront", "most pairs")),
    ],
)  # fmt: skip
@pytest.mark.thinned(2)
def test_wide_routers_equal_golden_routers(network: str, router: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every flit is sent and taken in the same cycle; golden routers have sets of ports, no words."""
    monkeypatch.setitem(router_params._LIMITS, "ports", (2, 512))  # hardware ends there, not the definition
    settings = GOLDEN[router]
    text = ", ".join(f"{key}: {str(value).lower()}" for key, value in settings.items())
    rng, cycles, last = np.random.default_rng(len(network)), 160, 40
    lines = (f"topology: {WIDE[network]}", "routing: {algorithm: dor}", f"router: {{{text}}}")
    hosts = run_of(lines, 0.1, check=False).topology.hosts
    count = 5 * hosts
    # half of the packets go to a few hosts, so that many inputs ask for one output
    target = np.where(rng.random(count) < 0.5, rng.integers(0, hosts, count), rng.integers(hosts - 3, hosts, count))
    script = (
        rng.integers(0, hosts, count), np.sort(rng.integers(0, last, count)), target, rng.integers(1, 4, count),
    )  # fmt: skip
    run = run_of(lines, 0.1, script=script, log_events=1 << 18)
    run.advance(cycles)
    topology = run.topology
    assert topology.max_ports > 64
    log = run.state["log"].reshape(-1, 6)[: int(run.state["log_length"])]
    want = {kind: [] for kind in (SENT, TAKEN)}
    for cycle, kind, source, _, packet, flit in log.tolist():
        if kind in want:
            want[kind].append((cycle, source, packet, flit))

    params = [
        RouterParams(ports=topology.max_ports, tag_bits=16, width_bits=88, routes=routes_of(topology, r), **settings)
        for r in range(topology.routers)
    ]
    network_model = NetworkModel(params, topology_links(topology, 1))
    queues: list[list[Packet]] = [[] for _ in range(hosts)]
    for host, created, dst, flits in zip(*(column.tolist() for column in script), strict=True):
        head = int(topology.host_address[dst]) | host << 24 | len(queues[host]) << 48 | flits << 64
        queues[host].append(Packet(created, head, flits))
    ends = topology_hosts(topology)
    models = [HostModel(params[end.router], queue, 1) for end, queue in zip(ends, queues, strict=True)]
    for cycle in range(cycles):
        visible = network_model.visible()
        outside: dict[End, Any] = {
            end: model.step(cycle, visible[end.router][end.port]) for model, end in zip(models, ends, strict=True)
        }
        network_model.step(outside)
    for kind, what in ((SENT, "sent"), (TAKEN, "received")):
        got = []
        for host, model in enumerate(models):
            current: dict[int, int] = {}
            for cycle, flit in getattr(model, what):
                if flit.is_head:
                    current[flit.vc] = (flit.data >> 24 & 0xFFFFFF) << 40 | flit.data >> 48 & 0xFFFF
                got.append((cycle, host, current[flit.vc], flit.kind))
        assert sorted(got) == sorted(want[kind]), what
    assert len(want[TAKEN]) > hosts


@pytest.mark.parametrize("many", range(1, 9))
def test_no_two_pairs_of_ports_share_a_place(many: int) -> None:
    """The VC that stands for an input and an output, with masks of every number of words."""
    ports = range(64 * many)
    places = {place_of.py_func(many, i, o) for i in ports for o in ports}
    assert (len(places), max(places)) == (len(ports) ** 2, len(ports) ** 2 - 1)


def test_a_candidate_keeps_all_but_its_port() -> None:
    for port, other in ((256, 255), (511, 0), (3, 300)):
        assert with_port.py_func(candidate.py_func(port, 5, 2, 7), other) == candidate.py_func(other, 5, 2, 7)


FULL = ("topology: {kind: fully_connected, routers: 70}", "routing: {algorithm: shortest}")


def test_memory_that_does_not_suffice_is_said_before_it_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hopforge.model.free_memory.free_memory", lambda: 1 << 22)
    said = r"^the routers and hosts of the 70 routers fully connected need 0\.\d+ GiB of memory; there are 0\.00391$"
    with pytest.raises(UserError, match=said):
        run_of((*FULL, "router: {vcs: 2}"), 0.1)


def test_the_estimate_of_memory_holds_what_is_made() -> None:
    for vcs, buffer in ((1, 2), (4, 40)):
        run = run_of((*FULL, f"router: {{vcs: {vcs}, buffer_flits: {buffer}}}"), 0.1, check=False)
        router, tables = RouterParameters(vcs=vcs, buffer_flits=buffer), Tables()
        wheel = int(run.state["wheel_mask"]) + 1
        estimate = state_bytes(run.topology, router, empty_sizes(run.topology, router, tables, wheel))
        assert run.state.nbytes <= estimate < 2 * run.state.nbytes
