"""Networks whose ports lie far apart: masks of several words decide as those of one word do.

Port p of a router becomes port `STEP` · p, so that a small network has routers of more than 64 ports, used in every
word. The order of ports stays, so all decisions but those of wavefront and max_size have to stay, too.
"""

from dataclasses import replace

import numpy as np
import pytest

from hopforge.model.config import parse_config
from hopforge.model.network import arrays, build
from hopforge.model.topology import Topology
from hopforge.model.topology.configured import network_topology
from hopforge.sim.run.simulation import Simulation

GRANTED = 0
Rows = list[list[int]]


def stretched(topology: Topology, step: int) -> Topology:
    """The same network with `step` − 1 unused ports between any two."""

    def far(values: np.ndarray) -> np.ndarray:
        found = np.full((topology.routers, topology.max_ports * step), -1, values.dtype)
        found[:, ::step] = values
        return found

    peer = far(np.where(topology.peer_port >= 0, topology.peer_port * step, -1).astype(np.int32))
    return replace(
        topology, peer_router=far(topology.peer_router), peer_port=peer, host_at=far(topology.host_at),
        host_port=topology.host_port * step, ports=topology.ports * step,
    )  # fmt: skip


def grants(text: str, load: float, step: int, cycles: int = 300) -> tuple[Simulation, Rows]:
    """All events, with the numbers of ports as they are in the network that is not stretched."""
    config = parse_config(f"name: x\n{text}\n")
    topology = stretched(network_topology(config), step)
    run = Simulation(config, load, 3, topology=topology, log_events=1 << 17)
    run.advance(cycles)
    run.check_conservation()
    log = run.state["log"].reshape(-1, 6)[: int(run.state["log_length"])].copy()
    vcs, kind = int(run.state["vcs"]), log[:, 1]
    for column in (2, 3):
        port, vc = np.divmod(log[:, column], vcs)
        assert (port[kind == GRANTED] % step == 0).all()
        log[:, column] = np.where(kind == GRANTED, port // step * vcs + vc, log[:, column])
    return run, log.tolist()


HYPERX = "topology: {kind: hyperx, sizes: [3, 4], hosts_per_router: 2}"
ROUTED = {
    "minimal": f"{HYPERX}\nrouting: {{algorithm: minimal}}\nrouter: {{vcs: 2}}",
    "one way": f"{HYPERX}\nrouting: {{algorithm: minimal, ways: one}}\nrouter: {{vcs: 2}}",
    "drawn": "topology: {kind: fat_tree, k: 2, n: 2}\nrouting: {algorithm: minimal, spread: packet}\nrouter: {vcs: 2}",
    "by flow": "topology: {kind: slim_fly, q: 5}\nrouting: {algorithm: minimal, spread: flow}\nrouter: {vcs: 2}",
    "valiant": "topology: {kind: slim_fly, q: 5}\nrouting: {algorithm: valiant}\nrouter: {vcs: 4}",
    "groups": "topology: {kind: dragonfly, p: 1, a: 2, h: 2}\n"
    "routing: {algorithm: ugal, over: groups}\nrouter: {vcs: 6}",
    "global": "topology: {kind: torus, radices: [4, 4]}\n"
    "routing: {algorithm: ugal_global, classes: turns}\nrouter: {vcs: 6}",
    "looked up": f"{HYPERX}\nrouting: {{algorithm: minimal, ways: one}}\n"
    "router: {vcs: 2, route_computation: lookup}\n"
    "lookup: {mshrs: 2, cache: {entries: 8, ways: 2}, tcam: {kind: flops, rows: 64}}",
    "compact": "topology: {kind: polarfly, q: 4, hosts_per_router: 2}\n"
    "routing: {algorithm: ugal_compact}\nrouter: {vcs: 4}",
}


@pytest.mark.parametrize("network", list(ROUTED))
def test_ways_on_far_ports_are_those_on_near_ones(network: str) -> None:
    """The routing, its proof, and every grant of every router."""
    near, far = (grants(ROUTED[network], 0.5, step) for step in (1, 23))
    assert far[0].topology.max_ports > 64
    assert near[0].proof == far[0].proof != ""
    assert near[1] == far[1]
    assert len(near[1]) > 1000


@pytest.mark.study  # compiles another kernel
def test_routers_of_queues_take_the_same_ways() -> None:
    text = f"name: x\n{HYPERX}\nrouting: {{algorithm: minimal}}\nrouter: {{vcs: 2, model: input_output_queued}}\n"
    config, found = parse_config(text), []
    for step in (1, 23):
        run = Simulation(config, 0.5, 3, topology=stretched(network_topology(config), step))
        run.advance(3000)
        found.append([int(run.state[name]) for name in ("flits_ejected", "hops_sum", "latency_sum", "latency_max")])
    assert found[0] == found[1]
    assert found[0][0] > 300


MATCHED = {
    "input first": "vcs: 2, sa: input_first",
    "matrix": "vcs: 2, arbiter: matrix",
    "speculation": "vcs: 2, speculation: true",
    "speculation by matrix": "vcs: 2, speculation: true, sa: input_first, arbiter: matrix",
    "shared speculation": "vcs: 2, speculation: shared",
    "held": "vcs: 2, hold_switch: true",
    "chosen ahead": "vcs: 2, va: free_queue, sa: input_ahead",
    "speedups": "vcs: 4, input_speedup: 2, output_speedup: 2, allocator_iterations: 2",
    "speedups, held": "vcs: 4, input_speedup: 2, output_speedup: 2, sa: input_first, hold_switch: true",
    "speedups, speculation": "vcs: 4, output_speedup: 2, sa: input_first, speculation: true",
    "steps": "vcs: 2, internal_speedup: 1.5, output_queue_flits: 3",
    "steps, input first": "vcs: 2, internal_speedup: 2, sa: input_first",
}
ONE_WAY = f"{HYPERX}\nrouting: {{algorithm: minimal, ways: one}}\ntraffic: {{packet_range: [1, 4]}}\n"


#: their kernels take long to compile
RARE = {"shared speculation", "chosen ahead", "steps", "steps, input first"}


@pytest.mark.parametrize("router", [
    pytest.param(name, marks=pytest.mark.study) if name in RARE else name for name in MATCHED
])  # fmt: skip
def test_switches_on_far_ports_grant_as_those_on_near_ones(router: str) -> None:
    """Every pointer of every arbiter decides on the order of ports only."""
    near, far = (grants(f"{ONE_WAY}router: {{{MATCHED[router]}}}", 0.7, step) for step in (1, 23))
    assert near[1] == far[1]
    assert len(near[1]) > 3000


@pytest.mark.parametrize("qos", ["strict", "weighted"])
def test_classes_on_far_ports_are_served_as_those_on_near_ones(qos: str) -> None:
    classes = "{name: a, load: 0.3, vcs: 1, PRIORITY}, {name: b, load: 0.5, vcs: 2}"
    classes = classes.replace("PRIORITY", "priority: 1" if qos == "strict" else "weight: 2")
    text = f"{HYPERX}\nrouting: {{algorithm: minimal, ways: one}}\nrouter: {{vcs: 3, qos: {qos}}}\n"
    near, far = (grants(f"{text}traffic: {{classes: [{classes}]}}", 0.8, step) for step in (1, 23))
    assert near[1] == far[1]
    assert len(near[1]) > 3000


@pytest.mark.parametrize("router", [
    "sa: wavefront", "sa: max_size, va: max_size", "sa: wavefront, speculation: true",
    "sa: max_size, speculation: true", "sa: wavefront, hold_switch: true",
    "internal_speedup: 2, sa: max_size", "sa: wavefront, arbiter: matrix",
])  # fmt: skip
def test_words_without_ports_change_nothing(router: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Allocators that turn with the number of ports, by masks of three words of which two are empty."""
    found = []
    for words in (1, 3):
        monkeypatch.setattr(arrays, "port_words", lambda *_, words=words: words)
        monkeypatch.setattr(build, "port_words", lambda *_, words=words: words)
        run, log = grants(f"{ONE_WAY}router: {{vcs: 2, {router}}}", 0.7, 1)
        assert run.state["port_words"] == words
        found.append(log)
    assert found[0] == found[1]
    assert len(found[0]) > 3000
