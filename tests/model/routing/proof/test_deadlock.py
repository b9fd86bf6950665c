"""Deadlock: unsafe combinations refused with their cycle, a run that deadlocks caught, what is safe let through."""

import networkx as nx
import numpy as np
import pytest

from hopforge.model.config import parse_config
from hopforge.model.routing.proof.deadlock import DeadlockError, find_cycle
from hopforge.sim.run.simulation import Simulation

CYCLIC = """
from hopforge.model.network.core.candidates import candidate
from hopforge.model.routing import RoutingPlan, relation
import numpy as np

def clockwise(router, in_port, in_vc, packet, net, table, memory, out):
    out[0] = candidate(0, 1) if packet.dst == router else candidate(1, 1)
    return 1

def prepare(topology, vcs, options):
    return RoutingPlan(relation(clockwise), np.zeros(1, np.int32))
"""


def test_a_ring_without_dateline_is_refused_with_its_cycle_and_caught_when_it_runs(tmp_path) -> None:
    (tmp_path / "ring_routing.py").write_text(CYCLIC)
    lines = "\n".join(
        [
            "name: ring",
            "topology: {kind: torus, radices: [6]}",
            "router: {vcs: 1, buffer_flits: 2}",
            "traffic: {packet_flits: 8}",
            "simulation: {deadlock_cycles: 500}",
        ]
    )
    unsafe = parse_config(lines + "\nrouting: {algorithm: file, file: ring_routing.py}", folder=tmp_path)
    with pytest.raises(
        DeadlockError, match=r"can deadlock on the .* with 1 VCs; cycle of channels: 0\.1→1 VC0 → 1\.1→2"
    ):
        Simulation(unsafe, 0.9, 1)
    unchecked = parse_config(
        lines + "\nrouting: {algorithm: file, file: ring_routing.py, check: false}", folder=tmp_path
    )
    run = Simulation(unchecked, 0.9, 1)
    with pytest.raises(DeadlockError, match=r"none has moved since cycle \d+; waiting channels: .*→1 VC0"):
        run.advance(100000)


STRETCHED = """
from hopforge.model.network.core.candidates import candidate
from hopforge.model.routing import RoutingPlan, relation
import numpy as np

def three_hops(router, in_port, in_vc, packet, net, table, memory, out):
    # clockwise; three links: VC 0, 1, 0, or the way out 0, 2, 3; two: 2, 3; one: 3
    left = (packet.dst - router) % 4
    if left == 0:
        out[0] = candidate(0, 15)
    elif in_port == 0:
        out[0] = candidate(1, 1 if left == 3 else 4 if left == 2 else 8)
    elif left == 2:
        out[0] = candidate(1, 2 | 4)
    else:
        out[0] = candidate(1, 1 if in_vc == 1 else 8)
    return 1

def prepare(topology, vcs, options):
    return RoutingPlan(relation(three_hops), np.zeros(1, np.int32), obligation="escape")
"""


def test_a_packet_of_one_flit_holds_no_channel_behind_its_head(tmp_path) -> None:
    """A head that waits on VC 1 can close a ring only by the VC 0 that its own later flits hold."""
    (tmp_path / "three_hops.py").write_text(STRETCHED)
    text = (
        "name: ring\ntopology: {kind: torus, radices: [4]}\ntraffic: {packet_flits: %d, include_self: false}\n"
        "router: {vcs: 4, buffer_flits: 2, vc_release: credits}\nsimulation: {deadlock_cycles: 500}\n"
        "routing: {algorithm: file, file: three_hops.py, check: %s}\n"
    )
    run = Simulation(parse_config(text % (1, "true"), folder=tmp_path), 0.9, 1)
    run.advance(20_000)
    assert int(run.state["flits_ejected"]) > 10_000
    with pytest.raises(DeadlockError, match=r"can deadlock on the .* with 4 VCs; cycle of channels: .*VC0 → .*VC1"):
        Simulation(parse_config(text % (8, "true"), folder=tmp_path), 0.9, 1)
    unchecked = Simulation(parse_config(text % (8, "false"), folder=tmp_path), 0.9, 1)
    with pytest.raises(DeadlockError, match=r"none has moved since cycle \d+"):
        unchecked.advance(200_000)


