"""The short proof of up*/down* and of shortest ways, beside the full proof: small networks and planted faults."""

from typing import Any

import numpy as np
import pytest
from tests.model.routing.proof.order_proofs import assert_all_dependencies_rise, compare_verdicts, made, state_of

from hopforge.model.routing.contract.plan import IrregularError, RoutingPlan
from hopforge.model.routing.graphs.graph import _NEXT, _UPDOWN
from hopforge.model.routing.proof.short_proof import prove_routing, short_proof
from hopforge.model.topology import Topology

NETWORKS = (
    "{kind: slim_fly, q: 3}", "{kind: clos, hosts_per_router: 2, leaves: 4, middles: 2}",
    "{kind: fat_tree, k: 2, n: 2}", "{kind: torus, radices: [3, 4]}",
    "{kind: random_regular, routers: 12, degree: 3, seed: 1}",
    "{kind: dragonfly_plus, leaves: 2, spines: 2, hosts_per_router: 1, h: 1}",
)  # fmt: skip
#: with the part of the table that decides
ROUTINGS = {"algorithm: up_down": _UPDOWN, "algorithm: up_down, root: 3": _UPDOWN, "algorithm: shortest": _NEXT}
VCS = 4


@pytest.mark.parametrize(
    ("network", "more"),
    [*((network, "") for network in NETWORKS), (NETWORKS[3], "failed: {links: [[0, 4], [1, 2]]}\n")],
)
def test_every_dependency_of_the_whole_network_rises(network: str, more: str) -> None:
    for routing in ROUTINGS:
        assert_all_dependencies_rise(*made(network, routing, VCS, more), VCS)


@pytest.mark.parametrize("network", [NETWORKS[0], NETWORKS[3], NETWORKS[4]])
def test_what_can_deadlock_or_does_not_arrive_has_no_short_proof(network: str) -> None:
    """Wrong tables: where the full proof finds a cycle, or no way on, the order finds a reason."""
    for routing, part in ROUTINGS.items():
        topology, plan = made(network, routing, VCS)
        tried, refused, unsafe = compare_verdicts(topology, plan, faults(topology, plan, part, 5), VCS)
        assert tried == 60 and unsafe > 5 and refused < tried


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
    topology, plan = made(NETWORKS[4], "algorithm: up_down", VCS)
    state = state_of(topology, plan, VCS)
    assert prove_routing(topology, plan, state, "x", whole=0).startswith("by an order of channels: channels up, then d")
    assert prove_routing(topology, plan, state, "x").startswith("on the whole network")
    assert plan.regular is not None and plan.regular.order is not None
    with pytest.raises(IrregularError, match="the table is one of another network"):
        plan.regular.order(made(NETWORKS[0], "algorithm: up_down", VCS)[0], plan, VCS)
    topology, plan = made("{kind: torus, radices: [2, 3]}", "algorithm: up_down, links: hash", VCS)
    with pytest.raises(IrregularError, match="something else decides around the algorithm"):
        short_proof(topology, plan, state_of(topology, plan, VCS), "x")
