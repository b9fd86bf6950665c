"""Short proofs by an order of channels beside the full proof: what their tests share."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

from hopforge.model.config import parse_config
from hopforge.model.network.build import build_net
from hopforge.model.network.core.state import NetState
from hopforge.model.network.settings import RouterParameters, SourceParameters, Tables
from hopforge.model.routing.combined.configured import routing_plan
from hopforge.model.routing.contract.fields_read import fields_read
from hopforge.model.routing.contract.plan import IrregularError, RoutingPlan
from hopforge.model.routing.proof.deadlock import DeadlockError, check_routing, relation_to_prove
from hopforge.model.routing.proof.reachable import Exploration, packet_lengths
from hopforge.model.routing.proof.short_proof import short_proof
from hopforge.model.topology import Topology
from hopforge.sim.run.simulation import network_topology


def made(network: str, routing: str, vcs: int, more: str = "") -> tuple[Topology, RoutingPlan]:
    text = f"name: x\ntopology: {network}\nrouting: {{{routing}}}\nrouter: {{vcs: {vcs}}}\n{more}"
    config = parse_config(text)
    topology = network_topology(config)
    return topology, routing_plan(config, topology)


def state_of(topology: Topology, plan: RoutingPlan, vcs: int) -> NetState:
    tables = Tables(routing=plan.table, memory=plan.memory, max_candidates=max(plan.max_candidates, 64))
    return build_net(topology, RouterParameters(vcs=vcs), SourceParameters(), tables, seed=1)


def with_table(plan: RoutingPlan, table: Any) -> RoutingPlan:
    """Return a plan that promises the same of another table."""
    assert plan.regular is not None
    return replace(plan, table=table, regular=replace(plan.regular, table=table))


def assert_all_dependencies_rise(topology: Topology, plan: RoutingPlan, vcs: int) -> None:
    """Compare the numbers of channels with all dependencies of the whole network."""
    state = state_of(topology, plan, vcs)
    assert "rise with every link" in short_proof(topology, plan, state, "x")
    assert check_routing(topology, plan, state, "x") > 0
    assert plan.regular is not None and plan.regular.order is not None
    number, count, _ = plan.regular.order(topology, plan, vcs)
    relation = relation_to_prove(plan)
    hosts = list(range(topology.hosts))
    exploration = Exploration(plan, relation, state, fields_read(relation), hosts, packet_lengths(state))
    assert exploration.walk() is None
    source, target = exploration.edges()
    between = number[target] >= 0  # not to a host
    assert (number[source] < number[target])[between].all() and between.sum() > 10
    assert 0 <= number.max() < count


class Verdicts(NamedTuple):
    """How many tables there were, without an order, and unsafe by the full proof."""

    tried: int
    refused: int
    unsafe: int


def compare_verdicts(topology: Topology, plan: RoutingPlan, tables: Iterable[Any], vcs: int) -> Verdicts:
    """Look for an order in each of some tables: none that the full proof finds unsafe may have one."""
    assert plan.regular is not None and plan.regular.order is not None
    tried = refused = unsafe = 0
    for table in tables:
        other, tried, short = with_table(plan, table), tried + 1, True
        try:
            plan.regular.order(topology, other, vcs)
        except IrregularError:
            short, refused = False, refused + 1
        try:
            check_routing(topology, other, state_of(topology, other, vcs), "x")
        except DeadlockError:
            unsafe += 1
            assert not short
    return Verdicts(tried, refused, unsafe)
