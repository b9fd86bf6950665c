"""The short proof of section `tables`, beside the full proof: small networks, all methods, and planted faults."""

import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.model.routing.proof.order_proofs import assert_all_dependencies_rise, compare_verdicts, made, state_of

from hopforge.model.routing.contract.plan import IrregularError, RoutingPlan
from hopforge.model.routing.graphs.tables import _DATA, _FIRST, _MASK, _NEXT, _PATHS
from hopforge.model.routing.proof.short_proof import prove_routing, short_proof
from hopforge.model.topology import Topology

FLOOR = "{kind: layout_random, n: 4, degree: 3, length: 4}"
RANDOM = "{kind: random_regular, routers: 12, degree: 3, seed: 1}"
TREE = "{kind: clos, hosts_per_router: 2, leaves: 4, middles: 2}"
RULES = ("acro", "lash", "dfsssp", "hop_indexed")
VCS = 8


def planned(network: str, tables: str, more: str = "") -> tuple[Topology, RoutingPlan]:
    return made(network, "algorithm: tables", VCS, f"tables: {{{tables}}}\n{more}")


@pytest.mark.parametrize(
    ("network", "tables", "more"),
    [
        *((FLOOR, f"scheme: loren, layers: {rule}", "") for rule in RULES),
        *((RANDOM, f"scheme: shortest, layers: {rule}", "") for rule in RULES),
        (RANDOM, "scheme: nue, layers: nue", ""), (TREE, "scheme: up_down, layers: single", ""),
        (FLOOR, "scheme: thorup_zwick, layers: acro", ""), (TREE, "scheme: shortest, layers: lash", ""),
        (RANDOM, "scheme: shortest, layers: acro", "failed: {links: [[0, 1]]}\n"),
        (FLOOR, "scheme: loren, layers: dfsssp", "failed: {links: [[0, 1]]}\n"),
    ],
)  # fmt: skip
def test_every_dependency_of_the_whole_network_rises(network: str, tables: str, more: str) -> None:
    if "failed" in more:  # a link that there is
        topology, _ = planned(network, tables)
        more = more.replace("[0, 1]", f"[0, {int(topology.peer_router[0].max())}]")
    assert_all_dependencies_rise(*planned(network, tables, more), VCS)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("network", [FLOOR, RANDOM])
def test_what_can_deadlock_or_does_not_arrive_has_no_short_proof(network: str, rule: str) -> None:
    """Wrong ports, layers, orders: there is an order exactly where the full proof finds neither cycle nor dead end."""
    topology, plan = planned(network, f"scheme: shortest, layers: {rule}")
    verdicts = compare_verdicts(topology, plan, faults(topology, plan, 7), VCS)
    assert verdicts.tried == 80 and 5 < verdicts.unsafe == verdicts.refused < 80


def faults(topology: Topology, plan: RoutingPlan, seed: int) -> Iterator[NDArray[np.int32]]:
    """Yield tables in which one to forty ports, layers or orders are others, or ports are missing."""
    rng, R = np.random.default_rng(seed), topology.routers
    ports, data, end = (int(plan.table[place]) for place in (_NEXT, _DATA, _PATHS))
    for k in range(80):
        wrong = np.array(plan.table)
        start, span = (ports, R * R) if k % 2 else (data, end - data)
        values = plan.table[data:end]
        for at in rng.choice(span, size=(1, 3, 40)[k % 3], replace=False) + start:
            if start == data:
                wrong[at] = rng.choice(values)
            else:
                around = np.flatnonzero(topology.peer_router[(int(at) - start) // R] >= 0)
                wrong[at] = -1 if rng.random() < 0.1 else rng.choice(around)
        yield wrong


def test_what_is_taken_for_what() -> None:
    topology, plan = planned(RANDOM, "scheme: shortest, layers: acro")
    state = state_of(topology, plan, VCS)
    assert prove_routing(topology, plan, state, "x", whole=0).startswith("by an order of channels: 2 virtual layers, ")
    assert prove_routing(topology, plan, state, "x").startswith("on the whole network")
    assert plan.regular is not None and plan.regular.order is not None
    with pytest.raises(IrregularError, match="the table is one of another network"):
        plan.regular.order(planned(FLOOR, "scheme: shortest, layers: acro")[0], plan, VCS)
    both = np.array(plan.table)
    both[both[_MASK]] |= both[both[_MASK] + 1]
    with pytest.raises(IrregularError, match="layer 1 has no virtual channels of its own"):
        plan.regular.order(topology, RoutingPlan(plan.route, both), VCS)
    with pytest.raises(IrregularError, match="a virtual channel is of no layer"):
        plan.regular.order(topology, plan, VCS + 1)
    homes = np.array(plan.table)
    homes[_FIRST] = homes[_FIRST + 1]
    with pytest.raises(IrregularError, match="the table is one of another network"):
        plan.regular.order(topology, RoutingPlan(plan.route, homes), VCS)


@pytest.mark.parametrize("tables", ["scheme: shortest, layers: lash_tor", "scheme: shortest, layers: escape"])
def test_paths_with_a_layer_of_each_hop_and_escapes_have_none(tables: str) -> None:
    topology, plan = planned(RANDOM, tables)
    with pytest.raises(IrregularError, match="does not promise"):
        short_proof(topology, plan, state_of(topology, plan, VCS), "x")


def test_memory_is_that_of_the_links_there_are(tmp_path: Path) -> None:
    """One router with 299 links: the others have two or three each, and room for 299 more behind everyone is 400 MB."""
    edges = [(0, other) for other in range(1, 300)] + [(other, other + 1) for other in range(1, 299, 2)]
    (tmp_path / "hub.txt").write_text("".join(f"{a} {b}\n" for a, b in edges))
    network = f"{{kind: edge_list, file: {tmp_path / 'hub.txt'}}}"
    topology, plan = planned(network, "scheme: nue, layers: nue, max_layers: 8", "address: {chunk_bits: 6}\n")
    assert plan.regular is not None and plan.regular.order is not None
    tracemalloc.start()
    try:
        number, count, _ = plan.regular.order(topology, plan, VCS)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(number) == 300 * 300 * VCS and 0 <= number.max() < count
    assert peak < 120e6, f"{peak / 1e6:.0f} MB"
