"""The short proof by an order of channels, beside the full proof: on small networks, and with planted faults."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.model.routing.proof.order_proofs import (
    assert_all_dependencies_rise,
    compare_verdicts,
    made,
    state_of,
    with_table,
)

from hopforge.model.routing.contract.plan import IrregularError, RoutingPlan
from hopforge.model.routing.proof.deadlock import DeadlockError, check_routing
from hopforge.model.routing.proof.short_proof import prove_routing, short_proof
from hopforge.model.routing.ways.rising_channels import rising_channels_of
from hopforge.model.routing.ways.table import AFTER, CLASS, CLASSES, GOALS, KIND, LEFT, MASK, PEER, WAYS
from hopforge.model.topology import Topology

NETWORKS = (
    "{kind: slim_fly, q: 3}", "{kind: polarfly, q: 3}", "{kind: clos, hosts_per_router: 2, leaves: 4, middles: 2}",
    "{kind: fat_tree, k: 2, n: 2}", "{kind: hyperx, sizes: [3, 3]}", "{kind: torus, radices: [3, 4]}",
    "{kind: random_regular, routers: 12, degree: 3, seed: 1}",
    "{kind: dragonfly_plus, leaves: 2, spines: 2, hosts_per_router: 1, h: 1}",
)  # fmt: skip
ROUTINGS = (
    "algorithm: minimal", "algorithm: minimal, spread: flow, classes: turns", "algorithm: valiant, ways: all",
    "algorithm: ugal, classes: turns", "algorithm: ugal, classes: hops", "algorithm: minimal, classes: hops",
)  # fmt: skip
VCS = 12


@pytest.mark.parametrize("network", NETWORKS)
def test_every_dependency_of_the_whole_network_rises(network: str) -> None:
    for routing in ROUTINGS:
        try:
            topology, plan = made(network, routing, VCS)
        except ValueError as problem:
            assert "router.vcs must be at least" in str(problem)
            continue
        assert_all_dependencies_rise(topology, plan, VCS)


def faults(topology: Topology, plan: RoutingPlan, seed: int) -> Iterator[Any]:
    """Tables with one wrong entry, of the parts that decide; all entries stay such that nothing reads beyond them."""
    rng, table = np.random.default_rng(seed), np.asarray(plan.table)
    R, P, goals, classes = topology.routers, topology.max_ports, int(table[GOALS]), int(table[CLASSES])
    router, port = np.nonzero(topology.peer_router >= 0)
    for part in (KIND, MASK, CLASS, WAYS, LEFT, AFTER) * 6:
        wrong, start = table.copy(), int(table[part])
        k = int(rng.integers(len(router)))
        r, p = int(router[k]), int(port[k])
        links = np.flatnonzero(topology.peer_router[r] >= 0)
        chosen = rng.choice(links, size=int(rng.integers(1, len(links) + 1)), replace=False)
        some = sum(1 << int(q) for q in chosen)
        if part == KIND:
            wrong[start + r * P + p] ^= 1
            if rng.integers(2):
                wrong[start + topology.peer_router[r, p] * P + topology.peer_port[r, p]] ^= 1
        elif part == MASK:
            wrong[start + int(rng.integers(classes))] = int(rng.integers(1, 1 << VCS))
        elif part == CLASS:
            wrong[start + int(rng.integers(VCS))] = int(rng.integers(classes))
        elif part == LEFT:
            wrong[start + r * goals + int(rng.integers(R))] -= int(rng.choice([1, 1 << 8, 1 << 16]))
            if (wrong[start : start + R * goals] < 0).any():
                continue
        else:
            wrong[start + 2 * (r * goals + int(rng.integers(R)) if part == WAYS else r * P + p)] = some
        if not np.array_equal(wrong, table):
            yield wrong


def one_class_less(table: Any) -> Any:
    """Return a table whose two highest classes are one, as a network with fewer of them has it."""
    less, last = np.array(table), int(table[CLASSES]) - 2
    of_vc, masks = int(table[CLASS]), int(table[MASK])
    less[CLASSES] = last + 1
    less[of_vc : of_vc + VCS] = np.minimum(less[of_vc : of_vc + VCS], last)
    less[masks + last] |= less[masks + last + 1]
    return less


@pytest.mark.parametrize("network", NETWORKS[2:4])
def test_detours_on_one_class_less_have_no_short_proof(network: str) -> None:
    """The way to an intermediate destination and that home rise each, but not one behind the other."""
    topology, plan = made(network, ROUTINGS[2], VCS)
    assert int(plan.table[CLASSES]) == 2
    wrong = one_class_less(plan.table)
    bad = with_table(plan, wrong)
    with pytest.raises(DeadlockError, match="can deadlock"):
        check_routing(topology, bad, state_of(topology, bad, VCS), "x")
    with pytest.raises(IrregularError, match="the way home from an intermediate destination has no class of its own"):
        rising_channels_of(topology, bad, VCS)


@pytest.mark.parametrize("network", [NETWORKS[1], NETWORKS[2], NETWORKS[6]])
def test_what_can_deadlock_has_no_short_proof(network: str) -> None:
    """Wrong tables: where the full proof finds a cycle, or no way on, the order finds a reason."""
    found = []
    for routing in (ROUTINGS[0], ROUTINGS[2], ROUTINGS[3], ROUTINGS[4]):
        topology, plan = made(network, routing, VCS)
        found.append(compare_verdicts(topology, plan, faults(topology, plan, 7), VCS))
    tried, refused, unsafe = map(sum, zip(*found, strict=True))
    assert tried > 120 and unsafe > 15 and refused < tried


def test_tables_of_another_network_and_other_relations_are_refused() -> None:
    topology, plan = made(NETWORKS[1], ROUTINGS[3], VCS)
    wrong = np.array(plan.table)
    wrong[wrong[PEER] + 5] ^= 1
    with pytest.raises(IrregularError, match="the table is one of another network"):
        rising_channels_of(topology, replace(plan, table=wrong), VCS)
    with pytest.raises(IrregularError, match="the table is one of another network"):
        rising_channels_of(made(NETWORKS[0], ROUTINGS[3], VCS)[0], plan, VCS)
    other = replace(plan, every=plan.route)
    with pytest.raises(IrregularError, match="something else decides around the algorithm"):
        short_proof(topology, other, state_of(topology, other, VCS), "x")


def test_the_order_is_taken_where_the_whole_is_too_large() -> None:
    topology, plan = made(NETWORKS[1], ROUTINGS[3], VCS)
    state = state_of(topology, plan, VCS)
    assert prove_routing(topology, plan, state, "x", whole=0).startswith("by an order of channels: 3 classes of ")
    assert prove_routing(topology, plan, state, "x").startswith("on the whole network")