def test_find_cycle_against_networkx() -> None:
    assert find_cycle(np.array([0, 1, 2, 3]), np.array([1, 2, 1, 0]), 4) in ([1, 2], [2, 1])
    assert find_cycle(np.array([0, 1]), np.array([1, 2]), 3) == []
    assert find_cycle(np.zeros(0, int), np.zeros(0, int), 3) == []
    generator = np.random.default_rng(5)
    found = 0
    for _ in range(200):
        source, target = generator.integers(0, 9, (2, int(generator.integers(1, 14))))
        graph = nx.DiGraph(zip(source.tolist(), target.tolist(), strict=True))
        cycle = find_cycle(source, target, 9)
        assert bool(cycle) != nx.is_directed_acyclic_graph(graph)
        found += bool(cycle)
        assert all(graph.has_edge(a, b) for a, b in zip(cycle, [*cycle[1:], *cycle[:1]], strict=True))
    assert 20 < found < 180


LOST = """
from hopforge.model.network.core.candidates import candidate
from hopforge.model.routing import RoutingPlan, relation
import numpy as np

def half_way(router, in_port, in_vc, packet, net, table, memory, out):
    # a chain of routers; nobody knows the way to the last host
    if packet.dst == table[0] - 1 and router == table[0] - 3:
        return 0
    out[0] = candidate(0 if packet.dst == router else 1 if packet.dst > router else 2, 15)
    return 1

def prepare(topology, vcs, options):
    return RoutingPlan(relation(half_way), np.array([topology.routers], np.int32))
"""


def test_unroutable_packets_are_refused_or_drained_and_counted(tmp_path) -> None:
    (tmp_path / "lost_routing.py").write_text(LOST)
    lines = "name: lost\ntopology: {kind: mesh, radices: [6]}\ntraffic: {packet_flits: 3}\n"
    checked = parse_config(lines + "routing: {algorithm: file, file: lost_routing.py}", folder=tmp_path)
    with pytest.raises(DeadlockError, match=r"a packet to host 5 finds no output in router 3, input port \d, VC \d"):
        Simulation(checked, 0.1, 1)
    checked = parse_config(lines + "routing: {algorithm: file, file: lost_routing.py, check: false}", folder=tmp_path)
    hosts, times = np.array([0, 1, 3, 4, 2]), np.array([0, 1, 2, 3, 40])
    packets = hosts, times, np.array([5, 5, 5, 5, 4]), np.array([3, 1, 2, 4, 2])
    run = Simulation(checked, 0.1, 1, script=packets)
    run.advance(500)
    run.check_conservation()
    # hosts 0, 1 and 3 lose theirs in router 3; host 4 is behind it, and packets to host 4 pass
    assert int(run.state["packets_dropped"]) == 3
    assert int(run.state["flits_dropped"]) == 3 + 1 + 2
    assert run.state["host"]["flits_received"].tolist() == [0, 0, 0, 0, 2, 4]
    assert run.state.flits_in_flight == 0
    assert (run.state["output_vc"]["owner"] == -1).all()


def test_an_escape_is_out_of_reach_where_virtual_channels_are_given_before_they_are_empty() -> None:
    text = "name: x\ntopology: {kind: torus, radices: [4, 4]}\nrouting: {algorithm: star_channel}\n"
    with pytest.raises(DeadlockError, match=r"cycle of channels: .* VC\d; its escape is out of reach .* credits, or"):
        Simulation(parse_config(text + "router: {vcs: 3}\n"), 0.1, 1)
    for router in ("vc_release: credits", "switching: vct", "switching: saf"):
        Simulation(parse_config(text + f"router: {{vcs: 3, {router}}}\n"), 0.1, 1)


def test_a_cycle_of_answers_that_cover_those_of_the_algorithm_is_told_as_such() -> None:
    """0.2→4 → 4.0→0 goes back where it came from: no packet does, but Valiant over leaves has other cycles."""
    config = parse_config(
        "name: x\ntopology: {kind: clos, pods: 1, leaves: 4, middles: 2, hosts_per_router: 2}\n"
        "routing: {algorithm: booksim_val}\nrouter: {vcs: 4}\n"
    )
    with pytest.raises(DeadlockError, match=r"cycle of channels that the proof, .* cannot rule out: 0\.2→4"):
        Simulation(config, 0.1, 1)
