"""The short proof of up*/down* and of shortest ways, beside the full proof: small networks and planted faults."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hopforge.model.config import parse_config
from hopforge.model.network.build import build_net
from hopforge.model.network.core.state import NetState
from hopforge.model.network.settings import RouterParameters, SourceParameters, Tables
from hopforge.model.routing.combined.configured import routing_plan
from hopforge.model.routing.contract.fields_read import fields_read
from hopforge.model.routing.contract.plan import IrregularError, RoutingPlan
from hopforge.model.routing.graphs.graph import _NEXT, _UPDOWN, _hop_order, _up_down_order
from hopforge.model.routing.proof.deadlock import DeadlockError, check_routing, relation_to_prove
from hopforge.model.routing.proof.reachable import Exploration, packet_lengths
from hopforge.model.routing.proof.short_proof import prove_routing, short_proof
from hopforge.model.topology import Topology
from hopforge.sim.run.simulation import network_topology

NETWORKS = (
    "{kind: slim_fly, q: 3}", "{kind: clos, hosts_per_router: 2, leaves: 4, middles: 2}",
    "{kind: fat_tree, k: 2, n: 2}", "{kind: torus, radices: [3, 4]}",
    "{kind: random_regular, routers: 12, degree: 3, seed: 1}",
    "{kind: dragonfly_plus, leaves: 2, spines: 2, hosts_per_router: 1, h: 1}",
)  # fmt: skip
ROUTINGS = ("algorithm: up_down", "algorithm: up_down, root: 3", "algorithm: shortest")
VCS = 4


def made(network: str, routing: str, more: str = "") -> tuple[Topology, RoutingPlan, NetState]:
    text = f"name: x\ntopology: {network}\nrouting: {{{routing}}}\nrouter: {{vcs: {VCS}}}\n{more}"
    config = parse_config(text)
    topology = network_topology(config)
    plan = routing_plan(config, topology)
    return topology, plan, state_of(topology, plan)


def state_of(topology: Topology, plan: RoutingPlan) -> NetState:
    tables = Tables(routing=plan.table, memory=plan.memory, max_candidates=max(plan.max_candidates, 64))
    return build_net(topology, RouterParameters(vcs=VCS), SourceParameters(), tables, seed=1)


@pytest.mark.parametrize(
    ("network", "more"),
    [*((network, "") for network in NETWORKS), (NETWORKS[3], "failed: {links: [[0, 4], [1, 2]]}\n")],
)
def test_every_dependency_of_the_whole_network_rises(network: str, more: str) -> None:
    for routing in ROUTINGS:
        topology, plan, state = made(network, routing, more)
        assert "rise with every link" in short_proof(topology, plan, state, "x")
        assert check_routing(topology, plan, state, "x") > 0
        assert plan.regular is not None and plan.regular.order is not None
        number, count, _ = plan.regular.order(topology, plan, VCS)
        relation = relation_to_prove(plan)
        hosts = list(range(topology.hosts))
        exploration = Exploration(plan, relation, state, fields_read(relation), hosts, packet_lengths(state))
        assert exploration.walk() is None
        source, target = exploration.edges()
        between = number[target] >= 0  # not to a host
        assert (number[source] < number[target])[between].all() and between.sum() > 10
        assert 0 <= number.max() < count


@pytest.mark.parametrize("network", [NETWORKS[0], NETWORKS[3], NETWORKS[4]])
def test_what_can_deadlock_or_does_not_arrive_has_no_short_proof(network: str) -> None:
    """Wrong tables: where the full proof finds a cycle, or no way on, the order finds a reason."""
    tried, unsafe, refused = 0, 0, 0
    for routing, order in zip(ROUTINGS, (_up_down_order, _up_down_order, _hop_order), strict=True):
        topology, plan, _ = made(network, routing)
        for wrong in faults(topology, plan, _NEXT if order is _hop_order else _UPDOWN, 5):
            assert plan.regular is not None
            bad = replace(plan, table=wrong, regular=replace(plan.regular, table=wrong))
            tried += 1
            try:
                order(topology, bad, VCS)
                short = True
            except IrregularError:
                short, refused = False, refused + 1
            try:
                check_routing(topology, bad, state_of(topology, bad), "x")
            except DeadlockError:
                unsafe += 1
                assert not short
    assert tried > 100 and unsafe > 15 and refused < tried


def faults(topology: Topology, plan: RoutingPlan, part: int, seed: int) -> Any:
    """Yield tables in which one to forty entries lead elsewhere, go the other way, or are missing."""
    rng, R = np.random.default_rng(seed), topology.routers
    start, span = int(plan.table[part]), (1 if part == _NEXT else 2) * R * R
    for k in range(60):
        wrong = np.array(plan.table)
        for at in rng.choice(span, size=(1, 3, 40)[k % 3], replace=False) + start:
            router = (int(at) - start) // R % R
            port = int(rng.choice(np.flatnonzero(topology.peer_router[router] >= 0)))
            kind = int(rng.integers(4))
            if kind == 3:
                wrong[at] = -1
            elif part == _NEXT:
                wrong[at] = port
            else:
                wrong[at] = wrong[at] ^ 1 if kind == 0 and wrong[at] >= 0 else 2 * port + int(rng.integers(2))
        yield wrong


def test_what_is_taken_for_what() -> None:
    topology, plan, state = made(NETWORKS[4], ROUTINGS[0])
    assert prove_routing(topology, plan, state, "x", whole=0).startswith("by an order of channels: channels up, then d")
    assert prove_routing(topology, plan, state, "x").startswith("on the whole network")
    with pytest.raises(IrregularError, match="the table is one of another network"):
        _up_down_order(made(NETWORKS[0], ROUTINGS[0])[0], plan, VCS)
    topology, plan, state = made("{kind: torus, radices: [2, 3]}", "algorithm: up_down, links: hash")
    with pytest.raises(IrregularError, match="something else decides around the algorithm"):
        short_proof(topology, plan, state, "x")
